"""The routes to a derivative: plain NumPy, reverse mode, forward mode, and forward over reverse.

All work on a `Case`, a function with a point, and on a mixture: which arguments are variables, and
their kinds. A function may return a scalar, an array or a tuple of them; here it always returns a
list of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from varmat.core.dispatch import settled
from varmat.core.dual import Dual, value_now
from varmat.core.indexing import ASSIGN
from varmat.core.matvar import MatVar, matvar
from varmat.core.tape import Rule, Tape, nested, start_sweep, sweep
from varmat.core.variables import (
    ARRAYS,
    VARIABLES,
    Outputs,
    Var,
    VarMat,
    View,
    make_view,
    value,
    var,
)
from varmat.derivatives.recorded_programs import record
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import ElsewhereError, RecordingError
from varmat.programs.run import has_native, runner_for
from varmat.testing.compare import at
from varmat.testing.differences import SIZES, OutsideDomainError, sizes_at, slope
from varmat.typing import Function, Index, Operand, Plain, Settings

# Argument position -> "varmat" or "matvar"; an argument that does not appear is data.
KindMixture = Mapping[int, str]
ArrayList = list[np.ndarray]
Partials = dict[int, np.ndarray]

# The most elements of one argument that finite differences are taken for, here and there, and that
# are marked or pushed one by one.
MOST_DIFFERENCES, MOST_ELEMENTS = 12, 100
# The runners of a program.
INTERPRETER = "interpreter"
RUNNERS = ("numpy", INTERPRETER, "native") if has_native() else ("numpy", INTERPRETER)
# Copies of at most this many elements on a tape are kept, to see whether a rule writes into them.
MOST_WATCHED = 1_000_000


def reversed_axes(a: Operand) -> Operand:
    return a[(slice(None, None, -1),) * a.ndim]


def every_other(a: Operand) -> Operand:
    return a[..., ::2]


def transposed(a: Operand) -> Operand:
    return a.T


# A layout is a view that every array argument becomes, and the shape of what it is a view of.
LAYOUTS: dict[str, tuple[Function, Function]] = {
    "reversed": (reversed_axes, lambda shape: shape),
    "strided": (every_other, lambda shape: (*shape[:-1], 2 * shape[-1])),
    "transposed": (transposed, lambda shape: shape[::-1]),
}


class ContractError(AssertionError):
    """A function breaks a promise that every operation gives, whatever its numbers."""


class Case:
    """A function at a point, with what all routes share."""

    def __init__(self, f: Function, args: Sequence[object]) -> None:
        self.f = f
        self.name = getattr(f, "__name__", None) or repr(f)
        self.args = [_normal(x) for x in args]
        self.active = [i for i, x in enumerate(self.args) if type(x) is float or _is_float_array(x)]
        self.arrays = [i for i in self.active if type(self.args[i]) is not float]

    def at(self, args: Mapping[int, Operand]) -> Case:
        """Return the same function with some arguments replaced."""
        case = copy(self)
        case.args = [_normal(args[i]) if i in args else x for i, x in enumerate(self.args)]
        return case

    def describe(self, mixture: KindMixture) -> str:
        """Describe the call, with the kind and shape of each argument."""
        words = []
        for i, x in enumerate(self.args):
            if i not in self.active:
                words.append(f"{type(x).__name__} (static)")
            elif i in mixture:
                words.append(
                    "Var"
                    if type(x) is float
                    else f"{'MatVar' if mixture[i] == 'matvar' else 'VarMat'} {x.shape}"
                )
            else:
                words.append("float" if type(x) is float else f"data {x.shape}")
        return f"f({', '.join(words)})"

    def plain(self) -> Any:
        """Call f with plain arguments."""
        with np.errstate(all="ignore"):
            return self.f(*map(_copied, self.args))

    def weighted(self, weights: ArrayList) -> float:
        """Compute the weighted sum of the results of f; a result of weight zero may be anything."""
        return float(
            sum(
                np.sum(w * x, where=w != 0.0)
                for w, x in zip(weights, numbers(self.plain()), strict=True)
            )
        )


def random(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Return fixed pseudo-random numbers, none of them near zero."""
    return _random(shape, seed).copy()


@cache
def _random(shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape))


