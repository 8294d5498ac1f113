"""Checks of Stan programs: types on the nodes, the function meant, and the texts of errors."""

import io
import runpy
from pathlib import Path

import pytest

from varmat.stan import types
from varmat.stan.checks import check
from varmat.stan.errors import StanSemanticError
from varmat.stan.parser import parse
from varmat.stan.signatures import names, signatures


def checked(text):
    return check(parse(text))


DECLARED = """data { int n; real r; vector[3] v; row_vector[3] w; matrix[3, 3] m; array[2, 2] int k;
array[2] vector[3] a; complex z; tuple(int, vector[2]) t; }"""


@pytest.mark.parametrize(("text", "kind"), [
    ("n / 2", "int"), ("n / 2.0", "real"), ("n %/% 2", "int"), ("-n ^ 2", "real"),
    ("v * w", "matrix"), ("w * v", "real"), ("m * v", "vector"), ("w / m", "row_vector"),
    ("m \\ v", "vector"), ("v'", "row_vector"), ("v .* v + 1", "vector"), ("z * n", "complex"),
    ("z * v", "complex_vector"), ("n < r && !n", "int"), ("n ? 1 : 2.5", "real"),
    ("m[1]", "row_vector"), ("m[:, 1]", "vector"), ("m[1, 2:]", "row_vector"),
    ("m[k[1], k[2]]", "matrix"), ("a[1, 2]", "real"), ("a[:, 2]", "array[] real"),
    ("k[1]", "array[] int"), ("t.2[1]", "real"),
    ("{1, 2.5}", "array[] real"),
    ("{{1}, {2}}", "array[,] int"),
    ("[1, 2]", "row_vector"), ("[w, w]", "matrix"),
    ("[z]", "complex_row_vector"),
    ("(1, v)", "tuple(int, vector)"),
    ("exp(k)", "array[,] real"), ("abs(-2)", "int"), ("fmax(n, v)", "vector"),
    ("qr(m)", "tuple(matrix, matrix)"),
    ("normal_lpdf(v | 0, k[1])", "real"),
])  # fmt: skip
def test_types(text, kind):
    (call,) = checked(f"{DECLARED} model {{ print({text}); }}").model
    assert str(call.items[0].type) == kind
    assert call.items[0].data


def test_data_and_definitions():
    program = checked(
        """functions {
          real f(real x) { return x; }
          int f(int x) { return x; }
          vector g(real t, vector y, real k) { return k * y; }
          real odd_lpdf(real y, real a) { return a; }
        }
        parameters { real a; }
        model {
          array[1] vector[1] s = ode_rk45(g, [a]', 0, {1}, a);
          real b = f(1) + f(a);
          a ~ odd(1);
          a ~ normal(0, 1) T[0, ];
        }"""
    )
    f_real, f_int, g, odd = program.functions
    solved, total, own, normal = program.model
    assert solved.value.arguments[0].definition is g
    assert (total.value.left.definition, total.value.right.definition) == (f_int, f_real)
    assert (total.value.left.data, total.value.right.data) == (True, False)
    assert (own.function, own.definition) == ("odd_lpdf", odd)
    assert (normal.function, normal.definition) == ("normal_lpdf", None)


def test_old_functions_get_their_present_names():
    program = checked(
        """functions { real old_log(real y, real a) { return a; } }
        parameters { real y; }
        model {
          y ~ old(1);
          target += normal_log(y, 0, 1) + poisson_log(2, 1.0) + normal_cdf(y, 0, 1);
          target += normal_ccdf_log(y, 0, 1) + fabs(y) + get_lp();
        }"""
    )
    assert program.model[0].function == "old_log"
    assert [(note.at.line, note.text) for note in program.notes] == [
        (4, "The ending of `old_log` is old: write `old_lpdf` or `_lpmf`."),
        (5, "`normal_log` is gone: write `normal_lpdf(y | ...)`."),
        (5, "`poisson_log` is gone: write `poisson_lpmf(y | ...)`."),
        (5, "Write `|` after the first argument of `normal_cdf`."),
        (6, "`normal_ccdf_log` is gone: write `normal_lccdf(y | ...)`."),
        (6, "`fabs` is gone: write `abs()`."),
        (6, "`get_lp` is gone: write `target()`."),
    ]


