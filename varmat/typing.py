"""Types for annotations, of functions that are called with variables as well as with numbers.

    def log_density(theta: vm.typing.Array) -> vm.typing.Scalar:
        return vm.normal_lpdf(theta, 0.0, 1.0)

To a type checker a density is a `Var` if one of its arguments is a variable, and a float if all are
floats. Otherwise it is a `Scalar`: NumPy's annotations say array for whatever its functions make of
variables, ``X @ theta`` too.

A structured function says what it gives with a decorator, which only type checkers read:

    @array_valued
    def diag_pre_multiply(v: Operand, m: Operand) -> Result: ...

It is a `VarMat` if one of the first five operands is a variable, and a plain array if all are
plain. The decorator of an operation is below `operation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from varmat.core.dispatch import Function as Function
from varmat.core.tape import Rule
from varmat.core.variables import Var, VarMat

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from numpy.typing import ArrayLike as ArrayLike
    from numpy.typing import DTypeLike as DTypeLike

    from varmat.call_types import *  # noqa: F403
else:  # NumPy imports these with their documentation, which only annotations need
    ArrayLike = DTypeLike = DensityCall = PointwiseCall = Derivative = ValueAndGrad = Any
    ArrayFunction = EitherFunction = ScalarFunction = Any

    def _unchanged(function: Function) -> Function:
        return function

    array_valued = scalar_valued = scalar_or_array_valued = elementwise_valued = _unchanged
    pair_valued = triple_valued = reducing = transforming = _unchanged

__all__ = ["Array", "Scalar"]

_Floats: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]
_PlainArray: TypeAlias = np.ndarray[Any, Any]

Scalar: TypeAlias = float | Var
Array: TypeAlias = _Floats | VarMat

# The vocabulary of the library's own modules. NumPy's annotations know plain arrays alone, and
# rules compute with floats and arrays alike, so to a type checker these kinds are anything; to a
# reader they are what the comment says.
Operand: TypeAlias = Any  # Var, VarMat, Dual, MatVar, complex or sparse variable, or a Plain
Plain: TypeAlias = Any  # a plain value: a float or a float64 array
Adjoint: TypeAlias = Any  # a Plain of the shape of the variable; None before the first contribution
Index: TypeAlias = Any  # what NumPy takes in brackets
Result: TypeAlias = Any  # what a function makes of operands: of the kind that they ask for
# Whose threads run a program: those of an executor, as many as there are processors if it is
# "threads", this thread if it is "serial"; by default this one until more are worth starting.
Threads: TypeAlias = "ThreadPoolExecutor | str | None"
Axis: TypeAlias = int | tuple[int, ...] | None
Axes: TypeAlias = int | Sequence[int] | None  # SciPy's, which may also be lists
Shape: TypeAlias = tuple[int, ...]
Setting: TypeAlias = Any  # an argument that is not an operand: a keyword, or what a value saved
Settings: TypeAlias = dict[str, Setting]
Thunk: TypeAlias = Callable[[], Any]  # a computation that waits: called only if it is wanted
Linear: TypeAlias = Callable[[Any], Any]  # a linear map, from the tangent of an operand
Entry: TypeAlias = tuple[Rule, Any, Any, Any]  # of a tape: rule, result, and what the rule wants


# Whether densities drop terms; or arguments whose terms are kept although they are not variables.
Propto = bool | frozenset[str]
