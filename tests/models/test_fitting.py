"""optimize and laplace, against modes and curvatures known in closed form."""

import pickle

import numpy as np
import pytest
from comparing import close, equal, refuses
from models import schools
from models.small_models import GAUSSIAN, Y
from scipy import optimize, stats

import varmat as vm
import varmat.distributions as dist
from varmat.models import fitting

METHODS = ["L-BFGS-B", "BFGS", "CG", "Newton-CG", "trust-ncg", "trust-krylov", "trust-exact"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("jacobian", [False, True])
def test_mode_in_closed_form(method, jacobian):
    found = GAUSSIAN.optimize({"mu": 0.0, "sigma": 2.0}, jacobian=jacobian, method=method)
    # The Jacobian adds log(sigma), so there is one residual less.
    sigma = np.sqrt(np.sum((Y - Y.mean()) ** 2) / (Y.size - jacobian))
    assert found.success
    close([found.values["mu"], found.values["sigma"]], [Y.mean(), sigma], 1e-4)
    close(found.value, GAUSSIAN.log_density(found.q, jacobian=jacobian), 1e-14)
    assert ("of the density of q" if jacobian else "without Jacobian") in repr(found)
    assert "mu = " in repr(found)


def test_default_is_exact_and_reproducible(monkeypatch):
    minimize, searches = optimize.minimize, []

    def counted(*args, **settings):
        searches.append(minimize(*args, **settings))
        return searches[-1]

    monkeypatch.setattr(optimize, "minimize", counted)
    found = GAUSSIAN.optimize(seed=4)
    assert [search.nit for search in searches] == [found.iterations]
    close(found.values["mu"], Y.mean(), 1e-8)
    equal(found.q, GAUSSIAN.optimize(seed=4).q)


def test_success_is_where_nothing_can_be_gained():
    model = vm.Model(lambda x: 10.0 - np.sum(np.cosh(x - 0.3) ** 2), x=vm.real(3))
    found = model.optimize(seed=1, method="BFGS", gtol=1e-300)
    assert found.success
    assert "precision" in found.message
    found = model.optimize(seed=1, method="BFGS", maxiter=2)
    assert not found.success
    assert repr(found).startswith("no mode found (Maximum number of iterations")


@pytest.mark.parametrize(("size", "iterations", "count"), [(3, 2, 1), (3, 100, 0), (101, 2, 0)])
def test_hessian_is_computed_only_of_few_parameters_with_something_to_gain(
    monkeypatch, size, iterations, count
):
    model, calls = vm.Model(lambda x: -np.sum(np.cosh(x - 0.3) ** 2), x=vm.real(size)), []
    hessian = model.log_density_hessian
    monkeypatch.setattr(
        model, "log_density_hessian", lambda *x, **y: calls.append(x) or hessian(*x, **y)
    )
    found = model.optimize(np.ones(size), maxiter=iterations)
    assert (found.success, len(calls)) == (iterations == 100, count)


@pytest.mark.parametrize("constant", [-1e9, 0.0, 1e9])
def test_success_does_not_depend_on_a_constant(constant):
    weights = np.array([1.0, 0.01])
    centre = np.array([1.0, 100.0])
    model = vm.Model(lambda a: constant - 0.5 * np.sum(weights * (a - centre) ** 2), a=vm.real(2))
    assert not model.optimize([0.0, 0.0], maxiter=1).success
    assert not model.optimize([0.0, 0.0], maxfun=2).success
    assert model.optimize([0.0, 0.0]).success
    assert model.optimize([0.0, 0.0], method="BFGS", gtol=1e-300).success
    # From the limit on, Newton's method is used.
    assert model.laplace([0.0, 0.0], maxiter=1, draws=1).mode.success


@pytest.mark.parametrize("method", ["L-BFGS-B", "BFGS", "trust-ncg"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_success_where_there_is_no_mode(method):
    if method != "L-BFGS-B":  # it takes thousands of steps of one length
        assert not vm.Model(lambda a: a, a=vm.real()).optimize(seed=0, method=method).success
    # The largest number that does not overflow.
    found = vm.Model(lambda s: -np.log(s), s=vm.positive()).optimize(seed=0, method=method)
    assert not found.success
    close(found.gradient[0], -1.0, 1e-6)


def test_no_success_where_the_density_is_zero():
    found = vm.Model(lambda x: vm.uniform_lpdf(x, 0.0, 1.0), x=vm.real()).optimize([5.0])
    assert found.value == -np.inf
    assert not found.success


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("start", [-5.0, 0.0, 2.9])
def test_refused_points_do_not_stop_the_search(method, start):
    def log_density(x):
        if vm.value(x) > 3.0:
            raise vm.DomainError("too large")
        return 5.0 * np.log(3.0 - x) + 3.0 * x

    found = vm.Model(log_density, x=vm.real()).optimize([start], method=method)
    assert found.success
    close(found.values["x"], 4.0 / 3.0, 1e-4)


def test_a_start_that_is_refused_says_why():
    optimize = vm.Model(lambda x: vm.normal_lpdf(x, 0.0, -1.0), x=vm.real()).optimize
    refuses(vm.DomainError, "normal_lpdf: Scale parameter is -1.0", optimize, [0.0], seed=1)
    refuses(vm.DomainError, "the last refusal: normal_lpdf", optimize, seed=1)


def test_other_errors_are_those_of_the_model():
    def log_density(x):
        return x * undefined  # noqa: F821

    refuses(NameError, "undefined", vm.Model(log_density, x=vm.real()).optimize, [0.0])


def test_laplace_of_a_normal_distribution_is_exact():
    precision = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 3.0]])
    centre = np.array([1.0, -2.0, 0.5])
    model = vm.Model(lambda x: -0.5 * (x - centre) @ precision @ (x - centre), x=vm.real(3))
    found = model.laplace(draws=4000, seed=1)
    close(found.mode.q, centre, 1e-13)
    close(found.covariance, np.linalg.inv(precision), 1e-12, 1e-15)
    # Up to the normalising constant the approximation is the density.
    differences = found.log_density - found.log_approximation
    close(differences, differences[0], 1e-10)
    close(differences[0], 1.5 * np.log(2 * np.pi) - 0.5 * np.log(np.linalg.det(precision)), 1e-10)
    close(np.cov(found.q.T), found.covariance, 1e-7, 0.06)
    equal(found.draws["x"], found.q)
    equal(model.laplace(draws=4000, seed=1).q, found.q)


