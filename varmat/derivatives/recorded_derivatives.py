"""Recorded Hessians and Jacobians, and recorded products with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from varmat.derivatives.inputs_and_outputs import plain_copy
from varmat.derivatives.nested import holds_outer
from varmat.derivatives.recorded_base import Recording, Recordings
from varmat.derivatives.recorded_programs import (
    part_of,
    product_program,
    tangent_program,
    template_of,
    weighted_program,
)
from varmat.derivatives.recorded_rows import ArgumentRows, Mapped, repeated, row_of, run_rows
from varmat.derivatives.reverse import DerivedFunction, is_plain
from varmat.derivatives.structure import (
    Arguments,
    ArgumentTree,
    derivative_block,
    leaves_of,
    matching_leaves,
    plain_tree,
    rebuilt,
    size_of,
    structure_of,
    unit_rows,
)
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.run import runner_for
from varmat.typing import Function, Operand, Result, Settings

if TYPE_CHECKING:
    from varmat.derivatives.recorded_base import InAxes, Made, Others


T = TypeVar("T")


class RecordedFunctional(Recordings, Generic[T]):
    """A functional of a function, recorded once; made by `varmat.recorded`.

    Parameters
    ----------
    functional : Derived
        What the functional returns for a function without a point.
    runner : str
    """

    # The name of the argument in messages.
    title = "x"
    # The number of arguments that are not of the function alone: the point, and a vector.
    operands = 1
    _eager: Callable[..., T]

    def __init__(self, functional: DerivedFunction[T], runner: str = "auto") -> None:
        super().__init__(functional, runner)
        self.function: Function = functional.__wrapped__
        self._eager = functional
        self._name = functional.functional

    def __reduce__(self) -> tuple[object, ...]:
        # Programs are not pickled, but written anew.
        return type(self), (self._eager, self.runner)

    def __call__(self, *args: object, **named: object) -> T:
        raise NotImplementedError

    def _known(
        self, points: ArgumentTree, args: Sequence[object] = (), named: Settings | None = None
    ) -> Recording:
        """The recording for arguments like these. Raises `ElsewhereError` if the function caught a
        refusal, so that there is none.
        """
        structures = (points.shape,) if type(points) is np.ndarray else (structure_of(points),)
        others: Others = {**(named or {}), **dict(enumerate(map(Mapped.key, args), 1))}
        return self._found(structures, others) or self._recording(
            structures, others, points, args, named
        )

    def _of_rows(self, rows: ArgumentRows) -> tuple[Recording, ArgumentTree, list[np.ndarray]]:
        """The recording for calls, the first point, and the rows of its arguments but the vector's.
        Raises `ElsewhereError` if there are too few arguments, so that the functional says what is
        missing.
        """
        call, data = rows.first(range(self.operands))
        if len(call) < self.operands:
            raise ElsewhereError
        points = self._points(call[0])
        return self._known(points, call[self.operands :]), points, [*rows.leaves(0), *data]

    def _points(self, x: ArgumentTree) -> ArgumentTree:
        return x if is_plain(x) else plain_tree(self._name, self.title, x)


def _is_inside(args: Arguments) -> bool:
    """Whether arguments have derivatives of their own. Inside another functional they do, and
    nothing is recorded.
    """
    return not all(map(is_plain, args)) and holds_outer(args)


def _outputs(run: Function, arguments: Sequence[Operand]) -> list[Operand]:
    """The outputs of a run, without the zero. Raises `ElsewhereError` unless all are finite, and
    where Python's floats raise or an argument is refused.
    """
    try:
        found: list[Operand] = run(arguments)
    except (ArithmeticError, ValueError) as error:
        raise ElsewhereError from error
    for x in found:
        if not np.isfinite(x).all():
            raise ElsewhereError
    return found[1:]


def _matrices(
    known: Recording, leaves: list[np.ndarray], like: list[Operand], workers: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The outputs of a program at rows of arguments as the rows of matrices, one for each unit
    vector, and which matrices hold. The vectors have the shapes of `like` and are the last
    arguments of the program.
    """
    count, n, units = len(leaves[0]) if leaves else 1, size_of_all(like), unit_rows(like)
    # The first is zero.
    outputs = [np.zeros((count, n, *v.shape)) for v in known.program.outputs]
    # As few maps as possible, and as long.
    if count < n:
        for k in range(count):
            given = [*(repeated(x[k], n) for x in leaves), *units]
            known.run.map(given, [x[k] for x in outputs], workers)
    else:
        for k in range(n):
            given = [*leaves, *(repeated(unit[k], count) for unit in units)]
            known.run.map(given, [x[:, k] for x in outputs], workers)
    whole = np.concatenate([x.reshape(count, n, math.prod(x.shape[2:])) for x in outputs], axis=2)
    return whole[..., 1:], np.isfinite(whole).all(axis=(1, 2))


