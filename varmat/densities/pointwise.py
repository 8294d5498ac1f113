"""Densities of one variable for each observation: for mixtures, hidden states and predictive
criteria."""

from __future__ import annotations

import operator
from functools import cache, partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.operation import Saved
from varmat.densities.density import Density, KeptTerms, ieee
from varmat.densities.row_program import RowProgram, cone
from varmat.programs.build.symbol import Symbol, builder_of, is_symbol, lift, require
from varmat.typing import Adjoint, Function, Operand, PointwiseCall, Result

Partials = dict[str, Function]


class Pointwise(Density):
    """A log density at each element, made from the same row of the table as the sum."""

    if TYPE_CHECKING:
        __call__: PointwiseCall  # type: ignore[assignment]

    def __init__(self, summed: Operand) -> None:
        super().__init__(f"{summed.name}.pointwise", summed.arguments, summed.discrete)
        self.__module__, self.__doc__ = summed.__module__, _DOC.format(name=summed.name)
        self.summed = summed
        # For each set of terms that is kept, in the stable and in the fast form.
        self._functions = cache(self._functions_of)

        def function(*values: Operand, keep: KeptTerms | None = None) -> Result:
            if any(map(is_symbol, values)):
                return self.of_symbols(*values, keep=keep)
            return self._evaluate(values, keep)

        function.__name__ = self.name
        self.operation = self.made_of(function, keep=None)
        self.operation.reverse(self._reverse)
        self.operation.tangent(self._tangent)

    def __reduce__(self) -> Any:
        return getattr, (self.summed, "pointwise")

    def _functions_of(self, keep: KeptTerms | None, fast: bool) -> tuple[Function, Partials]:
        """Return the value, with intermediate values that partials need, as a function of the
        arguments; and each partial as a function of the arguments and these values.
        """
        graph, terms = self.summed.kept(fast, keep)
        value = reduce(operator.add, terms) if terms else 0.0
        partials = {name: graph.value(p) for name, p in graph.parts.partials.items()}
        for_value, for_partials = cone([graph.value(value)]), cone(partials.values())
        read = {*partials.values()} | {
            v for partial in for_partials - for_value if partial.step for v in partial.step.operands
        }
        shared = [v for step in graph.builder.steps for v in step.results if v in for_value & read]
        results = [value, *(Symbol(graph.builder, v) for v in shared)]
        return graph.function(results), {
            name: graph.function([p], shared) for name, p in graph.parts.partials.items()
        }

    def _outside(self, values: Operand) -> Result:
        """Return a mask, which broadcasts, of the elements outside the support; None if all are
        inside.
        """
        of_support = self.summed.inside
        inside = True if of_support is None else of_support(*values)[0]
        return None if np.all(inside) else np.logical_not(inside)

    def _evaluate(self, values: Operand, keep: KeptTerms | None) -> Result:
        for i, title, domain in self.summed.early:
            domain.check(self.name, title, values[i])
        exact = ieee(values)
        fast = self.summed.fast
        short = self.summed.always_fast and fast.fits(dict(zip(self.arguments, exact, strict=True)))
        try:
            shape = np.broadcast(*exact).shape
        except ValueError:
            self.shape_of(values)
            raise
        with np.errstate(all="ignore"):
            value, *shared = self._functions(keep, short)[0](*exact)
            finite = np.isfinite(value).all()
            if short and not finite:
                short = False
                value, *shared = self._functions(keep, short)[0](*exact)
                finite = np.isfinite(value).all()
            outside, shows = None, keep is None and finite
            if self.summed.guarded or not shows:
                outside = self._outside(exact)
            if not shows or outside is not None:  # nan is outside the support too
                self.shape_of(values)
                self.summed.check_demand(self.name, values)
        if outside is not None:
            value = np.where(outside, -np.inf, value)
        if not finite and self.summed.vanishes and np.any(value == -np.inf):
            outside = value == -np.inf
        if not shape:
            value = float(value)
        elif np.shape(value) != shape or any(value is x for x in (*values, *shared)):
            value = np.array(np.broadcast_to(value, shape))
        return Saved(value, outside=outside, shared=shared, short=short)

    def of_symbols(self, *values: Operand, keep: KeptTerms | None, moderate: bool = False) -> Saved:
        """Write the density into a program, whose run ends at an element that is not finite.

        `moderate` says that all counts are moderate, though they are not constants."""
        row, builder = self.summed, builder_of(*values)
        arguments = {name: lift(builder, x) for name, x in zip(self.arguments, values, strict=True)}
        fast = row.always_fast and row.fast.is_recorded
        fast = fast and (moderate or row.fast.fits_in(arguments))
        graph, terms = row.kept(fast, keep)
        program = RowProgram(graph, terms, builder, arguments)
        for i, _, domain in row.early:
            require(domain.holds(values[i]))
        if program.parts.support is not None and (keep is not None or row.guarded):
            require(Symbol(builder, program.write(program.parts.support)))
        shape = np.broadcast_shapes(*map(np.shape, values))
        value = Symbol(builder, builder.broadcast(program.each(), shape))
        require(np.isfinite(value))
        partials = tuple(partial(program.partial, name) for name in self.arguments)
        return Saved(
            value, pull=lambda g: tuple((lambda p=p: g * Symbol(builder, p())) for p in partials)
        )

    def _reverse(
        self,
        g: Adjoint,
        r: Operand,
        *values: Operand,
        keep: KeptTerms | None,
        outside: Operand,
        shared: Operand,
        short: bool,
    ) -> Result:
        exact = [*ieee(values), *shared]
        partials = self._functions(keep, short)[1]

        def contribution(name: str) -> Result:
            c = g * partials[name](*exact)[0]
            return c if outside is None else np.where(outside, 0.0, c)

        # Discrete arguments are never variables, so their entries are not called.
        return tuple(partial(contribution, name) for name in self.arguments)

    def _tangent(
        self, r: Operand, *values: Operand, keep: KeptTerms | None, outside: Operand
    ) -> Result:
        exact = ieee(values) if outside is None else self.summed.safe(values, outside)

        def push(name: str, t: Operand) -> Result:
            rate = self.summed.slopes[name](*exact)[0] * t
            return rate if outside is None else np.where(outside, 0.0, rate)

        return tuple(partial(push, name) for name in self.arguments)


_DOC = """Compute ``{name}`` at each element to which the arguments broadcast, instead of the sum.

    The arguments, their domains and ``propto`` are as for ``{name}``. Outside the support an
    element is -inf.

    Returns
    -------
    float, ndarray, Var or VarMat

    Examples
    --------
    >>> import varmat as vm
    >>> vm.{name}.pointwise.summed is vm.{name}
    True
    """
