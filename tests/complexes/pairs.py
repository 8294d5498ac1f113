"""Functions of complex numbers as functions of pairs of real ones, which the harness knows."""

from __future__ import annotations

import numpy as np

import varmat as vm


def parts(result):
    """The real and imaginary parts of results, in one tuple; what is real stays as it is."""
    if isinstance(result, (tuple, list)):
        return _flat(result)
    return (np.real(result), np.imag(result)) if np.iscomplexobj(result) else result


def _flat(results):
    found = []
    for each in results:
        split = parts(each)
        found += split if isinstance(split, tuple) else [split]
    return tuple(found)


def of_pair(f):
    """A function of the real and imaginary parts of the first argument of `f`."""

    def function(re, im, *others):
        return parts(f(vm.to_complex(re, im), *others))

    function.__name__ = getattr(f, "__name__", "function")
    return function


def of_pairs(f):
    """A function of the real and imaginary parts of both arguments of `f`."""

    def function(a, b, c, d):
        return parts(f(vm.to_complex(a, b), vm.to_complex(c, d)))

    return function


def recorded(report):
    """Demand that the harness has recorded the function, and not passed over it."""
    assert any("record" in name for name in report.errors)
    return report
