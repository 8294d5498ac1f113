"""The record of what the tests cover: public functions that no other test compares, attribution of
calls, and failing runs.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import conftest
import numpy as np
import pytest
from comparing import refuses

import varmat as vm
from varmat.testing import coverage, expect_ad, expect_ad_matvar, expect_reference, expect_value

X = np.array([0.7, -1.3, 2.1, 0.4])
M = np.array([[0.5, 1.5, -2.5], [3.0, -0.25, 1.0]])
LOWER = np.array([[1.5, 0.0], [-0.4, 0.8]])

# Functions whose own tests do not compare the routes.
CASES = {
    "array": (lambda x: np.array([1.0, 2.0], like=x) * x[:2], X),
    "array_split": (lambda x: np.array_split(x, 3), X),
    "astype": (lambda x: np.astype(x, np.float64), X),
    "atleast_2d": (lambda x: np.atleast_2d(x), X),
    "atleast_3d": (lambda x: np.atleast_3d(x), M),
    "cumulative_sum": (vm.cumulative_sum, X),
    "dsplit": (lambda x: np.dsplit(x, 2), X.reshape(1, 2, 2)),
    "expand_dims": (lambda x: np.expand_dims(x, 1), X),
    "flip": (np.flip, M), "fliplr": (np.fliplr, M), "flipud": (np.flipud, M),
    "generalized_inverse": (vm.generalized_inverse, M),
    "hsplit": (lambda x: np.hsplit(x, 3), M),
    "kron": (vm.kron, M, LOWER), "mean": (vm.mean, M), "prod": (vm.prod, X),
    "mdivide_left_tri_low": (vm.mdivide_left_tri_low, LOWER, M),
    "moveaxis": (lambda x: np.moveaxis(x, 0, 1), M),
    "multigammaln": (lambda a: vm.multigammaln(a, 3), 2.5),
    "nanstd": (lambda x: np.nanstd(x), np.array([0.5, np.nan, 2.0])),
    "ravel": (np.ravel, M), "real": (lambda x: np.real(x), X), "reverse": (vm.reverse, X),
    "rollaxis": (lambda x: np.rollaxis(x, 1), M),
    "rot90": (lambda x: np.rot90(x), M),
    "split": (lambda x: np.split(x, 2), X),
    "squeeze": (np.squeeze, M[:, None]),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 1), M),
    "to_matrix": (lambda x: vm.to_matrix(x, 2, 2), X),
    "to_vector": (vm.to_vector, M),
    "unique": (lambda x: (np.unique_all(x)[0], np.unique_counts(x)[0], np.unique_inverse(x)[0]), X),
    "vsplit": (lambda x: np.vsplit(x, 2), M),
}  # fmt: skip
# NumPy has unstack since 2.1.
if hasattr(np, "unstack"):
    CASES["unstack"] = (lambda x: np.unstack(x), M)


@pytest.mark.parametrize("name", CASES)
def test_all_routes(name):
    expect_ad(*CASES[name])
    # A matvar has the type object and cannot change it.
    if name != "astype":
        expect_ad_matvar(*CASES[name])


@pytest.fixture
def recorder(monkeypatch):
    """Install a recorder for this test in place of the session's."""
    monkeypatch.setattr(coverage, "_recorder", None)
    return coverage.start()


def noted(recorder, names, column="varmat"):
    """Return whether exactly the functions with these names have an entry in the column."""
    rows = [row for row in recorder.rows if column in row.errors]
    return len(rows) == len(names) and all(names & {*row.names} for row in rows)


def composed(x):
    return np.std(vm.log_sum_exp(x) * x)


