"""How the user's functions are called, and what is said of those that do not fit."""

import numpy as np
import pytest
from comparing import close, equal, refuses
from models.schools import Y, normal

import varmat as vm


def test_ways_of_calling():
    data = {"y": Y, "unused": None}
    q = np.array([1.0, 0.5])
    expected = normal(Y, 1.0, np.exp(0.5)) + 0.5
    for f in (
        lambda mu, s, y: normal(y, mu, s),
        lambda y, *, s, mu: normal(y, mu, s),
        lambda p: normal(p["y"], p["mu"], p["s"]),
        lambda p, /: normal(p["y"], p["mu"], p["s"]),
        lambda p, scale=1.0: normal(p["y"], p["mu"], p["s"] * scale),
        lambda **p: normal(p["y"], p["mu"], p["s"]),
        lambda mu, **p: normal(p["y"], mu, p["s"]),
    ):
        model = vm.Model(f, mu=vm.real(), s=vm.positive(), data=data)
        close(model.log_density(q), expected, 1e-15)
        close(model.log_density_gradient(q)[0], expected, 1e-15)


def test_parameters_with_names_that_are_taken():
    model = vm.Model(lambda p: -(p["data"] ** 2) + p["x"], {"data": vm.real()}, x=vm.real())
    assert model.log_density(np.array([2.0, 1.0])) == -3.0


def test_propto_is_passed_on_if_taken():
    for f in (
        lambda mu, propto: 1.0 if propto else 2.0,
        lambda p, propto=None: 1.0 if propto else 2.0,
        lambda *, propto=None, **p: 1.0 if propto else 2.0,
    ):
        model = vm.Model(f, mu=vm.real())
        found = [model.log_density(np.zeros(1), propto=propto) for propto in (True, False)]
        assert found == [1.0, 2.0]
        assert model.log_density_gradient(np.zeros(1))[0] == 1.0
    for recorded in (False, True):
        f = lambda mu, y, propto: vm.normal_lpdf(y, mu, 2.0, propto=propto)  # noqa: E731
        model = vm.Model(f, mu=vm.real(), data={"y": Y}, recorded=recorded)
        gradients = [model.log_density_gradient(np.ones(1), propto=x) for x in (True, False)]
        close(gradients[0][0] - gradients[1][0], 8 * np.log(2 * np.sqrt(2 * np.pi)), 1e-13)
        for _, gradient in gradients:
            close(gradient, np.sum(Y - 1.0) / 4, 1e-14)


def test_parameters_that_are_found_missing_when_the_transformed_ones_are_known():
    model = vm.Model(lambda x, nu: -x * nu, x=vm.real(), transformed_parameters=lambda x: {"y": x})
    for method in (model.log_density, model.log_density_gradient):
        message = "Model: the log density takes 'nu', but must take parameters and data: x, y!"
        refuses(TypeError, message, method, [0.5])
    # Another error is unchanged.
    functions = {"transformed_parameters": lambda x: {"y": x}}
    model = vm.Model(lambda x, y: x + str(y), x=vm.real(), **functions)
    refuses(TypeError, "add: operand 2 has dtype", model.log_density, [0.5])


def test_what_a_function_assigns_stays_its_own():
    def log_density(x):
        x[0] = 5.0
        return np.sum(x**2)

    q = np.array([1.0, 2.0])
    model = vm.Model(log_density, x=vm.real(2))
    assert model.log_density(q) == 29.0
    equal(model.log_density_gradient(q)[1], [0.0, 4.0])
    equal(q, [1.0, 2.0])


@pytest.mark.parametrize("which", ["transformed_parameters", "generated_quantities"])
def test_quantities_must_be_a_dict(which):
    model = vm.Model(lambda mu: mu, mu=vm.real(), **{which: lambda mu: mu})
    message = rf"Model: {which} returned a float64, but must return a dict of named values!"
    refuses(TypeError, message, model.param_names, include_tp=True, include_gq=True)


@pytest.mark.parametrize("which", ["transformed_parameters", "generated_quantities"])
@pytest.mark.parametrize(
    ("name", "kind"), [("mu", "a parameter or transformed parameter"), ("y", "data")]
)
def test_quantities_must_have_names_of_their_own(which, name, kind):
    functions = {which: lambda mu: {"z": 1.0, name: mu + 1.0}}
    model = vm.Model(lambda mu, y: mu * y, mu=vm.real(), data={"y": 2.0}, **functions)
    where = f"Model: {which} returned {name!r}, which is {kind}"
    message = f"{where}, but must return values of other names!"
    refuses(TypeError, message, lambda: model.param_names(include_tp=True, include_gq=True))
    if which == "transformed_parameters":
        refuses(TypeError, message, lambda: model.log_density([0.5]))


@pytest.mark.parametrize(("log_density", "error"), [
    (lambda nu: -0.5 * nu**2, TypeError),
    (lambda nu: vm.normal_lpdf(nu[0], 0, 1), KeyError),
    (lambda nu: nu.sum(), AttributeError),
    (lambda nu: np.ones((2, 2)) @ nu, ValueError),
    (lambda nu: np.sum(nu), TypeError),  # the dict itself
])  # fmt: skip
@pytest.mark.parametrize("method", ["log_density", "log_density_gradient"])
def test_function_that_gets_a_dict_without_expecting_it(log_density, error, method):
    model = vm.Model(log_density, mu=vm.real(), tau=vm.real(), data={"y": 1.0})
    with pytest.raises(error) as failure:
        getattr(model, method)([0.1, 0.2])
    takes = "the log density takes 'nu', none of y, mu, tau"
    assert failure.value.__notes__ == [f"{takes}: it was called with a dict of them all"]


def test_quantities_that_get_a_dict_without_expecting_it():
    model = vm.Model(lambda mu: -mu * mu, mu=vm.real(), generated_quantities=lambda nu: nu)
    with pytest.raises(TypeError, match="returned 'mu'") as failure:
        model.constrain([0.1], include_gq=True)
    takes = "generated_quantities takes 'nu', none of mu"
    assert failure.value.__notes__ == [f"{takes}: it was called with a dict of them all"]


def test_refusals_have_no_note():
    with pytest.raises(vm.DomainError) as refusal:
        vm.Model(lambda p: vm.normal_lpdf(0.0, p["mu"], -1.0), mu=vm.real()).log_density([0.1])
    assert not hasattr(refusal.value, "__notes__")
