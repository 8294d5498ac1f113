"""Comparisons in recordings: they select anew at every point, and some are refused."""

import numpy as np
import pytest
from comparing import close, equal, near, refuses
from numpy.testing.overrides import (
    get_overridable_numpy_array_functions,
    get_overridable_numpy_ufuncs,
)

import varmat as vm
from varmat.programs.ir.program import RecordingError

abscissas = np.arange(6.0)
MASK = np.array([True, False] * 3)


def within(condition, x):
    same = condition
    same &= x < 1
    condition |= x > 2
    return same


SELECTIONS = {
    "np.where": lambda x: np.sum(np.where(x > 0, x**2, -x)),
    "data on the left": lambda x:
        np.sum(np.where(abscissas < x[0], x[1], x[2]) + np.where(np.less(abscissas, x[3]), x, 1.0)),
    "and": lambda x: np.sum(np.where((x > 0) & (x < 1), x**3, 0.1 * x)),
    "or, with data": lambda x: np.sum(
        np.where((x > 0.5) | (x < -0.5) | MASK, x**3, 0.1 * x) + np.where(MASK & (x > 0), x, 0)
    ),
    "exclusive or": lambda x: np.sum(np.where((x > 0) ^ (x > 0.5) ^ MASK, x, x**2)),
    "not": lambda x: np.sum(np.where(~(x > 0), x**3, 0.1 * x)),
    "as numbers": lambda x:
        np.sum((x > 0) * x + 2.0 * (x <= 0.3) * np.exp(x) + (1.0 - (x >= 0)) - (x < 0.1) / 2),
    "their sums": lambda x:
        np.sum(x * ((x > 0) * 1.0 + 1.0 * (x > 0.5))) + np.sum((x != 0).astype(float) * x**2),
    "truth values remain truth values": lambda x:
        np.sum(x * ((x > 0) * (x < 1) * MASK * 1.0 + MASK * (x > -1) * 1.0)),
    "ufuncs of truth values": lambda x: np.sum(
        np.where(
            np.logical_and(x > 0, x < 1) | np.logical_not(x > -1) | np.logical_xor(MASK, x > 0.5),
            x**2,
            -x,
        )
        + np.where(np.bitwise_or(x > 0, np.invert(MASK)) & (x < 2), x, 0.0)
    ),
    "sums of truth values": lambda x: np.sum(x * (((x > 0) + (x > 0.5) + MASK) * 1.0)),
    "ufuncs of numbers": lambda x:
        np.sum(np.multiply(x, x > 0) + np.minimum(x > 0, x) + np.add(abscissas, x < 1) * x),
    "other operators": lambda x:
        np.sum((x > 0) ** 2 * x + 2.0 ** (x > 0) * x + ((x > 0) % 2 + (x > 1) // 2) * x)
        + (x > 0) @ x + abscissas @ (x > 0) + x @ (x > 0.5),
    "scalars": lambda x:
        np.where(x[0] > x[1], x[0] * x[2], x[1] ** 2) + np.where(x[2] < 1.0, x[0], x[1]),
    "np.select": lambda x: np.sum(np.select([x > 0.5, x > 0], [x**2, x], np.exp(x))),
    "broadcasting": lambda x:
        np.sum(np.where(x.reshape(2, 3) > x[:3], x.reshape(2, 3) * 2, x[:3] ** 2)),
    "elements": lambda x:
        np.where((x > 0)[2], x[0], x[1] ** 2) + np.sum(np.where((x > 0)[::2], x[1::2], 0.0)),
    "ufuncs": lambda x: np.sum(
        np.where(np.greater(x, 0.2), x, x**2) + np.where(np.equal(abscissas - 3, x), 1.0, x)
    ),
    "where the other choice is undefined": lambda x:
        np.sum(np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0)),
    "a removable singularity": lambda x:
        np.sum(np.where(x == 0.0, 1.0, np.sin(x) / np.where(x == 0.0, 1.0, x))),
    "one in another": lambda x: np.sum(np.where(x > 0, np.where(x > 1, x**2, x), 0.0)),
    "what is summed": lambda x:
        np.mean(x, where=x > -5) + np.var(x, where=x < 5) + np.sum(x, where=x > 0),
    "rows of the library": lambda x: np.sum(vm.fma(x > 0, x, vm.lmultiply(x < 1, np.exp(x)))),
    "rearranged": lambda x: np.sum(
        np.where(np.broadcast_to(np.reshape(x[:6] > 0.2, (2, 3)), (2, 2, 3)), 2.0, x[0])
        + np.where(np.flip(np.transpose(np.reshape(np.roll(x[:6] > 0, 1), (3, 2)))), 0.5, x[1])
        + np.where(np.tile(np.repeat(x[:3] < 1, 2)[::2], (2, 1)), x[2], np.copy(x[3:6] > 0) * 1.0)
    ),
    "joined": lambda x: np.sum(
        np.where(np.concatenate([x[:2] > 0.2, np.array([True]), x[3:] < 1]), x, x**2)
        + np.where(np.repeat(np.stack([x[0] > 0, x[1] < 1, x[2] > 0.5]), len(x) // 3), x, 0.5)
        + np.concatenate([x[:1] > 0, x[1:]]) * x + np.where(np.append(x[:1] > 0, x[1:] < 0), 1.0, x)
    ),
    "compared and counted": lambda x:
        np.sum(np.where(((x > 0) == (x < 1)) | ((x > 0.5) != (x < 2)), x, x**2)
               + abs(x > 0) * (x < 1).astype(int) * x + np.where((x > 0) == True, x, 0.5)  # noqa: E712
               + np.where(((x > 0) >= (x < 0.5)).astype(bool), x, 2.0 * x))
        + np.max(x > 1) * x[0] + np.min(x > -1) * x[1] + np.cumsum(x > 0) @ x
        + np.sum(np.maximum(x > 0, x < -1) * x) + np.prod(x > -2) * x[3],
    "made of truth values": lambda x: np.sum(
        np.where(np.select([x > 0, x > -1], [x < 1, MASK], False) & ~(x > 2), x, x**2)
        + np.where(~np.where(x > 0, MASK, x < -1), 2.0, x)
        + (np.full_like(x > 0, 2.5) + np.ones_like(x > 0) + np.zeros_like(x > 0)) * x
    ),
    "written into": lambda x: np.sum(np.where(within(x > -1, x), x, x**2)),
    "nothing depends on it": lambda x: np.sum(x) + 0.0 * np.sum(np.where(x > 0, 1.0, 0.0)),
}  # fmt: skip


@pytest.mark.parametrize("f", SELECTIONS.values(), ids=SELECTIONS)
@pytest.mark.parametrize("times", [1, 20_000])
def test_selections(f, times):
    """The longer arrays are processed block by block."""

    evaluations = []

    def many(x):
        evaluations.append(x)
        return f(x) if times == 1 else np.sum(np.where(x > 0.25, np.exp(x), x**2)) + f(x[:6])

    rng = np.random.default_rng(1)
    recorded, eager = vm.recorded(many), vm.value_and_grad(many)
    for _ in range(4):
        x = rng.normal(size=6 * times)
        x[1], x[2] = 0.0, 1.0
        near(recorded(x), eager(x), 1e-13)
    assert len(evaluations) == 5  # the recording takes one more


@pytest.mark.parametrize(
    "compare", [np.less, np.less_equal, np.equal, np.not_equal, np.greater_equal, np.greater]
)
def test_special_values_are_compared_as_numpy_compares_them(compare):
    def f(x, y):
        return np.sum(np.where(compare(x, y), 2.0, 1.0) * np.arange(6.0))

    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0])
    recorded = vm.recorded(f, (0, 1))
    recorded(np.ones(6), np.zeros(6))
    for y in (x, x[::-1].copy(), np.zeros(6)):
        assert recorded(x, y)[0] == f(x, y)


@pytest.mark.parametrize("f", [
    lambda x: np.sum(x[x > 0]),
    lambda x: np.sum(np.where(np.einsum("i,i->i", x > 0, x > 1), x, 0.0)),
    lambda x: x[np.where(x > 0)[0][0]],
    lambda x: x[0] * np.asarray(x > 0)[0],
    lambda x: np.array(x > 0, dtype=float) @ x,
    lambda x: x[0] * len(x > 0),
    lambda x: next(x[int(c)] for c in x > 0),
    lambda x: np.sum(np.where((x > 0) & 1, x, 0.0)),
    lambda x: np.sum(np.where((x > 0) & [True, False, True], x, 0.0)),
    lambda x: np.sum(np.where(np.logical_and(x > 0, 2.0), x, 0.0)),
    lambda x: np.sum(np.where(np.logical_or.reduce([x > 0, x < 1]), x, 0.0)),
    lambda x: np.sum(np.exp(x > 0) * x),
    lambda x: np.sum(np.gcd(x > 0, 2) * x),
])  # fmt: skip
def test_everything_else_is_a_look_at_the_values(f):
    message = r"^recorded: the function looks at the value of a variable here .* use np.where"
    refuses(vm.TapeError, message, vm.recorded(f), np.array([1.0, -2.0, 3.0]))


@pytest.mark.parametrize(
    "f", [lambda x: -(x > 0), lambda x: (x > 0) - (x < 1), lambda x: (x > 0) & x]
)
def test_what_numpy_refuses_to_do_with_truth_values_is_refused(f):
    for gradient in (vm.value_and_grad, vm.recorded):
        refuses((TypeError, vm.TapeError), None, gradient(lambda x: np.sum(f(x) * x)), np.ones(3))


@pytest.mark.parametrize("f", [
    lambda x: x[0] if x[0] == None else x[1],  # noqa: E711 - what people write
    lambda x: x[0] if x[0] != "auto" else x[1],
    lambda x: x[0] if x[0] in [None, "auto"] else x[1],
    lambda x: x[0] if None in list(x) else x[1],
    lambda x: np.sum(np.where(x == None, 1.0, 2.0) * x),  # noqa: E711
    lambda x: (
        x[0] if np.isrealobj(x) and not np.iscomplexobj(x) and np.all(np.isreal(x)) else x[1]
    ),
    lambda x: x[0] if np.any(np.iscomplex(x)) else x[1] + np.sum(np.imag(x)),
])  # fmt: skip
def test_properties_that_do_not_depend_on_values_may_be_asked(f):
    x = np.array([1.0, -2.0, 3.0])
    value, gradient = vm.recorded(f)(x)
    assert value == f(x)
    equal(gradient, vm.gradient(f, x))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("arguments", [
    lambda c, x: (c,), lambda c, x: (c, c), lambda c, x: (c, x), lambda c, x: (x, c),
    lambda c, x: (c, 1), lambda c, x: ([c, x],), lambda c, x: ([c, c],),
    lambda c, x: (np.reshape(c, (2, 2)),), lambda c, x: (np.reshape(c, (2, 2)), np.ones((2, 2))),
    lambda c, x: (c, MASK[:4]), lambda c, x: (MASK[:4], c), lambda c, x: (c, MASK[:4], False),
    lambda c, x: ([c], [True], False), lambda c, x: (c, 2.5),
])  # fmt: skip
def test_functions_of_numpy_take_conditions_as_they_take_truth_values_or_refuse(arguments):
    points = np.array([[0.3, 0.7, 0.2, 0.9], [0.9, 0.7, 0.2, 0.1], [0.1, 0.8, 0.95, 0.05]])
    # The elements of one are arbitrary; the other subtracts truth values without raising.
    functions = get_overridable_numpy_array_functions() - {np.empty_like, np.trapezoid}
    number = len(arguments(np.ones(4, bool), np.ones(4)))
    ufuncs = {ufunc for ufunc in get_overridable_numpy_ufuncs() if ufunc.nin == number}
    for function in functions | ufuncs:

        def f(x, function=function):
            result = function(*arguments(x > 0.5, x))
            parts = result if isinstance(result, (tuple, list)) else [result]
            # A sum of truth values is one too.
            weights = [np.reshape(np.cumsum(np.ones(np.size(x))), np.shape(x)) for x in parts]
            return x[0] + sum(np.sum((x + x) * w) for x, w in zip(parts, weights, strict=True))

        recorded = vm.recorded(f, runner="numpy")
        try:
            found, expected = [recorded(x)[0] for x in points], [f(x) for x in points]
        except (vm.TapeError, AttributeError, IndexError, TypeError, ValueError):
            continue
        close(np.array(found), np.array(expected), 1e-14)


def test_numbers_cannot_be_written_into_conditions():
    def f(x):
        condition = x > 0
        condition += x
        return np.sum(condition)

    message = r"^np.add: the result cannot be written into truth values of shape \(2,\); give it"
    refuses(TypeError, message, vm.recorded(f), np.ones(2))


@pytest.mark.parametrize("function", [np.dot, np.outer, np.kron])
def test_products_of_truth_values_are_refused(function):
    """They add truth values as truth values: `True + True` is `True`."""
    message = (
        rf"^recorded: numpy.{function.__name__} makes truth values of truth values, .* convert"
    )
    recorded = vm.recorded(lambda x: np.sum(function(x > 0, MASK) * 1.0) * x[0])
    refuses(RecordingError, message, recorded, np.ones(6))
    x = np.array([1.0, 2.0, 3.0, -1.0, 2.0, 1.0])
    near(*(f(lambda x: np.sum(function((x > 0).astype(float), MASK) * x[0]))(x)
           for f in (vm.recorded, vm.value_and_grad)), 1e-15)  # fmt: skip


@pytest.mark.parametrize("method", ["reduce", "accumulate", "outer"])
def test_ufunc_methods_of_conditions_look_at_values(method):
    def f(x):
        others = (x > 0,) if method == "outer" else ()
        return np.sum(np.where(getattr(np.logical_and, method)(x > 0, *others), x, 0.0))

    with pytest.raises(RecordingError, match="looks at the value of a variable"):
        vm.recorded(f)(np.array([1.0, -2.0, 3.0]))