def _blocks(matrices: np.ndarray, y: ArgumentTree, points: ArgumentTree) -> ArgumentTree:
    """Matrices of derivatives of all results with respect to all elements of the point, taken apart
    into the structure of both.
    """
    results, leaves, count = leaves_of(y), leaves_of(points), len(matrices)
    ends = np.cumsum([0, *map(size_of, leaves)]).tolist()
    blocks, start = [], 0
    for result in results:
        rows = matrices[:, start : start + size_of(result)]
        start += size_of(result)
        parts = [
            derivative_block(rows[..., i:j], (count, *np.shape(result)), x)
            for i, j, x in zip(ends, ends[1:], leaves, strict=False)
        ]
        blocks.append(rebuilt(points, parts))
    return rebuilt(y, blocks)


class RecordedProduct(RecordedFunctional[T]):
    """`varmat.hessian_times_vector` and `varmat.hessp`, recorded once."""

    operands = 2

    def __call__(self, *args: object, **named: object) -> T:
        if len(args) < 2 or _is_inside(args):
            return self._eager(*args, **named)  # which says what is missing
        x, v, *others = args
        points = self._points(x)
        direction = matching_leaves(self._name, "v", v, points)
        try:
            products = _outputs(
                self._known(points, others, named).run, [*leaves_of(points), *direction]
            )
        except ElsewhereError:
            return self._eager(*args, **named)
        return rebuilt(points, products)  # type: ignore[return-value]

    def _mapped(self, rows: ArgumentRows, workers: int | None) -> tuple[ArgumentTree, np.ndarray]:
        known, points, arguments = self._of_rows(rows)
        matching_leaves(self._name, "v", rows.call(0)[1], points)
        return run_rows(known.run, [*arguments, *rows.leaves(1)], points, workers)

    def _made(self, points: ArgumentTree, args: Arguments, named: Settings) -> Made:
        program = product_program(self._name, self.function, points, args, named or {})
        # What a Hessian has to know: its rows are of the structure of the point.
        more = template_of(points, leaves_of(points)), False
        return program, runner_for(program, self.runner), more


class RecordedJacobian(RecordedFunctional[T]):
    """`varmat.jacobian`, recorded once: a product for each input or for each output."""

    def __call__(self, *args: object, **named: object) -> T:
        if not args or _is_inside(args):
            return self._eager(*args, **named)
        points = self._points(args[0])
        leaves = [repeated(x, 1) for x in leaves_of(points)]
        try:
            known = self._known(points, args[1:], named)
            blocks, holds = self._blocks(known, points, leaves, 1)
            if not holds.all():
                raise ElsewhereError
        except ElsewhereError:
            return self._eager(*args, **named)
        return row_of(blocks, 0)  # type: ignore[return-value]

    def _mapped(self, rows: ArgumentRows, workers: int | None) -> tuple[ArgumentTree, np.ndarray]:
        return self._blocks(*self._of_rows(rows), workers)

    def _blocks(
        self, known: Recording, points: ArgumentTree, leaves: list[np.ndarray], workers: int | None
    ) -> tuple[ArgumentTree, np.ndarray]:
        """The Jacobians at rows of points, and which hold."""
        template, by_inputs = known.more
        like = leaves_of(points if by_inputs else template)
        matrices, holds = _matrices(known, leaves, like, workers)
        if by_inputs:
            matrices = matrices.swapaxes(1, 2)
        return _blocks(matrices, template, points), holds

    def _made(self, points: ArgumentTree, args: Arguments, named: Settings) -> Made:
        given = self._name, self.function, (points,), args, named
        made = weighted_program(*given)
        results = len(leaves_of(made.template))
        by_inputs = size_of_all(points) < size_of_all(made.template) and not made.only_reverse
        if by_inputs:
            made = tangent_program(*given)
        program = part_of(made.program, slice(None), slice(1 + results, None))
        return program, runner_for(program, self.runner), (made.template, by_inputs)


class RecordedHessian(RecordedJacobian[T]):
    """`varmat.hessian`, recorded once: the product with each unit vector."""

    _made = RecordedProduct._made


def size_of_all(tree: ArgumentTree) -> int:
    """The number of elements of all leaves."""
    return sum(map(size_of, leaves_of(tree)))


