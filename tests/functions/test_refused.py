"""Functions that are refused, each with a message that says what to use instead."""

import re

import numpy as np
import pytest
from comparing import close, refuses
from kinds import KINDS, PLAIN, call, full_name, public_functions, tables
from numpy.testing.overrides import get_overridable_numpy_ufuncs

import varmat as vm
from varmat.core import dispatch

# NumPy 2.0, the oldest version that we support, lacks what 2.1 added.
NEW_NUMPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


@pytest.mark.parametrize("kind", KINDS)
def test_refusals_name_the_function_and_an_alternative(kind):
    x = KINDS[kind](PLAIN)
    for function in [*public_functions(), *get_overridable_numpy_ufuncs()]:
        if tables(function) == ["refused"]:
            sentence = dispatch.REFUSED.get(function) or dispatch.REFUSED[function.__module__]
            name = function.__name__ if isinstance(function, np.ufunc) else full_name(function)
            message = re.escape(f"{name} is not differentiable here: {sentence}")
            refuses(TypeError, message, call, x, function)


@pytest.mark.parametrize(("f", "match"), [
    (np.roots, (r"numpy.roots is not differentiable here: use np.linalg.eigvals of the companion "
        r"matrix, or differentiate the")),
    (lambda x: np.save("x.npy", x), r"numpy.save is not .* write varmat.value\(x\)"),
    (lambda x: np.put(np.ones(2), 0, x[0, 0]), r"np.put is not .* into a plain array"),
    (lambda x: np.full_like(np.arange(3), x[0, 0]),
        r"as of np.full or of np.full_like of data, use np.broadcast_to"),
    (lambda x: np.copyto(np.zeros((2, 3)), x), r"np.copyto is not .* into a plain array"),
    (np.histogram_bin_edges,
        r"numpy.histogram_bin_edges is not .* pass the plain numbers, varmat.value\(x\)"),
    (lambda x: np.bitwise_and(x, 1), r"bitwise_and is not .* it works on integers"),
    (np.nextafter, r"nextafter"),
    (np.emath.sqrt,
        r"numpy.lib.*scimath.*sqrt is not .* use the function of the same name in np itself"),
    *([(lambda x: np.strings.upper(x),
        r"numpy.strings.upper is not .* it works on strings")] if NEW_NUMPY else []),
    (np.frompyfunc(lambda x: x, 1, 1),
        r"is not differentiable here: it is not known to varmat; see varmat.elementwise"),
    (lambda x: np.gcd.reduce(x), r"np.gcd.reduce is not differentiable here"),
])  # fmt: skip
def test_refusals_in_use(f, match):
    if f is np.nextafter:
        f = lambda x: np.nextafter(x, 1.0)  # noqa: E731 - a binary ufunc
    refuses(TypeError, match, f, vm.var(PLAIN))


def test_the_advice_of_the_messages_works():
    """The messages advise on roots of a polynomial, sums of weights in bins, integers, and a
    polynomial fit.
    """
    c = np.array([2.0, -3.0, -4.0, 1.5])

    def roots(c):
        companion = np.concatenate([(-c[1:] / c[0])[None], np.eye(2, 3)])
        return np.sort(np.real(np.linalg.eigvals(companion)))

    close(vm.value(roots(vm.var(c))), np.sort(np.roots(c)), 1e-12)
    for root, slope in zip(np.sort(np.roots(c)), vm.jacobian(roots, c), strict=True):
        close(slope, -np.vander([root], 4)[0] / np.polyval(np.polyder(c), root), 1e-11)
    data, edges, w = [0.5, 1.5, 1.7], [0.0, 1.0, 2.0], vm.var([1.0, 2.0, 3.0])
    sums = np.bincount(np.digitize(data, edges), weights=w)[1:]
    assert vm.value(sums).tolist() == np.histogram(data, edges, weights=[1.0, 2.0, 3.0])[0].tolist()
    assert np.gcd(vm.var([4.0, 6.0]).astype(int), 2).tolist() == [2, 2]
    x, y = np.array([0.0, 1.0, 2.0, 4.0]), vm.var([1.0, 3.0, 2.0, 0.0])
    close(vm.value(np.linalg.lstsq(np.vander(x, 3), y)[0]), np.polyfit(x, vm.value(y), 2), 1e-12)
