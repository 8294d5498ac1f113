"""LLVM: instructions to machine code, whose memory lives as long as an object."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm
from llvmlite import ir

from varmat.interrupts import uninterrupted
from varmat.locks import Once
from varmat.programs.run.symbols import undefined

DOUBLE, INT, INT32, BIT, BYTE = (
    ir.DoubleType(),
    ir.IntType(64),
    ir.IntType(32),
    ir.IntType(1),
    ir.IntType(8),
)
POINTER = ir.PointerType()
# Attributes of functions of numbers, whose calls may be moved in front of a loop.
PURE = ("nounwind", "readnone", "speculatable", "willreturn")
# Lines of instructions from which code is made with less care, and from which it is made in a
# hurry: that alone takes as long as a recording.
LARGE, HUGE = 4_000, 20_000


@Once
def _target(level: int) -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    cpu = llvm.get_host_cpu_name()
    return llvm.Target.from_default_triple().create_target_machine(
        opt=level, cpu=cpu, features=features
    )


@Once
def _passes(level: int) -> tuple[llvm.ModulePassManager, llvm.PassBuilder]:
    """Make the few passes that these instructions need: all others find nothing to do."""
    manager = llvm.create_new_module_pass_manager()
    manager.add_always_inliner_pass()
    manager.add_new_gvn_pass()
    manager.add_instruction_combine_pass()
    return manager, llvm.create_pass_builder(_target(level), llvm.create_pipeline_tuning_options())


class UnresolvedError(Exception):
    """Machine code calls a function that this process does not have."""


class Module(ir.Module):  # type: ignore[misc]  # llvmlite has no types
    """Instructions.

    Attributes
    ----------
    held : list
        The owners of all memory whose addresses are among the instructions.
    has_statements : bool
        Whether there are loops over statements, for which LLVM has all of its passes.
    calls_out : bool
        Whether there are calls of functions of other libraries, which may use a BLAS.
    """

    def __init__(self) -> None:
        super().__init__()
        self.references: list[object] = []
        self.has_statements = self.calls_out = False


def _object_code(text: str, level: int, has_statements: bool) -> bytes:
    # A new context, because constants stay in it.
    parsed = llvm.parse_assembly(text, llvm.create_context())
    if level:
        manager, builder = _passes(level)
        if has_statements:
            options = llvm.create_pipeline_tuning_options(speed_level=2)
            options.loop_vectorization = options.loop_unrolling = True
            builder = llvm.create_pass_builder(_target(level), options)
            builder.getModulePassManager().run(parsed, builder)
        else:
            manager.run(parsed, builder)
    return bytes(_target(level).emit_object(parsed))


class Compiled:
    """The functions of a module as machine code. Their addresses hold as long as it lives."""

    def __init__(self, module: Module) -> None:
        self._references = module.references
        # Without tables for exceptions, which none of these functions throws: LLVM would register
        # them with the process, at distances from the code that it cannot always express.
        for function in module.functions:
            if not function.is_declaration:
                function.attributes.add("nounwind")
        text = str(module)
        lines = text.count("\n")
        # A signal must not come between LLVM and the objects that own its memory: they would free
        # it twice, or a context before its module.
        with uninterrupted():
            level = 2 if lines < LARGE else 1 if lines < HUGE else 0
            missing = self._load(text, level, module.has_statements)
        if missing:
            raise UnresolvedError(
                f"the machine code calls {', '.join(missing)}, which this process does not have"
            )

    def _load(self, text: str, level: int, has_statements: bool) -> list[str]:
        """Load code, unless it calls functions that are missing; return their names."""
        # No error is raised here, because its traceback would keep LLVM's objects, and the
        # collector would free them in any order.
        code = _object_code(text, level, has_statements)
        # An engine that only loads code takes a tenth of the memory of one that makes it.
        target = llvm.Target.from_default_triple().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
        missing = sorted(name for name in undefined(code) if not llvm.address_of_symbol(name))
        if not missing:  # the loader would give them the address 0
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        return missing

    def address(self, name: str) -> int:
        return int(self._engine.get_function_address(name))


def try_out() -> None:
    """Compile a function and call it, where memory may be made executable."""
    llvm.check_jit_execution()
    module = Module()
    function = ir.Function(module, ir.FunctionType(DOUBLE, [DOUBLE]), "half")
    b = ir.IRBuilder(function.append_basic_block())
    b.ret(b.fmul(function.args[0], DOUBLE(0.5)))
    code = Compiled(module)
    result = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("half"))(3.0)
    if result != 1.5:
        raise ArithmeticError(f"the half of 3 is {result!r}")


def declared(module: Module, name: str, kind: ir.FunctionType) -> ir.Function:
    variable = module.globals.get(name)
    return variable if variable is not None else ir.Function(module, kind, name)


def counted(
    b: ir.IRBuilder,
    first: ir.Value,
    last: ir.Value,
    step: int,
    carried: Sequence[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
) -> tuple[ir.Value, list[ir.Value]]:
    """Emit a loop that may have no iteration; return the index at its end, and the last carry."""
    before, head = b.block, b.append_basic_block()
    inside, after = b.append_basic_block(), b.append_basic_block()
    b.branch(head)
    b.position_at_end(head)
    i = b.phi(INT)
    phis = [b.phi(x.type) for x in carried]
    b.cbranch(b.icmp_signed("<", i, last), inside, after)
    b.position_at_end(inside)
    result = body(i, phis)
    following = b.add(i, INT(step))
    for place, x, y in zip([i, *phis], [first, *carried], [following, *result], strict=True):
        place.add_incoming(x, before)
        place.add_incoming(y, b.block)
    b.branch(head)
    b.position_at_end(after)
    return i, phis
