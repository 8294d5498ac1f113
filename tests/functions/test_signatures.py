"""Every argument of every NumPy function that we answer for either does what it does in NumPy, or
is refused by its name.
"""

import inspect
import warnings

import numpy as np
import pytest
from numpy.testing.overrides import get_overridable_numpy_array_functions

import varmat as vm
from varmat.core import dispatch
from varmat.core.elementwise import Elementwise
from varmat.functions.arrays.constant import CREATORS
from varmat.functions.arrays.writing import WRITERS

A = np.array([[2.0, 0.3, -0.4], [0.3, 1.5, 0.2], [-0.4, 0.2, 1.1]])
V = np.array([0.4, 1.7, 0.9])
MASK = np.array([[True, False, True], [True, True, False], [False, True, True]])


# Stands for an array to write the result into.
OUT = object()

# Function -> its required arguments, if they are not all the same matrix. Arrays of floats become
# variables.
REQUIRED = {
    "append": (A, A), "apply_along_axis": (np.sum, 0, A), "apply_over_axes": (np.sum, A, (0,)),
    "array_split": (A, 2), "astype": (A, float), "bincount": (np.array([0, 2, 1]),),
    "broadcast_to": (A, (2, 3, 3)), "choose": (np.array([1, 0, 1]), (V, 2.0 * V)),
    "clip": (A, 0.1, 1.2), "column_stack": ((V, V),),
    "compress": (np.array([True, False, True]), A), "concatenate": ((A, A),), "convolve": (V, V),
    "correlate": (V, V), "cross": (A, V), "cumulative_prod": (V,), "cumulative_sum": (V,),
    "delete": (A, 1), "dsplit": (A[..., None], 1), "dstack": ((A, A),), "expand_dims": (A, 0),
    "extract": (MASK, A), "full_like": (A, 3.0), "geomspace": (V, 2.0 * V), "gradient": (A,),
    "histogram": (np.array([0, 2, 1]),), "hsplit": (A, 3), "hstack": ((A, A),), "insert": (A, 1, V),
    "interp": (V, np.array([0.0, 1.0, 2.0]), V), "linspace": (V, 2.0 * V), "logspace": (V, 2.0 * V),
    "lstsq": (A, V), "matrix_power": (A, 2), "may_share_memory": (A, A), "moveaxis": (A, 0, 1),
    "multi_dot": ((A, A, A),), "nanpercentile": (A, 40.0), "nanquantile": (A, 0.4), "outer": (V, V),
    "pad": (A, 1), "partition": (A, 1), "percentile": (A, 40.0),
    "piecewise": (V, [V > 1.0], [3.0, 4.0]), "poly": (V,), "polyadd": (V, V), "polyder": (V,),
    "polyfit": (V, V, 1), "polyint": (V,), "polymul": (V, V), "polysub": (V, V), "polyval": (V, V),
    "quantile": (A, 0.4), "repeat": (A, 2), "reshape": (A, (9,)), "resize": (A, (4, 4)),
    "roll": (A, 1), "rollaxis": (A, 1), "select": ([MASK], [A]), "shares_memory": (A, A),
    "sliding_window_view": (V, 2), "split": (A, 3), "stack": ((A, A),), "swapaxes": (A, 0, 1),
    "take": (A, [2, 0]), "take_along_axis": (A, np.argsort(A, 0), 0), "tensordot": (A, A),
    "tensorsolve": (A, V), "tensorinv": (A,), "tile": (A, 2),
    "trim_zeros": (np.array([0.0, 1.0, 0.0]),), "vander": (V,), "vdot": (V, V), "vecdot": (A, A),
    "vsplit": (A, 3), "where": (MASK, A, A), "block": ([V, V],), "broadcast_arrays": (V, A),
    "einsum": ("ij,jk->ik", A, A), "meshgrid": (V, A[0]), "atleast_3d": (V, A),
    "atleast_2d": (V, A), "atleast_1d": (V, A),
}  # fmt: skip
# Argument -> values other than its default. The key is "function.argument" where a function needs
# special values.
GIVEN = {
    "UPLO": ["U"],                                "N": [2],
    "append": [1.0],                              "aweights": [V, [1.0, 2.0, 0.5]],
    "axes": [0, (0, 1)],                          "axis": [0, 1],
    "axis1": [1],                                 "axis2": [0],
    "axisa": [0],                                 "axisb": [0],
    "axisc": [0],                                 "base": [2.0],
    "bias": [True],                               "bins": [2, [0, 1, 3]],
    "casting": ["safe", "unsafe", "no"],          "compute_uv": [False],
    "copy": [True, False],                        "correction": [1],
    "cov": [True, "unscaled"],                    "ddof": [2],
    "decimals": [1],                              "default": [7.0],
    "density": [True],                            "descending": [True],
    "device": ["cpu"],                            "discont": [0.1],
    "dtype": [float, np.float32],                 "dx": [0.5],
    "edge_order": [2],                            "endpoint": [False],
    "equal_nan": [False],                         "full": [True],
    "full_matrices": [False],                     "fweights": [[1, 2, 3], np.array([3, 0, 1])],
    "hermitian": [True],                          "histogram.weights": [V],
    "include_initial": [True],                    "increasing": [True],
    "ind": [1],                                   "indexing": ["ij"],
    "initial": [0.25],                            "interpolation": ["lower"],
    "k": [1],                                     "keepdims": [True],
    "kind": ["stable"],                           "left": [9.0],
    "m": [2],                                     "max": [1.0],
    "max_work": [0],                              "mean": [A.mean()],
    "method": ["lower", "weibull", "nonsense"],   "min": [0.2],
    "minlength": [5],                             "mode": ["clip", "edge", "full"],
    "n": [2],                                     "nan": [1.0],
    "ndmax": [1, 2],                              "ndmin": [3],
    "neginf": [1.0],                              "newshape": [(3, 3)],
    "num": [4],                                   "offset": [1],
    "optimize": [True],                           "ord": [1, np.inf],
    "order": ["F", "C"],                          "out": [OUT],
    "overwrite_input": [True],                    "p": [1],
    "period": [1.0],                              "polyint.k": [3.0],
    "posinf": [1.0],                              "prepend": [1.0],
    "range": [(0.0, 2.0)],                        "rcond": [0.3],
    "requirements": ["O", ["F", "W"]],            "return_counts": [True],
    "return_index": [True],                       "return_inverse": [True],
    "returned": [True],                           "retstep": [True],
    "right": [8.0],                               "rot90.axes": [(1, 0)],
    "rowvar": [False],                            "rtol": [0.3, None],
    "shape": [(2, 2)],                            "sorted": [False],
    "sparse": [True],                             "stable": [True],
    "start": [2],                                 "subok": [True, False],
    "svd.hermitian": [],  # NumPy then chooses other signs of the vectors
    "tensordot.axes": [1, ((0,), (1,))],          "tensorsolve.axes": [(0,)],
    "to_begin": [1.0],                            "to_end": [1.0],
    "tol": [10.0],                                "transpose.axes": [(1, 0)],
    "trim": ["f"],                                "trim_zeros.axis": [0],
    "upper": [True],                              "w": [V + 1.0],
    "weights": [A + 1.0],                         "where": [MASK],
    "writeable": [True],                          "x": [V],
    "y": [A + 1.0],
}  # fmt: skip


