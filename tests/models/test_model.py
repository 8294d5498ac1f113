"""Model: the log density of the unconstrained vector, its derivatives, names, and the calling of the user's functions."""

from __future__ import annotations

import math
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import psutil
import pytest

import varmat as vm
from varmat.testing import expect_ad

Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def normal(x, mean, scale):
    return np.sum(-0.5 * ((x - mean) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi))


def eight_schools(theta_trans, mu, tau):
    cauchy = -np.log(5 * np.pi) - np.log1p((tau / 5) ** 2)
    return normal(Y, mu + tau * theta_trans, SIGMA) + normal(theta_trans, 0.0, 1.0) + normal(mu, 0.0, 5.0) + cauchy


PARAMETERS = {"theta_trans": vm.real(8), "mu": vm.real(), "tau": vm.positive()}
SCHOOLS = vm.Model(eight_schools, **PARAMETERS)
Q = np.append(np.linspace(-0.5, 0.7, 8), [1.5, 0.8])


def by_hand(q, jacobian):
    """Log density, gradient and Hessian of eight schools."""
    theta, mu, tau = q[:8], q[8], np.exp(q[9])
    r, w = Y - mu - tau * theta, 1 / SIGMA**2
    value = normal(r, 0.0, SIGMA) + normal(theta, 0.0, 1.0) + normal(mu, 0.0, 5.0)
    value += -np.log(5 * np.pi) - np.log1p((tau / 5) ** 2) + jacobian * q[9]
    by_tau = np.sum(w * r * theta) - 2 * tau / (25 + tau**2)
    gradient = np.concatenate([tau * w * r - theta, [np.sum(w * r) - mu / 25, tau * by_tau + jacobian]])
    hessian = np.diag(np.concatenate([-(tau**2) * w - 1, [-np.sum(w) - 1 / 25, 0.0]]))
    hessian[:8, 8] = -tau * w
    hessian[:8, 9] = tau * (w * r - tau * w * theta)
    hessian[8, 9] = -tau * np.sum(w * theta)
    hessian[9, 9] = tau * by_tau - tau**2 * (np.sum(w * theta**2) + 2 * (25 - tau**2) / (25 + tau**2) ** 2)
    hessian += np.triu(hessian, 1).T
    return value, gradient, hessian