def random_weights(values: ArrayList) -> ArrayList:
    """Make weights for the sum over all results whose gradient is compared."""
    return [random(x.shape, 1 + i) for i, x in enumerate(values)]


def outputs(result: object) -> list[Operand]:
    """List the results of a function; of a deferred array what it stands for."""
    return [settled(x) for x in (result if isinstance(result, (tuple, list)) else (result,))]


def numbers(result: Operand) -> ArrayList:
    """List the plain values of results as float64 arrays."""
    return [np.asarray(value(x), np.float64) for x in outputs(result)]


def _normal(x: object) -> Operand:
    if isinstance(x, (float, np.floating)):
        return float(x)
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        return np.array(x, np.float64, order="C") if x.ndim else float(x)
    return x


def _is_float_array(x: object) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == np.float64


def _copied(x: object) -> Operand:
    return x.copy() if isinstance(x, np.ndarray) else x


class CallArguments:
    """The arguments of one call: variables, of the kinds a mixture names, and data."""

    def __init__(
        self,
        case: Case,
        mixture: KindMixture,
        layout: str | None = None,
        same: tuple[int, int] | None = None,
    ) -> None:
        self.case = case
        self.args: list[Operand] = []
        for i, x in enumerate(case.args):
            if same is not None and i == same[1]:
                self.args.append(self.args[same[0]])
            else:
                self.args.append(
                    self._argument(x, mixture.get(i), layout if i in case.arrays else None)
                )

    @staticmethod
    def _argument(x: Operand, kind: str | None, layout: str | None) -> Operand:
        if layout is not None:
            how, shape = LAYOUTS[layout]
            full = np.full(shape(x.shape), np.nan)
            how(full)[...] = x
            if kind is None:
                return how(full)
            parent = var(full)
            return make_view(parent, how, how(value_now(parent)))
        if kind is None:
            return _copied(x)
        return matvar(x) if kind == "matvar" and type(x) is not float else var(x)

    def check_unchanged(self) -> None:
        for i, (x, now) in enumerate(zip(self.case.args, self.args, strict=True)):
            if i in self.case.active and not np.array_equal(
                numbers(now)[0], np.asarray(x), equal_nan=True
            ):
                raise ContractError(f"argument {i} was changed by the call or by the reverse pass")

    def check_unshared(self, results: list[Operand]) -> None:
        """Check that the results of an operation own their values; only views share them."""
        for result in results:
            for i, x in enumerate(self.args):
                both = type(result) is VarMat and type(x) in ARRAYS and result is not x
                if both and result.size and np.may_share_memory(value_now(result), value_now(x)):
                    raise ContractError(
                        f"the result shares memory with argument {i}, but is not a view of it"
                    )


def check_apart(tape: Tape) -> None:
    """Check that no two results of operations share memory: writing one must not change another."""
    results = [
        x
        for _, result, _, _ in tape
        for x in (result if isinstance(result, Outputs) else (result,))
    ]
    owned = [
        value_now(x)
        for x in results
        if isinstance(x, VarMat) and not isinstance(x, View) and x.size
    ]
    spans = sorted((a.__array_interface__["data"][0], a.nbytes) for a in owned)
    for (start, length), (following, _) in pairwise(spans):
        if following < start + length:
            raise ContractError(
                "two results are in the same memory: a value function returns what it keeps, or "
                "its operand"
            )


def watch(tape: Tape) -> None:
    """Let a rule fail that writes into the result, into its adjoint, or into an operand.
    Assignments do, and put it right again.
    """
    room = MOST_WATCHED
    for k, (rule, result, x, y) in enumerate(tape):
        parts = [
            part
            for item in (x, y)
            for part in (item if isinstance(item, (list, tuple)) else (item,))
        ]
        operands = {
            f"operand {i}": value_now(part) if type(part) in VARIABLES else part
            for i, part in enumerate(parts)
        }
        room -= sum(a.size for a in operands.values() if isinstance(a, np.ndarray))
        if rule is not ASSIGN and room >= 0:
            tape[k] = (Rule(rule.name, _watched(rule, operands), rule.op), result, x, y)


