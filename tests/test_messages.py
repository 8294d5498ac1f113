"""Refusals: they begin with the name under which the function was called, and give true reasons."""

import inspect
import math
import re

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from comparing import close, refuses

import varmat as vm

VECTOR, SHORT, MATRIX, SQUARE = (
    np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6]), np.full((2, 3), 0.5), np.eye(3),
)  # fmt: skip
ONE = [(0.5,), (VECTOR,), (MATRIX,), (-SQUARE,), (np.array([np.nan, 1.0, 2.0]),)]
TWO = [
    (VECTOR, SHORT), (0.5, VECTOR), (VECTOR, 0.5), (MATRIX, SHORT), (SQUARE, SHORT),
    (SHORT, SQUARE), (-1.0, -1.0),
]  # fmt: skip
THREE = [(VECTOR, SHORT, 0.5), (0.5, MATRIX, SHORT), (0.5, 0.5, -1.0), (SHORT, 0.5, VECTOR)]
# These modules have functions that take more than numbers, or draw random numbers.
ELSEWHERE = ("core", "derivatives", "models", "inspection", "testing", "random_numbers", "solvers")


def functions():
    for name in sorted(vm.__all__):
        f = getattr(vm, name)
        main = getattr(f, "alias_of", f)
        module = getattr(getattr(main, "function", main), "__module__", None) or ""
        own = not any(f".{part}" in module for part in ELSEWHERE)
        if callable(f) and not inspect.isclass(f) and own:
            yield name


def operands(name):
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(getattr(vm, name)).parameters.values()
    return sum(p.kind in kinds and p.default is p.empty for p in parameters)


@pytest.mark.parametrize("make", [vm.var, vm.matvar, np.asarray], ids=["varmat", "matvar", "data"])
def test_refusals_begin_with_the_name_that_was_called(make):
    wrong, refused = {}, 0
    for name in functions():
        call = getattr(vm, name)
        for args in {1: ONE, 2: TWO, 3: THREE}.get(operands(name), []):
            with vm.nested(), np.errstate(all="ignore"):
                try:
                    call(*map(make, args))
                except (TypeError, ValueError) as error:
                    refused += 1
                    if not str(error).startswith(f"{name}:"):
                        wrong[name] = str(error)
    assert not wrong
    assert refused > 500


def refusal(call):
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    return str(raised.value)


def test_synonyms_are_named_as_they_were_called():
    text = "operands have shapes (3,) and (2,), but must broadcast!"
    x, determinant = vm.var(VECTOR), vm.determinant
    for call, name in (
        (lambda: vm.gamma_p(x, SHORT) + vm.gammainc(SHORT, SHORT), "gamma_p"),
        (lambda: vm.gamma_p(SHORT, SHORT) + vm.gammainc(x, SHORT), "gammainc"),
        (lambda: vm.gamma_p(x, vm.gammainc(SHORT, SHORT)), "gamma_p"),
    ):
        assert refusal(call) == f"{name}: {text}"
    square = "a has shape (3,), but must be a square matrix (or a stack of them)!"
    assert refusal(lambda: determinant(x)) == f"determinant: {square}"
    assert refusal(lambda: np.linalg.det(x)) == f"det: {square}"
    assert refusal(lambda: list(map(vm.inverse, [VECTOR]))) == f"inverse: {square}"
    found = refusal(lambda: vm.gradient(lambda x: vm.mdivide_left(x, x)[0], VECTOR))
    assert found == f"mdivide_left: {square}"
    found = refusal(lambda: vm.recorded(lambda x: vm.mdivide_left(x, x)[0])(VECTOR))
    assert found == f"mdivide_left: {square}"
    found = refusal(lambda: vm.lgamma())
    assert found == "lgamma: 0 operands are given; the signature is lgamma(x, /)"
    missing = "mdivide_left: missing a required argument: 'b'; the signature is mdivide_left(a, b)"
    assert refusal(lambda: vm.mdivide_left(1.0)) == missing


