"""The package as a whole: the cost of importing it, the direction of imports, and limits of
size.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import os
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from comparing import refuses
from scipy.sparse.csgraph import connected_components

import varmat

ROOT = Path(__file__).parents[1]
PACKAGE = Path(varmat.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
# Modules that are slow to import and rarely needed. They are imported where they are first used.
HEAVY = [
    "scipy.special", "scipy.stats", "scipy.linalg", "scipy.sparse", "scipy.optimize",
    "scipy.integrate",
]  # fmt: skip
HEAVY += ["multiprocessing", "concurrent.futures", "socket", "logging", "shutil"]
HEAVY += ["einops", "matplotlib", "pandas", "xarray", "mpmath", "hypothesis", "pytest"]
HEAVY += ["varmat.numpy"]
# Subpackage or module -> what it may import besides itself. Imports point down.
BELOW = {
    "plain_arrays": set(), "core": {"plain_arrays"}, "typing": {"core"},
    "call_types": {"core", "typing"}, "html": set(),
    "interrupts": set(), "locks": set(), "inspection": {"core"},
    "programs": {"plain_arrays", "core", "html", "interrupts", "locks"},
    "functions": {"plain_arrays", "core", "programs", "interrupts", "locks"},
    "complexes": {"plain_arrays", "core", "programs", "functions"},
    "derivatives": {"core", "programs", "interrupts", "locks"},
    "testing": {"core", "programs", "derivatives"},
    "densities": {"plain_arrays", "core", "programs", "functions", "locks"},
    "distributions": {"core", "functions", "densities", "solvers"},
    "transforms": {"core", "programs", "functions"},
    "solvers": {"core", "programs", "functions", "derivatives", "interrupts"},
    "parallel": {"core", "programs", "derivatives", "solvers"},
    "scipy": {"core", "functions", "derivatives"},
    "numpy": {"plain_arrays", "core", "complexes", "functions", "derivatives", "scipy"},
    "models": {"core", "html", "interrupts", "programs", "functions", "derivatives", "densities",
               "distributions", "transforms", "parallel"},
    "stan": {"core", "typing", "interrupts", "programs", "functions", "derivatives", "densities",
             "transforms", "solvers", "models"},
}  # fmt: skip
# A module of each group whose modules import each other.
CIRCLES = ["core.tape", "programs.ir.program", "programs.kernels.procedure"]
# The last limit counts code without blank lines, comments and docstrings.
MODULE_LINES, FUNCTION_LINES, CORE_LINES, ENGINE_LINES = 600, 60, 2453, 14925

# These modules are tables, whose rows are read one at a time.
TABLES = ["functions/elementwise.py"]


@functools.cache
def parsed(path: Path) -> tuple[str, list[ast.AST], set[ast.AST]]:
    """Return the text of a module, its nodes, and those of the blocks for type checkers alone."""
    text = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    blocks = (
        node
        for node in nodes
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    )
    return text, nodes, {each for block in blocks for each in ast.walk(block)}


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_import_is_light():
    code = f"import sys, varmat; print([name for name in {HEAVY} if name in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=250
    )
    assert found.stdout.strip() == "[]"
    assert found.stderr == ""


IMPORTERS = [
    "vm.normal_lpdf(0.0, 0.0, 1.0)", "vm.gradient(vm.normal_lpdf.lcdf, 3.0, 2.0, 1.0)",
    "vm.truncated(vm.normal_lpdf, lower=0.0)", "vm.normal_rng(0.0, 1.0, rng=1)", "vm.hmm_marginal",
    "vm.var(1 + 2j)", "vm.to_complex(1.0, 2.0)", "vm.gradient(lambda x: np.abs(1j * x), 2.0)",
    "vm.gradient(lambda x: np.abs(np.multiply(x, 1j)), 2.0)",
    "vm.gradient(lambda x: np.abs(np.fft.fft(x)[0]), np.ones(2))",
    "vm.gradient(lambda x: np.abs(np.linalg.eigvals(x)[0]), np.eye(2))",
    "vm.gradient(lambda x: np.abs(np.dot(x, 1j * np.ones(2))), np.ones(2))",
    "vm.densities, vm.complexes",
    "{*dir(vm)} > {'normal_lpdf', 'normal_lcdf', 'normal_rng', 'get_real', 'grad'} or 1 / 0",
    "exec('from varmat import *; normal_rng, normal_lpdf, grad')",
]  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_modules_imported_later_are_found():
    """Each case runs in a fork, because the first one would import the modules for the others."""
    script = f"""
import os, sys
import numpy as np, varmat as vm
assert not {{'varmat.densities', 'varmat.complexes', 'varmat.models'}} & {{*sys.modules}}
for case in {IMPORTERS}:
    child = os.fork()
    if not child:
        exec(case)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, case
"""
    # Python warns of a fork where a library, here BLAS, has threads.
    quiet = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]
    subprocess.run([sys.executable, *quiet, "-c", script], check=True, timeout=250)


def test_type_checkers_are_told_what_is_imported_later():
    """There is a star import for every such module."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    block = next(each for each in tree.body if isinstance(each, ast.If))
    told = [node.module for node in block.body]
    assert sorted(told) == sorted(
        f"{package}.{name}"
        for package, (_, names) in varmat._LATER.items()
        for name in names.split()
    )


def test_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert version("varmat") == project["version"]
    assert getattr(varmat, "__version__", project["version"]) == project["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d[^\]]*)\]", changes, flags=re.MULTILINE)
    assert not released or released[0] == project["version"]


def test_types_are_shipped():
    assert files("varmat").joinpath("py.typed").is_file()


