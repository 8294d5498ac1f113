"""The comparison of recordings with eager evaluation, for the tests of recorded functions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from comparing import close_slopes
from programs.verified import verify

import varmat as vm
from varmat.derivatives.recorded_programs import product_program, record
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import ElsewhereError, Program
from varmat.programs.run import has_native, runner_for

X = np.random.default_rng(1).normal(size=(5, 3))
Y = np.array([0.5, -1.0, 2.0, 0.3, 0.1])
RUNNERS = ("numpy", "native") if has_native() else ("numpy",)
# For tests of each runner.
EVERY_RUNNER = [
    "numpy",
    pytest.param(
        "native", marks=pytest.mark.skipif(not has_native(), reason="llvmlite is not installed")
    ),
]
# For tests of what happens before a program runs.
on_numpy = partial(vm.recorded, runner="numpy")


def agree(f, *points, argnums=0, rtol=1e-13, elsewhere=0, runners=RUNNERS):
    """Demand that a recording made at the first point gives the eager value and gradients at all
    points, with every runner.

    `elsewhere` is the number of points at which the run of the program ends, so that the function
    itself is evaluated.
    """
    evaluations = []

    def counted(*args):
        evaluations.append(args)
        return f(*args)

    eager = vm.value_and_grad(f, argnums)
    expected = [eager(*point) for point in points]
    for runner in runners:
        evaluations.clear()
        recorded = vm.recorded(counted, argnums, runner=runner)
        for point, (value, gradient) in zip(points, expected, strict=True):
            _demand_same(recorded(*point), value, gradient, rtol)
        # What is recorded with data as arguments is compared with the function once.
        with_data = sum(bool(each.data) for each in recorded._recordings)
        assert len(evaluations) == len(recorded._recordings) + with_data + elsewhere
    return recorded


def _demand_same(found, expected, true, rtol):
    value, gradient = found
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    assert type(value) is float
    for g, t in zip(
        vm.derivatives.structure.leaves_of(gradient),
        vm.derivatives.structure.leaves_of(true),
        strict=True,
    ):
        assert type(g) is type(t)
        np.testing.assert_allclose(
            g, t, rtol=rtol, atol=1e-15 + 0.1 * rtol * np.max(np.abs(t), initial=0.0)
        )
        assert type(g) is float or (g.flags.c_contiguous and g.dtype == np.float64)


def as_eager(model, q, rtol=1e-12, atol=0.0, propto=True):
    """Demand that the gradient of a model is that of its log density without a recording, and
    return it.
    """
    found = model.log_density_gradient(q, propto=propto)
    close_slopes(found, vm.value_and_grad(model._target)(q, propto, True), rtol, atol)
    return found


def in_threads(work, arguments):
    """Call a function in threads of their own, one for each argument."""
    threads = [threading.Thread(target=work, args=(x,)) for x in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def agree_in_threads(g, points, expected, rounds, rtol):
    """Demand values and gradients of a recording that threads call at once, each at its point."""
    barrier, wrong = threading.Barrier(len(points)), []

    def work(k):
        barrier.wait()
        for _ in range(rounds):
            value, gradient = g(points[k])
            if value != pytest.approx(expected[k][0], rel=1e-13) or not np.allclose(
                gradient, expected[k][1], rtol=rtol
            ):
                wrong.append(k)

    in_threads(work, range(len(points)))
    assert not wrong


def vectors(n, count=3):
    rng = np.random.default_rng(n)
    return [(rng.normal(size=n),) for _ in range(count)]


LARGE = np.linspace(0.0, 1.0, 40_000)


def agree_everywhere(
    f: Callable[..., Any],
    points: Sequence[Sequence[Any]],
    runners: Sequence[str] = RUNNERS,
    tolerance: float = 1e-13,
    second: bool = True,
) -> None:
    """Demand that programs made at the first point give, at all points, the eager value, gradients
    and, for `second` derivatives, Hessian times a vector: by the interpreter, by each runner, and
    by `map`.

    The results of a run stay as they are in later runs, and are the caller's to change.
    """

    def at(point: Sequence[Any]) -> Any:
        return f(*point)

    given = [[np.copy(x) if np.ndim(x) else float(x) for x in point] for point in points]
    vectors = [[np.cos(1.0 + 3.0 * x) for x in point] for point in points]
    eager, expected = vm.value_and_grad(at), []
    with np.errstate(all="ignore"):
        for point in given:
            value, gradients = eager(point)
            expected.append([np.asarray(value), *gradients])
        _agree(record(at, (0,), (given[0],), {}), given, expected, runners, tolerance, "gradient")
        if second:
            pairs = list(zip(given, vectors, strict=True))
            products = [[0.0, *vm.hessian_times_vector(at, point, v)] for point, v in pairs]
            program = product_program("hessian_times_vector", at, (given[0],)).program
            both = [[*point, *v] for point, v in pairs]
            _agree(program, both, products, runners, tolerance, "Hessian times vector")
    for before, after in zip(points, given, strict=True):
        for x, y in zip(before, after, strict=True):
            np.testing.assert_array_equal(x, y, err_msg="an argument has been changed")


def _agree(
    program: Program,
    points: Sequence[list[Any]],
    expected: Sequence[list[Any]],
    runners: Sequence[str],
    tolerance: float,
    what: str,
) -> None:
    verify(program)
    runs: dict[str, Any] = {name: runner_for(program, name) for name in runners}
    native = runs.get("native")
    for name, run in {"interpreter": lambda x: interpret(program, *x), **runs}.items():
        kept = []
        for point, true in zip(points, expected, strict=True):
            try:
                found = run(point)
            except (ArithmeticError, ValueError, ElsewhereError):
                continue  # the function itself is called
            if np.isfinite(found[0]):
                _demand_close(found, true, tolerance, f"{what}, {name}")
                kept.append((found, [np.copy(x) for x in found]))
        for found, copies in kept:
            for x, y in zip(found, copies, strict=True):
                np.testing.assert_array_equal(x, y, err_msg=f"a later run by {name} changed it")
                if np.ndim(x) and name != "interpreter":
                    assert x.flags.writeable
                    x.fill(np.nan)
    if native is None:
        return
    order = np.arange(19) % len(points)  # vectors of points, and some that are left
    rows = [
        np.stack([np.asarray(x, float) for x in each])[order] for each in zip(*points, strict=True)
    ]
    # One point after the other, and one in each lane of vectors.
    for native.mapped in (0, 1 << 40) if what == "gradient" else (0,):
        made = [np.empty((len(order), *v.shape)) for v in program.outputs]
        native.map(rows, made, 1)
        for k, i in enumerate(order):
            if np.isfinite(made[0][k]):
                _demand_close([x[k] for x in made], expected[i], tolerance, f"{what}, map")


def _demand_close(found: Any, true: Any, tolerance: float, message: str) -> None:
    scale = max(float(np.max(np.abs(x), initial=0.0)) for x in true)
    for a, b in zip(found, true, strict=True):
        np.testing.assert_allclose(
            a, b, rtol=tolerance, atol=tolerance * scale, err_msg=message, equal_nan=True
        )


def assert_same(got, expected):
    """Demand equal structures: the same types of containers, floats as floats, and new C-contiguous
    float64 arrays.
    """
    if isinstance(expected, dict):
        assert type(got) is type(expected)
        assert list(got) == list(expected)
        for key in expected:
            assert_same(got[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert type(got) is type(expected)
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            assert_same(g, e)
    elif isinstance(expected, np.ndarray):
        assert type(got) is np.ndarray
        assert (got.dtype, got.shape) == (np.float64, expected.shape)
        assert got.flags.c_contiguous
        assert got.flags.writeable
        assert got.base is None
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-15)
    else:
        assert type(got) is float
        assert got == pytest.approx(expected, rel=1e-13)
