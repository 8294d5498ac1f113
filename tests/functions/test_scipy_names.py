"""The table of SciPy's functions of arrays: it has every name, its answers exist, and refusals
mention them.
"""

import importlib
import inspect
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.signal
import scipy.spatial.distance
import scipy.special
from comparing import close, equal, refuses

import varmat as vm
from varmat.functions import scipy_names

DOCS = Path(__file__).parents[2] / "docs"
# The last release of SciPy whose names are all in the table.
KNOWN = (1, 18)
MATRIX = np.array([[2.0, 0.5], [0.3, 3.0]])
VECTOR = np.linspace(0.0, 1.0, 7)


@pytest.mark.parametrize("module", scipy_names.TABLE)
def test_every_name_of_scipy_has_an_answer(module):
    home = importlib.import_module(module)
    # The ufuncs of scipy.special are called on variables; their table is elsewhere.
    apart = (ModuleType, np.ufunc) if module == "scipy.special" else ModuleType
    names = {name for name in home.__all__ if not isinstance(getattr(home, name), apart)}
    told = Counter(name for names in scipy_names.TABLE[module].values() for name in names.split())
    assert not [name for name, count in told.items() if count > 1]
    new = names - told.keys()
    assert not [name for name in new if scipy_names.answer(module, name)]
    if new and tuple(map(int, scipy.__version__.split(".")[:2])) > KNOWN:
        pytest.skip(f"SciPy {scipy.__version__} has new names: {', '.join(sorted(new))}")
    assert not new, "SciPy has names that the table has no answer for"


def test_functions_that_a_later_release_adds_have_the_general_advice(monkeypatch):
    def added(x):
        return np.asarray(x, float)

    added.__module__ = "scipy.signal._added"
    new = type(added)(added.__code__, {"np": np, "__name__": "scipy.signal._added"}, "added")
    monkeypatch.setattr(scipy.signal, "added", new, raising=False)
    assert scipy_names.answer("scipy.signal", "added") is None
    with pytest.raises(TypeError, match="SciPy's function takes plain numbers alone: use the"):
        vm.gradient(lambda x: np.sum(scipy.signal.added(x)), VECTOR)


@pytest.mark.parametrize("module", scipy_names.TABLE)
def test_varmat_has_every_name_of_scipy(module):
    mirror = importlib.import_module(f"varmat.{module}")
    found = [name for name in importlib.import_module(module).__all__ if not hasattr(mirror, name)]
    assert found == []


@pytest.mark.parametrize("module", scipy_names.TABLE)
def test_names_in_the_answers_exist(module):
    missing = []
    for name in " ".join(scipy_names.TABLE[module].values()).split():
        for home, what in re.findall(
            r"\b(vm|np|np\.linalg|np\.fft)\.([A-Za-z_]\w*)", scipy_names.answer(module, name)
        ):
            if not hasattr(
                {"vm": vm, "np": np, "np.linalg": np.linalg, "np.fft": np.fft}[home], what
            ):
                missing.append(f"{home}.{what}")
    assert missing == []


@pytest.mark.parametrize("module", scipy_names.TABLE)
def test_arguments_have_the_names_and_the_order_that_scipy_gives_them(module):
    """We leave out parameters that only save memory or time. `lower` and `trans` have swapped
    places.
    """
    home = importlib.import_module(module)
    for name in scipy_names.TABLE[module]["vm"].split():
        theirs, ours = (
            list(inspect.signature(getattr(each, name)).parameters) for each in (home, vm)
        )
        common = [p for p in ours if p in theirs and p != "lower"]
        assert common == [p for p in theirs if p in common], name


