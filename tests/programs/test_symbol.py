"""Tracing: operations on symbols become the steps that arrays would take, and impossible ones are
refused.
"""

import operator

import numpy as np
import pytest
import scipy.special
from comparing import refuses
from layouts import X, Y, check_traced, traced
from numpy.testing.overrides import get_overridable_numpy_ufuncs

from varmat.programs.build.symbol import ANSWERS, UntraceableError
from varmat.programs.ir.interpret import interpret

# Functions of a matrix, a vector and a number.
TRACED = {
    "operators": lambda x, y, s: -x + 2.0 * y - s / (1.0 + y**2) + abs(x) + +x,
    "reflected": lambda x, y, s: 1.0 - x + 3.0 / (y + 2.0) + Y * s + np.float64(2.0) * x,
    "comparisons": lambda x, y, s:
        np.where((x > y) & (x < 2.0) | ~(y >= s), x, 0.5 * y) + np.where(x == x, 1.0, y) * (x != y),
    "choices": lambda x, y, s: np.where(x > 0.2, np.where(y <= s, x, 1.0), y),
    "ufuncs": lambda x, y, s:
        np.exp(x) + np.maximum(x, y) * np.hypot(x, s) + np.square(y)
        + scipy.special.gammaln(x + 5.0),
    "tests": lambda x, y, s:
        np.where(np.isfinite(x), x, 0.0) + np.where(np.isnan(y), 1.0, y)
        + np.where(np.signbit(x), s, x),
    "parts": lambda x, y, s:
        x[1] + x[:, ::-1][0] * x[0, 1] + x[..., 1:2] + x[None, 1][0] + y[[0, 0, 1]]
        + x.T[[2, 1, 0], 0],
    "cumulative": lambda x, y, s: np.add.accumulate(x) * np.multiply.accumulate(y) + s,
    "elements": lambda x, y, s: x[1, -1] * y[0] + y[-1] + s,
    "a mask": lambda x, y, s: x[X > 0.0] + x[:, np.array([True, False, True])].sum(),
    "rows of a matrix": lambda x, y, s: sum(row * (i + 1.0) for i, row in enumerate(x)) + len(x),
    "lists": lambda x, y, s: np.add(y, [s, 1.0, s * 2.0]),
    "writing": lambda x, y, s: written(x, y, s),
}  # fmt: skip


def written(x, y, s):
    z = x * 1.0
    z += y
    z *= 2.0
    np.add(z, s, out=z)
    z[0] = y
    z[1, :2] = 3.0
    z[:, 2] = s
    return z


@pytest.mark.parametrize("name", TRACED)
def test_symbols_do_what_arrays_do(name):
    check_traced(TRACED[name])


@pytest.mark.parametrize("f", [
    bool, float, int, list, np.asarray, np.array,
    lambda x: 1.0 if x[0, 0] > 0.0 else 0.0,
    lambda x: x[x > 0.0],
    lambda x: x.item(0),
    lambda x: x.tolist(),
    np.sort, np.argmax,
    lambda x: range(3)[x[0, 0]],
    lambda x: 1.0 in x,
    lambda x: x.astype(int),
    np.any,
    lambda x: x.reshape(-1, order="F"),
    lambda x: np.cumsum(x, dtype=int),
    lambda x: bool((x > 0).all()),
    np.linalg.eigvalsh, np.frexp,
    lambda x: x.real,
    lambda x: np.add(x, x, where=X > 0),
    lambda x: np.add(x, 1.0, out=np.empty((2, 3))),
    lambda x: np.gcd(x, 2),
    lambda x: x + "a",
    lambda x: x + np.array([1j, 2.0, 3.0]),
    lambda x: np.add.at(x, 0, 1.0),
    lambda x: x[x],
    lambda x: x[0].__iadd__(x),
    lambda x: next(iter(x[0, 0])),
    lambda x: len(x[0, 0]),
])  # fmt: skip
def test_reading_numbers_of_symbols_is_refused(f):
    # The rows of a symbol can be listed, but its numbers are not known.
    if f is list:
        f = lambda x: list(map(float, x[0]))  # noqa: E731
    refuses((UntraceableError, TypeError, ValueError), None, traced, lambda x: f(x), X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("other", [
    None, lambda y: y, lambda y: y > 0.0, lambda y: (y > 0.0).astype(float), lambda y: Y < 1.0,
    lambda y: True, lambda y: 2.5, lambda y: np.array([2, -1, 1]),
])  # fmt: skip
@pytest.mark.parametrize("kind", [
    lambda y: y, lambda y: y > 0.3, lambda y: (y > 0.3).astype(float), lambda y: np.all(y < 1.0),
])  # fmt: skip
def test_functions_of_numpy_take_symbols_of_truth_values_as_arrays_or_refuse(kind, other):
    number = 1 if other is None else 2
    functions = [f for f in get_overridable_numpy_ufuncs() if f.nin == number]
    functions += [*ANSWERS, operator.matmul, operator.setitem, joined, chosen]
    if number == 1:
        functions += [getattr(f, m) for f in functions for m in ("reduce", "accumulate")
                      if isinstance(f, np.ufunc)]  # fmt: skip
    for function in functions:

        def f(y, function=function):
            x = kind(y)
            result = function(x) if other is None else function(x, other(y))
            result = x if result is None else result
            return (result + result) * 1.0  # a sum of truth values is one too

        try:
            (program, _), expected = traced(f, Y), f(Y.copy())
        except (UntraceableError, TypeError, ValueError, AttributeError, np.exceptions.AxisError):
            continue
        if np.asarray(expected).dtype == float:  # NumPy may take 16 bits
            found = interpret(program, Y)[1]
            np.testing.assert_allclose(found, expected, 1e-14, err_msg=f"{function}: {program}")


def joined(x, *y):
    return np.concatenate([np.reshape(part, -1) for part in (x, *y)])


def chosen(x, y):
    return np.where(Y < 1.0, x, y)


def test_writing_where_others_look_is_refused():
    """Otherwise one array would have two values."""

    def into_a_part(x):
        x[0][:] = 1.0
        return x

    def under_a_part(x):
        y = x * 1.0
        part = y[0]
        y += 1.0
        return part

    for f in (into_a_part, under_a_part):
        refuses(UntraceableError, None, traced, f, X)


def test_data_stays_data():
    """Results that do not depend on symbols do not become steps."""
    program, _ = traced(lambda x: x + np.sum(np.exp(X) * 2.0) + np.outer(X[:, 0], Y), X)
    assert list(program.counts()) == ["add"]
