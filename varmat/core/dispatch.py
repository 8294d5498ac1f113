"""NumPy's doors: what happens when a function of NumPy is called on a variable.

NumPy calls `array_function`, or `array_ufunc` for a ufunc. Every function that NumPy can dispatch
is in exactly one of three tables: it is supported (`SUPPORTED`), evaluated on plain values
because its result has no derivative (`CONSTANT`), or raises with a sentence (`REFUSED`). The
modules of `varmat.functions` fill the tables, and `find` looks up what is supported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.tape import current_tape

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable
    from typing import TypeVar

    from numpy.typing import DTypeLike

    from varmat.typing import Index, Operand, Setting, Settings

    F = TypeVar("F", bound="Function")

Function = Callable[..., Any]

# The keys are functions; pairs of a ufunc and a method, such as reduce, or ``__call__`` for calls
# with settings; and names, ``module.name``, of functions whose modules need not be imported.
SUPPORTED: dict[Hashable, Function] = {}
CONSTANT: set[Function] = set()
# The keys are functions and names of modules, all of whose functions raise.
REFUSED: dict[Function | str, str] = {}
# Name of a scipy.special ufunc -> function. Resolved when the first such ufunc arrives, because
# importing scipy.special takes longer than importing NumPy.
SPECIAL: dict[str, Function] = {}
# Functions that modules above the engine provide. "special" finds the handler of a SciPy ufunc, in
# SPECIAL or in tables that it imports. "sparse" makes a variable of a sparse matrix of SciPy, for a
# function of a given name. Given the frame of the caller, "array" and "number" say what to write
# instead of converting a variable to one, and "place" where other people's code uses one.
HOOKS: dict[str, Function] = {}
# The owner of an attribute, its name, what it had, and what it has in a block of
# `varmat.numpy.patched`.
PatchedPlace = tuple[Any, str, object, object]
# Id of a module that is patched now -> in how many blocks, and the places.
PATCHED: dict[int, tuple[int, list[PatchedPlace]]] = {}
# Handlers of complex operands, filled by the modules of `varmat.complexes`. The keys are as in
# SUPPORTED, and operations and functions of the library.
COMPLEX: dict[Hashable, Function] = {}
# Names of modules with answers for rare functions. They are imported, and fill the tables, when the
# tables have no answer.
LATER: list[str] = []
# The operators <, <=, ==, !=, >=, >.
COMPARISONS = (np.less, np.less_equal, np.equal, np.not_equal, np.greater_equal, np.greater)


class Answering:
    """The base of types that answer in place of variables of real numbers."""

    __slots__ = ()


class ComplexKind(Answering):
    """The base of complex variables."""

    __slots__ = ()


class Standing(Answering):
    """The base of types that stand for an array or a variable, which is their `_settled`."""

    __slots__ = ()
    _settled: Operand


def settled(x: object) -> Operand:
    """Return what `x` stands for, or `x` itself. Copy an array, because it may be changed later."""
    if not isinstance(x, Standing):
        return x
    return x._settled.copy() if type(x._settled) is np.ndarray else x._settled


class ComplexDataError(TypeError):
    """Complex numbers are given where real ones are expected."""


def implements(
    *keys: Hashable, tables: Sequence[dict[Hashable, Function]] = (SUPPORTED,)
) -> Callable[[F], F]:
    """Register the decorated function as the handler of keys, as for functions of NumPy."""

    def register(implementation: F) -> F:
        for table in tables:
            table.update(dict.fromkeys(keys, implementation))
        return implementation

    return register


def full_name(function: Function) -> str:
    return f"{function.__module__}.{function.__name__}"


def find(function: Function) -> Function | None:
    """Find what is supported for a function of NumPy or SciPy, if anything is."""
    result = SUPPORTED.get(function)
    if result is None and not isinstance(function, np.ufunc):
        result = SUPPORTED.get(full_name(function))
    elif result is None and "scipy.special" in sys.modules:
        result = HOOKS["special"](function)
        if result is not None:
            SUPPORTED[function] = result
    return result


def import_later() -> None:
    """Import the modules that have been left for later."""
    while LATER:
        # The name goes away last, so that another thread waits for the import.
        name = LATER[0]
        import_module(name)
        if name in LATER:
            LATER.remove(name)


def complex_answers() -> dict[Hashable, Function]:
    """Return the filled table of handlers for complex operands."""
    import_later()
    return COMPLEX


def _value(x: object) -> Operand:
    """Return the value of a variable; of a scalar NumPy's number, which compares as NumPy does."""
    value = getattr(x, "_plain", x)
    return np.float64(value) if type(value) is float and value is not x else value