@pytest.mark.parametrize("jacobian", [True, False])
def test_derivatives_by_hand(jacobian):
    value, gradient, hessian = by_hand(Q, jacobian)
    found = SCHOOLS.log_density_hessian(Q, jacobian=jacobian)
    assert type(found[0]) is float
    for mine, exact in zip(found, (value, gradient, hessian), strict=True):
        np.testing.assert_allclose(mine, exact, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(SCHOOLS.log_density(Q, jacobian=jacobian), value, rtol=1e-14)
    for mine, exact in zip(SCHOOLS.log_density_gradient(Q, jacobian=jacobian), (value, gradient), strict=True):
        np.testing.assert_allclose(mine, exact, rtol=1e-13, atol=1e-14)
    v = np.cos(np.arange(10.0))
    found = SCHOOLS.log_density_hessian_vector_product(Q, v, jacobian=jacobian)
    np.testing.assert_allclose(found[0], value, rtol=1e-14)
    np.testing.assert_allclose(found[1], hessian @ v, rtol=1e-12)


def test_all_parameters_together():
    parameters = {
        "a": vm.real(2, 3), "b": vm.ordered(3), "c": vm.simplex(3), "d": vm.cholesky_corr(3), "e": vm.cov_matrix(2),
        "f": vm.interval(0, 1, 2), "g": vm.upper(lambda f: f[0]), "h": vm.unit_vector(2), "i": vm.sum_to_zero(3),
        "j": vm.lower(1, 2, 2),
    }  # fmt: skip

    def log_density(**values):
        return sum(np.sum(np.sin(value) * (i + 1)) for i, value in enumerate(values.values()))

    model = vm.Model(log_density, parameters)
    q = model.initial_point(seed=3)
    assert model.check_gradient(q)
    v = np.cos(np.arange(q.size))
    product = model.log_density_hessian_vector_product(q, v)[1]
    np.testing.assert_allclose(model.log_density_hessian(q)[2] @ v, product, rtol=1e-10)
    slopes = [model.log_density_gradient(q + step * v)[1] for step in (-1e-5, 1e-5)]
    np.testing.assert_allclose(product, (slopes[1] - slopes[0]) / 2e-5, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.param_unconstrain(model.constrain(q))[:20], q[:20], rtol=1e-9)
    assert len(model.param_unc_names()) == model.param_unc_num() == q.size
    assert len(model.param_names()) == model.param_num() == model.param_constrain(q).size


# --- names, numbers, values ---


def test_names_and_numbers():
    model = vm.Model(lambda **_: 0.0, s=vm.simplex(3), L=vm.cholesky_corr(2))
    assert model.param_names() == ["s.1", "s.2", "s.3", "L.1.1", "L.1.2", "L.2.1", "L.2.2"]
    assert model.param_unc_names() == ["s.1", "s.2", "L.1"]
    assert (model.param_num(), model.param_unc_num()) == (7, 3)
    assert repr(model) == "Model(s=Simplex(3,), L=CholeskyFactorCorr(2, 2))"


def test_a_model_without_parameters():
    model = vm.Model(lambda: 3.0)
    assert (model.param_names(), model.param_num(), model.param_unc_num()) == ([], 0, 0)
    value, gradient = model.log_density_gradient(np.empty(0))
    assert (value, gradient.shape, model.param_constrain(np.empty(0)).shape) == (3.0, (0,), (0,))


def model_with_quantities():
    def log_density(theta, mu, y):
        return normal(y, theta, 1.0) + normal(mu, 0.0, 1.0)

    def quantities(theta, rng):
        return {"replicate": rng.normal(theta), "largest": np.max(theta), "many": theta.max() > 0}

    return vm.Model(
        log_density, z=vm.real(3), mu=vm.real(), tau=vm.positive(), data={"y": Y[:3]},
        transformed_parameters=lambda z, mu, tau: {"theta": mu + tau * z}, generated_quantities=quantities,
    )  # fmt: skip


def test_transformed_parameters_and_generated_quantities():
    model = model_with_quantities()
    q = np.array([0.1, -0.2, 0.3, 1.0, np.log(2.0)])
    theta = 1.0 + 2.0 * q[:3]
    value, gradient = model.log_density_gradient(q)
    np.testing.assert_allclose(value, normal(Y[:3], theta, 1.0) + normal(1.0, 0.0, 1.0) + np.log(2.0), rtol=1e-14)
    np.testing.assert_allclose(gradient[:3], 2.0 * (Y[:3] - theta), rtol=1e-14)
    assert model.param_num() == 5
    assert model.param_names(include_tp=True)[5:] == ["theta.1", "theta.2", "theta.3"]
    names = ["replicate.1", "replicate.2", "replicate.3", "largest", "many"]
    assert model.param_names(include_gq=True)[5:] == names
    assert model.param_names(True, True)[8:] == names
    assert model.param_num(True, True) == 13
    values = model.constrain(q, include_tp=True, include_gq=True, rng=np.random.default_rng(5))
    np.testing.assert_allclose(values["theta"], theta)
    np.testing.assert_array_equal(values["replicate"], np.random.default_rng(5).normal(values["theta"]))
    assert (values["largest"], values["many"]) == (values["theta"].max(), 1.0)
    flat = model.param_constrain(q, include_tp=True, include_gq=True, rng=np.random.default_rng(5))
    np.testing.assert_array_equal(flat, np.concatenate([np.ravel(value) for value in values.values()]))
    assert model.constrain(q).keys() == {"z", "mu", "tau"}
    assert model.constrain(q, include_gq=True).keys() == {"z", "mu", "tau", "replicate", "largest", "many"}


def test_names_do_not_call_what_is_not_asked_for():
    calls = []

    def transformed(x):
        calls.append("transformed")
        return {"y": x}

    def quantities(x):
        calls.append("generated")
        return {"z": x}

    model = vm.Model(lambda x: -x * x, x=vm.real(), transformed_parameters=transformed, generated_quantities=quantities)
    assert (model.param_names(include_tp=True), model.param_num(include_tp=True)) == (["x", "y"], 2)
    assert calls == ["transformed"] * 2
    assert model.shapes(include_gq=True) == {"x": (), "z": ()}
    assert calls[2:] == ["transformed", "generated"]


def test_from_values_to_the_vector():
    values = {"theta_trans": list(range(8)), "mu": 2, "tau": 3.0}
    expected = np.append(np.arange(8.0), [2.0, np.log(3.0)])
    np.testing.assert_array_equal(SCHOOLS.param_unconstrain(values), expected)
    np.testing.assert_array_equal(SCHOOLS.param_unconstrain([*range(8), 2, 3]), expected)
    np.testing.assert_array_equal(SCHOOLS.initial_point(values), expected)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"mu": 1.0, "tau": 1.0}, TypeError, r"the dict has no theta_trans, but must have the parameters theta_trans, mu"),
        ({"theta_trans": Y, "mu": 1.0, "tau": 1.0, "x": 1}, TypeError, r"param_unconstrain: the dict has x, but must have"),
        (
            {"theta_trans": Y[:3], "mu": 1.0, "tau": 1.0},
            vm.ShapeError,
            r"theta_trans has shape \(3,\), but must have shape \(8,\)",
        ),
        (
            {"theta_trans": Y, "mu": 1.0, "tau": -1.0},
            vm.DomainError,
            r"tau: positive_free: .* is -1.0, but must be positive!",
        ),
        ({"theta_trans": Y, "mu": "a", "tau": 1.0}, TypeError, r"param_unconstrain: mu has dtype"),
        (np.ones(3), vm.ShapeError, r"param_unconstrain: values has shape \(3,\), but must have shape \(10,\)!"),
    ],
)
def test_values_are_refused(values, error, message):
    with pytest.raises(error, match=message):
        SCHOOLS.param_unconstrain(values)