def _watched(rule: Rule, operands: dict[str, Operand]) -> Function:
    def chain(result: Operand, x: Operand, y: Operand) -> None:
        arrays = {
            **operands,
            **_parts("the result", result._val),
            **_parts("the adjoint of the result", result._adj),
        }
        arrays = {name: a for name, a in arrays.items() if isinstance(a, np.ndarray)}
        before = {name: a.copy() for name, a in arrays.items()}
        rule.chain(result, x, y)
        for name, a in arrays.items():
            if not np.array_equal(a, before[name], equal_nan=a.dtype.kind == "f"):
                raise ContractError(f"the reverse rule of {rule.name} changes {name} in place")

    return chain


def _parts(name: str, x: object) -> Settings:
    return {f"{name} {i}": part for i, part in enumerate(x)} if isinstance(x, tuple) else {name: x}


def reverse(
    case: Case,
    mixture: KindMixture,
    weights: ArrayList,
    uses: int = 1,
    layout: str | None = None,
    same: tuple[int, int] | None = None,
    watched: bool = False,
) -> tuple[list[Operand], ArrayList, list[Partials]]:
    """Differentiate in reverse mode.

    Returns the types of the results, their values, and the gradients by each reverse pass: of the
    weighted sum of `uses` calls; each counts once more than the one before. With `watched`
    no rule may write where it must not, and there are two passes over the same tape."""
    with nested() as tape, np.errstate(all="ignore"):
        call = CallArguments(case, mixture, layout, same)
        results = [outputs(case.f(*call.args)) for _ in range(uses)]
        if len(results[0]) != len(weights):
            raise ContractError(
                f"there are {len(weights)} results by plain NumPy, but {len(results[0])} with "
                "variables"
            )
        kinds, values = [type(x) for x in results[0]], numbers(results[0])
        check_apart(tape)
        if watched:
            watch(tape)
        gradients = []
        for _ in range(2 if watched else 1):
            start_sweep(tape)
            for factor, items in enumerate(results, 1):
                for item, w in zip(items, weights, strict=True):
                    _seed(item, factor * w)
            sweep(tape)
            gradients.append({i: np.array(call.args[i].adj) for i in mixture})
        call.check_unchanged()
        call.check_unshared(results[0])
    return kinds, values, gradients


def jacobian(case: Case, mixture: KindMixture) -> list[list[Partials]]:
    """Compute the gradient of each element of each result, by one call and reverse passes."""
    with nested() as tape, np.errstate(all="ignore"):
        call = CallArguments(case, mixture)
        rows: list[list[Partials]] = []
        for item in outputs(case.f(*call.args)):
            shape = np.shape(value(item))
            rows.append([])
            for index in np.ndindex(shape):
                start_sweep(tape)
                unit = np.zeros(shape)
                unit[index] = 1.0
                _seed(item, unit)
                sweep(tape)
                rows[-1].append({i: np.array(call.args[i].adj) for i in mixture})
        return rows


def flipped(case: Case) -> Case | None:
    """Return the function at another point, where comparisons that involve changed arguments go the
    other way: each argument is negated, inverted or reversed, whichever the domain allows first.
    None if it allows nothing, or not all together.
    """
    shapes = [x.shape for x in numbers(case.plain())]
    others = {
        i: other
        for i in case.active
        for other in [next((x for x in _flips(case.args[i]) if _holds(case, {i: x}, shapes)), None)]
        if other is not None
    }
    return case.at(others) if others and _holds(case, others, shapes) else None


def _flips(x: Operand) -> list[Operand]:
    with np.errstate(all="ignore"):
        result = [-x, np.reciprocal(x)]
    return result if type(x) is float else [*result, reversed_axes(x)]


def _holds(case: Case, args: Mapping[int, Operand], shapes: Sequence[tuple[int, ...]]) -> bool:
    """Tell whether the function has finite values of some shapes with some arguments replaced."""
    if not all(np.all(np.isfinite(x)) for x in args.values()):
        return False
    try:
        values = numbers(case.at(args).plain())
    except (ArithmeticError, ValueError):
        return False
    return [x.shape for x in values] == shapes and all(np.all(np.isfinite(x)) for x in values)