def test_laplace_on_the_unconstrained_scale():
    found = GAUSSIAN.laplace(draws=20, seed=2)
    n = Y.size
    sigma = np.sqrt(np.sum((Y - Y.mean()) ** 2) / (n - 1))
    close(found.mode.q, [Y.mean(), np.log(sigma)], 1e-12)
    close(found.covariance, np.diag([sigma**2 / n, 1 / (2 * (n - 1))]), 1e-11, 1e-13)
    close(found.draws["sigma"], np.exp(found.q[:, 1]), 1e-14)
    assert np.max(np.abs(found.mode.gradient)) < 1e-12
    assert found.draws["mu"].shape == (20,)
    assert repr(found).startswith("20 draws around the mode of the density of q")
    assert f"mu: mean {float(np.mean(found.draws['mu']))!r}, standard deviation " in repr(found)
    again = GAUSSIAN.laplace(GAUSSIAN.optimize(seed=1), draws=20, seed=2, method="trust-ncg")
    close(again.q, found.q, 1e-10)


def test_mode_is_a_start_for_everything():
    # Its values hold a transformed parameter, which a start does not have.
    model = vm.Model(
        lambda x, y: -np.sum(x * y), x=vm.real(2), transformed_parameters=lambda x: {"y": 2.0 * x}
    )
    mode = model.optimize(seed=1)
    point = model.initial_point(mode)
    equal(point, mode.q)
    assert point is not mode.q
    assert model.check_gradient(mode)
    assert model.optimize(mode).success


def test_laplace_refuses_a_ridge():
    ridge = vm.Model(lambda a, b: -((a + b) ** 2), a=vm.real(), b=vm.real())
    message = "laplace: the Hessian of the log density is not negative definite"
    refuses(vm.DomainError, message, ridge.laplace, [0.3, 0.0])


def test_a_refused_draw_keeps_its_parameters():
    y = np.array([1.0, 2.0, 4.0])
    model = vm.Model(
        lambda z: z,
        mu=vm.real(),
        transformed_parameters=lambda mu: {"z": vm.normal_lpdf(y, 0.0, mu)},
        generated_quantities=lambda mu, z: {"pair": np.array([mu, z])},
    )
    found = model.laplace([1.0], draws=2000, seed=0)
    outside = found.draws["mu"] <= 0.0
    assert 0 < np.sum(outside) < 2000
    equal(found.draws["mu"], found.q[:, 0])
    equal(np.isneginf(found.log_density), outside)
    equal(np.isnan(found.draws["z"]), outside)
    equal(np.isnan(found.draws["pair"]), np.stack([outside, outside], axis=1))