# --- how functions are called ---


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
        np.testing.assert_allclose(model.log_density(q), expected, rtol=1e-15)
        np.testing.assert_allclose(model.log_density_gradient(q)[0], expected, rtol=1e-15)


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
        assert [model.log_density(np.zeros(1), propto=propto) for propto in (True, False)] == [1.0, 2.0]
        assert model.log_density_gradient(np.zeros(1))[0] == 1.0
    for recorded in (False, True):
        model = vm.Model(
            lambda mu, y, propto: vm.normal_lpdf(y, mu, 2.0, propto=propto), mu=vm.real(), data={"y": Y}, recorded=recorded
        )
        gradients = [model.log_density_gradient(np.ones(1), propto=propto) for propto in (True, False)]
        np.testing.assert_allclose(gradients[0][0] - gradients[1][0], 8 * np.log(2 * np.sqrt(2 * np.pi)), rtol=1e-13)
        for _, gradient in gradients:
            np.testing.assert_allclose(gradient, np.sum(Y - 1.0) / 4, rtol=1e-14)


def test_without_constants_and_with_the_jacobian_unless_asked_otherwise():
    model = vm.Model(lambda tau, propto: 0.0 if propto else 100.0, tau=vm.positive())
    q, v = np.array([0.5]), np.array([1.0])
    assert model.log_density(q) == model.log_density_gradient(q)[0] == model.log_density_hessian(q)[0] == 0.5
    assert model.log_density_hessian_vector_product(q, v)[0] == 0.5
    assert model.check_gradient(q).value == 0.5
    assert model.constrain(q).keys() == {"tau"}


@pytest.mark.parametrize("density", [
    lambda mu, y, propto: vm.normal_lpdf(y, mu, 2.0, propto=propto), lambda mu, y: vm.normal_lupdf(y, mu, 2.0),
])  # fmt: skip
@pytest.mark.parametrize("propto", [True, False])
def test_the_value_alone_keeps_what_depends_on_parameters(density, propto):
    model = vm.Model(density, mu=vm.real(), data={"y": Y})
    q = np.array([0.3])
    value = model.log_density_gradient(q, propto)[0]
    assert model.log_density(q, propto) == value
    assert model.log_density_hessian_vector_product(q, np.ones(1), propto)[0] == value
    assert model.check_gradient(q)


def test_parameters_that_are_found_missing_when_the_transformed_ones_are_known():
    model = vm.Model(lambda x, nu: -x * nu, x=vm.real(), transformed_parameters=lambda x: {"y": x})
    for method in (model.log_density, model.log_density_gradient):
        with pytest.raises(TypeError, match="Model: the log density takes 'nu', but must take parameters and data: x, y!"):
            method([0.5])
    # Another error is what it is.
    with pytest.raises(TypeError, match="add: operand 2 has dtype"):
        vm.Model(lambda x, y: x + str(y), x=vm.real(), transformed_parameters=lambda x: {"y": x}).log_density([0.5])