def recording(
    case: Case,
    mixture: KindMixture,
    weights: ArrayList,
    directions: Mapping[int, object] | None = None,
    runners: Sequence[str] = RUNNERS,
) -> Callable[[Case], tuple[float, Partials] | None] | None:
    """Record the weighted sum and its gradient at a point nearby; None if that is refused. The
    result takes the function at a point, and returns None where the recording does not hold.

    With `directions` it is the derivative of the sum along them, whose gradient is the Hessian
    times a vector. To make machine code takes the longest."""

    def argument(i: int, mixture: Mapping[int, object]) -> Operand:
        x = mixture.get(i, _copied(case.args[i]))
        return Dual(x, directions[i]) if directions is not None and i in mixture else x

    def weighted(*variables: object) -> Operand:
        arguments = dict(zip(mixture, variables, strict=True))
        results = outputs(case.f(*(argument(i, arguments) for i in range(len(case.args)))))
        if directions is not None:
            results = [x.tan if isinstance(x, Dual) else np.zeros(np.shape(x)) for x in results]
        return sum(np.sum(w * x) for w, x in zip(weights, results, strict=True))

    with np.errstate(all="ignore"):
        for distance in (1e-3, 0.0):
            there = [
                _normal(case.args[i] * (1.0 + distance * random(np.shape(case.args[i]), k)))
                for k, i in enumerate(mixture)
            ]
            try:
                program = record(weighted, range(len(there)), there, {})
                break
            except (RecordingError, ElsewhereError):
                return None
            except (ArithmeticError, ValueError):  # not in the domain
                if not distance:
                    raise
    run: Settings = {name: runner_for(program, name) for name in runners if name != INTERPRETER}
    if INTERPRETER in runners:
        run[INTERPRETER] = lambda arguments: interpret(program, *arguments)
    return partial(_run_everywhere, run, [*mixture])


def _run_everywhere(
    runners: Settings, mixture: Sequence[int], case: Case
) -> tuple[float, Partials] | None:
    """Run a program with all runners at a point, and compare; return None where a guard ends the
    run.
    """
    result: list[Operand] = []
    point = [_copied(case.args[i]) for i in mixture]
    with np.errstate(all="ignore"):
        for name, run in runners.items():
            try:
                result.append((name, *run(point)))
                if not np.isfinite(result[-1][1]):  # where a guard ends a native run
                    result[-1] = (name, None)
            except (ArithmeticError, ElsewhereError):
                result.append((name, None))
    (first, *expected), *others = result
    for name, *output in others:
        _check_same(f"the {first} runner", expected, f"the {name} runner", output)
    if expected[0] is None or not np.isfinite(expected[0]):
        return None
    value, *gradients = expected
    return value, dict(zip(mixture, gradients, strict=True))


def _check_same(first: str, expected: list[Operand], second: str, result: list[Operand]) -> None:
    """Check that two runners give the same, but for the order in which sums are taken."""
    if (expected[0] is None) != (result[0] is None):
        raise ContractError(
            f"{first} ends a program at a guard, but {second} does not, or vice versa"
        )
    for i, (x, y) in enumerate(zip(expected, result, strict=True)):
        if x is not None:
            scale = np.max(np.abs(x), initial=0.0, where=np.isfinite(x))
            if not np.allclose(x, y, rtol=1e-11, atol=1e-12 * scale, equal_nan=True):
                raise ContractError(
                    f"output {i} of a program is {x} by {first}, but {y} by {second}"
                )


def _seed(result: Operand, w: np.ndarray) -> None:
    if isinstance(result, MatVar):
        for item, c in zip(result.ravel().tolist(), w.ravel().tolist(), strict=True):
            _seed(item, c)
    elif type(result) in VARIABLES:
        if np.shape(w) != result.shape:
            raise ContractError(
                f"the result has shape {result.shape}, but that of plain NumPy has {np.shape(w)}"
            )
        result._take(float(w) if type(result) is Var else np.array(w))


