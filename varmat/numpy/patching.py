"""Other people's modules with `varmat.numpy` instead of NumPy, for a time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FunctionType, ModuleType
from weakref import WeakKeyDictionary

import numpy as np

from varmat.core.dispatch import PATCHED, PatchedPlace
from varmat.numpy import making, reducing
from varmat.numpy.autograd import modules as modules_of_autograd
from varmat.numpy.autograd import stand_ins
from varmat.numpy.selecting import Extra
from varmat.scipy import mirrors

_lock = threading.Lock()
_METHODS = frozenset({classmethod, staticmethod})
# The functions of modules that may hold others, because finding them takes ten times as long as the
# rest.
_found: WeakKeyDictionary[ModuleType, list[FunctionType]] = WeakKeyDictionary()


def replacements(ours: ModuleType) -> dict[int, object]:
    """Return id of an object of NumPy, or of a module that wraps it -> its replacement."""
    result: dict[int, object] = {
        id(getattr(np, name)): getattr(x, name) for x in (making, reducing) for name in x.__all__
    }
    result[id(np)] = ours
    if "numpy.ma" in sys.modules:
        result[id(np.ma)] = ours.ma
    if "numpy.polynomial" in sys.modules:
        result |= {id(theirs): mine for theirs, mine in ours.polynomial.stand_ins()}
    extra = sys.modules.get("scipy._lib.array_api_extra")
    if extra is not None and hasattr(extra, "apply_where"):
        result[id(extra)] = Extra(extra)
    result |= {id(theirs): mine for theirs, mine in mirrors.stand_ins()}
    result |= {id(theirs): mine for theirs, mine in stand_ins(result)}
    return result


def _modules(arguments: tuple[object, ...]) -> list[ModuleType]:
    """Return the modules, and for a package all imported modules of it."""
    modules: dict[int, ModuleType] = {}
    for module in arguments:
        if not isinstance(module, ModuleType):
            raise TypeError(f"patched: a {type(module).__name__} is given, but must be a module!")
        name = module.__name__
        if name.partition(".")[0] in ("numpy", "varmat"):
            raise ValueError(
                f"patched: {name} is given, but must be a module that uses NumPy, not of NumPy or "
                "varmat itself!"
            )
        modules[id(module)] = module
        inside = f"{name}." if hasattr(module, "__path__") else None
        for key, x in list(sys.modules.items()):
            if inside is not None and key.startswith(inside) and isinstance(x, ModuleType):
                modules[id(x)] = x
    return list(modules.values())


@contextmanager
def patched(*modules: ModuleType) -> Iterator[None]:
    """Let the code of modules make arrays of variables, inside this block.

    In their globals `numpy` (under whatever name it was imported) and functions taken from it, such
    as `array`, are replaced by what `varmat.numpy` has, and SciPy's modules and functions by what
    `varmat.scipy` has; everything is put back at the end, also after an error. NumPy and SciPy
    themselves, and what other modules see of them, are never changed. If autograd is imported, it
    runs on varmat until then, for all modules and threads.

    Parameters
    ----------
    *modules : module
        A package stands for all of its modules that are imported.

    Raises
    ------
    TypeError
        For anything but modules; in a function that autograd differentiates; for releases of
        autograd that are not known.
    ValueError
        For modules of NumPy or varmat.

    Notes
    -----
    The globals of a module are seen by all threads. The names that replace NumPy's do what NumPy's
    do in a thread that differentiates nothing, so that others are not disturbed; blocks in several
    threads, or one inside the other, may have the same module, and the last one to end puts the
    names back. Default arguments and closures of the modules' functions are treated like globals.

    Examples
    --------
    >>> import types, numpy, varmat as vm
    >>> library = types.ModuleType("library")
    >>> code = "import numpy as np\\ndef f(x): return np.sum(np.array([x[0], 2.0 * x[1]]) ** 2)"
    >>> exec(code, vars(library))
    >>> with vm.numpy.patched(library):
    ...     vm.gradient(library.f, numpy.array([1.0, 2.0]))
    array([ 2., 16.])
    >>> library.np is numpy
    True
    """
    chosen = _modules((*modules, *modules_of_autograd()))
    entered: list[ModuleType] = []
    try:
        with _lock:
            table = replacements(sys.modules["varmat.numpy"])
            for module in chosen:
                entered.append(module)
                _enter(module, table)
        yield
    finally:
        with _lock:
            for module in entered:
                _leave(module)


def _enter(module: ModuleType, table: dict[int, object]) -> None:
    count, patches = PATCHED.get(id(module), (0, []))
    if not count:
        patches = list(_places(module, table))
    PATCHED[id(module)] = (count + 1, patches)
    if not count:
        for owner, name, _, ours in patches:
            setattr(owner, name, ours)


def _leave(module: ModuleType) -> None:
    count, patches = PATCHED.pop(id(module))
    if count > 1:
        PATCHED[id(module)] = (count - 1, patches)
    else:
        for owner, name, theirs, _ in patches:
            setattr(owner, name, theirs)


def _places(module: ModuleType, table: dict[int, object]) -> Iterator[PatchedPlace]:
    """Yield where a module holds objects of the table: its globals, and the closures and defaults
    of its functions.
    """
    for name, thing in list(vars(module).items()):
        if id(thing) in table:
            yield module, name, thing, table[id(thing)]
    if module not in _found:
        _found[module] = list(_functions(module))
    for function in _found[module]:
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # an empty cell
                thing = cell.cell_contents
                if id(thing) in table:
                    yield cell, "cell_contents", thing, table[id(thing)]
        of_place, of_name = function.__defaults__, function.__kwdefaults__
        if of_place and not table.keys().isdisjoint(map(id, of_place)):
            yield function, "__defaults__", of_place, tuple(table.get(id(x), x) for x in of_place)
        if of_name and not table.keys().isdisjoint(map(id, of_name.values())):
            ours = {name: table.get(id(x), x) for name, x in of_name.items()}
            yield function, "__kwdefaults__", of_name, ours


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions and methods of a module that hold functions or modules in closures or
    defaults, if their code belongs to its package.
    """
    package = module.__name__.partition(".")[0]
    if package == "autograd":  # a primitive's own code holds the primitive
        return
    things = list(vars(module).values())
    for kind in [x for x in things if isinstance(x, type) and x.__module__ == module.__name__]:
        things += vars(kind).values()
    for thing in things:
        while type(thing) in _METHODS:
            thing = thing.__func__
        while type(thing) is FunctionType:
            defaults = (*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values())
            holds = thing.__closure__ or any(callable(x) or type(x) is ModuleType for x in defaults)
            if holds and thing.__globals__.get("__name__", "").partition(".")[0] == package:
                yield thing
            thing = getattr(thing, "__wrapped__", None)