def test_what_a_function_assigns_stays_its_own():
    def log_density(x):
        x[0] = 5.0
        return np.sum(x**2)

    q = np.array([1.0, 2.0])
    model = vm.Model(log_density, x=vm.real(2))
    assert model.log_density(q) == 29.0
    np.testing.assert_array_equal(model.log_density_gradient(q)[1], [0.0, 4.0])
    np.testing.assert_array_equal(q, [1.0, 2.0])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: vm.Model(3.0, mu=vm.real()), TypeError, r"Model: the log density is a float, but must be a function!"),
        (lambda: vm.Model(lambda mu: mu, vm.real()), TypeError, r"Model: the second argument is a Real, but must be a dict; param"),
        (lambda: vm.Model(lambda mu: mu, mu=vm.real(), data=[1]), TypeError, r"Model: data is a list, but must be a dict; param"),
        (lambda: vm.Model(lambda mu: mu, mu=1.0), TypeError, r"Model: mu is a float, but must be a parameter such as varmat.re"),
        (lambda: vm.Model(lambda mu, y: mu, mu=vm.real(), y=[1.0]), TypeError, r"Model: y is a list, .*: data go into data="),
        (lambda: vm.Model(lambda mu: mu, mu=vm.real(), data={"mu": 1}), TypeError, r"Model: mu is both a parameter and data"),
        (
            lambda: vm.Model(lambda mu, nu: mu, mu=vm.real(), data={"y": 1}), TypeError,
            r"Model: the log density takes 'nu', but must take parameters and data: mu, y!",
        ),
        (lambda: vm.Model(lambda *, nu: nu, mu=vm.real()), TypeError, r"Model: the log density takes 'nu', but must take .*: mu!"),
        (lambda: vm.Model(lambda mu, nu: mu), TypeError, r"Model: the log density takes 'mu', but must take .*: there are none!"),
        (
            lambda: vm.Model(lambda mu: mu, mu=vm.real(), generated_quantities=lambda mu, nu: {}), TypeError,
            r"Model: generated_quantities takes 'nu', but must take parameters and data: mu!",
        ),
        (lambda: vm.Model(lambda mu: mu, mu=vm.real(), dims=["k"]), TypeError, r"Model: dims is a list, but must be"),
        (lambda: vm.Model(lambda mu: mu, mu=vm.real(), coords=["k"]), TypeError, r"Model: coords is a list, but must be"),
        (lambda: vm.Model(lambda p: p[1], {1: vm.real()}), TypeError, r"Model: the name of a parameter is 1, but must be a str"),
        (lambda: vm.Model(lambda mu: mu, {"mu": vm.real(3)}, mu=vm.real()), TypeError, r"Model: mu is declared twice"),
        (
            lambda: vm.Model(lambda school: school, school=vm.real(8), dims={"school": ["school"]}), TypeError,
            r"Model: school has the name of a dimension of school, but must have one of its own!",
        ),
        (
            lambda: vm.Model(lambda th: th, school=vm.real(), th=vm.real(8), dims={"th": ["school"]}), TypeError,
            r"Model: school has the name of a dimension of th, but must have one of its own!",
        ),
        (
            lambda: vm.Model(lambda mu: mu, mu=vm.real(), dims={"later": "mu"}), TypeError,
            r"Model: mu has the name of a dimension of later, but must have one of its own!",
        ),
        (
            lambda: vm.Model(lambda x: x, x=vm.real(8), x_dim_0=vm.real()), TypeError,
            r"Model: x_dim_0 has the name of a dimension of x, but must have one of its own!",
        ),
        (
            lambda: vm.Model(lambda draw: draw, draw=vm.real()), TypeError,
            r"Model: draw has the name of a dimension of all draws, but must have one of its own!",
        ),
        (
            lambda: vm.Model(lambda x: x, x=vm.real(8), dims={"x": ["chain"]}), TypeError,
            r"Model: dims has 'chain', but must have names other than chain and draw, which all draws have!",
        ),
        (
            lambda: vm.Model(lambda x: x, x=vm.real(8), coords={"draw": range(3)}), TypeError,
            r"Model: coords has 'draw', but must have names other than chain and draw, which all draws have!",
        ),
    ],
)  # fmt: skip
def test_models_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda mu: None, TypeError, r"the log density returned None \(is a return statement missing\?\)"),
        (lambda mu: mu * np.ones(3), vm.ShapeError, r"the result has shape \(3,\), but must be a scalar"),
        (lambda mu: vm.normal_lpdf(0.0, mu, -1.0), vm.DomainError, r"normal_lpdf: Scale parameter is -1.0"),
        (lambda mu: {"a": mu}, TypeError, r"the log density returned a dict, but must return a scalar!"),
    ],
)
@pytest.mark.parametrize("method", ["log_density", "log_density_gradient", "log_density_hessian"])
def test_results_are_refused(f, error, message, method):
    for parameter in (vm.real(), vm.lower(-1.0)):  # with and without a log-Jacobian
        with pytest.raises(error, match=message):
            getattr(vm.Model(f, mu=parameter), method)(np.zeros(1))


@pytest.mark.parametrize("method", ["log_density", "log_density_gradient", "log_density_hessian", "constrain"])
def test_points_are_refused(method):
    with pytest.raises(vm.ShapeError, match=rf"{method}: q has shape \(3,\), but must have shape \(10,\)!"):
        getattr(SCHOOLS, method)(np.zeros(3))
    with pytest.raises(TypeError, match=rf"{method}: q has dtype"):
        getattr(SCHOOLS, method)(np.zeros(10, complex))


def test_vectors_are_refused():
    product = SCHOOLS.log_density_hessian_vector_product
    with pytest.raises(TypeError, match=r"^log_density_hessian_vector_product: q has dtype <U3, but must be real numbers"):
        product("abc", Q)
    with pytest.raises(TypeError, match=r"^log_density_hessian_vector_product: v has dtype <U3, but must be real numbers"):
        product(Q, "abc")
    with pytest.raises(vm.ShapeError, match=r"^log_density_hessian_vector_product: v has shape \(3,\), but must have shape"):
        product(Q, np.zeros(3))


@pytest.mark.parametrize("tau", [1e-200, 1e-310, 1e200])
def test_plain_numbers_overflow_as_variables_do(tau):
    y = np.array([1.0, 2.0], dtype=np.float32) / 3
    model = vm.Model(
        lambda mu, tau, precision, x: -0.5 * np.sum((y - mu) ** 2) * precision + x,
        mu=vm.real(),
        tau=vm.positive(),
        x=vm.lower(lambda tau: -1.0 / tau**2),
        transformed_parameters=lambda tau: {"precision": 1.0 / tau**2},
    )
    q = np.array([1.0, np.log(tau), 0.0])
    with np.errstate(all="ignore"):
        np.testing.assert_equal(model.log_density(q), model.log_density_gradient(q)[0])
        values = model.constrain(q, include_tp=True)
    assert values["precision"] == (0.0 if tau > 1.0 else np.inf)
    assert type(values["mu"]) is float
    assert model.log_density([0.1, 0.2, 0.3]) == model.log_density_gradient([0.1, 0.2, 0.3])[0]


