"""NumPy functions composed of differentiable ones: all routes, NumPy's values, and closed forms."""

import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, equal, refuses, refuses_as
from functions.samples import MATRIX, VECTOR, by_weight

import varmat as vm
from varmat.core.dispatch import SUPPORTED
from varmat.testing import Tolerances, expect_ad, expect_ad_matvar

# NumPy 2.0, the oldest version that we support, lacks what 2.1 added.
NEW_NUMPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
CUBE = np.sin(np.arange(24.0) * 1.7).reshape(2, 3, 4)
WEIGHTS = np.array([0.5, 1.5, 2.0])
KNOTS = np.array([0.0, 0.5, 2.0, 3.0])
HEIGHTS = np.array([1.0, -2.0, 0.5, 4.0])
BETWEEN = np.array([0.2, 0.9, 2.5, -1.0, 7.0, 1.1])
KINKED = Tolerances(finite_difference=np.inf, hessian=np.inf)

# Name -> function and arguments. Every float and float array among them is differentiated.
CASES = {
    "clip": (np.clip, VECTOR, 0.0, 1.5),
    "clip arrays": (np.clip, MATRIX, np.array([[-1.0], [0.0], [0.95]]),
                    np.array([0.8, 1.5, 2.05, 2.5])),
    "clip above": (lambda x: np.clip(x, None, 0.5), VECTOR),
    **({"clip neither": (lambda x: np.clip(x, None, None), VECTOR)} if NEW_NUMPY else {}),
    "clip keywords": (lambda x: np.clip(x, min=0.0, max=1.0), VECTOR),
    "clip method": (lambda x: x.clip(0.0, 1.0), VECTOR),
    "round": (lambda x: np.round(x, 1), VECTOR, KINKED),
    "round tens": (lambda x: np.round(100 * x, -1), VECTOR, KINKED),
    "around scalar": (np.around, 1.3, KINKED),
    "fix": (np.fix, VECTOR, KINKED),
    "nan_to_num": (np.nan_to_num, VECTOR),
    "real_if_close": (lambda x: np.real_if_close(x) * x, VECTOR),
    "i0": (np.i0, VECTOR), "sinc": (np.sinc, VECTOR),
    "unwrap": (lambda x: np.unwrap(4 * x), VECTOR),
    "piecewise": (lambda x: np.piecewise(x, [x < 0, x > 1], [np.exp, lambda t: t * t]), VECTOR),
    "piecewise one condition": (lambda x: np.piecewise(x, x > 0, [np.log, 1.0]), VECTOR),
    "diff": (np.diff, VECTOR),
    "diff twice": (lambda x: np.diff(x, 2, 0), MATRIX),
    "diff zero times": (lambda x: 2 * np.diff(x, 0), VECTOR),
    "diff ends": (lambda x, a, b: np.diff(x, 1, -1, a, b), MATRIX, 0.5, np.ones((3, 2))),
    "ediff1d ends": (np.ediff1d, VECTOR, np.array([1.0, 2.0]), 3.0),
    "trapezoid": (np.trapezoid, MATRIX),
    "trapezoid x": (np.trapezoid, MATRIX, np.array([0.0, 0.3, 1.1, 1.5])),
    "trapezoid x of all": (lambda y, x: np.trapezoid(y, np.cumsum(x * x, 0), axis=0), MATRIX,
                           MATRIX),
    "trapezoid dx": (lambda y, dx: np.trapezoid(y, dx=dx, axis=0), MATRIX, 0.25),
    "gradient": (np.gradient, VECTOR),
    "gradient spacing": (np.gradient, VECTOR, 0.3),
    "gradient edges": (lambda f, x: np.gradient(f, x, edge_order=2), VECTOR,
                       np.array([0.0, 0.5, 0.7, 1.9, 2.0])),
    "gradient some axes": (lambda f, h: np.gradient(f, 0.5, h, axis=(0, 2), edge_order=1), CUBE,
                           0.4),
    "interp": (np.interp, BETWEEN, KNOTS, HEIGHTS),
    "interp ends": (lambda x: np.interp(x, KNOTS, HEIGHTS, -1.0, 2.0), BETWEEN),
    "interp outside": (np.interp, -0.7, KNOTS, HEIGHTS),
    "interp one knot": (np.interp, BETWEEN, np.array([1.0]), np.array([2.0])),
    "interp two knots": (np.interp, BETWEEN, KNOTS[:2], HEIGHTS[:2]),
    "interp negative period": (lambda x, xp, fp: np.interp(x, xp, fp, period=-3.5), BETWEEN,
                               KNOTS[::-1] + 0.1, HEIGHTS),
    "linspace": (lambda a, b: np.linspace(a, b, 7), -1.0, 2.5),
    "linspace open": (lambda a, b: np.linspace(a, b, 4, endpoint=False, axis=-1), VECTOR, 2.5),
    "linspace none": (lambda a, b: np.linspace(a, b, 0), 1.0, 2.0),
    "logspace": (lambda a, b, base: np.logspace(a, b, 5, base=base), -1.0, 2.0, 2.5),
    "logspace bases": (lambda a, b: np.logspace(a, 1.0, 3, base=b), 0.5, np.array([2.0, 3.0])),
    "geomspace": (lambda a, b: np.geomspace(a, b, 5), 0.5, 200.0),
    "geomspace negative": (lambda a, b: np.geomspace(a, b, 3, axis=1), np.array([-2.0, 3.0]),
                           np.array([-20.0, 1.0])),
    "geomspace open": (lambda a, b: np.geomspace(a, b, 3, endpoint=False), 1.0, 8.0),
    "polyval": (np.polyval, VECTOR, MATRIX),
    "polyval scalar": (np.polyval, VECTOR, 1.2),
    "vander": (np.vander, VECTOR),
    "vander increasing": (lambda x: np.vander(x, 3, increasing=True), np.array([0.0, -1.5, 2.0]),
                          Tolerances(hessian=np.inf)),
    "polyadd": (np.polyadd, VECTOR, WEIGHTS),
    "polysub": (np.polysub, WEIGHTS, VECTOR),
    "polymul": (np.polymul, WEIGHTS, VECTOR),
    "polymul leading zeros": (lambda p: np.polymul([0.0, 0.0, 1.5, 0.0, 2.0], p), VECTOR),
    "polyder": (lambda p: np.polyder(p, 2), VECTOR),
    "polyint": (lambda p: np.polyint(p, 2, p[:3]), VECTOR),
    "poly": (np.poly, VECTOR),
    "apply_along_axis": (lambda x: np.apply_along_axis(lambda lane: lane[1:] * lane[0], 0, x),
                         MATRIX),
    "apply_along_axis scalar": (lambda x: np.apply_along_axis(np.sum, 1, x * x), CUBE),
    "apply_along_axis matrix": (
        lambda x: np.apply_along_axis(lambda lane: lane[:, None] * lane, 1, x),
        CUBE,
    ),
    "apply_over_axes": (lambda x: np.apply_over_axes(np.sum, x * x, (0, 2)), CUBE),
    "unique all": (lambda x: np.unique(x, True, True, True)[0], MATRIX),
    "unique axis": (lambda x: np.unique(x, axis=1), MATRIX),
    "unique_values": (lambda x: np.sort(np.unique_values(x)), VECTOR),
    "bincount": (lambda w: np.bincount(np.array([0, 2, 2, 5, 0]), w, minlength=8), VECTOR),
    "diagonal of matrices": (lambda x: np.linalg.diagonal(x, offset=1) * 2.0, CUBE),
    "transpose of matrices": (lambda x: np.linalg.matrix_transpose(x) * 2.0, CUBE),
    "average": (np.average, MATRIX),
    "average axis": (lambda a: np.average(a, axis=0, keepdims=True), MATRIX),
    "average all weights": (lambda a, w: np.average(a, None, w), MATRIX, MATRIX + 3.0),
    "average returned": (lambda a, w: np.average(a, 1, w, returned=True), CUBE, WEIGHTS),
    "cov": (np.cov, MATRIX), "cov one": (np.cov, VECTOR),
    "cov weights": (lambda x, w: np.cov(x, fweights=np.array([1, 2, 3, 1]), aweights=w * w, ddof=2),
                    MATRIX, MATRIX[0]),
    "corrcoef": (np.corrcoef, MATRIX),
    "corrcoef two": (lambda x, y: np.corrcoef(x, y)[0, 1], VECTOR, VECTOR**2),
    "median even": (np.median, MATRIX),
    "median axes": (lambda x: np.median(x, axis=(0, 2), keepdims=True), CUBE),
    "nanmedian": (np.nanmedian, VECTOR),
    "quantile of q": (np.quantile, VECTOR, np.array([0.1, 0.35, 0.8])),
    "percentile": (lambda x, q: np.percentile(x, q, axis=1), MATRIX, 37.0),
    "nanpercentile": (lambda x: np.nanpercentile(x, [10.0, 95.0]), MATRIX),
    "quantile weights": (lambda x: by_weight(x, WEIGHTS, [0.1, 0.5, 0.95], axis=0), MATRIX),
    "nanquantile weights": (
        lambda x: np.nanquantile(x, 0.6, weights=MATRIX + 3.0, method="inverted_cdf"),
        MATRIX,
    ),
    "cov lists of weights": (
        lambda x: np.cov(x, fweights=[1, 2, 3, 1], aweights=[0.5, 1.0, 2.0, 0.1]),
        MATRIX,
    ),
}  # fmt: skip
METHODS = (
    *("interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased",
      "normal_unbiased"),
    *("lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf"),
)  # fmt: skip
CASES |= {
    f"quantile {m}": (
        lambda x, m=m: np.quantile(x, [0.0, 0.05, 0.4, 0.97, 1.0], axis=1, method=m),
        MATRIX,
    )
    for m in METHODS
}


