"""Mathieu and spheroidal wave functions.

Their characteristic values are eigenvalues of a matrix that is linear in a parameter, and have
derivatives of any order, by perturbation theory. The functions come with their first derivative in
the argument; further ones follow from the differential equations."""

from __future__ import annotations

from math import factorial

import numpy as np

from varmat.core.operation import is_differentiable
from varmat.functions.rarer.special.further_rows import of_scipy, results
from varmat.functions.rows import ANSWERS, Answer, row
from varmat.functions.special.quadrature import on_domain
from varmat.plain_arrays import special
from varmat.typing import Plain

# For larger parameters, and for orders beyond 1000, the matrices would be too large, and the
# derivative is nan.
_MOST = 1e5


def eigenvalue_derivative(
    diagonal: Plain, change: Plain, q: float, index: int, order: int
) -> float:
    """Compute the derivative of some order in q of an eigenvalue of ``diag(diagonal) + q *
    change``, by perturbation theory.
    """
    values, vectors = np.linalg.eigh(np.diag(diagonal) + q * change)
    change = vectors.T @ change @ vectors
    gaps = values - values[index]
    gaps[index] = np.inf
    parts, coefficients = [np.eye(len(values))[index]], [0.0]
    for k in range(1, order + 1):
        moved = change @ parts[k - 1]
        coefficients.append(moved[index])
        parts.append((sum(coefficients[j] * parts[k - j] for j in range(1, k + 1)) - moved) / gaps)
    return float(factorial(order) * coefficients[order])


# Mathieu functions, as Fourier series of period pi or 2 pi, even or odd.


def _mathieu(code: int, m: Plain, q: Plain) -> Plain:
    order, odd = divmod(code, 2)
    return np.array(
        [_mathieu_derivative(order, bool(odd), int(x), float(p)) for x, p in zip(m, q, strict=True)]
    )


def _mathieu_derivative(order: int, odd: bool, m: int, q: float) -> float:
    size = 30 + m + int(2.0 * abs(q) ** 0.5)
    first = m % 2 if not odd else 2 - m % 2
    change = np.eye(size, k=1) + np.eye(size, k=-1)
    if m % 2:
        change[0, 0] = -1.0 if odd else 1.0
    elif not odd:
        change[0, 1] = change[1, 0] = 2.0**0.5
    return eigenvalue_derivative(
        (first + 2.0 * np.arange(size)) ** 2, change, q, (m - first) // 2, order
    )


def _mathieu_values(x: Plain, y: Plain, z: Plain) -> Plain:
    x, y, z = np.broadcast_arrays(x, y, z)
    return on_domain(_mathieu, x, (np.abs(z) <= _MOST) & (y >= np.fmod(x, 2.0)) & (y <= 1e3), y, z)


# fmt: off
row("mathieu_derivative", (None, None, "g * mathieu_derivative(x + 2.0, y, z)"),
    "Derivative of order x // 2, in z, of `mathieu_a` of order y, or if x is odd of `mathieu_b`",
    None, "0", ((2.0, 3.0, 2.5),), domain="y = 0, 1, 2, ...", constant=("the code x",
    "the order y"),
    ufunc=of_scipy(_mathieu_values), tested=False)
for _letter, _code, _parity, _orders in (
    ("a", "2.0", "even", "x = 0, 1, 2, ..."),
    ("b", "3.0", "odd", "x = 1, 2, ..."),
):
    row(f"mathieu_{_letter}", (None, f"g * mathieu_derivative({_code}, x, y)"),
        f"Characteristic value of the {_parity} Mathieu functions",
        None, f"mathieu({_letter == 'b'}, x, y)", ((3.0, 2.5), (2.0, -1.5)), domain=_orders,
        constant=("the order x",))
# fmt: on
_IN_MATHIEU = ("the order x", "the parameter y")
_TO_RADIANS = "0.017453292519943295"
_NUMERICAL = "The value is of the library specfun"


