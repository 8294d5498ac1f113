"""How type checkers see functions: by the kinds of the operands, the kind of the result.

Modules import these names from `varmat.typing`. Nothing imports this module at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

import numpy as np

from varmat.core.operation import Operation
from varmat.core.variables import Var, VarMat
from varmat.typing import Array, Propto, Scalar

__all__ = [
    "ArrayFunction", "DensityCall", "Derivative", "EitherFunction", "ElementwiseCall", "Indexing",
    "MakingOperation", "PointwiseCall", "RealArray", "ScalarFunction", "ValueAndGrad",
    "VarOrVarMat", "anything", "array_operator", "array_valued",
    "elementwise_valued", "pair_valued", "product", "reducing",
    "reduction", "scalar_operator", "scalar_or_array_valued", "scalar_valued", "shaping",
    "transforming", "triple_valued",
]  # fmt: skip

_Floats: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]
_PlainArray: TypeAlias = np.ndarray[Any, Any]
P = ParamSpec("P")
F = TypeVar("F", bound="_Structured")
K = TypeVar("K", contravariant=True)
T = TypeVar("T")
V = TypeVar("V")
R = TypeVar("R")
X = TypeVar("X", Var, VarMat)

_Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.floating[Any] | np.integer[Any] | np.bool_]]
RealArray: TypeAlias = _Numbers | Sequence[float] | Sequence[Sequence[float]]
_Plain: TypeAlias = float | RealArray
_Setting: TypeAlias = _Plain | str | tuple[int, ...] | None
_Element: TypeAlias = Scalar | _Numbers | VarMat


class EitherOperator(Protocol):
    """A method of `VarOrVarMat` for an operator."""

    @overload
    def __call__(self, other: Scalar, /) -> VarOrVarMat: ...
    @overload
    def __call__(self, other: _PlainArray | VarMat, /) -> VarMat: ...


class _Sparse(Protocol):
    """What `SparseVar` has."""

    pattern: Any

    def to_dense(self) -> Any: ...


_Variable: TypeAlias = Var | VarMat | _Sparse


class ScalarOperator(Protocol):
    """A method of `Var` for an operator."""

    @overload
    def __call__(self, other: VarOrVarMat, /) -> VarOrVarMat: ...
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
    def __call__(self, *args: Any, **settings: Any) -> VarOrVarMat: ...


class Indexing(Protocol):
    """How `VarMat` gives its parts."""

    @overload
    def __call__(self, key: slice, /) -> VarMat: ...
    @overload
    def __call__(self, key: Any, /) -> VarOrVarMat: ...


class Product(Protocol):
    """A method of `VarMat` for a product of matrices or vectors."""

    def __call__(self, other: Any, /) -> VarOrVarMat: ...


class Shaping(Protocol):
    """A method of `VarMat` that gives an array."""

    def __call__(self, *args: Any, **settings: Any) -> VarMat: ...


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


class ElementwiseCall(Protocol[P]):
    """A function of each element, whose arguments are broadcast."""

    is_structured: bool  # for type checkers alone: `operation` recognises it

    @overload
    def __call__(self, x: VarOrVarMat, /, *args: _Element, **settings: _Setting) -> VarOrVarMat: ...
    @overload
    def __call__(
        self, x: Scalar, y: VarOrVarMat, /, *args: _Element, **settings: _Setting
    ) -> VarOrVarMat: ...
    @overload
    def __call__(self, x: VarMat, /, *args: _Element, **settings: _Setting) -> VarMat: ...
    @overload
    def __call__(
        self, x: _Element, y: VarMat, /, *args: _Element, **settings: _Setting
    ) -> VarMat: ...
    @overload
    def __call__(
        self, x: _Element, y: _Element, z: VarMat, /, *args: _Element, **settings: _Setting
    ) -> VarMat: ...
    @overload
    def __call__(self, x: float, /, *args: float, **settings: _Setting) -> float: ...
    @overload
    def __call__(self, x: Var, /, *args: Scalar, **settings: _Setting) -> Var: ...
    @overload
    def __call__(self, x: float, y: Var, /, *args: Scalar, **settings: _Setting) -> Var: ...
    @overload
    def __call__(
        self, x: float, y: float, z: Var, /, *args: Scalar, **settings: _Setting
    ) -> Var: ...
    @overload
    def __call__(
        self, x: _Numbers, /, *args: float | _Numbers, **settings: _Setting
    ) -> _Floats: ...
    @overload
    def __call__(
        self, x: float, y: _Numbers, /, *args: float | _Numbers, **settings: _Setting
    ) -> _Floats: ...
    @overload
    def __call__(self, *args: P.args, **settings: P.kwargs) -> Any: ...


class StructuredCall(Protocol[P, K, V, R]):
    """A function that gives a `V` if an operand is a `K`, and an `R` if all are plain."""

    is_structured: bool

    @overload
    def __call__(self, x: K, /, *args: P.args, **settings: P.kwargs) -> V: ...
    @overload
    def __call__(self, x: Any, y: K, /, *args: Any, **settings: Any) -> V: ...
    @overload
    def __call__(self, x: Any, y: Any, z: K, /, *args: Any, **settings: Any) -> V: ...
    @overload
    def __call__(self, x: Any, y: Any, z: Any, w: K, /, *args: Any, **settings: Any) -> V: ...
    @overload
    def __call__(
        self, x: Any, y: Any, z: Any, w: Any, v: K, /, *args: Any, **settings: Any
    ) -> V: ...
    @overload
    def __call__(self, x: _Plain, /, *args: _Setting, **settings: _Setting) -> R: ...
    @overload
    def __call__(self, x: _Plain | K, /, *args: _Setting | K, **settings: _Setting) -> V | R: ...
    @overload
    def __call__(self, x: Any, /, *args: P.args, **settings: P.kwargs) -> Any: ...
    @overload
    def __call__(self, **operands: Any) -> Any: ...


class ReducingCall(Protocol[P]):
    """A function that gives a number, or an array along an axis."""

    is_structured: bool

    @overload
    def __call__(self, a: _Variable, /) -> Var: ...
    @overload
    def __call__(self, a: _Variable, /, *args: P.args, **settings: P.kwargs) -> VarOrVarMat: ...
    @overload
    def __call__(self, a: _Plain, /) -> float: ...
    @overload
    def __call__(self, a: Array, /) -> Scalar: ...
    @overload
    def __call__(self, a: Any, /, *args: P.args, **settings: P.kwargs) -> Any: ...
    @overload
    def __call__(self, **operands: Any) -> Any: ...


class TransformCall(Protocol[P]):
    """A transform, which gives the log density of its Jacobian too if it is asked."""

    is_structured: bool

    @overload
    def __call__(self, x: X, jacobian: Literal[True], /) -> tuple[X, Scalar]: ...
    @overload
    def __call__(self, x: X, y: Any, jacobian: Literal[True], /) -> tuple[X, Scalar]: ...
    @overload
    def __call__(self, x: X, y: Any, z: Any, jacobian: Literal[True], /) -> tuple[X, Scalar]: ...
    @overload
    def __call__(self, x: X, /, *args: Any, jacobian: Literal[True]) -> tuple[X, Scalar]: ...
    @overload
    def __call__(self, x: X, /, *args: Any, jacobian: Literal[False] = ...) -> X: ...
    @overload
    def __call__(self, x: float, /, *args: float, jacobian: Literal[False] = ...) -> float: ...
    @overload
    def __call__(
        self, x: _Numbers, /, *args: float | _Numbers, jacobian: Literal[False] = ...
    ) -> _Floats: ...
    @overload
    def __call__(self, x: Any, /, *args: P.args, **settings: P.kwargs) -> Any: ...
    @overload
    def __call__(self, **operands: Any) -> Any: ...


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


class _Structured(Protocol):
    is_structured: bool


class _Defined(Protocol):
    __code__: Any


class StructuredOperation(Operation, Generic[F]):
    """An operation whose value function has one of the decorators below."""

    __call__: F  # type: ignore[assignment]


class MakingOperation(Protocol):
    """What `operation` returns: the decorator of a value function."""

    @overload
    def __call__(self, function: F, /) -> StructuredOperation[F]: ...
    @overload
    def __call__(self, function: _Defined, /) -> Operation: ...


# For the declarations of methods.
anything: Any
scalar_operator: ScalarOperator
array_operator: ArrayOperator
product: Product
reduction: Reduction
shaping: Shaping

if TYPE_CHECKING:
    either_operator = cast(EitherOperator, None)

    class VarOrVarMat(Var, VarMat):  # type: ignore[misc]
        """A result that is an array or a number by the number of axes, which annotations do not
        know: a type checker lets it be used as either. At run time no class can be both.
        """

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = either_operator
        __truediv__ = __rtruediv__ = __pow__ = __rpow__ = either_operator
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = either_operator
        __getitem__: Indexing  # type: ignore[assignment]
        __iter__: Any
        val: Any
        adj: Any
        shape: Any
        size: Any

        def __neg__(self) -> VarOrVarMat: ...
        def __pos__(self) -> VarOrVarMat: ...
        def __abs__(self) -> VarOrVarMat: ...

    # What a function gives, by the name of its decorator. To a type checker, the first operand has
    # no name.
    Of: TypeAlias = Callable[Concatenate[Any, P], Any]
    _Pair: TypeAlias = tuple[T, T]
    _Triple: TypeAlias = tuple[T, T, T]
    ArrayFunction: TypeAlias = StructuredCall[P, _Variable, VarMat, _Floats]
    ScalarFunction: TypeAlias = StructuredCall[P, _Variable, Var, float]
    EitherFunction: TypeAlias = StructuredCall[P, _Variable, VarOrVarMat, Any]

    def array_valued(function: Of[P]) -> ArrayFunction[P]: ...
    def scalar_valued(function: Of[P]) -> ScalarFunction[P]: ...
    def scalar_or_array_valued(function: Of[P]) -> EitherFunction[P]: ...
    def pair_valued(
        function: Of[P],
    ) -> StructuredCall[P, _Variable, _Pair[VarMat], _Pair[_Floats]]: ...
    def triple_valued(
        function: Of[P],
    ) -> StructuredCall[P, _Variable, _Triple[VarMat], _Triple[_Floats]]: ...
    def reducing(function: Of[P]) -> ReducingCall[P]: ...
    def transforming(function: Of[P]) -> TransformCall[P]: ...
    def elementwise_valued(function: Callable[P, Any]) -> ElementwiseCall[P]: ...
