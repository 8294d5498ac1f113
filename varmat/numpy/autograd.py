"""autograd on varmat: what its functions do while `patched` has a module.

autograd records what it differentiates in one place, `trace`, and all of its functions get there,
also functions that a closure holds. So a few functions are replaced inside autograd
itself, and the others are plain code on them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from varmat.core.dispatch import find
from varmat.derivatives.forward import jvp
from varmat.derivatives.jacobians import jacobian as jacobian_of
from varmat.derivatives.jacobians import vjp
from varmat.derivatives.structure import Arguments, map_leaves
from varmat.numpy import making
from varmat.numpy.autograd_primitives import (
    Ruled,
    conjugates,
    getval,
    holds,
    isbox,
    joined,
    pairs_of,
    parts_of,
    pulled_back,
    template,
    values_of,
)
from varmat.numpy.buffers import settled
from varmat.plain_arrays import special
from varmat.typing import Function, Operand, Settings

# --- derivatives ---


class _Traced:
    """A function and its point, as a function of real numbers. It keeps the structure of what was
    returned.
    """

    def __init__(self, fun: Function, x: object) -> None:
        self.fun, self.x = fun, settled(x)
        self.points = parts_of(self.x)
        self.result: Operand = None
        self.is_constant = False

    def __call__(self, *parts: Operand) -> list[Operand]:
        y = settled(self.fun(joined(self.x, parts)))
        self.is_constant = not holds(y)
        # Return a plain result unchanged, because autograd refuses integers and truth values.
        self.result = y if self.is_constant else map_leaves(template, y)
        return [0.0] if self.is_constant else parts_of(y)

    def pulled(self, pullback: Function, g: Operand) -> Operand:
        """Pull a covector of the result back to the point, in the precision of the point."""
        parts = pulled_back(pullback, self, self.points, conjugates(self.result, g))
        precise = iter([_like(x, g) for x, g in pairs_of(self.x, joined(self.x, parts, -1.0))])
        return map_leaves(lambda *_: next(precise), self.x)


def _like(x: Operand, g: Operand) -> Operand:
    kind = getattr(x, "dtype", None)
    return np.asarray(g, kind)[()] if kind in (np.float16, np.float32) and not isbox(g) else g


def trace(start_node: Any, fun: Function, x: Operand) -> tuple[Operand, Any]:
    """Evaluate `fun`, and return also what autograd's two modes take for the end of a graph: a
    function of covectors, or something with a tangent.
    """
    kind, traced = type(start_node).__name__, _Traced(fun, x)
    node: Any = None
    if not traced.points:  # an empty container
        return fun(x), None
    if kind == "VJPNode":
        parts, pullback = vjp(traced, *traced.points)

        def node(g: Operand) -> Operand:
            return traced.pulled(pullback, g)

    elif kind == "JVPNode":
        directions = [t for _, t in pairs_of(traced.x, start_node.g)]
        parts, tangents = jvp(traced, traced.points, parts_of(directions))
        if not traced.is_constant:
            node = SimpleNamespace(g=joined(traced.result, tangents))
    else:
        raise TypeError(
            f"autograd: a graph of {kind} is requested, but varmat keeps none: use "
            "varmat.recorded for a function that is called often!"
        )
    if traced.is_constant:
        warnings.warn("Output seems independent of input.", stacklevel=2)
        return traced.result, None
    return joined(traced.result, parts), node


def jacobian(fun: Function, argnum: int = 0) -> Function:
    """Compute what autograd's `jacobian` does, without a reverse pass for each element of the
    result.
    """
    nary = sys.modules["autograd.wrap_util"].unary_to_nary(_jacobian)
    return nary(fun, argnum)  # type: ignore[no-any-return]


def _jacobian(fun: Function, x: Operand) -> Operand:
    traced = _Traced(fun, x)
    result = jacobian_of(lambda points: traced(*points), tuple(traced.points))
    if traced.is_constant:
        warnings.warn("Output seems independent of input.", stacklevel=2)
        return np.zeros(np.shape(traced.result) + np.shape(x))
    if len(result) != 1 or isinstance(x, (list, tuple, dict)):
        raise TypeError(
            "jacobian: the argument and the result must be a real scalar or array, the argument "
            "may be complex: use grad for other arguments!"
        )
    parts = result[0]
    return _like(x, parts[0] if len(parts) == 1 else parts[0] - 1j * parts[1])


def backward_pass(g: Operand, end_node: Function) -> Operand:
    """Pull a covector of the result back to the point."""
    return end_node(g)


# How many things autograd's `find_top_boxed_args` returns: three before release 1.9.
_LENGTH = [4]
# Id of an object of autograd -> the object, and what replaces it.
_REPLACED: dict[int, tuple[Any, Any]] = {}


class _Called:
    """Where autograd makes a node of a call: the result of the call instead."""

    def __init__(
        self,
        ans: object,
        fun: Function,
        args: Arguments,
        kwargs: Settings,
        argnums: tuple[int, ...],
        parents: tuple[object, ...],
    ) -> None:
        core, tracer = sys.modules["autograd.core"], sys.modules["autograd.tracer"]
        arguments = dict(zip(argnums, parents, strict=True))
        if any(fun in tracer.notrace_primitives[kind] for kind in (core.VJPNode, core.JVPNode)):
            self.result = fun(*(getval(arguments.get(i, x)) for i, x in enumerate(args)), **kwargs)
        elif id(fun) in _REPLACED:  # held elsewhere while the names in modules were replaced
            _, answer = _REPLACED[id(fun)]
            self.result = answer(*(arguments.get(i, x) for i, x in enumerate(args)), **kwargs)
        elif fun not in core.primitive_vjps and fun not in core.primitive_jvps:
            raise NotImplementedError(
                f"VJP and JVP of {getattr(fun, '__name__', fun)} wrt argnums {argnums} not defined"
            )
        else:
            op = Ruled(fun, args, kwargs, arguments, ans)
            self.result = joined(op.template, op(*op.variables))


def find_top_boxed_args(args: Arguments) -> tuple[Any, ...]:
    """Tell autograd's primitives which arguments contain variables."""
    boxes = [
        (i, SimpleNamespace(_value=values_of(x), _node=settled(x)))
        for i, x in enumerate(args)
        if holds(x)
    ]
    result = boxes, 0, _Called, False
    return result[: _LENGTH[0]]


