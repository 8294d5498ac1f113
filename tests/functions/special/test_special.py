"""The special functions under SciPy's and Stan's names: dispatch, constant operands, compositions,
and Stan Math's own values.
"""

import json
import math
from itertools import product
from pathlib import Path

import mpmath
import numpy as np
import pytest
import scipy.special
from comparing import DOMAIN, close, equal, refuses, refuses_as

import varmat as vm
from varmat.core.elementwise import ROWS
from varmat.functions.rows import CONSTANT_OPERANDS, RARE
from varmat.functions.special.zeta_functions import zeta_difference
from varmat.testing import expect_ad, expect_ad_matvar, expect_value

# Stan's names for functions that NumPy calls otherwise.
STAN = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "elt_divide": np.divide,
    "elt_multiply": np.multiply, "pow": np.power,
}  # fmt: skip
CASES = json.loads(
    (Path(__file__).parents[2] / "data" / "elementwise.json").read_text(encoding="utf-8")
)["cases"]
SCIPY = sorted(
    name
    for name, row in ROWS.items()
    if getattr(scipy.special, str(row._given), None) is row.ufunc and name not in RARE
)


def test_differences_of_zeta_functions_at_the_ends_of_the_range():
    # In the first two cases the product of the arguments underflows or overflows. In the third one
    # adding 1 does not change 1e16, and SciPy would sum a term for every integer up to there.
    y, z = np.array([1e-300, 1.0, 1e16, 5.0]), np.array([1e-17, 1.7e308, 4.0 - 1e16, 0.01])
    exact = [1e300, 710.30405255812976, -35.5852438194729, 0.002210793636214133]
    close(zeta_difference(1.0, y, z), exact, 1e-14)
    close([zeta_difference(1.0, *each) for each in zip(y, z, strict=True)], exact, 1e-14)
    assert np.isnan(zeta_difference(1.0, np.array([-1e8 + 0.5, 5.0]), 0.01)).sum() == 0
    assert vm.log_rising_factorial(vm.var(1e16), 4.0 - 1e16).val < 0.0


@pytest.mark.parametrize("name", ["log_expit", "log1p_exp", "log1m_inv_logit", "sign"])
def test_zeros_of_scalars_have_the_sign_of_those_of_arrays(name):
    for x in (-1e4, 1e4, 0.0, -0.0):
        scalar, array = ROWS[name](vm.var(x)).val, ROWS[name](vm.var([x])).val[0]
        assert math.copysign(1.0, scalar) == math.copysign(1.0, array)


@pytest.mark.parametrize(
    "x", [1e-300, 1e-17, 1e-10, 0.3, 0.5, 0.7, 0.999999999, 1.000000001, 2.0, 1e5, 1e10]
)
def test_derivatives_of_the_dilogarithm(x):
    with mpmath.workdps(50):
        first = float(mpmath.log(x) / (1 - mpmath.mpf(x)))
        second = float(1 / (x - mpmath.mpf(x) ** 2) + mpmath.log(x) / (1 - mpmath.mpf(x)) ** 2)
    assert vm.gradient(vm.spence, x) == pytest.approx(first, rel=1e-14, abs=0.0)
    assert vm.hessian(vm.spence, x) == pytest.approx(second, rel=1e-14, abs=0.0)


def test_beta_functions_of_large_numbers():
    # Between 100 and 1e8, SciPy's differences of log gamma functions lose up to nine digits.
    for x in (10.0**exponent for exponent in (0.5, 1.9, 2.5, 4.2, 5.7, 6.3, 9.0)):
        for name, a, b in product(("betaln", "beta"), (x, 7.5), (0.3, x, 0.7 * x)):
            if vm.beta(a, b) > 1e-290 or name == "betaln":
                expect_value(ROWS[name], ROWS[name].reference, [(a, b), (b, a)])
        n = math.floor(x) + 3.0
        expect_value(vm.lchoose, vm.lchoose.reference, [(n, 3.0), (n, n - 2.5)])
        expect_value(vm.binom, vm.binom.reference, [(n, 3.0), (n, 2.5), (n, n - 3.0)])
    x = np.array([2e5, 5.5])
    for function in (scipy.special.betaln, scipy.special.beta, scipy.special.binom):
        equal(function(vm.var(x), 2.5).val, ROWS[function.__name__](x, 2.5))