@pytest.mark.parametrize("which", ["transformed_parameters", "generated_quantities"])
def test_quantities_must_be_a_dict(which):
    model = vm.Model(lambda mu: mu, mu=vm.real(), **{which: lambda mu: mu})
    with pytest.raises(TypeError, match=rf"Model: {which} returned a float64, but must return a dict of named values!"):
        model.param_names(include_tp=True, include_gq=True)


@pytest.mark.parametrize("which", ["transformed_parameters", "generated_quantities"])
@pytest.mark.parametrize(("name", "kind"), [("mu", "a parameter or transformed parameter"), ("y", "data")])
def test_quantities_must_have_names_of_their_own(which, name, kind):
    model = vm.Model(lambda mu, y: mu * y, mu=vm.real(), data={"y": 2.0}, **{which: lambda mu: {"z": 1.0, name: mu + 1.0}})
    message = rf"Model: {which} returned {name!r}, which is {kind}, but must return values of other names!"
    with pytest.raises(TypeError, match=message):
        model.param_names(include_tp=True, include_gq=True)
    if which == "transformed_parameters":
        with pytest.raises(TypeError, match=message):
            model.log_density([0.5])


@pytest.mark.parametrize(
    ("log_density", "error"),
    [
        (lambda nu: -0.5 * nu**2, TypeError),
        (lambda nu: vm.normal_lpdf(nu[0], 0, 1), KeyError),
        (lambda nu: nu.sum(), AttributeError),
        (lambda nu: np.ones((2, 2)) @ nu, ValueError),
        (lambda nu: np.sum(nu), TypeError),  # the dict itself
    ],
)
@pytest.mark.parametrize("method", ["log_density", "log_density_gradient"])
def test_function_that_gets_a_dict_without_expecting_it(log_density, error, method):
    with pytest.raises(error) as failure:
        getattr(vm.Model(log_density, mu=vm.real(), tau=vm.real(), data={"y": 1.0}), method)([0.1, 0.2])
    (note,) = failure.value.__notes__
    assert note == "the log density takes 'nu', none of y, mu, tau: it was called with a dict of them all"


def test_quantities_that_get_a_dict_without_expecting_it():
    model = vm.Model(lambda mu: -mu * mu, mu=vm.real(), generated_quantities=lambda nu: nu)
    with pytest.raises(TypeError, match="returned 'mu'") as failure:
        model.constrain([0.1], include_gq=True)
    (note,) = failure.value.__notes__
    assert note == "generated_quantities takes 'nu', none of mu: it was called with a dict of them all"


def test_refusals_have_no_note():
    with pytest.raises(vm.DomainError) as refusal:
        vm.Model(lambda p: vm.normal_lpdf(0.0, p["mu"], -1.0), mu=vm.real()).log_density([0.1])
    assert not hasattr(refusal.value, "__notes__")


def test_points_may_be_anything_like_an_array():
    expected = SCHOOLS.log_density_gradient(Q)
    strided = np.repeat(Q, 2)[::2]
    for q in (Q.tolist(), strided, Q.astype(object).astype(float)):
        value, gradient = SCHOOLS.log_density_gradient(q)
        assert value == expected[0] == SCHOOLS.log_density(q)
        np.testing.assert_array_equal(gradient, expected[1])


def test_initial_point_is_one_that_the_model_accepts():
    def log_density(x):
        if vm.value(x)[0] < 1.0:
            raise vm.DomainError("small")
        return -np.sum(x)

    model = vm.Model(log_density, x=vm.real(2))
    q = model.initial_point(seed=2)
    assert q[0] >= 1.0
    np.testing.assert_array_equal(model.initial_point(seed=2), q)
    with pytest.raises(KeyError):  # at once, although it would be accepted elsewhere
        vm.Model(lambda x: x if vm.value(x) > 1.0 else {}["small"], x=vm.real()).initial_point(seed=2)
    with pytest.raises(vm.ShapeError, match=r"initial_point: q has shape \(2,\), but must have shape \(10,\)!"):
        SCHOOLS.initial_point(vm.Model(lambda x: -np.sum(x**2), x=vm.real(2)).optimize(seed=1))
    never = vm.Model(lambda x: -np.inf * vm.value(x) ** 2, x=vm.real())
    with pytest.raises(vm.DomainError, match=r"at 100 random points .* was not finite; give a start .*outside the support"):
        never.initial_point(seed=1)


# --- what samplers ask of it ---


def test_threads():
    points = np.random.default_rng(0).normal(size=(8, 10))
    expected = [by_hand(q, True)[:2] for q in points]
    barrier = threading.Barrier(8)

    def chain(i):
        barrier.wait()
        return [SCHOOLS.log_density_gradient(points[i]) for _ in range(50)]

    with ThreadPoolExecutor(8) as pool:
        for found, (value, gradient) in zip(pool.map(chain, range(8)), expected, strict=True):
            for mine in found:
                np.testing.assert_allclose(mine[0], value, rtol=1e-13)
                np.testing.assert_allclose(mine[1], gradient, rtol=1e-12, atol=1e-13)


