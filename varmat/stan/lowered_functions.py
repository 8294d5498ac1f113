"""Functions of Stan's library in loops, as statements over numbers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from varmat.core.dual import Dual, paired
from varmat.densities.density import LARGEST_EXPONENT, KeptTerms
from varmat.densities.mixture import two_rates
from varmat.densities.univariate import MODERATE, Univariate
from varmat.interrupts import from_signal
from varmat.programs.build.scalar_functions import ADD, MULTIPLY, SAME, ScalarFunction
from varmat.programs.build.symbol import is_symbol
from varmat.programs.ir import statements as ir
from varmat.programs.ir.statements import Cell, Number
from varmat.stan import functions, types
from varmat.stan import syntax as s
from varmat.stan.lowered_expressions import (
    DIVIDE,
    EXP,
    LARGEST,
    LOG,
    MAXIMUM,
    MINIMUM,
    QUOTIENT,
    SQUARE,
    SUBTRACT,
    Elements,
    Lowered,
    LoweredExpressions,
    of_row,
)
from varmat.stan.running import kept_arguments
from varmat.stan.values import MATRICES, ROWS, VECTORS
from varmat.stan.vectorized_expressions import DENSITIES, BoundError, elementwise_density
from varmat.typing import Function, Operand


@cache
def _named(name: str, arity: int) -> ScalarFunction:
    """Find a function of real numbers in Stan's library."""
    row = functions.row_of(name)
    if name in _DISCRETE:
        return ScalarFunction(
            row or functions.implementation(name, (types.REAL,)), 1, is_discrete=True
        )
    if row is not None:
        return of_row(row)
    function = functions.implementation(name, (types.REAL,) * arity)
    result = ScalarFunction(function, arity, is_expensive=True)
    result.partial(0)  # raises what the function raises for symbols
    return result


class _WithSlopes:
    """A function of numbers with given derivatives, for symbols and for duals over them.

    Parameters
    ----------
    value : callable
    slopes : sequence of callable
        For each argument, a function of all arguments.
    """

    def __init__(self, value: Function, slopes: Sequence[Function]) -> None:
        self._value, self._slopes = value, slopes

    def __call__(self, *x: Operand) -> Operand:
        duals = [value for value in x if isinstance(value, Dual)]
        if not duals:
            return self._value(*x)
        level = max((value.level for value in duals), key=lambda value: value.order)
        values = [
            value.val if isinstance(value, Dual) and value.level is level else value for value in x
        ]
        total: Operand = 0.0
        for item, slope in zip(x, self._slopes, strict=True):
            if isinstance(item, Dual) and item.level is level:
                total = total + slope(*values) * item.tan
        return paired(self(*values), total, level)


@cache
def density_function(density: Univariate, keep: KeptTerms | None, moderate: bool) -> ScalarFunction:
    """Make the function of a density of numbers; `moderate` says that all counts are moderate."""

    def value(*x: object) -> Operand:
        pointwise: Any = density.pointwise
        if not any(map(is_symbol, x)):
            return pointwise.operation(*x, keep=keep)
        return pointwise.of_symbols(*x, keep=keep, moderate=moderate).value

    def slope(name: str) -> Function:
        return lambda *x: density.slopes[name](*x)[0]

    function = _WithSlopes(value, [*map(slope, density.operands)])
    return ScalarFunction(function, len(density.operands), is_expensive=True)


def _mixture(theta: Operand, lp1: Operand, lp2: Operand) -> Operand:
    return np.logaddexp(np.log(theta) + lp1, np.log1p(-theta) + lp2)


# By the derivatives of the parts, those in theta would be zero times infinity where it is 0 or 1.
_LOG_MIX = ScalarFunction(
    _WithSlopes(_mixture, [lambda *x, i=i: two_rates(_mixture(*x), *x)[i] for i in range(3)]),
    3,
    is_expensive=True,
)
# Without derivatives, as the largest of them is subtracted before they are added up.
_LOG_SHARE = ScalarFunction(lambda theta, lp: np.log(theta) + lp, 2, is_discrete=True)
# Larger exponents overflow.
_AT_MOST_LARGEST = ScalarFunction(lambda x: np.minimum(x, LARGEST_EXPONENT), 1)


