"""Values of Stan Math in tests/data: reading them, and comparing ours with them."""

import json
from pathlib import Path

import numpy as np
import pytest

from varmat.testing import expect_reference

DATA = Path(__file__).parent / "data"


def entries(name, throws=False):
    """Return the entries of a file as pytest parameters, either those with a value or those at
    which Stan raises.
    """
    content = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    assert content["source"] == "Stan Math 4.9.0"
    return [
        pytest.param({**entry, "args": list(map(pair, entry["args"]))}, id=entry["id"])
        for entry in content["entries"]
        if ("throws" in entry) is throws
    ]


def pair(argument):
    """Return the value of an argument and the gradient, or None; some files name the two."""
    if isinstance(argument, dict):
        return [argument["value"], argument.get("grad")]
    return argument


def number(x):
    """Turn nested lists into arrays. Integers stay integers, because they are sizes, counts and
    classes.
    """
    if isinstance(x, list):
        array = np.array([number(item) for item in x])
        return array if array.size else array.astype(float)
    return float(x) if isinstance(x, str) else x


def arguments(entry):
    """Return the arguments of an entry."""
    return [number(x) for x, _ in entry["args"]]


def lower(c):
    """Gather the gradient in a symmetric matrix in the lower triangle, however it is spread over
    the two.
    """
    square = np.ndim(c) >= 2 and c.shape[-1] == c.shape[-2]
    return np.tril(c) + np.tril(c.swapaxes(-1, -2), -1) if square else c


def check(f, entry, rtol=1e-9, fold=None):
    """Demand that `f` has Stan's value and gradients at the arguments of the entry."""
    outputs, weights = entry["output"], entry["weights"]
    if entry.get("tuple"):
        outputs, weights = tuple(map(number, outputs)), tuple(map(number, weights))
    else:
        outputs = number(outputs)
    gradients = [None if c is None else number(c) for _, c in entry["args"]]
    return expect_reference(
        f, arguments(entry), outputs, gradients, None if weights is None else weights, rtol, fold
    )
