"""How densities of one variable are written into programs: their terms and partials, traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.elementwise import ROWS, Elementwise
from varmat.densities.bernoulli import bernoulli_logit_lpmf, binomial_logit_lpmf
from varmat.densities.counts import neg_binomial_2_log_lpmf, poisson_log_lpmf
from varmat.densities.glm import bernoulli_logit_glm_lpmf, normal_id_glm_lpdf, poisson_log_glm_lpmf
from varmat.densities.glm_counts import binomial_logit_glm_lpmf, neg_binomial_2_log_glm_lpmf
from varmat.densities.normal import normal_lpdf
from varmat.densities.sparse_glm import SparseGlm
from varmat.densities.traced import with_value
from varmat.densities.univariate import IS_VARIABLE, Univariate
from varmat.functions.special.log_incomplete import SLOPES
from varmat.plain_arrays import is_scipy_sparse
from varmat.programs.build.arithmetic import ADD, SUBTRACT
from varmat.programs.build.builder import Builder
from varmat.programs.build.expressions import Scope, apply_row
from varmat.programs.build.symbol import Symbol, lift
from varmat.programs.ir.program import Shape, Step, Value
from varmat.programs.kernels.matrices import MATMUL
from varmat.programs.kernels.sparse import product_step
from varmat.programs.record.entries import structured
from varmat.programs.record.tape_programs import WRITERS, Operands, TapeProgram, writes

if TYPE_CHECKING:
    from varmat.densities.density import Kept
    from varmat.typing import Function, Operand, Result, Settings

# Functions of counts, the last operand, that are long and often wanted in sums.
COUNTED = ("log_rising_factorial", "zeta_difference", "digamma_less_line")


class _Names(Scope):
    """What the names in an expression mean; a slope gets the value of its function.

    Attributes
    ----------
    sums : dict
        Values that are functions of numbers and counts, which are data -> their sums: each count is
        computed once.
    """

    def __init__(self, builder: Builder, letters: Settings, let: dict[str, str]) -> None:
        super().__init__(builder, letters, let)
        self.sums: dict[Value, Value] = {}

    def __missing__(self, name: str) -> Result:
        if name in self.let or name not in (*SLOPES, *COUNTED):
            return super().__missing__(name)
        builder, apply = self.builder, with_value if name in SLOPES else self._counted
        return lambda *args: Symbol(
            builder, apply(builder, ROWS[name], [lift(builder, x) for x in args], apply_row)
        )

    def _counted(
        self, builder: Builder, row: Elementwise, operands: list[Value], apply: Callable[..., Value]
    ) -> Value:
        value = apply(builder, row, operands)
        *numbers, n = operands
        if not any(v.shape for v in numbers) and n.is_constant and is_tabulated(n.data, n.size):
            often = np.bincount(n.data.astype(np.intp).ravel()).astype(np.float64)
            each = apply(builder, row, [*numbers, builder.constant(np.arange(float(often.size)))])
            self.sums[value] = builder.call(MATMUL, each, builder.constant(often))
        return value


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
    dropping : sequence of str, optional
        The terms of which some are kept, if they are not those of the density.
    """

    def __init__(
        self,
        program: TapeProgram,
        density: Univariate,
        values: Mapping[str, Value],
        variables: Operand,
        shape: Shape,
        keep: Kept | None,
        dropping: Sequence[str] | None = None,
    ) -> None:
        self.builder, self.density, self.shape = program.builder, density, shape
        builder = program.builder
        self._symbols = {name: Symbol(builder, value) for name, value in values.items()}
        quick = density.quick
        if quick is not None and (
            not quick.fits_in(values) or (quick.number is not None and values[quick.number].shape)
        ):
            quick = None
        conditions: list[Value] = []
        if quick is not None and quick.when is not None:
            scope = _Names(builder, self._symbols, density.lets(quick))
            conditions = [scope.evaluate(part) for part in quick.when.split(" & ")]
            if not all(bool(np.all(v.data)) for v in conditions if v.is_constant):
                quick, conditions = None, []
        for condition in conditions:
            builder.guard(condition)
        self._scope = _Names(builder, self._symbols, density.lets(quick))
        if quick is not None and quick.number is not None:
            builder.guard_between(values[quick.number], *quick.between)
        if density.support is not None and not density.support_is_shown:
            for part in density.support.split(" & "):
                builder.guard(self._scope.evaluate(part))
        # What would not show in the value is checked at every run.
        late = density.late if keep is None else frozenset()
        for name, (_, domain) in zip(density.operands, density.checks, strict=True):
            if name in variables and name not in late:
                builder.guard(lift(builder, domain.holds(self._symbols[name])))
        self.value = builder.add_all([self._summed(term) for term in density.kept(keep, dropping)])

    def _summed(self, expression: str) -> Value:
        return self._total(self._scope.evaluate(expression))

    def _total(self, x: Value) -> Value:
        if x in self._scope.sums and x.shape == self.shape:
            return self._scope.sums[x]
        if self._has_sum(x):
            step: Step = x.step  # type: ignore[assignment]
            ufunc = np.add if step.kernel is ADD else np.subtract
            return self.builder.ufunc(ufunc, *map(self._total, step.operands))
        return self.builder.sum(self.builder.broadcast(x, self.shape))

    def _has_sum(self, x: Value) -> bool:
        """Whether it is a sum or difference of something with a sum of its own."""
        is_sum = x.step is not None and not x.is_view and x.step.kernel in (ADD, SUBTRACT)
        return is_sum and any(v in self._scope.sums or self._has_sum(v) for v in x.step.operands)  # type: ignore[union-attr]

    def partial(self, name: str) -> Value:
        """The derivative with respect to an argument, of its shape, or one for all elements."""
        expression = self.density.partials[name]
        return (
            self._scope.evaluate(expression)
            if self._symbols[name].shape
            else self._summed(expression)
        )


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
    traced = Traced(
        program, density, values, nodes, shape or (), use[1] if isinstance(use, tuple) else None
    )
    node = program.node(result, traced.value)
    program.finite.append(node)

    def back() -> None:
        g: Any = program.adjoint(node)
        for name, operand in nodes.items():
            program.contribute(
                operand, builder.ufunc(np.multiply, g, traced.partial(name)), operand.shape
            )

    program.back((node,), back)


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


def _glm(density: Univariate, predictor: str, dropping: Sequence[str] | None = None) -> Function:
    """How a generalised linear model is written: its density of the linear predictor, and two
    products with the matrix.

    A long matrix is gone through once, by `varmat.programs.passes.blocks`.
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
        traced = Traced(program, density, values, active, x.shape[:1], keep, dropping)
        node = program.node(result, traced.value)
        program.finite.append(node)

        def back() -> None:
            g: Any = program.adjoint(node)
            slope = builder.ufunc(np.multiply, g, traced.partial(predictor))
            _predictor_contributions(program, operands[1:4], slope)
            for name in active:
                operand = nodes[name]
                program.contribute(
                    operand, builder.ufunc(np.multiply, g, traced.partial(name)), operand.shape
                )

        program.back((node,), back)

    return write


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
    _glm(
        neg_binomial_2_log_lpmf,
        "eta",
        ("log_rising_factorial(phi, n)", *neg_binomial_2_log_lpmf.dropping[1:]),
    )
)
