"""From a program to a Python function: the only module that makes steps text.

The programs have numbers, and vectors of one length, which stands for any length: sums over
elements, such as densities of one variable. Numbers are Python's floats, with the functions of
`math`. Vectors are computed by a straight line of NumPy calls. Long ones are computed block by
block, so that everything stays in the cache: a step writes into a buffer as long as a block, which
is used again as soon as nothing reads it, or into the memory of a result.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from string import Formatter
from types import FunctionType
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.elementwise import ROWS
from varmat.core.rules import function_of
from varmat.plain_arrays import BLOCK
from varmat.programs.ir.kernel import Kernel
from varmat.programs.ir.program import BOOL, ElsewhereError, Program, Step, Value, read_values
from varmat.programs.kernels.elementwise import SELECT
from varmat.programs.kernels.matrices import MATMUL
from varmat.programs.kernels.reductions import SUM, Reduce
from varmat.programs.passes import without_dead_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from varmat.programs.ir.program import Array

# Texts by ufunc or kernel. Numbers have some others: a choice is a branch, whose other side may be
# undefined.
FORMS = {
    np.add: "({} + {})", np.subtract: "({} - {})", np.multiply: "({} * {})", np.divide: "({} / {})",
     np.negative: "(-{})",
    np.less: "({} < {})", np.less_equal: "({} <= {})", np.greater: "({} > {})",
     np.greater_equal: "({} >= {})",
    np.equal: "({} == {})", np.not_equal: "({} != {})", np.logical_and: "({} & {})",
     np.logical_or: "({} | {})",
    MATMUL: "number({}.dot({}))", Reduce(np.add, (0,)): "total({})",
}  # fmt: skip
OF_NUMBERS = {SELECT: "({1} if {0} else {2})", np.isfinite: "(-inf < {} < inf)"}
# The element that decides for all in a comparison with a number; it is nan if one of them is.
DECIDES = {
    np.less: "largest",
    np.less_equal: "largest",
    np.greater: "smallest",
    np.greater_equal: "smallest",
}


def function_of_program(
    program: Program, names: Sequence[str], title: str, by_blocks: bool = False
) -> tuple[Callable[..., Array], FunctionType]:
    """Make the function of a program's arguments, called by `names`, and the same in IEEE
    arithmetic, for where Python's floats raise.

    It returns the first output and a list of the others: floats and new arrays. Tracebacks and
    profilers show its text under the title."""
    body = (BlockText if by_blocks else Straight)(without_dead_steps(program), names)
    first, *others = body.results()
    lines = [*body.lines, f"return {first}, [{', '.join(others)}]"]
    function = function_of(
        ", ".join(names), lines, body.functions, f"{title}{', by blocks' * by_blocks}"
    )
    # With the builtins, because NumPy imports other modules when it first needs them.
    return function, FunctionType(function.__code__, function.__globals__ | body.exact)


def total(x: np.ndarray) -> float:
    """Sum a vector."""
    # Below some 30 elements Python's sum is faster than the set-up of NumPy's.
    return sum(x.tolist()) if x.size < 32 else float(np.add.reduce(x))


def ufunc_of(step: Step | None) -> np.ufunc | None:
    """Return the ufunc that a step applies; None if it applies none."""
    function = None if step is None else step.kernel.elementwise
    return function if isinstance(function, np.ufunc) else None


class Straight:
    """The text of a program as a straight line.

    Attributes
    ----------
    lines : list of str
        The statements before the results.
    functions, exact : dict
        The functions that the text calls, and the functions for IEEE arithmetic.
    """

    def __init__(self, program: Program, names: Sequence[str]) -> None:
        self.program, self.arguments = program, names
        self.lines: list[str] = []
        self.functions: dict[str, object] = {
            "inf": math.inf, "nan": math.nan, "number": float, "total": total,
             "Elsewhere": ElsewhereError,
            "smallest": np.minimum.reduce, "largest": np.maximum.reduce,
        }  # fmt: skip
        self.exact: dict[str, object] = {"number": np.float64, "total": np.add.reduce}
        self._names = {id(v): name for v, name in zip(program.arguments, names, strict=True)}
        self._uses = read_values(program.steps, program.outputs)
        self.steps()

    def steps(self) -> None:
        """Write what has to be done in any case."""
        for step in self.program.steps:
            if step.kernel.is_guard:
                self.lines.append(self.guard(step))

    def results(self) -> list[str]:
        """Write the texts of the outputs."""
        taken = {id(v) for v in self.program.arguments}
        texts = []
        for value in self.program.outputs:
            text = self.of(value)
            # A result is a new array.
            texts.append(
                (f"{text} * 1.0" if id(value) in taken else text)
                if value.shape
                else f"float({text})"
            )
            taken.add(id(value))
        return texts

    def of(self, value: Value) -> str:
        """Return the text of a value: its name, if it has one or is read more than once."""
        name = self._names.get(id(value))
        if name is not None:
            return name
        if value.data is not None:
            return repr(value.data.item())
        text = self.expression(value.step)  # type: ignore[arg-type]
        return text if self._uses[id(value)] == 1 else self.named(value, text)

    def named(self, value: Value, text: str) -> str:
        name = self._names[id(value)] = f"v_{len(self._names)}"
        self.lines.append(f"{name} = {text}")
        return name

    def expression(self, step: Step) -> str:
        """Return the text of what a step computes."""
        kernel, is_vector, ufunc = step.kernel, bool(step.results[0].shape), ufunc_of(step)
        texts = [*map(self.of, step.operands)]
        form = FORMS.get(ufunc or kernel) or (
            None if is_vector else OF_NUMBERS.get(ufunc or kernel)
        )
        if form is not None:
            return form.format(*texts)
        if kernel is SUM:
            return f"({' + '.join(texts)})"
        of_vectors = any(v.shape for v in step.operands)
        call = f"{self.function(kernel, of_vectors)}({', '.join(texts)})"
        return f"number({call})" if of_vectors and not is_vector else call

    def function(self, kernel: Kernel, of_vectors: bool) -> str:
        """Return the name of a kernel's function."""
        function, name = kernel.elementwise, kernel.name
        if of_vectors:
            self.functions[name] = function
            return name
        name = f"{name}_scalar"
        # The function of the same row of the elementwise table.
        self.functions[name] = next(
            (row.scalar for row in ROWS.values() if row.resolved is function), function
        )
        self.exact[name] = function
        return name

    def guard(self, step: Step) -> str:
        condition, otherwise = self.holds(step.operands[0]), step.kernel.otherwise
        if otherwise is None:
            return f"if not {condition}: raise Elsewhere"
        name = f"otherwise_{len(self.functions)}"
        self.functions[name] = otherwise
        return f"if not {condition}: return {name}({', '.join(self.arguments)})"

    def holds(self, condition: Value) -> str:
        """Return the text of whether a condition holds for all elements."""
        ufunc, operands = (
            ufunc_of(condition.step),
            condition.step.operands if condition.step else (),
        )
        if ufunc is np.logical_and:
            return f"({' and '.join(map(self.holds, operands))})"
        if not condition.shape:
            return self.of(condition)
        if ufunc in DECIDES and not operands[1].shape:
            return FORMS[ufunc].format(
                f"{DECIDES[ufunc]}({self.of(operands[0])})", self.of(operands[1])
            )
        return f"{self.of(condition)}.all()"


