"""Products of matrices, factorisations and solves."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.ir.kernel import Arrays, Kernel, Results, Run
from varmat.programs.ir.program import FLOAT, ArrayLayout, Step, Value
from varmat.programs.run import assembling, nests
from varmat.programs.run.loops import loop_of
from varmat.programs.run.nodes import LONG, MOST, NotFusedError, loop_axes

if TYPE_CHECKING:
    from varmat.programs.ir.kernel import Module
    from varmat.programs.passes.batching import Batch
    from varmat.programs.run.graph import Graph
    from varmat.typing import Function


# Matrices with at most this many rows and columns are computed by separate instructions.
SMALL = 16


def is_small(*lengths: int) -> bool:
    """Return whether a matrix has separate instructions: it has elements, and not many."""
    return min(lengths) > 0 and max(lengths) <= SMALL


class Matmul(Kernel):
    """``numpy.matmul`` of vectors, matrices, and stacks of matrices."""

    name = "matmul"
    is_batchable = True

    def results(self, *operands: Value) -> list[ArrayLayout]:
        a, b = (v.shape for v in operands)
        leading = np.broadcast_shapes(a[:-2], b[:-2])
        return [(leading + a[-2:-1] + (b[-1:] if len(b) > 1 else ()), FLOAT)]

    def evaluate(self, *operands: np.ndarray) -> Results:
        return (np.matmul(*operands),)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        return partial(np.matmul, *operands, *results)

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        (a, b), (out,) = operands, results
        try:
            if not assembling.long_product(graph, a, b, out):
                self._fused(graph, a, b, out)
        except NotFusedError:
            self._called(graph, a, b, out)

    def _fused(self, graph: Graph, a: Value, b: Value, out: Value) -> None:
        """Write products of few elements as sums of products of numbers and vectors."""
        x, y = (
            graph.expanded(v, *((0, 2) if len(v.shape) == 1 else [len(v.shape) - before]))
            for v, before in ((a, 0), (b, 2))
        )
        # The axes are leading ones, rows, terms and columns.
        full = graph.temporary(np.broadcast_shapes(x.shape, y.shape))
        axes, term = loop_axes(full.shape, most=MOST), len(full.shape) - 2
        core = [full.shape[i] for i in axes if i >= term - 1]
        if len(core) > 1 or min(core, default=LONG + 1) <= LONG:
            raise NotFusedError("a large product")
        graph.put(full, *graph.mapped(partial(graph.apply, "multiply"), [x, y], full.shape, axes))
        vectors = [term - 1] * (len(a.shape) == 1) + [term + 1] * (len(b.shape) == 1)
        graph.reduced("accumulate", full, [term, *vectors], out)

    @staticmethod
    def _outer(v: Value, which: int) -> int:
        return 1 if len(v.shape) == 1 else v.shape[which - 2]

    def _called(self, graph: Graph, a: Value, b: Value, out: Value) -> None:
        # A vector is a matrix of one row, or of one column.
        a_core = (0, a.strides[0]) if len(a.shape) == 1 else a.strides[-2:]
        b_core = (b.strides[0], 0) if len(b.shape) == 1 else b.strides[-2:]
        m, k, n = self._outer(a, 0), a.shape[-1], self._outer(b, 1)
        core = list(out.strides[len(out.shape) - (len(a.shape) > 1) - (len(b.shape) > 1) :])
        out_core = (
            core.pop(0) if len(a.shape) > 1 else 8 * n,
            core.pop(0) if len(b.shape) > 1 else 8,
        )
        if len(out.shape) < 3 and is_small(m, k, n) and (b_core[1] == 8 or n == 1):
            sizes = (m, k, n), a_core, b_core
            graph.call("of_small", [a, b], [out], "product", *sizes)
            return
        # BLAS wants rows and columns of one element to have strides as if there were more.
        nests.gufunc(
            graph,
            loop_of(np.matmul, "dd->d"),
            [a, b],
            [out],
            [
                max(len(a.shape) - 2, 0),
                max(len(b.shape) - 2, 0),
                len(out.shape) - (len(a.shape) > 1) - (len(b.shape) > 1),
            ],
            (m, k, n),
            (*_spread(a_core, (m, k)), *_spread(b_core, (k, n)), *_spread(out_core, (m, n))),
        )

    def in_jax(self, jax: Module, step: Step) -> Function:
        return jax.numpy.matmul  # type: ignore[no-any-return]

    def is_liftable(self, operands: Sequence[Value]) -> bool:
        return all(len(v.shape) < 3 for v in operands)

    def batched(self, batch: Batch) -> Value | None:
        """Write products as one: a product with a shared matrix or vector, sums of rows for
        vectors, a stack of all others.
        """
        builder, (a, b), n = batch.builder, batch.columns, batch.n
        axes = len(a.shape), len(b.shape)
        if max(axes) > 2:
            return None
        if axes[0] == 1 and b.is_shared:
            return builder.matmul(a.make(), b.make())
        if axes[1] == 1 and a.is_shared:
            shared = builder.transposed(a.make()) if axes[0] == 2 else a.make()
            return builder.matmul(b.make(), shared)
        if axes == (1, 1):
            return builder.reduce(np.add, builder.ufunc(np.multiply, a.make(), b.make()), (1,))
        shape = (n, *batch.step.results[0].shape)
        if axes[0] == 2 and b.is_shared:
            rows = builder.reshaped(a.make(), (n * a.shape[0], a.shape[1]))
            return builder.reshaped(builder.matmul(rows, b.make()), shape)
        left, right = batch.full(a), batch.full(b)
        left = builder.reshaped(left, (n, 1, *a.shape)) if axes[0] == 1 else left
        right = builder.reshaped(right, (n, *b.shape, 1)) if axes[1] == 1 else right
        return builder.reshaped(builder.matmul(left, right), shape)


def _spread(strides: Sequence[int], shape: Sequence[int]) -> tuple[int, int]:
    """Return the strides of a matrix; axes of length one get strides as if it were C-contiguous."""
    (rows, columns), (m, n) = strides, shape
    if n == 1:
        columns = 8
    if m == 1:
        rows = 8 * n
    return rows, columns


MATMUL = Matmul()


@dataclass(frozen=True, repr=False, eq=False)
class Gufunc(Kernel):
    """A generalised ufunc of `numpy.linalg`, as ``(m,m),(m,n)->(m,n)``."""

    ufunc: np.ufunc

    is_batchable = True

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(self.ufunc.__name__)

    @property
    def axes(self) -> list[str]:
        """The letters of the core axes, of the operands and of the results."""
        return [
            "".join(re.findall(r"\w", x))
            for x in re.findall(r"\(([^)]*)\)", str(self.ufunc.signature))
        ]

    def results(self, *operands: Value) -> list[ArrayLayout]:
        leading, lengths = self.parted(operands)
        shape = np.broadcast_shapes(*(v.shape[:n] for v, n in zip(operands, leading, strict=True)))
        return [
            ((*shape, *(lengths[letter] for letter in core)), FLOAT)
            for core in self.axes[self.ufunc.nin :]
        ]

    def parted(self, values: Sequence[Value]) -> tuple[list[int], dict[str, int]]:
        """Return how many leading axes values have, and how long the core axes are."""
        pairs = list(zip(values, self.axes, strict=False))
        leading = [len(v.shape) - len(core) for v, core in pairs]
        return leading, {
            c: n
            for (v, core), k in zip(pairs, leading, strict=True)
            for c, n in zip(core, v.shape[k:], strict=True)
        }

    def evaluate(self, *operands: np.ndarray) -> Results:
        result = self.ufunc(*operands)
        return result if self.ufunc.nout > 1 else (result,)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        return partial(self.ufunc, *operands, *results)

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        values = [*operands, *results]
        leading, lengths = self.parted(values)
        if self is CHOLESKY and not any(leading) and is_small(lengths["m"]):
            columns = graph.temporary(operands[0].shape)
            sizes = lengths["m"], operands[0].strides
            graph.call("of_small", operands, [columns, *results], "cholesky", *sizes)
            return
        steps = [stride for v, n in zip(values, leading, strict=True) for stride in v.strides[n:]]
        loop = loop_of(self.ufunc, f"{'d' * len(operands)}->{'d' * len(results)}")
        nests.gufunc(graph, loop, operands, results, leading, list(lengths.values()), steps)

    def in_jax(self, jax: Module, step: Step) -> Function | None:
        linalg = jax.numpy.linalg
        by_name: dict[str, Function] = {
            "cholesky_lo": linalg.cholesky, "inv": linalg.inv, "det": linalg.det,
            "solve": linalg.solve, "solve1": lambda a, b: linalg.solve(a, b[..., None])[..., 0],
            "slogdet": linalg.slogdet, "eigvalsh_lo": linalg.eigvalsh,
            "eigh_lo": lambda a: linalg.eigh(a, symmetrize_input=False),
        }  # fmt: skip
        return by_name.get(self.name)

    def is_liftable(self, operands: Sequence[Value]) -> bool:
        return False  # because it depends on the operands whether there is one step

    def batched(self, batch: Batch) -> Value | None:
        step = batch.step
        if len(step.results) > 1 or len(set(self.parted(step.operands)[0])) > 1:
            return None
        return batch.builder.call(self, *map(batch.full, batch.columns))


_LINALG = np.linalg._umath_linalg
CHOLESKY, INVERSE, DETERMINANT, LOG_DETERMINANT, SOLVE, SOLVE_ONE = (
    Gufunc(getattr(_LINALG, name))
    for name in ("cholesky_lo", "inv", "det", "slogdet", "solve", "solve1")
)
# For the lower triangle and for the upper one.
EIGH = {"L": Gufunc(_LINALG.eigh_lo), "U": Gufunc(_LINALG.eigh_up)}


@dataclass(frozen=True, repr=False)
class SolveTriangular(Kernel):
    """``a^-1 b`` or ``a^-T b`` with a lower triangular matrix, by BLAS."""

    transposed: bool

    name = "solve_triangular"
    overwritable = slice(1, None)

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [(operands[1].shape, FLOAT)]

    def evaluate(self, *operands: np.ndarray) -> Results:
        from scipy.linalg.blas import dtrsm, dtrsv

        a, b = operands
        # To BLAS, which reads columns first, a C-contiguous lower triangle is the transposed upper.
        if b.ndim == 1:
            return (dtrsv(a.T, b, lower=0, trans=not self.transposed),)
        return (
            np.ascontiguousarray(dtrsm(1.0, a.T, b.T, side=1, lower=0, trans_a=self.transposed).T),
        )

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        (a, b), (out,) = operands, results
        n, columns = a.shape[-1], 1 if len(b.shape) == 1 else b.shape[-1]
        if is_small(n, columns):
            b = graph.broadcast(b, b.shape)
            graph.call("of_small", [a, b], [out], "solve", n, columns, self.transposed)
            return
        nests.elementwise(graph, loop_of(np.positive, "d->d"), [b], out)
        address, side = blas("dtrsm"), (b"R", b"U", b"T" if self.transposed else b"N", b"N")
        # To BLAS, which reads columns first, these are the transposed matrices.
        inputs = (*side, columns, n, 1.0, (0,), n, (1,), columns)
        graph.call("call_fortran", [a], [out], address, inputs)

    def in_jax(self, jax: Module, step: Step) -> Function:
        from jax.scipy.linalg import solve_triangular

        return partial(solve_triangular, lower=True, trans=int(self.transposed))


@cache
def blas(name: str) -> int:
    """Return the address of a function of SciPy's BLAS."""
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__[name]
    ctypes.pythonapi.PyCapsule_GetName.restype = ctypes.c_char_p
    ctypes.pythonapi.PyCapsule_GetName.argtypes = [ctypes.py_object]
    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = ctypes.pythonapi.PyCapsule_GetName(capsule)
    return int(ctypes.pythonapi.PyCapsule_GetPointer(capsule, signature))
