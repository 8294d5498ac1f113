"""Inspecting a tape: `print_stack` and `profile`. Only counts are compared, never times."""

import io
import math
import pickle
import threading

import numpy as np
import pytest
from comparing import equal, refuses

import varmat as vm
from varmat.core.arena import LARGE
from varmat.core.tape import Tape, current_tape
from varmat.inspection import _scaled


@pytest.fixture(autouse=True)
def fresh_tape():
    yield
    vm.recover_memory()
    assert type(current_tape()) is Tape


def f(x):
    return np.sum(np.exp(x) * x + x[::-1] * x)


X = np.linspace(0.1, 1.0, 100)
COUNTS = {"exp": 1, "multiply": 2, "add": 1, "sum": 1, "leaf": 1}


def calls(costs):
    return {cost.name: cost.calls for cost in costs}


def held(costs):
    return {cost.name: (cost.values, cost.adjoints) for cost in costs}


def test_print_stack_writes_lines_and_a_graph():
    vm.recover_memory()
    x = vm.var([1.0, 2.0])
    np.sum(np.exp(x) * x[::-1]).grad()
    text, graph = io.StringIO(), io.StringIO()
    vm.print_stack(file=text)
    vm.print_stack(file=graph, dot=True)
    names = [line.split()[1] for line in text.getvalue().splitlines()]
    assert names == ["leaf", "exp", "multiply", "sum"]
    # The reversed view is shown as its parent.
    assert text.getvalue().splitlines()[2].endswith("<- #1 #0")
    assert graph.getvalue().startswith("digraph tape {")
    assert "n0 -> n2" in graph.getvalue()


def test_print_stack_has_one_line_for_a_variable():
    text = io.StringIO()
    with vm.nested():
        np.sum(vm.var(10.0 ** np.linspace(-10.0, 4.0, 6)) ** 2)
        vm.print_stack(file=text)
    assert [line.split()[0] for line in text.getvalue().splitlines()] == ["#0", "#1", "#2"]


def test_print_stack_shows_entries_of_every_kind_in_all_open_scopes():
    text = io.StringIO()
    with vm.nested():
        x = vm.var([[2.0, 0.5], [0.5, 1.0]])
        w, _ = np.linalg.eigh(x)
        y = x * 1.0
        y[0], y[1, 0] = w, 7.0
        y[1] = w[0]
        vm.reverse_pass_callback(lambda: None)
        with vm.nested():
            np.concatenate([y[0] * vm.var(3.0), w])
            vm.print_stack(file=text)
    lines = [line.split("  <- ") for line in text.getvalue().splitlines()]
    assert [" ".join([head.split()[1], *sources]) for head, *sources in lines] == [
        "leaf", "eigh #0", "multiply #0", "setitem #2 #1", "getitem #1", "setitem #2 #4",
        "reverse_pass_callback", "leaf", "multiply #2 #7", "concatenate #8 #1",
    ]  # fmt: skip
    assert lines[1][0].count("VarMat") == 2
    values = "[[0.79289322 2.20710678]  [0.79289322 0.79289322]]"
    assert lines[2][0].endswith(f"VarMat (2, 2)  val {values}  adj [[0. 0.]  [0. 0.]]")
    assert lines[7][0].endswith("Var  val 3  adj 0")


def test_operations_are_counted_under_their_names():
    with vm.profile() as costs:
        for _ in range(3):
            g = vm.gradient(f, X)
    equal(g, vm.gradient(f, X))
    assert calls(costs) == {name: 3 * count for name, count in COUNTS.items()}
    assert held(costs)["exp"] == (3 * X.nbytes, 3 * X.nbytes)
    assert all(cost.forward > 0 and cost.reverse > 0 for cost in costs if cost.name != "leaf")
    with vm.profile() as costs:
        y = f(vm.var(X))
        text = io.StringIO()
        vm.print_stack(file=text)
    assert calls(costs) == COUNTS
    assert text.getvalue().count("\n") == sum(COUNTS.values())
    refuses(vm.TapeError, "stale", lambda: y + 1.0)


def test_nothing_else_is_measured():
    """Before, after, and in other threads."""
    before = f(vm.var(X))
    with vm.profile() as costs:
        thread = threading.Thread(target=vm.gradient, args=(f, X))
        thread.start()
        thread.join()
    vm.gradient(f, X)
    assert [*costs] == []
    assert str(costs).splitlines()[-1].split()[:2] == ["total", "0"]
    before.grad()


def test_variables_from_outside_receive_their_adjoints():
    x = vm.var(X)
    with vm.profile() as costs:
        f(x).grad()
        equal(x.adj, vm.gradient(f, X))
    assert "leaf" in calls(costs)  # the leaf of the gradient, not x
    assert calls(costs)["exp"] == 2


def test_an_exception_passes_and_leaves_what_was_measured():
    def fails(x):
        np.exp(x)
        raise KeyError("out")

    with pytest.raises(KeyError, match="out"), vm.profile() as costs:
        vm.gradient(fails, X)
    assert calls(costs) == {"exp": 1, "leaf": 1}