ATTRIBUTIONS = [
    # Public functions, called in all possible ways.
    (np.linalg.det, (M[:, :2],), {"determinant"}),
    (vm.determinant, (M[:, :2],), {"determinant"}),
    (lambda a: np.linalg.det(a), (M[:, :2],), {"determinant"}),
    (lambda a: vm.determinant(a), (M[:, :2],), {"determinant"}),
    (np.exp, (X,), {"np.exp"}),
    (lambda x: np.exp(x), (0.5,), {"np.exp"}),
    (lambda x: vm.Phi(x), (0.5,), {"Phi"}),
    (lambda y: vm.normal_lpdf(y, 0.0, 1.0), (X,), {"normal_lpdf"}),
    # Operators and methods.
    (lambda x, y: x * y - x, (X, X), {"np.multiply", "np.subtract"}),
    (lambda x: -x + 2.0, (0.5,), {"np.negative", "np.add"}),
    (lambda a: a @ a.T, (M,), {"np.matmul", "np.transpose"}),
    (lambda x: x.sum(), (X,), {"np.sum"}),
    # A function that calls several others. These count, but not the functions that they call in
    # turn.
    (composed, (X,), {"np.std", "log_sum_exp", "np.multiply"}),
    (lambda x: np.cov(x), (M,), {"np.cov"}),
    (lambda x: np.flip(np.ravel(x)), (M,), {"np.flip", "np.ravel"}),
    # Functions that share their code, and a method of a ufunc, which counts as another function.
    (lambda x: np.fliplr(x), (M,), {"np.fliplr"}),
    (lambda x: np.add.reduce(x), (X,), {"np.sum"}),
    # Functions of data alone, functions that do nothing, and functions that raise.
    (lambda x: x, (X,), set()),
    (lambda x: np.exp(X)[0], (X,), set()),
    (lambda x: np.exp(x) + [][0], (X,), set()),
]


@pytest.mark.parametrize(("f", "args", "expected"), ATTRIBUTIONS)
def test_the_outermost_public_functions_count(recorder, f, args, expected):
    before = sys.getprofile()
    coverage.note(f, args, varmat=1e-16)
    assert noted(recorder, expected), expected
    assert sys.getprofile() is before


def test_the_harness_notes_what_it_compares(recorder):
    expect_ad(np.square, X)
    assert all(
        noted(recorder, {"np.square"}, column)
        for column in ("varmat", "forward", "hessian", "recorded")
    )
    expect_ad_matvar(np.log1p, X**2)
    assert noted(recorder, {"np.log1p"}, "matvar")
    expect_value(np.log, "log(x)", [2.0])
    assert noted(recorder, {"np.log"}, "mpmath")
    expect_reference(lambda x, y: np.multiply(x, y), (3.0, 2), 6.0, (2.0, None))
    assert noted(recorder, {"np.multiply"}, "reference")
    refuses(AssertionError, None, expect_reference, np.exp, (0.0,), 1.1, (1.0,))
    refuses(vm.ShapeError, None, vm.determinant, M)
    assert ["determinant" in row.names for row in recorder.rows if row.refusals] == [True]
    assert noted(recorder, {"np.multiply"}, "reference")


def test_an_expected_refusal_is_no_comparison(recorder):
    expect_ad(vm.determinant, M)
    assert noted(recorder, set())


def test_the_worst_error_is_kept(recorder):
    for error in (1e-16, 3e-13, 2e-15):
        coverage.note(np.exp, mpmath=error)
    coverage.note(np.exp, varmat=0.0)
    (row,) = (row for row in recorder.rows if "np.exp" in row.names)
    assert row.worst == row.errors["mpmath"] == 3e-13
    assert row.cells()[1:] == ["0", "", "", "", "", "", "3e-13", "", "", "3e-13"]
    refuses(
        TypeError, "column is 'speed', but must be one of", lambda: coverage.note(np.exp, speed=1.0)
    )


def test_refusals_are_known_by_the_name_in_their_text(recorder):
    for text in (
        "determinant: no", "det: no", "np.linalg.det: no", "nobody: no", "no name", "",
        "in the middle det: no",
    ):  # fmt: skip
        coverage.note_refusal(ValueError(text))
    found = [("determinant" in row.names, row.refusals) for row in recorder.rows if row.refusals]
    assert found == [(True, 3)]