def plain(thing: object, value: Function = _value) -> Operand:
    """Replace variables by their values, through tuples, lists and dicts."""
    if isinstance(thing, (tuple, list)):
        items = [plain(item, value) for item in thing]
        return items if isinstance(thing, list) else tuple(items)
    if isinstance(thing, dict):
        return {key: plain(item, value) for key, item in thing.items()}
    return value(thing)


def is_complex(x: object) -> bool:
    """Return whether `x` is a complex variable or complex data, or a list with one in it."""
    if isinstance(x, (list, tuple)):
        return any(map(is_complex, x))
    return isinstance(x, complex) or getattr(getattr(x, "dtype", None), "kind", "") == "c"


def complex_answer(
    function: Function, name: str, operands: Sequence[object], settings: Settings
) -> Operand:
    """Call a function on complex operands, or raise if it takes real numbers only."""
    implementation = complex_answers().get(function)
    if implementation is None:
        text = (
            f"{name}: an operand is a complex variable, but must be real; use np.real, np.imag or "
            "np.abs of it"
        )
        raise TypeError(text)
    return implementation(*operands, **settings)


def is_watched(x: object) -> bool:
    """Return whether a recording follows how the value of `x` is used."""
    return getattr(getattr(x, "_tape", None), "watch", None) is not None


def constant(ufunc: Function, inputs: Sequence[Operand], kwargs: Settings) -> Operand:
    """Call a ufunc without a derivative on plain values, unless a recording answers for it."""
    watched = next(filter(is_watched, inputs), None)
    outcome = None if watched is None or kwargs else watched._tape.watch(watched, ufunc, inputs)
    return ufunc(*plain(inputs), **kwargs) if outcome is None else outcome


def array_function(
    self: object,
    function: Function,
    types: Collection[type],
    args: Sequence[object],
    kwargs: Settings,
) -> Operand:
    """Implement NumPy's `__array_function__` for every type of real numbers."""
    if len(types) > 1 and any(issubclass(kind, Answering) for kind in types):
        return NotImplemented  # they will answer
    implementation = SUPPORTED.get(function)
    if implementation is None and function not in CONSTANT:
        implementation = find(function)
    if implementation is not None:
        try:
            return _answering(self, function, implementation)(*args, **kwargs)
        except ComplexDataError:  # next to a variable, in any argument
            if function not in complex_answers():
                raise
        return COMPLEX[function](*args, **kwargs)
    if function in CONSTANT:
        return function(*plain(args), **plain(kwargs))
    if LATER:
        import_later()
        return array_function(self, function, types, args, kwargs)
    unknown = "it is not known to varmat; see varmat.operation for adding it"
    sentence = REFUSED.get(function) or REFUSED.get(function.__module__, unknown)
    place = HOOKS["place"](sys._getframe())
    raise TypeError(f"{full_name(function)}{place} is not differentiable here: {sentence}")


def _answering(self: object, function: Function, implementation: Function) -> Function:
    """Return the handler of a function; a recording may call the function itself, at each run."""
    tape = getattr(self, "_tape", None)
    if tape is not None and tape.watch is None:
        return implementation
    return current_tape().answering(function, implementation)


