"""What the tests of linear algebra share: gradients of weighted sums, 50-digit directional derivatives, values of Stan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

import varmat as vm

DATA = Path(__file__).parents[1] / "data"
rng = np.random.default_rng(20240611)
GENERAL = np.array([[2.1, -0.4, 0.7], [0.3, 1.6, -1.1], [-0.8, 0.5, 2.9]])
SPD = GENERAL @ GENERAL.T
TALL = np.array([[1.23, -0.71, 0.12], [0.44, 2.15, -0.66], [-1.37, 0.28, 0.99], [0.61, -0.53, 1.78]])
WIDE = np.ascontiguousarray(TALL.T)
VECTOR = np.array([0.7, -1.2, 2.3])
COLUMNS = np.array([[0.4, -1.1], [1.3, 0.2], [-0.6, 2.2]])
GENERALS = np.stack([GENERAL, GENERAL.T + 0.25])
SPDS = np.stack([SPD, SPD + np.eye(3)])
TALLS = np.stack([TALL, 0.517 - 1.1 * TALL[::-1]])
COLUMN_STACK = np.stack([COLUMNS, -2.0 * COLUMNS[::-1]])


def results_of(y: Any) -> list[Any]:
    return list(y) if isinstance(y, tuple) else [y]


def weights_for(values: Any) -> list[Any]:
    """Fixed weights that have no symmetry, one array per result."""
    start, weights = 1, []
    for value in values:
        size = int(np.size(value))
        weights.append(np.reshape(np.cos(1.7 * np.arange(start, start + size)) + 0.3, np.shape(value)))
        start += size
    return weights


def gradients(f: Any, args: Any, weights: Any = None, wanted: Any = None) -> tuple[list[Any], list[Any]]:
    """Values of the results, and the gradients of their weighted sum."""
    with vm.nested():
        variables = [vm.var(x) if wanted is None or wanted[i] else x for i, x in enumerate(args)]
        results = results_of(f(*variables))
        values = [vm.value(y) for y in results]
        weights = weights_for(values) if weights is None else weights
        total = sum(np.sum(w * y) for w, y in zip(weights, results, strict=True))
        return values, total.grad([x for i, x in enumerate(variables) if wanted is None or wanted[i]])


def to_mp(x: Any) -> Any:
    x = np.asarray(x)
    return mp.matrix(x.tolist()) if x.ndim else mp.mpf(float(x))


def flat(x: Any) -> list[Any]:
    """Elements in row-major order."""
    if isinstance(x, (tuple, list)):
        return [item for part in x for item in flat(part)]
    return [x[i, j] for i in range(x.rows) for j in range(x.cols)] if isinstance(x, mp.matrix) else [x]


def worst_error(f: Any, exact: Any, args: Any, symmetric: bool = False) -> float:
    """The largest relative error of the values and of directional derivatives against 50-digit arithmetic."""
    values, adjoints = gradients(f, args)
    weights = np.concatenate([np.ravel(w) for w in weights_for(values)])
    with mp.workdps(50):
        expected = np.array([float(item) for item in flat(exact(*map(to_mp, args)))])
        value = np.concatenate([np.ravel(v) for v in values])
        error = float(np.max(np.abs(value - expected)) / np.max(np.abs(expected)))
        for i, (x, adjoint) in enumerate(zip(args, adjoints, strict=True)):
            d = np.sin(2.3 * np.arange(np.size(x)) + 0.4).reshape(np.shape(x))
            d = d + d.T if symmetric and d.ndim == 2 and d.shape[0] == d.shape[1] else d

            def along(t: Any, i: int = i, d: Any = d) -> Any:
                moved = [to_mp(x) + t * to_mp(d) if j == i else to_mp(x) for j, x in enumerate(args)]
                return mp.fdot(weights.tolist(), flat(exact(*moved)))

            slope = float(mp.diff(along, 0))
            error = max(error, abs(np.sum(adjoint * d) - slope) / float(np.sum(np.abs(adjoint * d))))
    return error


def stan_entries(name: str) -> list[dict[str, Any]]:
    return json.loads((DATA / f"{name}.json").read_text())["entries"]


def fold(c: Any) -> Any:
    """The gradient with respect to a symmetric matrix, however it is spread over its two triangles, on the lower one."""
    return np.tril(c) + np.tril(np.transpose(c), -1)


def stan_error(f: Any, entry: dict[str, Any], symmetric: bool = False) -> float:
    """The largest relative difference between Stan and us, of the value and of the gradients."""
    args = [x if isinstance(x, int) else np.array(x) if isinstance(x, list) else x for x, _ in entry["args"]]
    wanted = [c is not None for _, c in entry["args"]]
    output = [np.array(entry["output"])] if entry["function"] != "qr_thin" else [np.array(x) for x in entry["output"]]
    weights = entry["weights"]
    weights = [np.array(1.0)] if weights is None else [np.array(w) for w in ([weights] if len(output) == 1 else weights)]
    values, adjoints = gradients(f, args, weights, wanted)
    expected = output + [np.array(c) for _, c in entry["args"] if c is not None]
    error = 0.0
    for ours, stan in zip(values + adjoints, expected, strict=True):
        square = symmetric and np.ndim(stan) == 2 and len(stan) == len(stan[0])
        a, b = (fold(ours), fold(stan)) if square else (ours, stan)
        error = max(error, float(np.max(np.abs(a - b))) / max(1.0, float(np.max(np.abs(b)))))
    return error