class RecordedTangent(RecordedFunctional[T]):
    """`varmat.jvp`, recorded once."""

    title = "primals"
    operands = 2

    def __call__(self, *args: object, **named: object) -> T:
        return self._at(*args, **named)  # type: ignore[return-value]

    def _at(self, primals: ArgumentTree, tangents: ArgumentTree) -> ArgumentTree:
        if not isinstance(primals, (tuple, list)) or _is_inside((*primals, tangents)):
            return self._eager(primals, tangents)
        points = plain_tree(self._name, self.title, primals)
        directions = matching_leaves(self._name, "tangents", tangents, points)
        try:
            known = self._known(points)
            found = _outputs(known.run, [*leaves_of(points), *directions])
        except ElsewhereError:
            return self._eager(primals, tangents)
        results = len(found) // 2
        return rebuilt(known.more, found[:results]), rebuilt(known.more, found[results:])

    def _mapped(self, rows: ArgumentRows, workers: int | None) -> tuple[ArgumentTree, np.ndarray]:
        call = rows.call(0)
        if len(call) != 2 or not isinstance(call[0], (tuple, list)):
            raise ElsewhereError  # the functional says what is wrong
        known, points, arguments = self._of_rows(rows)
        matching_leaves(self._name, "tangents", call[1], points)
        template = known.more, known.more
        return run_rows(known.run, [*arguments, *rows.leaves(1)], template, workers)

    def _made(self, points: Sequence[object], *_: object) -> Made:
        made = tangent_program(self._name, self.function, points)
        program = part_of(made.program, slice(None), slice(1, None))
        return program, runner_for(program, self.runner), made.template


class RecordedPullback(RecordedFunctional[T]):
    """`varmat.vjp`, recorded once: the values by one program, and the cotangents of the primals by
    another.
    """

    title = "primals"

    def __call__(self, *primals: object, **named: object) -> T:
        if named or _is_inside(primals):
            return self._eager(*primals, **named)
        points = rebuilt(
            primals, map(plain_copy, leaves_of(plain_tree(self._name, self.title, primals)))
        )
        leaves = leaves_of(points)
        try:
            known = self._known(points)
            run_values, template = known.more
            values = _outputs(run_values, leaves)
        except ElsewhereError:
            return self._eager(*points)

        def pullback(cotangent: ArgumentTree) -> tuple[Operand, ...]:
            weights = matching_leaves(self._name, "the cotangent", cotangent, template)
            try:
                found = _outputs(known.run, [*leaves, *weights])
            except ElsewhereError:
                return self._eager(*points)[1](cotangent)  # type: ignore[no-any-return, index]
            return rebuilt(points, found)

        return rebuilt(template, values), pullback  # type: ignore[return-value]

    def map(self, *primals: object, in_axes: InAxes = 0, workers: int | None = None) -> Result:
        """The values of many calls, as `Recordings.map`, and what pulls back their cotangents,
        which have a first axis for the calls too.
        """

        def run(rows: ArgumentRows) -> tuple[ArgumentTree, np.ndarray]:
            call, count = rows.call(0), len(primals)
            points = self._points(tuple(call[:count]))
            known = self._known(points)
            run_values, template = known.more
            arguments = rows.leaves(*range(len(call)))
            if len(call) == count:
                return run_rows(run_values, arguments, template, workers)
            matching_leaves(self._name, "the cotangent", call[-1], template)
            return run_rows(known.run, arguments, points, workers)

        def pullback(cotangent: ArgumentTree) -> ArgumentTree:
            both = ArgumentRows(rows.name, (*primals, cotangent), (*rows.axes, 0))
            return both.results(run, lambda *given: self._eager(*given[:-1])[1](given[-1]))  # type: ignore[index]

        rows = ArgumentRows(f"{self.__name__}.map", primals, in_axes)
        return rows.results(run, lambda *given: self._eager(*given)[0]), pullback  # type: ignore[index]

    def _made(self, points: Sequence[object], *_: object) -> Made:
        made = weighted_program(self._name, self.function, points)
        leaves, results = len(leaves_of(points)), len(leaves_of(made.template))
        values = part_of(made.program, slice(leaves), slice(1, 1 + results))
        program = part_of(made.program, slice(None), slice(1 + results, None))
        return (
            program,
            runner_for(program, self.runner),
            (runner_for(values, self.runner), made.template),
        )


# By the name of the functional.
DERIVATIVES: dict[str, Function] = {
    "hessian": RecordedHessian, "hessian_times_vector": RecordedProduct, "hessp": RecordedProduct,
     "jacobian": RecordedJacobian,
    "jvp": RecordedTangent, "vjp": RecordedPullback,
}  # fmt: skip