def test_without_a_recorder_nothing_is_called(monkeypatch):
    monkeypatch.setattr(coverage, "_recorder", None)
    coverage.note(lambda: pytest.fail("called"), varmat=0.0)
    coverage.note_refusal(ValueError("det: no"))
    coverage.start()
    coverage.stop()
    assert coverage._recorder is None


def test_the_rows_are_the_public_functions(recorder):
    listed = [name for row in recorder.rows for name in row.names]
    assert len(listed) == len(set(listed))
    known = "normal_lpdf log_sum_exp np.sum np.linalg.det scipy.special.expit np.add"
    assert {*known.split()} <= {*listed}
    assert not {*["grad", "nested", "var", "elementwise", "np.shape", "np.argmax", "VarMat"]} & {
        *listed
    }
    modules = ("complexes.", "functions.", "densities.", "transforms.")
    assert all(row.module.startswith(modules) for row in recorder.rows)


def test_missing_functions_are_named(recorder):
    everything = recorder.missing()
    # These are all but the functions no argument of which can be a variable.
    assert len(recorder.rows) - 10 < len(everything) < len(recorder.rows)
    coverage.note(np.exp, varmat=0.0)
    coverage.note(np.log, matvar=0.0)
    assert noted(recorder, set(everything) - set(recorder.missing()))


def test_table(recorder):
    coverage.note(np.exp, varmat=2e-16, mpmath=0.0)
    coverage.note(np.log, varmat=0.0)
    heading, *body, totals = recorder.table()
    assert heading == ["function", *coverage.COLUMNS, "worst"]
    found = ["functions.elementwise: np.exp", "2e-16", "", "", "", "", "", "0", "", "", "2e-16"]
    assert found in body
    assert totals == [
        f"{len(body)} functions", "2", "0", "0", "0", "0", "0", "1", "0", "0", "2e-16",
    ]  # fmt: skip
    assert recorder.text().count("\n") == len(body) + 1
    lines = recorder.markdown().splitlines()
    assert {line.count(" | ") for line in lines} == {len(heading) - 1}
    assert set(lines[1]) == set("| -:")


# Conditions of a complete run of the suite.

