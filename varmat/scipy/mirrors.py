"""The modules of `varmat.scipy`, and how a function of SciPy becomes one of theirs.

`varmat.functions.scipy_names.TABLE` says for each name of SciPy what answers for it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, MutableMapping
from functools import cache, wraps
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from varmat.core.dispatch import PATCHED, plain
from varmat.core.operation import is_differentiable
from varmat.functions import scipy_names
from varmat.functions.refused import in_library
from varmat.typing import Function, Operand, Settings

# Parameters that only save memory or time, or look for errors in plain numbers.
UNUSED = frozenset({
    *("overwrite_a", "overwrite_b", "overwrite_ab", "overwrite_x", "overwrite_data"),
    *("check_finite", "checks", "workers", "plan", "lwork", "lapack_driver", "driver"),
    *("balanced", "show", "solver"),
})  # fmt: skip
# SciPy's public modules that have a mirror; the others are SciPy's own.
MODULES = (
    "scipy",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.sparse",
    "scipy.sparse.linalg",
    "scipy.spatial",
    "scipy.spatial.distance",
    "scipy.special",
    "scipy.stats",
)


def _has_variables(args: tuple[Operand, ...], kwargs: Settings) -> bool:
    return any(map(is_differentiable, args)) or any(map(is_differentiable, kwargs.values()))


class Mirror(ModuleType):
    """A module of SciPy whose functions take variables."""

    def __init__(self, name: str) -> None:
        super().__init__(f"varmat.{name}", f"`{name}`, with functions that take variables.")
        self.__path__: list[str] = []
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "__all__":
            # Tools look for such names in all modules, which must not import SciPy.
            return getattr(sys.modules.get(self._name), name)
        below = MIRRORS.get(f"{self._name}.{name}")
        if below is None:
            below = reflected(self._name, name, getattr(import_module(self._name), name))
        # The first one stays, because `patched` finds stand-ins by their identity.
        return vars(self).setdefault(name, below)

    def __dir__(self) -> list[str]:
        return dir(import_module(self._name))

    def register(self, modules: MutableMapping[str, ModuleType]) -> None:
        """Let all mirrors but the root be importable as ``varmat.scipy.linalg`` and so on."""
        for mirror in MIRRORS.values():
            if mirror is not self:
                modules[mirror.__name__] = mirror


MIRRORS = {name: Mirror(name) for name in MODULES}
ROOT = MIRRORS["scipy"]


def stand_ins() -> Iterator[tuple[object, object]]:
    """Yield imported modules and functions of SciPy, each with its replacement."""
    for name, mirror in MIRRORS.items():
        if name in sys.modules:
            yield sys.modules[name], mirror
            yield from _functions(name)


@cache
def _functions(module: str) -> list[tuple[object, object]]:
    names = " ".join(scipy_names.TABLE.get(module, {}).values()).split()
    mirror: Any = MIRRORS[module]
    return [
        (getattr(mirror, name)._of_scipy, getattr(mirror, name))
        for name in names
        if hasattr(getattr(mirror, name, None), "_of_scipy")
    ]


def ours(module: str, name: str) -> Function | None:
    """Return the differentiable function for a name of SciPy, with SciPy's names of parameters."""
    text = scipy_names.answer(module, name)
    if text is None or not scipy_names.is_differentiable(text, name):
        return None
    if text.startswith("varmat.scipy."):
        form = import_module(module.replace("scipy", "varmat.scipy.forms", 1))
        return getattr(form, name)  # type: ignore[no-any-return]
    home: Any = {"vm": "varmat", "np.linalg": "numpy.linalg", "np.fft": "numpy.fft"}
    return getattr(import_module(home[text.rpartition(".")[0]]), name)  # type: ignore[no-any-return]


def reflected(module: str, name: str, theirs: Any) -> Any:
    """Return what a mirror contains for a name of SciPy."""
    text = scipy_names.answer(module, name)
    if (
        not callable(theirs)
        or isinstance(theirs, np.ufunc)
        or hasattr(theirs, "_of_scipy")
        or scipy_names.is_scipys_own(text)
    ):
        return theirs
    own = ours(module, name)
    if isinstance(theirs, type):
        return _class(module, name, theirs, own) if own is not None else theirs
    if not inspect.isroutine(theirs) or (text is None and name.startswith("is")):
        return theirs

    @wraps(theirs)
    def function(*args: Operand, **kwargs: Any) -> Operand:
        # Waiting arrays become plain ones, and variables too if the result has no derivative.
        if text == scipy_names.CONSTANT or not _has_variables(args, kwargs):
            return theirs(*plain(args), **plain(kwargs))
        if own is not None:
            args, kwargs = matched(f"{module}.{name}", theirs, own, args, kwargs)
            return own(*args, **kwargs)
        if id(sys.modules.get(theirs.__module__)) in PATCHED:
            return theirs(*args, **kwargs)  # SciPy's own code takes variables now
        raise TypeError(scipy_names.sentence(module, name, in_library(sys._getframe())))

    function.__module__, function._of_scipy = f"varmat.{module}", theirs  # type: ignore[attr-defined]
    function._refuses = own is None and text != scipy_names.CONSTANT  # type: ignore[attr-defined]
    return function


