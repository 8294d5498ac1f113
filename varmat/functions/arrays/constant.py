"""NumPy functions whose result has no derivative: shapes, orders, comparisons, types and texts.

They answer with exactly what they give on the plain values. Functions that make an array
(``np.zeros(3, like=x)``) are here too: what they make is data. They refuse variables among their
own arguments, where a derivative would be lost."""

from __future__ import annotations

from types import ModuleType

import numpy as np
from numpy._core import umath

from varmat.core.dispatch import CONSTANT, implements, plain
from varmat.core.matvar import MatVar
from varmat.core.operation import is_differentiable
from varmat.functions.checks import by_position
from varmat.programs.record.conditions import Condition
from varmat.typing import Axis, Function, Operand, Result, Setting

SHAPES = """
    ones_like diag_indices_from tril_indices_from triu_indices_from isreal iscomplex isrealobj
    iscomplexobj imag
"""
ORDERS = """
    argmax argmin nanargmax nanargmin argsort argpartition lexsort argwhere nonzero flatnonzero
    searchsorted digitize count_nonzero
"""
TESTS = """
    all any isclose allclose array_equal array_equiv isin in1d isneginf isposinf angle
"""
TYPES = "can_cast min_scalar_type"
TEXTS = "array2string array_repr array_str"
OTHERS = "einsum_path"
UFUNCS = """
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
    logical_not isfinite isinf isnan signbit
"""
# Reached with like=.
CREATORS = """
    arange empty eye frombuffer fromfile fromfunction fromiter fromstring full genfromtxt identity
    loadtxt ones tri zeros
"""


def named(names: str, module: ModuleType = np) -> list[Function]:
    """Return the functions of these names; leave out those missing in this version of NumPy."""
    return [getattr(module, name) for name in names.split() if hasattr(module, name)]


CONSTANT.update(named(" ".join((ORDERS, TESTS, TYPES, TEXTS, OTHERS, UFUNCS))))
CONSTANT.update((np.linalg.matrix_rank, *named("_ones_like", umath)))


# Forward mode asks for these so often that they do not go through the plain values.
@implements(np.shape)
def _shape(a: Operand) -> tuple[int, ...]:
    return a.shape  # type: ignore[no-any-return]


@implements(np.ndim)
def _ndim(a: Operand) -> int:
    return len(a.shape)


@implements(np.size)
def _size(a: Operand, axis: Axis = None) -> int:
    return a.size if axis is None else int(np.size(plain(a), axis))


def _of_shape(function: Function) -> Function:
    """Make a handler for a function of the shape only: it does not read the values, so a recording
    may contain it.
    """
    return by_position(
        function,
        lambda a, *args, **settings: function(np.broadcast_to(0.0, np.shape(a)), *args, **settings),
    )


for _function in named(SHAPES):
    implements(_function)(_of_shape(_function))


def _of_types(function: Function) -> Function:
    """Make a handler for a function of types only, which a recording may contain too."""

    def answer(*arrays: Operand) -> Setting:
        def like(x: Operand) -> Operand:
            return np.empty(0, x.dtype) if type(x) is Condition or is_differentiable(x) else x

        return function(*map(like, arrays))

    return answer


for _function in named("common_type result_type"):
    implements(_function)(_of_types(_function))


def _of_memory(function: Function) -> Function:
    """Make a handler for a function of the memory of arrays: of a varmat's values, or of a matvar's
    array of scalars.
    """

    def answer(a: object, b: object, /, max_work: int | None = None) -> bool:
        arrays = (x.view(np.ndarray) if isinstance(x, MatVar) else plain(x) for x in (a, b))
        return bool(function(*arrays, max_work=max_work))

    return answer


for _function in named("may_share_memory shares_memory"):
    implements(_function)(_of_memory(_function))


def _creator(function: Function) -> Function:
    def create(*args: Setting, **settings: Setting) -> Result:
        if is_differentiable([*args, *settings.values()]):
            raise TypeError(
                f"np.{function.__name__} makes plain data, the derivative of a variable among its "
                "arguments would be lost; use np.full_like, np.broadcast_to, np.linspace or "
                "np.stack"
            )
        return function(*args, **settings)

    create.__name__ = function.__name__
    return create


for _function in named(CREATORS):
    implements(_function)(_creator(_function))