@pytest.mark.parametrize(("call", "message"), [
    (lambda: vm.reverse(vm.var(1.0)), "reverse: x is a scalar, but must be an array!"),
    (lambda: vm.sort_asc(1.0), "sort_asc: x is a scalar, but must be an array!"),
    (lambda: vm.sort_desc(vm.var(1.0)), "sort_desc: x is a scalar, but must be an array!"),
    (lambda: vm.diag_matrix(vm.var(1.0)),
     "diag_matrix: v has shape (), but must be a vector or a matrix!"),
    (lambda: vm.lfilter(1.0, [1.0, 0.5], vm.var(1.0)),
     "lfilter: x is a scalar, but must be an array!"),
    (lambda: vm.mdivide_right_ldlt(vm.var(VECTOR), SHORT),
     "mdivide_right_ldlt: a has shape (2,), but must be a square matrix (or a stack of them)!"),
    (lambda: vm.cho_solve((SHORT, True), vm.var(VECTOR)),
     "cho_solve: c has shape (2,), but must be a square matrix (or a stack of them)!"),
    (lambda: vm.polar(vm.var(VECTOR), SHORT),
     "polar: theta has shape (2,), but must broadcast with r, of shape (3,)!"),
    (lambda: vm.normal_lupdf(vm.var(VECTOR), 0.0, -1.0),
     "normal_lupdf: Scale parameter is -1.0, but must be positive!"),
    (lambda: vm.bernoulli_lupmf(vm.var(1.0), 0.5),
     "bernoulli_lupmf: n is a variable, but has no derivative: it is discrete!"),
])  # fmt: skip
def test_texts(call, message):
    refuses((TypeError, ValueError), f"^{re.escape(message)}$", call)


def test_a_pair_is_asked_for():
    message = r"^cho_solve: c_and_lower is a Var, but must be a pair \(factor, lower\)"
    refuses(TypeError, message, vm.cho_solve, vm.var(1.0), VECTOR)
    factor = scipy.linalg.cho_factor(SQUARE * 2.0)
    close(vm.cho_solve(factor, vm.var(VECTOR)).val, VECTOR / 2.0, 1e-15)
    with pytest.raises(
        TypeError,
        match=r"^lmgamma: the dimension k is a VarMat, but must be an integer, or an array of "
        r"them!$",
    ):
        vm.lmgamma(vm.var(VECTOR), 3.0)


def _dot(x):
    return SQUARE.dot(x)


def _store(x):
    target = np.zeros(3)
    target[:] = x
    return target


def _store_number(x):
    target = np.zeros(3)
    target[0] = x[0]
    return target


@pytest.mark.parametrize(("write", "advice"), [
    (_dot, "write A @ x, not A.dot(x)"),
    (_store, "make the array that is written into with np.zeros_like(variable, shape=...)"),
    (np.asarray, "varmat.numpy as np"),
    (lambda x: np.array([x, x]),
     "or `import varmat.numpy as np`, which is NumPy with an array, asarray and zeros that take"),
    (lambda x: np.full((2, 3), x), "write np.broadcast_to(x, shape)"),
    (lambda x: scipy.linalg.norm(x),
     "scipy.linalg.norm cannot be called on variables: use varmat.scipy.linalg.norm"),
    (lambda x: scipy.stats.norm.logpdf(x),
     "use the varmat function of the same name, such as varmat.normal_lpdf for"),
    (lambda x: float(x[0]), "varmat.value(x) for the plain numbers"),
    (lambda x: math.exp(x[0]), "use NumPy's function instead of math's (np.exp, not math.exp)"),
])  # fmt: skip
def test_the_advice_is_for_what_was_written(write, advice):
    refuses(TypeError, re.escape(advice), write, vm.var(VECTOR))


def test_the_advice_for_an_element():
    # NumPy raises its own error, and the one of the element is its cause.
    with pytest.raises(ValueError, match="setting an array element") as raised:
        _store_number(vm.var(VECTOR))
    assert "np.zeros_like(variable, shape=...)" in str(raised.value.__cause__)


@pytest.mark.parametrize("write", [_dot, _store])
def test_the_advised_code_works(write):
    x = vm.var(VECTOR)
    if write is _dot:
        assert (SQUARE @ x).val.tolist() == VECTOR.tolist()
    else:
        target = np.zeros_like(x, shape=(2, 3))
        target[0] = x
        np.sum(target**2).grad()
        assert x.adj.tolist() == (2 * VECTOR).tolist()
