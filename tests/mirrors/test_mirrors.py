"""`varmat.scipy` has SciPy's names with SciPy's arguments, defaults and values, and derivatives."""

import inspect
import pickle
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from comparing import close, equal
from mirrors.calls import CALLS, INSIDE

import varmat as vm
from varmat.functions import scipy_names
from varmat.scipy import mirrors

NAMES = [
    (module, name)
    for module, rows in scipy_names.TABLE.items()
    for text, names in rows.items()
    for name in names.split()
    if text in ("vm", "np.linalg", "np.fft", "varmat.scipy")
]


def the_one_of(module, name):
    return getattr(import_module(module), name), getattr(mirrors.MIRRORS[module], name)


def numbers(result):
    """All numbers of a result as one vector; of a permutation in it too."""
    if result is None:
        return np.zeros(0)
    if isinstance(result, (list, tuple)):
        return np.concatenate([np.zeros(0), *map(numbers, result)])
    if isinstance(vm.value(result), (complex, np.ndarray)) and np.iscomplexobj(vm.value(result)):
        return np.concatenate([np.ravel(np.real(result)), np.ravel(np.imag(result))])
    return np.ravel(result) * 1.0


def shapes(result):
    return [*map(shapes, result)] if isinstance(result, (list, tuple)) else np.shape(result)


def is_real(x):
    return isinstance(x, np.ndarray) and x.dtype == float


def leaves(args):
    return [x for arg in args for x in (arg if type(arg) is tuple else (arg,)) if is_real(x)]


def replaced(args, values):
    """The arguments with other values for the real arrays, also those in tuples."""
    values = iter(values)

    def build(x):
        if type(x) is tuple:
            return tuple(map(build, x))
        return next(values) if is_real(x) else x

    return tuple(map(build, args))


def evaluated(function, args, settings):
    result = function(*args, **settings)
    if "Grid" in type(result).__name__:
        return result(INSIDE[:, None])
    if "Spline" in type(result).__name__ or callable(result):
        return result(INSIDE)
    if function.__name__ == "cho_factor":
        factor, lower = result  # the other triangle is not determined
        return np.tril(factor) if lower else np.triu(factor), lower
    if "eigh" in function.__name__ and isinstance(result, tuple):
        values, vectors = result  # their signs are not determined
        return values, vectors * np.sign(vm.value(vectors)[:1])
    return result


def direction(x, rng):
    """Of structural zeros none, and of a symmetric matrix a symmetric one."""
    t = rng.normal(size=x.shape) * (x != 0.0)
    return t + t.T if x.ndim == 2 and np.array_equal(x, x.T) else t


def cases():
    for module, name in NAMES:
        args, settings = CALLS.get(module, {}).get(name, ((), ()))
        for i, each in enumerate(settings if hasattr(import_module(module), name) else ()):
            yield pytest.param(module, name, args, each, id=f"{module}.{name}[{i}]")


@pytest.mark.filterwarnings("ignore:.*deprecated")  # kron, before SciPy 1.17
@pytest.mark.parametrize(("module", "name", "args", "settings"), list(cases()))
def test_values_shapes_and_derivatives(module, name, args, settings):
    theirs, ours = the_one_of(module, name)
    expected = evaluated(theirs, args, settings)
    # of plain numbers it is SciPy's function that is called, to the last bit
    equal(numbers(evaluated(ours, args, settings)), numbers(expected))
    points = leaves(args)

    def f(*values):
        return evaluated(ours, replaced(args, values), settings)

    with vm.nested():
        result = f(*map(vm.var, points))
        assert shapes(result) == shapes(expected)
        close(vm.value(numbers(result)), numbers(expected), 1e-10, 1e-11)
    rng = np.random.default_rng(7)
    size = numbers(expected).size
    weights, tangents = rng.normal(size=size), [direction(x, rng) for x in points]
    gradients = vm.gradient(lambda values: np.sum(weights * numbers(f(*values))), points)
    slope = sum(np.sum(g * t) for g, t in zip(gradients, tangents, strict=True))
    # SciPy's own function, differentiated by differences of order 6
    total = 0.0
    for k, factor in ((1, 45.0), (2, -9.0), (3, 1.0)):
        for sign in (-1.0, 1.0):
            moved = [x + sign * k * 1e-3 * t for x, t in zip(points, tangents, strict=True)]
            values = numbers(evaluated(theirs, replaced(args, moved), settings))
            total += sign * factor * np.sum(weights * values)
    assert slope == pytest.approx(total / 60e-3, rel=1e-6, abs=1e-8)


