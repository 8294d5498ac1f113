"""Linear algebra: values and gradients of Stan Math, and what Stan refuses."""

import numpy as np
import pytest
import stan
from comparing import DOMAIN, SHAPE, refuses

import varmat as vm

FILES = ("linear_algebra", "forms", "dot_products", "products")
# Stan distinguishes columns and rows from other vectors; here np.outer is a column times a row.
OTHER_NAMES = {"trace#1": np.trace, "multiply#10": np.outer}
# Stan spreads the derivative in a symmetric matrix over its two triangles in another way.
SYMMETRIC = ("_spd", "_ldlt", "_sym", "cholesky_decompose")
EXACT = ("distance", "dot_product", "dot_self")
# Two eigenvalues are close, and Stan's iteration leaves an error.
CLOSE = ("eigenvectors_sym#3", "eigenvectors_sym#11")


def entries(throws=False):
    return [each for file in FILES for each in stan.entries(file, throws)]


def function_of(entry):
    return OTHER_NAMES.get(entry["id"]) or getattr(vm, entry["function"])


def with_stans_signs(entry):
    """Return our function for the entry, with the signs that the vectors have in Stan. If Stan's
    result is squared, ours is squared too.
    """
    f, name = function_of(entry), entry["function"]
    if entry.get("post"):
        return lambda a: f(a) ** 2
    if not name.startswith(("svd", "eigenvectors", "eigendecompose")):
        return f

    def turned(ours, exact):
        exact = stan.number(exact)
        return ours * np.sign(np.sum(vm.value(ours) * exact, axis=0)) if exact.ndim == 2 else ours

    if not entry.get("tuple"):
        return lambda a: turned(f(a), entry["output"])
    return lambda a: tuple(map(turned, f(a), entry["output"]))


@pytest.mark.parametrize("entry", entries())
def test_values_and_gradients(entry):
    name, rtol = entry["function"], 1e-11 if entry["id"] in CLOSE else 1e-13
    if "determinant" in name:  # one is nearly singular, with a condition number of about 1e7
        rtol = 1e-14 * max(1.0, np.linalg.cond(stan.arguments(entry)[0]))
    elif name.endswith(EXACT) and entry["id"] not in OTHER_NAMES:
        rtol = 1e-15
    fold = stan.lower if name.endswith(SYMMETRIC) else None
    stan.check(with_stans_signs(entry), entry, rtol, fold)


@pytest.mark.parametrize("entry", entries(throws=True))
def test_what_stan_refuses(entry):
    error = DOMAIN if entry["throws"] == "domain_error" else SHAPE
    refuses(error, r"^\w+: .* must ", function_of(entry), *stan.arguments(entry))