def _mathieu_pair(
    name: str, about: str, unit: str, curve: str, points: object, **settings: object
) -> None:
    """Make the rows of a function and of its derivative; `curve` times it is the second one."""
    value = "mathieu_a" if "ce" in name else "mathieu_b"
    parity = "Even" if "ce" in name else "Odd"
    curve = curve.replace("VALUE", f"{value}(x, y)")
    results(
        name,
        ("f", (None, None, f"{unit}g * {name}_p(x, y, z)"), f"{parity} {about}", ""),
        (
            "p",
            (None, None, f"{unit}g * {curve} * {name}_f(x, y, z)"),
            f"Derivative of the {parity.lower()} {about}",
            "",
        ),
        points=points,
        constant=_IN_MATHIEU,
        note=_NUMERICAL,
        **settings,
    )


# fmt: off
for _name in ("mathieu_cem", "mathieu_sem"):
    _mathieu_pair(_name, "Mathieu function of an angle in degrees", f"{_TO_RADIANS} * ",
        f"(2.0 * y * cos({_TO_RADIANS} * 2.0 * z) - VALUE)", ((3.0, 2.5, 40.0),))
# fmt: on
for _number, _kind in (("1", "first"), ("2", "second")):
    for _name in ("mathieu_modcem", "mathieu_modsem"):
        _mathieu_pair(
            _name + _number,
            f"modified Mathieu function of the {_kind} kind",
            "",
            "(VALUE - 2.0 * y * cosh(2.0 * z))",
            ((3.0, 2.5, 0.6),),
            domain="y > 0, z > 0",
        )

# Spheroidal functions, as series of Legendre's functions. The parameter is c**2, which is negative
# for oblate ones.


def _spheroidal(code: int, m: Plain, n: Plain, q: Plain) -> Plain:
    return np.array(
        [
            _spheroidal_derivative(code, int(i), int(k), float(p))
            for i, k, p in zip(m, n, q, strict=True)
        ]
    )


