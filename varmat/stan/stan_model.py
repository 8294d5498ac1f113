"""The blocks of a Stan program with data, and the model that they make."""

from __future__ import annotations

import math
import timeit
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Never, NoReturn, Self

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.matvar import to_varmat
from varmat.derivatives.recorded import RecordedIfPossible
from varmat.derivatives.reverse import Terms
from varmat.models.model import Model
from varmat.stan import data as given_data
from varmat.stan import representation as forms
from varmat.stan import syntax as s
from varmat.stan import transforms
from varmat.stan.evaluate import Translator, written_in
from varmat.stan.running import Evaluation, Frame, located
from varmat.stan.types import Tuple
from varmat.stan.values import StanValue, by_element, innermost, leaves
from varmat.transforms import Transform
from varmat.typing import Function, Result

# Expressions that loops may evaluate to be traced for sampling, which takes up to 10 s.
LONGEST = 400_000
# What tracing one of them takes.
TRACE_SECONDS = 2e-5


class Blocks:
    """The blocks of a program as functions of a frame, with data.

    Parameters
    ----------
    tree : varmat.stan.syntax.Program
    given : dict
        Data by name.
    seed : int or None
        For random numbers in transformed data.
    matvars : dict of FunctionDefinition or None to set of str
        As in `Representation`.

    Attributes
    ----------
    data : dict
        The declared data as values of Stan.
    parameters : dict of str to Transform
        Elements of tuples have separate names, as ``x:1``.
    tree : varmat.stan.syntax.Program
    transforms, generates : bool
        Whether there are transformed parameters, or generated quantities.
    """

    def __init__(
        self,
        tree: s.ProgramTree,
        arguments: Mapping[str, object],
        seed: int | None,
        matvars: Mapping[s.FunctionDefinition | None, set[str]],
    ) -> None:
        statements = (
            tree.transformed_data,
            tree.transformed_parameters,
            tree.model,
            tree.generated_quantities,
        )
        written = set().union(*map(written_in, statements))
        self.tree, self.translator = tree, Translator({}, written, matvars)
        run = Evaluation(rng=np.random.default_rng(seed))
        self._frame: Frame = [run]
        # Where the parameters are in it.
        self._places: dict[str, int] = {}
        self.data: dict[str, StanValue] = {}
        with np.errstate(all="ignore"):
            for x in tree.data:
                self._read(x, arguments)
            self._run_transformed_data(run)
            self.parameters = dict(self._declared_parameters())
        self.transforms, self.generates = (
            bool(block) for block in (tree.transformed_parameters, tree.generated_quantities)
        )
        self._transformed = self._block(tree.transformed_parameters)
        with self.translator.scope():
            self._model = self.translator.sequence(tree.model)
        self._generated = self._block(tree.generated_quantities)

    # --- data ---

    def _read(self, declaration: s.Declaration, arguments: Mapping[str, object]) -> None:
        name, declared_type = declaration.name, declaration.declared
        text = self._line(declaration)
        if name not in arguments:
            empty = self._empty(declared_type)
            if empty is None:
                raise given_data.missing(name, text, arguments)
            arguments = {name: empty}
        value = self._value(name, arguments[name], declared_type, text)
        self.data[name] = value
        self.translator.declare(name, declared_type.unsized)
        self._frame.append(value)
        constraints = self._constraints(declaration.declared)
        if constraints is not None:
            constraints(f"data: {name}", self._frame, value)

    def _empty(self, declared_type: s.SizedType) -> StanValue:
        """Return data of size zero, which may be left out; None for others."""
        if declared_type.name == "tuple" or not (declared_type.dimensions or declared_type.sizes):
            return None
        shape = self._shape(declared_type)
        return None if np.prod(shape) else np.zeros(shape)

    def _shape(self, declared_type: s.SizedType) -> tuple[int, ...]:
        shape = self.translator.shape(declared_type)
        assert shape is not None
        return shape(self._frame)

    def _line(self, node: s.SyntaxNode) -> str:
        lines = self.tree.sources.get(node.at.file, [])
        return lines[node.at.line - 1].strip() if node.at.line <= len(lines) else str(node.at)

    def _value(self, name: str, raw: Any, declared_type: s.SizedType, text: str) -> StanValue:
        kind = innermost(declared_type.unsized)
        if not isinstance(kind, Tuple):
            return given_data.value_of(
                name, raw, declared_type.unsized, self._shape(declared_type), text
            )
        sizes = [
            self.translator.expression(dimension)(self._frame)
            for dimension in declared_type.dimensions
        ]

        def nested(raw: Any, sizes: Sequence[int]) -> StanValue:
            if sizes:
                if len(raw) != sizes[0]:
                    raise TypeError(
                        f"data: {name} has {len(raw)} elements, but must have {sizes[0]}: {text}!"
                    )
                return [nested(x, sizes[1:]) for x in raw]
            parts = given_data.elements_of(name, raw, kind, text)
            return tuple(
                self._value(f"{name}.{i}", part, element, text)
                for i, (part, element) in enumerate(
                    zip(parts, declared_type.elements, strict=True), 1
                )
            )

        return nested(raw, sizes)

    def _run_transformed_data(self, run: Evaluation) -> None:
        first = self.translator.size
        block = self._block(self.tree.transformed_data)
        self._frame += [None] * (self.translator.size - first)
        block(self._frame)
        for x in self._frame:  # so that an element-wise assignment makes a copy
            if isinstance(x, np.ndarray):
                x.flags.writeable = False

    # --- constraints ---

    def _block(self, statements: Sequence[s.Statement]) -> Callable[[Frame], None]:
        """Translate a block whose variables must satisfy their constraints at its end."""
        execute = self.translator.lasting_sequence(statements)
        checks = []
        for statement in statements:
            if isinstance(statement, s.Declaration):
                constraints = self._constraints(statement.declared)
                if constraints is not None:
                    place, _ = self.translator.place(statement.name)
                    checks.append((statement, place, constraints))

        def run(f: Frame) -> None:
            execute(f)
            for x, place, constraints in checks:
                try:
                    constraints(x.name, f, to_varmat(f[place]))
                except ValueError as error:
                    located(error, x.at)
                    raise

        return run

    def _constraints(
        self, declared_type: s.SizedType
    ) -> Callable[[str, Frame, StanValue], None] | None:
        """Return the function that checks a value against the constraints of its declared type."""
        if declared_type.name == "tuple":
            return self._of_elements(declared_type)
        parts = transforms.CONSTRAINTS.get(declared_type.name)
        bounds = [
            (self.translator.expression(x), x is declared_type.lower)
            for x in (declared_type.lower, declared_type.upper)
            if x is not None
        ]
        if parts is None and not bounds:
            return None

        def constraints(name: str, f: Frame, value: object) -> None:
            if parts is not None:
                transforms.check(name, parts, value)
            for bound, is_lower in bounds:
                transforms.check_bound(name, value, bound(f), is_lower)

        return constraints

    def _of_elements(
        self, declared_type: s.SizedType
    ) -> Callable[[str, Frame, StanValue], None] | None:
        parts = [*map(self._constraints, declared_type.elements)]
        if not any(parts):
            return None

        def constraints(name: str, f: Frame, value: StanValue) -> None:
            if isinstance(value, list):
                for i, x in enumerate(value, 1):
                    constraints(f"{name}[{i}]", f, x)
                return
            for i, (part, x) in enumerate(zip(parts, value, strict=True), 1):
                if part is not None:
                    part(f"{name}.{i}", f, x)

        return constraints

    # --- parameters ---

    def _declared_parameters(self) -> Iterator[tuple[str, Transform]]:
        for parameter in self.tree.parameters:
            yield from self._transforms(parameter.name, parameter.declared)
            self._places[parameter.name] = self.translator.declare(
                parameter.name, parameter.declared.unsized
            )
            self._frame.append(None)

    def _transforms(self, name: str, declared_type: s.SizedType) -> Iterator[tuple[str, Transform]]:
        if declared_type.name == "tuple":
            sizes = [
                self.translator.expression(dimension)(self._frame)
                for dimension in declared_type.dimensions
            ]
            for place in transforms.places(tuple(sizes)):
                label = ".".join([name, *(str(i + 1) for i in place)])
                for i, element in enumerate(declared_type.elements, 1):
                    yield from self._transforms(f"{label}:{i}", element)
            return
        count = len(declared_type.dimensions)
        sizes = [
            self.translator.expression(dimension)(self._frame)
            for dimension in (*declared_type.dimensions, *declared_type.sizes)
        ]
        bounds = {
            key: self._bound(bound)
            for key in ("lower", "upper", "offset", "multiplier")
            if (bound := getattr(declared_type, key)) is not None
        }
        transform = transforms.transform_of(
            declared_type.name, tuple(sizes[:count]), tuple(sizes[count:]), bounds
        )
        yield name, transform

    def _bound(self, bound: s.Expression) -> StanValue:
        """Evaluate a bound, or make it a function of parameters."""
        evaluate = self.translator.expression(bound)
        names = [name for name in dict.fromkeys(s.names_in(bound)) if name in self._places]
        if not names:
            return evaluate(self._frame)

        def at(values: Mapping[str, StanValue]) -> StanValue:
            frame = self._frame.copy()
            for name, value in values.items():
                frame[self._places[name]] = value
            return evaluate(frame)

        return transforms.bound_function(names, at)

    # --- evaluation ---

    def frame(self, run: Evaluation, values: Mapping[str, object]) -> Frame:
        """Make a frame with data and the values of the parameters."""
        f = [run, *self._frame[1:], *[None] * (self.translator.size - len(self._frame))]
        for parameter in self.tree.parameters:
            value = _assembled(parameter.name, parameter.declared, values)
            matvar = parameter.name in self.translator.matvars
            f[self._places[parameter.name]] = by_element(value) if matvar else value
        return f

    def terms(self, run: Evaluation, values: Mapping[str, object]) -> list[StanValue]:
        """Compute the terms of the log density, after those the run began with."""
        f = self.frame(run, values)
        self._transformed(f)
        self._model(f)
        return run.terms

    def transformed(self, values: Mapping[str, object]) -> dict[str, StanValue]:
        """Compute the transformed parameters by name."""
        f = self.frame(Evaluation(), values)
        self._transformed(f)
        return self._named(self.tree.transformed_parameters, f)

    def generated(
        self, values: Mapping[str, object], rng: np.random.Generator
    ) -> dict[str, StanValue]:
        """Draw the generated quantities by name."""
        f = self.frame(Evaluation(rng=rng), values)
        self._transformed(f)
        self._generated(f)
        return self._named(self.tree.generated_quantities, f)

    def _named(self, statements: Sequence[s.Statement], f: Frame) -> dict[str, StanValue]:
        result: dict[str, StanValue] = {}
        for statement in statements:
            if isinstance(statement, s.Declaration):
                result.update(leaves(statement.name, f[self.translator.place(statement.name)[0]]))
        return result


