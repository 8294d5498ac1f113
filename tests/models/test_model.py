"""Model: the log density of the unconstrained vector, its derivatives, names, and what samplers ask
of it.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from comparing import close, equal, refuses
from models.schools import SCHOOLS, SIGMA, Q, Y, normal

import varmat as vm
import varmat.distributions as dist


def by_hand(q, jacobian):
    """Log density, gradient and Hessian of eight schools."""
    theta, mu, tau = q[:8], q[8], np.exp(q[9])
    r, w = Y - mu - tau * theta, 1 / SIGMA**2
    value = normal(r, 0.0, SIGMA) + normal(theta, 0.0, 1.0) + normal(mu, 0.0, 5.0)
    value += -np.log(5 * np.pi) - np.log1p((tau / 5) ** 2) + jacobian * q[9]
    by_tau = np.sum(w * r * theta) - 2 * tau / (25 + tau**2)
    gradient = np.concatenate(
        [tau * w * r - theta, [np.sum(w * r) - mu / 25, tau * by_tau + jacobian]]
    )
    hessian = np.diag(np.concatenate([-(tau**2) * w - 1, [-np.sum(w) - 1 / 25, 0.0]]))
    hessian[:8, 8] = -tau * w
    hessian[:8, 9] = tau * (w * r - tau * w * theta)
    hessian[8, 9] = -tau * np.sum(w * theta)
    hessian[9, 9] = tau * by_tau - tau**2 * (
        np.sum(w * theta**2) + 2 * (25 - tau**2) / (25 + tau**2) ** 2
    )
    hessian += np.triu(hessian, 1).T
    return value, gradient, hessian


@pytest.mark.parametrize("jacobian", [True, False])
def test_derivatives_by_hand(jacobian):
    value, gradient, hessian = by_hand(Q, jacobian)
    found = SCHOOLS.log_density_hessian(Q, jacobian=jacobian)
    assert type(found[0]) is float
    close(found, (value, gradient, hessian), 1e-13, 1e-14)
    close(SCHOOLS.log_density(Q, jacobian=jacobian), value, 1e-14)
    close(SCHOOLS.log_density_gradient(Q, jacobian=jacobian), (value, gradient), 1e-13, 1e-14)
    v = np.cos(np.arange(10.0))
    found = SCHOOLS.log_density_hessian_vector_product(Q, v, jacobian=jacobian)
    close(found[0], value, 1e-14)
    close(found[1], hessian @ v, 1e-12)


def test_all_parameters_together():
    parameters = {
        "a": vm.real(2, 3),            "b": vm.ordered(3),            "c": vm.simplex(3),
        "d": vm.cholesky_corr(3),      "e": vm.cov_matrix(2),         "f": vm.interval(0, 1, 2),
        "g": vm.upper(lambda f: f[0]), "h": vm.unit_vector(2),        "i": vm.sum_to_zero(3),
        "j": vm.lower(1, 2, 2),
    }  # fmt: skip

    def log_density(**values):
        return sum(np.sum(np.sin(value) * (i + 1)) for i, value in enumerate(values.values()))

    model = vm.Model(log_density, parameters)
    q = model.initial_point(seed=3)
    assert model.check_gradient(q)
    v = np.cos(np.arange(q.size))
    product = model.log_density_hessian_vector_product(q, v)[1]
    close(model.log_density_hessian(q)[2] @ v, product, 1e-10)
    slopes = [model.log_density_gradient(q + step * v)[1] for step in (-1e-5, 1e-5)]
    close(product, (slopes[1] - slopes[0]) / 2e-5, 1e-5, 1e-6)
    close(model.param_unconstrain(model.constrain(q))[:20], q[:20], 1e-9)
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
        log_density,
        z=vm.real(3),
        mu=vm.real(),
        tau=vm.positive(),
        data={"y": Y[:3]},
        transformed_parameters=lambda z, mu, tau: {"theta": mu + tau * z},
        generated_quantities=quantities,
    )


def test_transformed_parameters_and_generated_quantities():
    model = model_with_quantities()
    q = np.array([0.1, -0.2, 0.3, 1.0, np.log(2.0)])
    theta = 1.0 + 2.0 * q[:3]
    value, gradient = model.log_density_gradient(q)
    close(value, normal(Y[:3], theta, 1.0) + normal(1.0, 0.0, 1.0) + np.log(2.0), 1e-14)
    close(gradient[:3], 2.0 * (Y[:3] - theta), 1e-14)
    assert model.param_num() == 5
    assert model.param_names(include_tp=True)[5:] == ["theta.1", "theta.2", "theta.3"]
    names = ["replicate.1", "replicate.2", "replicate.3", "largest", "many"]
    assert model.param_names(include_gq=True)[5:] == names
    assert model.param_names(True, True)[8:] == names
    assert model.param_num(True, True) == 13
    values = model.constrain(q, include_tp=True, include_gq=True, rng=np.random.default_rng(5))
    close(values["theta"], theta, 1e-7)
    equal(values["replicate"], np.random.default_rng(5).normal(values["theta"]))
    assert (values["largest"], values["many"]) == (values["theta"].max(), 1.0)
    flat = model.param_constrain(q, include_tp=True, include_gq=True, rng=np.random.default_rng(5))
    equal(flat, np.concatenate([np.ravel(value) for value in values.values()]))
    assert model.constrain(q).keys() == {"z", "mu", "tau"}
    found = model.constrain(q, include_gq=True).keys()
    assert found == {"z", "mu", "tau", "replicate", "largest", "many"}


def test_names_do_not_call_what_is_not_asked_for():
    calls = []

    def transformed(x):
        calls.append("transformed")
        return {"y": x}

    def quantities(x):
        calls.append("generated")
        return {"z": x}

    functions = {"transformed_parameters": transformed, "generated_quantities": quantities}
    model = vm.Model(lambda x: -x * x, x=vm.real(), **functions)
    assert (model.param_names(include_tp=True), model.param_num(include_tp=True)) == (["x", "y"], 2)
    assert calls == ["transformed"] * 2
    assert model.shapes(include_gq=True) == {"x": (), "z": ()}
    assert calls[2:] == ["transformed", "generated"]


# --- constants, and what is refused ---


def test_without_constants_and_with_the_jacobian_unless_asked_otherwise():
    model = vm.Model(lambda tau, propto: 0.0 if propto else 100.0, tau=vm.positive())
    q, v = np.array([0.5]), np.array([1.0])
    gradient, hessian = model.log_density_gradient(q), model.log_density_hessian(q)
    product = model.log_density_hessian_vector_product(q, v)
    assert model.log_density(q) == gradient[0] == hessian[0] == product[0] == 0.5
    assert model.check_gradient(q).value == 0.5
    assert model.constrain(q).keys() == {"tau"}


@pytest.mark.parametrize("density", [
    lambda mu, y, propto: vm.normal_lpdf(y, mu, 2.0, propto=propto),
    lambda mu, y: vm.normal_lupdf(y, mu, 2.0),
])  # fmt: skip
@pytest.mark.parametrize("propto", [True, False])
def test_the_value_alone_keeps_what_depends_on_parameters(density, propto):
    model = vm.Model(density, mu=vm.real(), data={"y": Y})
    q = np.array([0.3])
    value = model.log_density_gradient(q, propto)[0]
    assert model.log_density(q, propto) == value
    assert model.log_density_hessian_vector_product(q, np.ones(1), propto)[0] == value
    assert model.check_gradient(q)


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: vm.Model(3.0, mu=vm.real()), TypeError,
     r"Model: the log density is a float, but must be a function!"),
    (lambda: vm.Model(lambda mu: mu, vm.real()), TypeError,
     r"Model: the second argument is a Real, but must be a dict; param"),
    (lambda: vm.Model(lambda mu: mu, mu=vm.real(), data=[1]), TypeError,
     r"Model: data is a list, but must be a dict; param"),
    (lambda: vm.Model(lambda mu: mu, mu=1.0), TypeError,
     r"Model: mu is a float, but must be a parameter such as varmat.re"),
    (lambda: vm.Model(lambda mu, y: mu, mu=vm.real(), y=[1.0]), TypeError,
     r"Model: y is a list, .*: data go into data="),
    (lambda: vm.Model(lambda mu: mu, mu=vm.real(), data={"mu": 1}), TypeError,
     r"Model: mu is both a parameter and data"),
    (lambda: vm.Model(lambda mu, nu: mu, mu=vm.real(), data={"y": 1}), TypeError,
     r"Model: the log density takes 'nu', but must take parameters and data: mu, y!"),
    (lambda: vm.Model(lambda *, nu: nu, mu=vm.real()), TypeError,
     r"Model: the log density takes 'nu', but must take .*: mu!"),
    (lambda: vm.Model(lambda mu, nu: mu), TypeError,
     r"Model: the log density takes 'mu', but must take .*: there are none!"),
    (lambda: vm.Model(lambda mu: mu, mu=vm.real(), generated_quantities=lambda mu, nu: {}),
     TypeError, r"Model: generated_quantities takes 'nu', but must take parameters and data: mu!"),
    (lambda: vm.Model(lambda mu: mu, mu=vm.real(), dims=["k"]), TypeError,
     r"Model: dims is a list, but must be"),
    (lambda: vm.Model(lambda mu: mu, mu=vm.real(), coords=["k"]), TypeError,
     r"Model: coords is a list, but must be"),
    (lambda: vm.Model(lambda p: p[1], {1: vm.real()}), TypeError,
     r"Model: the name of a parameter is 1, but must be a str"),
    (lambda: vm.Model(lambda mu: mu, {"mu": vm.real(3)}, mu=vm.real()), TypeError,
     r"Model: mu is declared twice"),
    (lambda: vm.Model(lambda school: school, school=vm.real(8), dims={"school": ["school"]}),
     TypeError,
     r"Model: school has the name of a dimension of school, but must have a different name!"),
    (lambda: vm.Model(lambda th: th, school=vm.real(), th=vm.real(8), dims={"th": ["school"]}),
     TypeError, (r"Model: school has the name of a dimension of th, but must have a different "
     r"name!")),
    (lambda: vm.Model(lambda mu: mu, mu=vm.real(), dims={"later": "mu"}), TypeError,
     r"Model: mu has the name of a dimension of later, but must have a different name!"),
    (lambda: vm.Model(lambda x: x, x=vm.real(8), x_dim_0=vm.real()), TypeError,
     r"Model: x_dim_0 has the name of a dimension of x, but must have a different name!"),
    (lambda: vm.Model(lambda draw: draw, draw=vm.real()), TypeError,
     r"Model: draw has the name of a dimension of all draws, but must have a different name!"),
    (lambda: vm.Model(lambda x: x, x=vm.real(8), dims={"x": ["chain"]}), TypeError,
     "Model: dims has 'chain', but must have names other than chain and draw, which all draws"),
    (lambda: vm.Model(lambda x: x, x=vm.real(8), coords={"draw": range(3)}), TypeError,
     "Model: coords has 'draw', but must have names other than chain and draw, which all draws"),
])  # fmt: skip
def test_models_are_refused(make, error, message):
    refuses(error, message, make)


@pytest.mark.parametrize(("f", "error", "message"), [
    (lambda mu: None, TypeError,
     r"the log density returned None \(is a return statement missing\?\)"),
    (lambda mu: mu * np.ones(3), vm.ShapeError,
     r"the result has shape \(3,\), but must be a scalar"),
    (lambda mu: vm.normal_lpdf(0.0, mu, -1.0), vm.DomainError,
     r"normal_lpdf: Scale parameter is -1.0"),
])  # fmt: skip
@pytest.mark.parametrize("method", ["log_density", "log_density_gradient", "log_density_hessian"])
def test_results_are_refused(f, error, message, method):
    for parameter in (vm.real(), vm.lower(-1.0)):  # with and without a log-Jacobian
        refuses(error, message, getattr(vm.Model(f, mu=parameter), method), np.zeros(1))


@pytest.mark.parametrize(
    "method", ["log_density", "log_density_gradient", "log_density_hessian", "constrain"]
)
def test_points_are_refused(method):
    call = getattr(SCHOOLS, method)
    message = rf"{method}: q has shape \(3,\), but must have shape \(10,\)!"
    refuses(vm.ShapeError, message, call, np.zeros(3))
    refuses(TypeError, rf"{method}: q has dtype", call, np.zeros(10, complex))


@pytest.mark.parametrize(("q", "v", "error", "message"), [
    ("abc", Q, TypeError, "q has dtype <U3, but must be real numbers"),
    (Q, "abc", TypeError, "v has dtype <U3, but must be real numbers"),
    (Q, np.zeros(3), vm.ShapeError, r"v has shape \(3,\), but must have shape"),
])  # fmt: skip
def test_vectors_are_refused(q, v, error, message):
    message = f"^log_density_hessian_vector_product: {message}"
    refuses(error, message, SCHOOLS.log_density_hessian_vector_product, q, v)


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


def test_points_may_be_anything_like_an_array():
    expected = SCHOOLS.log_density_gradient(Q)
    strided = np.repeat(Q, 2)[::2]
    for q in (Q.tolist(), strided, Q.astype(object).astype(float)):
        value, gradient = SCHOOLS.log_density_gradient(q)
        assert value == expected[0] == SCHOOLS.log_density(q)
        equal(gradient, expected[1])


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
                close(mine[0], value, 1e-13)
                close(mine[1], gradient, 1e-12, 1e-13)


# --- what is recorded ---


def test_a_recorded_model_of_many_parameters_and_terms():
    parameters = {f"p{i}": vm.positive() for i in range(3000)}
    recorded = vm.Model(lambda p: [*p.values()], parameters, recorded=True)
    q = np.linspace(-1.0, 1.0, 3000)
    value, gradient = recorded.log_density_gradient(q)
    close(value, np.sum(np.exp(q)), 1e-13)
    close(gradient, np.exp(q) + 1.0, 1e-14)


@pytest.mark.parametrize("how", ["data", "observed"])
def test_data_that_are_refilled_in_place_are_seen_by_recorded_models(how):
    rng = np.random.default_rng(0)
    x, y, q = rng.normal(size=(50, 2)), rng.normal(size=50), np.array([0.3, 0.4])

    def log_density(b, x, y):
        return -np.mean((y - np.mean(y) ** 2 - x @ b) ** 2)

    def made():
        if how == "data":
            return vm.Model(log_density, b=vm.real(2), data={"x": x, "y": y}, recorded=True)
        observed = vm.observed(y, lambda b, x: dist.Normal(x @ b, 1.0 + np.mean(x**2)))
        return vm.Model(b=vm.real(2), recorded=True, data={"x": x}, y=observed)

    model = made()
    for change in range(3):
        if change:
            y -= np.mean(y) - change
            x[:10] *= 1.5
        fresh, points = made(), np.tile(q, (9, 1))
        expected = fresh.log_density_hessian(q)
        equal(model.log_density_hessian(q), expected)
        close(model.log_density(q), expected[0], 1e-13)
        close(model.log_density_gradient.map(points)[0][0], expected[0], 1e-13)
