"""Every row of the elementwise table against 50-digit arithmetic and along all routes."""

import doctest
import functools
import math
from functools import cache
from itertools import product

import mpmath
import numpy as np
import pytest
from comparing import close, equal, refuses
from functions.partials import error, slopes

import varmat as vm
from varmat.core import elementwise as core_elementwise
from varmat.core import tape, variables
from varmat.core.arena import LARGE
from varmat.core.elementwise import ROWS
from varmat.functions import numpy_kernels
from varmat.functions.rows import CONSTANT_OPERANDS, RARE
from varmat.testing import Tolerances, coverage, expect_ad, expect_ad_matvar

# power_below is tested with power, and the other helpers with the distribution functions that use
# them. Rows of rarer ufuncs have their own tests.
HELPERS = {
    "power_below", "log_first_passage", "first_passage_ratio", "digamma_less_line",
    "log1m_less_line", "neg_binomial_2_log_mean_score", "neg_binomial_2_log_score",
    "neg_binomial_2_score", "zeta_excess_difference", "negative_binomial_below",
    "negative_binomial_above", "proportion_below", "proportion_above",
    *(f"{kind}_passage_{side}" for kind in ("log", "mean") for side in ("before", "after")),
}  # fmt: skip
NAMES = sorted(ROWS.keys() - HELPERS - RARE.keys())
# These are compared with 50 digits as the distribution functions that use them, or in
# test_log_incomplete.
ELSEWHERE = {
    "log_skew_normal", "log_exp_mod_normal", "von_mises_moment", "log_von_mises_integral",
    "log_gammainc_derivative", "log_gammaincc_derivative", "log_betainc_derivative",
    "log_betaincc_derivative",
}  # fmt: skip
FREE = {
    name: [i for i in range(ROWS[name].arity) if i not in CONSTANT_OPERANDS.get(name, {})]
    for name in NAMES
}
EDGES = (
    0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-300, 1e300, 800.0, -800.0, math.inf, -math.inf, math.nan,
)  # fmt: skip

# Beyond this argument SciPy does not return.
LIMITS = {"hyp1f1": 1e5}

DIGITS = 50
# More digits where the value is so close to a constant in the tail that 50 digits do not show the
# derivative. Fewer where mpmath is slow.
DIGITS_OF = {
    "erf": 250, "tanh": 150, "log_ndtr": 150, "arctan": 250, "owens_t": 25, "pseudo_huber": 250,
    "y1": 30, "beta_density_derivative": 30, "betainc_derivative": 30, "betaincinv": 30,
    "gammainccinv": 30, "hyp2f1": 30,
}  # fmt: skip
# Largest relative errors of values and first derivatives, and of second derivatives.
FIRST, SECOND = 1e-12, 1e-11


def bound(name, point):
    """Return the row as a function of its free operands; the constant ones come from the point."""

    def function(*free):
        operands = list(point)
        for i, x in zip(FREE[name], free, strict=True):
            operands[i] = x
        return ROWS[name](*operands)

    function.__name__ = name
    return function


def free_part(name, point):
    return [float(point[i]) for i in FREE[name]]


@cache
def oracle(name, point):
    """Return the value and the first and second partial derivatives in the free operands, from
    mpmath.
    """
    scale, digits = [abs(x) or 1.0 for x in point], DIGITS_OF.get(name, DIGITS)
    return slopes(ROWS[name].reference or "", vars(mpmath), point, FREE[name], scale, digits)


def reverse(function, *args):
    """Return the value, and the derivatives of the sum of the elements."""
    with vm.nested(), np.errstate(all="ignore"):
        xs = [vm.var(x) for x in args]
        result = function(*xs)
        np.sum(result).grad()
        return vm.value(result), [np.array(x.adj) for x in xs]


def hessian(function, *args):
    """Return the Hessian by forward over reverse mode, a column per operand."""
    columns = []
    for i in range(len(args)):
        with vm.nested(), np.errstate(all="ignore"):
            xs = [vm.var(x) for x in args]
            tangent = function(*(vm.Dual(x, float(i == j)) for j, x in enumerate(xs))).tan
            if not hasattr(tangent, "grad"):
                columns.append([0.0] * len(args))
                continue
            tangent.grad()
            columns.append([x.adj for x in xs])
    return columns


