#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox>=2024.4.15"]
# ///
"""Sessions for nox: each in an environment of its own.

    nox                     the tests, on every supported Python that is installed
    nox -s lowest           the tests with the lowest NumPy and SciPy that are supported
    nox -s lint types docs  format and rules, types, documentation
    nox -s coverage         the lines of the engine that no test runs
    nox -s mutants -- core  the small deliberate errors in a package that no test finds

Arguments after ``--`` are passed on: ``nox -s tests-3.13 -- tests/core -x``.
"""

from __future__ import annotations

import nox

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
# The lowest versions in pyproject.toml.
LOWEST = ["numpy==2.0.*", "scipy==1.15.*"]
# The tests of the engine and its programs.
ENGINE_TESTS = ["tests/core", "tests/programs", "tests/derivatives", "tests/solvers/test_scan.py"]

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", *(session.posargs or ["-n", "auto"]))


@nox.session(python=PYTHONS[0], default=False)
def lowest(session: nox.Session) -> None:
    """Run the tests with the lowest NumPy and SciPy."""
    session.install("-e", ".[test]", *LOWEST)
    session.run("python", "-m", "pytest", *(session.posargs or ["-n", "auto"]))


@nox.session(default=False)
def lint(session: nox.Session) -> None:
    """Check rules, format and spelling."""
    session.install("codespell>=2.3", "ruff>=0.6")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("codespell")


@nox.session(default=False)
def types(session: nox.Session) -> None:
    """Check the types."""
    session.install("-e", ".[dev]")
    session.run("mypy")
    session.run("python", "tests/revealed_types.py")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation in docs/_build."""
    session.install("-e", ".[docs,examples]")
    session.run("sphinx-build", "-j", "auto", "-W", "--keep-going", "-q", "docs", "docs/_build")


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Report the lines of the engine that its own tests do not run."""
    session.install("-e", ".[test]", "pytest-cov>=5.0")
    report = ["--cov=varmat.core", "--cov-branch", "--cov-report=term-missing"]
    session.run("python", "-m", "pytest", *report, *(session.posargs or ENGINE_TESTS))


@nox.session(default=False)
def mutants(session: nox.Session) -> None:
    """Measure the mutation score of a package, ``core`` or ``programs``, on a seeded sample."""
    session.install("-e", ".[test]", "pytest-cov>=5.0", "cosmic-ray>=8.4")
    report = ["--cov=varmat", "--cov-context=test", "--cov-report="]
    session.run("python", "-m", "pytest", *report, *ENGINE_TESTS)
    session.run("python", ".ci/mutants.py", *(session.posargs or ["core"]))


if __name__ == "__main__":
    nox.main()