def _assembled(name: str, declared_type: s.SizedType, values: Mapping[str, object]) -> StanValue:
    """Assemble the value of a parameter from the elements of its tuples, stored by name."""
    if declared_type.name != "tuple":
        return values[name]

    def element(label: str, axes: int) -> StanValue:
        if axes:
            parts: list[StanValue] = []
            while any(
                value.startswith((f"{label}.{len(parts) + 1}:", f"{label}.{len(parts) + 1}."))
                for value in values
            ):
                parts.append(element(f"{label}.{len(parts) + 1}", axes - 1))
            return parts
        return tuple(
            _assembled(f"{label}:{i}", x, values) for i, x in enumerate(declared_type.elements, 1)
        )

    return element(name, len(declared_type.dimensions))


class StanModel(Model):
    """A Stan program with data, as `Program.model` makes it."""

    _takes_indices_from_zero = False

    def __init__(self, blocks: Blocks, forced: forms.Forced) -> None:
        self._blocks, self._forced = blocks, forced

        # The values by name are `_`, because no name of a program is like it.
        def log_density(_: Mapping[str, object], propto: bool) -> list[StanValue]:
            return blocks.terms(Evaluation(propto), _)

        def transformed_parameters(_: Mapping[str, object]) -> dict[str, StanValue]:
            return blocks.transformed(_)

        def generated_quantities(
            _: Mapping[str, object], rng: np.random.Generator
        ) -> dict[str, StanValue]:
            return blocks.generated(_, rng)

        super().__init__(
            log_density,
            blocks.parameters,
            data=blocks.data,
            transformed_parameters=transformed_parameters if blocks.transforms else None,
            generated_quantities=generated_quantities if blocks.generates else None,
        )
        # The evaluation is recorded once, because nothing that it reads can change.
        self.recorded, self._value_and_grad = True, RecordedIfPossible(self._target, 0)

    def with_data(self, /, *args: Never, **_: object) -> NoReturn:
        """Raise: call ``program.model(data)`` with all data, because they decide the sizes."""
        raise TypeError(
            "with_data: data decide the sizes of a Stan program: call program.model(data) again!"
        )

    def for_many_calls(self, spent: float = math.inf) -> Self:
        """Trace longer loops if that makes the gradient faster, once gradients have taken as long
        as tracing takes; return this model.
        """
        tracing, q = self._blocks.translator.tracing, np.zeros(self.param_unc_num())
        now: Any = self._value_and_grad
        with suppress(DomainError):
            if spent == math.inf:  # there may be no recording yet
                now(q, True, True)
            longer = sum(tracing.left_out.values())
            if now.obstacle is None and 0 < longer <= min(LONGEST, spent / TRACE_SECONDS):
                other = RecordedIfPossible(self._target, 0)
                with tracing.up_to(LONGEST):
                    other(q, True, True)
                if other.obstacle is None and _seconds(other, q) < _seconds(now, q):
                    self._value_and_grad = other
                tracing.left_out.clear()
        return self

    def representation(self) -> forms.Representation:
        """Show forms as `Program.representation` does, and what the recording makes of each loop
        that is run iteration by iteration: loops again, or single operations.
        """
        recorded = forms.recorded_loops(self.param_unc_num(), self._evaluated)
        return forms.representation(self._blocks.tree, self._forced, recorded)

    def _terms(self, q: object, propto: bool, jacobian: bool) -> Result:
        return self._evaluated(q, Evaluation(propto, jacobian))

    def _evaluated(self, q: object, run: Evaluation) -> Result:
        values, log_jacobians = self.layout.unpack(q, run.jacobian)
        run.terms.extend(log_jacobians)  # in front, because `target()` counts them
        with np.errstate(all="ignore"):
            return Terms(self._blocks.terms(run, values))

    constrain = np.errstate(all="ignore")(Model.constrain)


def _seconds(recorded: Function, q: np.ndarray) -> float:
    """Return the shortest time of a few calls."""
    return min(timeit.repeat(lambda: recorded(q, True, True), number=3))
