"""Check the Stan programs of other people's packages against stanli, with made-up data.

    python asv_benchmarks/stan_packages.py --packages FOLDER [--only TEXT] [--limit SECONDS]
        [--rows FILE] [--table]

FOLDER holds a folder for each package, with its Stan programs anywhere below. `#include` is
resolved in the folders of the package. Data are drawn at random so that they have the declared
sizes and bounds, small, until both varmat and stanli take them and have a finite gradient; a
program for which the attempts fail is undecided. stanli gets programs of before Stan 2.33 in the
syntax of today. Rows, times and tables are those of `stan_collection.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import stan_collection as collection

import varmat as vm
from varmat.stan import syntax as s

ATTEMPTS = 36


# --- programs ---


def programs(folder: Path, only: str) -> list[tuple[str, Path]]:
    """The name and path of each program that has parameters."""
    found = []
    for path in sorted(folder.rglob("*.stan")):
        name = "/".join((path.relative_to(folder).parts[0], path.stem))
        if only in name and re.search(
            r"^\s*parameters\s*\{", path.read_text(encoding="utf-8"), re.M
        ):
            found.append((name, path))
    return found


def whole_text(path: Path, package: Path) -> str:
    """The text of a program with the files that it includes, wherever in the package they are."""

    def included(match: re.Match[str]) -> str:
        name = match[1].strip("\"'<> ").lstrip("/")
        inside = [p for p in package.rglob("*") if p.as_posix().endswith("/" + name)]
        if not inside:
            raise FileNotFoundError(name)
        return whole_text(min(inside, key=lambda p: len(p.parts)), package)

    text = path.read_text(encoding="utf-8", errors="replace")
    return re.sub(
        r"^\s*#include\s+([^\s/][^\n]*?|/[^\n]*?)\s*(?://.*)?$", included, text, flags=re.M
    )


def of_today(text: str) -> str:
    """A program with arrays and assignments as they are written since Stan 2.33."""
    kind = r"(?:int|real|vector|row_vector|matrix|simplex|ordered|positive_ordered|unit_vector|"
    kind += r"corr_matrix|cov_matrix|cholesky_factor_corr|cholesky_factor_cov)"
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(rf"\b({kind})\s*\[(\s*,*\s*)\](?=\s*\w)", r"array[\2] \1", text)
    declared = (
        rf"\b({kind}\s*(?:<[^;]*?>)?\s*(?:\[[^\];]*\])?)\s+(\w+)\s*\[([^;]*?)\]\s*(?=;|=[^=])"
    )
    text = re.sub(declared, r"array[\3] \1 \2", text)
    return text.replace("<-", "=")


# --- data ---


class Data:
    """Random data for the declarations of a program."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {
        "max": np.max, "min": np.min, "sum": np.sum, "prod": np.prod, "size": len,
        "num_elements": np.size, "abs": abs, "int_step": lambda x: int(x > 0),
        "rows": lambda x: np.shape(x)[0], "cols": lambda x: np.shape(x)[-1],
        "positive_infinity": lambda: np.inf, "negative_infinity": lambda: -np.inf,
        "pi": lambda: np.pi, "machine_precision": lambda: 2.0**-52,
        "log": np.log, "exp": np.exp, "sqrt": np.sqrt, "choose": lambda n, k: 1.0,
    }  # fmt: skip
    OPERATORS: ClassVar[dict[str, Any]] = {
        "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
        "/": lambda a, b: a // b if isinstance(a, int) and isinstance(b, int) else a / b,
        "%/%": lambda a, b: a // b, "%": lambda a, b: a % b, ">": lambda a, b: a > b,
        "<": lambda a, b: a < b, ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b,
        "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "^": lambda a, b: a**b,
        "&&": lambda a, b: bool(a and b), "||": lambda a, b: bool(a or b),
    }  # fmt: skip

    def __init__(self, tree: s.ProgramTree, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.largest, self.is_plain = 3 + seed // 2 % 6, seed % 2 == 0
        self.values: dict[str, Any] = {}
        used = [size for d in tree.data for size in (*d.declared.sizes, *d.declared.dimensions)]
        self.sizes = {each.name for e in used for each in _names(e)}
        for d in tree.data:
            self.values[d.name] = self._draw(d.declared, d.name)

    def __call__(self, e: Any) -> Any:
        """The value of an expression."""
        match e:
            case s.Number():
                value = e.value
                return int(value) if float(value).is_integer() and "int" in str(e.type) else value
            case s.VariableName():
                return self.values[e.name]
            case s.Unary():
                x = self(e.operand)
                return {"-": lambda: -x, "+": lambda: x, "!": lambda: int(not x)}[e.operator]()
            case s.Binary():
                return self.OPERATORS[e.operator](self(e.left), self(e.right))
            case s.Conditional():
                return self(e.yes) if self(e.condition) else self(e.no)
            case s.Call():
                return self.FUNCTIONS[e.name](*map(self, e.arguments))
            case s.Indexed():
                x = self(e.base)
                for index in e.indices:
                    x = x[self(index) - 1]
                return x
        raise NotImplementedError(type(e).__name__)

    def _draw(self, declared: s.SizedType, name: str) -> Any:
        shape = [int(self(e)) for e in declared.dimensions]
        if declared.name == "tuple":
            raise NotImplementedError("tuple")
        count = int(np.prod(shape))
        elements = [self._element(declared, name) for _ in range(count)]
        return (
            np.reshape(elements, (*shape, *np.shape(elements[0])))
            if shape and count
            else (np.zeros((*shape, *self._shape(declared))) if shape else elements[0])
        )

    def _shape(self, declared: s.SizedType) -> tuple[int, ...]:
        sizes = [int(self(e)) for e in declared.sizes]
        square = ("corr_matrix", "cov_matrix", "cholesky_factor_corr")
        return (sizes[0], sizes[0]) if declared.name in square else tuple(sizes)

    def _element(self, declared: s.SizedType, name: str) -> Any:
        shape, rng = self._shape(declared), self.rng
        lower, upper = (None if e is None else self(e) for e in (declared.lower, declared.upper))
        if declared.name == "int":
            return self._integer(lower, upper, name)
        if declared.name in ("simplex", "unit_vector"):
            x = rng.dirichlet(np.ones(shape))
            return x if declared.name == "simplex" else np.sqrt(x)
        if declared.name in ("ordered", "positive_ordered"):
            return np.sort(rng.gamma(2.0, size=shape))
        if declared.name in ("cov_matrix", "corr_matrix") or "cholesky" in declared.name:
            a = rng.normal(size=(shape[-1], shape[-1]))
            a = a @ a.T + shape[-1] * np.eye(shape[-1])
            if "corr" in declared.name:
                scale = np.sqrt(np.diag(a))
                a = a / np.outer(scale, scale)
            return np.linalg.cholesky(a) if "cholesky" in declared.name else a
        if lower is None and upper is None:
            return rng.normal(size=shape)
        if upper is None or lower is None:
            gap = rng.gamma(2.0, size=shape)
            return lower + gap if upper is None else upper - gap
        return lower + (upper - lower) * rng.uniform(0.1, 0.9, shape)

    def _integer(self, lower: Any, upper: Any, name: str) -> int:
        """In every second attempt all sizes are alike, and other integers 1 or 2 if they may be,
        because many are an index.
        """
        low = int(np.max(lower)) if lower is not None and np.isfinite(np.max(lower)) else 0
        high = int(np.min(upper)) if upper is not None and np.isfinite(np.min(upper)) else None
        is_size = name in self.sizes
        if self.is_plain:
            wanted = self.largest if is_size else int(self.rng.integers(1, 3))
            if not is_size and (low, high) == (0, 1):
                wanted = int(self.rng.integers(2))
            return max(low, wanted if high is None else min(high, wanted))
        if high is None:
            high = max(low, 1) + (self.largest if is_size else self.largest % 4)
            low = max(low, 1) if is_size and self.rng.random() < 0.9 else low
        elif is_size:
            high = min(high, low + self.largest)
        return int(self.rng.integers(low, high + 1))


def _names(e: Any) -> Iterator[s.VariableName]:
    if isinstance(e, s.VariableName):
        yield e
    for part in s.parts(e) if isinstance(e, s.SyntaxNode) else e if isinstance(e, list) else ():
        if isinstance(part, (s.SyntaxNode, list)):
            yield from _names(part)


def jsonable(x: Any) -> Any:
    """Numbers and lists of them."""
    return x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x


# --- rows ---


def suited(parsed: vm.stan.Program, of_stanli: str) -> str | None:
    """Data that varmat and stanli take, with a finite gradient of stanli's, as JSON."""
    import stanli

    for seed in range(ATTEMPTS):
        with contextlib.suppress(Exception):
            drawn = Data(parsed.tree, seed)
            data = json.dumps({name: jsonable(x) for name, x in drawn.values.items()})
            model = parsed.model(json.loads(data))
            reference = stanli.Model(stan_code=of_stanli, data=data)
            q = 0.1 * np.random.default_rng(seed).uniform(-2, 2, model.param_unc_num())
            value, gradient = reference.log_prob_grad(q)
            if value != 0.0 and np.isfinite(value) and np.isfinite(gradient).all():
                return data
    return None


def agreement(path: Path, package: Path) -> Iterator[collection.Row]:
    text = whole_text(path, package)
    parsed = vm.stan.Program(text)
    yield {"parses": True}
    of_stanli = of_today(text)
    data = suited(parsed, of_stanli)
    if data is None:
        yield {"state": "undecided: no data that both take"}
        return
    with tempfile.TemporaryDirectory() as folder:
        program, archive = Path(folder) / "program.stan", Path(folder) / "data.zip"
        program.write_text(of_stanli, encoding="utf-8")
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("data.json", data)
        yield from collection.agreement(program, archive, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    known = (
        options.rows
        and options.rows.exists()
        and options.rows.read_text(encoding="utf-8").splitlines()
    )
    rows = {row["name"]: row for row in map(json.loads, known or [])}
    if options.table:
        collection.agreement_table([*rows.values()])
        return
    for name, path in programs(options.packages, options.only):
        if name not in rows:
            package = options.packages / path.relative_to(options.packages).parts[0]
            row = collection.row_of(agreement, (path, package), options.limit)
            rows[name] = {"name": name} | row
            if options.rows:
                with options.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[name], default=float) + "\n")
        print(f"{name:62} {collection.agreement_text(rows[name])}", flush=True)
    collection.agreement_summary([*rows.values()])


if __name__ == "__main__":
    main()
