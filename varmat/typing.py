"""Types for annotations, of functions that are called with variables as well as with numbers.

    def log_density(theta: vm.typing.Array) -> vm.typing.Scalar:
        return vm.normal_lpdf(theta, 0.0, 1.0)

To a type checker a density is a `Var` if one of its arguments is a variable, and a float if all are
floats. Otherwise it is a `Scalar`: NumPy's annotations say array for whatever its functions make of
variables, ``X @ theta`` too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, overload

import numpy as np

from varmat.core.dispatch import Function as Function
from varmat.core.tape import Rule
from varmat.core.variables import Var, VarMat

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["Array", "Scalar"]

_Floats: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]
_PlainArray: TypeAlias = np.ndarray[Any, Any]
_Variable: TypeAlias = Var | VarMat

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


class ScalarOperator(Protocol):
    """A method of `Var` for an operator."""

    @overload
    def __call__(self, other: Scalar, /) -> Var: ...
    @overload
    def __call__(self, other: _PlainArray | VarMat, /) -> VarMat: ...


class ArrayOperator(Protocol):
    """A method of `VarMat` for an operator."""

    def __call__(self, other: Scalar | _PlainArray | VarMat, /) -> VarMat: ...


class Reduction(Protocol):
    """A method of `VarMat` that gives a number, or an array along an axis."""

    @overload
    def __call__(self) -> Var: ...
    @overload
    def __call__(self, *args: Any, **settings: Any) -> Any: ...


class Indexing(Protocol):
    """How `VarMat` gives its parts."""

    @overload
    def __call__(self, key: slice, /) -> VarMat: ...
    @overload
    def __call__(self, key: Any, /) -> Any: ...


class Shaping(Protocol):
    """A method of `VarMat` that gives an array."""

    def __call__(self, *args: Any, **settings: Any) -> VarMat: ...


# Whether densities drop terms; or arguments whose terms are kept although they are not variables.
Propto = bool | frozenset[str]

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike
    from numpy.typing import DTypeLike as DTypeLike

    # For the declarations of methods.
    anything: Any
    scalar_operator: ScalarOperator
    array_operator: ArrayOperator
    reduction: Reduction
    shaping: Shaping
else:  # NumPy imports these with their documentation, which only annotations need
    ArrayLike = DTypeLike = Any


class DensityCall(Protocol):
    """A log density or log mass of observations and parameters."""

    @overload
    def __call__(self, first: _Variable, /, *args: Any, propto: Propto = False) -> Var: ...
    @overload
    def __call__(
        self, first: Any, second: _Variable, /, *args: Any, propto: Propto = False
    ) -> Var: ...
    @overload
    def __call__(
        self, first: Any, second: Any, third: _Variable, /, *args: Any, propto: Propto = False
    ) -> Var: ...
    @overload
    def __call__(self, *args: float, propto: Propto = False) -> float: ...
    @overload
    def __call__(self, *args: Any, propto: Propto = False, **kwargs: Any) -> Scalar: ...


class PointwiseCall(Protocol):
    """A log density or log mass of each observation."""

    @overload
    def __call__(self, first: VarMat, /, *args: Any, propto: Propto = False) -> VarMat: ...
    @overload
    def __call__(
        self, first: Any, second: VarMat, /, *args: Any, propto: Propto = False
    ) -> VarMat: ...
    @overload
    def __call__(
        self, first: Any, second: Any, third: VarMat, /, *args: Any, propto: Propto = False
    ) -> VarMat: ...
    @overload
    def __call__(self, *args: Any, propto: Propto = False, **kwargs: Any) -> Any: ...


class ElementwiseCall(Protocol):
    """An elementwise function."""

    @overload
    def __call__(self, x: VarMat, /, *args: Any) -> VarMat: ...
    @overload
    def __call__(self, x: Var, /) -> Var: ...
    @overload
    def __call__(self, x: float, /) -> float: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


class Derivative(Protocol):
    """A gradient as a function of the point."""

    @overload
    def __call__(self, x: float, /, *args: Any, **kwargs: Any) -> float: ...
    @overload
    def __call__(self, x: _PlainArray, /, *args: Any, **kwargs: Any) -> _Floats: ...
    @overload
    def __call__(self, x: Any, /, *args: Any, **kwargs: Any) -> Any: ...


class ValueAndGrad(Protocol):
    """A value and a gradient as a function of the point."""

    @overload
    def __call__(self, x: float, /, *args: Any, **kwargs: Any) -> tuple[float, float]: ...
    @overload
    def __call__(self, x: _PlainArray, /, *args: Any, **kwargs: Any) -> tuple[float, _Floats]: ...
    @overload
    def __call__(self, x: Any, /, *args: Any, **kwargs: Any) -> tuple[float, Any]: ...
