"""Fewer rows of data in a program: by sufficient statistics, and where they are equal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

import numpy as np

from varmat.programs.ir.program import Program
from varmat.programs.kernels.matrices import MATMUL
from varmat.programs.kernels.reductions import Reduce
from varmat.programs.passes.affine_rows import RowsNeededError
from varmat.programs.passes.equal_rows import EqualRows
from varmat.programs.passes.sufficient_statistics import SufficientStatistics

__all__ = ["keep_rows"]

# The least number of rows for which a search pays, and how many lengths of rows are tried, the
# longest ones first, because each try reads the whole program.
LEAST, MOST_LENGTHS = 24, 8
_keeps = ContextVar("keeps", default=False)


@contextmanager
def keep_rows() -> Iterator[None]:
    """Let recordings that are made within keep all rows of data.

    Recordings replace rows that enter only by squares of affine functions of parameters, as in a
    normal regression with constant data, by as many rows as coefficients exist, or as many for each
    group. Gradients then take no longer for more rows, and are more exact, as if sums had been
    computed with twice the digits. Other rows that are equal in all data are computed once, with a
    count. Within this context recordings compute what the function says, row by row.

    Yields
    ------
    None

    Notes
    -----
    A recording is made when its function is first called, or a model is first evaluated.

    References
    ----------
    * G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., 2013, section 5.3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> y = np.linspace(0.0, 1.0, 1000)
    >>> f = vm.recorded(lambda m: vm.normal_lpdf(y, m, 2.0))
    >>> with vm.keep_rows():
    ...     value, _ = f(0.5)
    >>> g = vm.recorded(lambda m: vm.normal_lpdf(y, m, 2.0))
    >>> bool(abs(g(0.5)[0] - value) < 1e-11)
    True
    """
    token = _keeps.set(True)
    try:
        yield
    finally:
        _keeps.reset(token)


def with_fewer_rows(program: Program) -> Program:
    """Replace rows of data by fewer that give the same sums, unless they are to be kept."""
    if _keeps.get():
        return program
    for rewriter in (SufficientStatistics, EqualRows):
        for n in sorted(_lengths(program))[-MOST_LENGTHS:]:
            with suppress(RowsNeededError):
                program = rewriter(program, n).program()
    return program


def _lengths(program: Program) -> set[int]:
    """Return the lengths of axes along which elements are added up."""
    result: set[int] = set()
    for step in program.steps:
        if isinstance(step.kernel, Reduce) and step.kernel.ufunc is np.add:
            result.update(step.operands[0].shape[i] for i in step.kernel.axes)
        elif step.kernel is MATMUL:
            result.add(step.operands[0].shape[-1])
    return {n for n in result if n >= LEAST}