def forward(
    case: Case, tangents: Mapping[int, object], k: int | None = None, twice: bool = False
) -> tuple[ArrayList, ArrayList]:
    """Differentiate in forward mode: compute values, and tangents of the results, with a leading
    axis if there are `k` directions.

    With `twice` a second call must not return what the first one did.
    """

    def called() -> list[Operand]:
        args = [
            Dual(x, tangents[i]) if i in tangents else _copied(x) for i, x in enumerate(case.args)
        ]
        with nested():  # in which functions know that they are differentiated
            results = outputs(case.f(*args))
        for i, tangent in tangents.items():
            if not (_unchanged(args[i].val, case.args[i]) and _unchanged(args[i].tan, tangent)):
                raise ContractError(f"argument {i}, or its tangent, was changed by the call")
        return results

    with np.errstate(all="ignore"):
        results = called()
        if twice:
            for a, b in zip(results, called(), strict=True):
                if type(a) is type(b) is Dual and a is not b:
                    for part, other in ((a.val, b.val), (a.tan, b.tan)):
                        if isinstance(part, np.ndarray) and np.may_share_memory(part, other):
                            what = "two calls return values or tangents in the same memory"
                            raise ContractError(
                                f"{what}: a value function or a tangent rule returns what it keeps"
                            )
        rates = []
        for x in results:
            shape = np.shape(x) if k is None else (k, *np.shape(x))
            rates.append(np.asarray(x.tan if isinstance(x, Dual) else np.zeros(shape), np.float64))
    return [numbers(x)[0] for x in results], rates


def _unchanged(now: Operand, before: Operand) -> bool:
    return np.array_equal(now, before, equal_nan=True)


def hessian_times_vector(
    case: Case, mixture: KindMixture, weights: ArrayList, directions: Mapping[int, object]
) -> Partials:
    """Compute the Hessian of the weighted sum times a vector: the tangent, computed on variables,
    differentiated in reverse.
    """
    with nested() as tape, np.errstate(all="ignore"):
        call = CallArguments(case, mixture)
        args = [Dual(x, directions[i]) if i in mixture else x for i, x in enumerate(call.args)]
        results = outputs(case.f(*args))
        start_sweep(tape)
        for item, w in zip(results, weights, strict=True):
            if isinstance(item, Dual):
                _seed(item.tan, w)
        sweep(tape)
        return {i: np.array(call.args[i].adj) for i in mixture}


def difference_gradient(
    case: Case, weights: ArrayList, finite: bool = True
) -> tuple[Partials, Partials]:
    """Compute finite differences of the weighted sum by plain NumPy, with their estimated errors;
    nan where none was taken.

    Unless the point is `finite`, elements that cannot be moved are passed over.
    """
    estimates, errors = {}, {}
    for i in case.active:
        x = np.asarray(case.args[i])
        estimate, error = np.full(x.shape, np.nan), np.full(x.shape, np.inf)
        for place in np.random.default_rng(x.size).permutation(x.size)[:MOST_DIFFERENCES]:
            index = np.unravel_index(place, x.shape)
            if not np.isfinite(x[index]):
                continue

            def moved(h: float, i: int = i, x: Operand = x, index: Index = index) -> float:
                y = x.copy()
                y[index] += h
                return case.at({i: y}).weighted(weights)

            try:
                estimate[index], error[index] = slope(moved, sizes_at(float(x[index])))
            except OutsideDomainError as refusal:
                if not finite:
                    continue
                raise AssertionError(
                    f"expect_ad({case.name}): finite differences move argument {i}{at(index)} out "
                    f"of the domain ({refusal}); let f map every point to the domain, or pass "
                    "Tolerances(finite_difference=inf)"
                ) from refusal
        estimates[i], errors[i] = estimate, error
    return estimates, errors


def difference_hessian(
    case: Case, mixture: KindMixture, weights: ArrayList, directions: Mapping[int, Operand]
) -> tuple[Plain, Plain]:
    """Compute finite differences of the reverse gradient along a direction, with estimated errors,
    all arguments in one vector.
    """

    def moved(h: float) -> Plain:
        moved_case = case.at({i: case.args[i] + h * directions[i] for i in mixture})
        _, values, (gradient,) = reverse(moved_case, mixture, weights)
        # A formula for the derivative may go on where the function has ended.
        return (
            flat(gradient)
            if all(np.all(np.isfinite(x)) for x in values)
            else np.full(flat(gradient).shape, np.nan)
        )

    return slope(moved, SIZES)


def flat(gradients: Mapping[int, Operand]) -> np.ndarray:
    """Join gradients with respect to all arguments into one vector."""
    return np.concatenate([np.ravel(g) for g in gradients.values()]) if gradients else np.zeros(0)