def of_scipy(module, name):
    """The parameters in SciPy's signature."""
    return inspect.signature(the_one_of(module, name)[0]).parameters


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_calls_name_every_parameter(module, name):
    """So that no parameter of ours is only thought to be SciPy's."""
    if not hasattr(import_module(module), name):
        pytest.skip(f"this SciPy has no {module}.{name}")
    theirs, ours = the_one_of(module, name)
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))  # nan is not nan
    args, settings = CALLS[module][name]
    called = {key for each in settings for key in each}
    called |= {*list(of_scipy(module, name))[: len(args)]}
    known = {*mirrors._places(theirs, mirrors.ours(module, name))}
    assert known - {"kwargs"} <= called, "a parameter is in no call"


def calls_with(unused):
    """The first call of each function that has a parameter which does nothing with variables."""
    for module, name in NAMES:
        if name in CALLS.get(module, {}) and hasattr(import_module(module), name):
            parameters = of_scipy(module, name)
            values = {key: unused[key] for key in parameters.keys() & unused.keys()}
            if values:
                yield pytest.param(module, name, values, id=f"{module}.{name}")


SAVING = {
    **{f"overwrite_{x}": False for x in ("a", "b", "ab", "x", "data")},
    "check_finite": False, "workers": 1, "balanced": False, "checks": False, "show": False,
}  # fmt: skip


@pytest.mark.parametrize(("module", "name", "values"), list(calls_with(SAVING)))
def test_parameters_that_only_save_work_are_taken(module, name, values):
    theirs, ours = the_one_of(module, name)
    args, (settings, *_) = CALLS[module][name]
    with vm.nested():
        result = evaluated(ours, replaced(args, map(vm.var, leaves(args))), settings | values)
        expected = evaluated(theirs, args, settings | values)
        close(vm.value(numbers(result)), numbers(expected), 1e-10, 1e-11)


CASES_OF_REFUSAL = {
    "scipy.signal.welch has no derivative here: write np.abs(np.fft.rfft(": lambda m, v: (
        m.signal.welch(v)),
    "scipy.linalg.eigh: subset_by_value is given with variables, but must be left out": lambda m,
    v: m.linalg.eigh(np.outer(v, v), subset_by_value=(0.0, 1.0)),
    "scipy.linalg.funm has no derivative here: write varmat.funm, which takes the": lambda m, v: (
        m.linalg.funm(v, np.exp)),
    "scipy.linalg.solve: missing a required argument: 'b'": lambda m, v: m.linalg.solve(v),
    "scipy.optimize.minimize cannot be called on variables: pass": lambda m, v: (
        m.optimize.minimize(np.sum, v)),
    "scipy.stats.zscore cannot be called on variables: pass": lambda m, v: m.stats.zscore(v),
    "scipy.integrate.quad cannot be called on variables: use varmat.integrate_1d": lambda m, v: (
        m.integrate.quad(np.sin, 0, v[0])),
    "scipy.special.comb has no derivative here: it counts": lambda m, v: m.special.comb(v, 2),
}  # fmt: skip


@pytest.mark.parametrize("sentence", CASES_OF_REFUSAL)
def test_refusals_name_the_function(sentence):
    import varmat.scipy

    with vm.nested(), pytest.raises(TypeError) as raised:
        CASES_OF_REFUSAL[sentence](varmat.scipy, vm.var(np.ones(3)))
    assert str(raised.value).startswith(sentence)


