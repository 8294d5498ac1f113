"""The table of Stan's names, ``docs/stan_names.csv``, held to the census of Stan Math and to
varmat.

A row says what one writes for a name: ``vm.<name>``, or another name of varmat or NumPy;
``written`` if it is written in Python as the note says; ``planned``, with the family that is to
come; or ``refused``, with a reason. After functions have been added

    python tests/stan_names.py

gives all rows of names that `varmat` has by now their answer.
"""

import ast
import csv
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np

import varmat as vm

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "stan_names.csv"
CENSUS = ROOT / "tests" / "data" / "stan_census.json"
COLUMNS = ["family", "name", "answer", "note"]
WITHOUT_NAME = ("written", "planned", "refused")


def census():
    """Return the names of each family."""
    content = json.loads(CENSUS.read_text(encoding="utf-8"))
    assert content["source"] == "Stan Math 4.9.0"
    return content["families"]


def table():
    """Return the rows of the table."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def resolved(answer):
    """Return the object with a dotted name; raises `AttributeError` if there is none."""
    first, *rest = answer.split(".")
    thing = {"vm": vm, "np": np}[first]
    for name in rest:
        thing = getattr(thing, name)
    return thing


def in_varmat(name):
    """Return whether this is a public name of varmat, or of a subpackage if it has a dot."""
    subpackage, _, last = name.rpartition(".")
    return last in (getattr(vm, subpackage) if subpackage else vm).__all__


def fault(row):
    """Return what is wrong with a row, or None."""
    name, answer, note = row["name"], row["answer"], row["note"]
    if in_varmat(name) and answer != f"vm.{name}":
        return (
            f"{name}: the answer is {answer}, but varmat has it by now: run python "
            "tests/stan_names.py"
        )
    if answer in WITHOUT_NAME:
        if not note:
            return f"{name}: {answer} without a note"
        if answer == "written":
            return _fault_of_code(name, re.findall("``(.+?)``", note))
        return None
    if not re.fullmatch(r"(vm|np)(\.\w+)+", answer):
        return (
            f"{name}: the answer is {answer}, but must be a name of vm or np, or one of "
            f"{', '.join(WITHOUT_NAME)}"
        )
    if answer.startswith("vm.") and not in_varmat(answer[3:]):
        return f"{name}: the answer is {answer}, but varmat has no such name"
    try:
        resolved(answer)
    except AttributeError:
        return f"{name}: the answer is {answer}, but there is no such name"
    return None


def _fault_of_code(name, pieces):
    """Return what is wrong with the code in a note: there is none, or it uses names that do not
    exist.
    """
    if not pieces:
        return f"{name}: written, but the note has no code in it"
    for piece in pieces:
        for part in re.findall(r"\b(?:vm|np)(?:\.\w+)+", ast.unparse(ast.parse(piece))):
            try:
                resolved(part)
            except AttributeError:
                return f"{name}: the note names {part}, but there is no such name"
    return None


def faults():
    """Return everything that is wrong with the table."""
    rows, families = table(), census()
    found = [text for row in rows if (text := fault(row)) is not None]
    listed = [(row["family"], row["name"]) for row in rows]
    expected = [(family, name) for family, names in families.items() for name in names]
    missing, unknown = set(expected) - set(listed), set(listed) - set(expected)
    found += [
        f"{name}: not in the table, or not in its place among {family}"
        for family, name in sorted(missing)
    ]
    found += [
        f"{name}: in the table, but not in the census of {family}"
        for family, name in sorted(unknown)
    ]
    found += [f"{name}: twice in the table" for (_, name), n in Counter(listed).items() if n > 1]
    return found


def flip():
    """Write the table anew with the names that varmat has by now, and return these."""
    rows, changed = table(), []
    for row in rows:
        if in_varmat(row["name"]) and row["answer"] != f"vm.{row['name']}":
            changed.append(row["name"])
            row.update(answer=f"vm.{row['name']}", note="")
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return changed


if __name__ == "__main__":
    print("\n".join(flip()) or "nothing to change")
