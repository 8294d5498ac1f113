"""`numpy.polynomial` for variables too: `varmat.numpy.polynomial`.

The modules below it are NumPy's own files, imported a second time under other names, with
`varmat.numpy` for NumPy. NumPy drops coefficients that are zero. Here a coefficient that is a
variable stays, whatever its value is, because its derivative is not zero."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from functools import wraps
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy
import numpy.polynomial

from varmat import numpy as ours
from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import Answering
from varmat.core.operation import is_differentiable
from varmat.core.variables import value
from varmat.typing import Function, Operand

if TYPE_CHECKING:
    from numpy.polynomial import *  # noqa: F403

# Where Python looks for the modules below this one.
__path__ = [*numpy.polynomial.__path__]
__all__ = [*numpy.polynomial.__all__]

_CLASSES = {
    name: getattr(numpy.polynomial, name).__module__.rpartition(".")[2]
    for name in __all__
    if isinstance(getattr(numpy.polynomial, name), type)
}
_MODULES: dict[str, Any] = {
    name: import_module(f"{__name__}.{name}")
    for name in (*_CLASSES.values(), "polyutils", "_polybase")
}
globals().update({name: getattr(_MODULES[module], name) for name, module in _CLASSES.items()})


class _Kind(type):
    """A type with further instances, which a function finds."""

    def __instancecheck__(cls, x: object) -> bool:
        return bool(cls.has(x))  # type: ignore[attr-defined]


class _Like(ModuleType):
    """A module in which some types have variables among their instances."""

    def __init__(self, module: ModuleType, **kinds: Function) -> None:
        super().__init__(module.__name__)
        self._module = module
        for name, has in kinds.items():
            setattr(self, name, _Kind(name, (), {"has": staticmethod(has)}))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _is_array(x: object) -> bool:
    return isinstance(x, (numpy.ndarray, ArrayMethods, Answering))


def _is_number(x: Any) -> bool:
    return isinstance(x, numbers.Number) or (_is_array(x) and x.shape == ())


def _is_scalar(x: object) -> bool:
    """Tell whether `mapdomain` computes with `x` without making an array of it."""
    return isinstance(x, (numpy.generic, _MODULES["_polybase"].ABCPolyBase))


def _trimseq(theirs: Function) -> Function:
    @wraps(theirs)
    def trimseq(seq: Operand) -> Operand:
        return seq if is_differentiable(seq) else theirs(seq)

    return trimseq


def _line(theirs: Function) -> Function:
    """Wrap a function so that it does not drop the slope because its value is zero."""

    @wraps(theirs)
    def line(off: Operand, scl: Operand) -> Operand:
        if not is_differentiable(scl):
            return theirs(off, scl)
        return ours.array([off, 0.0]) + scl * theirs(0.0, 1.0)

    return line


def _padded(theirs: Function) -> Function:
    """Wrap a linear function so that it does not drop an only coefficient whose value is zero."""
    parameters = signature(theirs)

    @wraps(theirs)
    def padded(*args: Operand, **settings: Any) -> Operand:
        arguments = parameters.bind(*args, **settings)
        of = arguments.arguments
        c = ours.array(of["c"], ndmin=1)
        axis = of.get("axis", 0)
        if c.shape[axis] != 1 or not is_differentiable([c, of.get("k", 0)]):
            return theirs(*args, **settings)
        of["c"] = numpy.concatenate([c, numpy.zeros(c.shape)], axis)
        result = numpy.moveaxis(theirs(*arguments.args, **arguments.kwargs), axis, 0)
        return numpy.moveaxis(result[:-1], 0, axis)

    return padded


def _roots(theirs: Function) -> Function:
    """Wrap a function so that it sorts complex roots, which `numpy.sort` refuses."""

    @wraps(theirs)
    def roots(c: Operand) -> Operand:
        if not is_differentiable(c):
            return theirs(c)
        c = ours.array(c, ndmin=1)
        if value(c[-1]) == 0:
            raise ValueError(
                f"{theirs.__name__}: c[-1] is a variable with the value 0, but must be another "
                "number, because a root is infinite there!"
            )
        if len(c) <= 2:
            return theirs(c)
        companion = theirs.__globals__[theirs.__name__.replace("roots", "companion")]
        result = numpy.linalg.eigvals(companion(c))
        return result[numpy.argsort(value(result))]

    return roots


def _of_values(theirs: Function) -> Function:
    return wraps(theirs)(lambda x, *args, **settings: theirs(value(x), *args, **settings))


_KEEPING = {"trimseq": _trimseq, "format_float": _of_values} | {
    f"{kind}{end}": keeping
    for kind in ("poly", "cheb", "leg", "herm", "herme", "lag")
    for end, keeping in (("line", _line), ("mulx", _padded), ("int", _padded), ("roots", _roots))
}


def _changed(module: Any) -> Iterator[tuple[Function, Function]]:
    """Yield functions of a module, each with its replacement."""
    for name in module.__all__:
        thing = getattr(module, name)
        theirs = getattr(thing, "_implementation", thing)  # NumPy would dispatch it
        theirs = _KEEPING.get(name, lambda same: same)(theirs)
        if theirs is not thing:
            yield thing, theirs


def _install() -> None:
    for module in _MODULES.values():
        table = {id(theirs): mine for theirs, mine in _changed(module)}
        kinds = [x for x in vars(module).values() if isinstance(x, type)]
        for owner in (module, *kinds):
            for name, thing in [*vars(owner).items()]:
                if isinstance(thing, staticmethod) and id(thing.__func__) in table:
                    setattr(owner, name, staticmethod(table[id(thing.__func__)]))
                elif id(thing) in table:
                    setattr(owner, name, table[id(thing)])
        module.np = _Like(ours, ndarray=_is_array, generic=_is_scalar)
    base = _MODULES["_polybase"]
    base.numbers = _Like(numbers, Number=_is_number)
    base.repr = lambda x: repr(value(x))
    kind = base.ABCPolyBase
    kind._get_coefficients = _coefficients(kind._get_coefficients)
    for name in ("add", "sub", "mul", "divmod", "floordiv", "mod"):
        setattr(kind, f"__r{name}__", _reflected(getattr(kind, f"__r{name}__"), f"__{name}__"))
    for name in _CLASSES:
        getattr(numpy.polynomial, name).register(globals()[name])


# --- polynomials that NumPy made before, which meet these ---


def _converted(x: Any) -> Any:
    """Convert a polynomial of NumPy's class to the class here; return all else unchanged."""
    name = type(x).__name__
    if name not in _CLASSES or type(x) is not getattr(numpy.polynomial, name):
        return x
    return globals()[name](x.coef, x.domain, x.window, x.symbol)


def _coefficients(theirs: Function) -> Function:
    def get(self: Any, other: Operand) -> Operand:
        return theirs(self, _converted(other))

    return get


def _reflected(theirs: Function, operator: str) -> Function:
    @wraps(theirs)
    def reflected(self: Any, other: Operand) -> Any:
        mine = _converted(other)
        return theirs(self, other) if mine is other else getattr(mine, operator)(self)

    return reflected


_install()


@wraps(numpy.polynomial.set_default_printstyle)  # type: ignore[no-redef]
def set_default_printstyle(style: Any) -> None:
    numpy.polynomial.set_default_printstyle(style)
    _MODULES["_polybase"].ABCPolyBase._use_unicode = style == "unicode"


def stand_ins() -> Iterator[tuple[object, object]]:
    """Yield public modules, classes and functions of `numpy.polynomial`, with replacements."""
    yield numpy.polynomial, import_module(__name__)
    for name, module in _MODULES.items():
        theirs = import_module(f"numpy.polynomial.{name}")
        yield theirs, module
        yield from ((getattr(theirs, x), getattr(module, x)) for x in module.__all__)
