"""Other people's modules with `varmat.numpy` in the place of NumPy, for a time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from varmat.core.dispatch import PATCHED
from varmat.numpy import making
from varmat.numpy.autograd import stand_ins
from varmat.scipy import mirrors

_lock = threading.Lock()


def replacements(ours: ModuleType) -> dict[int, object]:
    """Id of an object of NumPy, or of a module that wraps it -> what stands in its place."""
    found: dict[int, object] = {
        id(getattr(np, name)): getattr(making, name) for name in making.__all__
    }
    found[id(np)] = ours
    autograd, wrapper = sys.modules.get("autograd"), sys.modules.get("autograd.numpy")
    if autograd is not None and wrapper is not None:
        # Its functions hand variables to NumPy's; only those that make arrays do not.
        found[id(wrapper)] = ours
        found |= {
            id(vars(wrapper)[name]): getattr(making, name)
            for name in making.__all__
            if name in vars(wrapper)
        }
        found |= {id(theirs): mine for theirs, mine in stand_ins(autograd)}
    found |= {id(theirs): mine for theirs, mine in mirrors.stand_ins()}
    return found


def _modules(given: tuple[object, ...]) -> list[ModuleType]:
    """The modules, and for a package all that are imported of it."""
    found: dict[int, ModuleType] = {}
    for module in given:
        if not isinstance(module, ModuleType):
            raise TypeError(f"patched: a {type(module).__name__} is given, but must be a module!")
        name = module.__name__
        if name.partition(".")[0] in ("numpy", "varmat"):
            raise ValueError(
                f"patched: {name} is given, but must be a module that uses NumPy, not of NumPy or "
                "varmat itself!"
            )
        found[id(module)] = module
        inside = f"{name}." if hasattr(module, "__path__") else None
        for key, each in list(sys.modules.items()):
            if inside is not None and key.startswith(inside) and isinstance(each, ModuleType):
                found[id(each)] = each
    return list(found.values())


@contextmanager
def patched(*modules: ModuleType) -> Iterator[None]:
    """Let the code of modules make arrays of variables, inside this block.

    In their globals `numpy` (under whatever name it was imported), functions taken from it, such as
    `array`, and `autograd.numpy` are replaced by what `varmat.numpy` has, and SciPy's modules and
    functions by what `varmat.scipy` has; everything is put back at the end, also after an error.
    NumPy and SciPy themselves, and what other modules see of them, are never changed.

    Parameters
    ----------
    *modules : module
        A package stands for all of its modules that are imported.

    Raises
    ------
    TypeError
        For what is no module.
    ValueError
        For modules of NumPy or varmat.

    Notes
    -----
    The globals of a module are seen by all threads. The names that replace NumPy's do what NumPy's
    do in a thread that differentiates nothing, so that others are not disturbed; blocks in several
    threads, or one inside the other, may have the same module, and the last one to end puts the
    names back. What a function holds otherwise, as a default argument or in a closure, stays as it
    is.

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
    chosen = _modules(modules)
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
    count, names = PATCHED.get(id(module), (0, {}))
    if not count:
        names = {name: thing for name, thing in list(vars(module).items()) if id(thing) in table}
    PATCHED[id(module)] = (count + 1, names)
    if not count:
        vars(module).update((name, table[id(thing)]) for name, thing in names.items())


def _leave(module: ModuleType) -> None:
    count, names = PATCHED.pop(id(module))
    if count > 1:
        PATCHED[id(module)] = (count - 1, names)
    else:
        vars(module).update(names)
