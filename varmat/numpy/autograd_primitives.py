"""Functions of autograd that have separate rules, as operations."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import ComplexKind, Standing, is_complex
from varmat.core.errors import ShapeError
from varmat.core.matvar import MatVar
from varmat.core.operation import Operation
from varmat.core.variables import VARIABLES, value
from varmat.derivatives.inputs_and_outputs import bottom
from varmat.derivatives.jacobians import vjp
from varmat.derivatives.reverse import grad
from varmat.derivatives.structure import Arguments, leaves_of, map_leaves
from varmat.functions.checks import misfit
from varmat.numpy.buffers import settled
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Settings

_KINDS = (ArrayMethods, MatVar, Standing, ComplexKind)


def isbox(x: object) -> bool:
    """Tell whether something is a variable, which autograd calls a box."""
    return isinstance(x, _KINDS)


def holds(x: object) -> bool:
    """Tell whether something is a variable, or a container with one."""
    if isinstance(x, dict):
        return any(map(holds, x.values()))
    return any(map(holds, x)) if isinstance(x, (list, tuple)) else isbox(x)


def getval(x: Operand) -> Operand:
    """Return the plain value of a variable, also in a container."""
    return value(settled(x)) if holds(x) else x


def values_of(x: Operand) -> Operand:
    """Return the plain values, where nothing depends on them: a recording does not refuse this."""

    def plain(x: Operand, _: str) -> Operand:
        if isbox(x) and is_complex(x):
            return plain(np.real(x), "") + 1j * plain(np.imag(x), "")
        x = bottom(x)
        return x._val if type(x) in VARIABLES else getval(x)

    return map_leaves(plain, x) if holds(x) else x


# --- complex numbers as pairs of real ones ---


def parts_of(tree: Operand) -> list[Operand]:
    """List the leaves of a tree, a complex one as its real part and its imaginary part."""
    result: list[Operand] = []
    for x in leaves_of(tree):
        result += [np.real(x), np.imag(x)] if is_complex(x) else [x]
    return result


def joined(tree: Operand, parts: Sequence[Operand], sign: float = 1.0) -> Operand:
    """Make a tree like `tree` from the parts of its leaves."""
    remainder = iter(parts)
    return map_leaves(
        lambda x, _: (
            next(remainder) + sign * 1j * next(remainder) if is_complex(x) else next(remainder)
        ),
        tree,
    )


def conjugates(tree: Operand, g: Operand) -> list[Operand]:
    """Return the parts of the conjugate of `g`, a covector of the space of `tree`: autograd's
    covectors are the conjugates of varmat's adjoints.
    """
    if type(g).__name__ == "SparseObject":  # autograd's covector with one part that is not zero
        g = g.mut_add(g.vs.zeros())
    result: list[Operand] = []
    for x, c in pairs_of(tree, settled(g)):
        if np.shape(x) != np.shape(c):
            raise misfit("autograd", "a covector", np.shape(c), f"have shape {np.shape(x)}")
        result.append(np.real(c))
        if is_complex(x):
            result.append(-np.imag(c) if is_complex(c) else np.zeros(np.shape(x)))
    return result


def pairs_of(tree: Operand, other: Operand) -> Iterator[tuple[Operand, Operand]]:
    """Yield the leaves of a tree, each with the leaf of a tree with the same keys."""
    if isinstance(tree, dict):
        for key, item in tree.items():
            yield from pairs_of(item, other[key])
    elif isinstance(tree, (list, tuple)):
        for item, part in zip(tree, other, strict=True):
            yield from pairs_of(item, part)
    else:
        yield tree, other


def template(x: Operand, _: str) -> Operand:
    return np.broadcast_to(0j if is_complex(x) else 0.0, np.shape(x))


def pulled_back(
    pullback: Function, function: Function, points: Sequence[Operand], weights: Sequence[Operand]
) -> tuple[Operand, ...]:
    """Pull weights back, which may be variables even if the points are plain."""
    if not any(map(isbox, weights)):
        return pullback(weights)  # type: ignore[no-any-return]

    def product(*args: Operand) -> Operand:
        return sum(np.sum(y * w) for y, w in zip(function(*args), weights, strict=True))

    return grad(product, tuple(range(len(points))))(*points)  # type: ignore[no-any-return]


# --- primitives, which have separate rules ---


class Transposable(Operation):
    """An operation whose reverse rule is written with differentiable functions: its tangent rule is
    the transpose of that, which is linear in the adjoint.
    """

    def __init__(self, name: str, function: Function) -> None:
        function.__name__ = name
        super().__init__(function, None, variadic=True, stacked=False, native=False)
        self.is_traceable = False  # a program calls it, because its rules may look at numbers
        self.reverse_rule, self._tangent = self.pulled, True

    def pulled(self, g: Adjoint, r: Plain, *values: Operand) -> tuple[Operand, ...]:
        """Apply the reverse rule to operands that may be variables."""
        raise NotImplementedError

    def push(self, r: object, values: Sequence[object], settings: Settings) -> tuple[Linear, ...]:
        return tuple(partial(Pushed(self, i), *values) for i in range(len(values)))


class Pushed(Transposable):
    """The derivative of an operation along a tangent of one operand, as an operation on the
    operands and the tangent.
    """

    def __init__(self, op: Transposable, i: int) -> None:
        self.op, self.i = op, i

        def pushed(*args: Plain) -> tuple[Plain, ...]:
            *values, t = args
            r = op.function(*values)
            zeros = [np.zeros(np.shape(y)) for y in r]
            _, pullback = vjp(lambda *g: [op.pulled(g, r, *values)[i]], *zeros)
            return pullback([t])

        super().__init__(op.name, pushed)

    def pulled(self, g: Adjoint, r: Plain, *args: Operand) -> tuple[Operand, ...]:
        *values, t = args

        def contribution(*values: Operand) -> Operand:
            return self.op.pulled(g, self.op(*values), *values)[self.i]

        slopes = grad(lambda *x: np.sum(contribution(*x) * t), tuple(range(len(values))))
        return (*slopes(*values), contribution(*values))


class Ruled(Transposable):
    """A call of a primitive of autograd as an operation on its variables.

    Parameters
    ----------
    fun : callable
        The primitive.
    args, kwargs
        Its arguments, with plain numbers in place of variables.
    parents : dict
        Position -> the argument with variables.
    ans : scalar, array or tree
        Its result.
    """

    def __init__(
        self,
        fun: Function,
        args: Arguments,
        kwargs: Settings,
        parents: dict[int, object],
        ans: object,
    ) -> None:
        self.fun, self.args, self.kwargs = fun, args, kwargs
        self.argnums = tuple(parents)
        arguments = [parts_of(x) for x in parents.values()]
        # The places of the operands among the parts of the parents; the others are constants.
        self.places = [(i, k) for i, x in enumerate(arguments) for k, p in enumerate(x) if holds(p)]
        self.given = list(map(values_of, arguments))
        self.variables = [arguments[i][k] for i, k in self.places]
        self.template = map_leaves(template, ans)
        shapes = list(map(np.shape, parts_of(ans)))

        def call(*values: Plain) -> tuple[Plain, ...]:
            y = settled(fun(*self.filled(values), **kwargs))
            if holds(y):
                raise TypeError(
                    f"{self.name}: the primitive uses variables that are not among its arguments, "
                    "whose derivative would be lost: make them arguments!"
                )
            parts = parts_of(y)
            if list(map(np.shape, parts)) != shapes:
                raise ShapeError(
                    f"{self.name}: the primitive returns other shapes, or complex numbers, than "
                    "when it was recorded: record it again!"
                )
            return tuple(parts)

        super().__init__(getattr(fun, "__name__", "primitive"), call)

    def filled(self, values: Sequence[Operand]) -> list[Operand]:
        """Return the arguments with other operands."""
        if any(map(isbox, values)) and sys.modules["autograd.tracer"].isbox is not isbox:
            raise TypeError(
                f"{self.name}: the block of varmat.numpy.patched has ended, and the derivatives of "
                "its rules are not varmat's any more: take them inside!"
            )
        parts = [list(x) for x in self.given]
        for (i, k), x in zip(self.places, values, strict=True):
            parts[i][k] = x
        args = list(self.args)
        for i, x in zip(self.argnums, parts, strict=True):
            args[i] = joined(self.args[i], x)
        return args

    def rules(self, kind: str) -> Function:
        """Return autograd's rules of one kind, ``"vjp"`` or ``"jvp"``."""
        table = getattr(sys.modules["autograd.core"], f"primitive_{kind}s")
        if self.fun not in table:
            raise NotImplementedError(
                f"{kind.upper()} of {self.name} wrt argnums {self.argnums} not defined"
            )
        return table[self.fun]  # type: ignore[no-any-return]

    def pulled(self, g: Adjoint, r: Plain, *values: Operand) -> tuple[Operand, ...]:
        parts = [np.zeros(np.shape(y)) if c is None else c for c, y in zip(g, r, strict=True)]
        args, ans = self.filled(values), joined(self.template, r)
        rule = self.rules("vjp")(self.argnums, ans, args, self.kwargs)
        result = [
            conjugates(self.args[i], c)
            for i, c in zip(self.argnums, rule(joined(self.template, parts, -1.0)), strict=True)
        ]
        return tuple(result[i][k] for i, k in self.places)

    def push(self, r: object, values: Sequence[object], settings: Settings) -> tuple[Linear, ...]:
        if self.fun not in sys.modules["autograd.core"].primitive_jvps:
            return super().push(r, values, settings)
        return tuple(self._by_rule(n, r, values) for n in range(len(values)))

    def _by_rule(self, n: int, r: Plain, values: Sequence[Operand]) -> Linear:
        i, k = self.places[n]
        argnum = self.argnums[i]

        def pushed(t: Operand) -> tuple[Operand, ...]:
            directions = [np.zeros(np.shape(p)) for p in self.given[i]]
            directions[k] = t
            ans, args = joined(self.template, r), self.filled(values)
            rule = self.rules("jvp")
            tangent = joined(self.args[argnum], directions)
            result = rule((argnum,), [tangent], ans, args, self.kwargs)
            return tuple(parts_of(settled(result)))

        return pushed
