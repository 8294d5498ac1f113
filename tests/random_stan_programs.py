"""Random Stan programs, each with the same mathematics as a Python function.

A generator writes each statement twice: as Stan's text, and as a function that computes with NumPy
and varmat, where vectors into which elements are assigned are lists of scalars. Run as a script, it
compares many of them: ``python tests/random_stan_programs.py --count 500 --seed 7``.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from random_recurrences import Env, Piece, wrong

import varmat as vm

FUNCTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "sin": ("sin({})", np.sin), "tanh": ("tanh({})", np.tanh), "atan": ("atan({})", np.arctan),
    "inv_logit": ("inv_logit({})", vm.inv_logit), "root": ("sqrt(1 + square({}))", lambda x:
     np.sqrt(1 + x * x)), "bell": ("exp(-square({}))", lambda x: np.exp(-x * x)),
    "log1p": ("log1p(({})^2)", lambda x: np.log1p(x * x)), "minus": ("-({})", lambda x: -x),
    "lgamma": ("lgamma(1 + inv_logit({}))", lambda x: vm.lgamma(1 + vm.inv_logit(x))),
    "abs": ("abs({} + 0.037)", lambda x: np.abs(x + 0.037)), "phi": ("Phi({})", vm.Phi),
}  # fmt: skip
OPERATORS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "+": ("({} + {})", lambda x, y: x + y), "-": ("({} - {})", lambda x, y: x - y),
    "*": ("({} {} {})", lambda x, y: x * y), "/": ("({} {} (1 + square({})))", lambda x, y:
     x / (1 + y * y)),
}  # fmt: skip
# Densities: the name, the number of arguments behind the value, and which of these are positive.
DENSITIES = [("normal", (0, 1)), ("student_t", (1, 0, 1)), ("logistic", (0, 1)), ("cauchy", (0, 1)),
             ("gumbel", (0, 1))]  # fmt: skip
MASSES = [("poisson_log", 1), ("bernoulli_logit", 1), ("neg_binomial_2_log", 2)]
ROUTINES = """
  real own(real x, real y) {
    if (x > y + 0.0123) return tanh(x) * y;
    return x - sin(y);
  }
  vector walk(vector x, real r) {
    vector[rows(x)] z = x;
    for (i in 2:rows(x)) { if (i == 3) continue; z[i] += r * z[i - 1]; }
    return z;
  }
  real odd_lpdf(vector x, real m) {
    real total = 0;
    for (e in x) total += normal_lupdf(e | m, 2);
    return total;
  }
"""


def own(x: Any, y: Any) -> Any:
    return np.tanh(x) * y if vm.value(x) > vm.value(y) + 0.0123 else x - np.sin(y)


def walk(x: Any, r: Any) -> Any:
    z = list(x)
    for i in range(1, len(z)):
        if i != 2:
            z[i] = z[i] + r * z[i - 1]
    return np.stack(z)


def positive(x: Piece) -> Piece:
    return Piece(f"(0.5 + exp({x.text} / 9))", lambda e: 0.5 + np.exp(x.run(e) / 9))


class Generator:
    """Writes one program: `text`, `data`, and `log_density(q)` for the unconstrained vector."""

    def __init__(self, seed: int) -> None:
        self._rng = rng = np.random.default_rng(seed)
        n, k = int(rng.integers(4, 7)), int(rng.integers(2, 4))
        self.sizes = {"N": n, "K": k}
        self.data: Env = {
            "N": n, "K": k, "y": rng.normal(size=n), "X": rng.normal(size=(n, k)),
            "g": rng.integers(1, k + 1, n), "c": rng.integers(0, 2, n),
        }  # fmt: skip
        # Names that are taken; those of scopes that have ended are used again.
        self._taken: list[str] = []
        self.numbers = ["a", "s"]
        self.vectors = {"u": "N", "v": "K", "y": "N"}
        self.filled: dict[str, str] = {}
        # Numbers that may be assigned again.
        self.reals: list[str] = []
        self._loops: list[tuple[str, str]] = []
        transformed = [self.declaration() for _ in range(2)]
        self.filled.clear()  # these stay as they are
        self.reals.clear()
        model = [self.statement(2) for _ in range(5)]
        self._run = [*transformed, *model]
        inside = ["\n".join(each.text for each in part) for part in (transformed, model)]
        self.text = f"""
