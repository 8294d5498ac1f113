"""Elementwise operations: operators between variables of all kinds and data, foreign types, and
users' own rows.
"""

import gc
import inspect
import linecache
import pickle
import re
import traceback

import numpy as np
import pytest
from comparing import close, equal, refuses

import varmat as vm
from varmat.core import dispatch
from varmat.core.arena import LARGE
from varmat.core.elementwise import ROWS, USERS, _check_expressions
from varmat.testing import expect_ad, expect_value


def test_functions_take_data_of_pandas_as_data():
    import pandas

    x, series = np.array([4.0, 3.0]), pandas.Series([1.5, 2.5])
    for f in (
        vm.beta,
        lambda x, y: vm.beta(y, x),
        lambda x, y: vm.fma(y, x, y),
        lambda x, y: vm.normal_lpdf(y, x, 1.0),
    ):
        with vm.nested() as tape:
            f(vm.var(x), series.to_numpy())
            count = len(tape)
            f(vm.var(x), series)
            assert len(tape) == 2 * count
        equal(vm.jacobian(f, x, series), vm.jacobian(f, x, series.to_numpy()))


def test_a_row_keeps_the_rows_that_had_the_names():
    """The library's expressions keep to the library's rows, and those of users to the rows that had
    the names when they were made.
    """
    exact = vm.value_and_grad(np.cosh)(0.3), vm.hessian(np.sin, 0.3)
    first = own("my_own", 2.0, "2.0 * g + 0.0 * sinh(x)")
    reader = own("my_reader", 1.0, "g * my_own(x)")
    for name in ("sinh", "cosh", "square", "multiply", "my_own"):
        own(name, 1000.0, "1000.0 * g")
    assert (vm.value_and_grad(np.cosh)(0.3), vm.hessian(np.sin, 0.3)) == exact
    assert vm.gradient(lambda x: x * x, 3.0) == 6.0
    assert vm.gradient(first, 1.0) == 2.0
    assert vm.gradient(reader, 1.5) == 3.0
    assert vm.gradient(lambda x: np.sum(reader(x)), np.array([1.5])) == 3.0
    assert vm.recorded(lambda x: np.sum(reader(x)))(np.array([1.5]))[1][0] == 3.0
    assert vm.hessian(reader, 1.5) == 2.0
    assert vm.gradient(own("my_later", 1.0, "g * my_own(x)"), 1.5) == 1500.0
    # A name means the row itself in its own expression.
    twice = [own("my_power", k, f"{k} * g + 0.0 * my_power(x)") for k in (2.0, 3.0)]
    assert [vm.gradient(f, 1.0) for f in twice] == [2.0, 3.0]


def test_expressions_keep_to_the_rows_of_the_library_where_a_users_row_answers(monkeypatch):
    exact = vm.hessian(np.sin, 0.3)
    monkeypatch.setitem(dispatch.SUPPORTED, np.cos, None)
    vm.elementwise("my_cosine", np.cos, "1000.0 * g")
    assert vm.gradient(np.cos, 0.3) == 1000.0
    assert vm.hessian(np.sin, 0.3) == exact


def own(name, factor, partial):
    return vm.elementwise(
        name, np.frompyfunc(lambda x: factor * x, 1, 1), partial, scalar=lambda x: factor * x
    )


def test_where_in_an_expression_is_always_the_selection():
    own("where", 2.0, "2.0 * g")
    clipped = own("my_clipped", 1.0, "where(x > 0.0, g, 0.0)")
    for f in (clipped, vm.hessian(lambda x: clipped(x) * x)):
        assert f(-1.0) == (-1.0 if f is clipped else 0.0)
    equal(vm.gradient(lambda x: np.sum(clipped(x)), np.array([-1.0, 1.0])), [0.0, 1.0])


def test_shortcuts_are_the_rows_that_had_the_names():
    squared = own("my_square", 5.0, "5.0 * g")
    ufunc = np.frompyfunc(lambda x, y: x * y, 2, 1)
    times = vm.elementwise(
        "my_times", ufunc, "g * y", "g * x", shortcuts={2.0: "my_square"}, with_itself="my_square"
    )
    own("my_square", 1000.0, "1000.0 * g")
    assert vm.gradient(lambda x: times(x, 2.0), 1.0) == vm.gradient(squared, 1.0) == 5.0
    assert vm.gradient(lambda x: times(x, x), 1.0) == 5.0
    assert vm.gradient(lambda x: np.sum(times(x, x)), np.ones(2)).tolist() == [5.0, 5.0]


def test_pickles_of_rows_of_one_name():
    mine = own("sinh", 2.0, "2.0 * g")
    assert pickle.loads(pickle.dumps(mine)) is mine
    assert pickle.loads(pickle.dumps(ROWS["sinh"])) is ROWS["sinh"] is not mine
    later = own("sinh", 3.0, "3.0 * g")
    message = r"^<varmat elementwise operation sinh> cannot be pickled, because another row"
    refuses(pickle.PicklingError, message, pickle.dumps, mine)
    assert pickle.loads(pickle.dumps(later)) is later


