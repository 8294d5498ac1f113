"""How densities of one variable are written into programs: their terms and partials, traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from varmat.core.elementwise import Elementwise
from varmat.densities.bernoulli import bernoulli_logit_lpmf, binomial_logit_lpmf
from varmat.densities.counts import neg_binomial_2_log_lpmf, poisson_log_lpmf
from varmat.densities.density import KeptTerms
from varmat.densities.glm import bernoulli_logit_glm_lpmf, normal_id_glm_lpdf, poisson_log_glm_lpmf
from varmat.densities.glm_counts import binomial_logit_glm_lpmf, neg_binomial_2_log_glm_lpmf
from varmat.densities.kinds import IS_VARIABLE
from varmat.densities.normal import normal_lpdf
from varmat.densities.sparse_glm import SparseGlm
from varmat.densities.traced import Outline, Replay
from varmat.densities.univariate import Univariate
from varmat.functions.special.gamma_functions import log_rising_factorial
from varmat.functions.special.precision_scores import digamma_less_line
from varmat.functions.special.zeta_functions import zeta_difference
from varmat.plain_arrays import is_scipy_sparse
from varmat.programs.build.arithmetic import ADD, AND, SUBTRACT
from varmat.programs.build.builder import Builder
from varmat.programs.build.expressions import apply_row
from varmat.programs.build.symbol import Symbol, lift
from varmat.programs.ir.program import Shape, Step, Value
from varmat.programs.kernels.matrices import MATMUL
from varmat.programs.kernels.sparse import product_step
from varmat.programs.record.entries import structured
from varmat.programs.record.tape_programs import WRITERS, Operands, TapeProgram, writes
from varmat.typing import Function, Operand, Result, Settings

# Functions of counts, the last operand, that are long and often wanted in sums.
COUNTED = (log_rising_factorial, zeta_difference, digamma_less_line)

# From an outline and what is kept to the terms.
TermsFunction = Callable[[Outline, Any], list[Any]]


def is_refuted(condition: Value) -> bool:
    """Whether a condition, or a part of a conjunction, is a constant that does not hold."""
    if condition.step is not None and condition.step.kernel is AND:
        return any(map(is_refuted, condition.step.operands))
    return condition.is_constant and not bool(np.all(condition.data))


def is_tabulated(n: np.ndarray, size: int) -> bool:
    """Whether these are counts of which many are the same."""
    return size > 1 and bool(
        np.min(n) >= 0.0 and 2.0 * np.max(n) < size and (np.floor(n) == n).all()
    )


class Traced:
    """A density of one variable in a program.

    Parameters
    ----------
    program : TapeProgram
    density : Univariate
    values : dict of str to Value
        Its arguments.
    variables : container of str
        Those that are variables.
    shape : tuple of int
        To which they broadcast.
    keep : frozenset of str, optional
        What is kept of the constants; None keeps all.
    terms : callable, optional
        What makes the terms of the outline of the density, if not `Univariate.kept`.
    careful : bool
        Whether the quick form must not be used.
    """

    def __init__(
        self,
        program: TapeProgram,
        density: Univariate,
        values: Mapping[str, Value],
        variables: Operand,
        shape: Shape,
        keep: KeptTerms | None,
        terms: TermsFunction | None = None,
        careful: bool = False,
    ) -> None:
        self.program = program
        builder = self.builder = program.builder
        self.shape, self._values = shape, values
        # Values that are functions of numbers and counts, which are data -> their sums: each count
        # is computed once.
        self._sums: dict[Value, Value] = {}
        quick = None if careful else density.quick
        data = {name: program.data.get(id(v), v) for name, v in values.items()}
        if quick is not None and (
            not quick.fits_in(data) or (quick.number is not None and values[quick.number].shape)
        ):
            quick = None
        if quick is not None:
            write = Replay(density.outline(True), builder, values, self._applied)
            condition = density.outline(True).parts.when
            if condition is not None:
                holds = write(condition)
                if is_refuted(holds):
                    quick = None
                else:
                    builder.guard(holds)
        outline = density.outline(quick is not None)
        self._write = Replay(outline, builder, values, self._applied)
        if quick is not None and quick.number is not None:
            builder.guard_between(values[quick.number], *quick.between)
        self._parts = outline.parts
        if self._parts.support is not None and not density.support_is_shown:
            builder.guard(self._write(self._parts.support))
        # What would not show in the value is checked at every run.
        late = density.late if keep is None else frozenset()
        for name, (_, domain) in zip(density.operands, density.checks, strict=True):
            if name in variables and name not in late:
                builder.guard(lift(builder, domain.holds(Symbol(builder, values[name]))))
        kept = density.kept(self._parts, keep) if terms is None else terms(outline, keep)
        self.value = builder.add_all([self._summed(term) for term in kept])

    def _applied(self, builder: Builder, row: Elementwise, operands: list[Value]) -> Value:
        value = apply_row(builder, row, operands)
        *numbers, n = operands
        if (
            row in COUNTED
            and not any(v.shape for v in numbers)
            and n.is_constant
            and is_tabulated(n.data, n.size)
        ):
            often = np.bincount(n.data.astype(np.intp).ravel()).astype(np.float64)
            counts = builder.constant(np.arange(float(often.size)))
            each = apply_row(builder, row, [*numbers, counts])
            self._sums[value] = builder.call(MATMUL, each, builder.constant(often))
        return value

    def _summed(self, result: Operand) -> Value:
        return self._total(self._write(result))

    def _total(self, x: Value) -> Value:
        if x in self._sums and x.shape == self.shape:
            return self._sums[x]
        if self._has_sum(x):
            step: Step = x.step  # type: ignore[assignment]
            ufunc = np.add if step.kernel is ADD else np.subtract
            return self.builder.ufunc(ufunc, *map(self._total, step.operands))
        return self.builder.sum(self.builder.broadcast(x, self.shape))

    def _has_sum(self, x: Value) -> bool:
        """Whether it is a sum or difference of something with a sum of its own."""
        is_sum = x.step is not None and not x.is_view and x.step.kernel in (ADD, SUBTRACT)
        return is_sum and any(v in self._sums or self._has_sum(v) for v in x.step.operands)  # type: ignore[union-attr]

    def write(
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
                c = self.builder.ufunc(np.multiply, g, self.partial(name))
                self.program.contribute(operand, c, operand.shape)

        self.program.back((node,), back)

    def partial(self, name: str) -> Value:
        """The derivative with respect to an argument, of its shape, or one for all elements."""
        partial = self._parts.partials[name]
        return self._write(partial) if self._values[name].shape else self._summed(partial)


def _split(rule: Operand, active: Operand, saved: Operand) -> Operand:
    """The operands of a density: its variables, and then its data."""
    _, plain, shape, use = saved
    data = [
        x for x, kind in zip(plain, rule.op.kinds_of(use), strict=True) if not kind & IS_VARIABLE
    ]
    return (*active, *data), (shape, use)


def _joined(rule: Operand, active: Operand, saved: Operand, operands: Operand) -> Operand:
    _, plain, shape, use = saved
    data = iter(operands[len(active) :])
    kinds = rule.op.kinds_of(use)
    values = [x if k & IS_VARIABLE else next(data) for x, k in zip(plain, kinds, strict=True)]
    return operands[: len(active)], (None, values, shape, use)


@cache
def _quick_terms(density: Univariate) -> Function:
    outline = density.outline(True)
    return outline.function(density.kept(outline.parts, None))


def _is_too_quick(density: Univariate, values: Sequence[Operand]) -> bool:
    """Whether the quick form is not finite where the function is recorded, as at probability 1."""
    if not all(isinstance(v, (float, np.ndarray)) for v in values):
        return False
    with np.errstate(all="ignore"):
        try:
            terms = _quick_terms(density)(*map(np.asarray, values))
        except ArithmeticError:
            return True
    return not all(np.isfinite(each).all() for each in terms)


@writes(Univariate, operands=Operands(_split, _joined))
def _density(
    program: TapeProgram, rule: Operand, result: Operand, active: Operand, saved: Operand
) -> None:
    density: Univariate = rule.op
    _, plain, shape, use = saved
    builder, variables = program.builder, iter(active)
    operands = {
        name: program.operand(next(variables) if kind & IS_VARIABLE else v)
        for name, kind, v in zip(density.operands, density.kinds_of(use), plain, strict=True)
    }
    values = {name: value for name, (value, _) in operands.items()}
    nodes = {name: node for name, (_, node) in operands.items() if node is not None}
    if shape is not None and 0 in shape:
        for name, (_, domain) in zip(density.operands, density.checks, strict=True):
            if name in nodes:
                builder.guard(lift(builder, domain.holds(program.symbol(values[name]))))
        program.node(result, builder.constant(0.0))
        return
    keep = use[1] if isinstance(use, tuple) else None
    careful = density.quick is not None and _is_too_quick(density, plain)
    traced = Traced(program, density, values, nodes, shape or (), keep, careful=careful)
    traced.write(result, nodes)


class SparseData:
    """A sparse matrix of independent variables in a program: as constants, row by row.

    Parameters
    ----------
    program : TapeProgram
    matrix : sparse array or matrix of SciPy
    """

    def __init__(self, program: TapeProgram, matrix: Operand) -> None:
        rows = matrix.tocsr()
        self.program, self.shape, self.size = program, rows.shape, rows.shape[0]
        self._parts = rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)

    def times(self, x: Value, transposed: bool) -> Value:
        """The product with a vector, or that of the transpose."""
        full = self.program.builder.broadcast(x, (self.shape[not transposed],))
        return product_step(*self._parts, self.shape, self.program.symbol(full), transposed).value


def _is_matrix_for(x: Value, others: Sequence[Value]) -> bool:
    """Whether this is a matrix with elements, and the others are numbers or vectors of one for each
    row.
    """
    return len(x.shape) == 2 and bool(x.size) and all(v.shape in ((), x.shape[:1]) for v in others)


def _predictor_contributions(
    program: TapeProgram, operands: Sequence[Operand], slope: Value
) -> None:
    """What the matrix, the intercept and the weights get from the derivative with respect to the
    linear predictor.
    """
    builder = program.builder
    (x, x_node), (_, alpha_node), (beta, beta_node) = operands
    if x_node is not None:
        rows = builder.reshaped(builder.broadcast(slope, x.shape[:1]), (x.shape[0], 1))
        program.contribute(x_node, builder.ufunc(np.multiply, rows, beta), x.shape)
    if alpha_node is not None:
        program.contribute(alpha_node, slope, x.shape[:1])
    if beta_node is not None:
        if isinstance(x, SparseData):
            product = x.times(slope, True)
        else:
            product = builder.matmul(builder.transposed(x), builder.broadcast(slope, x.shape[:1]))
        program.contribute(beta_node, product, beta_node.shape)


def _glm(density: Univariate, predictor: str, terms: TermsFunction | None = None) -> Function:
    """How a generalised linear model is written: its density of the linear predictor, and two
    products with the matrix.

    The native runner reads a long matrix once.
    """

    def write(
        program: TapeProgram,
        rule: Operand,
        result: Operand,
        args: Sequence[Operand],
        settings: Settings,
    ) -> None:
        operands: list[Result] = [
            (SparseData(program, x), None) if is_scipy_sparse(x) else program.operand(x)
            for x in args
        ]
        (y, _), (x, _), (alpha, _), (beta, _), *others = operands
        is_sparse = isinstance(x, SparseData)
        if not _is_matrix_for(x, [y, alpha, *(value for value, _ in others)]):
            structured(
                program,
                rule,
                result,
                [each for each in args if not is_scipy_sparse(each)],
                settings,
            )
            return
        builder = program.builder
        eta = builder.ufunc(
            np.add, alpha, x.times(beta, False) if is_sparse else builder.matmul(x, beta)
        )
        first = density.operands[0]
        names = [
            first,
            predictor,
            *(name for name in density.operands if name not in (first, predictor)),
        ]
        values = dict(zip(names, (y, eta, *(value for value, _ in others)), strict=True))
        nodes = dict(zip(names, (operands[0][1], None, *(node for _, node in others)), strict=True))
        active = [name for name, node in nodes.items() if node is not None]
        # The predictor is not checked, for what is wrong with it, or with what it is made of, shows
        # in the value.
        keep = settings.get("keep")
        if keep is not None:
            keep = frozenset({*active, predictor} if keep & {"X", "alpha", "beta"} else active)
        traced = Traced(program, density, values, active, x.shape[:1], keep, terms)

        def of_predictor(g: Value) -> None:
            slope = builder.ufunc(np.multiply, g, traced.partial(predictor))
            _predictor_contributions(program, operands[1:4], slope)

        traced.write(result, {name: nodes[name] for name in active}, of_predictor)

    return write


def _without_factorials(outline: Outline, keep: KeptTerms | None) -> list[Operand]:
    row, parts = neg_binomial_2_log_lpmf, outline.parts
    if keep is None or not keep & {"n", "phi"}:
        return [*row.kept(parts, keep)]
    n, _, phi = outline.symbols.values()
    return [log_rising_factorial(phi, n), *row.kept(parts, keep)[1:]]


@writes(SparseGlm)
def _sparse_glm(
    program: TapeProgram,
    rule: Operand,
    result: Operand,
    args: Sequence[Operand],
    settings: Settings,
) -> None:
    """As the same model with a dense matrix, if that is written in the way above."""
    writer = WRITERS.get(rule.op.model.operation.rule)
    if writer is None:
        structured(program, rule, result, args, settings)
    else:
        writer(program, rule, result, (args[0], settings["matrix"], *args[1:]), settings)


writes(normal_id_glm_lpdf.operation.rule)(_glm(normal_lpdf, "mu"))
writes(bernoulli_logit_glm_lpmf.operation.rule)(_glm(bernoulli_logit_lpmf, "alpha"))
writes(poisson_log_glm_lpmf.operation.rule)(_glm(poisson_log_lpmf, "alpha"))
writes(binomial_logit_glm_lpmf.operation.rule)(_glm(binomial_logit_lpmf, "alpha"))
# The density of counts keeps the logarithm of a binomial coefficient as one, with the factorials,
# which are data.
writes(neg_binomial_2_log_glm_lpmf.operation.rule)(
    _glm(neg_binomial_2_log_lpmf, "eta", _without_factorials)
)