def test_memory_stays_flat():
    model = vm.Model(lambda x: -np.sum(np.exp(x) * x), x=vm.ordered(2000))
    q = np.full(2000, -5.0)
    process = psutil.Process(os.getpid())
    for _ in range(20):
        model.log_density_gradient(q)
    before = process.memory_info().rss
    for _ in range(300):
        model.log_density_gradient(q)
    assert process.memory_info().rss - before < 2e6


def test_pickles():
    model = pickle.loads(pickle.dumps(SCHOOLS))
    np.testing.assert_array_equal(model.log_density_gradient(Q)[1], SCHOOLS.log_density_gradient(Q)[1])


def test_check_gradient_names_what_differs():
    @vm.operation()
    def wrong(x):
        return np.sum(x**2)

    @wrong.reverse
    def wrong_reverse(g, r, x):
        return 2 * x * g * np.array([1.0, 1.0, 1.1])

    check = vm.Model(lambda mu, x: wrong(x) + mu, mu=vm.real(), x=vm.real(3)).check_gradient([0.5, 1.0, 2.0, 3.0])
    assert not check
    assert [line.split()[0] for line in str(check).splitlines() if line.endswith("<- differs")] == ["x.3"]
    assert "1 of 4 derivatives differ" in str(check)
    check = SCHOOLS.check_gradient()
    assert check.passed
    assert np.max(check.errors) < 1e-9
    assert "the gradient agrees with finite differences" in str(check)


# --- what is recorded ---


def entries_of(function: Any, q: np.ndarray) -> list[str]:
    with vm.nested() as tape:
        function(vm.var(q), False, True)
        return [rule.name for rule, *_ in tape]


def test_simple_parameters_are_one_entry_and_terms_one_sum() -> None:
    def log_density(a, b, c, d, e, f):
        return [vm.std_normal_lpdf(a), -b, np.log(c) * 2.0, np.sum(np.log(d - 1.0)), f - 3.0, 0.5 * e, 2.5]

    model = vm.Model(
        log_density, a=vm.real(), b=vm.positive(), c=vm.lower(0.5), d=vm.lower(1.0, 2, 2), e=vm.upper(2.0), f=vm.real(3)
    )
    q = np.linspace(-1.3, 1.7, 11)
    names = entries_of(model._target, q)
    assert names.count("parameters") == 1
    assert names.count("sum_of_terms") == 1
    assert not {"exp", "getitem"} & {*names}
    # A gradient needs no sum.
    assert entries_of(model._terms, q) == names[:-1]
    expect_ad(lambda x: model._target(x, False, True), q)
    expect_ad(lambda x: model._target(x, False, False), q)
    small = vm.Model(lambda b: -b, b=vm.positive())
    assert entries_of(small._terms, q[:1]) == ["parameters", "negative"]
    assert entries_of(small._target, q[:1]) == ["parameters", "negative", "sum_of_terms"]
    assert entries_of(vm.Model(lambda b: -b, b=vm.real(2))._target, q[:2]) == ["negative"]
    # The fused way is that of variables; plain arrays go from one transform to the other.
    assert model.log_density_gradient(q)[0] == pytest.approx(model.log_density(q), rel=1e-14)


# Parameters for which there is one operation, of which `used` is any function.
MAPPED = {
    "interval": vm.lower_upper(-1.0, 2.5),
    "intervals": vm.lower_upper(0.0, 1.0, 2, 3),
    "ordered": vm.ordered(4),
    "rows of ordered": vm.ordered(3, 2),
    "positive_ordered": vm.positive_ordered(3),
    "simplex": vm.simplex(4),
    "simplexes": vm.simplex(3, 2),
    "unit_vector": vm.unit_vector(3),
}
OTHERS = {
    "positive": vm.positive(2, 2),
    "lower": vm.lower(-1.5),
    "upper": vm.upper(0.0, 3),
    "no lower bound": vm.lower(-np.inf, 2),
    "no upper bound": vm.upper(np.inf),
    "half an interval": vm.lower_upper(-np.inf, 2.0),
    "bounds of their own": vm.lower([0.0, 1.0], 2),
    "nothing": vm.positive(0),
    "simplex of one": vm.simplex(1),
    "offset_multiplier": vm.offset_multiplier(1.0, 2.0),
    "cholesky_corr": vm.cholesky_corr(3),
}


def used(x: Any) -> Any:
    return np.sum(np.sin(np.arange(1.0, 1.0 + np.size(x)).reshape(np.shape(x)) * x))


def model_around(transform: Any) -> tuple[vm.Model, np.ndarray]:
    """A model in which a parameter stands between others, and a point."""
    model = vm.Model(lambda a, x, b: (used(x) * b, vm.normal_lpdf(a, 0, 2)), a=vm.real(2), x=transform, b=vm.positive())
    return model, np.random.default_rng(7).normal(size=model.param_unc_num())


