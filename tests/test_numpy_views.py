"""Views of arrays that wait for variables, and of variables: whatever NumPy returns as a view
follows the whole, and nothing else does.

The functions are not listed. Every public function of NumPy and every method of an array is tried
with some arguments on plain arrays, and those whose result lies in the memory of the array are
kept.
"""

from functools import cache

import numpy
import pytest

import varmat as vm
import varmat.numpy as np

SHAPE = (3, 3)
DATA = numpy.arange(1.0, 10.0).reshape(SHAPE)
POINT = numpy.array([0.5, -2.0, 3.0])
# Further arguments, after the array and before it.
AFTER = [
    (), (0,), (1,), (2,), (3,), (-1,), (9,), (0, 1), (0, 2), (1, 0), ((3, 3),), ((9,),),
    ((1, 9),), ((0, 1),), ((1, 0),), ((2, 3, 3),), ([1, 2],), ([1, 2], 0), (3, 1), (2, 1),
    ([[0, 1, 2], [1, 2]],), ((2, 2),), ((2, 2), (0, 1)), ([0, 1],), ([1, 0], [0, 1]), ("C",),
    ("F",), ("K",), (float,), (int,), (complex,), (9, "F"), ((3, 3), "F"), (0, None),
]  # fmt: skip
NAMED = [
    {}, {"copy": False}, {"axis": 1}, {"axis": 0}, {"order": "F"}, {"writeable": True},
]  # fmt: skip
SUBSCRIPTS = ("ij->ji", "ii->i", "ij", "ij->ij", "ij->")
# Parts of the array of which the functions are taken.
PARTS = {
    "whole": lambda z: z, "T": lambda z: z.T, "reversed": lambda z: z[::-1, ::-1],
    "every other": lambda z: z[::2, 1:], "row": lambda z: z[1], "column": lambda z: z[:, 1],
    "one": lambda z: z[1:2, 1:2], "element": lambda z: z[1, 1, ...],
    "windows": lambda z: np.lib.stride_tricks.sliding_window_view(z, 2, 0),
    "broadcast": lambda z: np.broadcast_to(z, (2, 3, 3)),
}  # fmt: skip
# Not a function of the array alone: they open files, show warnings, change NumPy or the array.
LEFT_OUT = {
    "apply_along_axis", "as_strided", "base", "byteswap", "copyto", "ctypes", "data", "dump",
    "einsum_path", "fill", "fill_diagonal", "fix", "flat", "fromfile", "fromregex",
    "genfromtxt", "getfield", "info", "loadtxt", "memmap", "partition", "place", "put",
    "put_along_axis", "putmask", "resize", "save", "savetxt", "savez", "savez_compressed",
    "set_numeric_ops", "set_printoptions", "setbufsize", "seterr", "seterrcall", "setfield",
    "setflags", "show_config", "show_runtime", "sort", "test", "tofile",
}  # fmt: skip


def functions():
    """Every public function of NumPy that is no ufunc, and every method and attribute of arrays."""
    found = {}
    for prefix, module in (
        ("", numpy), ("linalg.", numpy.linalg), ("fft.", numpy.fft),
        ("lib.stride_tricks.", numpy.lib.stride_tricks),
        ("lib.array_utils.", numpy.lib.array_utils),
    ):  # fmt: skip
        for name in dir(module):
            thing = getattr(module, name)
            if (
                not name.startswith("_")
                and name not in LEFT_OUT
                and callable(thing)
                and not isinstance(thing, (type, numpy.ufunc))
            ):
                # By its name, so that it is varmat.numpy's while something is differentiated.
                found[f"np.{prefix}{name}"] = _named(f"{prefix}{name}")
    for name in dir(numpy.ndarray):
        if not name.startswith("_") and name not in LEFT_OUT:
            found[f".{name}"] = _method(name)
    return found


def _named(path):
    def call(z, *args, **named):
        module = np
        for name in path.split("."):
            module = getattr(module, name)
        return module(z, *args, **named)

    return call


def _method(name):
    def call(z, *args, **named):
        attribute = getattr(z, name)
        if not callable(attribute):
            if args or named:
                raise TypeError(name)
            return attribute
        return attribute(*args, **named)

    return call


def items(result):
    if isinstance(result, (list, tuple)):
        return [each for item in result for each in items(item)]
    return [result]


@cache
def recipes():
    """Calls whose result is a view of the array, for the whole or for a part of it."""
    calls = {}
    for name, function in functions().items():
        for args in AFTER:
            calls[f"{name}{args}"] = _call(function, args, {})
        for named in NAMED:
            for args in ((), (float,), (0,), ((2, 2),)):
                calls[f"{name}{args}{named}"] = _call(function, args, named)
        calls[f"{name}(z, z)"] = lambda z, f=function: f(z, z)
        calls[f"{name}([z])"] = lambda z, f=function: f([z])
        for text in SUBSCRIPTS:
            calls[f"{name}({text!r}, z)"] = lambda z, f=function, text=text: f(text, z)
    found = {}
    layouts = set()
    useful = set()
    for which in PARTS:
        # Those that give no view of these need not be tried on others.
        chosen = calls if which in ("whole", "row", "broadcast") else useful
        for text in sorted(chosen):
            shared = views_of(which, calls[text])
            if shared:
                useful.add(text)
                arrays = shared.values()
                layout = (which, text.split("(")[0], *((a.shape, a.strides) for a in arrays))
                if layout not in layouts and {a.dtype.kind for a in arrays} == {"f"}:
                    layouts.add(layout)
                    found[f"{text} of {which}"] = _chosen(calls[text], PARTS[which], list(shared))
    return found


