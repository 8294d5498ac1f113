"""What stands in the place of autograd's functions in modules that are patched: theirs know no
variables but their own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.dual import Dual
from varmat.derivatives.hessians import hessian
from varmat.derivatives.jacobians import jacobian
from varmat.derivatives.reverse import grad, value_and_grad

if TYPE_CHECKING:
    from varmat.typing import Function, Operand


__all__: list[str] = []


def _at_first(functional: Function) -> Function:
    """A functional that takes ``argnum``, of one that differentiates with respect to the first
    argument.
    """

    def of(fun: Function, argnum: int = 0) -> Function:
        def derived(*args: Operand, **kwargs: object) -> Operand:
            before, after = args[:argnum], args[argnum + 1 :]
            return functional(
                lambda x, /, **named: fun(*before, x, *after, **named), args[argnum], **kwargs
            )

        return derived

    return of


def elementwise_grad(fun: Function, argnum: int = 0) -> Function:
    """The derivative of a function of arrays, element by element: with a tangent of ones."""

    def derived(*args: Operand, **kwargs: object) -> Operand:
        x = args[argnum]
        dual = Dual(x, np.ones(np.shape(x)))
        y = fun(*args[:argnum], dual, *args[argnum + 1 :], **kwargs)
        return y.tan if isinstance(y, Dual) else np.zeros(np.shape(y))

    return derived


def flatten(value: Operand) -> tuple[Operand, Function]:
    """The numbers of nested containers as one vector, and the function that makes such containers
    of a vector.
    """
    leaves = list(_leaves(value))
    return np.concatenate([np.ravel(x) for x in leaves]) if leaves else np.array(
        []
    ), lambda vector: _unflatten(value, vector)


def _leaves(value: Operand) -> Iterator[Operand]:
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _unflatten(value: Operand, vector: Operand) -> Operand:
    sizes = [int(np.size(x)) for x in _leaves(value)]
    ends = np.cumsum(sizes, dtype=int).tolist()
    parts = (vector[end - size : end] for size, end in zip(sizes, ends, strict=True))

    def build(value: Operand) -> Operand:
        if isinstance(value, dict):
            built = {key: build(value[key]) for key in sorted(value)}
            return {key: built[key] for key in value}
        if isinstance(value, (list, tuple)):
            return type(value)(map(build, value))
        return np.reshape(next(parts), np.shape(value))

    return build(value)


def _special(name: str) -> Any:
    import scipy.special

    return getattr(scipy.special, name)


def _standardised(function: Function) -> Function:
    return lambda x, loc=0.0, scale=1.0: function((np.subtract(x, loc)) / scale, scale)


def _logpdf(z: Operand, scale: Operand) -> Operand:
    return -0.5 * z * z - np.log(scale) - 0.5 * np.log(2.0 * np.pi)


# `autograd.scipy.stats.norm`.
NORMAL = SimpleNamespace(
    pdf=_standardised(lambda z, scale: np.exp(_logpdf(z, scale))),
    logpdf=_standardised(_logpdf),
    cdf=_standardised(lambda z, scale: _special("ndtr")(z)),
    logcdf=_standardised(lambda z, scale: _special("log_ndtr")(z)),
    sf=_standardised(lambda z, scale: _special("ndtr")(-z)),
    logsf=_standardised(lambda z, scale: _special("log_ndtr")(-z)),
)
FUNCTIONALS = {
    "elementwise_grad": elementwise_grad,
    "grad": grad,
    "hessian": _at_first(hessian),
    "jacobian": _at_first(jacobian),
    "value_and_grad": value_and_grad,
}


def stand_ins(autograd: ModuleType) -> Iterator[tuple[object, object]]:
    """Functions and modules of autograd, and what replaces each."""
    for name, function in FUNCTIONALS.items():
        yield getattr(autograd, name), function
    misc = sys.modules.get("autograd.misc")
    if misc is not None:
        yield misc.flatten, flatten
    normal = sys.modules.get("autograd.scipy.stats.norm")
    if normal is not None:
        yield normal, NORMAL
