"""`expect_reference`: a function against published values and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from varmat.core.tape import nested
from varmat.core.variables import var
from varmat.testing import coverage, routes
from varmat.testing.compare import Comparison, Report
from varmat.typing import Function, Operand

__all__ = ["expect_reference"]

VALUE = "reference value"
GRADIENT = "reference gradient"


def expect_reference(
    f: Function,
    args: Sequence[Operand],
    output: Operand,
    gradients: Sequence[Operand],
    weights: Any = None,
    rtol: float = 1e-9,
    fold: Function | None = None,
) -> Report:
    """Demand that value and gradients of a function equal a reference's.

    Parameters
    ----------
    f : callable
        Takes the arguments; returns a scalar, an array or a tuple of them.
    args : sequence
        The point.
    output : scalar, array_like or tuple
        The value of the reference.
    gradients : sequence
        For each argument the gradient of the weighted sum of the outputs, or None for an argument
        that is data.
    weights : array_like or tuple, optional
        The weights, of the shape of the output; None for a scalar output.
    rtol : float
        Largest difference accepted, relative to the largest element (or to one, if that is larger).
    fold : callable, optional
        Applied to both gradients before they are compared: for a reference that spreads the
        derivative over the two triangles of a symmetric matrix in another way.

    Returns
    -------
    Report
        The worst relative differences of value and gradient.

    Raises
    ------
    AssertionError
        If they disagree.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.testing import expect_reference
    >>> report = expect_reference(np.multiply, (3.0, 2.0), 6.0, (2.0, None))
    >>> report.worst
    0.0
    """
    comparison = Comparison(f"expect_reference({getattr(f, '__name__', None) or f!r})")
    expected = (
        [np.asarray(x, np.float64) for x in routes.outputs(output)]
        if isinstance(output, tuple)
        else [np.asarray(output)]
    )
    scales = [np.ones(x.shape) for x in expected] if weights is None else [
        np.asarray(w, np.float64) for w in (weights if isinstance(output, tuple) else (weights,))
    ]  # fmt: skip
    with nested(), np.errstate(all="ignore"):
        arguments = [x if g is None else var(x) for x, g in zip(args, gradients, strict=True)]
        results = routes.outputs(f(*arguments))
        for i, (value, exact) in enumerate(
            zip(routes.numbers(tuple(results)), expected, strict=True)
        ):
            comparison.close((VALUE, "ours"), f"result {i}", exact, value, rtol, floor=_size(exact))
        total: Any = sum(np.sum(w * r) for w, r in zip(scales, results, strict=True))
        variables = [x for x, g in zip(arguments, gradients, strict=True) if g is not None]
        if variables and not hasattr(total, "grad"):
            comparison.fail((GRADIENT, "ours"), f"the result {total!r} is not a variable")
        ours = iter(total.grad(variables) if variables else ())
        for i, g in enumerate(gradients):
            if g is not None:
                a, b = (np.asarray(x, np.float64) for x in (g, next(ours)))
                if fold is not None:
                    a, b = fold(a), fold(b)
                comparison.close(
                    (GRADIENT, "ours"),
                    f"the gradient with respect to argument {i}",
                    a,
                    b,
                    rtol,
                    floor=_size(a),
                )
    active = [i for i, g in enumerate(gradients) if g is not None]
    coverage.note(f, args, active=active, reference=comparison.report().worst)
    return comparison.report()


def _size(x: np.ndarray) -> float:
    return max(1.0, float(np.max(np.abs(x[np.isfinite(x)]), initial=0.0)))