def test_draws_at_which_a_bound_or_a_quantity_fails():
    model = vm.Model(
        lambda a, b: -0.5 * (a - 1.0) ** 2 + vm.beta_lpdf(b / a, 3.0, 3.0),
        a=vm.real(),
        b=vm.interval(0.0, lambda a: a),
    )
    found = model.laplace([1.0, 0.0], draws=100, seed=0)
    outside = found.q[:, 0] <= 0.0
    assert 0 < np.sum(outside) < 100
    for name in ("a", "b"):  # they are read off together
        equal(np.isnan(found.draws[name]), outside)

    def quantities(x, rng):
        return {"count": rng.poisson(np.exp(40.0 * x))}

    found = vm.Model(lambda x: -0.5 * x * x, x=vm.real(), generated_quantities=quantities).laplace(
        draws=100, seed=0
    )
    equal(np.isnan(found.draws["count"]), 40.0 * found.q[:, 0] > np.log(2.0**63))
    assert not np.any(np.isneginf(found.log_density))


@pytest.mark.parametrize(("quantities", "error", "message"), [
    (lambda x: {"z": x["no"]}, IndexError, "invalid index"),
    (lambda x: {"z": np.ones(2) + np.ones(3)}, ValueError, r"shapes \(2,\) \(3,\)"),
    (lambda x: {"z": np.ones(2 if x > 0.0 else 3)}, vm.ShapeError,
     r"Model.laplace: z has shape .* at a draw, but has shape"),
    (lambda x: {"z": 1.0} if x > 0.0 else {}, vm.ShapeError,
     r"Model.laplace: z .* at a draw, but .* at another"),
])  # fmt: skip
def test_quantities_that_can_be_nowhere_or_differ(quantities, error, message):
    model = vm.Model(lambda x: -0.5 * x * x, x=vm.real(), generated_quantities=quantities)
    refuses(error, message, model.laplace, draws=20, seed=1)


def test_numbers_of_draws_are_refused():
    for draws, error, text in (-1, vm.DomainError, "-1"), (1e3, TypeError, "a float"):
        message = f"^Model.laplace: draws is {text}, but must be an integer of at least 0!$"
        refuses(error, message, GAUSSIAN.laplace, draws=draws)


def test_no_draws_have_shapes():
    found = vm.Model(
        lambda x: -0.5 * np.sum(x * x), x=vm.real(2), generated_quantities=lambda x: {"z": x[0]}
    ).laplace(draws=0)
    assert {name: values.shape for name, values in found.draws.items()} == {"x": (0, 2), "z": (0,)}


def centred_schools(mu, tau, theta):
    likelihood = vm.normal_lpdf(theta, mu, tau) + vm.normal_lpdf(schools.Y, theta, schools.SIGMA)
    return likelihood + vm.normal_lpdf(mu, 0, 5) + vm.cauchy_lpdf(tau, 0, 5)


def test_a_density_without_a_mode_has_none():
    """The optimiser says that it converged; the log density grows without end, or its maximum is
    elsewhere.
    """
    found = vm.Model(lambda a: a**2, a=vm.real()).optimize(seed=1)
    assert not found.success
    centred = vm.Model(centred_schools, mu=vm.real(), tau=vm.positive(), theta=vm.real(8))
    found = centred.optimize(seed=1)
    assert found.value > 50.0
    assert not found.success
    funnel = vm.Model(
        lambda v, x: vm.normal_lpdf(v, 0, 3) + vm.normal_lpdf(x, 0, np.exp(v / 2)),
        v=vm.real(),
        x=vm.real(9),
    )
    found = funnel.optimize(seed=0)
    assert not found.success or found.values["v"] == pytest.approx(-40.5, abs=0.1)
    x, y = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0, 0, 1, 1])
    separated = vm.Model(lambda b: vm.bernoulli_logit_lpmf(y, b * x), b=vm.real())
    message = r"^laplace: 20 steps of Newton's method .* the density has no mode"
    refuses(vm.DomainError, message, separated.laplace, seed=1)


