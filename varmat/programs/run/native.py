"""The native runner: a program as machine code, which runs without the GIL."""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
from llvmlite import ir

from varmat.interrupts import from_signal, kept_from_callbacks, uninterrupted
from varmat.locks import held
from varmat.programs.ir.memory import array_at
from varmat.programs.ir.program import FLOAT, OBJECT, Program, Value
from varmat.programs.run.code import Code
from varmat.programs.run.compiler import (
    BYTE,
    DOUBLE,
    INT,
    POINTER,
    Compiled,
    Module,
    counted,
    declared,
)
from varmat.programs.run.constants import Block, Constants, NotSharedError, Signature
from varmat.programs.run.functions import LANES as WIDTH
from varmat.programs.run.graph import Graph
from varmat.programs.run.nodes import LONG, Memory, NotFusedError, longest_in_registers
from varmat.programs.run.points import PointLanes
from varmat.programs.run.threads import one_blas_thread, processors

if TYPE_CHECKING:
    from varmat.programs.ir.kernel import Arrays
    from varmat.programs.ir.program import Array, Output
    from varmat.programs.run.repeat import GivenNodes
    from varmat.typing import Function, Threads


# Bytes of scratch memory that are taken from the stack.
ON_STACK = 1 << 16
# Bytes from a NumPy array to the address of its elements: the size of an object's head.
DATA = object.__basicsize__
# How Python calls a function: with the addresses of its arguments, and their number.
METH_FASTCALL = 0x80
NO_MEMORY = "a recorded function finds no memory for its intermediate results"
# Points in the first slice of a map, and about how many seconds a later one takes at most: an
# interrupt waits for one slice.
FIRST_SLICE = 16
SLICE = 0.05
# Seconds of work that is done before threads are started, which takes about as long.
THREADS_START = 2e-4
# Points of maps after which a program is compiled for a point in each lane: it has run about as
# long as that takes.
WORTH = 1 << 20

_PYTHON = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))
_MANY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


class _State:
    """The results of steps that call Python, in a thread: objects, by the id of the value, and the
    error that was raised.
    """

    def __init__(self) -> None:
        self.objects: dict[int, object] = {}
        self.raised: BaseException | None = None


class _Table(np.ndarray):
    """Addresses of the function that calls Python, and of the constants.

    Attributes
    ----------
    references : tuple
        The owners of the memory at these addresses, and the code that reads it.
    """

    references: tuple[object, ...]


class _MachineCode:
    """Machine code of a program, also for programs that differ from it in data only.

    Attributes
    ----------
    address : int
        The address, as in a runner.
    calls_python, calls_out : bool
        Whether the code calls Python, or any function of another library.
    """

    def __init__(self, program: Program, blocks: Sequence[Block], kind: type[Code]) -> None:
        self.constants = Constants(blocks)
        code, self.calls_python = instructions(program, self.constants, kind)
        if isinstance(code, PointLanes):
            _many_in_lanes(code)
        else:
            _many(code)
            if _is_single(program):
                _single(code)
        self.calls_out = code.module.calls_out
        self.compiled = Compiled(code.module)
        self.address = self.compiled.address("many")


def instructions(
    program: Program, constants: Constants, kind: type[Code] = Code
) -> tuple[Code, bool]:
    """Generate the instructions of a program, and return whether they call Python."""
    values = [*program.arguments, *program.outputs]
    buffers = [
        Memory(i, v.size * int(v.dtype.itemsize), int(v.dtype.itemsize))
        for i, v in enumerate(values)
    ]
    count = len(program.arguments)
    code = kind(Module(), "run", len(values), count)
    args: dict[int, GivenNodes] = dict(zip(map(id, program.arguments), buffers, strict=False))
    constants.long = longest_in_registers(program.steps) if kind is Code else LONG
    graph = Graph(program, args, buffers[count:], constants)
    code.emit(graph)
    code.finish()
    return code, graph.calls_python


# The code of the most recent programs, by signature.
CODES: OrderedDict[tuple[Hashable, ...], list[_MachineCode]] = OrderedDict()
MOST_CODES, _MOST_BYTES = 64, 1 << 24
_lock = threading.RLock()


