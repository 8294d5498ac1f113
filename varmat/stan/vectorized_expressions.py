"""The expressions of loops that are evaluated for all iterations at once.

Every scalar that differs between iterations is an array with an element for each iteration (its
lane), and every vector a matrix with a row for each.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

import varmat as vm
from varmat.core.array_methods import ArrayMethods
from varmat.densities.mixture import log_mix_of_two
from varmat.densities.univariate import Univariate
from varmat.programs.record.conditions import all_hold
from varmat.stan import functions, operators, types
from varmat.stan import syntax as s
from varmat.stan.running import Evaluation, Frame, StanEvaluated, dropping
from varmat.stan.translate import Expressions
from varmat.stan.types import ArrayType
from varmat.stan.values import (
    MATRICES,
    ROWS,
    SCALARS,
    VECTORS,
    StanValue,
    innermost,
    owned,
    place,
    promotion,
)
from varmat.typing import Propto

# Containers of one axis; the batch axis comes before it.
OF_ONE_AXIS = VECTORS | ROWS | {ArrayType(types.REAL)}
# The longest chain of nested operators that is translated for all iterations.
LONG = 100
# Operators that act on each iteration separately.
_BY_LANE = frozenset({"+", "-", "*", "/", "^", ".*", "./", ".^"})


class BoundError(Exception):
    """A loop must be run iteration by iteration: why, and where."""

    def __init__(self, reason: str, at: s.Position) -> None:
        super().__init__(reason)
        self.at = at


class VectorizedExpressions(ABC):
    """Translates the expressions of a loop, or of a function that it calls, for all iterations;
    abstract.

    Parameters
    ----------
    translator : Expressions
        Translates expressions that are the same in all iterations.
    count : int
        The slot for the number of iterations in a frame.
    varying : set of str
        The variables that differ between iterations.
    """

    def __init__(self, translator: Expressions, count: int, varying: set[str]) -> None:
        self._translator, self._count, self._varying = translator, count, varying
        # The slot of a mask of iterations that count, where all are computed; None if all count.
        self._mask = translator.declare(" mask", types.INT)
        # The slots of batched values.
        self._slots = {translator.place(name)[0] for name in varying}

    def varies(self, e: object) -> bool:
        """Tell whether an expression differs between iterations, as random numbers do."""
        return any(name in self._varying for name in s.names_in(e)) or draws(e)

    def of_passes(self, f: Frame, slots: Collection[int], indices: np.ndarray) -> Frame:
        """Make a frame of some iterations, which may be repeated."""
        inner = f.copy()
        inner[self._count] = len(indices)
        for slot in (*slots, self._mask):
            inner[slot] = None if f[slot] is None else f[slot][indices]
        return inner

    def branches(self, e: s.Expression) -> Callable[[Frame], Iterator[tuple[StanValue, Frame]]]:
        """Yield the indices and the frame of the iterations in which a condition holds, then of the
        others; the frame is empty if there are none. In a recording, where the condition depends on
        parameters, yield masks and frames of all iterations.
        """
        condition, slots = self.expression(e), {*self._slots}

        def branches(f: Frame) -> Iterator[tuple[StanValue, Frame]]:
            result = condition(f)
            if isinstance(result, ArrayMethods):
                holds = result != 0
                for mask in (holds, ~holds):
                    # Elements may be assigned to vectors; numbers are assigned as a whole.
                    inner = f.copy()
                    for slot in slots:
                        if np.ndim(f[slot]) > 1:
                            inner[slot] = owned(f[slot])
                    inner[self._mask] = mask if f[self._mask] is None else mask & f[self._mask]
                    yield mask, inner
                return
            holds = np.asarray(result, bool)
            for indices in map(np.flatnonzero, (holds, ~holds)):
                yield indices, self.of_passes(f, slots, indices) if len(indices) else []

        return branches

    def either(self, e: s.Expression, yes: StanEvaluated, no: StanEvaluated) -> StanEvaluated:
        """Return the function of batched values that computes one branch for each iteration."""
        if not self.varies(e):
            condition = self._translator.expression(e)
            return lambda f: yes(f) if condition(f) else no(f)
        branches = self.branches(e)

        def run(f: Frame) -> StanValue:
            result = [
                (indices, value(inner))
                for value, (indices, inner) in zip((yes, no), branches(f), strict=True)
                if inner
            ]
            return merged(result)

        return run

    def full(self, e: s.Expression, kind: types.Type) -> StanEvaluated:
        """Translate an expression into a batched one, also if it is the same in all iterations."""
        value, count = self.promoted(e, kind), self._count
        return value if self.varies(e) else lambda f: repeated(value(f), f[count])

    # --- expressions ---

    def alike(self, full: Sequence[s.Expression]) -> list[StanEvaluated]:
        """Translate arguments of a density, so that scalars broadcast against batched vectors."""
        if any(e.type not in SCALARS and e.type not in _ROWS_OF_DATA for e in full):
            raise BoundError("a density takes matrices, or arrays of vectors", full[0].at)
        arguments = [*map(self.expression, full)]
        if all(e.type in SCALARS for e in full):
            return arguments
        return [self._along_lanes(e, argument) for e, argument in zip(full, arguments, strict=True)]

    def expression(self, e: s.Expression) -> StanEvaluated:
        """Translate an expression: the value is an array with the batch axis first if it varies."""
        if not self.varies(e):
            return self._translator.expression(e)
        name = _EXPRESSIONS.get(type(e))
        if name is None or (e.type not in SCALARS and e.type not in _ROWS_OF_DATA):
            raise BoundError(f"a {e.type} differs between iterations", e.at)
        result: StanEvaluated = getattr(self, name)(e)
        return result

    def promoted(self, e: s.Expression, kind: types.Type) -> StanEvaluated:
        evaluate, promote = self.expression(e), promotion(e.type, kind)
        return evaluate if promote is None else lambda f: promote(evaluate(f))

    def variable(self, e: s.VariableName) -> StanEvaluated:
        slot, _ = self._translator.place(e.name)
        return lambda f: f[slot]

    def unary(self, e: s.Unary) -> StanEvaluated:
        operand = self.expression(e.operand)
        if e.operator == "!":
            return lambda f: 1 * (operand(f) == 0)
        return (lambda f: -operand(f)) if e.operator == "-" else operand

    def binary(self, e: s.Binary) -> StanEvaluated:
        if len(s.in_a_row(e)) > LONG:
            raise _lacking(f"form of more than {LONG} operators in a row", e)
        if e.operator in ("&&", "||"):
            return self._logical(e)
        left, right = self.expression(e.left), self.expression(e.right)
        kinds = e.left.type, e.right.type
        if e.operator == "*" and kinds[0] in ROWS and kinds[1] in VECTORS:
            if self.varies(e.left):
                if not self.varies(e.right):
                    return lambda f: left(f) @ right(f)
                return lambda f: np.sum(left(f) * right(f), -1)
            return lambda f: right(f) @ left(f)
        if e.operator in _COMPARISONS and all(kind in SCALARS for kind in kinds):
            compare = _COMPARISONS[e.operator]
            # Truth values are added and subtracted as numbers.
            return lambda f: 1 * compare(left(f), right(f))
        if e.operator not in _BY_LANE or any(kind in MATRICES for kind in kinds):
            raise _lacking(f"operator `{e.operator}` of {kinds[0]} and {kinds[1]}", e)
        if kinds == (types.INT, types.INT):
            if e.operator not in "+-*":
                raise _lacking(f"operator `{e.operator}` of integers", e)
        elif e.type in OF_ONE_AXIS:
            left, right = self._along_lanes(e.left, left), self._along_lanes(e.right, right)
            if e.operator == "*" and all(kind in OF_ONE_AXIS for kind in kinds):
                raise _lacking("outer product", e)
        function = _ARITHMETIC[e.operator]
        return lambda f: function(left(f), right(f))

    def _logical(self, e: s.Binary) -> StanEvaluated:
        """Translate "and" or "or", whose right side is computed only where it decides."""
        count, certain = self._count, int(e.operator == "||")
        right = self.full(e.right, types.INT)

        def default(f: Frame) -> StanValue:
            return np.full(f[count], certain)

        def decides(f: Frame) -> StanValue:
            return 1 * (right(f) != 0)

        return self.either(e.left, *((default, decides) if certain else (decides, default)))

    def _along_lanes(self, e: s.Expression, evaluate: StanEvaluated) -> StanEvaluated:
        """Add an axis to a batched scalar, so that it acts on all elements of a batched vector."""
        if e.type in SCALARS and self.varies(e):
            return lambda f: evaluate(f)[:, None]
        return evaluate

    def index(self, e: s.Indexed) -> StanEvaluated:
        if any(isinstance(i, s.Range) or i.type != types.INT for i in e.indices):
            raise _lacking("range as an index", e)
        if isinstance(innermost(e.base.type), types.Tuple):
            raise _lacking("index of tuples", e)
        if self.varies(e.base):
            if e.base.type not in OF_ONE_AXIS or len(e.indices) != 1:
                raise _lacking(f"index of a {e.base.type} of each iteration", e)
            own, at = self.expression(e.base), self.indices(e.indices)

            def read_own(f: Frame) -> StanValue:
                x = own(f)
                return x[own_places(x, *at(f))]

            return read_own
        base, indices = self._translator.expression(e.base), self.indices(e.indices)

        def read(f: Frame) -> StanValue:
            x = base(f)
            return x[places_of(x, indices(f))]

        return read

    def indices(
        self, indices: Sequence[s.Expression | s.Range]
    ) -> Callable[[Frame], tuple[StanValue, ...]]:
        """Translate integer indices, which may differ between iterations."""
        parts = [self.expression(i) for i in indices if isinstance(i, s.Expression)]
        return lambda f: tuple([part(f) for part in parts])

    def call(self, e: s.Call) -> StanEvaluated:
        if e.definition is not None:
            return self.routine(e, e.definition)
        if e.name.endswith("_rng"):
            return self._drawn(e)
        function = self._function(e)
        if e.name.endswith(DENSITIES):
            arguments = self.alike(e.arguments)
        else:
            arguments = [*map(self.expression, e.arguments)]
        return lambda f: function(f[0], *[argument(f) for argument in arguments])

    def _drawn(self, e: s.Call) -> StanEvaluated:
        """Translate random numbers, one for each iteration."""
        if e.type not in SCALARS or any(argument.type not in SCALARS for argument in e.arguments):
            raise _lacking(f"`{e.name}` of vectors", e)
        draw = functions.implementation(e.name, tuple(argument.type for argument in e.arguments))
        arguments, count = [*map(self.expression, e.arguments)], self._count
        return lambda f: draw(*[argument(f) for argument in arguments], rng=f[0].rng, size=f[count])

    def choice(self, e: s.Conditional) -> StanEvaluated:
        yes, no = (self.full(x, e.type) for x in (e.yes, e.no))
        return self.either(e.condition, yes, no)

    @abstractmethod
    def routine(self, e: s.Call, definition: s.FunctionDefinition) -> StanEvaluated:
        """Translate a call of a function of the program."""

    def _function(self, e: s.Call) -> Callable[..., StanValue]:
        kinds = tuple(argument.type for argument in e.arguments)
        if e.name.endswith(DENSITIES):
            density = elementwise_density(e.name.replace("_lup", "_lp"), e.at).pointwise
            rows = any(kind not in SCALARS for kind in kinds)
            propto: Propto = False
            if "_lup" in e.name:
                propto = dropping(density, self._translator.of_variables(e.arguments))

            def terms(run: Evaluation, *xs: object) -> StanValue:
                result = density(*xs, propto=run.propto and propto)
                return np.sum(result, -1) if rows else result

            return terms
        if e.name == "log_mix" and len(kinds) == 3:
            return lambda run, *x: log_mix_of_two(*x)
        if len(kinds) == 1 and kinds[0] in OF_ONE_AXIS and e.type in OF_ONE_AXIS:
            if e.name in _OF_VECTORS:
                return _OF_VECTORS[e.name]
            if not functions.acts_by_element(e.name) or e.name == "log_sum_exp":
                raise _lacking(f"`{e.name}` of vectors", e)
            by_element = functions.implementation(e.name, kinds)
            return lambda run, x: by_element(x)
        if e.name == "elt_divide" and e.type == types.INT:
            raise _lacking("quotient of integers", e)
        if all(kind in SCALARS for kind in kinds) and functions.acts_by_element(e.name):
            function = functions.implementation(e.name, kinds)
            return lambda run, *xs: function(*xs)
        of_rows = _OF_ROWS.get(e.name)
        if of_rows is None or {*kinds} - OF_ONE_AXIS or e.type not in SCALARS:
            raise _lacking(f"`{e.name}`", e)
        if not all(map(self.varies, e.arguments)):
            raise _lacking(f"`{e.name}` of a vector that is the same in all iterations", e)
        return of_rows


def draws(e: object) -> bool:
    """Return whether random numbers are drawn in an expression or in statements."""
    return any(isinstance(node, s.Call) and node.name.endswith("_rng") for node in s.walk(e))


def repeated(x: StanValue, count: int) -> StanValue:
    """Repeat a value that is the same in all iterations along the batch axis."""
    return x + np.zeros((count, *np.shape(x)), int)


def merged(result: Sequence[tuple[object, object]]) -> StanValue:
    """Merge batched values of some iterations and of the others."""
    if len(result) == 1:
        return result[0][1]
    (mask, yes), (_, no) = result
    if not isinstance(mask, np.ndarray):
        return selected(mask, yes, no)
    order = np.argsort(np.concatenate([indices for indices, _ in result]))
    return np.concatenate([x for _, x in result])[order]


def selected(mask: StanValue, yes: StanValue, no: StanValue) -> StanValue:
    """Select values by a condition, while both branches are recorded for all iterations.

    Raise if one that is not chosen is not finite: its derivative may be zero times infinity."""
    mask = mask[:, None] if np.ndim(yes) > 1 or np.ndim(no) > 1 else mask
    if not all(all_hold(np.isfinite(x)) for x in (yes, no)):
        raise vm.TapeError(
            "recorded: a value that a branch on parameters does not choose is not finite"
        )
    return np.where(mask, yes, no)


def _lacking(form: str, e: s.Expression) -> BoundError:
    return BoundError(f"there is no {form} for all passes at once", e.at)


def own_places(x: StanValue, index: StanValue) -> StanValue:
    """Return the index of one element of each batched vector."""
    at = place(index, x.shape[1], 1)
    return (slice(None), at) if type(at) is int else (np.arange(x.shape[0]), at)


def places_of(x: StanValue, indices: Sequence[StanValue]) -> StanValue:
    """Convert integer indices of Stan, some of them batched, to an index of NumPy."""
    positions = [place(i, x.shape[axis], axis + 1) for axis, i in enumerate(indices)]
    if sum(type(at) is np.ndarray for at in positions) == 1 and len(positions) == 1:
        return _as_slice(positions[0])
    return tuple(positions)


def _as_slice(indices: object) -> StanValue:
    """Convert consecutive indices to a slice, because that makes a view."""
    if type(indices) is np.ndarray and len(indices) and np.all(np.diff(indices) == 1):
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


def elementwise_density(name: str, at: s.Position) -> Any:
    density = getattr(vm, name, None)
    if not isinstance(density, Univariate):
        raise BoundError(f"`{name}` does not act element by element", at)
    return density


DENSITIES = ("_lpdf", "_lpmf", "_lupdf", "_lupmf", "_lcdf", "_lccdf")
# Densities of vectors, which take a stack of them in front of that axis: the types that each
# argument of an iteration must have.
STACKED: dict[str, tuple[Collection[types.Type], ...]] = {
    "categorical_lpmf": (SCALARS, OF_ONE_AXIS),
    "categorical_logit_lpmf": (SCALARS, OF_ONE_AXIS),
    "dirichlet_lpdf": (OF_ONE_AXIS, OF_ONE_AXIS),
    "multi_normal_lpdf": (OF_ONE_AXIS, OF_ONE_AXIS, MATRICES),
    "multi_normal_cholesky_lpdf": (OF_ONE_AXIS, OF_ONE_AXIS, MATRICES),
    "multi_normal_prec_lpdf": (OF_ONE_AXIS, OF_ONE_AXIS, MATRICES),
    "ordered_logistic_lpmf": (SCALARS, SCALARS, OF_ONE_AXIS),
    "ordered_probit_lpmf": (SCALARS, SCALARS, OF_ONE_AXIS),
}
_ROWS_OF_DATA = OF_ONE_AXIS | {ArrayType(types.INT)}
_OF_VECTORS: dict[str, Callable[..., StanValue]] = {
    "softmax": lambda run, x: vm.softmax(x, -1),
    "log_softmax": lambda run, x: vm.log_softmax(x, -1),
}
_COMPARISONS: dict[str, Callable[[StanValue, StanValue], StanValue]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
_OF_ROWS: dict[str, Callable[..., StanValue]] = {
    "sum": lambda run, x: np.sum(x, -1),
    "log_sum_exp": lambda run, x: vm.log_sum_exp(x, -1),
    "dot_product": lambda run, x, y: np.sum(x * y, -1),
    "dot_self": lambda run, x: np.sum(x * x, -1),
}
_ARITHMETIC: dict[str, Callable[[StanValue, StanValue], StanValue]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, ".*": np.multiply, "/": np.divide,
    "./": np.divide, "^": operators.powers, ".^": operators.powers,
}  # fmt: skip
# The names of methods.
_EXPRESSIONS = {
    s.VariableName: "variable",
    s.Unary: "unary",
    s.Binary: "binary",
    s.Indexed: "index",
    s.Call: "call",
    s.Conditional: "choice",
}
