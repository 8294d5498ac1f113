"""Programs as C functions for a sampler that calls from its threads, without the GIL."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from llvmlite import ir

from varmat.programs.ir.memory import array_at
from varmat.programs.ir.program import FLOAT
from varmat.programs.run.compiler import DOUBLE, INT, INT32, POINTER, Compiled, Module, counted

if TYPE_CHECKING:
    from varmat.programs.run.native import NativeRunner

# Passed to a sampler instead of a derivative of zero.
FLAT = 1e-10

_FALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def doubles(address: int, size: int) -> np.ndarray:
    """Return the numbers at an address."""
    return array_at(address, (size,), FLOAT, (FLOAT.itemsize,))


class SamplerFunctions:
    """A log density with its gradient, and the values at a draw, as C functions.

    Parameters
    ----------
    density : NativeRunner
        The runner of a program of one vector, which returns a value and a gradient.
    values : NativeRunner, optional
        The runner of a program that returns zero and the values at a draw; by default, no values.
    density_elsewhere, values_elsewhere : callable
        Python functions for points where a program does not hold: of the addresses of the point,
        the gradient and the value, which returns 0 or 1, and of the addresses of the point and the
        values. They must not raise.
    keeps_point : bool
        Whether the point comes after the values.

    Attributes
    ----------
    log_density, expand : int
        The addresses of ``log_density(size, point, gradient, value, user)``, which returns 1 where
        the point is rejected, and of ``expand(size, expanded, point, draw, user)``.
    user : ndarray of int64
        The last argument of both.
    """

    def __init__(
        self,
        density: NativeRunner,
        values: NativeRunner | None,
        density_elsewhere: Callable[[int, int, int], int],
        values_elsewhere: Callable[[int, int, int], int],
        keeps_point: bool,
    ) -> None:
        callbacks = _FALLBACK(density_elsewhere), _FALLBACK(values_elsewhere)
        fallback = [ctypes.cast(x, ctypes.c_void_p).value or 0 for x in callbacks]
        module = Module()
        module.references += [density, values, callbacks]
        _log_density(module, density, fallback[0])
        _expand(module, values, fallback[1], keeps_point)
        self._code = Compiled(module)
        self.log_density, self.expand = map(self._code.address, ("log_density", "expand"))
        # Whether every point is rejected.
        self.user = np.zeros(1, np.int64)

    def refuse(self) -> None:
        """Reject every point from here on."""
        self.user[0] = 1


def _called(b: ir.IRBuilder, address: int, *args: ir.Value) -> ir.Value:
    kind = ir.FunctionType(INT, [x.type for x in args])
    return b.call(b.inttoptr(INT(address), kind.as_pointer()), args)


def _run(b: ir.IRBuilder, runner: NativeRunner, buffers: list[ir.Value]) -> None:
    """Run a program once. The second place, of its first output, is nan without memory."""
    buffers = [*buffers, INT(runner.table).inttoptr(POINTER)]
    args, steps = (b.alloca(POINTER, len(buffers)) for _ in range(2))
    for i, place in enumerate(buffers):
        for array, x in ((args, place), (steps, POINTER(None))):
            b.store(x, b.gep(array, [INT(i)], source_etype=POINTER))
    status = _called(b, runner.address, args, steps, INT(1))
    with b.if_then(b.icmp_signed("!=", status, INT(0)), likely=False):
        b.store(DOUBLE(math.nan), buffers[1])


def _is_finite(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return b.fcmp_ordered("==", b.fsub(x, x), DOUBLE(0.0))


def _for_each(
    b: ir.IRBuilder, first: ir.Value, last: ir.Value, body: Callable[[ir.Value], object]
) -> None:
    """Emit a loop over indices, which may have no iteration."""

    def iteration(i: ir.Value, _: object) -> tuple[ir.Value, ...]:
        body(i)
        return ()

    counted(b, first, last, 1, [], iteration)


def _at(b: ir.IRBuilder, array: ir.Value, i: ir.Value) -> ir.Value:
    return b.gep(array, [i], source_etype=DOUBLE)


def _log_density(module: Module, runner: NativeRunner, fallback: int) -> None:
    kind = ir.FunctionType(INT32, [INT, POINTER, POINTER, POINTER, POINTER])
    f = ir.Function(module, kind, "log_density")
    size, point, gradient, value, user = f.args
    b = ir.IRBuilder(f.append_basic_block())
    with b.if_then(b.icmp_signed("!=", b.load(user, typ=INT), INT(0))):
        b.ret(INT32(1))
    _run(b, runner, [point, value, gradient])
    with b.if_then(b.not_(_is_finite(b, b.load(value, typ=DOUBLE)))):
        args = (b.ptrtoint(x, INT) for x in (point, gradient, value))
        b.ret(b.trunc(_called(b, fallback, *args), INT32))

    def iteration(i: ir.Value) -> None:
        place = _at(b, gradient, i)
        x = b.load(place, typ=DOUBLE)
        b.store(b.select(b.fcmp_ordered("==", x, DOUBLE(0.0)), DOUBLE(FLAT), x), place)

    _for_each(b, INT(0), size, iteration)
    b.ret(INT32(0))


def _expand(module: Module, runner: NativeRunner | None, fallback: int, keeps_point: bool) -> None:
    """Emit the values that the program makes, nan for values that come later, and the point if
    `keeps_point`.
    """
    kind = ir.FunctionType(INT32, [INT, INT, POINTER, POINTER, POINTER])
    f = ir.Function(module, kind, "expand")
    size, expanded, point, draw, _ = f.args
    b, result = ir.IRBuilder(f.append_basic_block()), 0
    if runner is not None:
        first = b.alloca(DOUBLE)
        buffers = [point, first]
        for v in runner.program.outputs[1:]:
            buffers.append(_at(b, draw, INT(result)))
            result += v.size
        _run(b, runner, buffers)
        # The difference of what is finite with itself is zero.
        total = b.alloca(DOUBLE)
        b.store(b.load(first, typ=DOUBLE), total)

        def add(i: ir.Value) -> None:
            x = b.load(_at(b, draw, i), typ=DOUBLE)
            b.store(b.fadd(b.load(total, typ=DOUBLE), b.fsub(x, x)), total)

        _for_each(b, INT(0), INT(result), add)
        with b.if_then(b.not_(_is_finite(b, b.load(total, typ=DOUBLE)))):
            _called(b, fallback, b.ptrtoint(point, INT), b.ptrtoint(draw, INT), INT(0))
    later = b.sub(expanded, size) if keeps_point else expanded
    _for_each(b, INT(result), later, lambda i: b.store(DOUBLE(math.nan), _at(b, draw, i)))
    _for_each(
        b,
        later,
        expanded,
        lambda i: b.store(b.load(_at(b, point, b.sub(i, later)), typ=DOUBLE), _at(b, draw, i)),
    )
    b.ret(INT32(0))