def new_box(value: Operand, trace: int, node: _Called) -> Operand:
    """Return the result of a primitive."""
    return node.result


# --- what stands for what ---


class _BoxType(type):
    """The type of the stand-ins for autograd's types of boxes."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isbox(instance)


class ArrayBox(metaclass=_BoxType):
    """What variables are instances of, as autograd's boxes are of its `Box` and `ArrayBox`."""

    def __init__(self, *args: object) -> None:
        raise TypeError(
            "autograd: a box is created directly, but varmat does not differentiate boxes: use "
            "varmat.var!"
        )


def concatenate_args(axis: int, *args: Operand) -> Operand:
    """Call NumPy's `concatenate` as autograd does."""
    return np.concatenate(args, axis)


def array_from_args(settings: Arguments, kwargs: Settings, *args: Operand) -> Operand:
    """Call NumPy's `array` on several things, as autograd does."""
    return making.array(args, *settings, **kwargs)


def metadata(A: Operand) -> tuple[Any, ...]:
    """Return the properties of an array that autograd's rules need."""
    return np.shape(A), np.ndim(A), np.result_type(A), np.iscomplexobj(A)


def make_diagonal(D: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Operand:
    """Make the matrices with given diagonals: invert `numpy.diagonal`."""
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError("make_diagonal: only offset=0, axis1=-1, axis2=-2 is supported")
    return np.expand_dims(D, -1) * np.eye(np.shape(D)[-1])


def flatten(value: Operand) -> tuple[Operand, Function]:
    """Flatten nested containers into one vector, and return also the function that restores such
    containers from a vector.
    """
    leaves = [np.ravel(x) for x in _sorted_leaves(value)]
    vector = np.concatenate(leaves) if leaves else np.zeros(0)
    return vector, lambda vector: _unflatten(value, vector)


def _sorted_leaves(value: Operand) -> Iterator[Operand]:
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _sorted_leaves(item)
    else:
        yield value


def _unflatten(value: Operand, vector: Operand) -> Operand:
    sizes = [int(np.size(x)) for x in _sorted_leaves(value)]
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


def _standardised(function: Function) -> Function:
    return lambda x, loc=0.0, scale=1.0: function((np.subtract(x, loc)) / scale, scale)


def _logpdf(z: Operand, scale: Operand) -> Operand:
    return -0.5 * z * z - np.log(scale) - 0.5 * np.log(2.0 * np.pi)


# `autograd.scipy.stats.norm`.
NORMAL: dict[str, Function] = {
    "pdf": _standardised(lambda z, scale: np.exp(_logpdf(z, scale))),
    "logpdf": _standardised(_logpdf),
    "cdf": _standardised(lambda z, scale: special.ndtr(z)),
    "logcdf": _standardised(lambda z, scale: special.log_ndtr(z)),
    "sf": _standardised(lambda z, scale: special.ndtr(-z)),
    "logsf": _standardised(lambda z, scale: special.log_ndtr(-z)),
}
# Module of autograd -> name -> its object.
TABLE: dict[str, dict[str, object]] = {
    "autograd.builtins": {
        "isinstance": lambda x, kind: isinstance(values_of(x), kind),
        "type": lambda x: type(values_of(x)),
    },
    "autograd.core": {"backward_pass": backward_pass},
    "autograd.tracer": {
        "Box": ArrayBox,
        "find_top_boxed_args": find_top_boxed_args,
        "getval": getval,
        "isbox": isbox,
        "new_box": new_box,
        "trace": trace,
    },
    "autograd.differential_operators": {"jacobian": jacobian},
    "autograd.misc.flatten": {"flatten": flatten},
    "autograd.numpy.numpy_boxes": {"ArrayBox": ArrayBox},
    "autograd.numpy.numpy_wrapper": {
        "array": making.array,
        "_array_from_scalar_or_array": lambda settings, kwargs, x: making.array(
            x, *settings, **kwargs
        ),
        "array_from_args": array_from_args,
        "c_": making.c_,
        "concatenate_args": concatenate_args,
        "iscomplexobj": np.iscomplexobj,
        "make_diagonal": make_diagonal,
        "metadata": metadata,
        "ndim": np.ndim,
        "r_": making.r_,
        "result_type": np.result_type,
        "shape": np.shape,
    },
    "autograd.scipy.stats.norm": NORMAL,  # type: ignore[dict-item]
}


@cache
def _import_all() -> None:
    # A module imported inside a block would keep what it then imports of the others for ever.
    for package in ("autograd", "autograd.misc"):
        for _, name, _ in iter_modules(import_module(package).__path__, f"{package}."):
            if name != "autograd.scipy":
                import_module(name)


def modules() -> list[ModuleType]:
    """List the modules of autograd, if it is imported."""
    if "autograd" not in sys.modules:
        return []
    _import_all()
    return [
        module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "autograd" and isinstance(module, ModuleType)
    ]


def _refuse_to_interrupt() -> None:
    """Refuse a block inside a derivative of autograd's own: its boxes would lose their derivatives
    in functions that are replaced.
    """
    code = sys.modules["autograd.tracer"].trace.__code__
    if code is trace.__code__:
        return
    for frame in sys._current_frames().values():
        outer: FrameType | None = frame
        while outer is not None:
            if outer.f_code is code:
                raise TypeError(
                    "patched: autograd is differentiating, here or in another thread, and would "
                    "lose derivatives: begin the block before!"
                )
            outer = outer.f_back


def stand_ins(replacements: dict[int, object]) -> Iterator[tuple[object, object]]:
    """Yield objects of autograd, each with its replacement.

    Parameters
    ----------
    replacements : dict
        Id of an object of NumPy or SciPy -> its replacement.
    """
    result = modules()
    for module in result:
        things, table = vars(module), TABLE.get(module.__name__, {})
        missing = ", ".join(sorted(table.keys() - things.keys()))
        if missing and module.__name__ in ("autograd.core", "autograd.tracer"):
            raise TypeError(
                f"patched: {module.__name__} has no {missing}, without which derivatives would be "
                "lost: use a release of autograd from 1.7 to 1.9!"
            )
        for name in table.keys() & things.keys():
            if things[name] is table[name]:
                continue  # in a block inside another it is replaced already
            _REPLACED[id(things[name])] = things[name], table[name]
            if name == "find_top_boxed_args":
                _LENGTH[0] = len(things[name](()))
    if result:
        _refuse_to_interrupt()
    for module in result:
        things = vars(module)
        space = things["VSpace"] if module.__name__ == "autograd.core" else None
        for thing in [*things.values(), *(vars(space).values() if space is not None else ())]:
            if getattr(thing, "_is_autograd_primitive", False) and id(thing) not in _REPLACED:
                answer = _answer(module.__name__, thing.fun, replacements)
                if answer is not None:
                    _REPLACED[id(thing)] = thing, answer
    yield from _REPLACED.values()


def _answer(module: str, raw: Any, replacements: dict[int, object]) -> Any:
    """Return the function that varmat calls in place of a primitive of autograd, made of the
    function `raw`; None if it needs autograd's rules.
    """
    if id(raw) in replacements:
        answer = replacements[id(raw)]
        return None if getattr(answer, "_refuses", False) else answer
    is_plain = module.startswith(("autograd.numpy", "autograd.core", "autograd.builtins"))
    if is_plain or (isinstance(raw, np.ufunc) and find(raw)):
        return raw
    return None
