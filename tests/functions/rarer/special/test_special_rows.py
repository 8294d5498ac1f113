"""SciPy's further ufuncs: every row against mpmath and along all routes, and SciPy's own list of
names.
"""

import importlib
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.special
from comparing import close, refuses
from functions.rarer.special.special_points import check_points, check_routes

import varmat as vm
from varmat.core.elementwise import ROWS
from varmat.functions.rarer.special import further_names as special_names
from varmat.functions.rarer.special import waves
from varmat.functions.rows import ANSWERS, CONSTANT_OPERANDS, RARE, TRUNCATED

DOCS = Path(__file__).parents[4] / "docs"
TESTED = [name for name, rare in RARE.items() if rare.is_tested]
ANSWERED = sorted(name for name in ANSWERS if not name.startswith("_"))


@pytest.mark.parametrize("name", TESTED)
def test_row_agrees_with_mpmath(name):
    check_points(ROWS[name])


@pytest.mark.parametrize("name", TESTED)
def test_row_agrees_along_all_routes(name):
    check_routes(ROWS[name])


def operands(name):
    """Return operands of a ufunc of SciPy, taken from its first row. Rows of spheroidal functions
    combine some operands into one.
    """
    rows, arity = ANSWERS[name].rows, getattr(scipy.special, name).nin
    # hermite and bdtr need integers.
    point = [int(x) if float(x).is_integer() else x for x in rows[0].points[0]]
    if arity > rows[0].arity or (
        name.startswith(("pro_", "obl_")) and not name.endswith("_cv") and arity == 4
    ):
        modes = divmod(point[0], waves._BOTH)
        return [*modes, point[1], *([point[2]] if arity == 5 else []), point[3]]
    return point


@pytest.mark.parametrize("name", ANSWERED)
def test_scipy_function_dispatches_here(name):
    function = getattr(scipy.special, name)
    *held, last = operands(name)
    expected = np.atleast_1d(function(*held, last))
    for x, kind in (
        (vm.var(last), vm.Var),
        (vm.var([last, last]), vm.VarMat),
        (vm.matvar([last]), vm.MatVar),
        (vm.Dual(last, 1.0), vm.Dual),
    ):
        if _is_free(name):
            found = function(*held, x)
            for each, value in zip(
                found if isinstance(found, tuple) else (found,), expected, strict=True
            ):
                assert type(each) is kind
                plain = vm.value(each.val) if kind is vm.Dual else vm.value(each)
                close(plain, value, 1e-5 if name.startswith("nc") else 1e-9)
        else:
            refuses(TypeError, f"^{name}: .* but must be a constant", function, *held, x)


def _is_free(name):
    row = ANSWERS[name].rows[0]
    return row.arity - 1 not in CONSTANT_OPERANDS.get(row.name, {})


def test_constant_operands_are_refused_by_name():
    for name in TESTED:
        for place, title in CONSTANT_OPERANDS.get(name, {}).items():
            if name in ANSWERS:
                args = operands(name)
                args[place] = vm.var(args[place])
                message = rf"^{name}: {title} is a Var, but must be a constant"
                refuses(TypeError, message, getattr(scipy.special, name), *args)
    with pytest.raises(TypeError, match=r"^pro_ang1: the mode n is a Var, but must be a constant"):
        scipy.special.pro_ang1(1, vm.var(3.0), 1.5, 0.4)


@pytest.mark.parametrize(
    "name", sorted(name for name in special_names.REFUSED if not name.startswith("_"))
)
def test_refused_with_its_reason(name):
    ufunc = getattr(scipy.special, name)
    sentence = f"scipy.special.{name} is not differentiable here: {special_names.REFUSED[name]}"
    refuses(TypeError, f"^{re.escape(sentence)}$", ufunc, *[0.5] * (ufunc.nin - 1), vm.var(0.5))


def test_functions_that_scipy_wrote_in_python():
    s = scipy.special
    for theirs, ours in (
        (s.zeta, s.zetac), (lambda x: s.zeta(3.0, x), lambda x: vm.zeta(3.0, x)),
        (lambda x: s.jvp(2, x), lambda x: (s.jv(1, x) - s.jv(3, x)) / 2.0),
        (s.softplus, vm.log1p_exp),
        (lambda x: s.assoc_laguerre(x, 3, 1), lambda x: s.eval_genlaguerre(3, 1, x)),
    ):  # fmt: skip
        found, expected = vm.value_and_grad(theirs)(2.5), vm.value_and_grad(ours)(2.5)
        close(found[1], expected[1], 1e-13)
        close(found[0], theirs(2.5), 1e-13)
    message = r"scipy.special.lambertw is not differentiable here: .* write varmat.lambert_w0"
    refuses(TypeError, message, s.lambertw, vm.var(2.5))


def test_other_ufuncs_are_not_answered():
    assert special_names.answer(np.frompyfunc(lambda x: x, 1, 1)) is None
    message = "_cosine_cdf is not differentiable here: it is not known to varmat"
    refuses(TypeError, message, scipy.special._ufuncs._cosine_cdf, vm.var(0.5))


def test_the_tables_are_imported_on_first_use():
    code = """
import sys, scipy.special, varmat as vm
further = "distributions elliptic integrals noncentral polynomials sums waves".split()
room = "varmat.functions.rarer.special"
tables = lambda: [each for each in further if f"{room}.{each}" in sys.modules]
scipy.special.gammaln(vm.var(2.0)); vm.gradient(lambda x: abs(x) + (x > 0), 2.0)
print(tables())
scipy.special.stdtr(3.0, vm.var(2.0))
print(len(tables()) > 5)
"""
    # A row is pickled by name.
    code += f"import pickle; print(pickle.loads({pickle.dumps(ROWS['stdtr'])!r})(3.0, 0.0))"
    found = subprocess.run(
        [sys.executable, "-c", code.lstrip()],
        capture_output=True,
        text=True,
        check=True,
        timeout=250,
    )
    assert found.stdout.split() == ["[]", "True", "0.5"]


