"""The elementwise functions of NumPy, as a table: one row per ufunc.

A row reads: name, contribution to the adjoint of each operand, what it is, function for scalars,
the same in mpmath, points for the tests, and the derivative at the first point for the docstring.
Rules, dispatch, operators, docstrings and tests are made from it."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from varmat.core.dispatch import FURTHER, SPECIAL, SUPPORTED, implements
from varmat.core.elementwise import ROWS, Elementwise, new_row
from varmat.core.errors import called
from varmat.core.operation import is_differentiable
from varmat.core.rules import OPERANDS, ZERO, function_of, in_place
from varmat.plain_arrays import is_between, with_out

__all__: list[str] = []

LN2 = repr(math.log(2.0))
LN10 = repr(math.log(10.0))
DEGREE = repr(math.pi / 180.0)
# Row -> {position of an operand that must be constant: its name}.
CONSTANT_OPERANDS: dict[str, dict[int, str]] = {}

_DOC = """{about}.

Parameters
----------
{parameters}

Returns
-------
Var, VarMat or MatVar
    A float or an ndarray if no argument is a variable.

Notes
-----
Domain: {domain}.{note} With `g` the adjoint of the result `r`, the contribution to the adjoint of

{rules}

Examples
--------
>>> import numpy as np, varmat as vm
>>> {x} = vm.var({at!r})
>>> {call}.grad()
>>> print(f"{{{x}.adj:.6g}}")
{slope:.6g}
"""


def row(
    name: str,
    partials: str | tuple[str | None, ...],
    about: str,
    scalar: str | Callable[..., float] | None,
    reference: str,
    points: tuple[Any, ...],
    slope: float,
    *,
    domain: str = "all real numbers",
    note: str = "",
    constant: tuple[str, ...] = (),
    ufunc: Any = None,
    operator: str | None = None,
    shortcuts: dict[float, str] | None = None,
    with_itself: str | None = None,
    call: str | None = None,
) -> Elementwise:
    """Make a row, with its docstring.

    A partial that is None belongs to an operand that must be constant; `constant` names these
    operands. Without `ufunc` it is NumPy's of this name, or that of `scipy.special`, imported when
    it is first used. `call` is how a row without a name of its own is called."""
    if isinstance(partials, str):
        partials = (partials,)
    if ufunc is None:
        ufunc = getattr(np, name) if isinstance(getattr(np, name, None), np.ufunc) else name
    module = "vm" if isinstance(ufunc, str) or not hasattr(np, name) else "np"
    points = tuple(p if isinstance(p, tuple) else (p,) for p in points)
    # What is never asked for is nan, should anybody ask.
    made = new_row(
        name,
        ufunc,
        *(p or "nan * g" for p in partials),
        scalar=scalar,
        operator=operator,
        shortcuts=shortcuts,
        with_itself=with_itself,
        points=points,
        reference=reference,
        doc=_docstring(name, partials, about, domain, note, points[0], slope, module, call),
    )
    answer = made.call
    if constant:
        positions = [i for i, partial in enumerate(partials) if partial is None]
        answer = _hold_constant(made, dict(zip(positions, constant, strict=True)))
    # Also where it is not computed by the function of NumPy that has this name, should there be
    # one.
    if callable(like := getattr(np, name, None)):
        SUPPORTED[like] = answer if isinstance(like, np.ufunc) else made
    if isinstance(ufunc, str):
        SPECIAL[ufunc] = answer
    return made


def _docstring(
    name: str,
    partials: tuple[str | None, ...],
    about: str,
    domain: str,
    note: str,
    point: tuple[Any, ...],
    slope: float,
    module: str,
    call: str | None,
) -> str:
    names = OPERANDS[: len(partials)]
    kinds = [
        "array_like of real numbers" + (", not a variable" if p is None else "") for p in partials
    ]
    first = next(i for i, partial in enumerate(partials) if partial is not None)
    arguments = [*map(repr, point[:first]), names[first], *map(repr, point[first + 1 :])]
    return _DOC.format(
        about=about,
        parameters="\n".join(f"{x} : {kind}" for x, kind in zip(names, kinds, strict=True)),
        domain=domain,
        note=f" {note}." if note else "",
        rules="\n".join(
            f"* `{x}` is ``{p}``" for x, p in zip(names, partials, strict=True) if p is not None
        ),
        x=names[first],
        at=point[first],
        call=call or f"{module}.{name}({', '.join(arguments)})",
        slope=slope,
    )


def _hold_constant(made: Elementwise, names: dict[int, str]) -> Callable[..., Any]:
    """Refuse variables where there is no derivative, before anything is recorded."""
    CONSTANT_OPERANDS[made.name] = names
    call = made.call

    def checked(*args: Any) -> Any:
        for position, title in names.items():
            if is_differentiable(args[position]):
                kind = type(args[position]).__name__
                text = (
                    f"{made.name}: {title} is a {kind}, but must be a constant (varmat.value "
                    "gives one): "
                )
                raise TypeError(called(text + "there is no derivative with respect to it here!"))
        return call(*args)

    made.call = checked
    return checked


def _of_scipy(ufunc: Any) -> Any:
    """What answers for a ufunc of SciPy; most of them are rare, and their tables take too long to
    import with varmat.
    """
    name = ufunc.__name__
    if name in SPECIAL and getattr(sys.modules["scipy.special"], name, None) is ufunc:
        return SPECIAL[name]
    if getattr(np, name, None) is ufunc:
        return None
    from varmat.functions.special import further_names as special_names

    return special_names.answer(ufunc)


FURTHER.append(_of_scipy)


def formula(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy expression with the calling convention of a ufunc, quiet about what `np.where`
    drops.
    """
    return with_out(np.errstate(all="ignore")(function))


