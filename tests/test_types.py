"""An annotated program, as a user writes it. mypy reads it (see pyproject.toml), and it runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import pytest
import typed_user

import varmat as vm
import varmat.numpy as vnp

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
Y = np.ones(3)
START: npt.NDArray[np.float64] = np.array([0.1, 0.2])


def log_density(theta: vm.VarMat) -> vm.Var:
    total: vm.Var = vm.normal_lpdf(Y, X @ theta, 1.0) - 0.5 * (theta**2).sum()
    if theta[0] > 0 and np.all(theta < 3.0):
        total = -(1.0 - total / 2.0)
    return total


def test_functionals() -> None:
    value, gradient = assert_type(
        vm.value_and_grad(log_density)(START), tuple[float, npt.NDArray[np.float64]]
    )
    recorded, same = assert_type(
        vm.recorded(lambda theta: np.sum(theta**2))(START), tuple[float, npt.NDArray[np.float64]]
    )
    np.testing.assert_array_equal(
        assert_type(vm.gradient(log_density, START), np.ndarray), gradient
    )
    np.testing.assert_array_equal(same, 2.0 * START)
    assert assert_type(vm.hessian(log_density, START), np.ndarray).shape == (2, 2)
    assert assert_type(vm.gradient(np.sin, 0.0), float) == 1.0
    assert value < recorded


def path(theta: vm.VarMat) -> Any:
    y: npt.NDArray[np.float64] = vnp.zeros(3)
    y[0] = theta[0]
    for i in range(2):
        y[i + 1] = theta[1] * y[i]
    return vnp.sum(vnp.array([y[0], y[2]])) + vnp.linalg.norm(vnp.ones(2)) + vnp.r_[1.0, 2.0][0]


def test_numpy_module() -> None:
    with vnp.patched(__import__("colorsys")):
        value, gradient = assert_type(
            vm.value_and_grad(path)(START), tuple[float, npt.NDArray[np.float64]]
        )
    assert gradient.shape == START.shape
    assert vm.numpy.sin is np.sin
    assert value == path(START)  # type: ignore[arg-type]  # plain numbers are taken too


def test_models() -> None:
    model = vm.Model(
        lambda mu, sigma: vm.normal_lupdf(Y, mu, sigma) - sigma, mu=vm.real(), sigma=vm.positive()
    )
    value, gradient = assert_type(model.log_density_gradient(START), tuple[float, np.ndarray])
    assert gradient.shape == START.shape
    assert value == model.log_density(START)


def test_a_file_of_a_user() -> None:
    assert "Any" not in Path(typed_user.__file__).read_text(encoding="utf-8").replace("`Any`", "")
    assert typed_user.plain(1.0, 0.0) == vm.normal_lpdf(1.0, 0.0, 1.0) - 2.0 + np.log(2.0)
    with pytest.raises(AttributeError, match="Did you mean cholesky_decompose"):
        typed_user.misspelt(vm.var(START))
    assert np.isfinite(vm.gradient(typed_user.gaussian_process, START + 1.0)).all()
    moved = typed_user.steps(START)
    assert typed_user.log_density_at(moved) > typed_user.log_density_at(START)


def test_variables_and_their_values() -> None:
    x = assert_type(vm.var(2.0), vm.Var)
    assert assert_type(vm.value(x), float) == 2.0
    y: vm.VarMat = vm.var(START)
    np.testing.assert_array_equal(assert_type(vm.value(y), np.ndarray), START)


def callables() -> Iterator[tuple[str, Any]]:
    """The public functions and classes, and the methods and properties of the classes."""
    for name in vm.__all__:
        thing = getattr(vm, name)
        # `TapeError` is called as `Exception` is, `MatVar` as `numpy.ndarray`.
        if callable(thing) and thing not in (vm.TapeError, vm.MatVar):
            yield name, thing
        if isinstance(thing, type):
            for key, member in vars(thing).items():
                # A property, a method of the class, or a value that is computed once.
                ways = ("fget", "__func__", "func")
                member = next(
                    (getattr(member, way) for way in ways if hasattr(member, way)), member
                )
                if not key.startswith("_") and callable(member):
                    yield f"{name}.{key}", member


def test_every_public_signature_says_something() -> None:
    """`Any` says nothing to a reader: `varmat.typing` has names for what the library takes."""
    signatures = {name: str(inspect.signature(thing)) for name, thing in callables()}
    assert {"normal_lpdf", "Model.sample", "MatVar.sum", "MatVar.val"} <= signatures.keys()
    assert not [name for name, text in signatures.items() if re.search(r"\bAny\b", text)]