# SciPy 1.15 deprecates these names, and 1.17 does not have them.
GONE = {"clpmn", "lpmn", "lpn", "sph_harm"}


def test_the_table_follows_the_list_of_scipy(monkeypatch):
    """A name that is new in SciPy would be missing from the table."""
    monkeypatch.syspath_prepend(DOCS)
    table = importlib.import_module("scipy_special")
    answers = table.answers()
    assert answers.keys() == set(scipy.special.__all__)
    for name in GONE & answers.keys():
        del answers[name]
    assert [name for name, (_, text) in answers.items() if not text] == []
    page = (DOCS / "scipy_functions.md").read_text(encoding="utf-8")
    for name in answers:
        assert re.search(rf"^\| `{re.escape(name)}[(`]", page, flags=re.MULTILINE), (
            f"{name} is missing: python docs/scipy_special.py"
        )
    if f"those of SciPy {'.'.join(scipy.__version__.split('.')[:2])}." in page:
        assert page.split(table.START)[1].split(table.END)[0] == table.lines(), (
            "python docs/scipy_special.py"
        )


@pytest.mark.parametrize(("call", "x", "slope"), [
    (lambda t: scipy.special.stdtr(3.0, t), 0.0, 0.36755259694786135),
    (lambda v: scipy.special.stdtr(v, 0.0), 3.0, 0.0),
    (lambda x: scipy.special.pdtr(x, 2.0), 3.0, 0.0),
    (lambda x: scipy.special.sici(x)[0], 0.0, 1.0),
    (lambda x: scipy.special.ellipkinc(0.0, x), 0.3, 0.0),
    (lambda x: scipy.special.eval_legendre(1, x), 0.3, 1.0),
    (lambda x: scipy.special.airy(x)[1], 0.0, 0.0),
])  # fmt: skip
def test_derivatives_at_ends_and_middles(call, x, slope):
    for point in (x, np.array([x])):
        close(vm.gradient(lambda x: np.sum(call(x)), point), slope, 1e-14)


def test_elements_of_several_kinds():
    """The elements have whole and fractional degrees, and lie on both sides of the switch between
    two formulas.
    """
    n, legendre = np.array([3.0, 2.5, 0.0]), scipy.special.eval_legendre
    slopes = vm.gradient(lambda x: np.sum(legendre(n, x)), np.full(3, 0.3))
    close(slopes, [vm.gradient(lambda x, k=k: legendre(k, x), 0.3) for k in n], 1e-14)
    for f, place in (
        (scipy.special.kolmogorov, 0.85), (lambda t: scipy.special.stdtr(4.0, t), 2.0),
    ):  # fmt: skip
        sides = np.array([place - 1e-9, place + 1e-9])
        left, right = vm.gradient(lambda x, f=f: np.sum(f(x)), sides)
        close(left, right, 1e-7)
    far = np.array([11.18, 11.27])
    wide = vm.gradient(lambda x: np.sum(scipy.special.voigt_profile(x, 1.0, 1.0)), far)
    assert -8e-4 < wide[0] < wide[1] < -4e-4


# The operand that SciPy's function makes an integer, and a point.
COUNTED = {
    **dict.fromkeys(("bdtr", "bdtrc", "bdtri"), ("number of trials", (3.0, 9.5, 0.35))),
    **dict.fromkeys(("nbdtr", "nbdtrc", "nbdtri"), ("number of successes", (3.0, 9.5, 0.35))),
    **dict.fromkeys(("expn", "kn", "yn"), ("order x", (1.5, 0.35))),
    **dict.fromkeys(("smirnov", "smirnovi"), ("sample size x", (7.5, 0.35))),
}  # fmt: skip


def test_every_function_that_truncates_is_listed():
    """These are the ufuncs with a loop for integers that have none for fractions, only SciPy's
    truncation. Numbers of events are rounded down everywhere, and polynomials have real degrees.
    """
    truncating = set()
    for name in scipy.special.__all__:
        function = getattr(scipy.special, name)
        if isinstance(function, np.ufunc) and not name.startswith("eval_"):
            inputs = [loop.split("->")[0] for loop in function.types]
            if any(set(each) & set("lqip") for each in inputs):
                truncating.add(name)
    # The last is in older releases of SciPy only.
    assert truncating - {"pdtri", "sph_harm"} == TRUNCATED == COUNTED.keys()


@pytest.mark.parametrize("name", sorted(COUNTED))
def test_numbers_that_scipy_truncates_are_refused(name):
    title, point = COUNTED[name]
    function = getattr(scipy.special, name)
    place = 1 if len(point) == 3 else 0
    for wrong in (point[place], np.array([2.0, point[place]])):
        operands = [*point[:place], wrong, *point[place + 1 : -1]]
        index = r"\[1\]" if np.ndim(wrong) else ""
        with vm.nested() as tape:
            x = vm.var(point[-1])
            before = len(tape)
            rule = rf"^{name}: the {title}{index} is {point[place]}, but must be an integer!$"
            refuses(vm.DomainError, rule, function, *operands, x)
            assert len(tape) == before
    whole = [*point[:place], int(point[place]), *point[place + 1 : -1]]
    assert np.isfinite(vm.gradient(lambda x: function(*whole, x), point[-1]))
