"""`expect_ad_matvar`: matvars, and mixtures with them, against varmats."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.core.matvar import MatVar
from varmat.core.variables import VarMat
from varmat.testing import coverage, routes
from varmat.testing.compare import Comparison, Report, Tolerances, at
from varmat.testing.refusals import MATVAR, NUMPY, REVERSE, attempt, plain_values
from varmat.typing import Function, Operand

__all__ = ["expect_ad_matvar"]

# For at most this many elements of results, the Jacobian is compared row by row.
MOST_ROWS = 64
# Absolute difference that is nothing but rounding: scalars are computed by other functions than
# arrays.
ROUNDING = 1e-15


def expect_ad_matvar(f: Function, *args: Operand, tolerances: Tolerances | None = None) -> Report:
    """Demand that a function of matvars, and of mixtures of matvar, varmat and data, agrees with
    that of varmats.

    Values, gradients of a weighted sum and Jacobians are compared, and the types of array-valued
    results: with a varmat among the array arguments a `VarMat`, with matvars only a `MatVar`. Where
    plain NumPy raises, so must the function of matvars.

    Parameters
    ----------
    f, *args, tolerances
        As in `expect_ad`.

    Returns
    -------
    Report
        The worst relative difference of each comparison.

    Raises
    ------
    AssertionError
        If the two disagree. It says for which mixture of arguments, where, and by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.testing import expect_ad_matvar
    >>> report = expect_ad_matvar(np.multiply, 2.0, np.array([1.0, -3.0]))
    >>> report.worst < 1e-12
    True
    """
    case = routes.Case(f, args)
    comparison = Comparison(f"expect_ad_matvar({case.name})")
    tolerance = (tolerances or Tolerances()).matvar
    expected = plain_values(case, comparison)
    if expected is None or not case.arrays:
        return comparison.report()
    full = dict.fromkeys(case.active, "varmat")
    weights = routes.random_weights(expected)
    gradient = attempt(
        comparison, REVERSE, case.describe(full), routes.reverse, case, full, weights
    )[2][0]
    for mixture in _mixtures(case):
        call = case.describe(mixture)
        kinds, values, (result,) = attempt(
            comparison, MATVAR, call, routes.reverse, case, mixture, weights
        )
        for i, (a, b) in enumerate(zip(values, expected, strict=True)):
            comparison.close(
                ("value with matvar", NUMPY), f"{call}: value {i}", a, b, tolerance, slack=ROUNDING
            )
        for i in mixture:
            what = f"{call}: the gradient with respect to argument {i}"
            comparison.close(
                ("gradient with matvar", "varmat"),
                what,
                result[i],
                gradient[i],
                tolerance,
                slack=ROUNDING,
            )
        _expect_types(case, comparison, mixture, kinds, [x.ndim for x in values])
    if sum(x.size for x in expected) <= MOST_ROWS:
        _expect_jacobian(case, comparison, tolerance, expected)
    coverage.note(f, args, matvar=comparison.report().worst)
    return comparison.report()


def _mixtures(case: routes.Case) -> list[dict[int, str]]:
    """List assignments of kinds to arguments in which some array is a matvar: all of them, or each
    argument once as the odd one out.
    """
    choices = [
        ("data", "varmat", MATVAR) if i in case.arrays else ("data", "varmat") for i in case.active
    ]
    common = tuple(choice[-1] for choice in choices)
    chosen = [
        common,
        *(
            (*common[:i], odd, *common[i + 1 :])
            for i, choice in enumerate(choices)
            for odd in choice[:-1]
        ),
    ]
    mixtures = [
        {i: kind for i, kind in zip(case.active, kinds, strict=True) if kind != "data"}
        for kinds in chosen
    ]
    return [mixture for mixture in mixtures if any(mixture.get(i) == MATVAR for i in case.arrays)]


def _expect_types(
    case: routes.Case,
    comparison: Comparison,
    mixture: dict[int, str],
    kinds: list[Any],
    ndims: list[int],
) -> None:
    """Check the types of results that are variables."""
    varmat = any(mixture.get(i) == "varmat" for i in case.arrays)
    # A scalar variable may meet an array of data inside f, which makes a varmat of the two.
    either = any(i not in mixture for i in case.arrays) and any(
        i in mixture for i in case.active if i not in case.arrays
    )
    for i, (kind, ndim) in enumerate(zip(kinds, ndims, strict=True)):
        if not ndim:
            wrong, rule = issubclass(kind, MatVar), "a scalar is a Var"
        elif varmat:
            wrong, rule = (
                issubclass(kind, MatVar),
                "with a varmat among the arguments it is a VarMat",
            )
        else:
            wrong, rule = (
                issubclass(kind, VarMat) and not either,
                "with matvars only it is a MatVar",
            )
        if wrong:
            sentence = f"{case.describe(mixture)}: result {i} is a {kind.__name__}"
            comparison.fail(("the type of the result", f"the rule that {rule}"), sentence)


def _expect_jacobian(
    case: routes.Case, comparison: Comparison, tolerance: float, expected: routes.ArrayList
) -> None:
    mixtures = [dict.fromkeys(case.active, kind) for kind in (MATVAR, "varmat")]
    rows = [routes.jacobian(case, mixture) for mixture in mixtures]
    for k, x in enumerate(expected):
        for index, a, b in zip(np.ndindex(x.shape), rows[0][k], rows[1][k], strict=True):
            for i in case.active:
                what = (
                    f"{case.describe(mixtures[0])}: the derivative of result {k}{at(index)} with "
                    f"respect to argument {i}"
                )
                comparison.close(
                    ("Jacobian with matvar", "varmat"), what, a[i], b[i], tolerance, slack=ROUNDING
                )