def worst(name):
    """Return the worst relative errors over the points: of values and first derivatives, and of
    second derivatives.
    """
    first, second = [0.0], [0.0]
    for point in ROWS[name].points:
        function, free = bound(name, point), free_part(name, point)
        value, gradient, curvature = oracle(name, point)
        for args in (free, [np.array([x]) for x in free]):
            got, partials = reverse(function, *args)
            first += [error(got, value), *map(error, partials, gradient)]
        # A second derivative that is nearly zero (of expit at 0) is compared on the scale of the
        # first derivatives.
        floor = np.abs(gradient)[:, None] / np.maximum(1.0, np.abs(free))
        second.append(error(hessian(function, *free), curvature, np.maximum(floor, floor.T)))
    coverage.note(ROWS[name], mpmath=max(first))
    return max(first), max(second)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ELSEWHERE])
def test_row_agrees_with_fifty_digits(name):
    first, second = worst(name)
    assert first <= FIRST
    assert second <= SECOND


@pytest.mark.parametrize("name", NAMES)
def test_row_is_complete(name):
    row = ROWS[name]
    assert row.reference
    assert row.points
    assert all(len(point) == row.arity for point in row.points)
    if name not in vm.__all__:  # tests/test_docs.py runs the examples of public names
        test = doctest.DocTestParser().get_doctest(row.__doc__ or "", {}, name, None, None)
        results = doctest.DocTestRunner(verbose=False).run(test)
        assert results.attempted > 0
        assert results.failed == 0


@pytest.mark.parametrize("name", NAMES)
def test_row_agrees_along_all_routes(name):
    # A moderate point is enough. The tails are tested above, and finite differences do not reach
    # them.
    point = next(p for p in ROWS[name].points if all(x == 0 or 1e-3 <= abs(x) <= 100 for x in p))
    function, free = bound(name, point), free_part(name, point)
    # Hessians at numbers are compared with 50 digits above; of four operands they are slow.
    first = Tolerances(hessian=math.inf)
    arrays = [np.array([x, x * 1.001]) for x in free]
    expect_ad(function, *arrays, tolerances=first if len(free) == 4 else None)
    expect_ad_matvar(function, *arrays)
    expect_ad(function, *free, tolerances=first)


def strided(x):
    """Return every other element of an array that has each element twice. The result is not
    contiguous, so that the block-wise path is not taken.
    """
    return np.repeat(x, 2)[::2]


def mixtures(count):
    """Return kinds of operands: each kind at each place for two operands, and one odd operand at a
    time for more.
    """
    whole, number = np.copy, np.ndarray.item
    if count == 1:
        return [(whole,), (strided,)]
    if count == 2:
        return [(whole, whole), (strided, whole), (whole, number), (number, strided)]
    others = (strided, *[whole] * (count - 1))
    return [(whole,) * count] + [
        tuple(number if i == k else others[k] for i in range(count)) for k in range(count)
    ]


def weighed(function, views, w):
    return lambda *xs: w * function(*(view(x) for view, x in zip(views, xs, strict=True)))