def test_the_page_is_that_of_the_table(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    scipy_arrays = importlib.import_module("scipy_arrays")
    text = scipy_arrays.PAGE.read_text(encoding="utf-8")
    assert scipy_arrays.START + scipy_arrays.lines() + scipy_arrays.END in text, (
        "run python docs/scipy_arrays.py"
    )


REPLACED = {
    "scipy.linalg.sqrtm": lambda a, v: scipy.linalg.sqrtm(a),
    "scipy.linalg.block_diag": lambda a, v: scipy.linalg.block_diag(a, a),
    "scipy.linalg.cholesky": lambda a, v: scipy.linalg.cholesky(a),
    "scipy.fft.dct": lambda a, v: scipy.fft.dct(v),
    "scipy.fft.rfft": lambda a, v: scipy.fft.rfft(v),
    "scipy.signal.filtfilt": lambda a, v: scipy.signal.filtfilt([1.0], [1.0], v),
    "scipy.interpolate.CubicSpline": lambda a, v: scipy.interpolate.CubicSpline(VECTOR, v),
    "scipy.spatial.distance.cdist": lambda a, v: scipy.spatial.distance.cdist(a, a),
    "scipy.integrate.trapezoid": lambda a, v: scipy.integrate.trapezoid(v),
    "scipy.special.logsumexp": lambda a, v: scipy.special.logsumexp(v),
}


@pytest.mark.parametrize("name", REPLACED)
def test_refusals_name_what_to_write(name):
    sentence = re.escape(f"{name} cannot be called on variables: use varmat.{name}")
    refuses(TypeError, sentence, REPLACED[name], vm.var(MATRIX), vm.var(VECTOR))


def test_a_short_stack_without_a_function_of_scipy():
    """The frames of a thread end before there are too many to look at."""
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: scipy_names.known(inspect.currentframe())).result() is None


def test_functions_called_under_scipys_name():
    c = np.array([3.0, 0.1, 0.2])
    exact = vm.gradient(lambda c: vm.solve_circulant(c, np.ones(3))[0], c)
    close(vm.gradient(lambda c: scipy.linalg.solve_circulant(c, np.ones(3))[0], c), exact, 1e-13)
    slope = vm.gradient(lambda p: scipy.signal.sweep_poly(np.array([0.2]), p)[0], np.array([2.0]))
    close(slope, [-2 * np.pi * 0.2 * np.sin(2 * np.pi * 0.4)], 1e-12)
    close(vm.gradient(scipy.signal.kaiser_beta, 60.0), 0.1102, 1e-6)
    close(vm.gradient(lambda n: scipy.signal.kaiser_atten(11, n), 0.5), 2.285 * 10 * np.pi, 1e-6)
    equal(vm.gradient(lambda x: scipy.fft.fftshift(x)[0], np.ones(4)), [0.0, 0.0, 1.0, 0.0])
    equal(vm.gradient(lambda x: scipy.fft.ifftshift(x)[0], np.ones(3)), [0.0, 1.0, 0.0])
    assert np.isfinite(vm.gradient(lambda t: scipy.signal.gausspulse(t)[0], np.array([1e-4]))).all()


def test_expressions_in_the_answers_have_the_values_of_scipy():
    """These are the answers that are an expression rather than a name."""
    rng = np.random.default_rng(18)
    a, b, u, v = (
        rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=4), rng.normal(size=4),
    )  # fmt: skip
    long, points = rng.normal(size=9), rng.normal(size=(5, 3))
    q1, q2 = np.linalg.qr(points[:, :2])[0], np.linalg.qr(points[::-1, 1:])[0]
    divisor = np.array([1.0, 0.4, 0.2])
    distance = scipy.spatial.distance
    for found, expected in (
        (np.conjugate(np.fft.rfftn(a, norm="forward")), scipy.fft.ihfftn(a)),
        (np.fft.irfftn(np.conjugate(a), norm="forward"), scipy.fft.hfftn(a)),
        (vm.jvp(vm.expm, (a,), (b,)), scipy.linalg.expm_frechet(a, b)),
        (np.abs(np.subtract.outer(u, u)), scipy.linalg.fiedler(u)),
        (np.linalg.pinv(a @ a.T, hermitian=True), scipy.linalg.pinvh(a @ a.T)),
        (np.sort(np.arccos(np.linalg.svdvals(q1.T @ q2))),
         np.sort(scipy.linalg.subspace_angles(q1, q2))),
        (vm.lfilter(long, divisor, np.eye(1, 7)[0]), scipy.signal.deconvolve(long, divisor)[0]),
        (np.abs(vm.hilbert(long)), np.abs(scipy.signal.hilbert(long))),
        (np.abs(np.mean(np.exp(2j * np.pi * u / 0.7))), scipy.signal.vectorstrength(u, 0.7)[0]),
        (np.linalg.norm(u - v, 3), distance.minkowski(u, v, 3)),
        (np.max(np.abs(u - v)), distance.chebyshev(u, v)),
        (vm.cdist(u[None], v[None], "cosine")[0, 0], distance.cosine(u, v)),
        (np.max(np.min(vm.cdist(points, a), axis=1)), distance.directed_hausdorff(points, a)[0]),
    ):  # fmt: skip
        for x, y in zip(
            *(each if isinstance(each, tuple) else (each,) for each in (found, expected)),
            strict=True,
        ):
            close(x, y, 1e-9, 1e-12)
