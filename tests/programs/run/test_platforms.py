"""Processes that cannot run native code, and what object files of each system want."""

import ctypes
import importlib.metadata
import sys

import numpy as np
import pytest
from comparing import refuses
from layouts import of_one_step, python

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

import llvmlite.binding as llvm
from llvmlite import ir

from varmat.programs.kernels.elementwise import ufunc_kernel
from varmat.programs.run import LEAST, compiler, runner_for, symbols
from varmat.programs.run.native import CODES

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


# --- functions that a process does not have ---


def calling(name):
    """The module of a function that calls another one."""
    module = compiler.Module()
    kind = ir.FunctionType(compiler.DOUBLE, [compiler.DOUBLE])
    other, f = (ir.Function(module, kind, each) for each in (name, "f"))
    b = ir.IRBuilder(f.append_basic_block())
    b.ret(b.call(other, f.args))
    return module


def test_a_function_that_does_not_exist():
    """LLVM's loader would call the address 0."""
    code = compiler.Compiled(calling("cosh"))
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("f"))
    assert call(0.0) == 1.0
    text = r"^the machine code calls no_such_cosh, which this process does not have$"
    refuses(compiler.UnresolvedError, text, compiler.Compiled, calling("no_such_cosh"))


def test_programs_that_call_it_run_in_numpy(monkeypatch):
    program = of_one_step(ufunc_kernel(np.exp), (2,))
    assert runner_for(program).name == "native"
    CODES.clear()
    monkeypatch.setattr(compiler, "undefined", lambda code: {"__chkstk_of_none"})
    with pytest.warns(RuntimeWarning, match="the machine code calls __chkstk_of_none, which"):
        run = runner_for(program)
    assert run.name == "numpy"
    assert run([np.zeros(2)])[0] == 2.0
    refuses(compiler.UnresolvedError, None, runner_for, program, "native")


TRIPLES = ("x86_64-pc-windows-msvc", "x86_64-apple-darwin", "arm64-apple-darwin")
TRIPLES += ("aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu", "powerpc64-unknown-linux-gnu")


@pytest.mark.parametrize("triple", TRIPLES)
def test_the_names_that_object_files_want(triple):
    def code(text):
        return symbols.undefined(
            target.emit_object(llvm.parse_assembly(text, llvm.create_context()))
        )

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(triple).create_target_machine()
    except RuntimeError:
        pytest.skip("this llvmlite makes no code for the processor")
    long = "a_name_of_more_than_eight_letters"
    text = f"declare double @{long}(double)\ndeclare double @short(double)\n"
    text += "declare double @unused(double)\n"
    for name, other in (("f", long), ("g", "short"), ("of_f", "f")):
        text += f"define double @{name}(double %x) {{\n  %y = call double @{other}(double %x)\n"
        text += "  ret double %y\n}\n"
    assert code(text) == {long, "short"}
    assert code("define double @f(double %x) {\n  ret double %x\n}\n") == set()


def test_large_frames_on_windows_want_a_function():
    """Of LLVM's own accord: no instruction calls it."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple("x86_64-pc-windows-msvc").create_target_machine()
    except RuntimeError:
        pytest.skip("this llvmlite makes no code for the processor")
    text = "define ptr @f() {\n  %x = alloca [9000 x i8]\n  ret ptr %x\n}\n"
    found = target.emit_object(llvm.parse_assembly(text, llvm.create_context()))
    assert symbols.undefined(found) == {"__chkstk"}
