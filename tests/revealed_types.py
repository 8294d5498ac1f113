#!/usr/bin/env python3
"""How a type checker sees the result of each public function, called with variables and with
arrays: functions whose result is `Any` are listed, and the lists may only become shorter.

    python tests/revealed_types.py          check, with mypy, in some seconds after ``mypy``
    python tests/revealed_types.py --show   print all types
"""

import inspect
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

from mypy import api

import varmat as vm

# `Any` with variables: integers, arguments returned as they are, results whose form settings
# choose, and structures that the caller's functions return.
ANY_OF_VARIABLES = """
    choose int_step to_int to_matvar to_varmat var sosfilt lfilter lu orthogonal_procrustes
    sparse_inverse_subset cond switch while_loop make_callback_var hilbert
"""
# `Any` with arrays, of these or others: numbers or arrays by the number of axes, draws, structures.
ANY_OF_ARRAYS = 161
HEAD = """
import numpy as np
import numpy.typing as npt
import varmat as vm

def f(*args: object) -> vm.Var: ...

def called(v: vm.VarMat, c: vm.ComplexVar, x: npt.NDArray[np.float64]) -> None:
"""
# Functions of complex numbers are called with these, the others with real ones.
TO_COMPLEX = ("to_complex", "polar")
# What is called with a parameter, by its annotation.
ARGUMENTS = {"Function": "f", "int": "1", "float": "1.0", "str": "''", "tuple[int, int]": "(1, 1)"}


def arguments(thing, operand):
    """The arguments that a function requires, at least one; `operand` for those of any kind."""
    parameters = inspect.signature(thing).parameters.values()
    some = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    required = [p for p in some if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    for p in required or some[:1]:
        yield ARGUMENTS.get(str(p.annotation).split(" | ")[0], operand)


def called(thing):
    """The module of a function."""
    thing = getattr(thing, "alias_of", thing)
    return getattr(thing, "function", thing).__module__ or ""


def revealed():
    """The types of calls with variables and with arrays, by name."""
    functions = {
        name: thing
        for name in vm.__all__
        if callable(thing := getattr(vm, name)) and not isinstance(thing, type)
    }
    lines = [HEAD]
    calls = []
    for name, thing in functions.items():
        for operand in "vx":
            # Functionals take plain points, and random numbers plain parameters.
            is_plain = called(thing).startswith("varmat.derivatives") or name.endswith("_rng")
            is_complex = called(thing).startswith("varmat.complexes") and name not in TO_COMPLEX
            kind = "x" if is_plain else "c" if is_complex and operand == "v" else operand
            given = list(arguments(thing, kind))
            if kind in given and not (operand == "v" and is_plain):
                calls.append((operand, name))
                lines.append(f"    reveal_type(vm.{name}({', '.join(given)}))")
    lines.append("    vm.cholesk")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "calls.py")
        path.write_text("\n".join(lines), encoding="utf-8")
        text = api.run([str(path), "--no-error-summary", "--hide-error-context"])[0]
    assert 'Module has no attribute "cholesk"' in text, text
    types = re.findall(r'calls.py:\d+: note: Revealed type is "(.*)"', text)
    assert len(types) == len(calls), text
    result = {"v": {}, "x": {}}
    for (operand, name), found in zip(calls, types, strict=True):
        result[operand][name] = re.sub(r"\b(varmat|numpy|typing)(\.\w+)*\.(?=\w)", "", found)
    return result


def documented(name):
    """The classes that the first line of the section Returns names."""
    text = inspect.getdoc(getattr(vm, name)) or ""
    line = re.search(r"^Returns\n-+\n(.*)", text, re.MULTILINE)
    return set(re.findall(r"\b(VarMat|Var|ComplexVar)\b", line[1])) if line else set()


def main():
    types = revealed()
    if "--show" in sys.argv:
        for operand, found in types.items():
            for name, kind in found.items():
                print(operand, name, kind)
    for found in types.values():
        print(Counter(found.values()).most_common(6))
    for name, kind in types["v"].items():
        told = documented(name)
        if (
            "Any" not in kind
            and told
            and not told & set(re.findall(r"\w+", kind.replace("Or", " ")))
        ):
            sys.exit(f"{name} is {kind} to a type checker, but {told} in its docstring")
    known = set(ANY_OF_VARIABLES.split())
    found = {name for name, kind in types["v"].items() if kind == "Any"}
    plain = sorted(name for name, kind in types["x"].items() if kind == "Any")
    if found - known:
        sys.exit(f"Any for variables: {found - known}; say what they give, as varmat.typing shows")
    if known - found:
        sys.exit(f"no longer Any: {known - found}; take them out of ANY_OF_VARIABLES")
    if len(plain) > ANY_OF_ARRAYS:
        sys.exit(f"{len(plain)} are Any for arrays, ANY_OF_ARRAYS are allowed: {plain}")


if __name__ == "__main__":
    main()
