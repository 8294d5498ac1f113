"""Kernels: what the steps of programs compute. What each of them offers is said in `kernel`."""

from varmat.programs.ir.kernel import Arrays, Kernel, shape_of
from varmat.programs.kernels.elementwise import SELECT, Function, Select, Ufunc, ufunc_kernel
from varmat.programs.kernels.guards import GUARD, Guard, GuardBetween
from varmat.programs.kernels.loop import Loop
from varmat.programs.kernels.matrices import MATMUL, Gufunc, Matmul, SolveTriangular
from varmat.programs.kernels.places import (
    GATHER,
    Assemble,
    Copy,
    Gather,
    Kept,
    Write,
    copy_kernel,
    kept_kernel,
)
from varmat.programs.kernels.python_calls import PythonCall
from varmat.programs.kernels.reductions import SUM, Accumulate, Reduce, Sum

__all__ = [
    "GATHER",
    "GUARD",
    "MATMUL",
    "SELECT",
    "SUM",
    "Accumulate",
    "Arrays",
    "Assemble",
    "Copy",
    "Function",
    "Gather",
    "Guard",
    "GuardBetween",
    "Gufunc",
    "Kept",
    "Kernel",
    "Loop",
    "Matmul",
    "PythonCall",
    "Reduce",
    "Select",
    "SolveTriangular",
    "Sum",
    "Ufunc",
    "Write",
    "copy_kernel",
    "kept_kernel",
    "shape_of",
    "ufunc_kernel",
]
