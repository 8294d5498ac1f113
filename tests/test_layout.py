"""The layout of the package: a newcomer finds things where the names of files say."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import varmat as vm
from varmat.core import domains
from varmat.densities import recorded_forms
from varmat.functions.linalg import matmul
from varmat.programs.record.tape_programs import WRITERS

PACKAGE = Path(vm.__file__).parent


def path_of(thing: Any) -> str:
    """Return the file in which something is defined, relative to the package."""
    found = inspect.getsourcefile(thing)
    assert found is not None
    return Path(found).relative_to(PACKAGE).as_posix()


def test_the_reverse_rule_of_matmul() -> None:
    assert path_of(matmul.matmul_reverse) == "functions/linalg/matmul.py"


def test_the_recorded_form_of_a_density() -> None:
    """This module writes densities of one variable into programs."""
    writers = {path_of(write) for write in WRITERS.values()}
    assert "densities/recorded_forms.py" in writers
    assert path_of(recorded_forms) == "densities/recorded_forms.py"


def test_the_check_of_a_scale_parameter() -> None:
    assert path_of(domains.Domain.check) == "core/domains.py"
    assert vm.normal_lpdf.checks[2] == ("Scale parameter", domains.positive)


@pytest.mark.parametrize("room", ["arrays", "linalg", "rarer", "signals", "sparse", "special"])
def test_rooms_say_what_they_hold(room: str) -> None:
    """The first line of a folder's docstring says what is in the folder."""
    module = __import__(f"varmat.functions.{room}", fromlist=[room])
    assert isinstance(module, ModuleType)
    assert module.__doc__ is not None
    assert len(module.__doc__.splitlines()[0]) > 20
