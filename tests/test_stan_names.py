"""No name of Stan is forgotten: each one is in the table of the documentation, with an answer or a
reason why there is none.
"""

import csv

import numpy as np
import pytest
import stan_names
from comparing import close

import varmat as vm


def test_table_is_right():
    assert stan_names.faults() == []


def test_census_is_whole():
    """The census gives its own counts: 500 names of the language, and the names that exist in C++
    only.
    """
    families = stan_names.census()
    names = [name for each in families.values() for name in each]
    assert len(names) == len(set(names)) == 670
    language = [
        each for family, each in families.items() if "C++" not in family and family not in CPP
    ]
    assert sum(map(len, language)) == 500


CPP = ("ODE / DAE solvers", "Algebraic solvers", "Quadrature and parallel maps")

# Answers with another name, each at a point where the result is known.
SAME = [
    ("abs", (-2.0,), 2.0),
    ("atan2", (1.0, -1.0), 0.75 * np.pi),
    ("divide_columns", (np.array([[2.0, 8.0]]), np.array([2.0, 4.0])), np.array([[1.0, 2.0]])),
    ("fdim", (3.0, 1.0), 2.0), ("fmod", (-5.3, 1.4), -1.1),
    ("hypergeometric_1f0", (0.5, 0.3), 0.7**-0.5),
    ("if_else", (True, 1.0, 2.0), 1.0), ("is_inf", (-np.inf,), True), ("ldexp", (1.3, 3), 10.4),
    ("logical_negation", (0.0,), True), ("logical_gte", (1.0, 1.0), True), ("modulus", (-7, 3), -1),
    ("quantile", (np.array([-1.2, 0.4, 2.1, 0.4]), 0.9), 1.59),
    ("round", (-1.3,), -1.0), ("size", (np.ones((2, 3)),), 6),
    ("sum", (np.array([1.0, 2.5]),), 3.5),
    ("value_of", (vm.var(2.0),), 2.0),
    ("vec_concat", (([1.0], [2.0]),), np.array([1.0, 2.0])),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "expected"), SAME, ids=[name for name, *_ in SAME])
def test_answers_are_the_same_functions(name, args, expected):
    (row,) = [row for row in stan_names.table() if row["name"] == name]
    close(stan_names.resolved(row["answer"])(*args), expected, 1e-14)


BAD = [
    ({"name": "normal_lpdf", "answer": "planned", "note": "densities"}, "but varmat has it by now"),
    ({"name": "normal_lpdf", "answer": "np.exp", "note": ""}, "but varmat has it by now"),
    ({"name": "unheard_of", "answer": "vm.unheard_of", "note": ""}, "but varmat has no such name"),
    ({"name": "unheard_of", "answer": "np.unheard_of", "note": ""}, "but there is no such name"),
    ({"name": "unheard_of", "answer": "refused", "note": ""}, "refused without a note"),
    ({"name": "unheard_of", "answer": "written", "note": "somehow"}, "the note has no code in it"),
    ({"name": "unheard_of", "answer": "written", "note": "``vm.unheard_of(x)``"},
     "the note names vm.unheard_of, but"),
    ({"name": "unheard_of", "answer": "abs(x)", "note": ""},
     "must be a name of vm or np, or one of written, planned, refused"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "text"), BAD)
def test_rows_that_are_wrong_are_found(row, text):
    assert text in (stan_names.fault(row) or "")


def test_names_that_are_missing_or_too_many_are_found(tmp_path, monkeypatch):
    rows = stan_names.table()
    changed = [
        dict(row, answer="planned", note="") if row["name"] == "normal_lpdf" else row
        for row in rows[1:]
    ]
    changed += [dict(rows[1], name="unheard_of", answer="np.exp"), rows[2]]
    monkeypatch.setattr(stan_names, "TABLE", tmp_path / "table.csv")
    with (tmp_path / "table.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, stan_names.COLUMNS)
        writer.writeheader()
        writer.writerows(changed)
    found = "\n".join(stan_names.faults())
    assert f"{rows[0]['name']}: not in the table" in found
    assert "unheard_of: in the table, but not in the census" in found
    assert f"{rows[2]['name']}: twice in the table" in found
    assert "normal_lpdf: the answer is planned, but varmat has it by now" in found
    assert stan_names.flip() == ["normal_lpdf"]
    row = next(row for row in stan_names.table() if row["name"] == "normal_lpdf")
    assert (row["answer"], row["note"]) == ("vm.normal_lpdf", "")
