"""Processes that cannot run native code."""

import importlib.metadata
import sys

import pytest
from layouts import python

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.programs.run import LEAST

USES = """
import sys, warnings
import numpy as np, varmat as vm
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    f = vm.recorded(lambda x: np.sum(np.exp(x)))
    print(f(np.zeros(3))[0], f(np.zeros(3))[0])
    model = vm.Model(lambda b: -np.sum((b - 1.0) ** 2), b=vm.real(2))
    print(np.allclose(model.optimize().values["b"], 1.0))
    try:
        vm.recorded(np.sum, runner="native")
    except ImportError as error:
        print(error)
for each in found:
    print(each.category.__name__, each.message)
"""


def output(text, *paths):
    done = python(text, *paths)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def expect_numpy(reason, text, *paths):
    """Demand that everything works without native code, with one warning that gives the reason."""
    lines = output(text, *paths)
    assert lines[:2] == ["3.0 3.0", "True"]
    assert lines[2].startswith(f"recorded: {reason}")
    assert len(lines) == 4
    warned = "RuntimeWarning recorded functions run in NumPy, several times as slow:"
    assert lines[3].startswith(f"{warned} {reason}")


@pytest.mark.parametrize("version", ["0.45.1", "0.9"])
def test_a_release_that_is_too_old(tmp_path, version):
    package = tmp_path / "llvmlite"
    package.mkdir()
    (package / "__init__.py").write_text(f"__version__ = {version!r}", encoding="utf-8")
    reason = f"the native runner needs llvmlite 0.46 or newer, but {version} is installed"
    expect_numpy(reason, USES, tmp_path)


@pytest.mark.parametrize(("text", "error"), [
    ("raise OSError('llvmlite.so:\\n no such file')", "OSError: llvmlite.so: no such file"),
    ("__version__ = '1.0.0'", "ModuleNotFoundError: No module named 'llvmlite.binding'"),
])  # fmt: skip
def test_a_package_that_is_broken(tmp_path, text, error):
    package = tmp_path / "llvmlite"
    package.mkdir()
    (package / "__init__.py").write_text(text, encoding="utf-8")
    expect_numpy(f"the native runner cannot use llvmlite here: {error}", USES, tmp_path)


def test_the_least_release_is_that_of_the_extra():
    wanted = importlib.metadata.requires("varmat") or []
    (found,) = {each.partition(";")[0].strip() for each in wanted if each.startswith("llvmlite")}
    assert found == f"llvmlite>={'.'.join(map(str, LEAST))}"


@pytest.mark.skipif(sys.platform != "linux", reason="a process of Linux can give up the right")
def test_memory_that_may_not_be_made_executable():
    """As in a service of systemd with MemoryDenyWriteExecute."""
    refuse = "import ctypes\nif ctypes.CDLL(None).prctl(65, 1, 0, 0, 0): print('unknown'); exit()\n"
    if output(refuse) == ["unknown"]:
        pytest.skip("this kernel is older than Linux 6.3")
    reason = "the native runner cannot use llvmlite here: PermissionError: [Errno 13] cannot alloc"
    expect_numpy(reason, refuse + USES)
