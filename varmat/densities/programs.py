"""How densities of one variable are written into programs: as the call of the function that computes value and partials."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from varmat.densities.univariate import IS_VARIABLE, Univariate
from varmat.programs.program import ElsewhereError, Program, binary, name_of, writes


@writes(Univariate)
def _density(program: Program, rule: Any, result: Any, active: Any, saved: Any) -> None:
    density: Univariate = rule.op
    _, values, shape, use = saved
    _, _, early, elementwise = density.compiled(use)
    kinds = density.kinds_of(use)
    variables = iter(active)
    operands = [program.operand(next(variables) if kind & IS_VARIABLE else v) for kind, v in zip(kinds, values, strict=True)]
    texts = [program.code(tree)[0] for tree, _ in operands]
    node = program.node(result)
    # Where it is recorded, outside the support, say, the partials may be other than they will be.
    array_shape = shape if shape is None or 0 not in shape else None
    names = [program.new_name("a", array_shape if is_array else None) for is_array in elementwise]
    if early is not None and (shape is None or (len(shape) == 1 and shape[0])):
        for i in early:
            title, domain = density.checks[i]
            if kinds[i] & IS_VARIABLE:
                program.write(f"{program.bind(partial(domain.check, density.name, title), 'check_')}({texts[i]})")
        size = shape[0] if shape else 1
        call = f"{program.bind(density.made_for(use, size), density.name + '_')}({', '.join(texts)}, {size})"
    else:
        call = f"{program.bind(partial(_evaluated, density, shape, use), density.name + '_')}({', '.join(texts)})"
    program.write(f"{node.name}, [{', '.join(names)}] = {call}")
    program.write(f"if not -inf < {node.name} < inf: {program.bind(_elsewhere)}()")

    def back() -> None:
        g = program.adjoint(node)
        for operand, name in zip((node for _, node in operands if node), names, strict=True):
            operand.contributions.append(binary(name_of(name), ast.Mult(), g))

    program.steps.append(((node,), back))


def _evaluated(density: Univariate, shape: Any, use: Any, *values: Any) -> Any:
    return density.evaluate(list(values), shape, use)


def _elsewhere() -> None:
    raise ElsewhereError