@pytest.mark.parametrize("name", SCIPY)
def test_scipy_function_dispatches_here(name):
    row = ROWS[name]
    *held, last = row.points[0]
    for x in (vm.var(last), vm.var([last, last])):
        if isinstance(row.ufunc, np.ufunc):
            ours, theirs = row(*held, x), row.ufunc(*held, x)
            assert type(ours) is type(theirs) is (type(x) if not x.shape else vm.VarMat)
            equal(vm.value(ours), vm.value(theirs))


@pytest.mark.parametrize(("theirs", "ours", "held"), [
    (scipy.special.exp2, np.exp2, ()),       (scipy.special.cbrt, np.cbrt, ()),
    (scipy.special.expm1, np.expm1, ()),     (scipy.special.log1p, np.log1p, ()),
    (scipy.special.round, np.rint, ()),      (scipy.special.jve, scipy.special.jv, (2.0,)),
    (scipy.special.yn, scipy.special.yv, (2,)), (scipy.special.yve, scipy.special.yv, (2.0,)),
    (scipy.special.kn, scipy.special.kv, (2,)),
])  # fmt: skip
def test_twins_of_other_functions(theirs, ours, held):
    for x in (0.7, 2.5):
        outcomes = [vm.value_and_grad(lambda t, f=f: f(*held, t))(x) for f in (theirs, ours)]
        assert outcomes[0] == pytest.approx(outcomes[1], rel=1e-14)


@pytest.mark.parametrize("s", [1e-3, 0.5, 0.99, 1.01])
def test_riemanns_zeta_function_has_derivatives_down_to_zero(s):
    value, slope = vm.value_and_grad(scipy.special.zeta)(s)
    assert value == scipy.special.zeta(s)
    assert slope == pytest.approx(float(mpmath.zeta(s, derivative=1)), rel=1e-14)
    assert vm.hessian(scipy.special.zeta, s) == pytest.approx(
        float(mpmath.zeta(s, derivative=2)), rel=1e-13
    )


def test_hurwitz_zeta_function_has_no_gradient_where_it_has_no_value():
    for q in (1.5, np.array([0.3, 4.0])):
        value, slope = vm.value_and_grad(lambda q: np.sum(vm.zeta(0.5, q)))(q)
        assert np.isnan(value)
        assert np.all(np.isnan(slope))


def variables(x):
    return [vm.var(x), vm.var([x]), vm.matvar([x]), vm.Dual(x, 1.0), [vm.var(x)]]


@pytest.mark.parametrize(
    ("name", "position"),
    [(name, i) for name in sorted(CONSTANT_OPERANDS) for i in CONSTANT_OPERANDS[name]],
)
def test_operand_without_a_derivative_must_be_constant(name, position):
    for variable in variables(ROWS[name].points[0][position]):
        args = list(ROWS[name].points[0])
        args[position] = variable
        rule = f"^{name}: {CONSTANT_OPERANDS[name][position]} is a .*, but must be a constant .*!$"
        refuses(TypeError, rule, ROWS[name], *args)
        if isinstance(ROWS[name].ufunc, np.ufunc) and not isinstance(variable, list):
            refuses(TypeError, rule, ROWS[name].ufunc, *args)


LMGAMMA = "x * (x - 1) * log(pi) / 4 + sum(loggamma(y - mpf(j) / 2) for j in range(int(x)))"