@pytest.mark.parametrize("name", NAMES)
def test_large_arrays_agree_with_small_ones(name, monkeypatch):
    """What counts as large is made small, because some functions take milliseconds an element."""
    n, least = 45, 40
    for module in (core_elementwise, variables, tape):
        monkeypatch.setattr(module, "LARGE", least)
    free = free_part(name, ROWS[name].points[0])
    function = bound(name, ROWS[name].points[0])
    arrays = [x * np.linspace(1.0, 1.01, n) for x in free]
    weights = np.linspace(-1.0, 2.0, n)
    parts = (slice(0, least), slice(least, n))
    for kinds in mixtures(len(arrays)):
        args = [
            kind(x, 0) if kind is np.ndarray.item else kind(x)
            for kind, x in zip(kinds, arrays, strict=True)
        ]
        views = [strided if kind is strided else np.positive for kind in kinds]
        weigh = functools.partial(weighed, function, views)
        value, partials = reverse(weigh(weights), *args)
        small = [
            reverse(weigh(weights[k]), *(x[k] if np.ndim(x) else x for x in args)) for k in parts
        ]
        close(value, np.concatenate([part[0] for part in small]), 1e-13)
        for i, partial in enumerate(partials):
            pieces = [part[1][i] for part in small]
            expected = np.concatenate(pieces) if partial.ndim else np.sum(pieces)
            close(partial, expected, 1e-11, 1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_scalars_arrays_and_plain_numbers_agree_at_the_edges(name):
    row, free = ROWS[name], FREE[name]
    edges = [x for x in EDGES[:: 1 if len(free) < 3 else 4] if not x >= LIMITS.get(name, math.nan)]
    # Of combinations a part, in which each edge meets others at all places.
    part = (1, 1, 3, 3, 9)[len(free)]
    points = [
        dict(zip(free, (edges[k] for k in places), strict=True))
        for places in product(range(len(edges)), repeat=len(free))
        if sum(places) % part == 0
    ]
    columns = [np.array([point[i] for point in points]) for i in free]
    function = bound(name, row.points[0])
    value, partials = reverse(function, *columns)
    with np.errstate(all="ignore"):
        equal(value, function(*columns))
    for k in range(len(points)):
        scalar, slopes = reverse(function, *(float(column[k]) for column in columns))
        where = str([column[k] for column in columns])
        np.testing.assert_allclose(scalar, value[k], rtol=1e-12, atol=1e-300, err_msg=where)
        for slope, partial in zip(slopes, partials, strict=True):
            np.testing.assert_allclose(slope, partial[k], rtol=1e-9, atol=1e-290, err_msg=where)


# Function, point, and the derivatives promised there: kinks, ties and poles.
INF, NAN = math.inf, math.nan
CONVENTIONS = [
    (np.absolute, (0.0,), (0.0,)),              (np.fabs, (0.0,), (0.0,)),
    (np.sign, (0.0,), (0.0,)),                  (np.floor, (2.0,), (0.0,)),
    (np.rint, (2.5,), (0.0,)),                  (np.sinc, (0.0,), (0.0,)),
    (np.sqrt, (0.0,), (INF,)),                  (np.cbrt, (0.0,), (INF,)),
    (np.log, (0.0,), (INF,)),                   (np.maximum, (1.0, 1.0), (1.0, 0.0)),
    (np.minimum, (1.0, 1.0), (1.0, 0.0)),       (np.fmax, (1.0, 1.0), (1.0, 0.0)),
    (np.fmin, (1.0, 1.0), (1.0, 0.0)),          (np.fmax, (NAN, 1.0), (0.0, 1.0)),
    (np.fmax, (1.0, NAN), (1.0, 0.0)),          (np.fmin, (NAN, 1.0), (0.0, 1.0)),
    (np.maximum, (INF, 1.0), (1.0, 0.0)),       (np.power, (0.0, 0.0), (0.0, 0.0)),
    (np.power, (0.0, 1.0), (1.0, 0.0)),         (np.power, (0.0, 2.0), (0.0, 0.0)),
    (np.power, (0.0, 0.5), (INF, 0.0)),         (np.power, (-2.0, 3.0), (12.0, NAN)),
    (np.divide, (1.0, 0.0), (INF, -INF)),       (np.hypot, (0.0, 0.0), (0.0, 0.0)),
    (np.hypot, (0.0, 2.0), (0.0, 1.0)),         (np.copysign, (0.0, -2.0), (0.0, 0.0)),
    (np.heaviside, (0.0, 0.5), (0.0, 1.0)),     (np.logaddexp, (-INF, -INF), (0.0, 0.0)),
    (np.logaddexp, (-INF, 1.0), (0.0, 1.0)),    (np.logaddexp, (INF, 1.0), (1.0, 0.0)),
    (np.logaddexp2, (-INF, -INF), (0.0, 0.0)),  (vm.xlogy, (0.0, 0.0), (-INF, 0.0)),
    (vm.xlog1py, (0.0, -1.0), (-INF, 0.0)),     (vm.entr, (0.0,), (INF,)),
    (vm.fdim, (1.0, 1.0), (0.0, 0.0)),          (vm.step, (0.0,), (0.0,)),
    (vm.i0e, (0.0,), (0.0,)),                   (vm.log1m_exp, (0.0,), (-INF,)),
    (vm.log_diff_exp, (1.0, 1.0), (INF, -INF)), (vm.boxcox, (0.0, 2.0), (0.0, 0.25)),
    (vm.boxcox, (0.0, 0.5), (INF, 4.0)),        (vm.boxcox1p, (-1.0, 2.0), (0.0, 0.25)),
    (vm.huber, (2.0, -2.0), (0.0, -2.0)),       (vm.expit, (-INF,), (0.0,)),
    (vm.log1p_exp, (INF,), (1.0,)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "point", "expected"), CONVENTIONS)
def test_convention(function, point, expected):
    for args in (point, [np.array([x]) for x in point]):
        partials = reverse(function, *args)[1]
        equal(np.ravel(partials), expected)
    with np.errstate(all="ignore"):
        for i, slope in enumerate(expected):
            found = function(*(vm.Dual(x, 1.0) if i == j else x for j, x in enumerate(point))).tan
            equal(found, slope)


WHOLE = [*range(-8, 0), *range(1, 9)]
# With the last bases the power or its derivative leaves the range of floats.
FAR = np.array([3e-39, 2e38, 1e-51, 1e51, 1e-103, 1e102, 1e-155, 1e155])
BASES = [*EDGES, *FAR.tolist(), *(-FAR).tolist()]


@pytest.mark.parametrize("n", WHOLE)
def test_powers_of_constant_whole_numbers(n, monkeypatch):
    monkeypatch.setattr(numpy_kernels, "BLOCK", LARGE)  # several blocks, the last one shorter
    large = np.resize(BASES, 2 * LARGE + 5)
    with np.errstate(all="ignore"):
        value, slope = np.power(large, float(n)), n * np.power(large, n - 1.0)
    ways = [
        lambda x: x**n, lambda x: x ** float(n), lambda x: x ** np.float64(n),
        lambda x: x ** np.int64(n), lambda x: np.power(x, n), lambda x: np.float_power(x, n),
    ]  # fmt: skip
    for count in (len(BASES), large.size):
        for way in ways:
            r, (d,) = reverse(way, large[:count])
            for got, true in ((r, value[:count]), (d, slope[:count])):
                close(got, true, 3e-15, 1e-307)
                number = ~np.isnan(true)
                equal(np.signbit(got[number]), np.signbit(true[number]))
    for i, x in enumerate(BASES):
        for way in ways:
            r, (d,) = reverse(way, x)
            close(np.array([r, d]), np.array([value[i], slope[i]]), 3e-15, 1e-307)


def test_constant_powers_are_products():
    x = np.array([-1.5, 0.7])
    for n in WHOLE:
        with vm.nested() as tape:
            for value in (x, 1.5):
                _ = vm.var(value) ** n, np.power(vm.var(value), float(n))
            assert len(tape) == 4
            assert "power" not in {rule.name for rule, *_ in tape}
    with vm.nested() as tape, np.errstate(invalid="ignore"):
        _ = (
            vm.var(x) ** 2.5, vm.var(x) ** 9, vm.var(x) ** vm.var(3.0), 3 ** vm.var(x),
            vm.var(x) ** np.array([2, 3]),
        )  # fmt: skip
        assert [rule.name for rule, *_ in tape] == ["power"] * 5
    second = vm.hessian(lambda x: np.sum(x**3 + x**-2), x)
    close(second, np.diag(6.0 * x + 6.0 / x**4), 1e-14)
    expect_ad(lambda x: x**5, x)
    expect_ad_matvar(lambda x: x**-3, x)


@pytest.mark.parametrize("y", [2.5, 0.3, -0.5, -1.7, 40.0, 1e-3, 9, 1.0 + 2.0**-40, INF])
@pytest.mark.parametrize("count", [10, 1000, 2 * LARGE + 5])
def test_derivative_of_a_power_comes_from_the_power_where_that_is_safe(y, count):
    safe = np.linspace(0.01, 3.0, count)
    for edge in (None, *EDGES, 1e-200, 1e200):
        x = safe.copy()
        if edge is not None:
            x[3] = edge
        with np.errstate(all="ignore"):
            expected = y * np.power(x, y - 1.0)
        # The expected value is itself off by the rounding of y - 1 times the logarithm of x.
        close(reverse(lambda x: x**y, x)[1][0], expected, 1e-13)
        with np.errstate(all="ignore"):
            close((vm.Dual(x, np.ones(count)) ** y).tan, expected, 1e-13)
    second = vm.hessp(lambda x: np.sum(x**y))(safe, np.ones(count)) if y != INF else 0.0
    close(second, y * (y - 1.0) * safe ** (y - 2.0) if y != INF else 0.0, 1e-13)


def test_second_derivatives_of_huber_at_the_corner():
    for y in (2.0, -2.0):
        equal(hessian(vm.huber, 2.0, y), [[0.0, 0.0], [0.0, 1.0]])


def test_second_derivatives_of_power_where_the_exponent_is_zero():
    close(hessian(np.power, 2.0, 0.0), [[0.0, 0.5], [0.5, np.log(2.0) ** 2]], 1e-15)
    # The powers below overflow, beside a factor of zero.
    x, exponents = np.array([1e-300, 1e-310, 1.0]), np.array([[0.0], [2.0]])
    equal(vm.gradient(lambda x: np.sum(x ** exponents[0]), x), np.zeros(3))
    equal(vm.hessian(lambda x: np.sum(x**exponents), x), 2.0 * np.eye(3))


@pytest.mark.parametrize(
    "name",
    ["log", "sqrt", "exp", "divide", "reciprocal", "power", "gammaln", "gamma", "sin", "arccosh"],
)
def test_scalars_follow_ieee_arithmetic_in_silence(name):
    # Warnings are errors here.
    row = ROWS[name]
    for x in EDGES:
        with np.errstate(all="ignore"):
            plain = row.ufunc(*[np.float64(x)] * row.arity)
        with vm.nested():
            found = row(*[vm.var(x)] * row.arity).val
        close(np.atleast_1d(found), np.atleast_1d(plain), 1e-14)


@pytest.mark.parametrize(("first", "second"), [
    ((0,), ()), ((3, 0), (1, 1)), ((2, 1, 3), (4, 1)), ((1,), (2, 3)), ((), (2,)), ((2, 3), (2, 3)),
])  # fmt: skip
def test_shapes(first, second):
    for function, shapes in ((np.power, (first, second)), (vm.fma, (first, second, second))):
        args = [0.5 + np.arange(math.prod(shape)).reshape(shape) for shape in shapes]
        expect_ad(function, *args)
        expect_ad_matvar(function, *args)


def test_data_of_another_library():
    class Column:
        __array_ufunc__ = None  # its own operators would take over

        def __array__(self, dtype=None, copy=None):
            return np.array([1.0, 2.0])

    equal(vm.logit(Column()), vm.logit(np.array([1.0, 2.0])))
    equal(vm.value(vm.elt_multiply(Column(), vm.var([3.0, 4.0]))), [3.0, 8.0])
    refuses(TypeError, "unsupported operand", lambda: vm.var([3.0, 4.0]) * Column())


def test_layouts():
    rows = np.arange(1.0, 7.0).reshape(2, 3)
    for layout in (rows[::-1, ::-1], rows.T, np.asfortranarray(rows), rows[:, 1:2]):
        expect_ad(np.hypot, layout, layout)


def test_functions_with_two_results():
    x = np.array([1.75, -2.5])
    with vm.nested():
        found = (*np.modf(vm.var(x)), *np.divmod(vm.var(x), 0.5))
        equal([each.val for each in found], [*np.modf(x), *np.divmod(x, 0.5)])
        equal(np.modf(vm.var([np.inf, -np.inf]))[0].val, [0.0, -0.0])
    expect_ad(lambda t: np.modf(t)[0] ** 2, x)
    expect_ad(lambda t, u: np.divmod(t, u)[1], x, np.array([0.6, 0.7]))


def test_exponent_of_ldexp_is_whole():
    message = "ldexp: the exponent has fractional values, but must be integers!"
    refuses(TypeError, message, np.ldexp, vm.var([1.0, 2.0]), np.array([1.0, 0.5]))
