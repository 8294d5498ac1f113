"""Densities whose value and partials are computed together, by functions that are compiled for the
kinds of the arguments: numbers or arrays, data or variables.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection, Sequence

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.core.operation import Operation
from varmat.core.tape import join
from varmat.core.variables import ARRAYS, Var, VarMat, new
from varmat.densities.density import Density, Domains, KeptTerms, positional, typed
from varmat.typing import Operand, Propto, Result, Shape

# A number with two bits for each argument; with the kept terms if terms may be dropped.
Use = int | tuple[int, KeptTerms]
Computed = tuple[float, list[Result]]  # the value, and a partial for each variable
IS_ARRAY, IS_VARIABLE = 1, 2
KINDS = {float: 0, np.ndarray: IS_ARRAY, Var: IS_VARIABLE} | dict.fromkeys(
    ARRAYS, IS_ARRAY | IS_VARIABLE
)


def as_number(x: Operand) -> tuple[float, int] | None:
    """Convert a number or an array of integers to floats, with its kind; None for anything else."""
    kind = type(x)
    if kind is int or kind is np.float64:
        return float(x), 0
    if kind is np.ndarray and x.ndim and x.dtype.kind in "iub":
        return x.astype(FLOAT64), IS_ARRAY
    return None


class SummedDensity(Density, Operation):
    """A density whose value and partials are computed together, by one function."""

    # Whether the arguments broadcast.
    is_elementwise = True

    def __init__(self, name: str, arguments: Domains, discrete: Collection[str]) -> None:
        def function(*values: Operand) -> Result:
            return self(*values)

        function.__name__ = name
        function.__signature__ = inspect.Signature(positional(arguments))  # type: ignore[attr-defined]
        Operation.__init__(self, function, None, False, False, False)
        Density.__init__(self, name, arguments, discrete)
        self.operation = self
        self.checks = tuple(arguments.values())

    @typed
    def __call__(
        self,
        *args: Operand,
        propto: Propto = False,
        keep: KeptTerms | None = None,
        **kwargs: Operand,
    ) -> Result:
        if kwargs or len(args) != self.arity:
            args, _ = self.bind(args, kwargs)
        if propto:
            keep = self.kept_terms(zip(self.operands, args, strict=True), propto)
        tape = shape = None
        values, active = [], []
        use = 1
        for x in args:
            kind = KINDS.get(type(x))
            if kind is None or (kind == IS_ARRAY and x.dtype is not FLOAT64):
                number = self.as_data(x)
                if number is None:
                    return self.unless_impossible(args, self.general(args, {"keep": keep}))
                x, kind = number
            use = use << 2 | kind
            if kind >= IS_VARIABLE:
                tape = x._tape if tape is None or tape is x._tape else join(tape, x._tape)
                active.append(x)
                x = x._val
            if kind & IS_ARRAY and x.shape != shape:
                if self.is_elementwise and (shape is not None or not x.shape):
                    return self._broadcast(args, keep)
                shape = x.shape
            values.append(x)
        key: Use = use if keep is None else (use, keep)
        value, partials = self.evaluate(values, shape, key)
        if tape is None:
            return value
        if value == -math.inf:
            self.refuse_data(values)
        result: Result = new(Var)
        result._val = value
        result._adj = None
        result._tape = tape = tape.top
        tape.append((self.rule, result, active, (partials, values, shape, key)))
        return result

    def as_data(self, x: Operand) -> tuple[Operand, int] | None:
        """Convert an argument of a rarer kind to data, with its kind; return None for anything
        else.
        """
        return as_number(x)

    def _broadcast(self, args: Sequence[Operand], keep: KeptTerms | None) -> Result:
        """Call with arrays of different shapes."""
        raise NotImplementedError

    def evaluate(self, values: list[object], shape: Shape | None, use: Use) -> Computed:
        """Compute the value, and each variable's partial: a float, or an array of its shape."""
        raise NotImplementedError

    def recompute(self, active: Operand, saved: Operand) -> Result:
        """Call it as the entry that saved this did, with other operands for its variables."""
        _, values, _, use = saved
        following = iter(active)
        args = [
            next(following) if kind & IS_VARIABLE else v
            for v, kind in zip(values, self.kinds_of(use), strict=True)
        ]
        return self(*args, keep=use[1] if isinstance(use, tuple) else None)

    def kinds_of(self, use: Use) -> list[int]:
        """Return two bits for each operand: whether it is a variable, and whether an array."""
        packed = use[0] if isinstance(use, tuple) else use
        return [packed >> 2 * i & 3 for i in reversed(range(self.arity))]

    def chain(self, result: Operand, active: Operand, saved: Operand) -> None:
        """Add the partials times the adjoint of the result to the operands' adjoints."""
        g = result._adj
        partials = saved[0]
        for i, x in enumerate(active):
            p = partials[i]
            if p.__class__ is float:
                c = p * g
                if x.__class__ is Var:
                    a = x._adj
                    x._adj = c if a is None else a + c
                else:
                    x._take(np.broadcast_to(c, x._val.shape))
                continue
            if p is None:  # given away in an earlier reverse pass
                partials[:] = self.evaluate(*saved[1:])[1]
                p = partials[i]
            if g == 1.0:
                partials[i] = None
            else:
                p = p * g
            if x.__class__ is VarMat and x._adj is None:
                x._adj = p
            else:
                x._take(p)
