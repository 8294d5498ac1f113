"""Where plain NumPy raises, all routes must; where it has a value, none may."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dual import Dual
from varmat.core.errors import DomainError, ShapeError
from varmat.core.matvar import MatVar
from varmat.core.tape import nested
from varmat.testing import routes
from varmat.testing.compare import Comparison
from varmat.typing import Function

NUMPY = "plain NumPy"
REVERSE = "reverse mode"
FORWARD = "forward mode"
MATVAR = "matvar"


def variable_mixtures(case: routes.Case) -> list[dict[int, str]]:
    """List the sets of variable arguments to be tried: all first, all but one, and each alone."""
    n = len(case.active)
    return [
        dict.fromkeys(chosen, "varmat")
        for count in sorted({n, n - 1, 1} - {0}, reverse=True)
        for chosen in combinations(case.active, count)
    ]


def plain_values(case: routes.Case, comparison: Comparison) -> routes.ArrayList | None:
    """Compute the values by plain NumPy; return None if it raises, and check that all routes do."""
    try:
        result = case.plain()
    except Exception as error:
        if not callable(case.f) or isinstance(error, (AttributeError, NameError)):
            raise  # a mistake in f, which all routes repeat
        for mixture in variable_mixtures(case):
            _expect_refusal(case, comparison, error, mixture, REVERSE)
            _expect_refusal(case, comparison, error, mixture, FORWARD)
            if set(mixture) & set(case.arrays):
                _expect_refusal(case, comparison, error, dict.fromkeys(mixture, MATVAR), MATVAR)
        return None
    for x in routes.outputs(result):
        if isinstance(x, (ArrayMethods, MatVar)):
            raise AssertionError(
                f"{comparison.title}: without variables a result is a {type(x).__name__}, but must "
                "be plain"
            )
    # A function that returns the same array again would change them.
    return [np.array(x) for x in routes.numbers(result)]


def _expect_refusal(
    case: routes.Case,
    comparison: Comparison,
    expected: Exception,
    mixture: dict[int, str],
    route: str,
) -> None:
    """Demand the same exception, with the same text if it is one of our own, and nothing
    recorded.
    """
    name = type(expected).__name__
    sentence = ""
    with nested() as tape, np.errstate(all="ignore"):
        args = routes.CallArguments(case, {} if route == FORWARD else mixture).args
        if route == FORWARD:
            args = [
                Dual(x, np.ones(np.shape(x))) if i in mixture else x for i, x in enumerate(args)
            ]
        try:
            case.f(*args)
            sentence = f"it gives a result where {name} must be raised ({expected})"
        except type(expected) as error:
            if isinstance(expected, (DomainError, ShapeError)) and str(error) != str(expected):
                sentence = f"it says {str(error)!r} and not {str(expected)!r}"
            elif route == REVERSE and tape:  # a matvar may have been converted before the refusal
                left = [entry[0].name for entry in tape]
                sentence = (
                    f"the failed call left {left} on the tape, but checks come before anything is "
                    "recorded"
                )
        except Exception as error:
            sentence = f"it raises {type(error).__name__} ({error}) and not {name} ({expected})"
    if sentence:
        comparison.fail((route, NUMPY), f"{case.describe(mixture)}: {sentence}")


def attempt(
    comparison: Comparison,
    route: str,
    call: str,
    function: Function,
    *args: object,
    **kwargs: object,
) -> Any:
    """Run a route; what it raises where plain NumPy has a value is a failure."""
    try:
        return function(*args, **kwargs)
    except routes.ContractError as error:
        raise AssertionError(f"{comparison.title}: {route}: {call}: {error}") from None
    except Exception as error:
        sentence = f"{call}: it raises {type(error).__name__} ({error}) where there is a value"
        raise AssertionError(
            f"{comparison.title}: {route} and {NUMPY} disagree: {sentence}"
        ) from error
