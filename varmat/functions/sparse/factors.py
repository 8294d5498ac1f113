"""Patterns of sparse matrices, their factors by SuperLU, and the elements of the inverse of a
positive definite one at its non-zeros.

With ``P A Pᵀ = L D Lᵀ`` the inverse ``Z`` satisfies ``Z = Lᵀ⁻¹ D⁻¹ L⁻¹``, from which its elements
where `L` is not zero follow from the last column to the first without any others [1]_. Here that is
done for supernodes, columns of `L` with the same rows below, from dense blocks: the inverse of the
block of a supernode and the rows below it is made of its parent's block in the elimination tree. It
takes as many operations as the factorisation, in as many calls of BLAS as there are supernodes.

.. [1] Takahashi, Fagan and Chen, "Formation of a sparse bus impedance matrix and its application to
       short circuit study", 1973.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from varmat.core.errors import DomainError
from varmat.functions.checks import TOLERANCE, outside
from varmat.functions.linalg.lapack import MatrixError
from varmat.plain_arrays import blocks
from varmat.programs.build.symbol import Symbol
from varmat.programs.kernels.sparse import csr, product_step, sampled, sampled_step
from varmat.typing import Operand, Plain, Result

# So many columns of the identity are solved for at a time.
COLUMNS = 64


class Pattern:
    """Where the non-zeros of a sparse matrix are, row by row (CSR).

    Attributes
    ----------
    shape : tuple of int
    indices : ndarray of int
        The columns of the non-zeros.
    indptr : ndarray of int
        Where the rows begin among the non-zeros, and where the last one ends.
    """

    def __init__(self, indices: np.ndarray, indptr: Operand, shape: tuple[int, int]) -> None:
        self.indices, self.indptr, self.shape = indices, indptr, (int(shape[0]), int(shape[1]))
        # The structure that factorisations of symmetric matrices make of it, once it is made.
        self.symmetric: Symmetric | None = None

    @property
    def nnz(self) -> int:
        """The number of non-zeros, with those that happen to be zero."""
        return len(self.indices)

    # Integers of 64 bits, contiguous, as programs want them; made once, because programs know
    # constants by identity.

    @cached_property
    def columns(self) -> Result:
        return np.ascontiguousarray(self.indices, np.int64)

    @cached_property
    def starts(self) -> Result:
        return np.ascontiguousarray(self.indptr, np.int64)

    @cached_property
    def rows(self) -> Result:
        return np.repeat(np.arange(self.shape[0]), np.diff(self.starts))

    @cached_property
    def places(self) -> Result:
        """The places of the non-zeros among the elements of the dense matrix."""
        return self.rows * self.shape[1] + self.columns

    @cached_property
    def is_canonical(self) -> bool:
        """Whether the columns of each row are in order, and none comes twice."""
        return bool(np.all(np.diff(self.places) > 0))

    @cached_property
    def in_order(self) -> tuple[Pattern, np.ndarray]:
        """A canonical pattern, and to which of its non-zeros each here is added."""
        indices, which = np.unique(self.places, return_inverse=True)
        return pattern_at(indices, self.shape), which

    @cached_property
    def transposition(self) -> tuple[Pattern, np.ndarray]:
        """The pattern of the transpose, and which of the non-zeros here is each of those there."""
        if not self.nnz:
            order, starts = np.zeros(0, np.int64), np.zeros(self.shape[1] + 1, np.int64)
        else:
            order = np.lexsort((self.rows, self.columns))
            starts = np.concatenate(
                [[0], np.cumsum(np.bincount(self.columns, minlength=self.shape[1]))]
            )
        return Pattern(self.rows[order], starts, self.shape[::-1]), order

    def is_same(self, other: Pattern) -> bool:
        """Return whether the non-zeros are at the same indices, in the same order."""
        return self is other or (
            self.shape == other.shape
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
        )

    def matrix(self, w: Operand) -> Result:
        """Make a sparse array of SciPy with plain non-zeros, which are not copied."""
        return csr(w, self.indices, self.indptr, self.shape)

    def times(self, w: Operand, b: Operand, transposed: bool = False) -> Result:
        """Multiply the matrix, or its transpose, by a vector or matrix, all of plain numbers or
        symbols.
        """
        if isinstance(w, Symbol) or isinstance(b, Symbol):
            return product_step(w, self.columns, self.starts, self.shape, b, transposed)
        matrix = self.matrix(w)
        return (matrix.T if transposed else matrix) @ b

    def sampled(self, x: Operand, y: Operand) -> Result:
        """Compute the elements of ``x @ y.T`` at the non-zeros, of plain numbers or symbols."""
        if isinstance(x, Symbol) or isinstance(y, Symbol):
            return sampled_step(x, y, self.rows, self.columns)
        return sampled(x, y, self.rows, self.columns)


def pattern_at(indices: Plain, shape: tuple[int, int]) -> Pattern:
    """Make the pattern of non-zeros from their indices in the dense matrix, which are in order."""
    rows, columns = np.divmod(indices, max(shape[1], 1))
    return Pattern(columns, np.searchsorted(rows, np.arange(shape[0] + 1)), shape)


def check_finite(function: str, pattern: Pattern, w: Operand) -> None:
    """Refuse non-zeros that are not finite."""
    wrong = np.flatnonzero(~np.isfinite(w))
    if len(wrong):
        raise outside(function, f"a{_place(pattern, wrong[0])}", float(w[wrong[0]]), "be finite")


def _place(pattern: Pattern, i: int) -> str:
    return f"[{int(pattern.rows[i])}, {int(pattern.columns[i])}]"


class General:
    """The LU factors of a square matrix.

    Parameters
    ----------
    function : str
        For messages.
    pattern : Pattern
    w : ndarray
        The non-zeros.
    """

    def __init__(self, function: str, pattern: Pattern, w: Operand) -> None:
        from scipy.sparse.linalg import splu

        check_finite(function, pattern, w)
        try:
            self.factors = splu(pattern.matrix(w).tocsc()) if pattern.shape[0] else None
        except RuntimeError:
            raise MatrixError(f"{function}: a is singular, but must be invertible!") from None

    def solve(self, b: Operand, transposed: bool = False) -> Result:
        """Solve for a vector, or for the columns of a matrix."""
        b = np.array(b, np.float64, order="F")
        return (
            np.ascontiguousarray(self.factors.solve(b, "T" if transposed else "N"))
            if b.size and self.factors
            else b
        )


class Symmetric:
    """The structure that factorisations of symmetric matrices with one canonical pattern share;
    made by `symmetric_of`.

    Attributes
    ----------
    source : ndarray of int
        For each non-zero the one in the lower triangle that is the same element.
    """

    def __init__(self, function: str, pattern: Pattern) -> None:
        other, order = pattern.transposition
        if not pattern.is_same(other):
            alone = np.setdiff1d(pattern.places, other.places)[0]
            i, j = divmod(int(alone), pattern.shape[1])
            raise DomainError(
                f"{function}: a has a non-zero at [{i}, {j}], but must have one at [{j}, {i}] too: "
                "it is symmetric!"
            )
        self.pattern, self.mirror = pattern, order
        below = pattern.rows - pattern.columns
        self.source = np.where(below >= 0, np.arange(pattern.nnz), order)
        # How often an element of the lower triangle is in the matrix; the upper one is not
        # read.
        self.counts = np.where(below > 0, 2.0, np.where(below == 0, 1.0, 0.0))
        self.is_below, self.is_above = below > 0, below < 0
        self.forests: dict[bytes, Forest] = {}

    def folded(self, c: Operand) -> Result:
        """Fold the derivative with respect to all elements into one with respect to the lower
        triangle.
        """
        return np.where(self.is_above, 0.0, np.where(self.is_below, c + c[self.mirror], c))

    def check(self, function: str, w: Operand) -> None:
        """Refuse what is not finite, or not symmetric to 1e-8."""
        check_finite(function, self.pattern, w)
        wrong = np.flatnonzero(
            ~(np.abs(w - w[self.mirror]) <= TOLERANCE * np.maximum(1.0, np.abs(w)))
        )
        if len(wrong):
            i = wrong[0]
            here, there = _place(self.pattern, i), _place(self.pattern, self.mirror[i])
            value, other = float(w[i]), float(w[self.mirror[i]])
            raise outside(
                function, f"a{here}", value, f"be {other!r}, as a{there} is, for a symmetric matrix"
            )

    def forest(self, order: np.ndarray) -> Forest:
        """Return the supernodes for an order of elimination."""
        key = order.tobytes()
        if key not in self.forests:
            self.forests = {key: Forest(self.pattern, order)}
        return self.forests[key]


def symmetric_of(function: str, pattern: Pattern) -> Symmetric:
    """Return the structure of a symmetric pattern, computed once; refuse other patterns."""
    if pattern.symmetric is None:
        pattern.symmetric = Symmetric(function, pattern)
    return pattern.symmetric


class Definite:
    """The factors of a symmetric positive definite matrix, whose lower triangle is read, with an
    order of little fill.

    Parameters
    ----------
    function : str
        For messages.
    pattern : Pattern
    w : ndarray
        The non-zeros.
    """

    def __init__(self, function: str, pattern: Pattern, w: Operand) -> None:
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        structure = symmetric_of(function, pattern)
        structure.check(function, w)
        self.structure, self.size = structure, pattern.shape[0]
        self.pivots, self.factors = np.zeros(0), None
        if not self.size:
            return
        matrix = csc_array(
            (w[structure.source], pattern.indices, pattern.indptr), shape=pattern.shape
        )
        try:
            # Without pivoting: the pivots of a positive definite matrix are positive in any order.
            self.factors = splu(
                matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
            )
            self.pivots = self.factors.U.diagonal()
        except RuntimeError:  # a pivot is zero
            raise _indefinite(function) from None
        if not np.all(self.pivots > 0.0) or not np.array_equal(
            self.factors.perm_r, self.factors.perm_c
        ):
            raise _indefinite(function)

    def solve(self, b: Operand) -> Result:
        """Solve for a vector, or for the columns of a matrix."""
        b = np.array(b, np.float64, order="F")
        return np.ascontiguousarray(self.factors.solve(b)) if b.size and self.factors else b

    def log_determinant(self) -> float:
        return float(np.sum(np.log(self.pivots)))

    def inverse_at_non_zeros(self) -> Result:
        """Compute the elements of the inverse at the non-zeros of the matrix."""
        if self.factors is None:
            return np.zeros(0)
        return self.structure.forest(self.factors.perm_c).inverse(self.factors.L, self.pivots)

    def sandwich(self, t: Operand) -> Result:
        """Compute the elements at the non-zeros of the inverse times a matrix with the same pattern
        times the inverse, by columns.
        """
        pattern = self.structure.pattern
        starts, result = pattern.starts, np.empty(pattern.nnz)
        middle = pattern.matrix(t)
        for columns in blocks(self.size, COLUMNS):
            first, last = columns.start, columns.stop
            unit = np.zeros((self.size, last - first))
            unit[np.arange(first, last), np.arange(last - first)] = 1.0
            # The columns of the transpose are the rows of the pattern.
            solved = self.solve(middle.T @ self.solve(unit))
            here = slice(starts[first], starts[last])
            result[here] = solved[pattern.columns[here], pattern.rows[here] - first]
        return result


def _indefinite(function: str) -> MatrixError:
    return MatrixError(
        f"{function}: a has a pivot that is not positive, but must be positive definite!"
    )


class Forest:
    """The elimination tree of a symmetric pattern in an order, as supernodes, and where the
    elements of the factor lie in them.

    A panel holds the columns of a supernode: a triangle, and the rows below it.

    Parameters
    ----------
    pattern : Pattern
    order : ndarray of int
        The new number of each row.
    """

    def __init__(self, pattern: Pattern, order: np.ndarray) -> None:
        self.size = len(order)
        rows, columns = order[pattern.rows], order[pattern.columns]
        below = _rows_below(self.size, rows, columns)
        # A column begins a supernode unless its rows are the previous column's, less one.
        firsts = [
            j
            for j in range(self.size)
            if not j
            or not len(below[j - 1])
            or below[j - 1][0] != j
            or len(below[j - 1]) != len(below[j]) + 1
        ]
        self.firsts = np.array([*firsts, self.size])
        self.widths = np.diff(self.firsts)
        self.node = np.repeat(np.arange(len(firsts)), self.widths)
        self.below = [below[last - 1] for last in self.firsts[1:]]
        panels = [
            np.concatenate([np.arange(a, b), s])
            for a, b, s in zip(firsts, self.firsts[1:], self.below, strict=True)
        ]
        self.heights = np.array([len(p) for p in panels])
        self.starts = np.concatenate([[0], np.cumsum(self.heights * self.widths)])
        # Keys by which the row of a panel is found from its node and the row of the matrix.
        self._keys = np.concatenate([i * self.size + p for i, p in enumerate(panels)])
        self._panel_rows = np.concatenate([np.arange(n) for n in self.heights])
        self.parents = [int(self.node[s[0]]) if len(s) else -1 for s in self.below]
        self.inside = [
            np.searchsorted(panels[p], s) for p, s in zip(self.parents, self.below, strict=True)
        ]
        self.children = np.bincount([p for p in self.parents if p >= 0], minlength=len(firsts))
        self.places = self._places(np.maximum(rows, columns), np.minimum(rows, columns))[0]

    def _places(self, rows: Operand, columns: Operand) -> tuple[Result, Result]:
        """Find the offsets of elements of the lower triangle in the panels, and whether they are in
        one.
        """
        node = self.node[columns]
        keys = node * self.size + rows
        positions = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        row = self._panel_rows[positions]
        return self.starts[node] + row * self.widths[node] + columns - self.firsts[
            node
        ], self._keys[positions] == keys

    def inverse(self, lower: Operand, pivots: Plain) -> Result:
        """Compute the elements of the inverse at the non-zeros of the matrix, from its unit lower
        factor and the pivots.
        """
        panels = np.zeros(self.starts[-1])
        columns = np.repeat(np.arange(self.size), np.diff(lower.indptr))
        indices, inside = self._places(lower.indices.astype(np.int64), columns)
        # SuperLU stores zeros beyond the elements of the factor.
        panels[indices[inside]] = lower.data[inside]
        waiting: dict[int, np.ndarray] = {}
        children = self.children.copy()
        for i in range(len(self.below) - 1, -1, -1):
            width, parent = self.widths[i], self.parents[i]
            panel = panels[self.starts[i] : self.starts[i + 1]].reshape(-1, width)
            full = None
            if parent >= 0:
                at = self.inside[i]
                full = waiting[parent][at[:, None], at]
                children[parent] -= 1
                if not children[parent]:
                    del waiting[parent]
            block = _inverse_of_panel(panel, pivots[self.firsts[i] : self.firsts[i + 1]], full)
            panel[...] = block[:, :width]
            if children[i]:
                waiting[i] = block
        return panels[self.places]


def _inverse_of_panel(panel: Operand, pivots: Plain, full: Operand) -> Result:
    """Compute the inverse at the rows of a panel, from the inverse at the rows below the
    triangle.
    """
    width = len(pivots)
    if width == 1:
        own, remainder = np.array([[1.0 / pivots[0]]]), panel[1:]
    else:
        from scipy.linalg.blas import dtrsm

        inverse = dtrsm(1.0, panel[:width], np.eye(width), lower=1, diag=1)
        own = inverse.T @ (inverse / pivots[:, None])
        remainder = panel[width:] @ inverse
    if full is None:
        return own
    block = np.empty((len(panel), len(panel)))
    across = full @ remainder
    block[width:, width:], block[width:, :width], block[:width, width:] = full, -across, -across.T
    block[:width, :width] = own + remainder.T @ across
    return block


def _rows_below(size: int, rows: Operand, columns: Operand) -> list[np.ndarray]:
    """Find for each column the rows of the factor below the diagonal: the matrix's rows, and rows
    of the columns whose parent it is.
    """
    is_below = rows > columns
    rows, columns = rows[is_below], columns[is_below]
    order = np.lexsort((rows, columns))
    own = np.split(rows[order], np.cumsum(np.bincount(columns, minlength=size))[:-1])
    children: list[list[int]] = [[] for _ in range(size)]
    below: list[np.ndarray] = []
    for j in range(size):
        parts = [own[j], *(below[child][1:] for child in children[j])]
        result = np.unique(np.concatenate(parts)) if len(parts) > 1 else parts[0]
        below.append(result)
        if len(result):
            children[result[0]].append(j)
    return below