@cache
def _parameters(function: Function) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


@cache
def _places(theirs: Function, own: Function) -> dict[str, inspect.Parameter]:
    """Map SciPy's name of a parameter to our parameter: of the same name, of the same name in small
    letters, or the first one whatever its name is.
    """
    mine = _parameters(own)
    result = {
        name: mine[name if name in mine else name.lower()]
        for name in _parameters(theirs)
        if name in mine or name.lower() in mine
    }
    first, of_ours = next(iter(_parameters(theirs))), next(iter(mine.values()))
    if of_ours not in result.values():
        result[first] = of_ours
    return result


def matched(
    called: str, theirs: Function, own: Function, args: tuple[Operand, ...], kwargs: Settings
) -> tuple[tuple[Operand, ...], Settings]:
    """Convert the arguments of a function of SciPy to the arguments of ours.

    Raises
    ------
    TypeError
        If the arguments do not fit SciPy's signature, or one that ours does not have is given
        another value than the default.
    """
    try:
        bound = inspect.signature(theirs).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{called}: {error}") from None
    indices = _places(theirs, own)
    positional: list[Operand] = []
    by_name: dict[str, Operand] = {}
    for name, value in bound.arguments.items():
        parameter, place = _parameters(theirs)[name], indices.get(name)
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            by_name |= value
        elif place is not None and place.kind is place.POSITIONAL_ONLY:
            positional.append(value)
        elif place is not None:
            by_name[place.name] = value
        elif name not in UNUSED and not _is_default(value, parameter.default):
            raise TypeError(
                f"{called}: {name} is given with variables, but must be left out, because it has "
                "no derivatives!"
            )
    return tuple(positional), by_name


def _is_default(value: object, default: object) -> bool:
    if value is default:
        return True
    return isinstance(value, (bool, int, float, str)) and bool(value == default)


# --- splines, which are objects ---


def _class(module: str, name: str, theirs: type, own: Function) -> type:
    """Make a class of SciPy whose constructor calls ours if an argument is a variable, and whose
    objects, made of plain numbers, are evaluated at variables.
    """
    repeated = next(WRAPPED[base.__name__] for base in theirs.__mro__ if base.__name__ in WRAPPED)

    class Kind(type(theirs)):  # type: ignore[misc]
        def __call__(cls, *args: Operand, **kwargs: Any) -> Any:
            if not _has_variables(args, kwargs):
                return super().__call__(*plain(args), **plain(kwargs))
            args, kwargs = matched(f"{module}.{name}", theirs, own, args, kwargs)
            return own(*args, **kwargs)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, (theirs, own))  # type: ignore[arg-type]

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(kind, theirs)

    def evaluate(self: Any, *args: Operand, **kwargs: Any) -> Operand:
        if not _has_variables(args, kwargs):
            return theirs.__call__(self, *plain(args), **plain(kwargs))
        return repeated(self)(*args, **kwargs)

    members: dict[str, Any] = {
        "__call__": evaluate,
        "__doc__": theirs.__doc__,
        "__module__": f"varmat.{module}",
    }
    members |= {"_of_scipy": theirs, "__signature__": inspect.signature(theirs)}
    return Kind(name, (theirs,), members)


def _of_varmat(name: str) -> Any:
    return getattr(import_module("varmat"), name)


# A spline of plain numbers as one of ours.
WRAPPED: dict[str, Function] = {
    "PPoly": lambda s: _of_varmat("PPoly")(
        np.moveaxis(s.c, (0, 1), (s.axis, s.axis + 1)), s.x, s.extrapolate, s.axis
    ),
    "BSpline": lambda s: _of_varmat("BSpline")(s.t, s.c, s.k, s.extrapolate, s.axis),
    "RegularGridInterpolator": lambda s: _of_varmat("RegularGridInterpolator")(
        s.grid, s.values, s.method, s.bounds_error, s.fill_value
    ),
}