def _code_of(program: Program, kind: type[Code]) -> tuple[_MachineCode, list[np.ndarray]]:
    """Return the code of a program, compiled unless there is some already, and its constants."""
    try:
        signature: Signature | None = Signature(program)
    except NotSharedError:
        signature = None
    blocks = signature.blocks if signature else []
    key = (kind, *signature.key) if signature else ()
    with held(_lock):
        values = [*CODES.get(key, ())]
    for code in values:
        arrays = code.constants.bound(blocks)
        if arrays is not None:
            return code, arrays
    code = _MachineCode(program, blocks, kind)
    if signature is not None and code.constants.nbytes <= _MOST_BYTES:
        with held(_lock):
            CODES[key] = [code, *values[:3]]
            CODES.move_to_end(key)
            while len(CODES) > MOST_CODES:
                CODES.popitem(last=False)
    return code, code.constants.bound(blocks)  # type: ignore[return-value]


def _bound(program: Program, kind: type[Code], callback: int = 0) -> tuple[_MachineCode, _Table]:
    """Return the code of a program, and the table of its constants behind a callback."""
    code, arrays = _code_of(program, kind)
    table = np.array([callback, *(x.ctypes.data for x in arrays)], np.int64).view(_Table)
    table.references = code, arrays, program
    return code, table


def _is_single(program: Program) -> bool:
    """Return whether a program maps a vector to a number and an array."""
    shapes = [v.shape for v in program.outputs]
    return (
        len(program.arguments) == 1
        and len(program.arguments[0].shape) == 1
        and len(shapes) == 2
        and shapes[0] == ()
    )