@pytest.mark.parametrize(("function", "reference", "points"), [
    (vm.trigamma, "psi(1, x)", [0.5, 1e-5, 100.0, -2.3]),
    (vm.polygamma, "psi(x, y)", [(0, 0.5), (1, 3.5), (2, 100.0), (4, 0.7)]),
    (vm.lmgamma, LMGAMMA, [(1, 2.5), (3, 4.0), (5, 100.0)]),
])  # fmt: skip
def test_composition_agrees_with_fifty_digits(function, reference, points):
    for point in points:
        # The arguments before the last one are constant.
        *held, x = point if isinstance(point, tuple) else (point,)
        exact = lambda t, held=held: eval(  # noqa: E731
            reference, {**vars(mpmath), **dict(zip("xy", [*held, t], strict=False))}
        )
        named = lambda t, held=held: function(*held, t)  # noqa: E731 - in a loop
        expect_value(named, exact, [x])
        expect_ad(named, np.array([x, 1.1 * x]))
        expect_ad_matvar(named, np.array([x, 1.1 * x]))


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: vm.polygamma(1.5, vm.var(2.0)), TypeError,
     "the order n is 1.5, but must be an integer!"),
    (lambda: vm.polygamma(-1, vm.var(2.0)), DOMAIN, "the order n is -1, but must be nonnegative!"),
    (lambda: vm.lmgamma(2.0, vm.var(2.0)), TypeError,
     "the dimension k is 2.0, but must be an integer!"),
    (lambda: vm.polygamma(171, vm.var(2.0)), DOMAIN,
     "the order n is 171, but must be at most 170!"),
    (lambda: vm.multigammaln(vm.var(2.0), 0), DOMAIN,
     "the dimension d is 0, but must be positive!"),
])  # fmt: skip
def test_compositions_refuse(call, error, message):
    refuses_as(error, message, call)


def numbers(x):
    """Convert Stan's values, nested lists with text for numbers that JSON cannot express."""
    return np.array(x, dtype=object).astype(float)


# Function -> arguments at which Stan loses digits. We compare them with 50 digits in
# test_digits_that_stan_loses, and trigamma above.
LOST_DIGITS = {
    "Phi_approx": [[6.0]],                       "inv_Phi": [[0.9999999999]],
    "inv_cloglog": [[-30.0]],                    "inv_logit": [[40.0]],
    "lbeta": [[1e8, 2.0]],                       "lchoose": [[1e8, 2.0]],
    "log_falling_factorial": [[1e8, 2.0]],       "hypergeometric_2F1": [[2.0, -1.0, 1.5, 0.7]],
    "digamma": [[0.35], [5.2], [1e-05], [[0.35, 1.4, 5.2, -0.6]]],
    "trigamma": [[0.35], [1.4], [1e-05], [[0.35, 1.4, 5.2, -0.6]]],
    "gamma_q": [[1.2, 0.5], [0.001, 2.0], [50.0, 60.0], [[1.2, 4.0, 0.7], [0.5, 2.0, 3.0]]],
    "log_inv_logit_diff": [[20.0, 3.0], [[1.2, -0.4, 20.0], [0.5, -2.0, 3.0]]],
    "log_modified_bessel_first_kind": [[0.0, 1.0], [1.5, 1000.0]],
}  # fmt: skip
# Function -> arguments at which our conventions differ. Ties go to the first operand (in Stan to
# the second). hypot has the derivative 0 at (0, 0). We take limits where they exist (Stan returns
# nan). Nothing is promised outside the domain or at nan.
OTHER_CONVENTIONS = {
    "bessel_first_kind": [[0, 0.0]],                 "beta": [["-inf", 0.5]],
    "fmax": [[1.0, 1.0]],                            "fmin": [[1.0, 1.0]],
    "fmod": [["-inf", 1.4], [5.3, "nan"]],           "gamma_p": [[1.0, 0.0], ["inf", 0.5]],
    "inc_beta": [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]],  "inv_inc_beta": [[2.0, 3.0, 0.0]],
    "hypot": [[0.0, 0.0]],                           "lambert_w0": [["-inf"]],
    "lbeta": [[0.0, 1.0]],                           "lgamma": [[0.0]],
    "log1m": [[1.0]],                                "log_rising_factorial": [[5.2, "-inf"]],
    "logit": [["inf"]],                              "multiply_log": [[0.0, 0.0]],
    "pow": [["inf", 0.5]],                           "step": [["nan"]],
    "trigamma": [[0.0]],
}  # fmt: skip