def test_public_names_do_not_shadow_numpy_builtins():
    assert not {"np", "Any", "annotations"} & set(dir(varmat))
    assert "numpy" not in varmat.__all__


def test_type_checkers_find_every_public_name():
    """Type checkers run nothing. They follow imports, and resolve a star import with the list of
    names that a module spells out.
    """
    found = set()
    for node in ast.walk(ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            path = PACKAGE.parent / (node.module.replace(".", "/") + ".py")
            path = path if path.exists() else path.with_suffix("") / "__init__.py"
            lists = [
                each.value
                for each in ast.parse(path.read_text(encoding="utf-8")).body
                if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__all__"
            ]
            found.update(*map(ast.literal_eval, lists))
        elif isinstance(node, ast.ImportFrom):
            found.update(alias.name for alias in node.names)
    assert set(varmat.__all__) <= found


def test_public_functions_are_pickled_and_copied_by_name():
    for name in varmat.__all__:
        thing = getattr(varmat, name)
        assert pickle.loads(pickle.dumps(thing)) is thing, name
        assert copy.deepcopy(thing) is thing, name


def test_signatures_say_what_a_call_takes():
    assert str(inspect.signature(varmat.mdivide_left)) == "(a, b)"
    assert str(inspect.signature(varmat.betainc)) == "(x, y, z, /)"
    assert str(inspect.signature(varmat.quad_form_diag)) == "(m, v)"
    for name in varmat.__all__:
        thing = getattr(varmat, name)
        if not isinstance(thing, type):
            assert not {"workspace", "keep"} & inspect.signature(thing).parameters.keys(), name


@pytest.mark.parametrize(("call", "message"), [
    (lambda: varmat.lgamma(), "lgamma: 0 operands are given; the signature is lgamma(x, /)"),
    (lambda: varmat.beta(1.0, 2.0, 3.0),
     "beta: 3 operands are given; the signature is beta(x, y, /)"),
    (lambda: varmat.inv_logit(x=0.3),
     "inv_logit: x is given by name; the signature is inv_logit(x, /)"),
    (lambda: varmat.mdivide_left(1.0),
     "mdivide_left: missing a required argument: 'b'; the signature is mdivide_left(a, b)"),
    (lambda: varmat.multi_normal_lpdf(0.0),
     ("multi_normal_lpdf: missing a required argument: 'mu'; the signature is multi_normal_lpdf(y, "
     "mu, Sigma)")),
])  # fmt: skip
def test_wrong_numbers_of_arguments(call, message):
    refuses(TypeError, f"^{re.escape(message)}$", call)


def imports(path: Path, ignored: Collection[ast.AST] = ()) -> Iterator[str]:
    """Yield the full names that a module imports from varmat."""
    for node in (node for node in parsed(path)[1] if node not in ignored):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name for name in names if name.partition(".")[0] == "varmat")


def imported(path: Path) -> set[str]:
    """Return the subpackages of varmat that a module imports; an empty name is varmat itself."""
    parts = (f"{name}.".split(".")[1] for name in imports(path, parsed(path)[2]))
    return {part if part in BELOW else "" for part in parts}


def test_few_modules_import_each_other():
    """Imports for type checkers and in functions count too; those of packages do not."""
    paths = [path for path in MODULES if path.name != "__init__.py"]
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths]
    found = ([y for x in imports(path) for y in (x, x.rpartition(".")[0])] for path in paths)
    graph = np.array([np.isin(names, each) for each in found])
    _, groups = connected_components(graph, connection="strong")
    members = [np.array(names)[groups == i] for i in np.flatnonzero(np.bincount(groups) > 1)]
    assert len(members) == len(CIRCLES)
    for name in CIRCLES:
        assert any(f"varmat.{name}" in group for group in members), name


def test_imports_point_down():
    for path in MODULES:
        if path == PACKAGE / "__init__.py":
            continue
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        # Annotations want `varmat.typing` above the engine. Stan programs call whatever is public.
        further = {"typing"} if "core" in BELOW[own] else set()
        allowed = BELOW[own] | {own} | further | ({""} if own == "stan" else set())
        assert imported(path) <= allowed, name_of(path)


def test_the_design_tells_which_way_imports_point():
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\|(.*)\|$", design, flags=re.MULTILINE)
    assert {name: set(re.findall(r"\w+", below)) for name, below in rows} == BELOW


def test_budgets_of_size():
    # All kinds of variables, which refer to each other, are in one module. Two thirds of the public
    # methods of a model are docstrings.
    longer = {*TABLES, "core/variables.py", "models/model.py"}
    for path in MODULES:
        text, nodes, _ = parsed(path)
        assert text.count("\n") <= MODULE_LINES or name_of(path) in longer, name_of(path)
        for node in (node for node in nodes if isinstance(node, ast.FunctionDef)):
            docstring = ast.get_docstring(node, clean=False)
            told = docstring.count("\n") + 1 if docstring else 0
            lines = node.end_lineno - node.lineno + 1 - told
            assert lines <= FUNCTION_LINES, f"{node.name} has {lines} lines"


def code_lines(path: Path) -> int:
    """Count the lines that are not blank, comments, docstrings or for type checkers."""
    text, nodes, ignored = parsed(path)
    lines = {
        n
        for n, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#")
    }
    for node in nodes:
        value = getattr(node.value, "value", None) if isinstance(node, ast.Expr) else None
        if isinstance(value, str) or (node in ignored and isinstance(node, ast.stmt)):
            lines -= set(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def test_the_engine_and_programs_stay_small():
    core, programs = (
        sum(map(code_lines, (PACKAGE / room).rglob("*.py"))) for room in ("core", "programs")
    )
    assert core <= CORE_LINES
    assert core + programs <= ENGINE_LINES
