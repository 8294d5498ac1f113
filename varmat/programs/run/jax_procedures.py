"""Procedures as functions of JAX: what statements overwrite is carried through its loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from varmat.programs.ir import statements as s
from varmat.programs.kernels.procedure import Line
from varmat.programs.run.jax import translated

if TYPE_CHECKING:
    from jax import Array as JaxArray

    from varmat.programs.ir.kernel import Module
    from varmat.programs.kernels.procedure import Procedure

# The values of all cells and arrays, and of stacks with the numbers of their values.
State = dict[int, Any]


class Traced:
    """A procedure that JAX traces."""

    def __init__(self, jax: Module, kernel: Procedure) -> None:
        self.jax, self.kernel, self.numbers = jax, kernel, dict[object, int]()
        self.programs = {
            statement: translated(jax, statement.program)
            for statement in s.walk(kernel.body)
            if isinstance(statement, Line)
        }

    def __call__(self, *operands: JaxArray) -> tuple[JaxArray, ...]:
        jnp = self.jax.numpy
        self.numbers, state = {}, dict[int, Any]()
        for x, value in zip(self.kernel.inputs, operands, strict=True):
            state[self.number(x)] = jnp.asarray(value, float)
        for output in (*self.kernel.outputs, *s.variables(self.kernel.body)):
            if self.number(output) not in state:
                state[self.number(output)] = (
                    (jnp.zeros(max(output.capacity, 1)), jnp.array(0))
                    if isinstance(output, s.Stack)
                    else jnp.zeros(output.shape if isinstance(output, s.Storage) else ())
                )
        state[-1] = jnp.array(True)
        state = self.block(self.kernel.body, state)
        result = (state[self.number(x)] for x in self.kernel.outputs)
        return tuple(jnp.where(state[-1], x, jnp.nan) for x in result)

    def number(self, x: object) -> int:
        return self.numbers.setdefault(x, len(self.numbers))

    def value(self, x: s.Number, state: State) -> Any:
        return state[self.number(x)] if isinstance(x, s.Cell) else x

    def integer(self, x: s.Number, state: State) -> Any:
        return self.jax.numpy.asarray(self.value(x, state)).astype(int)

    def indices(self, x: s.Load | s.Store | s.AddAt, state: State) -> tuple[JaxArray, ...]:
        return tuple(
            sum((n * self.integer(cell, state) for cell, n in i.terms), i.constant)
            if isinstance(i, s.Affine)
            else self.integer(i, state)
            for i in x.indices
        )

    def block(self, statements: Sequence[s.Statement], state: State) -> State:
        state = {**state}
        for statement in statements:
            changed: State | None = getattr(self, s.name_of(statement))(statement, state)
            state.update(changed or {})
        return state

    def line(self, x: Line, state: State) -> State:
        result, holds = self.programs[x](*(self.value(value, state) for value in x.inputs))
        new = {self.number(cell): value for cell, value in zip(x.outputs, result, strict=False)}
        for cell, item in zip(x.sums, result[len(x.outputs) :], strict=True):
            new[self.number(cell)] = state[self.number(cell)] + item
        return {**new, -1: state[-1] & holds}

    def load(self, x: s.Load, state: State) -> State:
        return {self.number(x.out): state[self.number(x.array)][self.indices(x, state)]}

    def store(self, x: s.Store, state: State) -> State:
        at, array = self.indices(x, state), state[self.number(x.array)]
        new = {self.number(x.array): array.at[at].set(self.value(x.value, state))}
        if x.log is not None:
            place = self.jax.numpy.array(0)
            for i, n in zip(at, x.array.shape, strict=True):
                place = place * n + i
            new |= self._pushed(x.log, [place, array[at]], state)
        return new

    def add_at(self, x: s.AddAt, state: State) -> State:
        array, value = state[self.number(x.array)], self.value(x.value, state)
        return {self.number(x.array): array.at[self.indices(x, state)].add(value)}

    def fill(self, x: s.Fill, state: State) -> State:
        value = state[self.number(x.value)] if isinstance(x.value, s.Storage) else x.value
        return {self.number(x.array): self.jax.numpy.full(x.array.shape, value, float)}

    def declare(self, x: s.Declare, state: State) -> State:
        if x.variable.is_temporary:
            return {}
        before = state[self.number(x.variable)]
        value = x.variable.unset if isinstance(x.variable, s.Cell) else self.jax.numpy.nan
        return {self.number(x.variable): self.jax.numpy.full(before.shape, value, float)}

    def end(self, x: s.End, state: State) -> State:
        return {-1: self.jax.numpy.array(False)}

    def loop(self, x: s.For, state: State) -> State:
        jnp, lower, upper = self.jax.numpy, *(self.integer(v, state) for v in (x.lower, x.upper))

        def iteration(i: JaxArray, state: State) -> State:
            index = upper - i + lower if x.backwards else i
            return self.block(x.body, {**state, self.number(x.index): jnp.asarray(index, float)})

        result: State = self.jax.lax.fori_loop(lower, upper + 1, iteration, state)
        return result

    def while_loop(self, x: s.While, state: State) -> State:
        begin = self.block(x.condition, state)
        result: State = self.jax.lax.while_loop(
            lambda state: (self.value(x.holds, state) != 0.0) & state[-1],
            lambda state: self.block(x.condition, self.block(x.body, state)),
            begin,
        )
        return result

    def branch(self, x: s.If, state: State) -> State:
        sides: list[Callable[[State], State]] = [
            lambda state, body=body: self.block(body, state)  # type: ignore[misc]
            for body in (x.yes, x.no)
        ]
        result: State = self.jax.lax.cond(self.value(x.holds, state) != 0.0, *sides, state)
        return result

    def _pushed(self, stack: s.Stack, values: Sequence[JaxArray], state: State) -> State:
        saved, top = state[self.number(stack)]
        for i, x in enumerate(values):
            saved = saved.at[top + i].set(x)
        return {
            self.number(stack): (saved, top + len(values)),
            -1: state[-1] & (top + len(values) <= stack.capacity),
        }

    def push(self, x: s.Push, state: State) -> State:
        return self._pushed(x.stack, [self.value(cell, state) for cell in x.cells], state)

    def pop(self, x: s.Pop, state: State) -> State:
        saved, top = state[self.number(x.stack)]
        first = top - len(x.cells)
        result = {self.number(cell): saved[first + i] for i, cell in enumerate(x.cells)}
        return {**result, self.number(x.stack): (saved, first)}

    def recall(self, x: s.Recall, state: State) -> State:
        (saved, _), first = state[self.number(x.stack)], self.integer(x.cursor, state)
        result = {self.number(cell): saved[first + i] for i, cell in enumerate(x.cells)}
        after = self.jax.numpy.asarray(first + len(x.cells), float)
        return {**result, self.number(x.cursor): after}

    def release(self, x: s.Release, state: State) -> State:
        saved, _ = state[self.number(x.stack)]
        return {self.number(x.stack): (saved, self.integer(x.mark, state))}

    def mark(self, x: s.Mark, state: State) -> State:
        return {self.number(x.out): self.jax.numpy.asarray(state[self.number(x.stack)][1], float)}

    def undo(self, x: s.Undo, state: State) -> State:
        def take_back(result: tuple[JaxArray, JaxArray]) -> tuple[JaxArray, JaxArray]:
            array, top = result
            at = saved[top - 2].astype(int)
            return array.reshape(-1).at[at].set(saved[top - 1]).reshape(array.shape), top - 2

        saved, top = state[self.number(x.log)]
        mark = top - 2 if x.mark is None else self.integer(x.mark, state)
        array, top = self.jax.lax.while_loop(
            lambda result: result[1] > mark, take_back, (state[self.number(x.array)], top)
        )
        return {self.number(x.array): array, self.number(x.log): (saved, top)}
