"""Fewer rows of data in a program: by sufficient statistics, and where they are equal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from varmat.programs.ir.program import Program
from varmat.programs.passes.equal_rows import distinct
from varmat.programs.passes.sufficient_statistics import collapsed

__all__ = ["keep_rows"]

_keeps = ContextVar("keeps", default=False)


@contextmanager
def keep_rows() -> Iterator[None]:
    """Let recordings that are made within keep all rows of data.

    Recordings replace rows that enter only by squares of affine functions of parameters, as those
    of a normal regression with constant data do, by as many as there are coefficients, or as many
    for each group. Gradients then take no longer for more rows, and are more exact, as if sums had
    been computed with twice the digits. Other rows that are equal in all data are computed once,
    with a count. Within this context recordings compute what the function says, row by row.

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
    return program if _keeps.get() else distinct(collapsed(program))