# Elements from which several steps of NumPy's are faster than its loops without vector
# instructions: at 10^4 four times as fast.
MANY = 256


def _rest(e: Any) -> Any:
    """``log(1 + exp(-e))``, in place."""
    return np.log1p(np.exp(np.negative(e, e), e), e)


def softplus(x: Any, out: Any = None) -> Any:
    """``log(1 + exp(x))``, with the calling convention of a ufunc."""
    if np.size(x) < MANY:
        with np.errstate(invalid="ignore"):  # it warns of nan
            return np.logaddexp(0.0, x, out=out)
    e = _rest(np.absolute(x))
    return np.add(e, np.maximum(x, 0.0), out=e if out is None else out)


def _length(x: Any, y: Any, out: Any = None) -> Any:
    """`numpy.hypot`; of many elements whose squares are all in the range of floats it is faster to
    take these.
    """
    if max(np.size(x), np.size(y)) >= MANY:
        with np.errstate(all="ignore"):
            squares = np.add(np.square(x), np.square(y))
        if is_between(squares, TINY, np.inf):
            return np.sqrt(squares, squares if out is None else out)
    return np.hypot(x, y, out=out)


def _log_of_sum(x: Any, y: Any, out: Any = None) -> Any:
    """`numpy.logaddexp`, and faster."""
    if max(np.size(x), np.size(y)) >= MANY:
        with np.errstate(all="ignore"):
            e = _rest(np.absolute(np.subtract(x, y)))
            np.add(e, np.maximum(x, y), e)
            if not np.isnan(np.add.reduce(e, None)):  # no difference of infinities
                return e if out is None else np.positive(e, out)
    return np.logaddexp(x, y, out=out)


# What programs compute: the shape of an array tells them which form to take, its values do not.
softplus.formula, _length.formula, _log_of_sum.formula = softplus, np.hypot, np.logaddexp  # type: ignore[attr-defined]


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    """A rounding function of `math` that returns a float with the sign of its argument, like
    NumPy's.
    """
    return lambda x: math.copysign(function(x), x)


def _logaddexp(x: float, y: float) -> float:
    return x + math.log(2.0) if x == y else max(x, y) + math.log1p(math.exp(-abs(x - y)))


