"""Densities of one variable for each observation: for mixtures, hidden states and predictive
criteria."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.operation import Saved
from varmat.densities.density import Density, Kept, ieee
from varmat.densities.traced import names_in
from varmat.programs.build.expressions import scope_of
from varmat.programs.build.symbol import require

if TYPE_CHECKING:
    from varmat.typing import Adjoint, Operand, PointwiseCall, Result, Setting


class Pointwise(Density):
    """A log density at each element, made from the same row of the table as the sum."""

    if TYPE_CHECKING:
        __call__: PointwiseCall  # type: ignore[assignment]

    def __init__(self, summed: Operand) -> None:
        super().__init__(f"{summed.name}.pointwise", summed.arguments, summed.discrete)
        self.__module__, self.__doc__ = summed.__module__, _DOC.format(name=summed.name)
        self.summed = summed
        # These arguments are checked first: the value does not show that they are outside.
        self._early = [
            (i, *summed.arguments[name])
            for i, name in enumerate(summed.arguments)
            if name not in summed.late
        ]
        # The quick form is tried first where it is valid for arguments of any kind.
        self._short = (
            summed.quick is not None and summed.quick.number is None and summed.quick.when is None
        )
        # Terms are compiled for each set that is kept; partials for the abbreviations that those
        # terms have computed already; both in the careful and in the quick form.
        self._terms, self._partials = cache(self._terms_of), cache(self._partials_of)
        self._support = summed.elementwise([summed.support]) if summed.support else None

        def function(*values: Operand, keep: Kept | None = None) -> Result:
            return self._evaluate(values, keep)

        function.__name__ = self.name
        self.operation = self.made_of(function, keep=None)
        self.operation.reverse(self._reverse)
        self.operation.tangent(self._tangent)
        self.operation.straight(self._straight)

    def __reduce__(self) -> Any:
        return getattr, (self.summed, "pointwise")

    def _terms_of(self, keep: Kept | None, short: bool) -> tuple[Setting, tuple[str, ...]]:
        """A function that returns the value and its abbreviations, and the names of these."""
        row = self.summed
        let = row.lets(row.quick if short else None)
        text = " + ".join(f"({term})" for term in row.kept(keep)) or "0.0"
        names = tuple(sorted(names_in([text], let) & let.keys()))
        return row.elementwise([text, *names], let=let), names

    def _partials_of(self, given: tuple[str, ...], short: bool) -> dict[str, Result]:
        """The partials as functions of the arguments and of abbreviations already computed."""
        row = self.summed
        let = row.lets(row.quick if short else None)
        return {name: row.elementwise([text], given, let) for name, text in row.partials.items()}

    def _outside(self, values: Operand) -> Result:
        """A mask, which broadcasts, of the elements outside the support; None if there are none."""
        inside = True if self._support is None else self._support(*values)[0]
        return None if np.all(inside) else np.logical_not(inside)

    def _evaluate(self, values: Operand, keep: Kept | None) -> Result:
        for i, title, domain in self._early:
            domain.check(self.name, title, values[i])
        exact = ieee(values)
        short = self._short and self.summed.quick.fits(
            dict(zip(self.arguments, exact, strict=True))
        )
        try:
            shape = np.broadcast(*exact).shape
        except ValueError:
            self.shape_of(values)
            raise
        with np.errstate(all="ignore"):
            value, *abbreviations = self._terms(keep, short)[0](*exact)
            finite = np.isfinite(value).all()
            if short and not finite:
                short = False
                value, *abbreviations = self._terms(keep, short)[0](*exact)
                finite = np.isfinite(value).all()
            outside, shows = None, keep is None and finite
            if not (shows and self.summed.support_is_shown):
                outside = self._outside(exact)
            if not shows or outside is not None:  # nan is outside the support too
                self.shape_of(values)
                self.summed.check_demand(self.name, values)
        if outside is not None:
            value = np.where(outside, -np.inf, value)
        if not shape:
            value = float(value)
        elif np.shape(value) != shape or any(value is x for x in (*values, *abbreviations)):
            value = np.array(np.broadcast_to(value, shape))
        return Saved(value, outside=outside, abbreviations=abbreviations, short=short)

    def _straight(self, *values: Operand, keep: Kept | None) -> Result:
        """Write the density into a program, whose run ends at an element that is not finite."""
        row = self.summed
        scope = scope_of(values, self.arguments, row.let)
        if self._short and row.quick.fits_in({name: scope[name].value for name in self.arguments}):
            scope = scope_of(values, self.arguments, row.lets(row.quick))
        for i, _, domain in self._early:
            require(domain.holds(values[i]))
        if row.support is not None and not (keep is None and row.support_is_shown):
            require(scope.symbol(row.support))
        value: Result = sum((scope.symbol(term) for term in row.kept(keep)), start=0.0)
        value = np.broadcast_to(value, np.broadcast_shapes(*map(np.shape, values)))
        require(np.isfinite(value))
        return value, lambda g: tuple(
            (lambda name=name: g * scope.symbol(row.partials[name])) for name in self.arguments
        )

    def _reverse(
        self,
        g: Adjoint,
        r: Operand,
        *values: Operand,
        keep: Kept | None,
        outside: Operand,
        abbreviations: Operand,
        short: bool,
    ) -> Result:
        exact = [*ieee(values), *abbreviations]
        partials = self._partials(self._terms(keep, short)[1], short)

        def contribution(name: str) -> Result:
            c = g * partials[name](*exact)[0]
            return c if outside is None else np.where(outside, 0.0, c)

        # Discrete arguments are never variables, so their entries are not called.
        return tuple(partial(contribution, name) for name in self.arguments)

    def _tangent(self, r: Operand, *values: Operand, keep: Kept | None, outside: Operand) -> Result:
        def push(name: str, t: Operand) -> Result:
            rate = self._partials((), False)[name](*ieee(values))[0] * t
            return rate if outside is None else np.where(outside, 0.0, rate)

        return tuple(partial(push, name) for name in self.arguments)


_DOC = """``{name}`` at each element to which the arguments broadcast, instead of the sum.

    The arguments, their domains and ``propto`` are those of ``{name}``. Outside the support an
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