def test_nothing_becomes_a_plain_array_in_silence():
    """Every function of SciPy that a mirror has is refused, or works, with a variable first."""
    x = np.array([[2.0, 0.3], [0.1, 1.5]])
    tried, wrong = 0, []
    for module, mirror in mirrors.MIRRORS.items():
        if module == "scipy":
            continue
        for name in import_module(module).__all__:
            function = getattr(mirror, name, None)
            if not hasattr(function, "_of_scipy") or isinstance(function, type):
                continue
            if mirrors.ours(module, name) is not None or name in CONSTANT:
                continue
            tried += 1
            with vm.nested(), pytest.raises(TypeError) as raised:
                function(vm.var(x))
            if not str(raised.value).startswith(f"{module}.{name} "):
                wrong.append(str(raised.value))
    assert not wrong
    assert tried > 500


CONSTANT = {"bandwidth", "ishermitian", "issymmetric", "is_valid_dm", "is_valid_y", "num_obs_dm",
    "num_obs_y"}  # fmt: skip


def test_constants_are_of_the_values():
    from varmat.scipy import linalg

    with vm.nested():
        assert linalg.bandwidth(vm.var(np.eye(3))) == (0, 0)
        assert linalg.issymmetric(vm.var(np.eye(3)))


def test_a_waiting_array_is_a_plain_one():
    import varmat.numpy as np_
    from varmat.scipy import linalg, optimize

    def f(x):
        a = np_.zeros((2, 2))
        a[...] = [[4.0, 1.0], [0.0, 2.0]]
        assert type(linalg.inv(a)) is np.ndarray
        close(optimize.brentq(lambda t: t - a[0, 0], 0.0, 9.0), 4.0, 1e-6)
        a[1, 1] = x
        return linalg.inv(a)[1, 1]

    close(vm.gradient(f, 2.0), -0.25, 1e-6)


def test_splines_of_plain_numbers_are_evaluated_at_variables():
    import scipy.interpolate

    from varmat.scipy import interpolate

    x, y = np.linspace(0.0, 3.0, 7), np.sin(np.arange(14.0)).reshape(7, 2)
    for spline in (
        interpolate.CubicSpline(x, y),
        interpolate.CubicSpline(x, y.T, axis=1),
        interpolate.PchipInterpolator(x, y),
        interpolate.BSpline(np.arange(8.0) / 2.0, y[:5], 2),
        interpolate.CubicSpline(x, y).derivative(),
    ):
        assert isinstance(spline, spline._of_scipy)
        for at in (np.array(1.3), np.array([0.4, 1.3])):
            t = float(at) if at.ndim == 0 else at
            tangent = vm.jvp(spline, (t,), (np.ones(at.shape)[()],))
            close(tangent[0], spline(t), 1e-12)
            close(tangent[1], spline.derivative()(t), 1e-11)
    grid = interpolate.RegularGridInterpolator((x,), y[:, 0])
    expected = (grid([[1.4]]) - grid([[1.2]]))[0] / 0.2
    close(vm.gradient(lambda t: grid(np.reshape(t, (1, 1)))[0], 1.3), expected, 1e-10)
    theirs = scipy.interpolate.CubicSpline(x, y)
    assert isinstance(theirs, interpolate.CubicSpline)
    assert isinstance(interpolate.CubicSpline(x, y), scipy.interpolate.CubicSpline)
    assert not isinstance(theirs, interpolate.BSpline)
    again = pickle.loads(pickle.dumps(interpolate.CubicSpline(x, y)))
    equal(again(1.3), theirs(1.3))


def test_functions_are_pickled_by_name():
    from varmat.scipy import linalg

    assert pickle.loads(pickle.dumps(linalg.cholesky)) is linalg.cholesky


def test_modules_are_imported_in_all_ways_and_nothing_earlier():
    code = """
import sys, varmat as vm
assert not [name for name in sys.modules if name.startswith("varmat.scipy")]
import varmat.scipy
assert not {"scipy.linalg", "scipy.special"} & {*sys.modules}
from varmat.scipy import linalg, special, stats, signal
from varmat.scipy.linalg import cholesky
import varmat.scipy.spatial.distance as distance
import scipy.special, scipy.stats
assert linalg.cholesky is cholesky is vm.scipy.linalg.cholesky
assert vm.scipy.spatial.distance is distance and "cdist" in dir(distance)
assert special.expit is scipy.special.expit and stats.norm is scipy.stats.norm
assert vm.scipy.sparse.issparse(vm.var(1.0)) is False
try:
    linalg.nothing
except AttributeError:
    pass
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
