"""LLVM: instructions to machine code, whose memory lives as long as an object."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache

import llvmlite.binding as llvm
from llvmlite import ir
from llvmlite.binding.newpassmanagers import NewPassManager

DOUBLE, INT, INT32, BIT, BYTE = (
    ir.DoubleType(),
    ir.IntType(64),
    ir.IntType(32),
    ir.IntType(1),
    ir.IntType(8),
)
POINTER = ir.PointerType()
# LLVM is not made for several threads at once.
_LOCK = threading.Lock()
# Instructions from which code is made with less care, because it takes as long as a recording.
LARGE = 20_000


def _target(level: int) -> llvm.TargetMachine:
    # An engine owns its target: each has its own.
    target, cpu, features = _host()
    return target.create_target_machine(opt=level, cpu=cpu, features=features)


@cache
def _host() -> tuple[llvm.Target, str, str]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple(), llvm.get_host_cpu_name(), features


class Compiled:
    """The functions of a module as machine code. Their addresses hold as long as it lives."""

    def __init__(self, module: ir.Module) -> None:
        # Without tables for exceptions, which none of these functions throws: LLVM would register
        # them with the process, at distances from the code that it cannot always express.
        for function in module.functions:
            if not function.is_declaration:
                function.attributes.add("nounwind")
        text = str(module)
        with _LOCK:
            level = 2 if text.count("\n") < LARGE else 0
            target = _target(level)
            parsed = llvm.parse_assembly(text)
            if level:
                options = llvm.create_pipeline_tuning_options(speed_level=level)
                passes = llvm.create_pass_builder(target, options)
                manager = passes.getModulePassManager()
                manager.run(parsed, passes)
                # Its own way to free it is hidden by that of another base class.
                NewPassManager._dispose(manager)
                manager.detach()
            self._engine = llvm.create_mcjit_compiler(parsed, target)
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        return int(self._engine.get_function_address(name))


def declared(module: ir.Module, name: str, kind: ir.FunctionType) -> ir.Function:
    found = module.globals.get(name)
    return found if found is not None else ir.Function(module, kind, name)


def counted(
    b: ir.IRBuilder,
    first: ir.Value,
    last: ir.Value,
    step: int,
    carried: Sequence[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
) -> tuple[ir.Value, list[ir.Value]]:
    """A loop that may have no turn; the index at its end, and what is carried."""
    before, head = b.block, b.append_basic_block()
    inside, after = b.append_basic_block(), b.append_basic_block()
    b.branch(head)
    b.position_at_end(head)
    i = b.phi(INT)
    places = [b.phi(x.type) for x in carried]
    b.cbranch(b.icmp_signed("<", i, last), inside, after)
    b.position_at_end(inside)
    made = body(i, places)
    following = b.add(i, INT(step))
    i.add_incoming(first, before)
    i.add_incoming(following, b.block)
    for place, x, y in zip(places, carried, made, strict=True):
        place.add_incoming(x, before)
        place.add_incoming(y, b.block)
    b.branch(head)
    b.position_at_end(after)
    return i, places
