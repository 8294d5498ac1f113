"""The intermediate representation: a program is data, a list of steps on typed values.

    Value     a shape and a type, in separate memory (an argument, a constant, the result of a
              step), or a view of another value's memory
    Step      a kernel, the values it reads, the values it makes
    Program   arguments, steps, outputs

Values are made once and never change. A step that writes into an array makes a new one, and
`programs.memory` decides which values share memory. Everything is referred to by object; names
exist only in print.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import ref

import numpy as np

from varmat import html
from varmat.core.errors import TapeError, refusals

if TYPE_CHECKING:
    from collections.abc import Callable

    from jax import Array as JaxArray

    from varmat.programs.ir.kernel import Kernel

FLOAT, BOOL, OBJECT = np.dtype(np.float64), np.dtype(bool), np.dtype(object)
Shape = tuple[int, ...]
# Shape and type of what a step makes.
ArrayLayout = tuple[Shape, np.dtype]
# The position of a part in an array: offset and strides of a view, in bytes, or the indices of its
# elements in the flattened array.
Place: TypeAlias = tuple[int, Shape] | np.ndarray
# The content of a value in a run; a Python object is the one element of a list.
Array: TypeAlias = np.ndarray
# What a run returns for an output: a number if it has no axes.
Output: TypeAlias = float | np.ndarray


class ElsewhereError(Exception):
    """The straight line of a program does not hold at this point: the function must be evaluated as
    it is written.
    """


class RecordingError(TapeError):
    """A recording cannot be made once for all values."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        refusals.of_looks += 1


def contiguous_strides(shape: Shape, itemsize: int = 8) -> Shape:
    """Return the strides, in bytes, of a C-contiguous array."""
    strides, step = [], itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def broadcast_strides(shape: Shape, strides: Shape, full_shape: Shape) -> Shape:
    """Return the strides of an array as if it had been broadcast to a whole shape."""
    missing = len(full_shape) - len(shape)
    return (0,) * missing + tuple(0 if n == 1 else s for n, s in zip(shape, strides, strict=True))


