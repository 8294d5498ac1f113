"""Random loops of Stan programs as procedures; `tests/random_loops.py` tries many."""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import Namespace
from collections import Counter

import pytest
import random_loops
from random_loops import errors, refused
from random_nests import difference

from varmat.programs.run import has_native
from varmat.stan import evaluate, loops
from varmat.stan.recurrences import Recurrence
from varmat.stan.vectorized import VectorizedLoop


@pytest.mark.skipif(not has_native(), reason="procedures are native")
@pytest.mark.parametrize("seed", [1002, 1006, 1041, 5011, 5135, 5173, 7, 8])
def test_procedures_of_random_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "FEW", 0)
    monkeypatch.setattr(loops, "TRACED", -1)
    for kind in (VectorizedLoop, Recurrence):
        monkeypatch.setattr(kind, "of_loop", refused)
    found = Counter[str]()
    assert not [*errors(seed, Namespace(hessians=False, stanli=False), found)]
    assert found["points"]


@pytest.mark.skipif(not has_native(), reason="procedures are native")
def test_loops_in_vectors_of_two_lanes() -> None:
    """So that loops of few passes are vectors, too; the number of lanes is known at import."""
    options = "--lanes 2 --lowered --count 5 --seed 9036"
    command = [sys.executable, random_loops.__file__, *options.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert "seed" not in done.stdout
    assert int(re.search(r"(\d+) points$", done.stdout, re.M)[1]) >= 9  # type: ignore[index]


@pytest.mark.parametrize("seed", range(24))
def test_loops_within_loops_whose_scopes_use_the_same_names(seed: int) -> None:
    assert not difference(seed, recorded=seed % 4 == 0)