def agrees_with_stan(case):
    name = case["function"]
    function = STAN.get(name) or getattr(vm, name, None) or getattr(np, name)
    held = CONSTANT_OPERANDS.get(getattr(function, "__wrapped__", function).__name__, {})
    with vm.nested(), np.errstate(all="ignore"):
        args = []
        for i, (value, gradient) in enumerate(zip(case["args"], case["gradients"], strict=True)):
            x = value if isinstance(value, int) else numbers(value)
            args.append(x if gradient is None or i in held else vm.var(x))
        result = function(*args)
        if hasattr(result, "grad"):
            np.sum(result * (1.0 if case["weights"] is None else numbers(case["weights"]))).grad()
        pairs = [
            (x.adj, gradient)
            for x, gradient in zip(args, case["gradients"], strict=True)
            if hasattr(x, "adj")
        ]
        pairs.append((vm.value(result), case["output"]))
        return all(
            np.allclose(ours, numbers(stan), rtol=1e-11, atol=1e-290, equal_nan=True)
            for ours, stan in pairs
        )


@pytest.mark.parametrize("name", sorted({case["function"] for case in CASES}))
def test_values_and_gradients_of_stan(name):
    elsewhere = LOST_DIGITS.get(name, []) + OTHER_CONVENTIONS.get(name, [])
    for case in CASES:
        if case["function"] == name:
            assert agrees_with_stan(case) is (case["args"] not in elsewhere), case


@pytest.mark.parametrize("name", sorted(LOST_DIGITS.keys() - {"trigamma"}))
def test_digits_that_stan_loses(name):
    row = getattr(vm, name)
    row = getattr(row, "alias_of", row)
    for args in LOST_DIGITS[name]:
        columns = [x if isinstance(x, list) else [x] for x in args]
        expect_value(row, row.reference, list(zip(*columns, strict=True)))


def test_dimensions_and_orders_may_be_small_integers():
    """NumPy's small integers would wrap around."""
    assert vm.lmgamma(np.uint8(20), 30.0) == vm.lmgamma(20, 30.0)
    assert vm.multigammaln(vm.var(30.0), np.int8(20)).val == pytest.approx(
        scipy.special.multigammaln(30.0, 20), rel=1e-14
    )
    assert vm.polygamma(np.int8(127), 50.0) == vm.polygamma(127, 50.0)


EDGES = (
    0.0, -0.0, 1e-300, -1e-10, 0.7, -3.0, 40.0, -40.0, 709.0, -709.0, -745.0, 800.0, math.inf,
    -math.inf, math.nan,
)  # fmt: skip


@pytest.mark.parametrize(("name", "reference"), [
    ("expit", scipy.special.expit),
    ("log_expit", scipy.special.log_expit),
    ("log1p_exp", lambda x: np.logaddexp(0.0, x)),
    ("log1m_inv_logit", lambda x: -np.logaddexp(0.0, x)),
])  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_many_elements_are_as_few(name, reference):
    """Long arrays are computed by another algorithm than short ones."""
    row, x = ROWS[name], np.tile(np.array(EDGES), 50)
    kept, out = x.copy(), np.empty(len(x))
    with np.errstate(all="ignore"):
        expected = reference(x)
    assert row.ufunc(x, out=out) is out
    for found in (out, row.ufunc(x), row(vm.var(x)).val, row(vm.var(x[:, None])).val[:, 0]):
        close(found, expected, 1e-15)
    equal(x, kept)
    few, many = (vm.gradient(lambda x: np.sum(row(x)), each) for each in (x[: len(EDGES)], x))
    close(many, np.tile(few, 50), 1e-15)