class LoweredFunctions(LoweredExpressions):
    """Writes the statements of calls: functions that take or make arrays are methods; abstract."""

    # --- calls ---

    def call(self, e: s.Call) -> Lowered:
        if e.definition is not None:
            return self.routine(e, e.definition)
        if e.name.endswith(DENSITIES):
            return self.density(e.name.replace("_lup", "_lp"), e.arguments, "_lup" in e.name, e.at)
        special = getattr(self, f"_f_{e.name}", None)
        if special is not None:
            result: Lowered = special(e)
            return result
        if e.type == types.INT:
            raise BoundError(f"`{e.name}` is a function of integers", e.at)
        if not e.arguments:
            return float(functions.implementation(e.name, ())())
        x = [self.expression(argument) for argument in e.arguments]
        if not any(isinstance(item, Elements) for item in x) or functions.acts_by_element(e.name):
            return self.mapped(self._library(e.name, len(x), e.at), *x)
        raise BoundError(f"`{e.name}` of arrays", e.at)

    def _library(self, name: str, arity: int, at: s.Position) -> ScalarFunction:
        try:
            return _named(name, arity)
        except Exception as error:  # any: functions that look at numbers fail in many ways
            if from_signal(error):
                raise
            raise BoundError(f"`{name}` looks at numbers", at) from error

    def density(
        self, name: str, arguments: Sequence[s.Expression], drops: bool, at: s.Position
    ) -> Number:
        """Sum a log density over all elements."""
        drops = drops and self.propto
        if drops and not self.in_block:
            raise BoundError("which terms of a density are dropped depends on the call", at)
        variable = self.translator.of_variables(arguments)
        special = getattr(self, f"_d_{name}", None)
        if special is not None:
            result: Number = 0.0 if drops and not any(variable) else special(*arguments)
            return result
        density = elementwise_density(name, at)
        keep: KeptTerms | None = kept_arguments(density, variable) if drops else None
        x = [self.expression(item) for item in arguments]
        ends = {
            name: item.bounds if isinstance(item, Elements) else self.bounds(item)
            for name, item in zip(density.operands, x, strict=True)
            if name in density.discrete
        }
        moderate = density.fast is not None and all(
            (limits := ends[name]) is not None and limits[1] <= MODERATE
            for name in density.fast.counts
        )
        function = density_function(density, keep, moderate)
        terms = self.mapped(function, *x)
        return self.total(terms) if isinstance(terms, Elements) else terms

    @abstractmethod
    def routine(self, e: s.Call, definition: s.FunctionDefinition) -> Lowered:
        """Lower a call of a function of the program."""

    # --- functions of more than numbers ---

    def _sizes(self, e: s.Call, axis: int) -> Number:
        x = self.expression(e.arguments[0])
        return x.shape[axis] if isinstance(x, Elements) else 1

    def _f_size(self, e: s.Call) -> Number:
        x = self.expression(e.arguments[0])
        if not isinstance(x, Elements):
            return 1
        if isinstance(e.arguments[0].type, types.ArrayType):
            return x.shape[0]
        return self._f_num_elements(e)

    def _f_num_elements(self, e: s.Call) -> Number:
        x, n = self.expression(e.arguments[0]), 1
        for item in x.shape if isinstance(x, Elements) else ():
            n = self.integer(MULTIPLY, n, item)  # type: ignore[assignment]
        return n

    def _f_rows(self, e: s.Call) -> Number:
        return 1 if e.arguments[0].type in ROWS else self._sizes(e, 0)

    def _f_cols(self, e: s.Call) -> Number:
        return 1 if e.arguments[0].type in VECTORS else self._sizes(e, -1)

    def _f_sum(self, e: s.Call) -> Number:
        x = self.expression(e.arguments[0])
        return self.total(x) if isinstance(x, Elements) else x

    def _f_mean(self, e: s.Call) -> Number:
        x = self.elements(e.arguments[0])
        return self.apply(DIVIDE, self.total(x), self._f_num_elements(e))

    def _f_prod(self, e: s.Call) -> Number:
        x, product = self.elements(e.arguments[0]), self.variable_cell("product", 1.0)
        self.each(x, lambda *i: self.write(ir.Compute(product, MULTIPLY, (product, x.at(*i)))))
        return self.apply(SAME, product)

    def _f_dot_product(self, e: s.Call) -> Number:
        x, y = map(self.elements, e.arguments)
        return self._dot(x, y)

    def _f_dot_self(self, e: s.Call) -> Number:
        x = self.elements(e.arguments[0])
        return self.total(x, lambda *i: self.apply(SQUARE, x.at(*i)))

    def _f_squared_distance(self, e: s.Call) -> Number:
        x, y = map(self.elements, e.arguments)
        self.same_shape(x, y)
        return self.total(
            x, lambda *i: self.apply(SQUARE, self.apply(SUBTRACT, x.at(*i), y.at(*i)))
        )

    def _f_log_sum_exp(self, e: s.Call) -> Lowered:
        x = [self.expression(argument) for argument in e.arguments]
        if len(x) == 1:
            return self.log_sum_exp(x[0]) if isinstance(x[0], Elements) else x[0]
        return self.mapped(self._library(e.name, 2, e.at), *x)

    def _f_log_mix(self, e: s.Call) -> Number:
        theta, *x = [self.expression(argument) for argument in e.arguments]
        if not isinstance(theta, Elements):
            return self.mapped(_LOG_MIX, theta, *x)  # type: ignore[return-value]
        assert isinstance(x[0], Elements)
        theta, terms = self.stored(theta), self.stored(x[0])
        self.same_shape(theta, terms)
        logs = self.mapped(_LOG_SHARE, theta, terms)
        assert isinstance(logs, Elements)
        most = self.extreme(logs, LARGEST, -math.inf)

        def share(*i: Number) -> Number:
            exponent = self.apply(_AT_MOST_LARGEST, self.apply(SUBTRACT, terms.at(*i), most))
            return self.apply(MULTIPLY, theta.at(*i), self.apply(EXP, exponent))

        return self.apply(ADD, most, self.apply(LOG, self.total(theta, share)))

    def _softmax(self, e: s.Call, function: ScalarFunction) -> Elements:
        x = self.stored(self.elements(e.arguments[0]))
        total = self.log_sum_exp(x)
        return Elements(
            x.shape, x.most, lambda i: self.apply(function, self.apply(SUBTRACT, x.at(i), total))
        )

    def _f_softmax(self, e: s.Call) -> Elements:
        return self._softmax(e, EXP)

    def _f_log_softmax(self, e: s.Call) -> Elements:
        return self._softmax(e, SAME)

    def _extreme(self, e: s.Call, function: ScalarFunction, first: float) -> Number:
        x = [self.expression(argument) for argument in e.arguments]
        if len(x) == 1:
            return self.extreme(x[0], function, first) if isinstance(x[0], Elements) else x[0]
        make = self.integer if e.type == types.INT else self.apply
        return make(function, *x)  # type: ignore[arg-type]

    def _f_max(self, e: s.Call) -> Number:
        return self._extreme(e, MAXIMUM, -math.inf)

    def _f_min(self, e: s.Call) -> Number:
        return self._extreme(e, MINIMUM, math.inf)

    def _f_int_step(self, e: s.Call) -> Number:
        return self._whole_number(self.compare(">", self.number(e.arguments[0]), 0.0))

    def _f_to_int(self, e: s.Call) -> Number:
        return self.integer(_TRUNCATED, self.number(e.arguments[0]))

    def _f_abs(self, e: s.Call) -> Lowered:
        x = self.expression(e.arguments[0])
        if e.type == types.INT:
            return self.integer(_ABSOLUTE, x)  # type: ignore[arg-type]
        return self.mapped(self._library(e.name, 1, e.at), x)

    def _sliced(self, x: Elements, start: Number, size: Number) -> Elements:
        """Take consecutive elements along the first axis."""
        limit = self.bounds(size)
        most = x.most[0] if limit is None else max(0, min(x.most[0], limit[1]))
        self.end_unless(self.apply(_INSIDE, start, size, x.shape[0]))
        return Elements(
            (size, *x.shape[1:]),
            (most, *x.most[1:]),
            lambda i, *j: x.at(self.integer(ADD, i, start), *j),
            is_view=x.is_view,
            bounds=x.bounds,
        )

    def _f_head(self, e: s.Call) -> Elements:
        x, n = self.elements(e.arguments[0]), self.number(e.arguments[1])
        return self._sliced(x, 0, n)

    def _f_tail(self, e: s.Call) -> Elements:
        x, n = self.elements(e.arguments[0]), self.number(e.arguments[1])
        return self._sliced(x, self.integer(SUBTRACT, x.shape[0], n), n)

    def _f_segment(self, e: s.Call) -> Elements:
        x = self.elements(e.arguments[0])
        start, n = map(self.number, e.arguments[1:])
        return self._sliced(x, self.integer(SUBTRACT, start, 1), n)

    def _f_reverse(self, e: s.Call) -> Elements:
        x = self.elements(e.arguments[0])
        last = self.integer(SUBTRACT, x.shape[0], 1)
        return Elements(
            x.shape,
            x.most,
            lambda i, *j: x.at(self.integer(SUBTRACT, last, i), *j),
            is_view=x.is_view,
            bounds=x.bounds,
        )

    def _fixed(self, e: s.Call, place: int, n: Number) -> Number:
        """Lower an index among the arguments, from 0."""
        return self._within(self.number(e.arguments[place]), n)

    def _row_of(self, x: Elements, i: Number) -> Elements:
        return Elements(x.shape[1:], x.most[1:], lambda j: x.at(i, j), is_view=x.is_view)

    def _column_of(self, x: Elements, j: Number) -> Elements:
        return Elements(x.shape[:1], x.most[:1], lambda i: x.at(i, j), is_view=x.is_view)

    def _f_row(self, e: s.Call) -> Elements:
        x = self.elements(e.arguments[0])
        return self._row_of(x, self._fixed(e, 1, x.shape[0]))

    def _f_col(self, e: s.Call) -> Elements:
        x = self.elements(e.arguments[0])
        return self._column_of(x, self._fixed(e, 1, x.shape[1]))

    def _f_sub_col(self, e: s.Call) -> Elements:
        x = self.elements(e.arguments[0])
        i, j = self._fixed(e, 1, x.shape[0]), self._fixed(e, 2, x.shape[1])
        return self._sliced(self._column_of(x, j), i, self.number(e.arguments[3]))

    def _f_sub_row(self, e: s.Call) -> Elements:
        x = self.elements(e.arguments[0])
        i, j = self._fixed(e, 1, x.shape[0]), self._fixed(e, 2, x.shape[1])
        return self._sliced(self._row_of(x, i), j, self.number(e.arguments[3]))

    def _f_diagonal(self, e: s.Call) -> Elements:
        x = self.elements(e.arguments[0])
        return Elements(x.shape[:1], x.most[:1], lambda i: x.at(i, i), is_view=x.is_view)

    def _f_to_vector(self, e: s.Call) -> Lowered:
        x = self.elements(e.arguments[0])
        if len(x.shape) == 1:
            return x
        if any(isinstance(n, Cell) for n in x.shape) or e.arguments[0].type not in MATRICES:
            raise BoundError(f"`{e.name}` of a {e.arguments[0].type}", e.at)
        rows, columns = (int(n) for n in x.shape)  # type: ignore[arg-type]

        def at(k: Number) -> Number:
            j = self.integer(QUOTIENT, k, rows)
            return x.at(self.integer(SUBTRACT, k, self.integer(MULTIPLY, j, rows)), j)

        return Elements((rows * columns,), (rows * columns,), at, is_view=x.is_view)

    _f_to_row_vector = _f_to_array_1d = _f_to_vector

    def _repeated(self, e: s.Call) -> Elements:
        x, sizes = self.expression(e.arguments[0]), [self.number(n) for n in e.arguments[1:]]
        most = [self.limit(n, "an array", e.at) for n in sizes]
        if isinstance(x, Elements) and e.name == "rep_matrix":
            is_row = e.arguments[0].type in ROWS
            shape, limit = (sizes, most)
            shape_out = (*shape, *x.shape) if is_row else (*x.shape, *shape)
            limits = (*limit, *x.most) if is_row else (*x.most, *limit)
            return Elements(tuple(shape_out), tuple(limits), lambda i, j: x.at(j if is_row else i))
        if isinstance(x, Elements):
            k = len(sizes)
            return Elements(
                (*sizes, *x.shape), (*most, *x.most), lambda *i: x.at(*i[k:]), is_view=x.is_view
            )
        ends = self.bounds(x) if e.arguments[0].type == types.INT else None
        return Elements(tuple(sizes), tuple(most), lambda *i: x, bounds=ends)

    _f_rep_vector = _f_rep_row_vector = _f_rep_array = _f_rep_matrix = _repeated

    def _filled(self, n: s.Expression, x: float) -> Elements:
        size = self.number(n)
        return Elements((size,), (self.limit(size, "an array", n.at),), lambda i: x)

    def _f_zeros_vector(self, e: s.Call) -> Elements:
        return self._filled(e.arguments[0], 0.0)

    def _f_ones_vector(self, e: s.Call) -> Elements:
        return self._filled(e.arguments[0], 1.0)

    _f_zeros_row_vector, _f_ones_row_vector = _f_zeros_vector, _f_ones_vector

    def _joined(self, e: s.Call) -> Elements:
        """Concatenate two vectors, or numbers."""
        parts = []
        for argument in e.arguments:
            x = self.expression(argument)
            if not isinstance(x, Elements):
                x = Elements((1,), (1,), lambda i, x=x: x)
            parts.append(x)
        x, y = parts
        if len(x.shape) != 1 or len(y.shape) != 1:
            raise BoundError(f"`{e.name}` of matrices", e.at)
        n = self.integer(ADD, x.shape[0], y.shape[0])
        buffer = self.temporary((x.most[0] + y.most[0],), "joined")
        self.copy(buffer, x)
        self.copy(buffer, y, lambda i: (self.integer(ADD, i, x.shape[0]),))
        return self.array(buffer, (n,))

    def _f_append_row(self, e: s.Call) -> Elements:
        if any(argument.type in ROWS for argument in e.arguments):
            raise BoundError("`append_row` of row vectors", e.at)
        return self._joined(e)

    def _f_append_col(self, e: s.Call) -> Elements:
        if any(argument.type in VECTORS for argument in e.arguments):
            raise BoundError("`append_col` of vectors", e.at)
        return self._joined(e)

    _f_append_array = _joined

    def _f_cumulative_sum(self, e: s.Call) -> Elements:
        x = self.elements(e.arguments[0])
        buffer = self.temporary(x.most, "sums")
        total = self.variable_cell("sum", 0.0)

        def add(i: Number) -> None:
            self.write(ir.Add(total, x.at(i)))
            self.write(ir.Store(buffer, self.places((i,)), total))

        self.each(x, add)
        return self.array(buffer, x.shape)

    # --- densities with vectors ---

    def _d_categorical_lpmf(self, y: s.Expression, theta: s.Expression) -> Number:
        x = self.stored(self.elements(theta))
        total = self.total(x)
        self.end_unless(self.apply(_IS_ONE, total))
        self.each(x, lambda i: self.end_unless(self.compare(">=", x.at(i), 0.0)))
        return self._of_categories(y, x.shape[0], lambda i: self.apply(LOG, x.at(i)))

    def _d_categorical_logit_lpmf(self, y: s.Expression, beta: s.Expression) -> Number:
        x = self.stored(self.elements(beta))
        total = self.log_sum_exp(x)
        return self._of_categories(y, x.shape[0], lambda i: self.apply(SUBTRACT, x.at(i), total))

    def _of_categories(
        self, y: s.Expression, size: Number, term: Callable[[Number], Number]
    ) -> Number:
        n = self.expression(y)
        if isinstance(n, Elements):
            return self.total(n, lambda *i: term(self._within(n.at(*i), size)))
        return term(self._within(n, size))


_TRUNCATED = ScalarFunction(np.trunc, 1, is_discrete=True)
_ABSOLUTE = ScalarFunction(np.absolute, 1, is_discrete=True)
_IS_ONE = ScalarFunction(
    lambda x: np.less_equal(np.absolute(x - 1.0), 1e-8) * 1.0, 1, is_discrete=True
)
_INSIDE = ScalarFunction(
    lambda start, size, n: (
        np.logical_and(
            np.greater_equal(start, 0.0),
            np.logical_and(np.greater_equal(size, 0.0), np.less_equal(start + size, n)),
        )
        * 1.0
    ),
    3,
    is_discrete=True,
)
_DISCRETE = frozenset({"floor", "ceil", "round", "trunc", "step", "is_nan", "is_inf"})
