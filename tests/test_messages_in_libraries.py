"""Refusals inside installed packages: they name the place there, and the one remedy."""

import re
import sys
import sysconfig
import types

import numpy as np
import pytest
from comparing import close

import varmat as vm

CODE = """\
import math
import numpy as np
import scipy.linalg
import scipy.signal
import scipy.stats
from scipy.linalg import solve_triangular
DATA = np.ones((3, 3))
KEPT = np.zeros(3)
def upper(a): return scipy.linalg.cholesky(a @ a.T + np.eye(3))
def solved(a): return solve_triangular(a, np.ones(3), lower=True)
def made(a): return np.array([a[0], a[1]])
def plain(a): return DATA.dot(a)
def filled(a):
    z = np.zeros(3)
    z[0] = a[0, 0]
    return z
def kept(a): KEPT[0] = a[0, 0]
def number(a): return math.exp(a[0, 0])
def spectrum(a): return scipy.signal.welch(a)
def tested(a): return scipy.stats.zscore(a)
def dense(a): return scipy.stats.norm.logpdf(a)
def masked(a): return np.ma.ones(3) * a
def added(a): return np.add(a, 1.0, out=DATA)
def counted(a): return np.histogram2d(a[0], a[1])
def defaulted(a, asarray=np.asarray): return asarray(a)
"""
LINES = {
    re.match(r"def (\w+)", line)[1]: i
    for i, line in enumerate(CODE.splitlines(), 1)
    if line.startswith("def")
}
LINES["filled"] += 2


@pytest.fixture
def library(monkeypatch):
    """A module that lies where packages are installed."""
    module = types.ModuleType("somebody.code")
    file = f"{sysconfig.get_paths()['purelib']}/somebody/code.py"
    exec(compile(CODE, file, "exec"), vars(module))
    monkeypatch.setitem(sys.modules, "somebody.code", module)
    return module


def refusal(function):
    """The text of a refusal, which may be the cause of an error of NumPy's."""
    with vm.nested(), pytest.raises((TypeError, ValueError)) as raised:
        function(vm.var(np.array([[2.0, 0.1, 0.2], [0.3, 3.0, 0.1], [0.2, 0.1, 2.5]])))
    return str(raised.value.__cause__ or raised.value)


LOST = r"a \w+ cannot become a plain (array|number), its derivative would be lost: "
PATCH = "run it under varmat.numpy.patched(somebody)"


@pytest.mark.parametrize(("name", "what", "remedy"), [
    ("upper", "scipy.linalg.cholesky", PATCH),
    ("solved", "scipy.linalg.solve_triangular", PATCH),
    ("made", "array", PATCH),
    ("plain", "dot", PATCH),
    ("filled", "the assignment", PATCH),
    ("dense", "logpdf", "run it under varmat.numpy.patched(somebody, scipy)"),
    ("masked", "a masked array", PATCH),
    ("number", "exp", "it takes plain numbers alone; give it varmat.value(x)"),
    ("defaulted", "asarray", PATCH),
])  # fmt: skip
def test_a_remedy_outside_patched(library, name, what, remedy):
    text = refusal(getattr(library, name))
    expected = re.escape(f"{what} inside somebody/code.py:{LINES[name]}: {remedy}")
    assert re.fullmatch(LOST + expected, text)


@pytest.mark.parametrize(("name", "text"), [
    ("spectrum", "scipy.signal.welch inside somebody/code.py:{} has no derivative here: write "),
    ("tested", "scipy.stats.zscore inside somebody/code.py:{} cannot be called on variables: "),
    ("added", "np.add inside somebody/code.py:{}: a variable cannot be written into a plain"),
    ("counted", "numpy.histogram2d inside somebody/code.py:{} is not differentiable here: counts"),
    ("masked", LOST + "a masked array inside somebody/code.py:{}: use x.filled"),
    ("plain", LOST + r"dot inside somebody/code.py:{}: a method of a plain array, or"),
    ("kept", LOST + "the assignment inside somebody/code.py:{}: the array was made outside what"),
    ("number", LOST + "exp inside somebody/code.py:{}: it takes plain numbers alone; "),
])  # fmt: skip
def test_a_reason_inside_patched(library, name, text):
    with vm.numpy.patched(library):
        found = refusal(getattr(library, name))
    assert re.match(text.format(LINES[name]), found), found


@pytest.mark.parametrize("name", ["upper", "solved", "made", "filled", "defaulted"])
def test_the_remedy_works(library, name):
    point = np.array([[2.0, 0.1, 0.2], [0.3, 3.0, 0.1], [0.2, 0.1, 2.5]])

    def f(a):
        return np.sum(getattr(library, name)(a) ** 2)

    with vm.numpy.patched(library):
        value, tangent = vm.jvp(f, (point,), (np.ones((3, 3)),))
        gradient = vm.gradient(f, point)
    close(value, f(point), 1e-14)
    close(np.sum(gradient), tangent, 1e-12)
    assert library.scipy is sys.modules["scipy"]
    assert library.solve_triangular is sys.modules["scipy.linalg"].solve_triangular


def test_scipy_itself_is_given(library):
    """Also in its own modules the functions are replaced, and put back."""
    import scipy.linalg

    before = dict(vars(scipy.linalg))
    with vm.numpy.patched(scipy.linalg), vm.numpy.patched(library):
        assert library.solve_triangular is vm.scipy.linalg.solve_triangular
        value = library.upper(np.eye(3))
    close(value, np.sqrt(2.0) * np.eye(3), 1e-15)
    assert vars(scipy.linalg) == before
