"""Fused densities of generalised linear models: against Stan Math, 50-digit arithmetic and the same
densities written in NumPy.
"""

import inspect
import itertools
import math
from functools import partial

import mpmath as mp
import numpy as np
import pytest
import stan
from comparing import SHAPE, close, equal, refuses, refuses_as
from functions.matrices import worst_error

import varmat as vm
from varmat.densities import glm, row_pass
from varmat.densities.glm import bernoulli_logit_glm_lpmf, normal_id_glm_lpdf, poisson_log_glm_lpmf
from varmat.testing import expect_ad, expect_ad_matvar

X = np.array([[0.3, -1.2], [1.1, 0.4], [-0.7, 0.8]])
BETA = np.array([0.6, -0.9])
ALPHAS = np.array([0.25, -0.1, 0.5])
SIGMAS = np.array([1.3, 0.7, 2.0])
TWO = np.zeros(2)
Y = np.array([0.7, -1.2, 2.1])
BITS, COUNTS = np.array([1, 0, 1]), np.array([3, 0, 5])
FAMILIES = {
    "normal": normal_id_glm_lpdf,
    "bernoulli": bernoulli_logit_glm_lpmf,
    "poisson": poisson_log_glm_lpmf,
}


@pytest.mark.parametrize("entry", stan.entries("glm"))
def test_agrees_with_stan(entry):
    f = getattr(glm, entry["function"])
    stan.check(f.proportional if entry.get("propto") else f, entry, rtol=1e-15)


@pytest.mark.parametrize("entry", stan.entries("glm", throws=True))
def test_refuses_as_stan_does(entry):
    f, args = getattr(glm, entry["function"]), stan.arguments(entry)
    title = entry["message"].split(": ", 1)[1].split(" is ")[0].split("[")[0]
    rule = entry["message"].rsplit("must be ", 1)[-1]
    if entry["case"] == "size_mismatch":
        refuses(vm.ShapeError, rf"^{f.name}: ", f, *args)
    elif title == "Vector of dependent variables" and f is not normal_id_glm_lpdf:
        # Stan raises; here the mass is zero, unless the parameters are variables.
        assert f(*args) == -math.inf
    else:
        refuses(vm.DomainError, rf"^{f.name}: {title}.* is .*, but must be {rule}", f, *args)


def in_rows(mass, *data):
    """Return the sum of the log masses of rows, with 50 digits, from that of one row: a function of
    data of the row, its linear predictor and further parameters.
    """

    def exact(x, alpha, beta, *others):
        def in_row(z, i):
            if isinstance(z, np.ndarray):
                return z.tolist()[i]
            return z[i] if isinstance(z, mp.matrix) else z

        total = mp.mpf(0)
        for i in range(x.rows):
            eta = in_row(alpha, i) + mp.fsum(x[i, j] * beta[j] for j in range(x.cols))
            total += mass(*(in_row(d, i) for d in data), eta, *(in_row(o, i) for o in others))
        return total

    return exact


def normal(y, eta, sigma):
    return -(((y - eta) / sigma) ** 2) / 2 - mp.log(sigma) - mp.log(2 * mp.pi) / 2


def bernoulli(y, eta):
    return -mp.log(1 + mp.exp(-(2 * y - 1) * eta))


def poisson(y, eta):
    return y * eta - mp.exp(eta) - mp.loggamma(y + 1)


# Mass of a row, density, observations, and the other arguments.
EXACT = {
    "normal": (normal, normal_id_glm_lpdf, Y, [X, 0.25, BETA, 1.3]),
    "normal, rows": (normal, normal_id_glm_lpdf, Y, [X, ALPHAS, BETA, SIGMAS]),
    "normal, far": (normal, normal_id_glm_lpdf, 1e3 * Y, [X, -40.0, 30 * BETA, 0.01]),
    "normal, wide": (normal, normal_id_glm_lpdf, Y, [1e-6 * X, 1e-3, 1e6 * BETA, 1e4]),
    "bernoulli": (bernoulli, bernoulli_logit_glm_lpmf, BITS, [X, 0.25, BETA]),
    "bernoulli, certain": (bernoulli, bernoulli_logit_glm_lpmf, np.ones(3), [X, 60.0, BETA]),
    "bernoulli, surprised": (bernoulli, bernoulli_logit_glm_lpmf, np.array([0, 1, 0]),
                             [X, np.array([700.0, -900.0, 30.0]), BETA]),
    "poisson": (poisson, poisson_log_glm_lpmf, COUNTS, [X, 0.25, BETA]),
    "poisson, large": (poisson, poisson_log_glm_lpmf, np.array([90, 110, 5000]),
                       [X, np.array([4.0, 5.0, 8.0]), BETA]),
    "poisson, rare": (poisson, poisson_log_glm_lpmf, np.array([0, 0, 1]), [X, -30.0, BETA]),
}  # fmt: skip