@pytest.mark.parametrize("name", MAPPED)
def test_parameters_made_by_an_operation_are_part_of_the_one_entry(name: str) -> None:
    model, q = model_around(MAPPED[name])
    names = entries_of(model._terms, q)
    assert names[0] == "parameters"
    assert not {MAPPED[name].constraint[0].name, "getitem"} & {*names}


@pytest.mark.parametrize("jacobian", [True, False])
@pytest.mark.parametrize("name", MAPPED | OTHERS)
def test_parameters_are_what_their_transforms_make(name: str, jacobian: bool) -> None:
    transform = (MAPPED | OTHERS)[name]
    model, q = model_around(transform)
    expect_ad(lambda u: model._target(u, False, jacobian), q)

    def apart(u: Any) -> Any:
        x, term = transform.constrain_with_log_jacobian(u[2:-1] if transform.unconstrained_shape else u[2])
        density = used(x) * np.exp(u[-1]) + vm.normal_lpdf(u[:2], 0, 2)
        return density + term + u[-1] if jacobian else density

    value, gradient = vm.value_and_grad(apart)(q)
    recorded = vm.Model(model._density.function, model._layout.parameters, recorded=True)
    for each in (model, recorded):
        each.log_density_gradient(q + 0.1, jacobian=jacobian)
        found = each.log_density_gradient(q, jacobian=jacobian)
        assert found[0] == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(found[1], gradient, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(model.log_density_hessian(q, jacobian=jacobian)[2], vm.hessian(apart, q), rtol=1e-10, atol=1e-11)


def test_parameters_that_nobody_uses_have_their_jacobian() -> None:
    model = vm.Model(lambda a: -a * a, a=vm.real(), x=vm.simplex(3), y=vm.lower_upper(0, 1))
    q = np.array([0.5, 0.3, -0.2, 0.7])

    def jacobians(u: Any) -> Any:
        return vm.simplex_constrain(u[1:3], jacobian=True)[1] + vm.lub_constrain(u[3], 0.0, 1.0, jacobian=True)[1] - u[0] ** 2

    for each in (model, vm.Model(lambda a: -a * a, model._layout.parameters, recorded=True)):
        value, gradient = each.log_density_gradient(q)
        assert value == pytest.approx(vm.value_and_grad(jacobians)(q)[0], rel=1e-14)
        np.testing.assert_allclose(gradient, vm.gradient(jacobians, q), rtol=1e-14)
        np.testing.assert_array_equal(each.log_density_gradient(q, jacobian=False)[1], [-1.0, 0.0, 0.0, 0.0])
    for recorded in (False, True):
        value, gradient = vm.Model(lambda a: -a * a, a=vm.real(), b=vm.real(), recorded=recorded).log_density_gradient(q[:2])
        assert (value, *gradient) == (-0.25, -1.0, 0.0)
    # Far out they are infinite, which nobody sees either.
    parameters = {"a": vm.real(), "x": vm.positive(), "y": vm.upper(1.0, 2)}
    for each in (vm.Model(lambda a: -a * a, parameters, recorded=recorded) for recorded in (False, True)):
        for jacobian in (True, False):
            with np.errstate(over="ignore"):
                gradient = each.log_density_gradient(np.array([0.5, 800.0, 800.0, 0.0]), jacobian=jacobian)[1]
            np.testing.assert_array_equal(gradient, [-1.0, *[float(jacobian)] * 3])
    ordered = vm.Model(lambda a: -a * a, a=vm.real(), x=vm.ordered(2))
    with np.errstate(over="ignore"):
        gradient = ordered.log_density_gradient(np.array([0.5, 0.0, 800.0]), jacobian=False)[1]
    np.testing.assert_array_equal(gradient, [-1.0, 0.0, 0.0])


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("parameter", "grows"),
    [
        (vm.ordered(3), (1, 2)), (vm.positive_ordered(3), (0, 1, 2)), (vm.positive_ordered(3, 1), (0, 1, 2)),
        (vm.cov_matrix(2), (0, 2)), (vm.cholesky_cov(2), (0, 2)),
    ],
)  # fmt: skip
def test_parameters_that_nobody_uses_may_overflow(parameter, grows, recorded):
    model = vm.Model(lambda a: -a * a, a=vm.real(), x=parameter, recorded=recorded)
    near = model.log_density_gradient(np.array([0.5, 0.0, 0.0, 0.0]))[1]
    for k in grows:
        q = np.array([0.5, 0.0, 0.0, 0.0])
        q[1 + k] = 800.0
        with np.errstate(over="ignore", invalid="ignore"):
            value, gradient = model.log_density_gradient(q)
        assert np.isfinite(value)
        np.testing.assert_array_equal(gradient, near)  # the log-Jacobian is linear


TERMS = {
    "numbers": lambda x: (1.5, x[0] * x[1], 2),
    "arrays": lambda x: [x, np.ones(3), np.exp(x[:2]), x.reshape(3, 1)],
    "one twice": lambda x: (y := np.sum(x * x), y, x[1], x[1]),
    "the parameter": lambda x: (x, x),
    "nothing": lambda x: (),
    "constants": lambda x: (np.arange(3.0), -1),
    "an empty array": lambda x: (x[:0], np.sum(x)),
    "one": lambda x: (x,),
}


