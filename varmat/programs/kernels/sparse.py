"""Products with sparse matrices as steps: the non-zeros in rows (CSR), their columns and where each
row begins.

Indices are 64 bit integers, constants of the program; the non-zeros may be anything. No step makes
a dense matrix of a sparse one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.plain_arrays import BLOCK, blocks
from varmat.programs.build.symbol import Symbol, called
from varmat.programs.ir.kernel import Arrays, Kernel
from varmat.programs.ir.program import FLOAT, ArrayLayout, Step, Value
from varmat.programs.run import assembling
from varmat.programs.run.loops import NoLoopError

if TYPE_CHECKING:
    from jax import Array as JaxArray

    from varmat.programs.ir.kernel import Module, Results, Run
    from varmat.programs.run.graph import Graph
    from varmat.typing import Function, Operand


def csr(data: object, indices: object, indptr: object, shape: tuple[int, int]) -> Operand:
    """Make a sparse array of SciPy around arrays that are not copied."""
    from scipy.sparse import csr_array

    return csr_array((data, indices, indptr), shape=shape)


def sampled(x: Operand, y: Operand, rows: Operand, columns: Operand) -> Operand:
    """Compute elements of ``x @ y.T``: for vectors the outer product's."""
    if np.ndim(x) == 1:
        return x[rows] * y[columns]
    result = np.empty(len(rows))
    for here in blocks(len(rows), max(1, BLOCK // max(1, x.shape[1]))):
        np.einsum("ij,ij->i", x[rows[here]], y[columns[here]], out=result[here])
    return result


@dataclass(frozen=True, repr=False)
class SparseProduct(Kernel):
    """The product of a sparse matrix of a shape, or of its transpose, with a vector or a matrix."""

    shape: tuple[int, int]
    transposed: bool

    name = "sparse_matmul"

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [((self.shape[self.transposed], *operands[3].shape[1:]), FLOAT)]

    def _matrix(self, operands: Arrays) -> Operand:
        data, indices, indptr, _ = operands
        matrix = csr(data, indices, indptr, self.shape)
        return matrix.T if self.transposed else matrix

    def evaluate(self, *operands: np.ndarray) -> Results:
        return (self._matrix(operands) @ operands[3],)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        matrix = self._matrix(operands)
        if not np.shares_memory(matrix.data, operands[0]):
            return super().bind(operands, results)
        (out,), b = results, operands[3]

        def run() -> None:
            out[...] = matrix @ b

        return run

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        data, indices, indptr, b = operands
        counts = np.diff(graph.constants.seen(assembling.plain(indptr)))
        rows = graph.literal(np.repeat(np.arange(len(counts)), counts))
        source, target = (rows, indices) if self.transposed else (indices, rows)
        if len(b.shape) > 1:
            raise NoLoopError("a product with a matrix")
        terms = graph.temporary(data.shape)
        graph.put(taken := graph.temporary(data.shape), *assembling.gathered(graph, b, source))
        graph.each("multiply", [data, taken], terms)
        (out,) = results
        assembling.assemble(graph, out, None, [(None, terms.shape, terms, target)], False)

    def in_jax(self, jax: Module, step: Step) -> Function:
        jnp, counts = jax.numpy, np.diff(np.asarray(step.operands[2].data))
        rows = np.repeat(np.arange(len(counts)), counts)

        def rule(data: JaxArray, indices: JaxArray, indptr: JaxArray, b: JaxArray) -> Any:
            source, target = (rows, indices) if self.transposed else (indices, rows)
            terms = jnp.reshape(data, (-1,) + (1,) * (b.ndim - 1)) * b[source]
            return jnp.zeros(step.results[0].shape).at[target].add(terms)

        return rule


class SampledProduct(Kernel):
    """The elements of ``x @ y.T``, of vectors or matrices, at the places of a sparse matrix: the
    adjoint of its non-zeros.
    """

    name = "sampled_product"

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [(operands[3].shape, FLOAT)]

    def evaluate(self, *operands: np.ndarray) -> Results:
        return (sampled(*operands),)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        if operands[0].ndim == 1:
            x, y, rows, columns = operands
            return partial(_sampled_vectors, x, y, rows, columns, results[0], np.empty(len(rows)))
        return super().bind(operands, results)

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        x, y, rows, columns = operands
        if len(x.shape) > 1:
            raise NoLoopError("products of rows")
        taken = [graph.temporary(rows.shape) for _ in range(2)]
        for item, index, result in ((x, rows, taken[0]), (y, columns, taken[1])):
            graph.put(result, *assembling.gathered(graph, item, index))
        graph.each("multiply", taken, results[0])

    def in_jax(self, jax: Module, step: Step) -> Function:
        return lambda x, y, rows, columns: jax.numpy.sum(
            jax.numpy.reshape(x[rows] * y[columns], (len(rows), -1)), axis=1
        )


SAMPLED = SampledProduct()


def _sampled_vectors(
    x: Operand, y: Operand, rows: Operand, columns: Operand, out: np.ndarray, space: np.ndarray
) -> None:
    np.take(x, rows, None, out, "clip")
    np.multiply(out, np.take(y, columns, None, space, "clip"), out)


def product_step(
    data: object,
    indices: object,
    indptr: object,
    shape: tuple[int, int],
    b: object,
    transposed: bool,
) -> Symbol:
    """Write the product as a step; the non-zeros or `b` are symbols."""
    return called(SparseProduct(shape, transposed), data, indices, indptr, b)[0]


def sampled_step(x: object, y: object, rows: object, columns: object) -> Symbol:
    """Write the elements of an outer product as a step."""
    return called(SAMPLED, x, y, rows, columns)[0]
