"""Stan programs as models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.matvar import to_varmat
from varmat.models.model import Model
from varmat.stan import data as given_data
from varmat.stan import representation as forms
from varmat.stan import syntax as s
from varmat.stan import transforms
from varmat.stan.checks import check
from varmat.stan.evaluate import Translator, written_in
from varmat.stan.parser import parse
from varmat.stan.running import Evaluation, Frame, located
from varmat.stan.stan_model import StanModel
from varmat.stan.to_python import to_python
from varmat.stan.types import Tuple
from varmat.stan.values import StanValue, by_element, from_python, innermost, leaves

if TYPE_CHECKING:
    from varmat.transforms import Transform

__all__ = ["Program"]


class Program:
    """A Stan program, read and checked.

    Parameters
    ----------
    source : str or Path
        The path of a file, as a Path or as a text that ends in ``.stan``; or the text of a program.
    include_paths : sequence of paths
        Directories of files that ``#include`` names; then come those of the including files.

    Attributes
    ----------
    tree : varmat.stan.syntax.Program
        The syntax tree, with the types of all expressions.
    notes : list of Note
        What to write today where old syntax was read.
    functions : Functions
        The functions of the program: ``program.functions.name(...)`` calls one from Python.

    Raises
    ------
    StanError
        If the text is no valid program; the message shows the line.
    ImportError
        If lark is not installed: it is in the extra ``[stan]``.

    Examples
    --------
    >>> import varmat as vm
    >>> program = vm.stan.Program('''
    ...     data { int<lower=0> N; vector[N] y; }
    ...     parameters { real mu; real<lower=0> sigma; }
    ...     model { sigma ~ exponential(1); y ~ normal(mu, sigma); }
    ... ''')
    >>> model = program.model({"N": 3, "y": [1.0, 3.0, 2.0]})
    >>> model.param_names()
    ['mu', 'sigma']
    >>> round(model.optimize(seed=1).values["mu"], 6)
    2.0
    """

    def __init__(self, source: str | Path, include_paths: Sequence[str | Path] = ()) -> None:
        self._source = source, tuple(include_paths)
        self.tree = parse(source, include_paths)
        check(self.tree)
        self.notes = self.tree.notes
        self.functions = UserFunctions(self.tree)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._source

    def __repr__(self) -> str:
        names = ", ".join(each.name for each in self.tree.parameters)
        return f"<varmat.stan.Program with the parameters {names or 'none'}>"

    def model(
        self, data: Any = None, *, seed: int | None = 0, representation: forms.Forced = None
    ) -> Model:
        """The model of the program with data.

        Parameters
        ----------
        data : mapping, pandas.DataFrame, path or None
            Values by name; a table, whose columns are vectors; or the path of a file in Stan's
            JSON, or in R's dump format. Names that the program does not declare are ignored.
        seed : int, optional
            For random numbers in transformed data.
        representation : {"varmat", "matvar"} or dict of str to these, optional
            The form of all variables, or of some by name, instead of the chosen one.

        Returns
        -------
        Model
            Its unconstrained parameters are those of Stan 2.37, in Stan's order.

        Raises
        ------
        TypeError
            If data are missing, or of another type than declared.
        ShapeError
            If data have another shape than declared.
        DomainError
            If data do not satisfy the declared constraints.
        """
        matvars = self.representation(representation).matvars
        blocks = Blocks(self.tree, given_data.read_data(data), seed, matvars)
        return StanModel(blocks, representation)

    def representation(self, forced: forms.Forced = None) -> forms.Representation:
        """Which form each variable has, how loops are run, and why.

        A matvar has a variable for each element, so that loops read and assign elements fast; a
        varmat is one variable, with fast whole-array operations. A variable is a matvar if a loop
        that is run pass by pass takes its elements, and no such loop uses it as a whole, because
        that makes a varmat of it again. Both give the same numbers. A recording keeps all arrays
        whole, so the choice is about programs that cannot be recorded, and about eager evaluation.

        Parameters
        ----------
        forced : {"varmat", "matvar"} or dict of str to these, optional
            As in `model`.

        Returns
        -------
        Representation
            Prints as a table; `variables` has `form` and `reason` of each, `loops` a line each.

        Raises
        ------
        ValueError
            If a name has no choice of forms, or for another form.

        Examples
        --------
        >>> import varmat as vm
        >>> vm.stan.Program('''
        ... data { int T; }
        ... parameters { real a; vector[T] e; }
        ... model {
        ...   vector[T] x;
        ...   x[1] = e[1];
        ...   for (t in 2:T) x[t] = a * x[t - 1] + e[t];
        ...   x ~ normal(0, 1);
        ... }
        ... ''').representation()
        T  data    it is declared as data
        a  scalar  it is a single number
        e  matvar  the loop of line 7 takes its elements; 0 conversions outside of loops
        x  matvar  the loop of line 7 takes its elements; 1 conversions outside of loops
        line 7: for (t in 2:T) x[t] = a * x[t - 1] + e[t];
          pass by pass: a pass reads `x`, to which others assign (line 7)
          recorded: one loop, whose body is written once
        """
        return forms.representation(self.tree, forced)

    def to_python(self) -> str:
        """The program as a Python module, with a function ``make_model(data)``.

        Returns
        -------
        str
            Readable NumPy: places count from 0, and each block is a function. Parameters have the
            transforms of `Model`, so a simplex or a matrix has other unconstrained coordinates.

        Raises
        ------
        StanError
            If there is no text for a part of the program; the message shows the line.

        Examples
        --------
        >>> import varmat as vm
        >>> program = vm.stan.Program('''
        ...     data { int N; vector[N] y; }
        ...     parameters { real mu; }
        ...     model { for (n in 2:N) y[n] ~ normal(mu * y[n - 1], 1); }
        ... ''')
        >>> "vm.normal_lpdf(y[n], mu * y[n - 1], 1)" in program.to_python()
        True
        """
        return to_python(self.tree)


class UserFunctions:
    """The functions of a program, by name; arguments may be variables."""

    def __init__(self, tree: s.ProgramTree) -> None:
        self._translator = Translator({}, set())
        self._definitions: dict[str, list[s.FunctionDefinition]] = {}
        for each in tree.functions:
            if each.body is not None:
                self._definitions.setdefault(each.name, []).append(each)

    def __dir__(self) -> list[str]:
        return sorted(self._definitions)

    def __getattr__(self, name: str) -> Callable[..., StanValue]:
        definitions = self.__dict__.get("_definitions", {}).get(name)
        if definitions is None:
            raise AttributeError(
                f"the program has no function {name!r}: it has {', '.join(dir(self)) or 'none'}"
            )

        def function(*arguments: StanValue, rng: np.random.Generator | None = None) -> StanValue:
            definition, values = _chosen(name, definitions, arguments)
            run = Evaluation(rng=np.random.default_rng(rng))
            with np.errstate(all="ignore"):
                found = self._translator.routine(definition)(run, values)
            if definition.result is None:  # a function that adds to the target
                return run.target()
            return found

        function.__name__ = function.__qualname__ = name
        return function


def _chosen(
    name: str, definitions: Sequence[s.FunctionDefinition], arguments: Sequence[StanValue]
) -> tuple[s.FunctionDefinition, list[StanValue]]:
    """The overload that takes the arguments, and these as values of its types."""
    reasons = []
    for definition in definitions:
        if len(definition.arguments) != len(arguments):
            reasons.append(f"it takes {len(definition.arguments)} arguments")
            continue
        try:
            values = [
                from_python(x, each.type)
                for x, each in zip(arguments, definition.arguments, strict=True)
            ]
        except (TypeError, ValueError) as error:
            reasons.append(str(error))
        else:
            return definition, values
    raise TypeError(f"{name}: no overload takes these arguments: {'; '.join(reasons)}")


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
        Elements of tuples have names of their own, as ``x:1``.
    tree : varmat.stan.syntax.Program
    transforms, generates : bool
        Whether there are transformed parameters, or generated quantities.
    """

    def __init__(
        self,
        tree: s.ProgramTree,
        given: Mapping[str, Any],
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
        self.data: dict[str, StanValue] = {}
        with np.errstate(all="ignore"):
            for each in tree.data:
                self._read(each, given)
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

    def _read(self, declaration: s.Declaration, given: Mapping[str, Any]) -> None:
        name, declared = declaration.name, declaration.declared
        text = self._line(declaration)
        if name not in given:
            empty = self._empty(declared)
            if empty is None:
                raise given_data.missing(name, text, given)
            given = {name: empty}
        value = self._value(name, given[name], declared, text)
        self.data[name] = value
        self.translator.declare(name, declared.unsized)
        self._frame.append(value)
        constraints = self._constraints(declaration.declared)
        if constraints is not None:
            constraints(f"data: {name}", self._frame, value)

    def _empty(self, declared: s.SizedType) -> StanValue:
        """Data of size zero, which may be left out; None for others."""
        if declared.name == "tuple" or not (declared.dimensions or declared.sizes):
            return None
        shape = self._shape(declared)
        return None if np.prod(shape) else np.zeros(shape)

    def _shape(self, declared: s.SizedType) -> tuple[int, ...]:
        shape = self.translator.shape(declared)
        assert shape is not None
        return shape(self._frame)

    def _line(self, node: s.SyntaxNode) -> str:
        lines = self.tree.sources.get(node.at.file, [])
        return lines[node.at.line - 1].strip() if node.at.line <= len(lines) else str(node.at)

    def _value(self, name: str, raw: Any, declared: s.SizedType, text: str) -> StanValue:
        kind = innermost(declared.unsized)
        if not isinstance(kind, Tuple):
            return given_data.value_of(name, raw, declared.unsized, self._shape(declared), text)
        sizes = [self.translator.expression(each)(self._frame) for each in declared.dimensions]

        def nested(raw: Any, sizes: Sequence[int]) -> StanValue:
            if sizes:
                if len(raw) != sizes[0]:
                    raise TypeError(
                        f"data: {name} has {len(raw)} elements, but must have {sizes[0]}: {text}!"
                    )
                return [nested(each, sizes[1:]) for each in raw]
            parts = given_data.elements_of(name, raw, kind, text)
            return tuple(
                self._value(f"{name}.{i}", part, element, text)
                for i, (part, element) in enumerate(zip(parts, declared.elements, strict=True), 1)
            )

        return nested(raw, sizes)

    def _run_transformed_data(self, run: Evaluation) -> None:
        first = self.translator.size
        block = self._block(self.tree.transformed_data)
        self._frame += [None] * (self.translator.size - first)
        block(self._frame)
        for each in self._frame:  # so that an element-wise assignment makes a copy
            if isinstance(each, np.ndarray):
                each.flags.writeable = False

    # --- constraints ---

    def _block(self, statements: Sequence[s.Statement]) -> Callable[[Frame], None]:
        """The function of a block whose variables must satisfy their constraints at its end."""
        execute = self.translator.lasting_sequence(statements)
        checks = []
        for each in statements:
            if isinstance(each, s.Declaration):
                constraints = self._constraints(each.declared)
                if constraints is not None:
                    place, _ = self.translator.place(each.name)
                    checks.append((each, place, constraints))

        def run(f: Frame) -> None:
            execute(f)
            for each, place, constraints in checks:
                try:
                    constraints(each.name, f, to_varmat(f[place]))
                except ValueError as error:
                    located(error, each.at)
                    raise

        return run

    def _constraints(self, declared: s.SizedType) -> Callable[[str, Frame, StanValue], None] | None:
        """The function that checks a value against the constraints of its declared type."""
        if declared.name == "tuple":
            return self._of_elements(declared)
        parts = transforms.CONSTRAINTS.get(declared.name)
        bounds = [
            (self.translator.expression(each), each is declared.lower)
            for each in (declared.lower, declared.upper)
            if each is not None
        ]
        if parts is None and not bounds:
            return None

        def constraints(name: str, f: Frame, value: StanValue) -> None:
            if parts is not None:
                transforms.check(name, parts, value)
            for bound, is_lower in bounds:
                transforms.check_bound(name, value, bound(f), is_lower)

        return constraints

    def _of_elements(self, declared: s.SizedType) -> Callable[[str, Frame, StanValue], None] | None:
        parts = [*map(self._constraints, declared.elements)]
        if not any(parts):
            return None

        def constraints(name: str, f: Frame, value: StanValue) -> None:
            if isinstance(value, list):
                for i, each in enumerate(value, 1):
                    constraints(f"{name}[{i}]", f, each)
                return
            for i, (part, each) in enumerate(zip(parts, value, strict=True), 1):
                if part is not None:
                    part(f"{name}.{i}", f, each)

        return constraints

    # --- parameters ---

    def _declared_parameters(self) -> Iterator[tuple[str, Transform]]:
        self._places: dict[str, int] = {}
        for each in self.tree.parameters:
            yield from self._transforms(each.name, each.declared)
            self._places[each.name] = self.translator.declare(each.name, each.declared.unsized)
            self._frame.append(None)

    def _transforms(self, name: str, declared: s.SizedType) -> Iterator[tuple[str, Transform]]:
        if declared.name == "tuple":
            sizes = [self.translator.expression(each)(self._frame) for each in declared.dimensions]
            for place in transforms.places(tuple(sizes)):
                label = ".".join([name, *(str(i + 1) for i in place)])
                for i, element in enumerate(declared.elements, 1):
                    yield from self._transforms(f"{label}:{i}", element)
            return
        count = len(declared.dimensions)
        sizes = [
            self.translator.expression(each)(self._frame)
            for each in (*declared.dimensions, *declared.sizes)
        ]
        bounds = {
            key: self._bound(bound)
            for key in ("lower", "upper", "offset", "multiplier")
            if (bound := getattr(declared, key)) is not None
        }
        transform = transforms.transform_of(
            declared.name, tuple(sizes[:count]), tuple(sizes[count:]), bounds
        )
        yield name, transform

    def _bound(self, bound: s.Expression) -> StanValue:
        """A bound as a value, or as a function of parameters."""
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

    def frame(self, run: Evaluation, values: Mapping[str, StanValue]) -> Frame:
        """A frame with data and the values of the parameters."""
        f = [run, *self._frame[1:], *[None] * (self.translator.size - len(self._frame))]
        for each in self.tree.parameters:
            value = _assembled(each.name, each.declared, values)
            matvar = each.name in self.translator.matvars
            f[self._places[each.name]] = by_element(value) if matvar else value
        return f

    def terms(self, run: Evaluation, values: Mapping[str, StanValue]) -> list[StanValue]:
        """The terms of the log density, and what the run began with."""
        f = self.frame(run, values)
        self._transformed(f)
        self._model(f)
        return run.terms

    def transformed(self, values: Mapping[str, StanValue]) -> dict[str, StanValue]:
        """The transformed parameters by name."""
        f = self.frame(Evaluation(), values)
        self._transformed(f)
        return self._named(self.tree.transformed_parameters, f)

    def generated(
        self, values: Mapping[str, StanValue], rng: np.random.Generator
    ) -> dict[str, StanValue]:
        """The generated quantities by name."""
        f = self.frame(Evaluation(rng=rng), values)
        self._transformed(f)
        self._generated(f)
        return self._named(self.tree.generated_quantities, f)

    def _named(self, statements: Sequence[s.Statement], f: Frame) -> dict[str, StanValue]:
        found: dict[str, StanValue] = {}
        for each in statements:
            if isinstance(each, s.Declaration):
                found.update(leaves(each.name, f[self.translator.place(each.name)[0]]))
        return found


def _assembled(name: str, declared: s.SizedType, values: Mapping[str, StanValue]) -> StanValue:
    """The value of a parameter, of which the elements of tuples have names of their own."""
    if declared.name != "tuple":
        return values[name]

    def element(label: str, axes: int) -> StanValue:
        if axes:
            parts: list[StanValue] = []
            while any(
                each.startswith((f"{label}.{len(parts) + 1}:", f"{label}.{len(parts) + 1}."))
                for each in values
            ):
                parts.append(element(f"{label}.{len(parts) + 1}", axes - 1))
            return parts
        return tuple(
            _assembled(f"{label}:{i}", each, values) for i, each in enumerate(declared.elements, 1)
        )

    return element(name, len(declared.dimensions))