def test_a_search_that_stops_too_early_says_so(monkeypatch):
    monkeypatch.setattr(fitting, "_RESTARTS", 1)
    model = vm.Model(lambda x: -np.sum(np.arange(1.0, 4.0) * x**4 + x**2), x=vm.real(3))
    found = model.optimize({"x": np.ones(3)}, ftol=1e-1)
    assert not found.success
    reason = "the optimiser ended where the log density still grows along its gradient"
    assert f"no mode found ({reason})" in repr(found)
    monkeypatch.undo()
    assert model.optimize({"x": np.ones(3)}, ftol=1e-1).success


def test_a_method_without_iterations():
    with pytest.warns(RuntimeWarning, match="does not use gradient information"):
        found = vm.Model(lambda a: -(a**2), a=vm.real()).optimize(method="COBYLA", seed=1)
    assert found.iterations > 0
    close(found.values["a"], 0.0, 0.0, 1e-3)


def test_a_start_on_the_border_is_refused():
    model = vm.Model(
        lambda s, p: vm.normal_lpdf(s, 3, 1) + vm.beta_lpdf(p, 2, 2),
        s=vm.lower(0),
        p=vm.interval(0, 1),
    )
    for use in (model.optimize, model.laplace, model.check_gradient):
        message = r"^initial_point: init puts s on the border, but must be inside"
        refuses(vm.DomainError, message, use, {"s": 0.0, "p": 0.5})


@pytest.mark.parametrize("branches", [False, True], ids=["recorded", "refuses a recording"])
def test_a_slow_log_density_is_recorded_for_the_call(monkeypatch, branches):
    calls = []

    def log_density(x, s):
        calls.append(1)
        if branches and vm.value(s) > 1e9:
            return -np.inf
        return -np.sum((x - [1.0, 2.0]) ** 2 / s) - np.log(s) ** 2

    model = vm.Model(log_density, x=vm.real(2), s=vm.positive())
    expected = model.laplace([0.5, 0.5, 0.1], draws=3, seed=1)
    eager = len(calls)
    monkeypatch.setattr(fitting, "_SLOW", 0.0)
    calls.clear()
    found = model.laplace([0.5, 0.5, 0.1], draws=3, seed=1)
    assert (len(calls) < eager // 2) is not branches
    close(found.covariance, expected.covariance, 1e-6, 1e-9)
    close(found.mode.q, expected.mode.q, 1e-8)
    # The model itself reads what its functions read anew at each call.
    calls.clear()
    model.log_density_gradient([0.5, 0.5, 0.1])
    assert len(calls) == 1


def test_many_slow_log_densities_are_recorded(monkeypatch):
    calls = []

    def log_density(x):
        calls.append(1)
        return vm.student_t_lpdf(x, 4.0, 1.0, 2.0)

    model = vm.Model(log_density, x=vm.real())
    points = np.linspace(-2.0, 3.0, 40)[:, np.newaxis]
    expected = stats.t(4.0, 1.0, 2.0).logpdf(points[:, 0])
    for limit, evaluations in ((0.0, 4), (1e9, 40)):
        monkeypatch.setattr(fitting, "_LONG", limit)
        calls.clear()
        close(fitting.densities_at(model, points, True), expected, 1e-13)
        assert len(calls) == evaluations


def test_standard_errors_are_those_of_the_delta_method():
    """Of a normal sample they are known: that of a standard deviation is sigma / sqrt(2 n)."""
    y = np.array([1.0, 2.5, 0.5, 3.0, 2.0, 1.5])
    model = vm.Model(
        lambda mu, sigma: vm.normal_lpdf(y, mu, sigma),
        mu=vm.real(),
        sigma=vm.positive(),
        both=vm.real(2, prior=dist.Normal(0.0, [1.0, 2.0])),
        ratio=lambda mu, sigma: mu / sigma,
    )
    found = model.laplace(jacobian=False, seed=1, draws=3)
    mu, sigma, n = float(np.mean(y)), float(np.std(y)), len(y)
    errors = found.standard_errors
    close(errors["mu"], sigma / np.sqrt(n), 1e-6)
    close(errors["sigma"], sigma / np.sqrt(2 * n), 1e-6)
    close(errors["ratio"], np.sqrt((1.0 + mu**2 / (2.0 * sigma**2)) / n), 1e-6)
    close(errors["both"], [1.0, 2.0], 1e-6)
    assert type(errors["mu"]) is float
    again = pickle.loads(pickle.dumps(found))
    close(again.standard_errors["ratio"], errors["ratio"], 1e-15)