def signature_of(function):
    try:
        return inspect.signature(function)
    except ValueError:  # a built-in function before NumPy 2.4
        return None


def answered():
    """Return the functions with an answer of their own and a signature."""
    for function in get_overridable_numpy_array_functions():
        answer = dispatch.SUPPORTED.get(function)
        if (
            answer is None
            or isinstance(answer, Elementwise)
            or function in WRITERS  # tests/functions/arrays/test_writing.py
            or function.__name__ in CREATORS.split()
        ):
            continue
        if signature_of(function) is not None:
            yield function


FUNCTIONS = sorted(answered(), key=lambda f: f"{f.__module__}.{f.__name__}")


def of_variables(thing, made):
    """Replace arrays of floats by variables; the same array becomes the same variable."""
    if isinstance(thing, (tuple, list)):
        return type(thing)(of_variables(item, made) for item in thing)
    if not isinstance(thing, np.ndarray) or thing.dtype != float:
        return thing
    return made.setdefault(id(thing), vm.var(thing))


def calls(function):
    """Yield all calls that give one of the optional arguments: its name, and the positional and
    named arguments of the call.
    """
    parameters = [p for p in signature_of(function).parameters.values() if p.name != "like"]
    required = [
        p
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    values = REQUIRED.get(function.__name__, (A,) * len(required))
    yield "", values, {}
    if required and all(p.kind is p.POSITIONAL_OR_KEYWORD for p in required):
        yield (
            required[0].name,
            (),
            {p.name: value for p, value in zip(required, values, strict=False)},
        )
    before = []
    for p in parameters[len(values) :]:
        if p.default is p.empty:
            continue  # the parameter is *args or **kwargs
        for value in GIVEN.get(f"{function.__name__}.{p.name}", GIVEN[p.name]):
            yield p.name, values, {p.name: value}
            if p.kind is p.POSITIONAL_OR_KEYWORD:
                yield p.name, (*values, *before, value), {}
        before.append(False if repr(p.default) == "<no value>" else p.default)


def outcome(function, args, settings):
    """Return the result of a call, or its exception."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*args, **settings)
        except Exception as error:
            return error


def flat(result):
    if isinstance(result, (tuple, list)):
        return [item for part in result for item in flat(part)]
    return [dispatch.plain(result)]


def without(out, args, settings):
    """Return the arguments with something else in place of `OUT`."""
    return [out if x is OUT else x for x in args], {
        name: out if x is OUT else x for name, x in settings.items()
    }


def fault(function, name, args, settings):
    """Return what is wrong with the answer to a call, or None."""
    expected = outcome(function, *without(None, args, settings))
    if "like" in signature_of(function).parameters:
        settings = {**settings, "like": A}
    shape = () if isinstance(expected, (Exception, tuple, list, type)) else np.shape(expected)
    made = {}
    given = without(
        vm.var(np.zeros(shape)),
        of_variables(args, made),
        {k: of_variables(x, made) for k, x in settings.items()},
    )
    result = outcome(function, *given)
    if isinstance(result, Exception):
        text = str(result)
        names = [
            f.__name__
            for f, answer in dispatch.SUPPORTED.items()
            if answer is dispatch.SUPPORTED[function]
        ]
        if "unexpected keyword" in text or "positional argument" in text:
            return text
        if isinstance(expected, Exception) or (
            name and name in text and any(each in text for each in names)
        ):
            return None
        return f"raises {result!r} where NumPy does not"
    if isinstance(expected, Exception):
        return f"returns {result}, where NumPy raises {expected!r}"
    if isinstance(expected, type):
        return None if result is expected else f"returns {result}, where NumPy returns {expected}"
    one, other = flat(expected), flat(result)
    if len(one) != len(other) or [*map(np.shape, one)] != [*map(np.shape, other)]:
        return f"returns {result}, where NumPy returns {expected}"
    if name == "dtype" and np.asarray(one[0]).dtype != np.asarray(other[0]).dtype:
        return f"takes no notice of the dtype {given}"
    equal = (np.allclose(x, y, rtol=1e-12, equal_nan=True) for x, y in zip(one, other, strict=True))
    return (
        None
        if function is np.empty_like or all(equal)
        else f"returns {result}, where NumPy returns {expected}"
    )


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_argument_has_its_effect_or_is_refused_by_name(function):
    faults = [
        (name, args, settings, fault(function, name, args, settings))
        for name, args, settings in calls(function)
    ]
    assert [each for each in faults if each[-1] is not None] == []