@pytest.mark.parametrize("parameter", [vm.real(3), vm.positive(3)], ids=["free", "bounded"])
@pytest.mark.parametrize("name", TERMS)
def test_terms_are_summed_without_an_entry(name: str, parameter: Any) -> None:
    model = vm.Model(TERMS[name], x=parameter)
    q = np.array([0.3, -1.2, 0.8])
    value, gradient = model.log_density_gradient(q)
    with vm.nested():
        u = vm.var(q)
        y = model._target(u, True, True)
        if isinstance(y, vm.Var):
            y.grad()
        expected = float(vm.value(y)), np.array(u.adj)
    assert type(value) is float
    assert value == pytest.approx(expected[0], rel=1e-15)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-15)
    assert gradient.base is None
    assert gradient.flags.writeable


def test_terms_from_outside_are_refused() -> None:
    outside = vm.var(2.0)
    for terms in (lambda x: (x, outside), lambda x: [outside], lambda x: (x * outside, x)):
        with pytest.raises(vm.TapeError, match="from outside"):
            vm.Model(terms, x=vm.real()).log_density_gradient(np.zeros(1))
    with pytest.raises(TypeError, match="must be real numbers"):
        vm.Model(lambda x: (x, "a"), x=vm.real()).log_density_gradient(np.zeros(1))
    vm.recover_memory()


def test_simple_parameters_far_out() -> None:
    model = vm.Model(lambda s, t: s + t, s=vm.positive(), t=vm.upper(1.0))
    assert model.log_density(np.array([800.0, 0.0])) == math.inf
    value, gradient = model.log_density_gradient(np.array([800.0, 0.0]), jacobian=False)
    assert value == math.inf
    np.testing.assert_array_equal(gradient, [math.inf, -1.0])
    assert np.isnan(model.log_density_gradient(np.array([np.nan, 0.0]))[0])


def test_a_recorded_model_has_the_same_gradient():
    def log_density(mu, debt, tau, theta, part):
        terms = [vm.normal_lpdf(mu, debt, 5), debt, vm.cauchy_lpdf(tau, 0, 5), vm.normal_lpdf(theta, 0, 1)]
        return (*terms, vm.dirichlet_lpdf(part, np.ones(3)), vm.normal_lpdf(Y, mu + tau * theta, SIGMA))

    runs = []

    def counted(mu, debt, tau, theta, part):
        runs.append(1)
        return log_density(mu, debt, tau, theta, part)

    parameters = {"mu": vm.upper(9.0), "debt": vm.upper(0.0), "tau": vm.positive(), "theta": vm.lower(-9.0, 8)}
    parameters["part"] = vm.simplex(3)
    plain, recorded = vm.Model(log_density, parameters), vm.Model(counted, parameters, recorded=True)
    for seed in range(5):
        q = np.random.default_rng(seed).normal(size=13)
        for jacobian in (True, False):
            value, gradient = recorded.log_density_gradient(q, jacobian=jacobian)
            expected, true = plain.log_density_gradient(q, jacobian=jacobian)
            np.testing.assert_allclose(value, expected, rtol=1e-13)
            np.testing.assert_allclose(gradient, true, rtol=1e-12, atol=1e-14)
    assert len(runs) == 2
    again = pickle.loads(pickle.dumps(vm.Model(eight_schools, **PARAMETERS, recorded=True)))
    np.testing.assert_allclose(again.log_density_gradient(Q)[1], SCHOOLS.log_density_gradient(Q)[1], rtol=1e-12)
    mode = recorded.optimize(seed=1).values
    np.testing.assert_allclose(mode["mu"], plain.optimize(seed=1).values["mu"], rtol=1e-4)


def test_a_recorded_model_of_many_parameters_and_terms():
    parameters = {f"p{i}": vm.positive() for i in range(3000)}
    recorded, q = vm.Model(lambda p: [*p.values()], parameters, recorded=True), np.linspace(-1.0, 1.0, 3000)
    value, gradient = recorded.log_density_gradient(q)
    assert value == pytest.approx(np.sum(np.exp(q)), rel=1e-13)
    np.testing.assert_allclose(gradient, np.exp(q) + 1.0, rtol=1e-14)


def test_a_recorded_model_with_bounds_that_depend_on_parameters():
    parameters = {
        "a": vm.interval(0, 1),
        "b": vm.interval(0, lambda a: 1.0 - a),
        "tau": vm.lower(lambda a: a),
        "theta": vm.offset_multiplier(lambda a: a, lambda tau: tau, 3),
    }

    def log_density(a, b, tau, theta):
        return vm.normal_lpdf(theta, b, tau) - tau + a

    plain, recorded = (vm.Model(log_density, parameters, recorded=choice) for choice in (False, True))
    for seed in range(3):
        q = np.random.default_rng(seed).normal(size=6)
        value, gradient = recorded.log_density_gradient(q)
        expected, true = plain.log_density_gradient(q)
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        np.testing.assert_allclose(gradient, true, rtol=1e-12, atol=1e-14)
