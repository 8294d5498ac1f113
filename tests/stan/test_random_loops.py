"""Random loops of Stan programs as procedures; `tests/random_loops.py` tries many."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter

import pytest
from random_loops import errors, refused

from varmat.programs.run import has_native
from varmat.stan import evaluate, loops
from varmat.stan.lanes import Lanes
from varmat.stan.recurrences import Recurrence


@pytest.mark.skipif(not has_native(), reason="procedures are native")
@pytest.mark.parametrize("seed", [1002, 1006, 1041, 5011, 5135, 5173, 7, 8])
def test_procedures_of_random_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "FEW", 0)
    monkeypatch.setattr(loops, "TRACED", -1)
    for kind in (Lanes, Recurrence):
        monkeypatch.setattr(kind, "of_loop", refused)
    found = Counter[str]()
    assert not [*errors(seed, Namespace(hessians=False, stanli=False), found)]
    assert found["points"]
