"""How densities of one variable are written into programs: their terms and partials, traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from varmat.core.elementwise import Elementwise
from varmat.densities.density import KeptTerms
from varmat.densities.glm import PREDICTOR, Glm
from varmat.densities.row_program import RowProgram
from varmat.densities.summed_density import IS_VARIABLE, SummedDensity
from varmat.densities.univariate import Univariate
from varmat.functions.sparse.products import step_of
from varmat.functions.special.gamma_functions import log_rising_factorial
from varmat.functions.special.precision_scores import digamma_less_line
from varmat.functions.special.zeta_functions import zeta_difference
from varmat.plain_arrays import is_scipy_sparse
from varmat.programs.build.arithmetic import ADD, AND, SUBTRACT
from varmat.programs.build.symbol import Symbol, lift
from varmat.programs.ir.program import Shape, Step, Value
from varmat.programs.kernels.matrices import MATMUL
from varmat.programs.record.tape_programs import Operands, RecordedVariable, TapeProgram, writes
from varmat.typing import Function, Operand

# Functions of counts, the last operand, that are long and often wanted in sums.
COUNTED = (log_rising_factorial, zeta_difference, digamma_less_line)


def is_refuted(condition: Value) -> bool:
    """Tell whether a condition, or a part of a conjunction, is a constant that does not hold."""
    if condition.step is not None and condition.step.kernel is AND:
        return any(map(is_refuted, condition.step.operands))
    return condition.is_constant and not bool(np.all(condition.data))


def is_tabulated(n: np.ndarray, size: int) -> bool:
    """Tell whether these are counts with many repetitions."""
    return size > 1 and bool(
        np.min(n) >= 0.0 and 2.0 * np.max(n) < size and (np.floor(n) == n).all()
    )


class RecordedSum(RowProgram):
    """The sum of a row in the program of a tape.

    Parameters
    ----------
    program : TapeProgram
    row : Univariate
    values : dict of str to Value
        The arguments of the row.
    variables : container of str
        Those that are variables.
    shape : tuple of int
        To which they broadcast.
    keep : frozenset of str, optional
        The arguments whose terms are kept; None keeps all.
    stable : bool
        Whether the fast path must not be taken.
    """

    def __init__(
        self,
        program: TapeProgram,
        row: Univariate,
        values: Mapping[str, Value],
        variables: Operand,
        shape: Shape,
        keep: KeptTerms | None,
        stable: bool = False,
    ) -> None:
        self.program, self.shape = program, shape
        # Values that are functions of numbers and counts, which are data -> their sums: each count
        # is computed once.
        self._sums: dict[Value, Value] = {}
        builder = program.builder
        data = {name: program.data.get(id(v), v) for name, v in values.items()}
        fast = None if stable or row.fast is None or not row.fast.is_recorded else row.fast
        if fast is not None:
            is_number = fast.number is None or not values[fast.number].shape
            fast = fast if is_number and fast.fits_in(data) else None
        super().__init__(*row.kept(fast is not None, keep), builder, values)
        if fast is not None and self.parts.when is not None:
            holds = self.write(self.parts.when)
            if is_refuted(holds):
                super().__init__(*row.kept(False, keep), builder, values)
            else:
                builder.guard(holds)
        # Numbers are taken out of sums, also of squares, which may overflow or underflow.
        if fast is not None and fast.number is not None:
            builder.guard_between(values[fast.number], *fast.between)
        if row.guarded:
            builder.guard(self.write(self.parts.support))
        # What would not show in the value is checked at every run.
        early = {row.operands[i] for i, *_ in row.early}
        for name in variables if keep is not None else early.intersection(variables):
            holds = row.arguments[name][1].holds(Symbol(builder, values[name]))
            builder.guard(lift(builder, holds))
        self.value = self.sum()

    def apply(self, row: Elementwise, operands: list[Value]) -> Value:
        value = super().apply(row, operands)
        *numbers, n = operands
        if (
            row in COUNTED
            and not any(v.shape for v in numbers)
            and n.is_constant
            and is_tabulated(n.data, n.size)
        ):
            often = np.bincount(n.data.astype(np.intp).ravel()).astype(np.float64)
            counts = self.builder.constant(np.arange(float(often.size)))
            x = super().apply(row, [*numbers, counts])
            self._sums[value] = self.builder.call(MATMUL, x, self.builder.constant(often))
        return value

    def total(self, x: Value) -> Value:
        if x in self._sums and x.shape == self.shape:
            return self._sums[x]
        if self._has_sum(x):
            step: Step = x.step  # type: ignore[assignment]
            ufunc = np.add if step.kernel is ADD else np.subtract
            return self.builder.ufunc(ufunc, *map(self.total, step.operands))
        return self.builder.sum(self.builder.broadcast(x, self.shape))

    def _has_sum(self, x: Value) -> bool:
        """Tell whether this is a sum or difference with a term that is summed separately."""
        is_sum = x.step is not None and not x.is_view and x.step.kernel in (ADD, SUBTRACT)
        return is_sum and any(v in self._sums or self._has_sum(v) for v in x.step.operands)  # type: ignore[union-attr]

    def record(
        self, result: Operand, nodes: Mapping[str, Operand], more: Function | None = None
    ) -> None:
        """Make the value the node of a result, and contribute to the nodes of arguments, after
        `more` has had the adjoint of the result.
        """
        node = self.program.node(result, self.value)
        self.program.finite.append(node)

        def back() -> None:
            g: Any = self.program.adjoint(node)
            if more is not None:
                more(g)
            for name, operand in nodes.items():
                c = self.builder.ufunc(np.multiply, g, self.slope(name))
                self.program.contribute(operand, c, operand.shape)

        self.program.back((node,), back)


def _split(rule: Operand, active: Operand, saved: Operand) -> Operand:
    """Return the operands of a density, its variables before its data, and a key of the rest."""
    _, plain, shape, use = saved
    kinds = zip(plain, rule.op.kinds_of(use), strict=True)
    data = [x for x, kind in kinds if not (kind & IS_VARIABLE or is_scipy_sparse(x))]
    return (*active, *data), (*map(id, filter(is_scipy_sparse, plain)), shape, use)


def _joined(rule: Operand, active: Operand, saved: Operand, operands: Operand) -> Operand:
    _, plain, shape, use = saved
    data = iter(operands[len(active) :])
    kinds = rule.op.kinds_of(use)
    values = [
        x if k & IS_VARIABLE or is_scipy_sparse(x) else next(data)
        for x, k in zip(plain, kinds, strict=True)
    ]
    return operands[: len(active)], (None, values, shape, use)


def _arguments(
    program: TapeProgram, density: SummedDensity, active: Operand, saved: Operand
) -> tuple[dict[str, Operand], dict[str, RecordedVariable], KeptTerms | None]:
    """Return the values of the arguments by name, the nodes of variables, and the kept terms."""
    _, plain, _, use = saved
    variables = iter(active)
    values: dict[str, Operand] = {}
    nodes: dict[str, RecordedVariable] = {}
    for name, kind, x in zip(density.operands, density.kinds_of(use), plain, strict=True):
        if is_scipy_sparse(x):
            values[name] = x
            continue
        values[name], node = program.operand(next(variables) if kind & IS_VARIABLE else x)
        if node is not None:
            nodes[name] = node
    return values, nodes, use[1] if isinstance(use, tuple) else None


def _nothing(program: TapeProgram, density: SummedDensity, result: Operand, nodes: Operand) -> None:
    """Record the sum over no observations, with the checks of the variables."""
    for name, node in nodes.items():
        holds = density.arguments[name][1].holds(program.symbol(node.value))
        program.builder.guard(lift(program.builder, holds))
    program.node(result, program.builder.constant(0.0))


@cache
def _fast_terms(density: Univariate) -> Function:
    graph, terms = density.kept(True, None)
    return graph.function(terms)


def _fast_path_fails(density: Univariate, values: Sequence[object]) -> bool:
    """Tell whether the fast path is not finite at the recorded point, as at probability 1."""
    if not all(isinstance(v, (float, np.ndarray)) for v in values):
        return False
    with np.errstate(all="ignore"):
        try:
            terms = _fast_terms(density)(*map(np.asarray, values))
        except ArithmeticError:
            return True
    return not all(np.isfinite(term).all() for term in terms)


_OPERANDS = Operands(_split, _joined)


@writes(Univariate, operands=_OPERANDS)
def _density(
    program: TapeProgram, rule: Operand, result: Operand, active: Operand, saved: Operand
) -> None:
    density: Univariate = rule.op
    _, plain, shape, _ = saved
    values, nodes, keep = _arguments(program, density, active, saved)
    if shape is not None and 0 in shape:
        _nothing(program, density, result, nodes)
        return
    is_fast = density.fast is not None and density.fast.is_recorded
    stable = is_fast and _fast_path_fails(density, plain)
    row = RecordedSum(program, density, values, nodes, shape or (), keep, stable)
    row.record(result, nodes)


# The native runner reads a long matrix once.
@writes(Glm, operands=_OPERANDS)
def _glm(
    program: TapeProgram, rule: Operand, result: Operand, active: Operand, saved: Operand
) -> None:
    """Write the row at the linear predictors, and products with the matrix."""
    model: Glm = rule.op
    builder, size = program.builder, model.size(saved[1])
    values, nodes, keep = _arguments(program, model, active, saved)
    if not size:
        _nothing(program, model, result, nodes)
        return
    x, beta = values["X"], values["beta"]
    is_row = x.shape[0] != size or len(x.shape) == 1
    if is_row:
        x = builder.reshaped(x, beta.shape)
    values = {
        name: builder.reshaped(v, ()) if name not in ("X", "beta") and v.size == 1 else v
        for name, v in values.items()
    }

    sparse = step_of(x) if is_scipy_sparse(x) else None

    def product(transposed: bool, v: Value) -> Value:
        if sparse is not None:
            full = program.symbol(builder.broadcast(v, (x.shape[not transposed],)))
            return lift(builder, sparse(full, transposed))
        if is_row and transposed:
            return builder.ufunc(np.multiply, builder.sum(v), x)
        if transposed:
            return builder.matmul(builder.transposed(x), v)
        return builder.matmul(x, v)

    eta = values["alpha"]
    if beta.size:
        eta = builder.ufunc(np.add, eta, product(False, beta))
    values[PREDICTOR] = eta = eta if is_row else builder.broadcast(eta, (size,))
    of_row = {name: values[own] for name, own in model.names.items()}
    (predictor,) = (name for name, own in model.names.items() if own == PREDICTOR)
    variables = {name: nodes[own] for name, own in model.names.items() if own in nodes}
    # The predictor is not checked, because bad elements of it or its factors show in the value.
    retained = None if keep is None else model.kept_of_row(keep)
    row = RecordedSum(program, model.row, of_row, variables, (size,), retained)

    def of_predictor(g: Value) -> None:
        """Contribute to the matrix, the intercept and the weights."""
        slope = builder.broadcast(builder.ufunc(np.multiply, g, row.slope(predictor)), eta.shape)
        if "X" in nodes and beta.size:
            node = nodes["X"]
            rows = builder.sum(slope) if is_row else builder.reshaped(slope, (size, 1))
            c = builder.ufunc(np.multiply, rows, beta)
            program.contribute(node, builder.reshaped(c, node.shape), node.shape)
        if "alpha" in nodes:
            program.contribute(nodes["alpha"], slope, eta.shape)
        if "beta" in nodes and beta.size:
            program.contribute(nodes["beta"], product(True, slope), beta.shape)

    row.record(result, variables, of_predictor)