class BlockText(Straight):
    """The text of a program as a loop over blocks.

    Numbers are computed before the loop or, if they need its sums, after it.
    """

    def steps(self) -> None:
        # The register that is defined (or None), and the text, with registers in braces.
        self._instructions: list[tuple[str | None, str]] = []
        # Registers that are separate arrays, because their steps cannot write in place.
        self._own: set[str] = set()
        self._arrays = [self._names[id(v)] for v in self.program.arguments if v.shape]
        self._names |= {id(v): f"{self._names[id(v)]}_" for v in self.program.arguments if v.shape}
        deferred: set[int] = set()
        guards = []
        for step in self.program.steps:
            is_late, is_vector = (
                any(id(v) in deferred for v in step.operands),
                any(v.shape for v in step.operands),
            )
            if is_late and is_vector:
                raise ValueError("a vector needs a sum over another, which takes two loops")
            is_sum = is_vector and any(not v.shape for v in step.results)
            deferred.update(id(v) for v in step.results if is_late or is_sum)
            if is_sum:
                text = self.expression(step)
                self._instructions.append((None, f"{self.named(step.results[0], '0.0')} += {text}"))
            elif step.kernel.is_guard and is_vector:
                self._instructions.append((None, self.guard(step)))
            elif step.kernel.is_guard:
                guards.append(step) if is_late else self.lines.append(self.guard(step))
        buffers: dict[str, str] = {}
        for value in self.program.outputs:
            if value.shape:
                buffers[self._output(value, buffers)] = f"o_{len(buffers)}"
        self._count = len(buffers)
        self._loop(*self._buffered(buffers))
        self.lines += map(self.guard, guards)

    def results(self) -> list[str]:
        arrays = (f"a_{i}" for i in range(self._count))
        return [next(arrays) if v.shape else f"float({self.of(v)})" for v in self.program.outputs]

    def of(self, value: Value) -> str:
        return (
            super().of(value)
            if id(value) in self._names or not value.shape
            else self._register(value)
        )

    def _register(self, value: Value) -> str:
        step = value.step
        assert step is not None
        if ufunc_of(step) is not None and value.dtype != BOOL:
            operands = ", ".join(map(self.of, step.operands))
            register = self._defined(f"{self.function(step.kernel, True)}({operands}, out=@)")
        else:
            register = self._defined(f"@ = {self.expression(step)}")
            self._own.add(register)
        self._names[id(value)] = f"{{{register}}}"
        return self._names[id(value)]

    def _defined(self, text: str) -> str:
        """Define a register by a text, in which @ stands for it."""
        register = f"r_{len(self._instructions)}"
        self._instructions.append((register, text.replace("@", f"{{{register}}}")))
        return register

    def _output(self, value: Value, placed: Container[str]) -> str:
        """Return the register whose memory is a result's."""
        text = self.of(value)
        register = text.strip("{}")
        if text == register or register in self._own or register in placed:
            return self._defined(f"copyto(@, {text})")
        return register

    def _buffered(self, buffers: dict[str, str]) -> tuple[list[str], int]:
        """Return the lines of the loop, with buffers instead of registers, and the number of
        buffers.
        """
        operands = [
            {name for _, name, _, _ in Formatter().parse(text) if name} - {result}
            for result, text in self._instructions
        ]
        last = {operand: i for i, names in enumerate(operands) for operand in names}
        place = {**{name: name for name in self._own}, **buffers}
        buffered, lines, count = set(last) - set(place), [], 0
        free: list[str] = []
        for i, (register, text) in enumerate(self._instructions):
            free += [place[name] for name in sorted(operands[i] & buffered) if last[name] == i]
            if register is not None and register not in place:
                if not free:
                    free, count = [f"b_{count}"], count + 1
                place[register] = free.pop()
            lines.append(text.format_map(place))
        return lines, count

    def _loop(self, body: list[str], count: int) -> None:
        buffers, arrays = [f"b_{i}" for i in range(count)], [f"a_{i}" for i in range(self._count)]
        self.functions |= {"copyto": np.copyto, "empty": np.empty}
        self.lines += [
            f"total_ = len({self._arrays[0]})",
            # Blocks of about the same length.
            f"length_ = -(-total_ // max(1, round(total_ / {BLOCK})))",
            *(f"{name} = empty(total_)" for name in arrays),
            *(f"{name} = empty(length_)" for name in buffers),
            "for start_ in range(0, total_, length_):",
            "    part_ = slice(start_, start_ + length_)",
            *(f"    {name}_ = {name}[part_]" for name in self._arrays),
            *(f"    o_{i} = {name}[part_]" for i, name in enumerate(arrays)),
            *(["    if total_ - start_ < length_:"] if buffers else []),
            *(f"        {name} = {name}[: total_ - start_]" for name in buffers),
            *(f"    {line}" for line in body),
        ]
