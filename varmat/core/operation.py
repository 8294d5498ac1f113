"""Structured operations: one object, defined in one place, that knows its value, its reverse rule
and its tangent rule.

    @operation(np.linalg.inv)
    def inv(a):
        "docstring"
        return np.linalg.inv(a)                     # plain arrays in, a new plain array out

    @inv.reverse
    def inv_reverse(g, r, a):                       # the result's adjoint, the result, the operands
        return -r.T @ g @ r.T                       # the contribution to the operand's adjoint

    @inv.tangent
    def inv_tangent(r, a):                          # written with differentiable functions
        return lambda t: -r @ t @ r                 # the linear map of the operand's tangent

With several operands both rules return a tuple, one item per operand; in a reverse rule the items
are functions of no arguments, called only for operands that are variables. Put shared work before
the ``return``. Settings (axis, ...) reach both rules as keywords. So does what the value function
saved with `Saved`: the reverse rule gets all of it, the tangent rule what it names. A tangent rule
may turn a saved value into a result, as the inverse of a factor, with `Operation.known`.

In a program the value function and the reverse rule of the library's own operations are run on
symbols. A function that looks at numbers may ask `is_symbol` and save, as `pull`, a function from
the adjoint to the contributions, in place of the reverse rule.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core import dispatch
from varmat.core.arena import LARGE
from varmat.core.array_methods import FLOAT64, ArrayMethods
from varmat.core.data import data
from varmat.core.dual import Dual, dual_call
from varmat.core.matvar import MatVar, as_objects, to_matvar, to_varmat
from varmat.core.tape import Rule, join
from varmat.core.variables import VARIABLES, Outputs, Var, like, make_result

if TYPE_CHECKING:
    from varmat.core.domains import Domain
    from varmat.core.elementwise import Elementwise
    from varmat.typing import (
        Adjoint,
        Function,
        Linear,
        MakingOperation,
        Operand,
        Plain,
        Result,
        Setting,
        Settings,
    )

__all__ = ["Operation", "Saved", "operation"]

_PLAIN = frozenset({np.ndarray, float, int})
# All operations by name: tests, documentation and benchmarks loop over it.
OPERATIONS: dict[str, Operation] = {}


class Saved:
    """A value together with what the rules want back, as keywords.

    Parameters
    ----------
    value : float, ndarray or tuple
        The value of the operation.
    **saved
        What reaches the reverse rule as keywords, and the tangent rule what it names.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> @vm.operation()
    ... def softmax_of(x):
    ...     e = np.exp(x - np.max(x))
    ...     return vm.Saved(e / np.sum(e), total=np.sum(e))
    >>> @softmax_of.reverse
    ... def softmax_of_reverse(g, r, x, total):
    ...     return r * (g - np.sum(g * r))
    >>> vm.gradient(lambda x: softmax_of(x)[0], np.zeros(2))
    array([ 0.25, -0.25])
    """

    __slots__ = ("saved", "value")

    def __init__(self, value: Result, **saved: Setting) -> None:
        self.value = value
        self.saved = saved


def is_differentiable(x: object) -> bool:
    """Return whether `x` is a variable or dual, or holds one."""
    if isinstance(x, (list, tuple)):
        return any(map(is_differentiable, x))
    if isinstance(x, dispatch.Standing):
        return is_differentiable(x._settled)
    return isinstance(x, (ArrayMethods, MatVar)) or (
        type(x) is np.ndarray
        and x.dtype == object
        and any(isinstance(item, ArrayMethods) for item in x.flat)
    )


def as_operand(x: Operand, name: str) -> Operand:
    """Convert an argument to what the rules expect: a variable, dual, `MatVar`, float or array."""
    if isinstance(x, (ArrayMethods, MatVar)) or hasattr(x, "apply_row"):
        return x
    if isinstance(x, (list, tuple)) and is_differentiable(x):
        return np.stack([as_operand(item, name) for item in x])
    if is_differentiable(x):
        is_standing = isinstance(x, dispatch.Standing)
        return as_operand(dispatch.settled(x), name) if is_standing else x.view(MatVar)
    return data(x, name)


def call_of_kinds(
    op: Operation | Elementwise,
    function: Function,
    args: Sequence[object],
    titles: Iterable[str],
    settings: Settings,
) -> Operand:
    """Call an operation with array-likes, matvars, duals or complex operands; of those `function`
    is the name.
    """
    has_complex_data = False
    try:
        args = [as_operand(x, f"{op.name}: {title}") for x, title in zip(args, titles, strict=True)]
    except dispatch.ComplexDataError:
        if function not in dispatch.complex_answers():
            raise
        has_complex_data = True
    if has_complex_data or any(isinstance(x, dispatch.ComplexKind) for x in args):
        return dispatch.complex_answer(function, op.name, args, settings)
    if any(isinstance(x, Dual) for x in args):
        return dual_call(op, args, settings)
    if any(isinstance(x, MatVar) for x in args):
        return op.matvar_call(args, settings)
    return op(*args, **settings)


def outputs_like(pattern: object) -> type[Outputs]:
    """Return the class of several results that reach the reverse rule as a tuple of the type of
    `pattern`.
    """
    kind: type = type(pattern)
    return _named_outputs(kind) if hasattr(pattern, "_fields") else Outputs


@cache
def _named_outputs(kind: Any) -> type[Outputs]:
    return type("Outputs", (Outputs,), {"__slots__": (), "kind": kind._make})


class Operation:
    """A differentiable function of one or more operands; made by `operation`."""

    # An operation with an operator also has the function of operands of any kinds, and the methods
    # for the operator and its reflection, by type. An operation does not refer to itself.
    call: Function
    operators: tuple[dict[type, Function], dict[type, Function]]

    def __init__(
        self,
        function: Function,
        domains: Mapping[str, tuple[str, Domain]] | None,
        variadic: bool,
        stacked: bool,
        native: bool,
        linear: bool = False,
    ) -> None:
        update_wrapper(self, function, updated=())
        self.name = function.__name__
        self.function = function
        parameters = dict(inspect.signature(function).parameters)
        # The workspace is not a setting: neither callers nor the rules see it.
        self.wants_workspace = parameters.pop("workspace", None) is not None
        shown = [p.replace(annotation=p.empty) for p in parameters.values()]
        self.signature = self.__signature__ = inspect.Signature(shown)
        self.defaults = {p.name: p.default for p in shown if p.default is not p.empty}
        self.operands = tuple(
            p.name for p in shown if p.default is p.empty and p.kind is not p.KEYWORD_ONLY
        )
        self.arity = len(self.operands)
        self.settings = self.signature.parameters.keys() - {*self.operands}
        self.domains = domains or {}
        self.variadic, self.stacked, self.native = variadic, stacked, native
        # The library's own are functions of their operands alone, so a recording may run them once
        # on symbols. A user's function may not be, and is called at every run.
        own = __name__.partition(".")[0]
        self.is_traceable = (function.__module__ or "").partition(".")[0] == own
        self.reverse_rule: Function = self._no_rule
        self._tangent: Any = self._along if linear else None
        # Names of saved values that the tangent rule takes.
        self.wanted: frozenset[str] = frozenset()
        self.rule = Rule(self.name, self.chain, self)

    def _no_rule(self, *args: object, **saved: object) -> Operand:
        raise TypeError(f"{self.name} has no reverse rule, so there is no gradient")

    def reverse(self, rule: Function) -> Function:
        """Set the reverse rule, as a decorator."""
        self.reverse_rule = rule
        return rule

    def tangent(self, rule: Function) -> Function:
        """Set the tangent rule, as a decorator."""
        self._tangent = rule
        self.wanted = (
            frozenset(inspect.signature(rule).parameters) - self.signature.parameters.keys()
        )
        return rule

    def _along(self, r: object, *args: object, **settings: object) -> tuple[Linear, ...]:
        """Return the linear maps of a function that is linear in each operand."""
        return tuple(
            lambda t, i=i: self(*args[:i], t, *args[i + 1 :], **settings) for i in range(len(args))
        )

    def chained(self, chain: Function) -> Function:
        """Set the reverse pass over an entry, as a decorator, for an operation so common that it
        adds to the adjoints of its operands itself. `chain` has the arguments of `Operation.chain`.
        """
        self.rule = Rule(self.name, chain, self)
        return chain

    def __repr__(self) -> str:
        return f"<varmat operation {self.name}{self.__signature__}>"

    def __reduce__(self) -> str:
        return str(self.function.__qualname__)  # found in its module, as functions are

    def __call__(self, *args: Operand, **settings: Setting) -> Operand:
        if not self.variadic and (
            len(args) != self.arity or not settings.keys().isdisjoint(self.operands)
        ):
            args, settings = self.bind(args, settings)
        if self.defaults:
            settings = {**self.defaults, **settings}
        tape = None
        for x in args:
            kind = type(x)
            if kind in VARIABLES:
                tape = x._tape if tape is None or tape is x._tape else join(tape, x._tape)
            elif kind not in _PLAIN or (kind is np.ndarray and x.dtype != np.float64):
                return self.general(args, settings)
        values = [x._val if type(x) in VARIABLES else x for x in args]
        if self.domains:
            self.check(values)
        if self.wants_workspace and tape is not None:
            val = self.function(*values, **settings, workspace=tape.top.workspace)
        else:
            val = self.function(*values, **settings)
        if type(val) is Saved:
            settings = {**settings, **val.saved}
            val = val.value
        if tape is None:
            return val
        top = tape.top
        result: Operand
        if isinstance(val, tuple):
            items = [make_result(item, top) for item in val]
            top.append((self.rule, outputs_like(val)(items), args, settings))
            return like(val, items)
        result = make_result(val, top)
        top.append((self.rule, result, args, settings))
        return result

    def saving(self, saved: Settings) -> Operation:
        """Return this operation, which also puts the saved values that the tangent rule wants into
        `saved`.
        """

        def function(*args: Operand, **settings: Setting) -> Operand:
            val = self.function(*args, **settings)
            if type(val) is Saved:
                saved.update({name: val.saved[name] for name in self.wanted & val.saved.keys()})
            return val

        return self._computing(function)

    def _computing(self, function: Function) -> Operation:
        # `copy.copy` would give the operation itself, which is found by its name.
        twin = object.__new__(type(self))
        vars(twin).update(vars(self), function=function)
        return twin

    def recompute(self, args: Sequence[Operand], settings: Settings) -> Operand:
        """Call it with what an entry on the tape holds, and other operands."""
        return self(*args, **{name: x for name, x in settings.items() if name in self.settings})

    def known(self, value: Plain, *args: Operand, **settings: Setting) -> Operand:
        """Record the operation with a known plain value, without computing it."""
        return self._computing(lambda *_, **__: value)(*args, **settings)

    def bind(
        self, args: Sequence[Operand], settings: Settings
    ) -> tuple[tuple[Operand, ...], Settings]:
        try:
            bound = self.signature.bind(*args, **settings).arguments
        except TypeError as error:
            raise TypeError(
                f"{self.name}: {error}; the signature is {self.name}{self.__signature__}"
            ) from None
        return tuple(bound.pop(name) for name in self.operands), bound

    def check(self, values: Sequence[Plain]) -> None:
        """Raise for plain values outside their domains."""
        for name, value in zip(self.operands, values, strict=True):
            if name in self.domains:
                title, domain = self.domains[name]
                domain.check(self.name, title, value)

    def general(self, args: Sequence[Operand], settings: Settings) -> Operand:
        """Call the operation on other kinds of operands: array-likes, matvars, duals, and symbols
        and conditions of programs, which apply it themselves.
        """
        traced = next((x for x in args if hasattr(x, "apply_operation")), None)
        if traced is not None and not any(isinstance(x, Dual) for x in args):
            return traced.apply_operation(self, args, settings)
        titles = (
            map("operand {}".format, range(1, 1 + len(args))) if self.variadic else self.operands
        )
        return call_of_kinds(self, self, args, titles, settings)

    def matvar_call(self, args: Sequence[Operand], settings: Settings) -> Operand:
        """Return a varmat if any operand is one; otherwise a matvar."""
        if any(type(x) in VARIABLES and x.shape for x in args):
            return self(*map(to_varmat, args), **settings)
        if self.native:
            result = self.function(*as_objects(args), **settings)
            result = result.value if type(result) is Saved else result
            return result.view(MatVar) if isinstance(result, np.ndarray) else result
        result = self(*map(to_varmat, args), **settings)
        if isinstance(result, tuple):
            return like(result, map(to_matvar, result))
        return to_matvar(result)

    def chain(self, result: Operand, operands: Sequence[Operand], settings: Settings) -> None:
        """Run the reverse pass for an entry of this operation."""
        values = [x._val if type(x) in VARIABLES else x for x in operands]
        g = result._adj
        # These arrays must not become an adjoint, or will be one already: a rule may return what it
        # was given, or one array twice.
        held, base = [*values, result._val, *settings.values()], getattr(g, "base", None)
        arguments = []
        try:
            for i, (x, c) in enumerate(
                zip(operands, self.parts(g, result._val, values, settings), strict=True)
            ):
                if type(x) in VARIABLES:
                    c = c() if callable(c) else c
                    if type(c) is not np.ndarray or c.dtype is not FLOAT64:
                        c = c if type(c) is float and type(x) is Var else self.contribution(i, c)
                    owner = c if getattr(c, "base", None) is None else c.base
                    if type(c) is np.ndarray and owner is not g and owner is not base:
                        c = c.copy() if is_held(c, owner, held) else c
                        held.append(owner)
                    arguments.append((x, c))
            # All at the end: a contribution that is given twice must not have been added to before.
            for x, c in arguments:
                x._add(c) if c is g or getattr(c, "base", None) is not None else x._take(c)
        except Exception as error:
            # The traceback does not show where the operation was called.
            error.add_note(f"in the reverse rule of {self.name}")
            raise

    def parts(
        self, g: Plain, r: Plain, values: Sequence[Plain], settings: Settings
    ) -> tuple[Adjoint, ...]:
        """Return the contributions of the reverse rule, or functions of no arguments that compute
        them, one per operand.
        """
        parts = self.reverse_rule(g, r, *values, **settings)
        parts = parts if type(parts) is tuple else (parts,)
        if len(parts) != len(values):
            raise TypeError(
                f"{self.name}: the reverse rule returns {len(parts)} contributions for "
                f"{len(values)} operands"
            )
        return parts

    def contribution(self, i: int, c: Plain) -> np.ndarray:
        """Convert a contribution to a float64 array."""
        title = f"operand {i + 1}" if self.variadic else self.operands[i]
        return np.asarray(data(c, f"{self.name}: the contribution to {title}"))

    def push(self, r: Plain, values: Sequence[Plain], settings: Settings) -> tuple[Linear, ...]:
        """Return the linear maps of the tangent rule, one per operand."""
        if self._tangent is None:
            raise TypeError(
                f"{self.name} has no tangent rule, so there is no forward derivative and no Hessian"
            )
        maps = self._tangent(r, *values, **settings)
        return maps if type(maps) is tuple else (maps,)


def is_held(c: np.ndarray, owner: np.ndarray, held: list[object]) -> bool:
    """Return whether a contribution, in the memory of `owner`, shares memory with one of the held
    arrays.
    """
    for item in held:
        if item is owner:
            return True
    # Large adjoints are shared, and all arrays in a block of the arena have one owner.
    return c.size > LARGE and any(np.may_share_memory(c, x) for x in held if type(x) is np.ndarray)


def operation(
    *answers: Function,
    domains: Mapping[str, tuple[str, Domain]] | None = None,
    variadic: bool = False,
    stacked: bool = False,
    native: bool = False,
    linear: bool = False,
) -> MakingOperation:
    """Make a differentiable operation of a function on plain arrays.

    Its operands, which may be variables, are the parameters without a default; those with one, or
    after a ``*``, are settings.

    Parameters
    ----------
    *answers : callable
        NumPy functions for which the operation answers when they are called on variables.
    domains : dict, optional
        Name of an operand -> (title for messages, `Domain`): checked before anything is computed.
    variadic : bool
        The function takes any number of operands (``*arrays``) and keyword settings.
    stacked : bool
        The linear maps of the tangent rule accept tangents with an additional leading axis of
        directions.
    native : bool
        The function itself works on an object array of `Var`, which makes the matvar form
        independent of the rules.
    linear : bool
        The function is linear in each operand, which makes its tangent rule: the function itself,
        with the tangent instead of the operand. With `stacked` it accepts the leading axis.

    Returns
    -------
    callable
        Decorator that turns the function into an `Operation`, whose ``reverse`` and ``tangent`` are
        decorators for the rules.

    Notes
    -----
    A parameter ``workspace=np.empty`` of the function is not a setting: while an operation is
    recorded it is a function that makes an uninitialised array of a given shape, for saved values,
    in warm memory that lives as long as the tape.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> @vm.operation()
    ... def cube(x):
    ...     return x**3
    >>> @cube.reverse
    ... def cube_reverse(g, r, x):
    ...     return 3 * x**2 * g
    >>> @cube.tangent
    ... def cube_tangent(r, x):
    ...     return lambda t: 3 * x**2 * t
    >>> vm.gradient(lambda x: np.sum(cube(x)), np.array([1.0, 2.0]))
    array([ 3., 12.])
    """

    def make(function: Any) -> Any:
        op = Operation(function, domains, variadic, stacked, native, linear)
        OPERATIONS[op.name] = op
        dispatch.SUPPORTED.update(dict.fromkeys(answers, op))
        return op

    return make