@pytest.mark.parametrize(("mass", "f", "y", "args"), EXACT.values(), ids=EXACT)
def test_agrees_with_fifty_digits(mass, f, y, args):
    if f is normal_id_glm_lpdf:
        assert worst_error(f, lambda y, *rest: in_rows(mass, y)(*rest), [y, *args]) < 5e-14
    else:
        assert worst_error(partial(f, y), in_rows(mass, y), args) < 5e-14


BLOCKS = {
    "normal_id_glm_lpdf": "normal_lpdf", "bernoulli_logit_glm_lpmf": "bernoulli_logit_lpmf",
    "poisson_log_glm_lpmf": "poisson_log_lpmf", "binomial_logit_glm_lpmf": "binomial_logit_lpmf",
    "neg_binomial_2_log_glm_lpmf": "neg_binomial_2_log_lpmf",
}  # fmt: skip
STRIDED = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
CASES = {
    "all variable": (normal_id_glm_lpdf, Y, X, ALPHAS, BETA, SIGMAS),
    "scalars": (normal_id_glm_lpdf, Y, X, 0.25, BETA, 1.3),
    "one y": (normal_id_glm_lpdf, 0.7, X, ALPHAS, BETA, 1.3),
    "a row": (normal_id_glm_lpdf, Y, X[0], 0.25, BETA, SIGMAS),
    "a row as long as all rows": (normal_id_glm_lpdf, Y[:2], X[0], 0.25, BETA, SIGMAS[:2]),
    "a row, all scalars": (normal_id_glm_lpdf, 0.7, X[0], 0.25, BETA, 1.3),
    "a row of a matrix": (normal_id_glm_lpdf, Y, X[:1], 0.25, BETA, 1.3),
    "a row, one intercept each": (normal_id_glm_lpdf, 0.7, X[:1], ALPHAS, BETA, 1.3),
    "a row, an intercept of one element": (normal_id_glm_lpdf, Y, X[0], ALPHAS[:1], BETA, SIGMAS),
    "a row, all of one element": (normal_id_glm_lpdf, Y[:1], X[:1], ALPHAS[:1], BETA, SIGMAS[:1]),
    "size one": (normal_id_glm_lpdf, Y[:1], X, ALPHAS[:1], BETA, SIGMAS[:1]),
    "fortran": (normal_id_glm_lpdf, Y, np.asfortranarray(X), ALPHAS, BETA, 1.3),
    "strided": (normal_id_glm_lpdf, Y[::-1], STRIDED[::-1], ALPHAS[::-1], BETA[::-1], SIGMAS[::-1]),
    "no rows": (normal_id_glm_lpdf, np.empty(0), np.empty((0, 2)), 0.25, BETA, 1.3),
    "no columns": (normal_id_glm_lpdf, Y, np.empty((3, 0)), ALPHAS, np.empty(0), 1.3),
    "bernoulli": (bernoulli_logit_glm_lpmf, BITS, X, 0.25, BETA),
    "bernoulli, rows": (bernoulli_logit_glm_lpmf, BITS, X, ALPHAS, BETA),
    "bernoulli, a row": (bernoulli_logit_glm_lpmf, BITS, X[0], 0.25, BETA),
    "bernoulli, one y": (bernoulli_logit_glm_lpmf, 1, X, 0.0, BETA),
    "poisson": (poisson_log_glm_lpmf, COUNTS, X, 0.25, BETA),
    "poisson, rows": (poisson_log_glm_lpmf, COUNTS, X, ALPHAS, BETA),
    "poisson, one y": (poisson_log_glm_lpmf, 2, X, 0.0, BETA),
    "poisson, no rows": (poisson_log_glm_lpmf, np.empty(0, int), np.empty((0, 2)), 0.25, BETA),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_all_routes_agree(case):
    expect_ad(*case)


@pytest.mark.parametrize("name", ["all variable", "a row", "bernoulli", "poisson, rows"])
def test_matvars_agree(name):
    expect_ad_matvar(*CASES[name])


@pytest.mark.parametrize("layout", ["c", "fortran", "strided", "small blocks", "one wide block"])
@pytest.mark.parametrize("rows", [False, True], ids=["scalars", "vectors"])
@pytest.mark.parametrize("name", BLOCKS)
def test_many_blocks(name, rows, layout, monkeypatch):
    """With rows of several blocks the result equals the density of the linear predictors."""
    block = {"small blocks": 125, "one wide block": 1 << 27}.get(layout, row_pass.BLOCK)
    monkeypatch.setattr(row_pass, "BLOCK", block)
    most = 1 << 20 if layout == "one wide block" else row_pass.MOST_ROWS
    monkeypatch.setattr(row_pass, "MOST_ROWS", most)
    rng, n, m = np.random.default_rng(5), 9001, 7
    x, beta = rng.normal(size=(n, m)), rng.normal(size=m) / 3
    alpha, scale = (rng.normal(size=n) / 3, rng.uniform(0.5, 2.0, n)) if rows else (0.4, 1.3)
    eta, trials = alpha + x @ beta, rng.integers(1, 20, n) if rows else 20
    observed, others = {
        "normal_id_glm_lpdf": ((eta + rng.normal(size=n),), (scale,)),
        "bernoulli_logit_glm_lpmf": ((rng.integers(0, 2, n),), ()),
        "poisson_log_glm_lpmf": ((rng.poisson(np.exp(eta)),), ()),
        "binomial_logit_glm_lpmf": ((rng.integers(0, trials + 1, n), trials), ()),
        "neg_binomial_2_log_glm_lpmf": ((rng.integers(0, 30, n),), (scale,)),
    }[name]
    x = np.asfortranarray(x) if layout == "fortran" else x
    x = np.repeat(x, 2, axis=1)[:, ::2] if layout == "strided" else x
    args, f = (x, alpha, beta, *others), partial(getattr(vm, name), *observed)
    plain = partial(getattr(vm, BLOCKS[name]), *observed)
    active = tuple(range(len(args)))
    value, ours = vm.value_and_grad(f, active)(*args)
    expected = vm.value_and_grad(lambda x, a, b, *o: plain(a + x @ b, *o), active)(*args)
    close([f(*args), value], expected[:1] * 2, 1e-13)
    for a, b in zip(ours, expected[1], strict=True):
        close(a, b, 1e-11, 1e-12 * np.max(np.abs(b)))


@pytest.mark.parametrize(("f", "y", "others"), [
    (normal_id_glm_lpdf, 0.7, [1.3]), (bernoulli_logit_glm_lpmf, 1, []),
    (poisson_log_glm_lpmf, 4, []),
], ids=FAMILIES)  # fmt: skip
def test_a_number_stands_for_a_vector(f, y, others):
    def density(make, propto):
        y_, alpha, *rest = map(make, (y, 0.25, *others))
        return f(y_, X, alpha, vm.var(BETA), *rest, propto=propto).val

    for propto in (False, True):
        expected = density(lambda x: np.full(3, x), propto)
        for make in (float, np.array, lambda x: np.full(1, x)):
            close(density(make, propto), expected, 1e-14)


@pytest.mark.parametrize(("f", "y", "dropped"), [
    (normal_id_glm_lpdf, Y, {"sigma": 3 * math.log(1.3), "constants": 1.5 * math.log(2 * math.pi)}),
    (bernoulli_logit_glm_lpmf, BITS, {}),
    (poisson_log_glm_lpmf, COUNTS, {"constants": math.lgamma(4) + math.lgamma(6)}),
], ids=FAMILIES)  # fmt: skip
def test_propto_drops_what_is_data(f, y, dropped):
    args = (y, X, 0.25, BETA, *([1.3] if f is normal_id_glm_lpdf else []))
    full, everything = f(*args), sum(dropped.values())
    close(vm.value_and_grad(f.proportional, 3)(*args)[0], full + everything, 1e-14)
    last = len(args) - 1
    kept = everything - dropped.get("sigma", 0.0) if f is normal_id_glm_lpdf else everything
    close(vm.value_and_grad(f.proportional, last)(*args)[0], full + kept, 1e-14)
    assert f(*args, propto=True) == 0.0
    gradients = (vm.value_and_grad(each, (1, 2, 3))(*args)[1] for each in (f, f.proportional))
    for a, b in zip(*gradients, strict=True):
        equal(a, b)


# Density, place of the bad argument, the argument, and the message.
BAD_ARGUMENTS = [
    ("normal", 0, [1.0, np.nan, 0.0], "{y}[1] is nan, but must be finite!"),
    ("normal", 1, np.where(X == 0.4, np.inf, X), "{x}[1, 1] is inf, but must be finite!"),
    ("normal", 2, -np.inf, "Intercept is -inf, but must be finite!"),
    ("normal", 2, [0, 0, np.nan], "Intercept[2] is nan, but must be finite!"),
    ("normal", 3, [0.0, np.inf], "Weight vector[1] is inf, but must be finite!"),
    ("normal", 4, 0.0, "Scale vector is 0.0, but must be positive finite!"),
    ("normal", 4, [1.0, np.inf, 1.0], "Scale vector[1] is inf, but must be positive finite!"),
    ("bernoulli", 0, [0, np.nan, 3], "{y}[1] is nan, but must be not nan!"),
    ("bernoulli", 2, np.nan, "Intercept is nan, but must be finite!"),
    ("poisson", 1, np.where(X == 0.4, np.nan, X), "{x}[1, 1] is nan, but must be finite!"),
    ("poisson", 3, BETA * np.inf, "Weight vector[0] is inf, but must be finite!"),
    ("no rows", 2, np.nan, "Intercept is nan, but must be finite!"),
    ("normal", 3, np.ones(3), "Weight vector has shape (3,), but must have the shape (2,)!"),
    ("normal", 3, 1.0, "Weight vector has shape (), but must have the shape (2,)!"),
    ("normal", 1, X[:2], "{y} has shape (3,), but must be a scalar or have the shape (2,)!"),
    ("normal", 0, Y[:, None], "{y} has shape (3, 1), but must be a scalar or have the shape (3,)!"),
    ("normal", 2, TWO, "Intercept has shape (2,), but must be a scalar or have the shape (3,)!"),
    ("a row", 2, TWO, "Intercept has shape (2,), but must be a scalar or have the shape (3,)!"),
    ("normal", 4, np.ones((3, 3)),
     "Scale vector has shape (3, 3), but must be a scalar or have the shape (3,)!"),
    ("normal", 1, X[None], "{x} has shape (1, 3, 2), but must be a matrix, or a vector: one row!"),
    ("normal", 1, 2.0, "{x} has shape (), but must be a matrix, or a vector: one row!"),
]  # fmt: skip
GOOD = {**CASES, "normal": CASES["scalars"]}


@pytest.mark.parametrize(
    ("name", "place", "bad", "text"), BAD_ARGUMENTS, ids=[m for *_, m in BAD_ARGUMENTS]
)
def test_arguments_that_are_refused(name, place, bad, text):
    f, *args = GOOD[name]
    args[place] = bad
    text = text.format(y="Vector of dependent variables", x="Matrix of independent variables")
    error = SHAPE if " has shape " in text else vm.DomainError
    for propto, make in itertools.product((False, True), (lambda x: x, vm.var)):
        with vm.nested() as tape:
            given = [args[0], *map(make, args[1:])]
            refuses_as(error, f"{f.name}: {text}", f, *given, propto=propto)
            assert not tape


@pytest.mark.parametrize(("f", "y"), [
    (bernoulli_logit_glm_lpmf, [1, 2, 0]),   (bernoulli_logit_glm_lpmf, [0.5, 1, 0]),
    (bernoulli_logit_glm_lpmf, -1),          (poisson_log_glm_lpmf, [3, -1, 0]),
    (poisson_log_glm_lpmf, [0.5, 1, 0]),     (poisson_log_glm_lpmf, math.inf),
])  # fmt: skip
def test_observations_outside_the_support(f, y):
    assert f(y, X, 0.25, BETA) == -math.inf
    for call in (
        lambda: vm.value_and_grad(f, (1, 2, 3))(y, X, 0.25, BETA),
        lambda: vm.jvp(lambda beta: f(y, X, 0.25, beta), (BETA,), (BETA,)),
        lambda: vm.recorded(vm.value_and_grad(f, 3))(y, X, 0.25, BETA),
    ):
        refuses(vm.DataError, rf"^{f.name}: Vector of dependent variables", call)
    refuses(vm.DomainError, "Intercept is nan", f, y, X, np.nan, BETA)


def test_overflow_is_no_error():
    value, g = vm.value_and_grad(poisson_log_glm_lpmf, 2)(COUNTS, X, 800.0, BETA)
    assert (value, g) == (-math.inf, -math.inf)
    value, g = vm.value_and_grad(bernoulli_logit_glm_lpmf, 2)(np.array([0, 0, 1]), X, 1e6, BETA)
    close(value, -2e6, 1e-6)
    assert g == -2.0


@pytest.mark.parametrize("sigma", [1e-200, 1e-120, 1e120, 1e200])
def test_scales_whose_squares_overflow(sigma):
    """Scaling the residuals and sigma together changes the log density by a constant only."""
    y = np.array([0.7, -1.3, 2.2])
    value, (in_beta, in_sigma) = vm.value_and_grad(normal_id_glm_lpdf, (3, 4))(
        y, X, 0.25, BETA, 2.0
    )
    args = (y * (sigma / 2.0), X, 0.125 * sigma, BETA * (sigma / 2.0), sigma)
    scaled, (in_scaled, in_its_sigma) = vm.value_and_grad(normal_id_glm_lpdf, (3, 4))(*args)
    close(scaled, value - len(y) * math.log(sigma / 2.0), 1e-13)
    close(in_scaled * (sigma / 2.0), in_beta, 1e-12)
    close(in_its_sigma * (sigma / 2.0), in_sigma, 1e-12)


@pytest.mark.parametrize("f", [bernoulli_logit_glm_lpmf, poisson_log_glm_lpmf])
def test_a_discrete_observation_is_no_variable(f):
    for y in (vm.var(BITS), [vm.var(1.0), 0, 1]):
        message = rf"^{f.name}: Vector of dependent variables is a variable, but has no derivative"
        refuses(TypeError, message, f, y, X, 0.25, BETA)
        refuses(TypeError, "it is discrete", f, y=y, X=X, alpha=0.25, beta=BETA, propto=True)


@pytest.mark.parametrize("name", CASES)
def test_the_shorter_way_gives_the_same(name):
    """Arguments by name take the general way of every operation, and arguments by position the
    shorter one.
    """
    f, *args = CASES[name]
    variable = tuple(i for i in range(1 if f.discrete else 0, len(args)))
    short = vm.value_and_grad(f, variable)(*args)
    general = vm.value_and_grad(
        lambda *values: f(**dict(zip(f.arguments, values, strict=True))), variable
    )(*args)
    assert short[0] == general[0]
    equal(short[1], general[1])
    assert f(*args) == f(**dict(zip(f.arguments, args, strict=True)))


@pytest.mark.parametrize("name", ["all variable", "scalars", "bernoulli", "poisson"])
def test_further_reverse_passes_give_the_same(name):
    f, y, *args = CASES[name]
    with vm.nested():
        variables = [vm.var(x) for x in args]
        density = f(y, *variables)
        density.grad()
        first = [np.array(x.adj) for x in variables]
        for scale in (2.0, 1.0):
            (scale * density).grad()
            for x, g in zip(variables, first, strict=True):
                equal(x.adj, scale * g)


def test_gradients_are_new_arrays():
    big = np.random.default_rng(1).normal(size=(20_000, 2))
    y, alpha = big[:, 0].copy(), big[:, 1].copy()
    f = vm.value_and_grad(normal_id_glm_lpdf, (0, 1, 2, 3, 4))
    kept = f(y, big, alpha, BETA, 1.3)[1]
    first = [np.array(g) for g in kept]
    f(2 * y, big, alpha, BETA, 1.3)
    for a, b in zip(kept, first, strict=True):
        equal(a, b)
        assert not any(np.shares_memory(a, x) for x in (y, big, alpha))


def test_integers_and_lists():
    args = [1, 2, 3], [[1, 2], [3, 4], [5, 6]], 0, [0, 1], 2
    value = normal_id_glm_lpdf(*args)
    assert type(value) is float
    close(value, normal_id_glm_lpdf(*(np.array(x, float) for x in args)), 1e-15)


@pytest.mark.parametrize(
    ("place", "wrong"), [(0, np.array(["a"] * 3)), (1, 1j * X), (2, np.array(1j))]
)
def test_what_is_no_real_number_is_refused(place, wrong):
    args = [Y, X, 0.25, BETA, 1.3]
    args[place] = wrong
    name = [*normal_id_glm_lpdf.arguments][place]
    message = rf"^normal_id_glm_lpdf: {name} has dtype .*, but must be real numbers"
    refuses(TypeError, message, normal_id_glm_lpdf, *args)


def test_signature():
    signature = "(y, X, alpha, beta, sigma, *, propto=False)"
    assert str(inspect.signature(normal_id_glm_lpdf)) == signature