def _chosen(call, part_of, which):
    def take(z):
        results = items(call(part_of(z)))
        return [results[i] for i in which]

    return take


def views_of(which, call):
    """The results of a call with a part of the data that lie in its memory, by their places."""
    z = DATA.copy()
    try:
        results = items(call(PARTS[which](z)))
    except Exception:  # whatever wrong arguments raise
        return {}
    return {
        i: each
        for i, each in enumerate(results)
        if type(each) is numpy.ndarray
        and numpy.may_share_memory(each, z)
        and numpy.array_equal(z, DATA)
    }


def _call(function, args, named):
    return lambda z: function(z, *args, **named)


def score(results, z):
    total = np.sum(z * numpy.arange(9.0).reshape(SHAPE))
    for k, each in enumerate(results):
        shape = numpy.shape(each)
        weights = numpy.arange(1.0, 1.0 + numpy.prod(shape)).reshape(shape) ** 2 + k
        total = total + np.sum(each * weights)
    return total


def waiting(x):
    z = np.zeros(SHAPE)
    z[...] = DATA
    return z


def variable(x):
    return DATA + 0.0 * x[0]


def was_waiting(x):
    z = waiting(x)
    z[0, 1] = x[1]
    return z


def fortran(x):
    z = np.zeros(SHAPE, order="F")
    z[...] = DATA
    return z


STARTS = {f.__name__: f for f in (waiting, variable, was_waiting, fortran)}


def through_the_whole(x, start, take):
    z = start(x)
    results = take(z)
    z[1] = x
    z[0, 0] = x[0]
    z[:, 2] = 2.0 * x[::-1]
    return score(results, z)


def through_the_view(x, start, take):
    z = start(x)
    results = take(z)
    for k, each in enumerate(results):
        each[...] = x[k % 3]
        if numpy.ndim(each):
            each[..., :1] = x[1] * 3.0
    return score(results, z)


def outcome(f, *args):
    try:
        return f(*args)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        return "read-only"


# Functions that NumPy gives views of and that are refused for variables, with a sentence: a foreign
# protocol, arguments that are no array, and those that write into the array.
REFUSED = {
    "np.broadcast_arrays", "np.from_dlpack", "np.frombuffer", "np.histogramdd", "np.meshgrid",
    "np.nan_to_num", "np.histogram", "np.histogram_bin_edges", "np.ix_", "np.ravel", ".ravel",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scenario", [through_the_whole, through_the_view])
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_views_follow_as_numpys_do(start, scenario):
    """Each start tries one half of the views in one scenario, and the other half in the other."""
    compared, wrong, refused = 0, [], set()
    half = (list(STARTS.values()).index(start) + (scenario is through_the_view)) % 2
    for text, take in list(recipes().items())[half::2]:
        if start is variable and text.endswith((" of element", " of one")):
            continue  # an element of a variable is a number

        def f(x, take=take):
            return scenario(x, start, take)

        try:
            expected = outcome(f, POINT)
        except Exception:  # of an array in another order it is no view
            continue
        compared += 1
        try:
            found = outcome(vm.value_and_grad(f), POINT)
        except (TypeError, AttributeError):
            refused.add(text.split("(")[0])
            continue
        if type(expected) is str or type(found) is str:
            if expected != found and text.split("(")[0] not in REFUSED:
                wrong.append(text)
            continue
        value, slope = found
        # All is linear.
        exact = numpy.array([f(POINT + h) - expected for h in numpy.eye(3)])
        if value != pytest.approx(expected, rel=1e-13) or not numpy.allclose(slope, exact, 1e-12):
            wrong.append(text)
    assert not wrong
    assert refused <= REFUSED
    assert compared > 250


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("derivative", ["forward", "recorded"])
def test_views_follow_in_other_modes(derivative):
    for text, take in list(recipes().items())[::11]:

        def f(x, take=take):
            return through_the_whole(x, waiting, take)

        if text.split("(")[0] in REFUSED:
            continue
        exact = numpy.array([f(POINT + h) - f(POINT) for h in numpy.eye(3)])
        if derivative == "forward":
            value, slope = vm.jvp(f, (POINT,), (numpy.array([1.0, 10.0, 100.0]),))
            exact = exact @ [1.0, 10.0, 100.0]
        else:
            value, slope = vm.recorded(f)(POINT)
        assert value == pytest.approx(f(POINT), rel=1e-13), text
        numpy.testing.assert_allclose(slope, exact, rtol=1e-12, err_msg=text)


def test_numpy_has_many_views():
    """The search finds what it should."""
    names = {text.split("(")[0] for text in recipes()}
    assert {"np.array_split", "np.diag", "np.einsum", "np.broadcast_to", ".view"} <= names
    assert len(names) > 60
    assert len(recipes()) > 500
