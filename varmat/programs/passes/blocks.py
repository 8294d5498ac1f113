"""Long arrays block by block: elementwise steps and their sums become one step, whose temporaries
stay in the cache.

Steps are assigned to rounds. A round is what can be computed before a sum of the same round is
known: first the steps that need whole arrays, then a loop for each length. Most models need one
round: the reverse pass of a sum needs what the forward pass computes, but not the sum. What nothing
outside of a loop reads is never more than a block.

Products of a vector with a matrix of long columns belong to the loop too: the rows of a block times
a vector, and a vector of the block times its rows, summed over the blocks. So a regression reads
its matrix from memory once, for the predictors and for the derivatives with respect to the
coefficients."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varmat.plain_arrays import BLOCK, blocks
from varmat.programs.ir.kernel import Kernel
from varmat.programs.ir.program import BOOL, FLOAT, Layout, Program, Step, Value
from varmat.programs.kernels.elementwise import Select, Ufunc
from varmat.programs.kernels.matrices import Matmul
from varmat.programs.kernels.reductions import Reduce, Sum
from varmat.programs.passes.rewriter import Rewriter

if TYPE_CHECKING:
    from varmat.programs.ir.kernel import Arrays, Results, Run
    from varmat.programs.ir.program import Array

# Elements and fewest rows of a block of a matrix, which the second product finds in the cache;
# smaller matrices are there as a whole.
OF_MATRIX, FEWEST_ROWS = BLOCK, 16


class Product(NamedTuple):
    """A vector times a matrix that is long along one axis, and of which the other one lies in one
    piece.
    """

    # Among the operands.
    matrix: int
    axis: int
    # Along the long axis, instead of one element for each of its.
    is_sum: bool


def product_of(step: Step) -> Product | None:
    """How a step is a product of a vector, or a matrix of one row or column, and a long matrix;
    None for all others.
    """
    if not isinstance(step.kernel, Matmul) or max(len(v.shape) for v in step.operands) != 2:
        return None
    matrices = [i for i, v in enumerate(step.operands) if len(v.shape) == 2 and min(v.shape) > 1]
    if len(matrices) != 1:
        return None
    (place,) = matrices
    matrix, vector = step.operands[place], step.operands[1 - place]
    axis = int(matrix.shape[0] < matrix.shape[1])
    fits = (
        matrix.shape[1 - axis] < matrix.shape[axis]
        and matrix.strides[1 - axis] == 8
        and vector.is_contiguous
    )
    return Product(place, axis, axis != place) if fits else None


class Loop(Kernel):
    """Steps on blocks of arrays of one length.

    Attributes
    ----------
    size : int
        Elements of the arrays.
    steps : list of Step
    outside : list of Value
        What the loop reads: arrays, and numbers.
    kept : list of Value
        Arrays that it makes and others read.
    sums : list of Step
        Those of `steps` that sum what they read over all blocks.
    block : int
        Elements of a block.
    """

    name = "loop"

    def __init__(
        self, size: int, steps: list[Step], outside: list[Value], kept: list[Value]
    ) -> None:
        self.size, self.steps, self.outside, self.kept = size, steps, outside, kept
        self.sums = [step for step in steps if is_total(step)]
        products = [(step, each) for step in steps if (each := product_of(step)) is not None]
        # The axis along which matrices are long, by the id of the value.
        self.axes = {id(step.operands[each.matrix]): each.axis for step, each in products}
        rows = [
            OF_MATRIX // (v.size // size)
            for step, each in products
            for v in (step.operands[each.matrix],)
        ]
        self.block = max(FEWEST_ROWS, min(BLOCK, *rows)) if rows else BLOCK
        # Arrays, by the id of what is made, that are no more than a block.
        self.place_of_temporary = temporaries(steps, {id(v) for v in kept})
        self.is_native = False

    def results(self, *operands: Value) -> list[Layout]:
        return [
            *((v.shape, v.dtype) for v in self.kept),
            *((step.results[0].shape, FLOAT) for step in self.sums),
        ]

    def stride(self, value: Value) -> int:
        """Bytes from one element to the next along the loop: zero for what is the same in all
        blocks.
        """
        axis = self.axes.get(id(value))
        if axis is not None:
            return value.strides[axis]
        return int(value.dtype.itemsize) if value.shape and value.size == self.size else 0

    def evaluate(self, *operands: np.ndarray) -> Results:
        results = [np.empty(shape, dtype) for shape, dtype in self.results()]
        self.bind(operands, results)()
        return tuple(results)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        arrays = {id(v): x for v, x in zip(self.outside, operands, strict=True)}
        arrays |= {id(v): x for v, x in zip(self.kept, results, strict=False)}
        flat = {
            key: x.reshape(-1) if x.ndim and key not in self.axes else x
            for key, x in arrays.items()
        }
        numbers = {
            number: np.empty(self.block, bool if number[0] else float)
            for number in set(self.place_of_temporary.values())
        }
        totals = dict(zip(map(id, self.sums), results[len(self.kept) :], strict=True))
        shares = {key: np.empty_like(total) for key, total in totals.items()}

        def part(value: Value, block: slice) -> Array:
            key = id(value.base) if id(value) not in flat else id(value)
            temporary = self.place_of_temporary.get(key)
            if temporary is not None:
                return numbers[temporary][: block.stop - block.start]
            whole = flat[key]
            if self.axes.get(key) == 1:
                return whole[:, block]
            return (
                whole[block]
                if key in self.axes or (whole.ndim and whole.size == self.size)
                else whole
            )

        calls: list[Run] = []
        for block in blocks(self.size, self.block):
            for step in self.steps:
                total = totals.get(id(step))
                share = shares.get(id(step))
                place = share if total is not None else part(step.results[0], block)
                calls.append(_bound(step, [part(v, block) for v in step.operands], place))
                if total is not None:
                    calls.append(partial(np.add, total, share, total))

        def run() -> None:
            for total in totals.values():
                total.fill(0.0)
            for call in calls:
                call()

        return run


def _bound(step: Step, operands: Arrays, place: Array) -> Run:
    """A step of a loop on a block."""
    product = product_of(step)
    if product is not None:
        matrix = operands[product.matrix]
        # `dot` is quicker, but copies what does not lie in one piece
        multiply = np.dot if matrix.flags.forc else np.matmul
        return partial(
            multiply, *(x if x is matrix else x.reshape(-1) for x in operands), place.reshape(-1)
        )
    kernel = Reduce(np.add, (0,)) if isinstance(step.kernel, Reduce) else step.kernel
    return kernel.bind(operands, [place])


def is_total(step: Step) -> bool:
    """Whether a step of a loop sums what it reads."""
    if isinstance(step.kernel, Matmul):
        product = product_of(step)
        return product is None or product.is_sum
    return isinstance(step.kernel, Reduce)


def temporaries(steps: Sequence[Step], kept: set[int]) -> dict[int, tuple[bool, int]]:
    """Numbers of blocks for values that are not kept, by their ids; a number is used again when
    nobody reads the value any more.
    """
    last = {id(v.base): i for i, step in enumerate(steps) for v in step.operands}
    places: dict[int, tuple[bool, int]] = {}
    free: dict[bool, list[int]] = {True: [], False: []}
    count = {True: 0, False: 0}
    for i, step in enumerate(steps):
        if not is_total(step) and id(step.results[0]) not in kept:
            value = step.results[0]
            kind = value.dtype == BOOL
            number = free[kind].pop() if free[kind] else count[kind]
            count[kind] = max(count[kind], number + 1)
            places[id(value)] = kind, number
        for v in {id(v.base): v.base for v in step.operands}.values():
            if last[id(v)] == i and id(v) in places:
                kind, number = places[id(v)]
                free[kind].append(number)
    return places


def lengths_of(program: Program) -> list[int | None]:
    """For each step the number of elements of its long arrays, if it can go into a loop of that
    length.
    """
    rows: list[int | None] = []
    large: set[int] = set()
    for step in program.steps:
        product = product_of(step)
        matrix = None if product is None else step.operands[product.matrix]
        rows.append(None if matrix is None else max(matrix.shape))
        if matrix is not None and matrix.size > OF_MATRIX and max(matrix.shape) > FEWEST_ROWS:
            large.add(max(matrix.shape))
    found = (
        n if n in large else None if n else _length_of(step, large)
        for n, step in zip(rows, program.steps, strict=True)
    )
    return list(found)


def _length_of(step: Step, large: Container[int]) -> int | None:
    """The same of a step that is no product with a matrix; arrays of such lengths are long because
    of a matrix.
    """
    kernel, operands = step.kernel, step.operands
    if not isinstance(kernel, (Ufunc, Select, Sum, Reduce, Matmul)):
        return None
    size = max((v.size for v in operands), default=0)
    if size <= 2 * BLOCK and size not in large:
        return None
    if not all(v.size == size and v.is_contiguous if v.shape else True for v in operands):
        return None
    if isinstance(kernel, Reduce):
        return (
            size if kernel.ufunc is np.add and len(kernel.axes) == len(operands[0].shape) else None
        )
    if isinstance(kernel, Matmul):
        return size if not step.results[0].shape and operands[0].base is not None else None
    return (
        size
        if step.results[0].size == size and len({v.shape for v in operands if v.shape}) == 1
        else None
    )


def by_blocks(program: Program) -> Program:
    """Put elementwise steps on long arrays, and sums of them, into loops."""
    lengths = lengths_of(program)
    if not any(lengths):
        return program
    # For each value: the rounds from which on a loop of its length, and other steps, may read it,
    # and that length.
    rounds: list[int] = []
    in_loops: dict[int, int] = {}
    whole: dict[int, int] = {}
    length: dict[int, int | None] = {}
    for step, size in zip(program.steps, lengths, strict=True):
        reads = [id(v.base) for v in step.operands]
        if size is None:
            at = max((whole.get(key, 0) for key in reads), default=0)
            after = (at, at)
        else:
            at = max(
                (
                    in_loops[key] if length[key] == size else whole[key]
                    for key in reads
                    if key in whole
                ),
                default=0,
            )
            after = (at + 1, at + 1) if is_total(step) else (at, at + 1)
        rounds.append(at)
        for value in step.results:
            in_loops[id(value)], whole[id(value)] = after
            length[id(value)] = size
    return _Rewriting(program, lengths, rounds).program()


class _Rewriting(Rewriter):
    """Writes loops in the place of their steps."""

    def __init__(
        self, program: Program, lengths: Sequence[int | None], rounds: Sequence[int]
    ) -> None:
        super().__init__(program)
        self._lengths, self._rounds = lengths, rounds
        self._returned = {id(v.base) for v in program.outputs}
        # By the id of a base: the loops, as rounds and lengths, and the other steps that read it.
        self._readers: dict[int, set[object]] = {}
        for step, size, at in zip(program.steps, lengths, rounds, strict=True):
            for v in step.operands:
                reader = id(step) if size is None else (at, size)
                self._readers.setdefault(id(v.base), set()).add(reader)

    def program(self) -> Program:
        for at in range(max(self._rounds) + 1):
            every = zip(self.old.steps, self._lengths, self._rounds, strict=True)
            here = [(step, size) for step, size, r in every if r == at]
            for step, size in here:
                if size is None:
                    self.keep(step)
            for size in dict.fromkeys(size for _, size in here if size is not None):
                inside = [step for step, each in here if each == size]
                if all(is_total(step) for step in inside):  # a loop would save no temporaries
                    for step in inside:
                        self.keep(step)
                else:
                    self._loop(at, size, inside)
        return super().program()

    def _loop(self, at: int, size: int, inside: list[Step]) -> None:
        made = {id(v) for step in inside for v in step.results}
        arrays = [v for step in inside if not is_total(step) for v in step.results]
        kept = [
            v
            for v in arrays
            if id(v) in self._returned or self._readers.get(id(v), set()) - {(at, size)}
        ]
        outside = {id(v): v for step in inside for v in step.operands if id(v.base) not in made}
        kernel = Loop(size, inside, list(outside.values()), kept)
        operands = [self.value(v) for v in outside.values()]
        loop = Step(kernel, operands, kernel.results(*operands))
        self.builder.steps.append(loop)
        self.replace([*kept, *(step.results[0] for step in kernel.sums)], loop.results)