def element_places(
    shape: Sequence[int], strides: Sequence[int], offset: int = 0, itemsize: int = 8
) -> np.ndarray:
    """Return the indices of the elements of a view in the flattened array, in its shape."""
    index = np.full(tuple(shape), offset // itemsize)
    for axis, (n, stride) in enumerate(zip(shape, strides, strict=True)):
        along = np.arange(n) * (stride // itemsize)
        index = index + along.reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return index


class Value:
    """An array, a number (of shape ``()``), or with dtype object something for Python steps only.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    step : Step, optional
        The step that makes it; None for arguments, constants and views.
    data : ndarray, optional
        The data of a constant, held by reference.
    base : Value
        Whose memory it lies in: itself, unless it is a view.
    offset : int
        Bytes from the beginning of that memory.
    strides : tuple of int
        Bytes.
    """

    __slots__ = ("_base", "_step", "data", "dtype", "offset", "shape", "strides")

    def __init__(
        self, shape: Shape, dtype: np.dtype = FLOAT, step: Step | None = None, data: Any = None
    ) -> None:
        self.shape, self.dtype, self.data = shape, dtype, data
        # A step holds its results. They refer to it weakly, or programs would wait for the
        # collector.
        self._step = None if step is None else ref(step)
        self._base: Value | None = None
        self.offset = 0
        self.strides: Shape = (
            contiguous_strides(shape, dtype.itemsize) if data is None else data.strides
        )

    def view(self, shape: Shape, offset: int, strides: Shape) -> Value:
        """Make a view of the memory that this value lies in."""
        value = Value.__new__(Value)
        value.shape, value.dtype, value._step, value.data = shape, self.dtype, None, None
        value._base, value.offset, value.strides = self.base, offset, strides
        return value

    def array_in(self, memory: Array) -> Array:
        """Return the array of this value, if `memory` holds its base."""
        if not self.is_view:
            return memory
        return np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)

    @property
    def base(self) -> Value:
        return self if self._base is None else self._base

    @property
    def step(self) -> Step | None:
        return None if self._step is None else self._step()

    @step.setter
    def step(self, step: Step) -> None:
        self._step = ref(step)

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of the step that makes it."""
        step = self.step
        return None if step is None else step.kernel

    @property
    def operands(self) -> tuple[Value, ...]:
        """The operands of the step that makes it."""
        step = self.step
        return () if step is None else step.operands

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    @property
    def is_view(self) -> bool:
        return self._base is not None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        return self.strides == contiguous_strides(self.shape, self.dtype.itemsize) or self.size <= 1


# A part of an array: its position, its shape there, and its value.
PackedPart = tuple[Place, Shape, Value]


class Step:
    """A kernel with its operands and results."""

    __slots__ = ("__weakref__", "kernel", "operands", "results")

    def __init__(
        self, kernel: Kernel, operands: Sequence[Value], results: Sequence[ArrayLayout]
    ) -> None:
        self.kernel = kernel
        self.operands = tuple(operands)
        self.results = tuple(Value(shape, dtype, self) for shape, dtype in results)


class Program:
    """Arguments, steps and outputs.

    Attributes
    ----------
    arguments : list of Value
    steps : list of Step
        In an order in which they can be run.
    outputs : list of Value
    """

    def __init__(self, arguments: list[Value], steps: list[Step], outputs: list[Value]) -> None:
        self.arguments, self.steps, self.outputs = arguments, steps, outputs

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return "\n".join(printed(self))

    def _repr_html_(self) -> str:
        first, *steps, last = map(str.strip, printed(self))
        rows = []
        for number, (line, step) in enumerate(zip(steps, self.steps, strict=True)):
            output, is_value, call = line.partition(" = ")
            result, call = (output, call) if is_value else ("", output)
            rows.append(
                (str(number), result, call, "" if step.kernel.is_native else "calls Python")
            )
        return html.table(["", "makes", "step", ""], rows, first) + html.paragraph(last)

    def counts(self) -> Counter[str]:
        """Count the steps of each kernel."""
        return Counter(step.kernel.name for step in self.steps)

    def python_steps(self) -> list[Step]:
        """List the steps that call Python on every runner, because their kernels have no loop."""
        return [step for step in self.steps if not step.kernel.is_native]

    def explain(self, *arguments: object) -> str:
        """Say which steps call Python and, at a point, what each of them costs; all others run
        natively without it.

        Parameters
        ----------
        *arguments : float or ndarray, optional
            One for each argument of the program.

        Returns
        -------
        str

        Examples
        --------
        >>> import numpy as np, varmat as vm
        >>> f = vm.recorded(lambda x: np.sum(np.exp(x)))
        >>> value, gradient = f(np.zeros(2))
        >>> print(f.program.explain())
        2 steps; none calls Python
        """
        from varmat.programs.ir.interpret import seconds_of

        called = self.python_steps()
        if not called:
            return f"{len(self.steps)} steps; none calls Python"
        seconds = seconds_of(self, called, arguments) if arguments else {}
        lines = [f"{len(self.steps)} steps; {len(called)} call Python:"]
        for step in called:
            cost = f"  {1e6 * seconds[id(step)]:.1f} us" if seconds else ""
            reads = ", ".join(_brackets(v.shape) or "number" for v in step.operands)
            lines.append(f"    {step.kernel.name}({reads}){cost}")
        return "\n".join(lines)

    def to_jax(self) -> Callable[..., tuple[JaxArray, ...]]:
        """Convert the program to a function of JAX, which runs on its devices, under ``jax.jit``
        and ``jax.vmap``.

        Returns
        -------
        callable
            Takes the arguments of the program and returns its outputs, a tuple of JAX arrays: for a
            recorded function its value and gradients. They have JAX's precision, which is single
            unless ``jax_enable_x64`` is set. Where a run would end, because an argument is invalid,
            a solver stops, or a choice that was recorded goes the other way, they are nan.

        Raises
        ------
        ImportError
            If JAX is not installed.
        TypeError
            If there are steps that JAX cannot run; the message names them.

        Notes
        -----
        Loops by `varmat.scan` become ``jax.lax.scan``, forward and backwards, as do the filters of
        hidden Markov chains. Solutions by `ode_rk45` and `ode_ckrk` become ``jax.lax.while_loop``,
        with the same steps. Steps that call Python, such as stiff solvers and your own operations,
        and functions that JAX does not have, cannot be converted.

        Compile the function with ``jax.jit`` before you call it often: without it JAX compiles each
        loop again at every call.

        Examples
        --------
        >>> import numpy as np, varmat as vm
        >>> f = vm.recorded(lambda x: np.sum(np.exp(x)))
        >>> value, gradient = f(np.zeros(2))
        >>> import jax  # doctest: +SKIP
        >>> jax.vmap(f.program.to_jax())(np.zeros((3, 2)))[0]  # doctest: +SKIP
        Array([2., 2., 2.], dtype=float32)
        """
        from varmat.programs.run.jax import to_jax

        return to_jax(self)

    def constants(self) -> list[Value]:
        """List the constants that steps read, or that are outputs."""
        read = (v.base for v in (*(v for step in self.steps for v in step.operands), *self.outputs))
        return list({id(v): v for v in read if v.is_constant}.values())


# --- for people ---


def printed(program: Program) -> Iterator[str]:
    """Yield the lines of a program, with names: ``a`` arguments, ``k`` constants, ``v`` everything
    else.
    """
    names: dict[int, str] = {}
    counters: Counter[str] = Counter()

    def name(value: Value) -> str:
        if id(value) not in names:
            if value.is_view:
                return f"{name(value.base)}{_place(value)}"
            if value.is_constant and not value.shape:
                return f"{value.data.item()!r}"
            letter = "k" if value.is_constant else "v" if value.step else "a"
            names[id(value)] = f"{letter}{counters[letter]}"
            counters[letter] += 1
        return names[id(value)]

    def described(value: Value) -> str:
        return f"{name(value)}{_brackets(value.shape)}"

    yield f"program({', '.join(map(described, program.arguments))})"
    for step in program.steps:
        reads = ", ".join(map(name, step.operands))
        makes = ", ".join(map(described, step.results))
        settings = step.kernel.settings(*step.operands)
        makes = f"{makes} = " if makes else ""
        settings = f"; {settings}" if settings else ""
        yield f"    {makes}{step.kernel.name}({reads}{settings})"
    yield f"    return {', '.join(map(name, program.outputs))}"


def _brackets(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]" if shape else ""


def _place(value: Value) -> str:
    """Print a view: where it begins, in elements, its shape, and its strides if it does not lie in
    one piece.
    """
    size = value.dtype.itemsize
    strides = (
        "" if value.is_contiguous else f" by {', '.join(str(s // size) for s in value.strides)}"
    )
    shape = f": {' x '.join(map(str, value.shape))}" if value.shape else ""
    return f"<{value.offset // size}{shape}{strides}>"


def read_values(steps: Iterable[Step], outputs: Iterable[Value]) -> Counter[int]:
    """Count how often each value's memory is read, by the id of its base."""
    reads = Counter(id(v.base) for step in steps for v in step.operands)
    reads.update(id(v.base) for v in outputs)
    return reads
