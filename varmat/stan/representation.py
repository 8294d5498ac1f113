"""Choose for each variable of a program whether it is one variable, or one of each element.

A *varmat* is one variable for a whole array, a *matvar* an array of scalar variables. Whole-array
operations are fast with the first, reading and assigning elements one by one with the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from varmat.core.errors import TapeError
from varmat.derivatives.recorded_programs import rolled_entries
from varmat.solvers.procedures import procedure_results
from varmat.stan import syntax as s
from varmat.stan import types
from varmat.stan.evaluate import Translator, written_in
from varmat.stan.running import Evaluation
from varmat.stan.values import SCALARS, innermost
from varmat.typing import Entry, Operand

__all__ = ["Representation"]

FORMS = ("varmat", "matvar")
WRITTEN_ONCE = "recorded: one loop, whose body is written once"
Forced = str | Mapping[str, str] | None


class Choice(NamedTuple):
    """The form of a variable: varmat, matvar, scalar or data; and why."""

    form: str
    reason: str


@dataclass(frozen=True)
class Representation:
    """The forms of the variables of a program, and how its loops are run; prints as a table.

    Attributes
    ----------
    variables : dict of str to Choice
        Each with `form` and `reason`. A variable of a function is named ``function.variable``.
    loops : list of str
        The loops of the program, with their lines: run for all iterations at once; or one by
        one, and why. For a model, also what its recording makes of these.
    matvars : dict of FunctionDefinition or None to set of str
        The names of matvars by function; those of the blocks by None.
    """

    variables: dict[str, Choice]
    loops: list[str]
    matvars: Mapping[s.FunctionDefinition | None, set[str]] = field(repr=False)

    def __repr__(self) -> str:
        wide = max(map(len, self.variables), default=0)
        rows = [f"{name:{wide}}  {form:6}  {why}" for name, (form, why) in self.variables.items()]
        return "\n".join([*rows, *self.loops])


def representation(
    tree: s.ProgramTree, forced: Forced = None, recorded: Mapping[int, str] | None = None
) -> Representation:
    """Choose the forms of the variables of a checked program; see `Program.representation`.

    `recorded` says by the id of a loop what a recording makes of it."""
    translator = _translated(tree)
    stays = {id(loop) for loop, error in translator.loops if error is not None}
    blocks = [tree.transformed_parameters, tree.model]
    variables: dict[str, Choice] = {}
    for x in (*tree.data, *tree.transformed_data):
        if isinstance(x, s.Declaration):
            variables[x.name] = Choice("data", "it is declared as data")
    chosen: dict[s.FunctionDefinition | None, dict[str, Choice]] = {}
    chosen[None] = _Uses(stays, tree.parameters, blocks).choices()
    variables |= chosen[None]
    for f in tree.functions:
        if f.body is not None:
            varying = [
                argument
                for argument in f.arguments
                if not argument.data and argument.type != types.INT
            ]
            chosen[f] = _Uses(stays, varying, [f.body]).choices()
            variables |= {f"{f.name}.{name}": choice for name, choice in chosen[f].items()}
    variables |= _forced(variables, forced)
    matvars = {
        f: {name for name in own if variables[f"{f.name}.{name}" if f else name].form == "matvar"}
        for f, own in chosen.items()
    }
    return Representation(variables, [*_loops(tree, translator, recorded or {})], matvars)


def _forced(variables: Mapping[str, Choice], forced: Forced) -> dict[str, Choice]:
    """Return the forced forms, given by name or as one for all."""
    may = [name for name, (form, _) in variables.items() if form in FORMS]
    if forced is None or isinstance(forced, str):
        forced = {} if forced is None else dict.fromkeys(may, forced) or {"": forced}
    for name, form in forced.items():
        if form not in FORMS:
            raise ValueError(
                f"representation: {form!r} is not a form, but must be varmat or matvar!"
            )
        if name and name not in may:
            raise ValueError(
                f"representation: {name!r} has no choice of forms, but {', '.join(may) or 'none'}!"
            )
    return {
        name: Choice(form, f"forced; chosen: {variables[name].form}, {variables[name].reason}")
        for name, form in forced.items()
        if name
    }


def _translated(tree: s.ProgramTree) -> Translator:
    """Translate all loops of the program, and return the translator; nothing is run."""
    blocks = (tree.transformed_data, tree.transformed_parameters, tree.model)
    translator = Translator({}, set().union(*map(written_in, blocks)))
    for parameter in tree.data:
        translator.declare(parameter.name, parameter.declared.unsized)
    translator.sequence(tree.transformed_data)
    translator.loops.clear()
    for parameter in tree.parameters:
        translator.declare(parameter.name, parameter.declared.unsized)
    translator.sequence(tree.transformed_parameters)
    translator.body(tree.model)
    for definition in tree.functions:
        if definition.body is not None:
            translator.routine(definition).translate()
    return translator


def recorded_loops(
    size: int, evaluate: Callable[[Operand, Evaluation], Iterable[Operand]]
) -> dict[int, str]:
    """Describe what the recording of the terms of a log density makes of each loop that is run
    iteration by iteration, by the id of the loop.
    """
    created: dict[int, list[Entry]] = {}
    passes: dict[int, int] = {}

    def watched(q: object, tape: Sequence[Entry]) -> Operand:
        def watch(loop: s.For, count: int, run_passes: Callable[[], Any]) -> Any:
            first = len(tape)
            try:
                return run_passes()
            finally:
                created.setdefault(id(loop), []).extend(tape[first:])
                passes[id(loop)] = passes.get(id(loop), 0) + count

        return sum(map(np.sum, evaluate(q, Evaluation(watch=watch))))

    try:
        entries = rolled_entries("log_density", watched, np.zeros(size))
    except TapeError as error:
        return dict.fromkeys(created, f"not recorded: {error}")
    saved, rolled = ({id(result) for _, result, _, _ in entry} for entry in entries)
    output = {}
    for loop, operations in created.items():
        if any(rule.op is procedure_results for rule, *_ in operations):
            output[loop] = WRITTEN_ONCE
            continue
        results = {id(result) for _, result, _, _ in operations} & saved
        inside = len(results & rolled)
        text = (
            f"{inside} of {len(results)} operations are in loops"
            if inside
            else "one by one: a loop takes 16 equal ones in sequence"
            if results
            else "no operations on parameters"
        )
        output[loop] = f"recorded: {passes[loop]} passes, {text}"
    return output


def _loops(
    tree: s.ProgramTree, translator: Translator, recorded: Mapping[int, str]
) -> Iterator[str]:
    inside: set[int] = set()
    for loop, error in sorted(translator.loops, key=lambda x: x[0].at):
        if id(loop) in inside:
            continue
        line = tree.sources.get(loop.at.file, [""] * loop.at.line)[loop.at.line - 1].strip()
        if error is None:
            inside.update(map(id, s.walk(loop.body)))
            yield f"line {loop.at.line}: {line}\n  all passes at once"
        else:
            more = f"\n  {recorded[id(loop)]}" if id(loop) in recorded else ""
            if not more and loop in translator.scanned:
                inside.update(map(id, s.walk(loop.body)))
                more = f"\n  {WRITTEN_ONCE}"
            reason = f"{error} (line {error.at.line})"
            yield f"line {loop.at.line}: {line}\n  iteration by iteration: {reason}{more}"


class _Uses:
    """How the statements of a block or function use its variables."""

    def __init__(
        self,
        stays: set[int],
        varying: Sequence[s.Declaration | s.ArgumentDeclaration],
        blocks: Sequence[Sequence[s.Statement]],
    ) -> None:
        self._stays = stays
        self._declared: dict[str, s.Declaration] = {
            x.name: x for x in varying if isinstance(x, s.Declaration)
        }
        nodes = [*s.walk(blocks)]
        self._declared |= {node.name: node for node in nodes if isinstance(node, s.Declaration)}
        self._varying = {x.name for x in varying}
        before = -1
        while before != len(self._varying):
            before = len(self._varying)
            self._varying.update(self._given(nodes))
        # Uses of each as a whole, and of its elements in loops run iteration by iteration.
        self._whole: dict[str, list[int | None]] = {}
        self._elements: dict[str, int] = {}
        for block in blocks:
            self._visit(block, None, False)

    def _given(self, nodes: Sequence[s.SyntaxNode]) -> Iterator[str]:
        """Yield the names of variables to which something is assigned that varies."""
        for node in nodes:
            if isinstance(node, (s.Assignment, s.Declaration)):
                if not self._varying & {*s.names_in(node.value)}:
                    continue
                if isinstance(node, s.Declaration):
                    yield node.name
                else:
                    yield from s.names_in(node.target)
            elif isinstance(node, s.ForEach) and self._varying & {*s.names_in(node.values)}:
                yield node.name

    def _visit(self, node: object, loop: s.Statement | None, at_once: bool) -> None:
        """Note the uses in a node, inside of a loop that is run iteration by iteration."""
        line = loop.at.line if loop is not None else None
        if isinstance(node, (list, tuple)) and not isinstance(node, s.Position):
            for x in node:
                self._visit(x, loop, at_once)
        elif isinstance(node, s.Binary):
            chain = s.in_a_row(node)
            self._visit([chain[0].left, *(item.right for item in chain)], loop, at_once)
        elif isinstance(node, s.VariableName):
            self._whole.setdefault(node.name, []).append(line)
        elif isinstance(node, s.Indexed) and isinstance(node.base, s.VariableName):
            if node.type in SCALARS and not at_once:
                if line is not None:
                    self._elements.setdefault(node.base.name, line)
            else:
                self._visit(node.base, loop, at_once)
            self._visit(node.indices, loop, at_once)
        elif isinstance(node, s.SyntaxNode):
            if isinstance(node, s.Declaration) and node.value is not None:
                self._whole.setdefault(node.name, []).append(line)
            if isinstance(node, (s.For, s.ForEach, s.While)):
                if not isinstance(node, s.For) or id(node) in self._stays:
                    loop = node
                else:
                    at_once = True
            for part in s.parts(node):
                self._visit(part, loop, at_once)

    def choices(self) -> dict[str, Choice]:
        return {name: self._choice(name, x) for name, x in self._declared.items()}

    def _choice(self, name: str, declaration: s.Declaration) -> Choice:
        kind = declaration.declared.unsized
        if name not in self._varying or types.contains_int(kind):
            return Choice("data", "it depends on data alone")
        if kind in SCALARS:
            return Choice("scalar", "it is a single number")
        if innermost(kind) not in (types.REAL, types.VECTOR, types.ROW_VECTOR, types.MATRIX):
            return Choice("varmat", f"a {innermost(kind)} has no other form")
        uses = self._whole.get(name, [])
        inside = next((line for line in uses if line is not None), None)
        line = self._elements.get(name)
        if line is None:
            return Choice("varmat", "no loop that is run iteration by iteration takes its elements")
        if inside is not None:
            return Choice("varmat", f"the loop of line {inside} uses it as a whole")
        text = f"the loop of line {line} takes its elements"
        return Choice("matvar", f"{text}; {len(uses)} conversions outside of loops")