NAMES = "is not among the names it may use: "
# The contributions of a row, its settings, and the error.
FAULTY = [
    (["g / (1 + x"], {}, "to x is 'g / (1 + x', but must be an expression ('(' was never closed)!"),
    (["g * y"], {}, f"contribution of faulty to x is 'g * y', but y {NAMES}g, r, x, where, rows"),
    (["g * y", "h * x"], {},
     f"contribution of faulty to y is 'h * x', but h {NAMES}g, r, x, y, where"),
    (["g * squar(x)"], {}, f"contribution of faulty to x is 'g * squar(x)', but squar {NAMES}"),
    # NumPy has nan_to_num, but it accepts arrays only.
    (["g * nan_to_num(x)"], {}, f"but nan_to_num {NAMES}"),
    (["2.0 * x"], {}, "the contribution of faulty to x is '2.0 * x', but must be linear in g"),
    (["g"] * 5, {}, "faulty has 5 contributions, but must have one to 4!"),
    ([], {}, "faulty has 0 contributions"),
    (["g"], {"scalar": "x +"},
     "the function of faulty for scalars is 'x +', but must be an expression (invalid syntax)!"),
    (["g"], {"scalar": "sine(x)"}, f"scalars is 'sine(x)', but sine {NAMES}x and what math has!"),
    (["g", "g"], {"with_itself": "squar"},
     "faulty is to be replaced by squar, but must be by a row of the table!"),
    (["g", "g"], {"shortcuts": {2.0: "squar"}},
     "faulty is to be replaced by squar, but must be by a row of the table!"),
]  # fmt: skip


@pytest.mark.parametrize(("partials", "settings", "message"), FAULTY)
def test_a_row_with_an_error_fails_where_it_is_written(partials, settings, message):
    function = np.frompyfunc(lambda *xs: sum(xs), max(1, len(partials)), 1)
    message = f"^elementwise: .*{re.escape(message)}"
    refuses(ValueError, message, vm.elementwise, "faulty", function, *partials, **settings)
    assert "faulty" not in ROWS


def test_a_contribution_is_a_text():
    message = (
        "^elementwise: the contribution of faulty to x is a function, but must be an expression"
    )
    refuses(TypeError, message, vm.elementwise, "faulty", np.sin, lambda g, x: g)


def test_rows_of_the_library_have_no_errors():
    """Rows of the library skip these checks when they are made, to keep the import fast. Here they
    are checked.
    """
    for row in list(ROWS.values()):
        # Rows of higher order are made when they are first needed, so their names may be missing
        # here.
        if not row.name.startswith(("hyp2f1_d", "carlson_")):
            _check_expressions(row.name, row.partials, row.scalar_text, ROWS.keys())
            assert {*row.shortcuts.values(), row.with_itself} - {None} <= ROWS.keys()


def lines_of_rules():
    """Return the file names under which debuggers find the rules of these tests."""
    return [name for name in linecache.cache if name.startswith("<varmat ") and "failing" in name]


def failing(x):
    if isinstance(x, float):
        raise RuntimeError("no value")
    return x


def test_tracebacks_show_the_lines_of_rules():
    vm.elementwise("failing", np.copy, "g", scalar=failing)
    vm.elementwise("failing_user", np.copy, "g * failing(x) + g", scalar="0.5 * x")
    with pytest.raises(RuntimeError) as caught, vm.nested():
        USERS["failing_user"](vm.var(1.0)).grad()
    linecache.checkcache()  # debuggers call this
    text = "".join(traceback.format_exception(caught.value))
    assert 'File "<varmat rule of failing_user>", line ' in text
    assert "    cx = g * failing(x) + g" in text
    assert "return 0.5 * x" in inspect.getsource(USERS["failing_user"].scalar)
    del caught, text
    # A row that is redefined again and again, as in a notebook, does not leave its old texts
    # behind.
    for _ in range(20):
        again = vm.elementwise("failing_user", np.copy, "2.0 * g", scalar="0.5 * x")
        assert vm.gradient(again, 1.0) == 2.0
        equal(vm.jvp(again, (np.ones(2),), (np.ones(2),))[1], [2.0, 2.0])
    gc.collect()
    assert 0 < len(lines_of_rules()) < 10
    del USERS["failing"], USERS["failing_user"], again
    gc.collect()
    assert lines_of_rules() == []


def test_a_row_of_a_python_function_makes_floats():
    """`numpy.frompyfunc` returns arrays of objects, which a row converts to floats."""
    softsign = vm.elementwise(
        "own_softsign",
        np.frompyfunc(lambda x: x / (1 + abs(x)), 1, 1),
        "g / square(1 + absolute(x))",
        points=[(0.5,)],
        reference="x / (1 + abs(x))",
    )
    expect_value(softsign, "x / (1 + abs(x))", [(0.5,), (-1e-9,), (-300.0,)])
    for f in (
        lambda x: softsign(x) * x,
        lambda x: np.exp(softsign(x)),
        lambda x: np.sin(x) * softsign(x)[::-1],
    ):
        expect_ad(f, np.array([0.3, 1.2, -2.0]))
        expect_ad(f, np.linspace(-2.0, 2.0, 6).reshape(2, 3))
    x = np.linspace(-2.0, 2.0, LARGE + 3)
    slope = 1.0 / (1.0 + abs(x)) ** 2
    close(vm.gradient(lambda x: np.sum(softsign(x) * x), x), slope * x + x / (1 + abs(x)), 1e-14)


def test_rows_are_functions_with_a_name_a_signature_and_a_home():
    assert repr(vm.log1m_exp) == "<varmat elementwise operation log1m_exp>"
    assert str(inspect.signature(vm.fma)) == "(x, y, z, /)"
    assert pickle.loads(pickle.dumps(ROWS["multiply"])) is ROWS["multiply"]
    for args, named, told in (
        ((), {}, "0 operands are given"), ((1.0, 2.0), {}, "2 operands are given"),
        ((1.0,), {"y": 1.0, "z": 2.0}, "y, z is given by name"),
    ):  # fmt: skip
        message = rf"^log1m_exp: {told}; the signature is log1m_exp\(x, /\)$"
        refuses(TypeError, message, vm.log1m_exp, *args, **named)
