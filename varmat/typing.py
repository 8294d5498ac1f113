"""Types for annotations: what a function takes and returns that is called with variables by one,
and with numbers by another.

    def log_density(theta: vm.typing.Array) -> vm.typing.Scalar:
        return vm.normal_lpdf(theta, 0.0, 1.0)

Type checkers know of a density that it is a `Var` where one of its arguments is a variable, and a
float where all are floats. Otherwise it is a `Scalar`: the annotations of NumPy call an array what
its functions make of variables, ``X @ theta`` too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, overload

import numpy as np

from varmat.core.variables import Var, VarMat

__all__ = ["Array", "Scalar"]

Scalar: TypeAlias = float | Var
Array: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.float64]] | VarMat

_Variable: TypeAlias = Var | VarMat
_PlainArray: TypeAlias = np.ndarray[Any, Any]
_Floats: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]


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


if TYPE_CHECKING:  # for the declarations of methods
    anything: Any
    scalar_operator: ScalarOperator
    array_operator: ArrayOperator
    reduction: Reduction
    shaping: Shaping


class DensityCall(Protocol):
    """A log density or log mass of observations and parameters."""

    @overload
    def __call__(self, first: _Variable, /, *args: Any, propto: bool = False) -> Var: ...
    @overload
    def __call__(
        self, first: Any, second: _Variable, /, *args: Any, propto: bool = False
    ) -> Var: ...
    @overload
    def __call__(
        self, first: Any, second: Any, third: _Variable, /, *args: Any, propto: bool = False
    ) -> Var: ...
    @overload
    def __call__(self, *args: float, propto: bool = False) -> float: ...
    @overload
    def __call__(self, *args: Any, propto: bool = False, **named: Any) -> Scalar: ...


class PointwiseCall(Protocol):
    """A log density or log mass of each observation."""

    @overload
    def __call__(self, first: VarMat, /, *args: Any, propto: bool = False) -> VarMat: ...
    @overload
    def __call__(
        self, first: Any, second: VarMat, /, *args: Any, propto: bool = False
    ) -> VarMat: ...
    @overload
    def __call__(
        self, first: Any, second: Any, third: VarMat, /, *args: Any, propto: bool = False
    ) -> VarMat: ...
    @overload
    def __call__(self, *args: Any, propto: bool = False, **named: Any) -> Any: ...


class ElementwiseCall(Protocol):
    """An elementwise function."""

    @overload
    def __call__(self, x: VarMat, /, *args: Any) -> VarMat: ...
    @overload
    def __call__(self, x: Var, /) -> Var: ...
    @overload
    def __call__(self, x: float, /) -> float: ...
    @overload
    def __call__(self, *args: Any, **named: Any) -> Any: ...


class Derivative(Protocol):
    """A gradient as a function of the point."""

    @overload
    def __call__(self, x: float, /, *args: Any, **named: Any) -> float: ...
    @overload
    def __call__(self, x: _PlainArray, /, *args: Any, **named: Any) -> _Floats: ...
    @overload
    def __call__(self, x: Any, /, *args: Any, **named: Any) -> Any: ...


class ValueAndGrad(Protocol):
    """A value and a gradient as a function of the point."""

    @overload
    def __call__(self, x: float, /, *args: Any, **named: Any) -> tuple[float, float]: ...
    @overload
    def __call__(self, x: _PlainArray, /, *args: Any, **named: Any) -> tuple[float, _Floats]: ...
    @overload
    def __call__(self, x: Any, /, *args: Any, **named: Any) -> tuple[float, Any]: ...