MODEL = "parameters { real y; } model { %s }"
FUNCTIONS = "functions { %s }"
DATA = "transformed data { %s }"
# A block, what is in it, and what is said.
MISTAKES = [
    (MODEL, "real sigma; target += sgima;", "There is no `sgima`. Did you mean `sigma`?"),
    (MODEL, "target += sqr(y);", "There is no `sqr`. Did you mean `sqrt`?"),
    (MODEL, "y ~ norml(0, 1);", "There is no density `norml`. Did you mean `normal`?"),
    (MODEL, "y ~ normal(0);", "`normal_lpdf` takes 3 arguments, not 2."),
    (MODEL, "y ~ normal(0, {{1}});", ("Argument 3 of `normal_lpdf` is array[,] int, but must "
                                      "be array[] real or real or vector or row_vector.")),
    (MODEL, "y ~ normal_lpdf(0, 1);", "The ending belongs to calls: write `~ normal(...)`."),
    (MODEL, "y ~ lkj_corr(1) T[0, ];", None),
    (MODEL, "y ~ normal(0, 1) T[1i, ];", "A truncation must be int or real, but is complex."),
    (MODEL, "y = 2;", "`y` is from the block `parameters` (line 1) and stays as it is there."),
    (MODEL, "real y;", "`y` is declared already, in line 1."),
    (MODEL, "real<lower=0> x;", "Variables inside of blocks and functions have no constraints."),
    (MODEL, "if (y) { }", "A condition must be int, but is real."),
    (MODEL, "break;", "`break` belongs to loops."),
    (MODEL, "return;", "`return` belongs to functions."),
    (MODEL, "target += normal_lpdf(y, 0, 1);",
     "`normal_lpdf` needs `|` after its first argument, not a comma."),
    (MODEL, "real x = normal_rng(0, 1);",
     ("`normal_rng` draws at random, which only transformed data, generated quantities and "
      "functions with `_rng` may.")),
    (MODEL, "sqrt(y);", "`sqrt` returns real, which nothing uses: assign it."),
    (MODEL, "for (i in 1:2) i = 3;",
     "`i` is set by the loop or the call (line 1) and stays as it is."),
    (MODEL, "int a; (a, a) = (1, 2);", "`a` is assigned twice in one statement."),
    (MODEL, "array[2] int a; a[a[1]] = 1;",
     "`a` is assigned and read on the left of one assignment."),
    (MODEL, "matrix[2, 2] a; a[:][1] = 1;",
     "Indices of several elements come last in an assignment."),
    (DATA, "int n = 2.5;", "`n` is int and cannot hold real."),
    (DATA, "int n; n = 2.5;", "Int cannot hold real."),
    (DATA, "int n; n += 2.5;", "`+=` does not apply to int and real."),
    (DATA, "int n = 3000000000;", "Integers of Stan end at 2147483647."),
    (DATA, "vector[2] v; v[1, 2] = 1;", "vector does not have 2 indices."),
    (DATA, "vector[2] v; print(v * v);", "`*` does not apply to vector and vector."),
    (DATA, "target += 1;", "`target +=` belongs to the model and to functions with `_lp`."),
    (DATA, "print((1, 2).3);", "The tuple has 2 elements, not 3."),
    (DATA, "print({1, [2]});", "An array of int cannot hold row_vector."),
    (DATA, "int auto;", "`auto` is reserved and cannot be a name."),
    ("%s", "data { real x = 1; }", "Nothing can be assigned in the block `data`."),
    ("%s", "parameters { int k; }", "Parameters are not discrete, so `k` cannot hold int."),
    ("%s", "parameters { real x; vector[x] y; }",
     "Sizes depend on data alone, but `x` is not data."),
    ("%s", "parameters { complex<lower=0> x; }", "Complex variables have no constraints."),
    (FUNCTIONS, "real f(real x) { if (x > 0) return x; }",
     "Not every path through `f` returns real."),
    (FUNCTIONS, "int f() { return 1.5; }", "`f` returns int, not real."),
    (FUNCTIONS, "void f(int x) { x = 1; }",
     "`x` is set by the loop or the call (line 1) and stays as it is."),
    (FUNCTIONS, "real f(real x) { return 1; } real f(real y) { return 2; }",
     "`f` with these arguments is defined in line 1."),
    (FUNCTIONS, "real f();", "`f` is declared, but not defined."),
    (FUNCTIONS, "real exp(real x) { return x; }",
     "`exp` with these arguments is a function of Stan."),
    (FUNCTIONS, "int f_lpdf(real x) { return 1; }",
     "`f_lpdf` must return real because of its ending, not int."),
    (FUNCTIONS, "real f(data real x) { return x; } real g(real x) { return f(x); }",
     ("Argument 1 of `f` must be data, but depends on parameters or on local variables that "
      "could hold them.")),
    (FUNCTIONS, "real f(real a, int b) { return 1; } real f(int a, real b) { return f(1, 1); }",
     "`f` of (int, int) is ambiguous: 2 definitions fit equally well."),
    (FUNCTIONS,
     "vector f(real t, vector y) { return y; } void g(vector y) {print(ode_rk45(f,y,0,1));}",
     "`ode_rk45` takes (vector, real, array[] real) after `f`, not (vector, int, int)."),
    (FUNCTIONS,
     "real f(array[] int x, int a, int b) {return 1;} real g() {return reduce_sum(f, 3, 1);}",
     "`reduce_sum` slices an array, not int."),
]  # fmt: skip