def split(case):
    """Return function, arguments and tolerances of a case."""
    f, *args = case
    return (f, args[:-1], args[-1]) if isinstance(args[-1], Tolerances) else (f, args, None)


# NumPy 2.5 deprecates `np.fix` in favour of `np.trunc`.
@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", CASES)
def test_all_routes_agree(name):
    f, args, tolerances = split(CASES[name])
    expect_ad(f, *args, tolerances=tolerances)
    if any(np.ndim(x) for x in args):
        expect_ad_matvar(f, *args, tolerances=tolerances)


EMPTY = np.empty(0)
# Each knot occurs twice, the first and the last one too.
JUMPS, SIZES = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0]), np.array([1.0, 3.0, -1.0, 2.0, 0.5, 4.0])
# Edge cases: infinities, nan, ties, empty arrays. Values are compared with NumPy's.
EDGES = {
    "diff of one": (np.diff, np.array([1.0])), "diff of none": (np.diff, EMPTY),
    "clip nan": (lambda x: np.clip(x, 0.0, 1.0), np.array([np.nan, np.inf, -np.inf])),
    "clip empty": (lambda x: np.clip(x, 0.0, 1.0), EMPTY),
    "nan_to_num": (np.nan_to_num, np.array([np.nan, np.inf, -np.inf, 2.0])),
    "nan_to_num values": (lambda x: np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
                          np.array([np.nan, np.inf, -np.inf, 2.0])),
    "ediff1d of one": (np.ediff1d, np.array([1.0])),
    "gradient beside nan": (np.gradient, np.array([1.0, np.nan, 2.0, np.inf, 4.0, 7.0])),
    "gradient beside nan twice": (lambda x: np.gradient(x, 0.5, edge_order=2),
        np.array([1.0, 4.0, np.nan, 2.0, 3.0])),
    "trapezoid of one": (np.trapezoid, np.array([1.0])),
    "interp nan": (lambda x: np.interp(x, KNOTS, HEIGHTS), np.array([np.nan, np.inf, -np.inf])),
    "interp ends at knots": (lambda x: np.interp(x, KNOTS, HEIGHTS, -1.0, 2.0), KNOTS),
    "interp at the only knot": (lambda x: np.interp(x, [0.0], [1.0]), np.array([0.0, 1.0])),
    "interp empty": (lambda x: np.interp(x, KNOTS, HEIGHTS), EMPTY),
    "interp jumps": (lambda x: np.interp(x, JUMPS, SIZES),
                     np.array([-0.5, 0.0, 0.3, 1.0, 1.7, 2.0, 2.5])),
    "interp jump heights": (lambda y: np.interp([-0.5, 0.3, 1.0, 1.7, 2.0, 2.5], JUMPS, y), SIZES),
    "interp jump places": (lambda x: np.interp([-0.5, 0.3, 1.7, 2.5], x, SIZES), JUMPS),
    "polyval nothing": (lambda x: np.polyval(EMPTY, x), VECTOR),
    "polyval at nothing": (lambda p: np.polyval(p, EMPTY), VECTOR),
    "polyder of a constant": (np.polyder, np.array([1.0])),
    "vander empty": (lambda x: np.vander(x, 0), VECTOR),
    "unique ties": (np.unique, np.array([3.0, 1.0, 3.0, 1.0])),
    "piecewise empty": (lambda x: np.piecewise(x, [x > 0], [np.exp]), EMPTY),
    "unwrap empty": (np.unwrap, EMPTY), "round empty": (np.round, EMPTY),
    "bincount empty": (lambda w: np.bincount(np.zeros(0, int), w, minlength=2), EMPTY),
    "apply_along_axis of one": (lambda x: np.apply_along_axis(np.sum, 0, x), np.array([1.0])),
    "median nan": (lambda x: np.median(x, axis=1), np.array([[1.0, np.nan, 2.0], [3.0, 1.0, 2.0]])),
    "nanmedian": (lambda x: np.nanmedian(x, axis=1),
                  np.array([[1.0, np.nan, 2.0, 5.0], [3.0, 1.0, 2.0, 0.0]])),
    "nanmedian all": (np.nanmedian, np.array([np.nan, 4.0, np.nan])),
    "quantile nan": (lambda x: np.quantile(x, [0.2, 0.7], axis=0),
                     np.array([[1.0, 2.0], [np.nan, 1.0], [2.0, 0.0]])),
    "quantile of one": (lambda x: np.quantile(x, 0.3), np.array([2.0])),
    "nanquantile": (lambda x: np.nanquantile(x, [0.2, 0.7], axis=0),
                    np.array([[1.0, 2.0], [np.nan, 1.0], [2.0, 0.0]])),
    "corrcoef of equals": (np.corrcoef, np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])),
    "cov of one column": (lambda x: np.cov(x, ddof=0), np.array([[1.0], [2.0]])),
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_edges(name):
    f, x = EDGES[name]
    tolerances = Tolerances(finite_difference=np.inf, hessian_finite_difference=np.inf)
    expect_ad(f, x, tolerances=tolerances)


