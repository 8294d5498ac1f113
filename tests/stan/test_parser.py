"""Stan programs as trees: every construct, old spellings, includes, and errors of syntax."""

import runpy
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from varmat.stan.errors import StanSyntaxError
from varmat.stan.parser import parse


def expression(text):
    (statement,) = parse(f"model {{ target += {text}; }}").model
    return repr(statement.value)


def test_every_block_in_order():
    program = parse(
        """functions { real f(data array[,] int k, tuple(real, vector) t); void g() { } }
        data { int<lower=0> N; array[N, 2] vector<offset=1, multiplier=2>[3] y; }
        transformed data { matrix[2, N] m = rep_matrix(0, 2, N), n; }
        parameters { simplex[3] p; cholesky_factor_cov[3] L; tuple(real<upper=1>, array[2] int) t; }
        transformed parameters { jacobian += 1; }
        model { }
        generated quantities { profile("a") { complex z = 1 + 2.5i; } }"""
    )
    forward, empty = program.functions
    assert [str(argument.type) for argument in forward.arguments] == [
        "array[,] int", "tuple(real, vector)",
    ]  # fmt: skip
    assert [argument.data for argument in forward.arguments] == [True, False]
    assert (forward.body, empty.body, empty.result) == (None, [], None)
    y = program.data[1]
    assert str(y.declared.unsized) == "array[,] vector"
    assert [repr(y.declared.offset), repr(y.declared.multiplier)] == [
        "Number(value=1)", "Number(value=2)",
    ]  # fmt: skip
    assert [one.name for one in program.transformed_data] == ["m", "n"]
    assert [len(one.declared.sizes) for one in program.parameters] == [1, 1, 0]
    assert str(program.parameters[2].declared.unsized) == "tuple(real, array[] int)"
    (profile,) = program.generated_quantities
    assert (profile.name, profile.body[0].name) == ("a", "z")


@pytest.mark.parametrize(("text", "same"), [
    ("a + b * c ^ d'", "a + (b * (c ^ (d')))"),
    ("-a ^ b", "-(a ^ b)"),
    ("a ^ -b ^ c * d", "(a ^ (-(b ^ c))) * d"),
    ("a - b - c", "(a - b) - c"),
    ("a * b %/% c \\ d", "a * ((b %/% c) \\ d)"),
    ("!a == b && c || d < e", "(((!a) == b) && c) || (d < e)"),
    ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
    ("a .* b ./ c .^ d", "(a .* b) ./ (c .^ d)"),
    ("a[1].2[3]", "((a[1]).2)[3]"),
])  # fmt: skip
def test_precedence(text, same):
    assert expression(text) == expression(same)


def test_expressions():
    assert expression("x[:, 2:, :n, i, ]") == (
        "Indexed(base=VariableName(name='x'), indices=[Range(lower=None, upper=None), "
        "Range(lower=Number(value=2), upper=None), "
        "Range(lower=None, upper=VariableName(name='n')), "
        "VariableName(name='i'), Range(lower=None, upper=None)])"
    )
    assert expression("normal_lpdf(y | {1}, [2.5e-1, .5])") == (
        "Call(name='normal_lpdf', arguments=[VariableName(name='y'), "
        "ArrayExpression(elements=[Number(value=1)]), RowVectorExpression(elements="
        "[Number(value=0.25), Number(value=0.5)])], bar=True)"
    )
    assert expression("(1_000, 2.i).2 + target()") == (
        "Binary(operator='+', left=Projection(base=TupleExpression(elements=[Number(value=1000), "
        "Number(value=2j)]), number=2), right=Call(name='target', arguments=[], bar=False))"
    )


def test_statements():
    program = parse(
        """model {
          for (i in 1:N) { if (a) x[i] += 1; else if (b) break; else { continue; } }
          for (e in v) while (1) reject("a // b", e);
          y ~ normal(0, 1) T[0, ];
          (a, b.1) = f(1,);
          g(); ;
        }""".replace("f(1,)", "f(1)")
    )
    loop, each, density, pair, call, empty = program.model
    (branch,) = loop.body
    (assignment,) = branch.body
    assert (assignment.operator, branch.otherwise[0].otherwise[0].at.line) == ("+", 2)
    assert each.body[0].body[0].items[0] == "a // b"
    assert (repr(density.lower), density.upper) == ("Number(value=0)", None)
    assert (type(pair.target).__name__, call.call.name, empty.body) == ("TupleExpression", "g", [])
    assert (density.at.line, density.at.column) == (4, 11)