def _sign(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else abs(0.0 * x)


@formula
def _ldexp(x: Any, y: Any) -> Any:
    exponent = np.asarray(y).astype(np.int64)
    if np.any(exponent != y):
        raise TypeError("ldexp: the exponent has fractional values, but must be integers!")
    return np.ldexp(x, exponent)


# Powers whose exponent is a small whole number are products: where there are negative bases NumPy's
# power takes 40 ns per element, a multiplication a quarter of a nanosecond. Left to right a product
# grows or shrinks all the way: what comes in between overflows or underflows only if the result
# does.
_WHOLE = {
    n: f"power_{n}" if n > 0 else f"power_minus_{-n}"
    for n in (3, 4, 5, 6, 7, 8, -2, -3, -4, -5, -6, -7, -8)
}
# Well above what has lost digits to underflow.
TINY = 1e-290
# Elements of a block: it stays in the L2 cache while it is multiplied. Smaller ones lose more to
# the calls.
_BLOCK = 1 << 15


def _by_blocks(text: str) -> Callable[..., Any]:
    """An expression in `x` with the calling convention of a ufunc, every step in place."""
    names = {"multiply": np.multiply, "divide": np.divide}
    compiled = cache(
        lambda: function_of("x, out", in_place(text, frozenset()), names, f"value of {text}")
    )

    def ufunc(x: Any, out: Any = None) -> Any:
        write = compiled()
        out = np.empty(np.shape(x)) if out is None else out
        if out.size <= _BLOCK or not (x.flags.c_contiguous and out.flags.c_contiguous):
            write(x, out)
        else:
            flat, target = x.reshape(-1), out.reshape(-1)
            for start in range(0, out.size, _BLOCK):
                write(flat[start : start + _BLOCK], target[start : start + _BLOCK])
        return out

    ufunc.formula = lambda x: function_of("x", [f"return {text}"], {}, f"value of {text}")(x)  # type: ignore[attr-defined]
    return ufunc


def _whole_power(n: int) -> None:
    """The row of a power that is a product, or a quotient."""
    text = " * ".join(["x"] * n) if n > 0 else " / ".join(["1.0", *["x"] * -n])
    row(
        _WHOLE[n],
        f"{n}.0 * g{' * x' * (n - 1)}" if n > 0 else f"{n}.0 * g * r / x",
        f"The power ``x**{n}``",
        text,
        f"x**({n})",
        (-1.5, 1e-30, 1e30),
        float(n * (-1.5) ** (n - 1)),
        domain="all real numbers" if n > 0 else "x is not 0",
        ufunc=_by_blocks(text),
        call=f"np.power(x, {n})",
    )


class _Below(Elementwise):
    """The power ``x**(y - 1)``, for which ``x**y`` may be at hand: a function of x and y, wherever
    it is differentiated.
    """

    def __call__(self, *args: Any) -> Any:
        x, y, r = args
        if not isinstance(y, (float, int)) or not y:
            # The exponent is 0 instead of -1 where both are zero: the derivative of the power there
            # is 0, not 0 * inf. Where y is a constant zero it is that for every x, also where 1 / x
            # overflows.
            constant = isinstance(y, (float, int, np.ndarray))
            return np.power(x, y - 1 + (y == 0 if constant else (x == 0) * (y == 0)))
        # A quotient with its two looks takes half as long as a power, from some 250 elements on;
        # not where the power at hand is one of zero, or has overflowed or underflowed.
        many = type(x) is type(r) is np.ndarray and r.size >= 256
        if many and is_between(r, TINY, np.inf):
            return r / x
        return np.power(x, y - 1)


# Arithmetic. First operand: at ties, maximum and minimum are the first one.

_POWER = ("g * (y * power_below(x, y, r))", "g * r * log(where(x == 0, 1.0, x))")
_CONSTANT_POWERS = {2.0: "square", 0.5: "sqrt", 1.0: "positive", -1.0: "reciprocal"} | {
    float(n): _WHOLE[n] for n in _WHOLE
}
_POWER_NOTE = (
    "At x = 0 the derivative with respect to y is 0, and where y = 0 that with respect "
    "to x is 0 as well"
)
_TIES = "Where the operands are equal the first one takes the derivative"
_AT_ZERO = "The derivative at 0 is 0"
_STEPS = "Piecewise constant: the derivative is 0, at the steps as well"

row(
    "add",
    ("g", "g"),
    "Sum, also written ``x + y``",
    "x + y",
    "x + y",
    ((1.5, -2.25), (1e10, 3.0)),
    1.0,
    operator="add",
)
row(
    "subtract",
    ("g", "-g"),
    "Difference, also written ``x - y``",
    "x - y",
    "x - y",
    ((1.5, -2.25), (1e10, 3.0)),
    1.0,
    operator="sub",
)
row(
    "multiply",
    ("g * y", "g * x"),
    "Product, also written ``x * y``",
    "x * y",
    "x * y",
    ((1.5, -2.25), (1e10, 3.0)),
    -2.25,
    operator="mul",
    with_itself="square",
)
row(
    "divide",
    ("g / y", "-g * r / y"),
    "Quotient, also written ``x / y``",
    "x / y",
    "x / y",
    ((1.5, -2.0), (1e-10, 3.0), (0.0, 7.0)),
    -0.5,
    domain="y is not 0",
    operator="truediv",
)
row(
    "power",
    _POWER,
    "Power, also written ``x**y``",
    math.pow,
    "x**y",
    ((1.2, 2.5), (3.0, -0.5), (0.01, 40.0), (250.0, 100.0)),
    3.28634,
    domain="x > 0, or x < 0 with whole numbers y",
    note=_POWER_NOTE,
    operator="pow",
    shortcuts=_CONSTANT_POWERS,
)
row(
    "float_power",
    _POWER,
    "Power, in floating-point numbers",
    math.pow,
    "x**y",
    ((1.2, 2.5), (3.0, -0.5)),
    3.28634,
    domain="x > 0, or x < 0 with whole numbers y",
    note=_POWER_NOTE,
    shortcuts=_CONSTANT_POWERS,
)
for _n in _WHOLE:
    _whole_power(_n)
# Not a function for users: it has no rules of its own, and nothing is recorded under its name.
ROWS["power_below"] = _Below(
    "power_below",
    formula(lambda x, y, r: np.power(x, y - 1.0 + (y == 0.0))),
    ("nan * g",) * 3,
    lambda x, y, r: math.pow(x, y - 1 + (y == 0)),
    None,
    None,
)
row(
    "floor_divide",
    (ZERO, ZERO),
    "Quotient rounded down, also written ``x // y``",
    operator.floordiv,
    "floor(x / y)",
    ((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0)),
    0.0,
    domain="y is not 0",
    note=_STEPS,
    operator="floordiv",
)
row(
    "remainder",
    ("g", "-g * floor_divide(x, y)"),
    "Remainder with the sign of the divisor, also written ``x % y``",
    operator.mod,
    "x - y * floor(x / y)",
    ((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (1e6, 0.7)),
    1.0,
    domain="y is not 0",
    operator="mod",
)
row(
    "fmod",
    ("g", "-g * rint(divide(x - r, y))"),
    "Remainder with the sign of the dividend",
    math.fmod,
    "x - y * (floor(x / y) if x / y > 0 else ceil(x / y))",
    ((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (1e10, 3.0)),
    1.0,
    domain="y is not 0",
)
row(
    "negative",
    "-g",
    "Negative, also written ``-x``",
    operator.neg,
    "-x",
    (2.5, -1e-300),
    -1.0,
    operator="neg",
)
row(
    "positive",
    "g",
    "The argument itself, also written ``+x``",
    float,
    "x",
    (2.5, -1e-300),
    1.0,
    operator="pos",
)
row(
    "conjugate",
    "g",
    "Complex conjugate: of a real number, the number itself",
    float,
    "x",
    (2.5, -1.0),
    1.0,
)
row(
    "maximum",
    ("where(r == x, g, 0.0)", "where(r == x, 0.0, g)"),
    "The larger of two numbers, or nan",
    lambda x, y: x if x >= y or x != x else y,
    "max(x, y)",
    ((1.5, -2.0), (-3.0, 4.0)),
    1.0,
    note=_TIES,
)
row(
    "minimum",
    ("where(r == x, g, 0.0)", "where(r == x, 0.0, g)"),
    "The smaller of two numbers, or nan",
    lambda x, y: x if x <= y or x != x else y,
    "min(x, y)",
    ((1.5, -2.0), (-3.0, 4.0)),
    0.0,
    note=_TIES,
)
row(
    "fmax",
    ("where(r == x, g, 0.0)", "where(r == x, 0.0, g)"),
    "The larger of two numbers, passing over nan",
    lambda x, y: x if x >= y or y != y else y,
    "max(x, y)",
    ((1.5, -2.0), (-3.0, 4.0)),
    1.0,
    note=_TIES,
)
row(
    "fmin",
    ("where(r == x, g, 0.0)", "where(r == x, 0.0, g)"),
    "The smaller of two numbers, passing over nan",
    lambda x, y: x if x <= y or y != y else y,
    "min(x, y)",
    ((1.5, -2.0), (-3.0, 4.0)),
    0.0,
    note=_TIES,
)
row(
    "hypot",
    ("g * (x / where(r == 0, 1.0, r))", "g * (y / where(r == 0, 1.0, r))"),
    "Length of the vector (x, y)",
    math.hypot,
    "hypot(x, y)",
    ((3.0, 4.0), (-1e-5, 2.0), (1e200, 1e200), (1e-200, -1e-200), (0.0, 2.0)),
    0.6,
    note="At (0, 0) both derivatives are 0",
    ufunc=_length,
)
row(
    "arctan2",
    ("g * (y / hypot(x, y)) / hypot(x, y)", "-g * (x / hypot(x, y)) / hypot(x, y)"),
    "Angle of the point with ordinate x and abscissa y",
    math.atan2,
    "atan2(x, y)",
    ((1.5, 2.0), (-1.5, -2.0), (1e-8, -3.0), (1e200, 1e200), (-2.0, 0.0)),
    0.32,
    domain="not x = y = 0",
)
row(
    "copysign",
    ("g * sign(x) * copysign(1.0, y)", ZERO),
    "Magnitude of x with the sign of y",
    math.copysign,
    "abs(x) * sign(y)",
    ((1.5, -2.0), (-1.5, -2.0), (3.0, 1.0)),
    -1.0,
    note="The derivative at x = 0 is 0",
)
row(
    "heaviside",
    (ZERO, "where(x == 0, g, 0.0)"),
    "Step: 0 for negative x, 1 for positive x, y at 0",
    None,
    "mpf(x > 0)",
    ((1.5, 0.5), (-1.5, 0.5)),
    0.0,
    note=_STEPS,
)
row(
    "ldexp",
    ("g * exp2(y)", None),
    "``x * 2**y``",
    lambda x, y: math.ldexp(x, y) if type(y) is int else float(_ldexp(x, y)),
    "x * 2**y",
    ((1.5, 3), (-0.3, -40)),
    8.0,
    ufunc=_ldexp,
    constant=("the exponent",),
)
row(
    "logaddexp",
    ("where(r == -inf, 0.0, g * expit(x - y))", "where(r == -inf, 0.0, g * expit(y - x))"),
    "``log(exp(x) + exp(y))`` without overflow",
    _logaddexp,
    "log(exp(x) + exp(y))",
    ((0.5, -1.0), (1000.0, 999.0), (1e10, 1e10 + 1.0), (-50.0, 3.0), (-1e3, -1e3)),
    0.817574,
    note="The derivatives are 0 where both operands are -inf",
    ufunc=_log_of_sum,
)
row(
    "logaddexp2",
    (
        f"where(r == -inf, 0.0, g * expit({LN2} * (x - y)))",
        f"where(r == -inf, 0.0, g * expit({LN2} * (y - x)))",
    ),
    "``log2(2**x + 2**y)`` without overflow",
    None,
    "log(2**x + 2**y, 2)",
    ((0.5, -1.0), (1100.0, 1099.0), (-50.0, 3.0)),
    0.738796,
    note="The derivatives are 0 where both operands are -inf",
)

# Magnitude and rounding.

row(
    "absolute",
    "g * sign(x)",
    "Absolute value, also ``abs(x)``",
    math.fabs,
    "abs(x)",
    (-2.5, 1e-300),
    -1.0,
    note=_AT_ZERO,
    operator="abs",
)
row(
    "fabs",
    "g * sign(x)",
    "Absolute value",
    math.fabs,
    "abs(x)",
    (-2.5, 1e-300),
    -1.0,
    note=_AT_ZERO,
)
row("sign", ZERO, "-1, 0 or 1", _sign, "sign(x)", (-2.5, 3.0), 0.0, note=_STEPS)
row("floor", ZERO, "Rounded down", _whole(math.floor), "floor(x)", (-2.5, 3.2), 0.0, note=_STEPS)
row("ceil", ZERO, "Rounded up", _whole(math.ceil), "ceil(x)", (-2.5, 3.2), 0.0, note=_STEPS)
row(
    "trunc",
    ZERO,
    "Rounded towards zero",
    _whole(math.trunc),
    "floor(x) if x > 0 else ceil(x)",
    (-2.5, 3.2),
    0.0,
    note=_STEPS,
)
row(
    "rint",
    ZERO,
    "Rounded to the nearest whole number, ties to even",
    _whole(round),
    "nint(x)",
    (-2.4, 3.2),
    0.0,
    note=_STEPS,
)
row("square", "(g + g) * x", "``x * x``", lambda x: x * x, "x * x", (-1.5, 1e-100, 1e100), -3.0)
row(
    "reciprocal",
    "-g * r * r",
    "``1 / x``",
    lambda x: 1.0 / x,
    "1 / x",
    (-0.5, 1e-100, 1e100),
    -4.0,
    domain="x is not 0",
)
row(
    "sqrt",
    "0.5 * g / r",
    "Square root",
    math.sqrt,
    "sqrt(x)",
    (0.25, 1e-300, 1e300),
    1.0,
    domain="x > 0; at 0 the derivative is inf",
)
row(
    "cbrt",
    "g / (3.0 * r * r)",
    "Cube root",
    math.cbrt,
    "sign(x) * cbrt(abs(x))",
    (0.125, -27.0, 1e-300),
    1.33333,
    note="At 0 the derivative is inf",
)
row(
    "sinc",
    "-g * x * (pi * pi / 3.0) * hyp0f1(2.5, -0.25 * square(pi * x))",
    "``sin(pi x) / (pi x)``",
    None,
    "sincpi(x)",
    (0.5, -1e-8, 0.0, 1e-4, 2.4, 100.3),
    -1.27324,
    ufunc=formula(np.sinc),
)

# Exponentials and logarithms.

row("exp", "g * r", "Exponential", math.exp, "exp(x)", (0.5, -700.0, 1e-10, 700.0), 1.64872)
row(
    "exp2", f"g * r * {LN2}", "``2**x``", math.exp2, "2**x", (0.5, -1000.0, 1e-10, 1000.0), 0.980258
)
row(
    "expm1",
    "g * exp(x)",
    "``exp(x) - 1``, exact near 0",
    math.expm1,
    "expm1(x)",
    (0.5, -50.0, 1e-10, 700.0),
    1.64872,
)
row(
    "log",
    "g / x",
    "Natural logarithm",
    math.log,
    "log(x)",
    (0.5, 1e-300, 3.0, 1e300),
    2.0,
    domain="x > 0",
)
row(
    "log2",
    f"g / ({LN2} * x)",
    "Logarithm to base 2",
    math.log2,
    "log(x, 2)",
    (0.5, 1e-300, 3.0, 1e300),
    2.88539,
    domain="x > 0",
)
row(
    "log10",
    f"g / ({LN10} * x)",
    "Logarithm to base 10",
    math.log10,
    "log10(x)",
    (0.5, 1e-300, 3.0, 1e300),
    0.868589,
    domain="x > 0",
)
row(
    "log1p",
    "g / (1.0 + x)",
    "``log(1 + x)``, exact near 0",
    math.log1p,
    "log1p(x)",
    (0.5, -0.999, 1e-10, 1e100),
    0.666667,
    domain="x > -1",
)

# Trigonometric and hyperbolic functions. Derivatives are written so that nothing cancels near the
# ends of the domain.

row("sin", "g * cos(x)", "Sine", math.sin, "sin(x)", (0.5, -2.0, 1e-8, 100.0), 0.877583)
row("cos", "-g * sin(x)", "Cosine", math.cos, "cos(x)", (0.5, -2.0, 1e-8, 100.0), -0.479426)
row("tan", "g * (1.0 + r * r)", "Tangent", math.tan, "tan(x)", (0.5, -2.0, 1e-8, 100.0), 1.29845)
row(
    "arcsin",
    "g / sqrt((1.0 - x) * (1.0 + x))",
    "Inverse sine",
    math.asin,
    "asin(x)",
    (0.5, -0.9999999, 1e-8, 0.99),
    1.1547,
    domain="-1 <= x <= 1",
)
row(
    "arccos",
    "-g / sqrt((1.0 - x) * (1.0 + x))",
    "Inverse cosine",
    math.acos,
    "acos(x)",
    (0.5, -0.9999999, 1e-8, 0.99),
    -1.1547,
    domain="-1 <= x <= 1",
)
row(
    "arctan",
    "g / (1.0 + x * x)",
    "Inverse tangent",
    math.atan,
    "atan(x)",
    (0.5, -2.0, 1e-8, 1e100),
    0.8,
)
row(
    "sinh",
    "g * cosh(x)",
    "Hyperbolic sine",
    math.sinh,
    "sinh(x)",
    (0.5, -20.0, 1e-8, 700.0),
    1.12763,
)
row(
    "cosh",
    "g * sinh(x)",
    "Hyperbolic cosine",
    math.cosh,
    "cosh(x)",
    (0.5, -20.0, 1e-8, 700.0),
    0.521095,
)
row(
    "tanh",
    "g / square(cosh(minimum(maximum(x, -350.0), 350.0)))",
    "Hyperbolic tangent",
    math.tanh,
    "tanh(x)",
    (0.5, -20.0, 1e-8, 100.0),
    0.786448,
)
row(
    "arcsinh",
    "g / hypot(1.0, x)",
    "Inverse hyperbolic sine",
    math.asinh,
    "asinh(x)",
    (0.5, -20.0, 1e-8, 1e200),
    0.894427,
)
row(
    "arccosh",
    "g / (sqrt(x - 1.0) * sqrt(x + 1.0))",
    "Inverse hyperbolic cosine",
    math.acosh,
    "acosh(x)",
    (2.0, 1.0001, 20.0, 1e200),
    0.57735,
    domain="x > 1",
)
row(
    "arctanh",
    "g / ((1.0 - x) * (1.0 + x))",
    "Inverse hyperbolic tangent",
    math.atanh,
    "atanh(x)",
    (0.5, -0.9999999, 1e-8, 0.99),
    1.33333,
    domain="-1 < x < 1",
)
for _name in ("deg2rad", "radians"):
    row(
        _name,
        f"{DEGREE} * g",
        "Degrees to radians",
        math.radians,
        "x * pi / 180",
        (90.0, -1e5),
        0.0174533,
    )
for _name in ("rad2deg", "degrees"):
    row(
        _name,
        f"g / {DEGREE}",
        "Radians to degrees",
        math.degrees,
        "x * 180 / pi",
        (0.5, -1e5),
        57.2958,
    )


@implements(np.modf)
def _modf(x: Any) -> tuple[Any, Any]:
    return np.fmod(np.where(abs(x) == np.inf, np.copysign(0.0, x), x), 1.0), np.trunc(x)


@implements(np.divmod)
def _divmod(x: Any, y: Any) -> tuple[Any, Any]:
    return np.floor_divide(x, y), np.remainder(x, y)
