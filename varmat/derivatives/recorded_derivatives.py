"""Recorded Hessians and Jacobians, and recorded products with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from varmat.derivatives.inputs_and_outputs import plain_copy
from varmat.derivatives.nested import holds_outer
from varmat.derivatives.recorded_base import Recording, Recordings
from varmat.derivatives.recorded_programs import (
    part_of,
    product_program,
    tangent_program,
    weighted_program,
)
from varmat.derivatives.reverse import Derived, is_plain
from varmat.derivatives.structure import (
    derivative_block,
    leaves_of,
    matching_leaves,
    plain_tree,
    rebuilt,
    size_of,
    structure_of,
)
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.run import runner_for

if TYPE_CHECKING:
    from varmat.derivatives.recorded_base import Made, Others
    from varmat.derivatives.structure import Arguments, Tree
    from varmat.typing import Function, Operand, Settings


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

    def __init__(self, functional: Derived[T], runner: str = "auto") -> None:
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
        self, points: Tree, args: Sequence[object] = (), named: Settings | None = None
    ) -> Recording:
        """The recording for arguments like these. Raises `ElsewhereError` if the function caught a
        refusal, so that there is none.
        """
        structures = (points.shape,) if type(points) is np.ndarray else (structure_of(points),)
        others: Others = {**(named or {}), **dict(enumerate(args, 1))}
        return self._found(structures, others) or self._recording(
            structures, others, points, args, named
        )

    def _points(self, x: Tree) -> Tree:
        return x if is_plain(x) else plain_tree(self._name, self.title, x)


def _is_inside(args: Arguments) -> bool:
    """Whether arguments have derivatives of their own. Inside another functional they do, and
    nothing is recorded.
    """
    return not all(map(is_plain, args)) and holds_outer(args)


@contextmanager
def _held_to_its_line() -> Iterator[None]:
    """Raise `ElsewhereError` where Python's floats raise or an argument is refused."""
    try:
        yield
    except (ArithmeticError, ValueError) as error:
        raise ElsewhereError from error


def _outputs(run: Function, arguments: Sequence[Operand]) -> list[Operand]:
    """The outputs of a run, without the zero. Raises `ElsewhereError` unless all are finite."""
    with _held_to_its_line():
        found: list[Operand] = run(arguments)
    for x in found:
        if not np.isfinite(x).all():
            raise ElsewhereError
    return found[1:]


def _rows(known: Recording, leaves: list[Operand], like: list[Operand]) -> np.ndarray:
    """The outputs of a program as rows of a matrix, one for each unit vector. The vectors have the
    shapes of `like` and are the last arguments of the program.
    """
    n, width = sum(map(size_of, like)), sum(v.size for v in known.program.outputs[1:])
    values, rows = np.zeros(n), np.empty((n, width))
    many = getattr(known.run, "map", None)
    with _held_to_its_line():
        if many is not None and n:
            fixed = np.concatenate([np.empty(0), *map(np.ravel, leaves)])
            many(np.hstack([np.broadcast_to(fixed, (n, len(fixed))), np.eye(n)]), values, rows, 1)
        else:
            ends = np.cumsum([size_of(x) for x in like])[:-1]
            for row, unit in zip(rows, np.eye(n), strict=True):
                directions = [
                    part.reshape(np.shape(x))
                    for part, x in zip(np.split(unit, ends), like, strict=True)
                ]
                row[:] = np.concatenate(
                    [np.empty(0), *map(np.ravel, known.run([*leaves, *directions])[1:])]
                )
    if not (np.isfinite(values).all() and np.isfinite(rows).all()):
        raise ElsewhereError
    return rows


def _blocks(matrix: np.ndarray, y: Tree, points: Tree) -> Tree:
    """The matrix of derivatives of all results with respect to all elements of the point, taken
    apart into the structure of both.
    """
    results, leaves = leaves_of(y), leaves_of(points)
    ends = np.cumsum([0, *map(size_of, leaves)]).tolist()
    blocks, start = [], 0
    for result in results:
        rows = matrix[start : start + size_of(result)]
        start += size_of(result)
        parts = [
            derivative_block(rows[:, i:j], np.shape(result), x)
            for i, j, x in zip(ends, ends[1:], leaves, strict=False)
        ]
        blocks.append(rebuilt(points, parts))
    return rebuilt(y, blocks)


class RecordedProduct(RecordedFunctional[T]):
    """`varmat.hessian_times_vector` and `varmat.hessp`, recorded once."""

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
        return rebuilt(points, products)  # type: ignore[no-any-return]

    def _made(self, points: Tree, args: Arguments, named: Settings) -> Made:
        program = product_program(self._name, self.function, points, args, named or {})
        return program, runner_for(program, self.runner)


class RecordedHessian(RecordedFunctional[T]):
    """`varmat.hessian`, recorded once: the product with each unit vector."""

    def __call__(self, *args: object, **named: object) -> T:
        if not args or _is_inside(args):
            return self._eager(*args, **named)
        points = self._points(args[0])
        leaves = leaves_of(points)
        try:
            matrix = _rows(self._known(points, args[1:], named), leaves, leaves)
        except ElsewhereError:
            return self._eager(*args, **named)
        return _blocks(matrix, points, points)  # type: ignore[no-any-return]

    _made = RecordedProduct._made


class RecordedJacobian(RecordedFunctional[T]):
    """`varmat.jacobian`, recorded once: a product for each input or for each output."""

    def __call__(self, *args: object, **named: object) -> T:
        if not args or _is_inside(args):
            return self._eager(*args, **named)
        points = self._points(args[0])
        leaves = leaves_of(points)
        try:
            known = self._known(points, args[1:], named)
            template, by_inputs = known.more
            matrix = _rows(known, leaves, leaves if by_inputs else leaves_of(template))
        except ElsewhereError:
            return self._eager(*args, **named)
        return _blocks(matrix.T if by_inputs else matrix, template, points)  # type: ignore[no-any-return]

    def _made(self, points: Tree, args: Arguments, named: Settings) -> Made:
        made = weighted_program(self._name, self.function, (points,), args, named)
        results = len(leaves_of(made.template))
        arguments, outputs, by_inputs = slice(None), slice(1 + results, None), False
        if size_of_all(points) < size_of_all(made.template) and not made.only_reverse:
            made, by_inputs = (
                tangent_program(self._name, self.function, (points,), args, named),
                True,
            )
        program = part_of(made.program, arguments, outputs)
        return program, runner_for(program, self.runner), (made.template, by_inputs)


def size_of_all(tree: Tree) -> int:
    """The number of elements of all leaves."""
    return sum(map(size_of, leaves_of(tree)))


class RecordedTangent(RecordedFunctional[T]):
    """`varmat.jvp`, recorded once."""

    title = "primals"

    def __call__(self, *args: object, **named: object) -> T:
        return self._at(*args, **named)  # type: ignore[no-any-return]

    def _at(self, primals: Tree, tangents: Tree) -> Tree:
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

    def _made(self, points: Tree, args: Arguments, named: Settings) -> Made:
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

        def pullback(cotangent: Tree) -> tuple[Operand, ...]:
            weights = matching_leaves(self._name, "the cotangent", cotangent, template)
            try:
                found = _outputs(known.run, [*leaves, *weights])
            except ElsewhereError:
                return self._eager(*points)[1](cotangent)  # type: ignore[no-any-return, index]
            return rebuilt(points, found)

        return rebuilt(template, values), pullback  # type: ignore[return-value]

    def _made(self, points: Tree, args: Arguments, named: Settings) -> Made:
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