def test_old_spellings_are_read_with_notes():
    program = parse(
        """functions { real[,] f(int[] k) { return rep_array(0, k[1], 2); } }
        data { real<lower=0> x[3, 2]; } # numbers
        model { vector[2] v[4]; real a; a <- 1; v[1] <- [1, a <-1]'; increment_log_prob(a);
          a <- if_else(1, 2, 3); }"""
    )
    assert str(program.functions[0].result) == "array[,] real"
    assert str(program.data[0].declared.unsized) == "array[,] real"
    assert [type(one).__name__ for one in program.model[2:]] == [
        "Assignment", "Assignment", "TargetIncrement", "Assignment",
    ]  # fmt: skip
    notes = [(note.at.line, note.text) for note in program.notes]
    assert set(notes) == {
        (1, "Arrays are declared otherwise today: write `array[,] real`."),
        (1, "Arrays are declared otherwise today: write `array[] int`."),
        (2, "Arrays are declared otherwise today: write `array[3, 2] real<lower=0> x`."),
        (2, "`#` no longer begins a comment: write `//`."),
        (3, "Arrays are declared otherwise today: write `array[4] vector[2] v`."),
        (3, "The arrow `<-` no longer assigns: write `=`."),
        (3, "`increment_log_prob` is gone: write `target += ...`."),
        (4, "The arrow `<-` no longer assigns: write `=`."),
        (4, "`if_else` is gone: write `condition ? yes : no`."),
    }


def test_a_present_program_has_no_arrows():
    program = parse("model { if (1 &&\n a <-1) ; }")
    assert repr(program.model[0].condition.right.operator) == "'<'"
    assert program.notes == []


def test_includes(tmp_path):
    (tmp_path / "f.stanfunctions").write_text(
        "real f(real x) {\n  return x +;\n}", encoding="utf-8"
    )
    (tmp_path / "g.stan").write_text("real g(real x) { return x; }", encoding="utf-8")
    (tmp_path / "m.stan").write_text(
        'functions {\n#include "g.stan"\n}\nmodel { real y }', encoding="utf-8"
    )
    with pytest.raises(StanSyntaxError) as caught:
        parse(tmp_path / "m.stan")
    assert caught.value.position == (str(tmp_path / "m.stan"), 4, 16)
    with pytest.raises(StanSyntaxError) as caught:
        parse("functions {\n#include f.stanfunctions\n}", include_paths=[tmp_path])
    assert caught.value.position == (str(tmp_path / "f.stanfunctions"), 2, 13)
    assert str(caught.value).splitlines()[1:] == ["  return x +;", "            ^"]
    program = parse("// #include none\nfunctions {\n#include <g.stan>\n}", include_paths=[tmp_path])
    assert program.functions[0].at == (str(tmp_path / "g.stan"), 1, 1)
    (tmp_path / "loop.stan").write_text("#include loop.stan", encoding="utf-8")
    with pytest.raises(StanSyntaxError, match=r"`loop\.stan` includes itself\."):
        parse(str(tmp_path / "loop.stan"))
    (tmp_path / "only.stanfunctions").write_text("real g(real x) { return x; }", encoding="utf-8")
    assert parse(tmp_path / "only.stanfunctions").functions[0].at.line == 1


@pytest.mark.parametrize(("text", "line", "column", "reason"), [
    ("model {\n real x = 1 }", 2, 13, "Unexpected `}`; expected `,` or `;`."),
    ("data { int data; }", 1, 12, "`data` is a word of the language, not a name."),
    ("model { x = (1; }", 1, 15, "Unexpected `;`; expected `,` or `)`."),
    ("parameters { real<lower=0, offset=1> x; }", 1, 28, "`offset` does not match `lower`."),
    ("model {} data {}", 1, 10, "The block `data` must stand before `model`."),
    ("model {} model {}", 1, 10, "The block `model` is here a second time."),
    ("model { f(1) = 3; }", 1, 9, "Nothing can be assigned to this expression."),
    ("model { x = 3 $ 4; }", 1, 15, "Unexpected character `$`."),
    ("model { /* a\n }", 1, 9, "This comment has no end."),
    ("model { print(1)\n", 2, 1, "Unexpected end of the program; expected `;`."),
    ("\n#include no.stan", 2, 1, "There is no file `no.stan` in `include_paths`, which is empty."),
])  # fmt: skip
def test_errors(text, line, column, reason):
    with pytest.raises(StanSyntaxError) as caught:
        parse(text)
    error = caught.value
    assert (error.position.line, error.position.column, error.reason) == (line, column, reason)
    assert str(error).startswith(f"program, line {line}, column {column}: {reason}\n")


def test_the_stored_tables_are_those_of_the_grammar():
    stored = files("varmat.stan").joinpath("grammar.json").read_text(encoding="utf-8")
    packed = runpy.run_path(str(Path(__file__).with_name("pack_grammar.py")))["text"]()
    assert stored == packed, "the grammar was changed: pack_grammar.py packs its tables"


def test_reading_a_program_imports_nothing_that_runs_it():
    """Nor what builds the tables of a grammar."""
    script = """
import sys, varmat
before = {*sys.modules}
varmat.stan.Program("parameters { real<lower=0> x; } model { x ~ normal(sqrt(2), 1); }")
new = {*sys.modules} - before
print(*{name for name in new if name.split(".")[0] not in sys.stdlib_module_names})
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=250
    )
    modules = "checks errors expressions lalr overloads parser program signatures syntax types"
    expected = {"varmat.stan", *(f"varmat.stan.{name}" for name in modules.split())}
    assert {*found.stdout.split()} == expected