@pytest.mark.parametrize(("block", "text", "reason"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes(block, text, reason):
    with pytest.raises(StanSemanticError) as caught:
        checked(block % text)
    assert reason is None or caught.value.reason == reason


def test_the_place_has_a_caret():
    with pytest.raises(StanSemanticError) as caught:
        checked("model {\n\treal x = 1;\n\tx = y;\n}")
    assert str(caught.value) == "program, line 3, column 6: There is no `y`.\n\tx = y;\n\t    ^"


def test_paths_that_return():
    checked(
        """functions {
          real a(int n) { while (1) { if (n) return 1; } }
          real b(int n) { if (n) reject("n"); else return 2; }
          real c(int n) { for (i in 1:n) { return 1; } }
          real d(int n) { print("on"); { return 1; } }
        }"""
    )
    with pytest.raises(StanSemanticError, match="Not every path"):
        checked("functions { real a(int n) { while (1) { if (n) break; return 1; } } }")


def test_signatures_are_packed_without_loss(monkeypatch, capsys):
    listed = [
        "f(real, array[] int) => array[] real", "f(int, array[] int) => array[] real",
        "f(int, array[,] int) => array[,] real", "f(real, array[,] int) => array[,] real",
        "g(tuple(vector, int), (real, data array[] real) => vector) => void", "h() => int",
        "algebra_solver((vector) => vector, vector, vector, array[] real, array[] int) => vector",
    ]  # fmt: skip
    module = runpy.run_path(str(Path(__file__).with_name("pack_signatures.py")))
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*listed, ""])))
    module["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line[0] in "fgh"] == [
        "f: i|r,1i=1r+1", "g: (v;i),<r;d1r=v>=-", "h: =i",
    ]  # fmt: skip
    assert "algebra_solver: <v=v>,v,v,d1r,d1i=v" in lines


def test_signatures_of_the_library():
    assert {"normal_lpdf", "ode_rk45", "hmm_marginal", "sum_to_zero_constrain"} <= names()
    (dot,) = [one for one in signatures("dot_product") if one.result == types.REAL][:1]
    assert {str(argument.type) for argument in dot.arguments[0]} & {"vector", "array[] real"}
    assert signatures("no_such_function") == ()