@pytest.mark.parametrize(("f", "x", "expected"), [
    # At a bound the derivative belongs to the value.
    (lambda x: np.sum(np.clip(x, 0.0, 1.0)), [0.0, 1.0, 2.0, -1.0], [1.0, 1.0, 0.0, 0.0]),
    # At a knot the slope is that to its right, at the last knot that to its left.
    (lambda x: np.sum(np.interp(x, KNOTS, HEIGHTS)), [0.0, 0.5, 3.0, 3.5],
        [-6.0, 2.5 / 1.5, 3.5, 0.0]),
    # Among equal values the first one has the derivative.
    (lambda x: np.sum(np.unique(x)), [3.0, 1.0, 3.0], [1.0, 1.0, 0.0]),
    (lambda x: np.sum(np.nan_to_num(x)), [np.nan, np.inf, 2.0], [0.0, 0.0, 1.0]),
])  # fmt: skip
def test_conventions(f, x, expected):
    close(vm.gradient(f, np.array(x)), np.array(expected), 1e-6)


@pytest.mark.parametrize(("f", "error", "match"), [
    (lambda x: np.diff(x, -1), DOMAIN, "n is -1, but must be nonnegative!"),
    (lambda x: np.gradient(x, edge_order=3), DOMAIN, "edge_order is 3, but must be 1 or 2!"),
    (lambda x: np.gradient(x[:1]), SHAPE, "axis 0 has length 1, but must have at least 2!"),
    (lambda x: np.gradient(x, 1.0, 2.0), TypeError,
     "2 spacings are given, but must be one, or one for each of 1 axes!"),
    (lambda x: np.gradient(x, KNOTS), SHAPE, "the coordinates have shape (4,), but must have"),
    (lambda x: np.interp(x, KNOTS, x), SHAPE,
     "xp has shape (4,) and fp (5,), but both must be vectors of one length!"),
    (lambda x: np.interp(x, KNOTS, HEIGHTS, period=x[0]), TypeError,
     "period is a variable, but must be data!"),
    (lambda x: np.interp(x, KNOTS, HEIGHTS, period=0), DOMAIN, "period is 0, but must be nonzero!"),
    (lambda x: np.unwrap(x, period=x[0]), TypeError,
     "discont and period must be data, not variables!"),
    (lambda x: np.nan_to_num(x, copy=False), TypeError, "copy is False, but must be True"),
    (lambda x: np.linspace(x, 1.0, -1), DOMAIN, "num is -1, but must be nonnegative!"),
    (lambda x: np.geomspace(x - x, 1.0), DOMAIN, "start[0] is 0.0, but must be nonzero!"),
    (lambda x: np.geomspace(x, 1.0), DOMAIN, "stop is 1.0, but must be of the sign of start!"),
    (lambda x: np.vander(x[None]), SHAPE, "x has shape (1, 5), but must be a vector!"),
    (lambda x: np.poly(x[None]), TypeError,
     ("the characteristic polynomial of a matrix is not supported; use "
     "np.poly(np.linalg.eigvalsh(a))")),
    (lambda x: np.polyder(x, -1), DOMAIN, "m is -1, but must be nonnegative!"),
    (lambda x: np.polyint(x, -1), DOMAIN, "m is -1, but must be nonnegative!"),
    (lambda x: np.bincount(x), TypeError, "x is a variable, but must be integers"),
    (lambda x: np.piecewise(x, [x > 0], []), SHAPE, ("funclist has 0 items, but must have one for "
    "each")),
    (lambda x: np.apply_along_axis(np.sum, 1, x[:0, None]), SHAPE, "arr has shape (0, 1)"),
    (lambda x: np.average(x, weights=KNOTS), SHAPE,
     "weights has shape (4,), but must have the shape of a, (5,), if axis is not given!"),
    (lambda x: np.average(x, 0, KNOTS), SHAPE,
     "weights has shape (4,), but must have the shape of a, (5,), along axis 0!"),
    (lambda x: np.average(x, weights=x - x), ZeroDivisionError, "the weights sum to zero"),
    (lambda x: np.cov(x[None, None]), SHAPE, "the observations have shape (1, 1, 5)"),
    (lambda x: np.cov(x, aweights=KNOTS), SHAPE,
     "aweights has shape (4,), but must be a vector of 5 numbers!"),
    (lambda x: np.cov(x, aweights=-(x**2)), DOMAIN,
     "aweights[0] is -0.48999999999999994, but must be nonnegative!"),
    (lambda x: np.cov(x, fweights=[1, 2, 0, -3, 1]), DOMAIN,
     "fweights[3] is -3.0, but must be nonnegative!"),
    (lambda x: np.cov(x, fweights=[1, 2, 0, 1.5, 1]), TypeError,
     "fweights holds variables or fractions, but must be plain whole numbers!"),
    (lambda x: np.cov(x, fweights=x * x), TypeError,
     "fweights holds variables or fractions, but must be plain whole numbers!"),
    (lambda x: np.quantile(x, 0.5, method="none"), DOMAIN,
     ("method is 'none', but must be one of interpolated_inverted_cdf, hazen, weibull, "
     "linear")),
    (lambda x: np.nanpercentile(x, 0.5, method="no"), DOMAIN, "method is 'no', but must be one of"),
    (lambda x: np.quantile(x, 1.5), DOMAIN, "q is 1.5, but must be between 0 and 1!"),
    (lambda x: np.percentile(x, [50, 150]), DOMAIN,
     "q[1] is 150.0, but must be between 0 and 100!"),
    (lambda x: np.quantile(x, 0.5, weights=np.ones(5)), DOMAIN,
     "method is 'linear', but must be 'inverted_cdf' where weights are given!"),
    (lambda x: by_weight(x, x), TypeError, "quantile: weights holds variables, but must be data!"),
    (lambda x: by_weight(x, -np.ones(5)), DOMAIN,
     "quantile: weights[0] is -1.0, but must be nonnegative!"),
    (lambda x: by_weight(x, np.zeros(5)), DOMAIN,
     "quantile: the sum of weights is 0.0, but must be positive finite!"),
    (lambda x: by_weight(x, [0, np.inf, 1, 1, 1]), DOMAIN,
     "quantile: the sum of weights is inf, but must be positive finite!"),
    (lambda x: by_weight(x, np.ones(4)), SHAPE,
     "quantile: weights has shape (4,), but must have the shape of a, (5,), if axis is not given!"),
    (lambda x: np.clip(x, 0.0, None, min=1.0), DOMAIN,
     "min is given, but must be left out where a_min is!"),
    (lambda x: np.clip(x, 0.0, 1.0, where=x > 0), TypeError,
     "where is given, but must be left out; use np.where on the result!"),
    (lambda x: np.clip(x, 0.0, 1.0, np.zeros(5)), TypeError,
     "np.clip: a variable cannot be written into a plain array (out=, or an in-place"),
    (lambda x: np.clip(x, 0.0, 1.0, [1.0]), TypeError,
     "out is a list, but must be an array of variables, made with np.zeros_like(variable)!"),
    (lambda x: np.median(x, out=x[0]), TypeError,
     "out is a Var, but must be an array of variables, made with np.zeros_like(variable)!"),
    (lambda x: np.round(x, out=x[:2]), SHAPE,
     "out has shape (2,), but must have the shape of the result, (5,)!"),
    (lambda x: np.round(x, out=vm.matvar(VECTOR)), TypeError,
     "out is a MatVar, but must be a VarMat, as the result is!"),
    (lambda x: np.asarray(list(x), like=x, copy=False), DOMAIN,
     "copy is False, but must be None or True where a list is to become an array!"),
    (lambda x: np.linspace(x, 1.0, 3, device="gpu"), DOMAIN, "device is 'gpu', but must be 'cpu'!"),
    (lambda x: np.zeros(3, like=x) + np.full(3, x[0], like=x), TypeError,
     "np.full makes plain data"),
    (lambda x: np.logspace(x[0], 2.0, 3, dtype=int), TypeError,
     "dtype is int64, but must be float64!"),
    (lambda x: np.corrcoef(x, dtype=np.float32), TypeError,
     "dtype is float32, but must be float64!"),
    (lambda x: np.full_like(x, x[0], dtype=int), TypeError, "dtype is int64, but must be float64!"),
])  # fmt: skip
def test_refusals(f, error, match):
    refuses_as(error, match, f, vm.var(VECTOR))