ROOT = Path(__file__).parents[1]
COMPLETE = {
    "args": [str(ROOT)],                            "option": {"collectonly": False, "maxfail": 0},
    "left_out": 0,                                  "files": None,
}  # fmt: skip
RUNS = {
    "everything": ({}, True),
    "a selection by name": ({"left_out": 3}, False),
    "one test": ({"args": ["tests/test_docs.py::test_page_runs"]}, False),
    "one file": ({"files": [ROOT / "test_docs.py"]}, False),
    "the first failure ends it": ({"option": {"collectonly": False, "maxfail": 1}}, False),
    "nothing is run": ({"option": {"collectonly": True, "maxfail": 0}}, False),
    "several processes": ({"files": [], "processes": [{"saw_all": True}] * 2}, True),
    "one process left some out": (
        {"files": [], "processes": [{"saw_all": True}, {"saw_all": False}]}, False),
    "one process crashed": ({"files": [], "processes": [{"saw_all": True}, {}]}, False),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_only_a_complete_run_demands_all_functions(name, recorder):
    changes, complete = RUNS[name]
    settings = {**COMPLETE, **changes}
    files = ROOT.rglob("test_*.py") if settings["files"] is None else settings["files"]
    config = SimpleNamespace(args=settings["args"], option=SimpleNamespace(**settings["option"]))
    run = conftest.Coverage(config, recorder)
    run.pytest_deselected([None] * settings["left_out"])
    items = [SimpleNamespace(path=path) for path in files]
    session = SimpleNamespace(items=items, exitstatus=pytest.ExitCode.OK)
    run.pytest_collection_finish(session)
    for output in settings.get("processes", ()):
        run.pytest_testnodedown(SimpleNamespace(workeroutput=output))
    assert run.is_complete() is complete
    run.pytest_sessionfinish(session)
    assert session.exitstatus == (pytest.ExitCode.TESTS_FAILED if complete else pytest.ExitCode.OK)
    for row in recorder.rows:
        coverage.note(row.function, varmat=0.0)
    session.exitstatus = pytest.ExitCode.OK
    run.pytest_sessionfinish(session)
    assert session.exitstatus == pytest.ExitCode.OK


SUITE = """
import numpy as np
from varmat.testing import expect_ad, coverage

def test_all_but_the_first():
    expect_ad(np.exp, 0.5)
    for row in coverage.public_functions()[1:]:
        coverage.note(row.function, varmat=0.0)
"""


MISSING = "could not import 'nutpie': No module named 'nutpie'"
SKIPPING = f"""
import pytest

def test_of_an_extra():
    pytest.skip("{MISSING}")
"""


def test_a_run_in_which_a_function_and_an_extra_are_missing(tmp_path):
    """One process runs the tests, and another one prints."""
    for name in ("conftest.py", "rows_at_import.py"):
        shutil.copy(ROOT / name, tmp_path)
    first, other = SUITE.split("    for row")
    (tmp_path / "test_suite.py").write_text(first + SKIPPING, encoding="utf-8")
    (tmp_path / "test_other.py").write_text(
        first.replace("np.exp, 0.5", "np.log, 0.5") + "    for row" + other, encoding="utf-8"
    )
    options = ["-q", "-p", "no:cacheprovider", "--coverage-table", "-n", "1"]
    command = [sys.executable, "-m", "pytest", *options]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=250)
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout + result.stderr
    assert "2 passed, 1 skipped" in result.stdout
    missing = coverage.public_functions()[0].names[0]
    assert f"No expect_ad in the tests for {missing}\n" in result.stdout
    assert f"packages that our extras name: Skipped: {MISSING}\n" in result.stdout
    rows = [line.split()[:3] for line in result.stdout.splitlines()]
    assert ["functions.elementwise:", "np.exp", "0"] in rows


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize(("reason", "fails"), [
    (MISSING, True),
    ("ArviZ is not installed", True),
    ("Dask is not installed", False),
    ("this ArviZ has no InferenceData", False),
])  # fmt: skip
def test_a_complete_run_fails_if_tests_of_an_extra_are_skipped(reason, fails, complete):
    skips = conftest.Skips(lambda: complete)
    skips.pytest_runtest_logreport(SimpleNamespace(skipped=True, longrepr=("file", 1, reason)))
    session = SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    skips.pytest_sessionfinish(session)
    codes = pytest.ExitCode
    assert session.exitstatus == (codes.TESTS_FAILED if fails and complete else codes.OK)


def test_notes_of_several_processes_are_added_up(recorder):
    coverage.note(np.exp, varmat=np.float64(2e-16), mpmath=1e-16)
    coverage.note_refusal(ValueError("det: no"))
    notes = recorder.notes()
    # Plain floats can be sent to another process.
    assert all(type(error) is float for errors, _ in notes.values() for error in errors.values())
    other = coverage.start()
    coverage.note(np.exp, varmat=1e-16, matvar=0.0)
    coverage.note_refusal(ValueError("det: no"))
    other.add(notes)
    rows = {name: row for row in other.rows for name in row.names}
    assert rows["np.exp"].errors == {"varmat": 2e-16, "mpmath": 1e-16, "matvar": 0.0}
    assert rows["np.linalg.det"].refusals == 2
    assert len(other.notes()) == 2
    for row in other.rows:
        other.note(row.function, (), {"varmat": 0.0})
    assert len(other.notes()) == len(other.rows)  # the names of the rows are unique