functions {{{ROUTINES}}}
data {{ int N; int K; vector[N] y; matrix[N, K] X; array[N] int g; array[N] int c; }}
parameters {{ real a; real<lower=0> s; vector[N] u; vector<lower=-1, upper=2>[K] v; }}
transformed parameters {{
{inside[0]}
}}
model {{
{inside[1]}
}}
"""

    @property
    def size(self) -> int:
        return 2 + self.sizes["N"] + self.sizes["K"]

    def log_density(self, q: Any) -> Any:
        n = self.sizes["N"]
        w = q[2 + n :]
        e: Env = {
            **self.data, "a": q[0], "s": np.exp(q[1]), "u": q[2 : 2 + n],
            "v": -1 + 3 * vm.inv_logit(w),
        }  # fmt: skip
        jacobian = np.log(3.0) + vm.log_inv_logit(w) + vm.log1m_inv_logit(w)
        e["target"] = [q[1], np.sum(jacobian)]
        for each in self._run:
            each.run(e)
        return sum(e["target"])

    def _one_of(self, choices: Any) -> Any:
        choices = list(choices)
        return choices[int(self._rng.integers(len(choices)))]

    def _new(self, prefix: str) -> str:
        name = next(x for k in count(1) if (x := f"{prefix}{k}") not in self._taken)
        self._taken.append(name)
        return name

    # --- expressions ---

    def index(self, size: str) -> Piece:
        """A place of a vector: from 1 in the text, from 0 in Python."""
        loops = [name for name, bound in self._loops if bound == size]
        if loops and self._rng.random() < 0.7:
            name = self._one_of(loops)
            if self._rng.random() < 0.2:
                return Piece(f"{size} + 1 - {name}", lambda e: self.sizes[size] - e[name])
            return Piece(name, lambda e: e[name] - 1)
        loops = [name for name, bound in self._loops if bound == "N"]
        if loops and size == "K" and self._rng.random() < 0.6:
            name = self._one_of(loops)
            return Piece(f"g[{name}]", lambda e: e["g"][e[name] - 1] - 1)
        place = int(self._rng.integers(self.sizes[size]))
        return Piece(str(place + 1), lambda e: place)

    def number(self, depth: int) -> Piece:
        if depth == 0:
            return self._leaf()
        match self._one_of(["unary", "binary", "binary", "leaf", "sum", "own", "if", "lpdf"]):
            case "unary":
                return self._applied(self.number(depth - 1))
            case "binary":
                return self._combined(self.number(depth - 1), self.number(depth - 1), "*", "/")
            case "sum":
                x, y = (self.vector("K", depth - 1) for _ in "xy")
                form, f = self._one_of(
                    [("sum({})", lambda x, y: np.sum(x)), ("dot_product({}, {})", np.vdot),
                     ("{}' * {}", lambda x, y: np.sum(x * y)),
                     ("log_sum_exp({})", lambda x, y: vm.logsumexp(x))]
                )  # fmt: skip
                return Piece(f"({form.format(x.text, y.text)})", lambda e: f(x.run(e), y.run(e)))
            case "own":
                x, y = self.number(depth - 1), self.number(depth - 1)
                return Piece(f"own({x.text}, {y.text})", lambda e: own(x.run(e), y.run(e)))
            case "if":
                x, y, i = self.number(depth - 1), self.number(depth - 1), self.index("N")
                text = f"(c[{i.text}] == 1 ? {x.text} : {y.text})"
                return Piece(text, lambda e: (x if e["c"][i.run(e)] == 1 else y).run(e))
            case "lpdf":
                x, y = self.number(depth - 1), positive(self.number(depth - 1))
                text = f"normal_lpdf({x.text} | 0.3, {y.text})"
                return Piece(text, lambda e: vm.normal_lpdf(x.run(e), 0.3, y.run(e)))
        return self._leaf()

    def _leaf(self) -> Piece:
        kind = self._one_of(["name", "element", "element", "matrix", "literal"])
        if kind == "name":
            name = self._one_of(self.numbers)
            return Piece(name, lambda e: e[name])
        if kind == "element":
            name, size = self._one_of(self.vectors.items())
            i = self.index(size)
            return Piece(f"{name}[{i.text}]", lambda e: e[name][i.run(e)])
        if kind == "matrix":
            i, j = self.index("N"), self.index("K")
            return Piece(f"X[{i.text}, {j.text}]", lambda e: e["X"][i.run(e), j.run(e)])
        value = round(float(self._rng.uniform(0.1, 2)), 2)
        return Piece(repr(value), lambda e: value)

    def _applied(self, x: Piece) -> Piece:
        form, f = FUNCTIONS[self._one_of(FUNCTIONS)]
        return Piece(form.format(x.text), lambda e: f(x.run(e)))

    def _combined(self, x: Piece, y: Piece, times: str, over: str) -> Piece:
        name = self._one_of(OPERATORS)
        form, f = OPERATORS[name]
        parts = {"*": (x.text, times, y.text), "/": (x.text, over, y.text)}
        return Piece(
            form.format(*parts.get(name, (x.text, y.text))), lambda e: f(x.run(e), y.run(e))
        )

    def vector(self, size: str, depth: int) -> Piece:
        names = [name for name, own in self.vectors.items() if own == size]
        if depth > 0:
            match self._one_of(["unary", "binary", "binary", "scaled", "chosen", "walk", "name"]):
                case "unary":
                    return self._applied(self.vector(size, depth - 1))
                case "binary":
                    parts = self.vector(size, depth - 1), self.vector(size, depth - 1)
                    return self._combined(*parts, ".*", "./")
                case "scaled":
                    x, y = self.number(depth - 1), self.vector(size, depth - 1)
                    return Piece(f"({x.text} * {y.text})", lambda e: x.run(e) * y.run(e))
                case "chosen" if size == "N":
                    x = self.vector("K", 0)
                    form, f = self._one_of(
                        [("{}[g]", lambda e, x: x[e["g"] - 1]), ("(X * {})", lambda e, x:
                          e["X"] @ x)]
                    )  # fmt: skip
                    return Piece(form.format(x.text), lambda e: f(e, x.run(e)))
                case "chosen":
                    k = self.sizes["K"]
                    name = self._one_of(each for each, own in self.vectors.items() if own == "N")
                    return Piece(f"{name}[2:(K + 1)]", lambda e: np.stack(list(e[name]))[1 : k + 1])
                case "walk":
                    x, y = self.vector(size, depth - 1), self.number(depth - 1)
                    return Piece(f"walk({x.text}, {y.text})", lambda e: walk(x.run(e), y.run(e)))
        name = self._one_of(names)
        # Stacked, because vectors that are assigned by element are lists here.
        return Piece(name, lambda e: np.stack(e[name]) if type(e[name]) is list else e[name])

    # --- statements ---

    def block(self, depth: int, length: int) -> Piece:
        """Statements in a scope of their own."""
        before = self.numbers.copy(), self.vectors.copy(), self.filled.copy(), self.reals.copy()
        taken = len(self._taken)
        parts = [self.statement(depth) for _ in range(length)]
        self.numbers, self.vectors, self.filled, self.reals = before
        del self._taken[taken:]

        def run(e: Env) -> None:
            for part in parts:
                part.run(e)

        return Piece("\n".join(part.text for part in parts), run)

    def statement(self, depth: int) -> Piece:
        kinds = ["declare", "target", "density", "masses", "truncated"]
        kinds += ["loop", "loop", "if", "while", "foreach"] if depth else []
        kinds += ["assign"] * 2 if self.filled else []
        kinds += ["reassign"] * 2 if self.reals else []
        return getattr(self, f"_{self._one_of(kinds)}")(depth)

    def _declare(self, depth: int) -> Piece:
        return self.declaration()

    def declaration(self) -> Piece:
        kind = self._one_of(["number", "vector", "filled"])
        if kind == "number":
            name, x = self._new("t"), self.number(2)
            self.numbers.append(name)
            self.reals.append(name)
            return Piece(f"real {name} = {x.text};", lambda e: e.update({name: x.run(e)}))
        name, size = self._new("z"), self._one_of(["N", "K"])
        if kind == "vector":
            whole = self.vector(size, self._one_of([0, 2]))
            self.vectors[name] = self.filled[name] = size
            text = f"vector[{size}] {name} = {whole.text};"
            return Piece(text, lambda e: e.update({name: list(whole.run(e))}))
        loop = self._new("i")
        self._loops.append((loop, size))
        each, recurrent = self.number(2), self._rng.random() < 0.4
        self._loops.pop()
        self._taken.remove(loop)
        self.vectors[name] = self.filled[name] = size
        head, tail = f"vector[{size}] {name};", f"{name}[{loop}] = {each.text}"
        if recurrent:
            tail += f" + ({loop} > 1 ? 0.3 * {name}[max({loop} - 1, 1)] : 0.0)"
        if recurrent:
            head += f"\n{name}[1] = 0;"

        def run(e: Env) -> None:
            z: list[Any] = []
            for i in range(self.sizes[size]):
                e[loop] = i + 1
                x = each.run(e)
                z.append(x + 0.3 * z[-1] if recurrent and i else x)
            e[name] = z

        return Piece(f"{head}\nfor ({loop} in 1:{size}) {tail};", run)

    def _reassign(self, depth: int) -> Piece:
        name, x, factor = self._one_of(self.reals), self.number(2), self._one_of([0.3, -0.5])
        text = f"{name} = {factor} * {name} + sin({x.text});"
        return Piece(text, lambda e: e.update({name: factor * e[name] + np.sin(x.run(e))}))

    def _assign(self, depth: int) -> Piece:
        name, size = self._one_of(self.filled.items())
        kind = self._one_of(["element", "element", "add", "range", "several", "whole"])
        if kind in ("element", "add"):
            i, x = self.index(size), self.number(2)
            sign = "+=" if kind == "add" else "="

            def run(e: Env) -> None:
                z, place = e[name].copy(), i.run(e)
                z[place] = z[place] + x.run(e) if sign == "+=" else x.run(e)
                e[name] = z

            return Piece(f"{name}[{i.text}] {sign} {x.text};", run)
        if kind == "whole":
            whole = self.vector(size, self._one_of([0, 2]))
            return Piece(f"{name} = {whole.text};", lambda e: e.update({name: list(whole.run(e))}))
        places = [1, 2] if kind == "range" else [2, 1]
        index = "1:2" if kind == "range" else "{2, 1}"
        x, y = self.number(1), self.number(1)

        def put(e: Env) -> None:
            values, z = (x.run(e), y.run(e)), e[name].copy()
            for place, value in zip(places, values, strict=True):
                z[place - 1] = value
            e[name] = z

        return Piece(f"{name}[{index}] = [{x.text}, {y.text}]';", put)

    def _target(self, depth: int) -> Piece:
        if self._rng.random() < 0.2:
            m, v = self.number(1), self.vector("K", 1)

            def odd(e: Env) -> None:
                e["target"].append(np.sum(vm.normal_lpdf(v.run(e), m.run(e), 2)))

            return Piece(f"{v.text} ~ odd({m.text});", odd)
        x = self.number(3)
        return Piece(f"target += {x.text};", lambda e: e["target"].append(x.run(e)))

    def _density(self, depth: int) -> Piece:
        name, signs = self._one_of(DENSITIES)
        whole = self._rng.random() < 0.5

        def argument() -> Piece:
            return self.vector("N", 1) if whole and self._rng.random() < 0.6 else self.number(1)

        first = self.vector("N", 1) if whole else self.number(1)
        rest = [positive(argument()) if sign else argument() for sign in signs]
        function = getattr(vm, f"{name}_lpdf")

        def run(e: Env) -> None:
            e["target"].append(function(first.run(e), *(each.run(e) for each in rest)))

        return Piece(f"{first.text} ~ {name}({', '.join(each.text for each in rest)});", run)

    def _masses(self, depth: int) -> Piece:
        name, size = self._one_of(MASSES)
        i, eta = self.index("N"), self.number(2)
        rest = [positive(self.number(1)) for _ in range(size - 1)]
        function = getattr(vm, f"{name}_lpmf")

        def run(e: Env) -> None:
            n = int(e["c"][i.run(e)])
            e["target"].append(function(n, eta.run(e), *(each.run(e) for each in rest)))

        arguments = ", ".join(each.text for each in (eta, *rest))
        return Piece(f"c[{i.text}] ~ {name}({arguments});", run)

    def _truncated(self, depth: int) -> Piece:
        i, m, s = self.index("K"), self.number(1), positive(self.number(1))
        low, high = self._rng.random(2) < 0.6
        ends = ("-1.5" if low else "", "2.5" if high else "")

        def run(e: Env) -> None:
            mu, sigma = m.run(e), s.run(e)
            # By the tails on the side of the interval: a difference of numbers near 1 has few
            # digits.
            if mu > 0.5:
                below = vm.normal_cdf(-1.5, mu, sigma) if low else 0.0
                mass = (vm.normal_cdf(2.5, mu, sigma) if high else 1.0) - below
            else:
                above = vm.normal_cdf(-2.5, -mu, sigma) if high else 0.0
                mass = (vm.normal_cdf(1.5, -mu, sigma) if low else 1.0) - above
            e["target"].append(vm.normal_lpdf(e["v"][i.run(e)], mu, sigma) - np.log(mass))

        return Piece(f"v[{i.text}] ~ normal({m.text}, {s.text}) T[{ends[0]}, {ends[1]}];", run)

    def _loop(self, depth: int) -> Piece:
        name, size = self._new("i"), self._one_of(["N", "N", "K"])
        self._loops.append((name, size))
        body = self.block(depth - 1, int(self._rng.integers(1, 3)))
        self._loops.pop()
        self._taken.remove(name)

        def run(e: Env) -> None:
            for i in range(self.sizes[size]):
                e[name] = i + 1
                body.run(e)

        return Piece(f"for ({name} in 1:{size}) {{\n{body.text}\n}}", run)

    def _if(self, depth: int) -> Piece:
        i = self.index("N")
        by_data = self._rng.random() < 0.7
        x = self.number(1)
        body, otherwise = self.block(depth - 1, 1), self.block(depth - 1, 1)

        def holds(e: Env) -> bool:
            return bool(e["c"][i.run(e)] == 1) if by_data else bool(vm.value(x.run(e)) > 0.123)

        condition = f"c[{i.text}] == 1" if by_data else f"{x.text} > 0.123"
        text = f"if ({condition}) {{\n{body.text}\n}} else {{\n{otherwise.text}\n}}"
        return Piece(text, lambda e: (body if holds(e) else otherwise).run(e))

    def _while(self, depth: int) -> Piece:
        name, body = self._new("w"), self.block(depth - 1, 1)
        self._taken.remove(name)

        def run(e: Env) -> None:
            for _ in range(2):
                body.run(e)

        head = f"int {name} = 0; while (1) {{ if ({name} > 1) break; {name} += 1;"
        return Piece(f"{{ {head}\n{body.text} }} }}", run)

    def _foreach(self, depth: int) -> Piece:
        name, values = self._new("e"), self.vector("K", 1)
        self.numbers.append(name)
        body = self.block(depth - 1, 1)
        self.numbers.remove(name)
        self._taken.remove(name)

        def run(e: Env) -> None:
            for x in values.run(e):
                e[name] = x
                body.run(e)

        return Piece(f"for ({name} in {values.text}) {{\n{body.text}\n}}", run)


def disagreement(seed: int, recorded: bool = True, translated: bool = True) -> str:
    """What differs between a random program and its mathematics; empty if nothing does."""
    made = Generator(seed)
    program = vm.stan.Program(made.text)
    q = np.random.default_rng([seed, 1]).uniform(-1, 1, made.size)
    value, gradient = vm.value_and_grad(made.log_density)(q)
    model, other = program.model(made.data), program.model(made.data, representation="matvar")
    found = {
        "eager": vm.value_and_grad(model._target)(q, False, True),
        "matvar": vm.value_and_grad(other._target)(q, False, True),
    }
    if recorded:
        found["recorded"] = model.log_density_gradient(q, propto=False)
        found["recorded matvar"] = other.log_density_gradient(q, propto=False)
    if translated:
        exec(program.to_python(), module := {})
        python = module["make_model"](made.data)
        found["translated"] = vm.value_and_grad(python._target)(q, False, True)
    true = value, gradient, 1 + np.max(np.abs(gradient))
    return wrong(f"seed {seed}", made.text, found, true, 1e-12)


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--eager", action="store_true", help="without recordings")
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.count):
        try:
            text = disagreement(seed, not options.eager)
        except Exception as error:
            text = f"seed {seed}: {type(error).__name__}: {error}\n{Generator(seed).text}"
        if text:
            print(text)


if __name__ == "__main__":
    main()