def test_like():
    x = vm.var(VECTOR)
    assert type(np.zeros(3, like=x)) is np.ndarray
    assert np.arange(4.0, like=x).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert type(np.asarray([1, 2], like=x)) is np.ndarray
    y = np.array([x[0], 2.0, x[1] * x[2]], like=x)
    np.sum(y).grad()
    assert x.adj.tolist() == [1.0, VECTOR[2], VECTOR[1], 0.0, 0.0]
    assert np.asarray(x, like=x) is x
    # Like NumPy's, these functions copy.
    for function, settings in ((np.array, {}), (np.asarray, {"copy": True})):
        function(x, **settings, like=x)[0] = 9.0
    assert vm.value(x).tolist() == VECTOR.tolist()
    assert np.array(x, ndmin=3, like=x).shape == (1, 1, 5)
    assert np.ascontiguousarray(x[0], like=x).shape == np.asfortranarray(x[0], like=x).shape == (1,)
    assert np.array([[1, 2], [3, 4]], dtype=int, ndmin=3, like=x).tolist() == [[[1, 2], [3, 4]]]


LIKE = {
    "array": lambda x: np.array(x, like=x),
    "array, no copy": lambda x: np.array(x, like=x, copy=False),
    "array, in F order": lambda x: np.array(x, like=x, copy=None, order="F"),
    "array of more axes": lambda x: np.array(x, like=x, copy=None, ndmin=4),
    "asarray": lambda x: np.asarray(x, float, like=x),
    "asarray, copy": lambda x: np.asarray(x, like=x, copy=True),
    "asanyarray": lambda x: np.asanyarray(x, None, "C", like=x),
    "ascontiguousarray": lambda x: np.ascontiguousarray(x, like=x),
    "asfortranarray": lambda x: np.asfortranarray(x, like=x),
    "require": lambda x: np.require(x, None, ["C", "W"], like=x),
}
PARTS = {
    "whole": lambda x: x, "rows": lambda x: x[:2], "columns": lambda x: x[:, 1:],
    "transposed": lambda x: x.T,
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", LIKE)
def test_like_copies_where_numpy_does(name, part):
    def f(x):
        z = PARTS[part](x * 1.0)
        y = LIKE[name](z)
        y[(0,) * np.ndim(y)] = 10.0 * x[1, 2]
        return np.sum(z * np.arange(1.0, 1 + np.size(z)).reshape(np.shape(z))), y

    expect_ad(f, MATRIX)
    expect_ad_matvar(f, MATRIX)


def test_like_of_scalars():
    x = vm.var(2.0)
    assert np.asarray(x, like=x) is x
    assert np.ascontiguousarray(x, like=x).shape == np.ascontiguousarray(2.0).shape == (1,)
    assert np.array([x, 1.0], like=x, ndmin=2).shape == (1, 2)


def test_polynomials_lose_their_leading_zeros_as_numpys_do():
    p, q = np.array([0.0, 0.0, 3.0, 1.0]), np.zeros(2)
    for a, b in ((p, VECTOR), (VECTOR, p), (p, q)):
        equal(vm.value(np.polymul(vm.var(a), b)), np.polymul(a, b))
    recorded = vm.recorded(lambda a: np.sum(np.polymul(a, VECTOR) ** 2))
    # At the second point the result has another shape.
    for a in (p, np.array([2.0, 0.0, 3.0, 1.0])):
        close(recorded(a)[0], np.sum(np.polymul(a, VECTOR) ** 2), 1e-6)


def test_unique_variants_are_named():
    x = vm.var([3.0, 1.0, 3.0])
    result = np.unique_all(x)
    assert result.counts.tolist() == [1, 2]
    assert result.inverse_indices.tolist() == [1, 0, 1]
    (result.values[1] * np.unique_counts(x).values[0]).grad()
    assert x.adj.tolist() == [1.0, 3.0, 0.0]


def test_no_difference_at_all_leaves_edges_away_as_numpy_does():
    x = np.array([3.0, 1.0])
    equal(vm.value(np.diff(vm.var(x), n=0, prepend=0.0, append=9.0)), x)


def test_arguments_that_newer_versions_of_numpy_do_not_have():
    x = vm.var(MATRIX)
    with pytest.warns(DeprecationWarning, match="corrcoef: bias and ddof have no effect"):
        found = SUPPORTED[np.corrcoef](x, None, True, True, 1)
    close(vm.value(found), np.corrcoef(MATRIX), 1e-14)
    message = r"^percentile: interpolation is 'lower', but must be left out: its name is method!"
    refuses(TypeError, message, lambda: SUPPORTED[np.percentile](x, 50, interpolation="lower"))
    equal(vm.value(SUPPORTED[np.reshape](x, newshape=(4, 3))), MATRIX.reshape(4, 3))


def test_interpolation_infinitely_far_out():
    points = [np.inf, 0.5, -np.inf, 1.5]
    value, (in_knots, in_heights) = vm.value_and_grad(
        lambda xp, fp: np.sum(np.interp(points, xp, fp)), (0, 1)
    )(np.array([0.0, 1.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    assert value == 2.0 + 2.0 + 1.0 + 2.75
    close(in_heights, [0.5 + 1.0, 0.5 + 0.75, 1.0 + 0.25], 1e-15)
    close(in_knots, [-1.0, -1.0 + 0.375, 0.125], 1e-15)


@pytest.mark.parametrize(
    "f", [lambda x: np.nan_to_num(x / 0.0), lambda x: np.nan_to_num(np.log(x - x))]
)
@pytest.mark.parametrize("x", [1.5, np.array([1.5, 0.0, -2.0])])
def test_elements_that_are_replaced_have_no_derivative(f, x):
    """Both modes agree, although the derivative of what is replaced is infinite or nan."""
    with np.errstate(all="ignore"):
        reverse = vm.gradient(lambda x: np.sum(f(x)), x)
        directions = np.eye(3) if np.ndim(x) else [1.0]
        forward = [vm.jvp(lambda x: np.sum(f(x)), (x,), (e,))[1] for e in directions]
    equal(np.ravel(reverse), forward)
    assert np.all(np.isfinite(reverse))
