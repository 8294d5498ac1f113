"""Random loops within loops of Stan programs: all iterations at once beside one after the other.

Scopes use few names, again and again, with bounds and values that differ between the iterations of
the outer loop in one scope and not in the next. Run as a script, it compares many of them:
``python tests/random_nests.py --count 500 --seed 7``.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import numpy as np
from random_loops import one_by_one

import varmat as vm

ROWS = 6


class Nest:
    """Writes a program of one loop: `text` and `data`."""

    def __init__(self, seed: int) -> None:
        self._rng = rng = np.random.default_rng(seed)
        self.data = {
            "N": ROWS, "K": 3, "n": rng.integers(0, 4, ROWS), "y": rng.normal(size=ROWS),
            "c": rng.integers(0, 2, ROWS), "g": rng.integers(1, 4, ROWS),
            "X": rng.normal(size=(ROWS, 3)),
        }  # fmt: skip
        self.size = 2 + ROWS + 3
        # Whether a number is handed on from iteration to iteration.
        self._carries = bool(rng.random() < 0.3)
        self._numbers = ["a", "s", "y[i]", "u[i]", "v[g[i]]", "0.1 * i", "X[i, 2]"]
        self._numbers += ["h"] * self._carries
        body = "\n".join(self._statement(3) for _ in range(3))
        self.text = f"""
data {{
  int N; int K; array[N] int n; vector[N] y; array[N] int c; array[N] int g; matrix[N, K] X;
}}
parameters {{ real a; real<lower=0> s; vector[N] u; vector[K] v; }}
transformed parameters {{
  matrix[N, K] M;
  for (k in 1:K) M[:, k] = u + v[k];
}}
model {{
real h = a;
for (i in 1:N) {{
{body}
}}
}}
"""

    def _one_of(self, choices: list[str]) -> str:
        return choices[int(self._rng.integers(len(choices)))]

    def _number(self) -> str:
        x, y = self._one_of(self._numbers), self._one_of(self._numbers)
        return self._one_of([x, f"tanh({x}) * {y}", f"({x} - {y})", f"(c[i] == 1 ? {x} : {y})"])

    def _statement(self, depth: int) -> str:
        kinds = ["target", "density", *["if"] * (depth > 0), *["carry"] * self._carries]
        if depth and "0.1 * j" not in self._numbers:
            kinds += ["loop"] * 2
        if depth and not {"t", "sum(t)"} & {*self._numbers}:
            kinds += ["number", "vector"]
        kind = self._one_of(kinds)
        if kind == "target":
            return f"target += {self._number()};"
        if kind == "carry":
            return f"h = 0.5 * tanh(h) + {self._number()};"
        if kind == "density":
            return f"{self._number()} ~ normal({self._number()}, s);"
        outside, tail = [*self._numbers], "}"
        if kind == "loop":
            head = f"for (j in {self._one_of(['1:n[i]', '1:K', '1:K', '2:K', '1:g[i]'])}) {{"
            self._numbers += ["0.1 * j", "v[j]", "X[i, j]", "M[i, j]"]
            self._numbers += ["t[j]"] * ("sum(t)" in self._numbers)
        elif kind == "number":
            head = f"{{ real t = {self._number()};" + f" t += {self._number()};" * (depth == 2)
            self._numbers += ["t", "t"]
        elif kind == "vector":
            vector = self._one_of([f"{self._number()} * v", "v", "(X[i])'", "M[i]' - v"])
            element = f" t[{self._one_of(['1', 'g[i]'])}] += {self._number()};"
            head = f"{{ vector[K] t = {vector};" + element * (depth == 2)
            self._numbers += ["sum(t)", "t[3]", *["t[j]"] * ("0.1 * j" in self._numbers)]
        else:
            conditions = ["c[i] == 1", "n[i] > 1", "K > 2", "a > 0.1", "y[i] > a"]
            head = f"if ({self._one_of(conditions)}) {{"
            tail = f"}} else {{ {self._statement(depth - 1)} }}"
        body = [self._statement(depth - 1) for _ in range(int(self._rng.integers(1, 3)))]
        self._numbers = outside
        return "\n".join([head, *body, tail])


def difference(seed: int, recorded: bool = False) -> str:
    """How all iterations at once differ from one after the other; empty if they do not."""
    nest = Nest(seed)
    model = vm.stan.Program(nest.text).model(nest.data)
    q = np.random.default_rng(seed).uniform(-1, 1, nest.size)
    value, gradient = one_by_one(nest)(q, True, True)
    function: Any = model.log_density_gradient if recorded else vm.value_and_grad(model._target)
    result = function(q) if recorded else function(q, True, True)
    is_close = abs(result[0] - value) <= 1e-11 * (1 + abs(value)) and np.allclose(
        result[1], gradient, 1e-9, 1e-10 * (1 + np.max(np.abs(gradient)))
    )
    return "" if is_close else f"seed {seed}: {result}, not {(value, gradient)}\n{nest.text}"


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--recorded", action="store_true")
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.count):
        print(difference(seed, options.recorded), end="")


if __name__ == "__main__":
    main()
