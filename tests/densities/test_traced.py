"""Sums of traced expressions: their values, and that numbers, abbreviations and sums of products
need no pass over the arrays.
"""

import math

import numpy as np
import pytest
from comparing import close

import varmat as vm
from varmat.densities.row_program import RowProgram, StableSums, Sums, single_step
from varmat.densities.summed_density import IS_ARRAY, IS_VARIABLE
from varmat.programs.build.symbol import Symbol, lift
from varmat.programs.passes import without_dead_steps
from varmat.programs.run.emit import function_of_program

ARGUMENTS = {
    "a": np.array([1.5, -0.3, 2.0]), "b": np.array([0.2, 1.1, -0.7]),
    "c": np.array([0.4, 3.0, 1.2]), "x": 0.8, "y": -2.5,
}  # fmt: skip
LET = {
    "z": "(a - x) / y", "scaled": "a / y", "grown": "exp(b)", "twice": "x + x", "both": "a * b",
    "three": "a * b * c",
}  # fmt: skip

# Expression -> the steps on vectors.
SUMS = {
    "x * y": [], "a": ["add.reduce"], "a - b": ["subtract", "add.reduce"],
    "x * a / y": ["add.reduce"], "a * b": ["matmul"], "a * b * c": ["multiply", "matmul"],
    "-(x * a)": ["add.reduce"], "-a * b": ["matmul"],
    "x * a + b": ["add.reduce", "add.reduce"],
    "b - x * a": ["add.reduce", "add.reduce"],
    "y * (a * b + exp(c))": ["exp", "matmul", "add.reduce"],
    "a * b + a * b": ["matmul"],
    "a / b + a * b": ["divide", "add.reduce", "matmul"],
    "-0.5 * z * z": ["subtract", "matmul"],
    "scaled * b": ["matmul"],
    "scaled * b + exp(scaled)": ["divide", "exp", "matmul", "add.reduce"],
    "grown + a": ["exp", "add.reduce", "add.reduce"],
    "both * x": ["matmul"], "both * c": ["multiply", "matmul"], "three * x": ["multiply", "matmul"],
    "twice * a": ["add.reduce"],
}  # fmt: skip


@pytest.mark.parametrize("kind", [Sums, StableSums])
@pytest.mark.parametrize("expression", SUMS)
def test_sums(expression, kind):
    builder = kind()
    letters = {
        name: Symbol(builder, builder.argument((7,) if np.ndim(x) else ()))
        for name, x in ARGUMENTS.items()
    }
    builder.size = builder.argument(())
    symbols = letters | {"exp": np.exp}
    for name, abbreviated in LET.items():
        symbols[name] = eval(abbreviated, symbols)
    program = builder.program([builder.sum(lift(builder, eval(expression, symbols)))])
    vectors = [
        step.kernel.name
        for step in without_dead_steps(program).steps
        if any(v.shape for v in step.operands)
    ]
    assert kind is StableSums or sorted(vectors) == sorted(SUMS[expression])
    known = ARGUMENTS | {"exp": np.exp}
    for name, abbreviated in LET.items():
        known[name] = eval(abbreviated, known)
    expected = np.sum(eval(expression, known) * np.ones(3))
    for function in function_of_program(program, [*ARGUMENTS, "size"], "test of sums"):
        close(function(*ARGUMENTS.values(), 3)[0], expected, 1e-14)


def test_a_graph_knows_what_its_values_depend_on():
    graph = vm.gamma_lpdf.graph(False)
    assert graph.names(graph.parts.support) == {"y"}
    found = [graph.names(t) for t in graph.parts.terms]
    assert found == [{"alpha"}, {"alpha", "beta"}, {"alpha", "y"}, {"beta", "y"}]


@pytest.mark.parametrize("fast", [False, True])
def test_functions_of_a_graph_take_arguments_of_any_kinds(fast):
    graph = vm.gamma_lpdf.graph(fast)
    function = graph.function([graph.parts.partials["alpha"]])
    y, alpha, beta = 1.5, np.array([0.5, 2.0]), 0.7
    (expected,) = function(y, alpha, beta)
    close(expected, [vm.gradient(lambda a: vm.gamma_lpdf(y, a, beta), a) for a in alpha], 1e-14)
    value, second = vm.value_and_grad(lambda a: np.sum(function(y, a, beta)[0]))(alpha)
    close(value, np.sum(expected), 1e-14)
    close(second, [-vm.trigamma(a) for a in alpha], 1e-13)


def test_a_row_writes_only_the_steps_that_are_wanted():
    builder = Sums()
    arguments = {name: builder.argument(()) for name in vm.normal_lpdf.arguments}
    program = RowProgram(*vm.normal_lpdf.kept(False, None), builder, arguments, single_step)
    log_sigma = program.write(program.parts.terms[1])
    assert [step.kernel.name for step in builder.steps] == ["log", "negative"]
    assert program.write(program.parts.terms[1]) is log_sigma


def test_numbers_of_any_size():
    """Products of numbers keep their order, because the square of the reciprocal would overflow."""
    scale = 1e-170
    y = scale * np.array([1.0, -2.0, 0.5])
    value, (in_y, in_scale) = vm.value_and_grad(vm.cauchy_lpdf, (0, 2))(y, 0.0, scale)
    expected, (each, of_one) = vm.value_and_grad(vm.cauchy_lpdf, (0, 2))(y / scale, 0.0, 1.0)
    close(value, expected - 3.0 * math.log(scale), 1e-14)
    close(in_y, each / scale, 1e-14)
    close(in_scale, of_one / scale, 1e-13)


COUNTS = [
    (vm.neg_binomial_2_lpmf, "array data, variable, variable",
        {"log_factorials", "log_rising_factorials", "digamma_less_lines", "tally"}),
    (vm.poisson_lpmf, "array data, variable", {"log_factorials"}),
    (vm.binomial_lpmf, "array data, data, variable", {"log_binomials"}),
]  # fmt: skip


@pytest.mark.parametrize(("row", "kinds", "tables"), COUNTS)
def test_sums_of_counts_come_from_tables(row, kinds, tables):
    use = 1
    for kind in kinds.split(", "):
        use = use << 2 | IS_ARRAY * ("array" in kind) | IS_VARIABLE * ("variable" in kind)
    code = row.compiled(use)[0].__code__
    assert tables <= {*code.co_names}
    assert not {*code.co_names} & {"gammaln", "lchoose", "log_rising_factorial", "zeta_difference"}
    assert code.co_filename.startswith(f"<varmat {row.name}: n array, ")