def _spheroidal_derivative(order: int, m: int, n: int, q: float) -> float:
    size = 30 + n + int(2.0 * abs(q) ** 0.5)
    degree = m + (n - m) % 2 + 2.0 * np.arange(size)

    # what multiplication by the argument takes from one degree to the next, for normalised
    # functions
    def step(k: Plain) -> Plain:
        return np.sqrt((k * k - m * m) / (4.0 * k * k - 1.0))

    off = step(degree[:-1] + 1.0) * step(degree[:-1] + 2.0)
    change = (
        np.diag(step(degree) ** 2 + step(degree + 1.0) ** 2) + np.diag(off, 1) + np.diag(off, -1)
    )
    return eigenvalue_derivative(degree * (degree + 1.0), change, q, (n - m) // 2, order)


def _spheroidal_values(x: Plain, y: Plain, z: Plain, w: Plain) -> Plain:
    x, y, z, w = np.broadcast_arrays(x, y, z, w)
    return on_domain(
        _spheroidal, x, (np.abs(w) <= _MOST) & (y >= 0) & (z >= y) & (z <= 1e3), y, z, w
    )


# fmt: off
row("spheroidal_derivative", (None, None, None, "g * spheroidal_derivative(x + 1.0, y, z, w)"),
    "Derivative of order x of the spheroidal characteristic value of mode y, z in the square w of "
    "its parameter", None, "0", ((1.0, 1.0, 3.0, 2.0),), domain="0 <= y <= z",
    constant=("the order x", "the mode y", "the mode z"), ufunc=of_scipy(_spheroidal_values),
    tested=False)
for _name, _sign, _about in (("pro_cv", "", "prolate"), ("obl_cv", "-", "oblate")):
    row(_name, (None, None, f"{_sign}2.0 * g * z * spheroidal_derivative(1.0, x, y, {_sign}z * z)"),
        f"Characteristic value of the {_about} spheroidal functions", None,
        f"spheroidal(x, y, {_sign}z * z)", ((1.0, 3.0, 1.5),), domain="0 <= x <= y, whole numbers",
        constant=("the mode x", "the mode y"))
# fmt: on

# Rows have no more than four operands, so both modes are one operand: m * 4096 + n.
_BOTH = 4096.0
_CONSTANT = ("the mode m", "the mode n", "the parameter c", "the characteristic value")


def _spheroidal_curvature(oblate: bool, angular: bool) -> str:
    """Write the second derivative, from (1 - w**2) f'' - 2 w f' + (cv - c**2 w**2 - m**2 / (1 -
    w**2)) f = 0; for the radial oblate functions in i w.
    """
    square = "floor(x / 4096.0) * floor(x / 4096.0)"
    if oblate and not angular:
        return (
            f"((z - square(y * w) - {square} / (1.0 + w * w)) * {{f}} - 2.0 * w * r) / (1.0 + "
            "w * w)"
        )
    sign = "+" if oblate else "-"
    return (
        f"(2.0 * w * r - (z {sign} square(y * w) - {square} / (1.0 - w * w)) * {{f}}) / "
        "(1.0 - w * w)"
    )


def _check_constants(name: str, *operands: Plain) -> None:
    for title, operand in zip(_CONSTANT, operands, strict=True):
        if is_differentiable(operand):
            raise TypeError(
                f"{name}: {title} is a {type(operand).__name__}, but must be a constant "
                "(varmat.value gives one): there is no derivative with respect to it!"
            )


def _spheroidal_function(kind: str, which: str, x: float) -> None:
    name = f"{kind}_{which}"
    oblate, angular = kind == "obl", which.startswith("ang")
    curve = _spheroidal_curvature(oblate, angular)

    def part(k: int) -> Plain:
        return of_scipy(
            lambda both, c, cv, x: getattr(special, f"{name}_cv")(
                np.floor(both / _BOTH), np.fmod(both, _BOTH), c, cv, x
            )[k]
        )

    about = (
        f"{'Oblate' if oblate else 'Prolate'} spheroidal function, "
        f"{'angular' if angular else 'radial'}"
    )
    shared: dict[str, Plain] = {
        "points": ((_BOTH + 3.0, 1.5, spheroidal_value(kind, 1, 3, 1.5), x),),
        "constant": ("the modes", *_CONSTANT[2:]),
    }
    slope = (None, None, None, f"g * {name}_p(x, y, z, w)")
    second = (None, None, None, f"g * ({curve.format(f=f'{name}_f(x, y, z, w)')})")
    parts = (
        row(f"{name}_f", slope, about, None, "", ufunc=part(0), **shared),
        row(f"{name}_p", second, f"{about}: its derivative", None, "", ufunc=part(1), **shared),
    )

    def of_value(m: Plain, n: Plain, c: Plain, cv: Plain, x: Plain) -> tuple[Plain, ...]:
        _check_constants(name, m, n, c, cv)
        modes = _BOTH * np.asarray(m, float) + np.asarray(n, float)
        return tuple(
            item(modes[()], np.asarray(c, float)[()], np.asarray(cv, float)[()], x)
            for item in parts
        )

    def of_modes(m: Plain, n: Plain, c: Plain, x: Plain) -> tuple[Plain, ...]:
        is_free = any(map(is_differentiable, (m, n, c)))
        cv = None if is_free else getattr(special, f"{kind}_cv")(m, n, c)
        return of_value(m, n, c, cv, x)

    for key, answer in ((name, of_modes), (f"{name}_cv", of_value)):
        ANSWERS[key] = Answer(answer, parts, _NUMERICAL)


def spheroidal_value(kind: str, m: int, n: int, c: float) -> float:
    """Compute the characteristic value at which the rows are tested."""
    return float(getattr(special, f"{kind}_cv")(m, n, c))


for _which, _at in (("ang1", 0.4), ("rad1", 1.7), ("rad2", 1.7)):
    for _kind in ("pro", "obl"):
        _spheroidal_function(_kind, _which, _at)