def array_ufunc(
    self: Operand, ufunc: np.ufunc, method: str, *inputs: Operand, **kwargs: Setting
) -> Operand:
    """Implement NumPy's `__array_ufunc__` for every type of varmat."""
    if method == "__call__" and not kwargs:
        implementation = SUPPORTED.get(ufunc)
        if implementation is not None:
            return implementation(*inputs)
    out, *more = kwargs.pop("out", (None,))
    if more:
        raise TypeError(
            f"np.{ufunc.__name__}: out= is not supported for several results; assign them, each "
            "with x[...] = result"
        )
    if out is not None:
        if ufunc not in CONSTANT:
            refuse_plain_out(ufunc, out)
        if not hasattr(out, "__setitem__"):
            raise TypeError(f"np.{ufunc.__name__}: out is a number, but must be an array!")
        part: Index = ...
        if "where" in kwargs and method == "__call__" and ufunc.signature is None:
            # Compute only the selected elements: elsewhere the derivative may not be finite.
            part = np.broadcast_to(plain(kwargs.pop("where")), out.shape)
            inputs = tuple(np.broadcast_to(x, out.shape)[part] for x in inputs)
        out[part] = getattr(ufunc, method)(*inputs, **kwargs)
        return out
    implementation = None if ufunc in CONSTANT else find(ufunc)
    if method != "__call__":
        handler = SUPPORTED.get((ufunc, method))
        if handler is not None:
            return _answering(self, getattr(ufunc, method), handler)(*inputs, **kwargs)
        return _ufunc_method(ufunc, method, implementation, inputs, kwargs)
    if implementation is None:
        if ufunc in CONSTANT:
            return constant(ufunc, inputs, kwargs)
        sentence = REFUSED.get(
            ufunc, "it is not known to varmat; see varmat.elementwise for adding it"
        )
        place = HOOKS["place"](sys._getframe())
        raise TypeError(f"{ufunc.__name__}{place} is not differentiable here: {sentence}")
    if kwargs:
        if (ufunc, method) in SUPPORTED:
            return SUPPORTED[ufunc, method](*inputs, **kwargs)
        refuse_settings(ufunc, kwargs)
    return implementation(*inputs)


def _ufunc_method(
    ufunc: Function,
    method: str,
    implementation: Function | None,
    inputs: Sequence[Operand],
    kwargs: Settings,
) -> Operand:
    if method == "outer" and implementation is not None and not kwargs:
        a, b = inputs
        return ufunc(np.reshape(a, np.shape(a) + (1,) * np.ndim(b)), b)
    if ufunc in CONSTANT and method != "at":
        return getattr(ufunc, method)(*plain(inputs), **kwargs)
    raise TypeError(
        f"np.{ufunc.__name__}.{method} is not differentiable here: write it with the function, or "
        "x[index] = value"
    )


def refuse_settings(ufunc: Function, settings: Settings) -> None:
    """Raise unless the settings of a ufunc require what variables do in any case: float64."""
    for name, value in settings.items():
        if name == "dtype":
            refuse_dtype(ufunc, value)
        elif name not in ("casting", "order", "subok"):
            instead = "; use np.where on the result" if name == "where" else ""
            raise TypeError(f"{ufunc.__name__}: {name} is given, but must be left out{instead}!")


def refuse_dtype(function: Function, dtype: DTypeLike | None) -> None:
    """Raise unless float64 is required."""
    if dtype is not None and np.dtype(dtype) != np.float64:
        raise TypeError(f"{function.__name__}: dtype is {np.dtype(dtype)}, but must be float64!")


def refuse_plain_out(function: Function, out: object) -> None:
    """Raise unless variables can be written into `out`."""
    if isinstance(out, np.ndarray) and out.dtype != object:
        place = HOOKS["place"](sys._getframe())
        raise TypeError(
            f"np.{function.__name__}{place}: a variable cannot be written into a plain array "
            "(out=, or an in-place operator like +=), its derivative would be lost; write "
            "a = a + b, or make the array with np.zeros_like(variable)"
        )
