"""How sums of everything and matrix products are written into programs."""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from varmat.functions.products import MATMUL, left_factor, right_factor
from varmat.functions.reductions import AVERAGE, TOTAL
from varmat.kernels import unbroadcast
from varmat.programs.program import Product, Program, binary, name_of, number, writes


@writes(TOTAL, AVERAGE)
def _total(program: Program, rule: Any, result: Any, x: Any, count: Any) -> None:
    operand = program.find(x)
    # The sum of a product is an inner product, for which the product itself is not needed.
    value = program.summed(operand.tree or name_of(operand.name), operand.shape)
    node = program.define(result, value if count is None else binary(value, ast.Div(), number(count)))

    def back() -> None:
        g = program.adjoint(node)
        operand.contributions.append(g if count is None else binary(g, ast.Div(), number(count)))

    program.steps.append(((node,), back))


@writes(MATMUL)
def _matmul(program: Program, rule: Any, result: Any, a: Any, b: Any) -> None:
    (x, left), (y, right) = program.operand(a), program.operand(b)
    plain = all(each.ndim in (1, 2) for each in (a, b))
    product = f"{x.id}.dot({y.id})" if plain else f"{program.bind(np.matmul)}({x.id}, {y.id})"  # type: ignore[attr-defined]
    node = program.node(result)
    program.write(f"{node.name} = {product if node.shape else f'float({product})'}")

    def back() -> None:
        g = program.adjoint(node)
        if not node.shape:
            for operand, other in ((left, y), (right, x)):
                if operand is not None:
                    operand.contributions.append(binary(g, ast.Mult(), other))
            return
        texts = whole, first, second = program.full(g, node.shape), x.id, y.id  # type: ignore[attr-defined]
        row = "[None]" if len(node.shape) == 1 else ""
        ways = (
            (left, b, Product(left_factor, texts, whole + (row or ".T"), second + (row or ".T"))),
            (right, a, Product(right_factor, texts, first + row, whole + row)),
        )
        for operand, other, product in ways:
            if operand is None:
                continue
            few = other.size + math.prod(node.shape) < math.prod(operand.shape)
            if plain and few and len(operand.shape) == 2 and program.is_array(g):
                operand.products.append(product)
                continue
            tree = program.call(product.function, operand.shape, *texts)
            if not plain:
                tree = program.call(unbroadcast, operand.shape, tree.id, str(operand.shape))
            operand.contributions.append(tree)

    program.steps.append(((node,), back))