def test_many_elements_of_logaddexp():
    row = ROWS["logaddexp"]
    for points in (EDGES[:-3], EDGES):  # without infinities and with them
        x, y = (np.tile(grid.ravel(), 3) for grid in np.meshgrid(points, points))
        out = np.empty(len(x))
        with np.errstate(invalid="ignore"):  # NumPy warns of nan
            ways = (row.ufunc(x, y), row.ufunc(x, y, out=out), np.logaddexp(vm.var(x), y).val)
            for found in ways:
                close(found, np.logaddexp(x, y), 1e-15, 1e-15)
            close(row.ufunc(x, 0.5), np.logaddexp(x, 0.5), 1e-15, 1e-15)
            equal(out, row.ufunc(x, y))


@pytest.mark.parametrize(("f", "branch"), [(vm.lambert_w0, 0), (vm.lambert_wm1, -1)])
@pytest.mark.parametrize("distance", [1e-15, 1e-12, 1e-9, 1e-6, 7e-5, 8e-5])
def test_lambert_w_next_to_the_branch_point(f, branch, distance):
    """The derivative grows to infinity there, and it has as many digits as the distance from the
    branch point.
    """
    x = -1.0 / math.e + distance
    with mpmath.workdps(50):
        w = mpmath.lambertw(x, branch).real
        slope = w / (x * (1 + w))
    value, gradient = vm.value_and_grad(f)(x)
    assert value == pytest.approx(float(w), rel=1e-14)
    assert gradient == pytest.approx(float(slope), rel=1e-15 / math.sqrt(distance) + 1e-12)
    assert f(np.array([x, 3.0 * x])).tolist()[0] == value


def test_lambert_w_at_the_branch_point_and_outside():
    assert vm.lambert_w0(-0.36787944117144233) == vm.lambert_wm1(-0.36787944117144233) == -1.0
    assert np.isnan(vm.lambert_w0([-0.3679, np.nan])).all()
    assert np.isnan([vm.lambert_wm1(-0.3679), vm.lambert_wm1(0.0)]).all()


@pytest.mark.parametrize(("x", "y", "exact"), [
    (1.0, 1e-155, math.e - 1.0),
    (5.0, 1e-200, math.expm1(5.0)),
    (1e-200, 1e-200, 1e-200),
    (2.0, 1.0, 2.0),
])  # fmt: skip
def test_inv_boxcox1p_near_the_exponential(x, y, exact):
    assert vm.inv_boxcox1p(x, y) == pytest.approx(exact, rel=1e-15)


def test_kl_div_at_its_edges():
    x, y = [0.0, 0.0, 2.0, 1.0, -1.0, -1.0], [0.0, 2.0, 0.0, 1.0, 1.0, -1.05]
    for found in (vm.kl_div(x, y), [vm.kl_div(*point) for point in zip(x, y, strict=True)]):
        equal(found, [0.0, 2.0, np.inf, 0.0, np.inf, np.inf])
    for y in (0.0, 2.0):
        assert vm.gradient(lambda y: vm.kl_div(0.0, y), y) == 1.0


@pytest.mark.parametrize("x", [20.0001, 31.0, 1e4])
def test_the_derivatives_of_erfcx_where_its_terms_cancel(x):
    with mpmath.workdps(60):
        t = mpmath.mpf(x)
        value = mpmath.exp(t * t) * mpmath.erfc(t)
        slope = 2 * t * value - 2 / mpmath.sqrt(mpmath.pi)
        curvature = 2 * value + 2 * t * slope
    assert vm.gradient(vm.erfcx, x) == pytest.approx(float(slope), rel=1e-14)
    assert vm.hessian(vm.erfcx, x) == pytest.approx(float(curvature), rel=1e-14)


@pytest.mark.parametrize(("n", "x"), [(40, 0.5), (170, 5.0)])
def test_polygamma_of_high_orders(n, x):
    with mpmath.workdps(50):
        exact = [float(mpmath.psi(order, x)) for order in (n, n + 1)]
    assert vm.value_and_grad(lambda x: vm.polygamma(n, x))(x) == pytest.approx(exact, rel=1e-13)