class NativeRunner:
    """Runs a program; safe from several threads at once, without the GIL but for steps that call
    Python.

    Parameters
    ----------
    program : Program

    Attributes
    ----------
    address : int
        Of ``many(places, steps, count)``, a C function: the addresses of arguments, outputs and the
        table, the bytes by which each moves on, and how often to run. The first output is nan where
        a run ends. It returns 1, and writes nothing, if it gets no memory to run in.
    table : int
        The address of the table of constants.
    calls_python : bool
    mapped : int
        At how many points maps have run.
    single : callable, optional
        From two vectors, the point and the memory of the gradient, to the value.
    """

    name = "native"

    def __init__(self, program: Program) -> None:
        self.program = program
        # By number of the thread, not a `threading.local`, because the threads of a sampler,
        # which Python did not start, get a new one at each callback.
        self._states: defaultdict[int, _State] = defaultdict(_State)
        # A callback that held the runner would keep both alive until the collector comes.
        itself = ref(self)

        def call_python(number: int, addresses: Sequence[int]) -> int:
            return itself()._call_python(number, addresses)  # type: ignore[union-attr]

        self._called, self._callback = call_python, _PYTHON(call_python)
        self._shape = program.outputs[-1].shape
        callback = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        code, self._table = _bound(program, Code, callback)
        self.calls_python, self.address = code.calls_python, code.address
        self.table = self._table.ctypes.data
        self._many = _MANY(self.address)
        self.mapped = 0
        self._values = [*program.arguments, *program.outputs]
        self._calls_out = code.calls_out
        is_plain = _is_single(program) and not self.calls_python
        self.single = _function(code.compiled, "single", self._table) if is_plain else None

    # --- steps that call Python ---

    @property
    def _state(self) -> _State:
        return self._states[threading.get_ident()]

    def _call_python(self, number: int, addresses: Sequence[int]) -> int:
        step, state = self.program.steps[number], self._state
        try:
            count = len(step.operands)
            arrays: list[Any] = [
                state.objects[id(v)] if v.dtype is OBJECT else _array(v, addresses[i])
                for i, v in enumerate(step.operands)
            ]
            with np.errstate(all="ignore"):
                result = step.kernel.evaluate(*arrays)
                for i, (v, x) in enumerate(zip(step.results, result, strict=True), count):
                    if v.dtype is OBJECT:
                        state.objects[id(v)] = x
                    else:
                        _array(v, addresses[i])[...] = x
        except BaseException as error:
            self._keep(error)
            return 1
        return 0

    def _keep(self, error: BaseException) -> None:
        """Keep an error of a run, but not instead of one that comes only once."""
        if not (self._state.raised is not None and from_signal(self._state.raised)):
            self._state.raised = error

    def _watched(self) -> AbstractContextManager[None]:
        """Return a context for running a program: errors of its calls of Python are kept."""
        if not self.calls_python:
            return nullcontext()
        return kept_from_callbacks(self._called, self._keep)

    def _run(
        self, buffers: np.ndarray, steps: np.ndarray, count: int, many: Function
    ) -> BaseException | None:
        """Run at points whose arguments and outputs lie at addresses; return the last error."""
        if not self.calls_python:
            self._run_many(buffers, steps, count, many)
            return None
        # A run within a run, of the same program, must leave the objects of the outer one.
        thread = threading.get_ident()
        before, state = self._states.get(thread), _State()
        self._states[thread] = state
        try:
            with self._watched():
                self._run_many(buffers, steps, count, many)
            return state.raised
        finally:
            if before is None:
                del self._states[thread]
            else:
                self._states[thread] = before

    def _run_many(self, buffers: np.ndarray, steps: np.ndarray, count: int, many: Function) -> None:
        if many(buffers.ctypes.data, steps.ctypes.data, count):
            raise MemoryError(NO_MEMORY)

    @cached_property
    def _in_lanes(self) -> tuple[Function, _Table] | None:
        """The function of many points that runs one in each lane of a vector, and its table; None
        if vectors cannot run all of the program.
        """
        try:
            code, table = _bound(self.program, PointLanes)
        except NotFusedError:
            return None
        return _MANY(code.address), table

    def _for_map(self, count: int) -> tuple[Function, list[int]]:
        """Return a function of many points, and the addresses that it needs after the outputs'."""
        self.mapped += count
        if self.mapped < WORTH or self.calls_python or self._in_lanes is None:
            return self._many, [self.table]
        many, table = self._in_lanes
        return many, [table.ctypes.data, self.table, self.address]

    # --- calls ---

    @cached_property
    def c_function(self) -> Compiled:
        """The code of ``double call(const double *x, double *gradient)``."""
        return _c_function(self.address, self.table)

    def __call__(self, arguments: Arrays) -> list[Output]:
        if self.single is not None:
            return [*self.at(np.asarray(arguments[0], FLOAT))]
        kinds = [v.dtype for v in self.program.arguments]
        args = [*map(np.ascontiguousarray, arguments, kinds)]
        result = [np.empty(v.shape, v.dtype) for v in self.program.outputs]
        addresses = _addresses((*args, *result), [self.table])
        raised = self._run(addresses, np.zeros_like(addresses), 1, self._many)
        if raised is not None:
            raise raised
        return [x if x.ndim else float(x) for x in result]

    def at(self, x: Array) -> Sequence[Output]:
        """Return the outputs at an array of floats, with less overhead."""
        if self.single is None:
            return self([x])
        gradient = np.empty(self._shape)
        return self.single(x if x.flags.c_contiguous else x.copy(), gradient), gradient

    def map(
        self, arguments: Sequence[Array], outputs: Sequence[Array], executor: Threads = None
    ) -> None:
        """Run at many points, in threads of an executor, by default one for each processor; or in
        this thread if it is "serial". The first output is nan where the run ended, as by an error
        of a step that calls Python.

        Each array has a row for each run, in one piece; rows of arguments may share their memory.
        Signals are checked between slices of points."""
        rows, count = [*arguments, *outputs], len(outputs[0])
        for x, v in zip(rows, self._values, strict=True):
            is_right = x.dtype == v.dtype and x.shape[1:] == v.shape and len(x) == count
            if not (is_right and x[:1].flags.c_contiguous):
                shapes = [x.shape for x in rows]
                raise ValueError(f"the arrays have shapes {shapes}, which do not fit the program")
        if count == 1 and self.single is not None:
            rows[1][0] = self.single(rows[0], rows[2])  # which take their first rows
            return
        many, more = self._for_map(count)
        steps = np.array([*(x.strides[0] for x in rows), *[0] * len(more)], np.int64)
        with one_blas_thread() if self._calls_out else nullcontext():
            self._run_rows(_addresses(rows, more), steps, count, many, executor)

    def _run_rows(
        self, buffers: np.ndarray, steps: np.ndarray, count: int, many: Function, executor: Threads
    ) -> None:
        """Run in threads; each takes slices of the points."""
        arguments = executor if isinstance(executor, ThreadPoolExecutor) else None
        most = arguments._max_workers if arguments else processors()
        # Steps that call Python would only take turns in threads.
        workers = 1 if executor == "serial" or self.calls_python else min(most, count)
        lock, taken, is_stopped = threading.Lock(), 0, False

        def work(size: int = FIRST_SLICE, sharing: int = workers, limit: float = math.inf) -> None:
            nonlocal taken
            start = now = time.perf_counter()
            while taken < count and not is_stopped and now - start < limit:
                with lock:  # whoever is free takes the next slice, a smaller one near the end
                    size = max(1, min(size, (count - taken) // sharing))
                    first, taken = taken, min(taken + size, count)
                    end = taken
                begun = time.perf_counter()
                raised = self._run(buffers + first * steps, steps, end - first, many)
                if raised is not None and from_signal(raised):
                    raise raised
                now = time.perf_counter()
                size = max(1, int(size * min(0.5 * min(SLICE, limit) / (now - begun + 1e-9), 16.0)))

        if workers < 2:
            work()
            return
        work(1, 1, THREADS_START)
        while taken < count:  # once, and again after each signal whose handler raised nothing
            is_stopped = False
            # The threads write into memory of the caller, who must not go on before they end.
            with uninterrupted() as came, ExitStack() as stack:
                pool = arguments or stack.enter_context(ThreadPoolExecutor(workers))
                working = [pool.submit(work) for _ in range(workers)]
                while wait(working, SLICE).not_done:
                    is_stopped = bool(came)
            for x in working:
                x.result()


def _addresses(arrays: Iterable[Array], more: Sequence[int]) -> np.ndarray:
    return np.array([*(x.__array_interface__["data"][0] for x in arrays), *more], np.int64)


def _array(v: Value, address: int) -> np.ndarray:
    """Return the array of a value at an address."""
    return array_at(address, v.shape, v.dtype, v.strides)


# --- the functions around the program's function ---


def _scratch(
    b: ir.IRBuilder, code: Code, without: Callable[[], object]
) -> tuple[ir.Value, ir.Value | None]:
    """Emit scratch memory, and return what to free afterwards; `without` returns without memory."""
    size = code.scratch_bytes
    if size <= ON_STACK:
        raw, freed = b.alloca(BYTE, size + 64), None
    else:
        kind = ir.FunctionType(POINTER, [INT])
        raw = freed = b.call(declared(code.module, "malloc", kind), [INT(size + 64)])
        with b.if_then(b.icmp_unsigned("==", raw, POINTER(None)), likely=False):
            without()
    low = b.and_(b.sub(INT(0), b.ptrtoint(raw, INT)), INT(63))
    return b.gep(raw, [low], source_etype=BYTE), freed


def _free(b: ir.IRBuilder, code: Code, memory: ir.Value | None) -> None:
    if memory is not None:
        kind = ir.FunctionType(ir.VoidType(), [POINTER])
        b.call(declared(code.module, "free", kind), [memory])


def _of_python(b: ir.IRBuilder, name: str, result: ir.Type, *args: ir.Value) -> ir.Value:
    """Call a function of Python's C interface."""
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    kind = ir.FunctionType(result, [x.type for x in args])
    return b.call(b.inttoptr(INT(address), kind.as_pointer()), args)


def _single(code: Code) -> None:
    """Emit a method in C's terms of Python of the table, from two NumPy arrays, the point and the
    memory of the gradient, to the value; nan where the run ended.
    """
    f = ir.Function(code.module, ir.FunctionType(POINTER, [POINTER, POINTER, INT]), "single")
    b = ir.IRBuilder(f.append_basic_block())
    x, gradient = (
        b.load(b.gep(b.load(place, typ=POINTER), [INT(DATA)], source_etype=BYTE), typ=POINTER)
        for place in (f.args[1], b.gep(f.args[1], [INT(1)], source_etype=POINTER))
    )
    value = b.alloca(DOUBLE)

    def no_memory() -> None:
        text = bytearray(f"{NO_MEMORY}\0".encode())
        place = code.constant(ir.ArrayType(BYTE, len(text)), text)
        error = INT(id(MemoryError)).inttoptr(POINTER)
        _of_python(b, "PyErr_SetString", ir.VoidType(), error, place)
        b.ret(POINTER(None))

    scratch, freed = _scratch(b, code, no_memory)
    thread = _of_python(b, "PyEval_SaveThread", POINTER)
    table = b.load(b.gep(f.args[0], [INT(DATA)], source_etype=BYTE), typ=POINTER)
    status = b.call(code.function, [x, value, gradient, table, scratch])
    _free(b, code, freed)
    _of_python(b, "PyEval_RestoreThread", ir.VoidType(), thread)
    number = b.load(value, typ=DOUBLE)
    number = b.select(b.icmp_unsigned("==", status, INT(0)), number, DOUBLE(math.nan))
    b.ret(_of_python(b, "PyFloat_FromDouble", POINTER, number))


def _c_function(address: int, table: int) -> Compiled:
    """Make a function in C's terms from the addresses of a point and the gradient to the value."""
    module = Module()
    f = ir.Function(module, ir.FunctionType(DOUBLE, [POINTER, POINTER]), "call")
    b = ir.IRBuilder(f.append_basic_block())
    value, buffers, steps = b.alloca(DOUBLE), b.alloca(INT, 4), b.alloca(INT, 4)
    args = (b.ptrtoint(x, INT) for x in (f.args[0], value, f.args[1]))
    for i, place in enumerate([*args, INT(table)]):
        b.store(place, b.gep(buffers, [INT(i)], source_etype=INT))
        b.store(INT(0), b.gep(steps, [INT(i)], source_etype=INT))
    kind = ir.FunctionType(INT, [POINTER, POINTER, INT])
    status = b.call(b.inttoptr(INT(address), kind.as_pointer()), [buffers, steps, INT(1)])
    number = b.load(value, typ=DOUBLE)
    b.ret(b.select(b.icmp_unsigned("==", status, INT(0)), number, DOUBLE(math.nan)))
    return Compiled(module)


class _Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _function(code: Compiled, name: str, table: _Table) -> Function:
    """Make a function in C's terms of Python an object, which keeps its code alive."""
    definition = _Definition(name.encode(), code.address(name), METH_FASTCALL, None)
    table.references += (definition,)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    result: Function = new(("PyCFunction_NewEx", ctypes.pythonapi))(
        ctypes.addressof(definition), table, None
    )
    return result


def _words(b: ir.IRBuilder, address: ir.Value, count: int) -> list[ir.Value]:
    """Load the integers at an address."""
    return [b.load(b.gep(address, [INT(k)], source_etype=INT), typ=INT) for k in range(count)]


def _many(code: Code) -> None:
    """Emit a function of the addresses of arguments, outputs and the table, the bytes by which each
    moves on, and how often to run. Where a run ends, the first output is nan. It returns 1 without
    memory.
    """
    f = ir.Function(code.module, ir.FunctionType(INT, [POINTER, POINTER, INT]), "many")
    pointer, steps, count = f.args
    b = ir.IRBuilder(f.append_basic_block())
    buffers, moves = (_words(b, x, len(code.places) + 1) for x in (pointer, steps))
    scratch, freed = _scratch(b, code, lambda: b.ret(INT(1)))

    def iteration(i: ir.Value, _: object) -> tuple[ir.Value, ...]:
        here = [
            b.inttoptr(b.add(place, b.mul(i, move)), POINTER)
            for place, move in zip(buffers, moves, strict=True)
        ]
        status = b.call(code.function, [*here, scratch])
        with b.if_then(b.icmp_unsigned("!=", status, INT(0))):
            b.store(DOUBLE(math.nan), here[code.first_output])
        return ()

    counted(b, INT(0), count, 1, [], iteration)
    _free(b, code, freed)
    b.ret(INT(0))


def _many_in_lanes(code: PointLanes) -> None:
    """Emit the same with a point in each lane: the addresses of arguments, outputs and the table
    come before the table and the function of one point, which runs at the remaining points, and
    where one ends.
    """
    f = ir.Function(code.module, ir.FunctionType(INT, [POINTER, POINTER, INT]), "many")
    pointer, steps, count = f.args
    b, n = ir.IRBuilder(f.append_basic_block()), len(code.places)
    buffers, moves = _words(b, pointer, n + 3), _words(b, steps, n)
    scratch, freed = _scratch(b, code, lambda: b.ret(INT(1)))
    failed, block = b.alloca(INT), b.alloca(INT, n + 1)
    b.store(INT(0), failed)
    kind = ir.FunctionType(INT, [POINTER, POINTER, INT])
    one = b.inttoptr(buffers[n + 2], kind.as_pointer())
    table = b.inttoptr(buffers[n], POINTER)

    def at(i: ir.Value) -> list[ir.Value]:
        pairs = zip(buffers, moves, strict=False)
        return [b.add(place, b.mul(i, move)) for place, move in pairs]

    def singly(i: ir.Value, points: ir.Value) -> None:
        for k, place in enumerate([*at(i), buffers[n + 1]]):
            b.store(place, b.gep(block, [INT(k)], source_etype=INT))
        status = b.call(one, [block, steps, points])
        b.store(b.or_(b.load(failed, typ=INT), status), failed)

    def iteration(i: ir.Value, _: object) -> tuple[ir.Value, ...]:
        here = [b.inttoptr(place, POINTER) for place in at(i)]
        status = b.call(code.function, [*here, table, scratch, *moves])
        with b.if_then(b.icmp_unsigned("!=", status, INT(0)), likely=False):
            singly(i, INT(WIDTH))
        return ()

    left = b.urem(count, INT(WIDTH))
    vector_count = b.sub(count, left)
    counted(b, INT(0), vector_count, WIDTH, [], iteration)
    with b.if_then(b.icmp_unsigned("!=", left, INT(0))):
        singly(vector_count, left)
    _free(b, code, freed)
    b.ret(b.load(failed, typ=INT))
