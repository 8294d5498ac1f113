"""Functions that a process does not have, and the names that object files of each system want."""

import ctypes

import numpy as np
import pytest
from comparing import refuses
from layouts import of_one_step

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

import llvmlite.binding as llvm
from llvmlite import ir

from varmat.programs.kernels.elementwise import ufunc_kernel
from varmat.programs.run import compiler, runner_for, symbols
from varmat.programs.run.native import CODES


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