def test_the_innermost_profile_counts():
    with vm.profile() as outer:
        vm.gradient(np.sum, X)
        with vm.profile() as inner:
            vm.gradient(f, X)
        vm.gradient(np.sum, X)
    assert calls(inner) == COUNTS
    assert calls(outer) == {"sum": 2, "leaf": 2}


def test_results_of_any_kind():
    a = np.array([[2.0, 0.5], [0.5, 1.0]])

    def g(a):
        w, v = np.linalg.eigh(a)
        y = vm.make_callback_var(1.0, lambda y: None)
        vm.reverse_pass_callback(lambda: None)
        return np.sum(w) * y + np.sum(v * v) + float(vm.value(w[0]))

    with vm.profile() as costs:
        vm.gradient(g, a)
    assert held(costs)["eigh"] == (48, 48)
    assert held(costs)["reverse_pass_callback"] == (0, 0)
    assert held(costs)["make_callback_var"] == (8, 8)


def test_functionals_inside():
    with vm.profile() as costs:
        h = vm.hessian(f, X[:3])
        j = vm.jacobian(np.exp, X[:3])
        _, pullback = vm.vjp(np.exp, X[:3])
        (product,) = pullback(np.ones(3))
    equal(h, vm.hessian(f, X[:3]))
    equal(j, np.diag(np.exp(X[:3])))
    equal(product, np.exp(X[:3]))
    assert calls(costs)["exp"] == 3 + 1 + 1


@pytest.mark.parametrize("rows", [(), (2, 4)])
def test_memory_that_belongs_to_others_is_not_counted(rows):
    n = LARGE + 8
    x = np.ones((*rows, n // math.prod(rows)))
    with vm.profile() as costs:
        vm.gradient(lambda x: np.sum(x * 2.0), x)
    # A large argument is not copied, and the adjoint of a summed array is one number.
    assert held(costs) == {"leaf": (0, 8 * n), "multiply": (8 * n, 0), "sum": (8, 8)}


def test_an_assignment_holds_what_it_overwrote():
    def g(x):
        y = x * 1.0
        y[2:5] = x[:3] * 2.0
        return np.sum(y * y)

    with vm.profile() as costs:
        vm.gradient(g, X)
    assert calls(costs)["setitem"] == 1
    assert held(costs)["setitem"] == (24, 0)


def test_lines_of_the_model_are_told_apart():
    def g(x):
        y = np.exp(x)
        z = np.exp(y)
        return vm.normal_lpdf(z, 0.0, 1.0) + np.linalg.norm(y) * 2.0

    with vm.profile(lines=True) as costs:
        vm.gradient(g, X)
    first = g.__code__.co_firstlineno
    expected = {("exp", 1), ("exp", 2), ("normal_lpdf", 3), ("add", 3), ("multiply", 3)}
    expected = {(name, f"test_inspection.py:{first + i}") for name, i in expected}
    names = ("exp", "normal_lpdf", "add", "multiply", "leaf")
    found = {(cost.name, cost.line) for cost in costs if cost.name in names}
    assert found == {("leaf", "")} | expected
    assert str(costs).splitlines()[0].split()[:3] == ["operation", "line", "calls"]
    assert f"test_inspection.py:{first + 1}" in str(costs)


def test_the_table_is_sorted_and_aligned():
    with vm.profile() as costs:
        vm.gradient(f, X)
    seconds = [cost.seconds for cost in costs]
    assert seconds == sorted(seconds, reverse=True)
    lines = str(costs).splitlines()
    assert lines[0].split() == ["operation", "calls", "forward", "reverse", "values", "adjoints"]
    assert [line.split()[0] for line in lines[1:]] == [*(cost.name for cost in costs), "total"]
    assert lines[-1].split()[1] == str(sum(COUNTS.values()))
    assert len({*map(len, lines)}) == 1
    assert repr(next(iter(costs))).startswith(f"<{next(iter(costs)).name}: calls")


@pytest.mark.parametrize(("x", "text"), [
    (0, "0 B"), (8, "8 B"), (999, "999 B"), (999.7, "1 kB"), (80_000, "80 kB"),
    (12_345_678, "12.3 MB"),
])  # fmt: skip
def test_sizes_have_three_digits(x, text):
    assert _scaled(x, ("B", "kB", "MB")) == text


def test_text_of_a_profile_that_is_not_entered():
    costs = vm.profile(lines=True)
    found = repr(costs)
    assert found == "<varmat.profile(lines=True), to be entered: with varmat.profile() as costs>"
    message = r"^profile: what is pickled is what varmat.profile.. returns, which holds no measure"
    refuses(TypeError, message, pickle.dumps, costs)
    with costs as measured:
        np.sum(np.exp(vm.var([1.0, 2.0])))
    again = pickle.loads(pickle.dumps(measured))
    assert str(again) == str(measured)
    assert repr(again) == repr(measured)
    assert repr(measured).startswith("<profile of 3 operations, ")
    with costs as second:  # the profile starts again
        pass
    assert len(second) == 0
    assert len(measured) == 3
