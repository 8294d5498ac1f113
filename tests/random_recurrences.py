"""Random time series models: recurrences with several lags, written into arrays element by element.

A generator writes each model as a Stan program and as a function of NumPy arrays. The oracle is the
derivative of the function by complex steps, which shares no code with the library and is exact to
rounding. Run as a script, it compares many of them, and counts those whose recordings have loops:
``python tests/random_recurrences.py --count 5000 --seed 7``.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import varmat as vm
from varmat.programs.ir.program import Program

Env = dict[str, Any]
LAGS = (1, 1, 2, 3, 4, 6)


class Piece(NamedTuple):
    """A part of a program: Stan's text, and what it computes from values by name."""

    text: str
    run: Callable[[Env], Any]


FUNCTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "tanh": ("tanh({})", np.tanh), "sin": ("sin({})", np.sin),
    "bell": ("exp(-square({}))", lambda x: np.exp(-(x * x))),
    "root": ("sqrt(1 + square({}))", lambda x: np.sqrt(1 + x * x)),
    "minus": ("(-({}))", lambda x: -x), "half": ("(0.5 * {})", lambda x: 0.5 * x),
}  # fmt: skip
OPERATORS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "+": ("({} + {})", lambda x, y: x + y), "-": ("({} - {})", lambda x, y: x - y),
    "*": ("({} * tanh({}))", lambda x, y: x * np.tanh(y)),
    "/": ("({} / (1.5 + square({})))", lambda x, y: x / (1.5 + y * y)),
}  # fmt: skip


def normal(x: Any, mu: Any, sigma: Any) -> Any:
    """The normal log density of variables by the library, of complex numbers by its formula."""
    if not any(map(np.iscomplexobj, (x, mu, sigma))):
        return vm.normal_lpdf(x, mu, sigma)
    z = (x - mu) / sigma
    return np.sum(-0.5 * z * z - np.log(sigma) - 0.5 * np.log(2 * np.pi))


def student_t(x: Any, mu: Any, sigma: Any) -> Any:
    if not any(map(np.iscomplexobj, (x, mu, sigma))):
        return vm.student_t_lpdf(x, 4.0, mu, sigma)
    z = (x - mu) / sigma
    # Of 4 degrees of freedom the constant is 3/8.
    return np.sum(np.log(0.375) - 2.5 * np.log1p(z * z / 4) - np.log(sigma))


DENSITIES: dict[str, tuple[str, Callable[[Any, Any, Any], Any]]] = {
    "normal": ("normal_lpdf({} | {}, {})", normal),
    "student_t": ("student_t_lpdf({} | 4, {}, {})", student_t),
}


class Generator:
    """Writes one model: `text`, `data`, and `log_density` of the parameters by name."""

    def __init__(self, seed: int) -> None:
        rng = self._begin(seed, 48, 72)
        self._has_states = rng.random() < 0.3
        self._arrays = ["e", "mu", "h"][: self._one_of([1, 1, 2, 2, 3])]
        # Arrays whose element of this iteration has its value; numbers of this iteration.
        self._written: list[str] = []
        self._numbers: list[str] = []
        self._carried = ["level"] if rng.random() < 0.5 else []
        before = [self._start(name) for name in self._arrays]
        inside = [self._first(name) for name in self._arrays]
        inside += [self._statement() for _ in range(rng.integers(0, 3))]
        after = [self._density() for _ in range(rng.integers(1, 3))]
        self._run = before, inside, after
        states = " vector[n] z;" if self._has_states else ""
        lines = "\n".join
        self.text = f"""
data {{ int n; int m; vector[n] y; matrix[n, 2] x; vector[n] w; array[n] int g; }}
parameters {{ real<lower=0> s; real mu0; vector[2] b; vector[m] c;{states} }}
model {{
  {"".join(f"vector[n] {name}; " for name in self._arrays)}
  real level = 0.1;
{lines(each.text for each in before)}
  for (i in 1:n) {{
{lines(each.text for each in inside)}
  }}
{lines(each.text for each in after)}
  target += normal_lpdf(c | 0, 1);
  target += level * s;
}}
"""

    # --- the model of numbers and variables ---

    def _begin(self, seed: int, least: int, most: int) -> np.random.Generator:
        """Draw the number of iterations, the lags and the data."""
        self._rng = rng = np.random.default_rng(seed)
        self.n, self.lags = int(rng.integers(least, most)), int(rng.integers(1, 4))
        n = self.n
        self.data: Env = {
            "n": n, "m": self.lags, "y": rng.normal(size=n), "x": rng.normal(size=(n, 2)),
            "w": np.exp(rng.normal(size=n)), "g": rng.integers(0, 2, n),
        }  # fmt: skip
        return rng

    def sizes(self) -> dict[str, tuple[int, ...]]:
        sizes: dict[str, tuple[int, ...]] = {"s": (), "mu0": (), "b": (2,), "c": (self.lags,)}
        return {**sizes, "z": (self.n,)} if self._has_states else sizes

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.sizes().values())

    def log_density(self, **parameters: Any) -> Any:
        before, inside, after = self._run
        env: Env = {**self.data, **parameters, "level": 0.1, "target": 0.0}
        for name in self._arrays:
            env[name] = np.zeros_like(parameters["c"], shape=self.n)
        for piece in before:
            piece.run(env)
        for i in range(self.n):
            env["i"] = i
            for piece in inside:
                piece.run(env)
        for piece in after:
            piece.run(env)
        return env["target"] + normal(env["c"], 0.0, 1.0) + env["level"] * env["s"]

    def at(self, q: np.ndarray) -> Any:
        """The log density at a plain or complex unconstrained point, with its Jacobian."""
        parts, place = {}, 0
        for name, shape in self.sizes().items():
            size = int(np.prod(shape))
            parts[name] = q[place : place + size].reshape(shape)[()]
            place += size
        return self.log_density(**{**parts, "s": np.exp(parts["s"])}) + q[0]

    # --- expressions ---

    def _one_of(self, choices: Any) -> Any:
        choices = [*choices]
        return choices[self._rng.integers(len(choices))]

    def _coefficient(self) -> Piece:
        kind = self._one_of(["c", "c", "c", "mu0", "literal", "s"])
        if kind == "c":
            k = int(self._rng.integers(self.lags))
            return Piece(f"tanh(c[{k + 1}])", lambda e: np.tanh(e["c"][k]))
        if kind == "literal":
            value = round(float(self._rng.uniform(-0.8, 0.8)), 2)
            return Piece(f"({value})", lambda e: value)
        return Piece(f"tanh({kind})", lambda e: np.tanh(e[kind]))

    def _leaf(self) -> Piece:
        kinds = ["y", "w", "x", "mu0", "b", "product"]
        kinds += ["z"] * 2 * self._has_states + ["level"] * len(self._carried)
        kinds += ["written"] * 3 * bool(self._written) + ["number"] * 2 * bool(self._numbers)
        kind = self._one_of(kinds)
        k = int(self._rng.integers(2))
        match kind:
            case "y" | "w" | "z":
                return Piece(f"{kind}[i]", lambda e: e[kind][e["i"]])
            case "written":
                name = self._one_of(self._written)
                return Piece(f"{name}[i]", lambda e: e[name][e["i"]])
            case "number":
                number = self._one_of(self._numbers)
                return Piece(number, lambda e: e[number])
            case "x":
                return Piece(f"x[i, {k + 1}]", lambda e: e["x"][e["i"], k])
            case "b":
                return Piece(f"b[{k + 1}]", lambda e: e["b"][k])
            case "product":
                return Piece("(x[i] * b)", lambda e: e["x"][e["i"]] @ e["b"])
        return Piece(kind, lambda e: e[kind])

    def _expression(self, depth: int = 2) -> Piece:
        kind = self._one_of(["leaf", "unary", "binary", "binary"]) if depth else "leaf"
        if kind == "leaf":
            return self._leaf()
        x = self._expression(depth - 1)
        if kind == "unary":
            form, f = self._one_of(FUNCTIONS.values())
            return Piece(form.format(x.text), lambda e: f(x.run(e)))
        y = self._expression(depth - 1)
        form, f = self._one_of(OPERATORS.values())
        return Piece(form.format(x.text, y.text), lambda e: f(x.run(e), y.run(e)))

    def _lagged(self) -> tuple[int, Piece]:
        """An element of an earlier iteration, and how far back it is."""
        name, lag = self._one_of(self._arrays), int(self._one_of(LAGS))
        return lag, Piece(f"{name}[i - {lag}]", lambda e: e[name][e["i"] - lag])

    # --- statements ---

    def _start(self, name: str) -> Piece:
        kind = self._one_of(["product", "zeros", "parameter"] * 3 + ["data"])
        form, f = {
            "product": ("x * b", lambda e: e["x"] @ e["b"]),
            "zeros": ("rep_vector(0, n)", lambda e: 0.0),
            "parameter": ("rep_vector(mu0, n)", lambda e: e["mu0"]),
            "data": ("y", lambda e: e["y"]),
        }[kind]

        def run(e: Env) -> None:
            e[name][:] = f(e)

        return Piece(f"  {name} = {form};", run)

    def _first(self, name: str) -> Piece:
        """What is done to an element first: its own terms, then those of earlier iterations."""
        own = self._set(name, self._expression(), self._one_of(["=", "+=", "-="]))
        terms = [own, *(self._term(name) for _ in range(self._rng.integers(1, 3)))]
        self._written.append(name)
        return self._all(terms)

    @staticmethod
    def _all(pieces: list[Piece]) -> Piece:
        def run(e: Env) -> None:
            for piece in pieces:
                piece.run(e)

        return Piece("\n".join(piece.text for piece in pieces), run)

    @staticmethod
    def _set(name: str, x: Piece, sign: str) -> Piece:
        def run(e: Env) -> None:
            i, value = e["i"], x.run(e)
            match sign:
                case "=":
                    e[name][i] = value
                case "+=":
                    e[name][i] += value
                case "-=":
                    e[name][i] -= value

        return Piece(f"    {name}[i] {sign} {x.text};", run)

    def _term(self, name: str) -> Piece:
        """A term of an earlier iteration, where there is one."""
        lag, old = self._lagged()
        factor, kind = (
            self._coefficient(),
            self._one_of(["if", "if", "if", "else", "choice", "window"]),
        )
        product = Piece(f"{old.text} * {factor.text}", lambda e: old.run(e) * factor.run(e))
        if kind == "choice":
            text = f"(i > {lag} ? {old.text} : 0.0) * {factor.text}"

            def chosen(e: Env) -> Any:
                return (old.run(e) if e["i"] >= lag else 0.0) * factor.run(e)

            return self._set(name, Piece(text, chosen), "+=")
        if kind == "window":
            return self._window(name)
        add, other = self._set(name, product, "+="), self._set(name, self._expression(1), "+=")

        def run(e: Env) -> None:
            if e["i"] >= lag:
                add.run(e)
            elif kind == "else":
                other.run(e)

        end = f" else {other.text.strip()}" if kind == "else" else ""
        return Piece(f"    if (i > {lag}) {add.text.strip()}{end}", run)

    def _window(self, name: str) -> Piece:
        """Terms of the last iterations, as many as there are coefficients."""
        other = self._one_of(self._arrays)

        def run(e: Env) -> None:
            i = e["i"]
            for j in range(min(i, self.lags)):
                e[name][i] += 0.5 * np.tanh(e["c"][j]) * e[other][i - 1 - j]

        text = f"{name}[i] += 0.5 * tanh(c[j]) * {other}[i - j];"
        return Piece(f"    for (j in 1:min(i - 1, m)) {text}", run)

    def _statement(self) -> Piece:
        kinds = ["number", "again", "level", "target"] * 2 + ["data"]
        match self._one_of(kinds):
            case "number":
                x, name = self._expression(), f"t{len(self._numbers)}"
                self._numbers.append(name)
                return Piece(f"    real {name} = {x.text};", lambda e: e.update({name: x.run(e)}))
            case "level" if self._carried:
                x, factor = self._expression(1), self._coefficient()
                text = f"    level = {factor.text} * level + 0.1 * {x.text};"

                def run(e: Env) -> None:
                    e["level"] = factor.run(e) * e["level"] + 0.1 * x.run(e)

                return Piece(text, run)
            case "target":
                return self._target()
            case "data":
                name = self._one_of(self._arrays)
                x = self._set(name, self._expression(1), "+=")
                return Piece(
                    f"    if (g[i] == 1) {x.text.strip()}", lambda e: e["g"][e["i"]] and x.run(e)
                )
        name = self._one_of(self._arrays)
        return self._set(name, self._expression(1), self._one_of(["=", "+=", "-="]))

    def _target(self) -> Piece:
        form, f = self._one_of(DENSITIES.values())
        name = self._one_of(self._arrays)
        scale, value = self._one_of(
            [("s", lambda e: e["s"]), ("w[i]", lambda e: e["w"][e["i"]]),
             (f"exp(tanh({name}[i]))", lambda e: np.exp(np.tanh(e[name][e["i"]])))]
        )  # fmt: skip
        mean = self._leaf()

        def run(e: Env) -> None:
            e["target"] = e["target"] + f(e["y"][e["i"]], mean.run(e), value(e))

        return Piece(f"    target += {form.format('y[i]', mean.text, scale)};", run)

    def _density(self) -> Piece:
        """A density of an array when the loop is done."""
        form, f = self._one_of(DENSITIES.values())
        name, other = self._one_of(self._arrays), self._one_of(self._arrays)
        first = int(self._one_of([1, 1, 2, 5]))
        part = slice(first - 1, None)
        whole = f"{name}[{first}:n]" if first > 1 else name
        scale, value = self._one_of(
            [("s", lambda e: e["s"]), ("s", lambda e: e["s"]), ("1.3", lambda e: 1.3),
             (f"w[{first}:n]", lambda e: e["w"][part]),
             (f"s * w[{first}:n]", lambda e: e["s"] * e["w"][part]),
             (f"exp(tanh({other}[{first}:n]))", lambda e: np.exp(np.tanh(e[other][part])))]
        )  # fmt: skip
        mean, middle = self._one_of(
            [("0", lambda e: 0.0), ("mu0", lambda e: e["mu0"]),
             (f"y[{first}:n]", lambda e: e["y"][part])]
        )  # fmt: skip

        def run(e: Env) -> None:
            e["target"] = e["target"] + f(e[name][part], middle(e), value(e))

        return Piece(f"  target += {form.format(whole, mean, scale)};", run)


class ScalarGenerator(Generator):
    """Writes a loop that hands numbers on, in which iterations branch on parameters and on data."""

    def __init__(self, seed: int) -> None:
        rng = self._begin(seed, 6, 40)
        self._has_states, self._arrays, self._written = rng.random() < 0.3, [], []
        self._states = ["h0", "h1", "h2"][: self._one_of([1, 2, 2, 3])]
        self._numbers, self._carried = [*self._states], []
        inside = [self._update(name) for name in self._states]
        inside += [self._scalar_statement(2) for _ in range(rng.integers(1, 5))]
        start = Piece("", lambda e: e.update(dict.fromkeys(self._states, 0.3)))
        last = Piece(
            f"  target += -square({self._states[0]});",
            lambda e: e.update(target=e["target"] - e[self._states[0]] ** 2),
        )
        self._run = [start], inside, [last]
        states = " vector[n] z;" if self._has_states else ""
        lines = "\n".join
        self.text = f"""
functions {{
  real bent(real u, real v) {{ if (u > v) return tanh(u) * v; return u - 0.5 * v; }}
}}
data {{ int n; int m; vector[n] y; matrix[n, 2] x; vector[n] w; array[n] int g; }}
parameters {{ real<lower=0> s; real mu0; vector[2] b; vector[m] c;{states} }}
model {{
  {" ".join(f"real {name} = 0.3;" for name in self._states)}
  for (i in 1:n) {{
{lines(each.text for each in inside)}
  }}
{last.text}
  target += normal_lpdf(c | 0, 1);
  target += 0.1 * s;
}}
"""

    def _expression(self, depth: int = 2) -> Piece:
        if depth and self._rng.random() < 0.2:
            x, y = super()._expression(1), super()._expression(1)
            if self._rng.random() < 0.5:
                return Piece(f"bent({x.text}, {y.text})", lambda e: bent(x.run(e), y.run(e)))
            text = f"({x.text} > {y.text} ? {x.text} : {y.text})"
            return Piece(text, lambda e: larger(x.run(e), y.run(e)))
        return super()._expression(depth)

    def _update(self, name: str) -> Piece:
        factor, x = self._coefficient(), self._expression()
        text = f"    {name} = 0.6 * {factor.text} * {name} + 0.3 * tanh({x.text});"

        def run(e: Env) -> None:
            e[name] = 0.6 * factor.run(e) * e[name] + 0.3 * np.tanh(x.run(e))

        return Piece(text, run)

    def _scalar_statement(self, depth: int) -> Piece:
        kinds = ["update", "target", "tilde", "number"] + ["if"] * 3 * (depth > 0)
        return self._of_kind(self._one_of(kinds), depth)

    def _of_kind(self, kind: str, depth: int) -> Piece:
        match kind:
            case "tilde":
                return self._tilde()
            case "update":
                return self._update(self._one_of(self._states))
            case "number":
                x, name = self._expression(), f"t{len(self._numbers)}{depth}"
                self._numbers.append(name)
                return Piece(f"    real {name} = {x.text};", lambda e: e.update({name: x.run(e)}))
            case "if":
                return self._branch(depth)
        form, f = self._one_of(DENSITIES.values())
        mean, scale = self._expression(1), self._one_of(["s", "w[i]"])
        value = (lambda e: e["s"]) if scale == "s" else (lambda e: e["w"][e["i"]])

        def run(e: Env) -> None:
            e["target"] = e["target"] + f(e["y"][e["i"]], mean.run(e), value(e))

        return Piece(f"    target += {form.format('y[i]', mean.text, scale)};", run)

    def _tilde(self) -> Piece:
        """A statement of a density, which may drop the terms of data alone."""
        mean, name = self._expression(1), self._one_of(["normal", "lognormal", "student_t"])
        value = "w[i]" if name == "lognormal" else "y[i]"
        degrees = "4, " if name == "student_t" else ""

        def run(e: Env) -> None:
            x, mu, s = e[value[0]][e["i"]], mean.run(e), e["s"]
            term = student_t(x, mu, s) if name == "student_t" else 0.0
            if not degrees:
                log = np.log(x) if value == "w[i]" else 0.0
                term = normal(log or x, mu, s) - log
            e["target"] = e["target"] + term

        return Piece(f"    {value} ~ {name}({degrees}{mean.text}, s);", run)

    def _branch(self, depth: int) -> Piece:
        before = self._numbers.copy()
        x, y = self._expression(1), self._expression(1)
        sides = []
        for _ in range(2):
            sides.append(self._all([self._scalar_statement(depth - 1)
                                    for _ in range(self._rng.integers(1, 3))]))  # fmt: skip
            self._numbers = before.copy()
        by_data = self._rng.random() < 0.4
        condition = "g[i] == 1" if by_data else f"{x.text} > {y.text} + 0.0123"

        def run(e: Env) -> None:
            is_met = e["g"][e["i"]] == 1 if by_data else plain(x.run(e)) > plain(y.run(e)) + 0.0123
            sides[not is_met].run(e)

        text = f"    if ({condition}) {{\n{sides[0].text}\n    }} else {{\n{sides[1].text}\n    }}"
        return Piece(text, run)


class KindGenerator(ScalarGenerator):
    """Writes a loop in Python whose iterations branch on data: of several kinds, some of them rare,
    that skip what follows, change places, begin anew, and look back.
    """

    def __init__(self, seed: int) -> None:
        rng = self._begin(seed, 100, 250)
        n = self.n
        self._has_states, self._arrays, self._written = rng.random() < 0.3, [], []
        self.data["g"] = rng.integers(0, int(rng.integers(2, 5)), n)
        self.data["g"][rng.random(n) < 0.03] = 7
        self._states = ["h0", "h1", "h2"][: self._one_of([1, 2, 2, 3])]
        self._numbers, self._carried = [*self._states], []
        order = [*self._states, *[None] * int(rng.integers(2, 6))]
        rng.shuffle(order)  # type: ignore[arg-type]
        inside = [self._update(x) if x else self._scalar_statement(2) for x in order]
        self._first = self._one_of(["number", "parameter", "product"])
        self._end = self._one_of(["last", "middle", "all", "none"])
        self._inside = inside
        self.text = "\n".join(each.text for each in inside)

    def log_density(self, **parameters: Any) -> Any:
        first = {"number": 0.3, "parameter": parameters["mu0"], "product": parameters["b"][0] * 0.5}
        env: Env = {**self.data, **parameters, "target": 0.0, "past": []}
        env.update(dict.fromkeys(self._states, first[self._first]))
        for i in range(self.n):
            env["i"] = i
            for piece in self._inside:
                if piece.run(env) == "continue":
                    break
            env["past"].append(env[self._states[0]])
        past = env["past"]
        if self._end == "last":
            env["target"] = env["target"] + env[self._states[-1]] * parameters["s"]
        elif self._end == "middle":
            env["target"] = env["target"] - past[self.n // 2] ** 2 + past[-3]
        elif self._end == "all":
            env["target"] = env["target"] - 0.1 * sum(x * x for x in past[self.n // 3 :])
        return env["target"] + normal(parameters["c"], 0.0, 1.0)

    def _expression(self, depth: int = 2) -> Piece:
        return Generator._expression(self, depth)

    def _lagged(self) -> tuple[int, Piece]:
        lag = int(self._one_of(LAGS))
        return lag, Piece(f"past[-{lag}]", lambda e: e["past"][-lag])

    def _scalar_statement(self, depth: int) -> Piece:
        kinds = ["update", "target", "number", "lag", "more"] + ["if"] * 4 * (depth > 0)
        match kind := self._one_of(kinds + ["reset", "swap"] * (depth < 2)):
            case "lag":
                (lag, old), name = self._lagged(), self._one_of(self._states)

                def look(e: Env) -> None:
                    if e["i"] >= lag:
                        e[name] = 0.5 * e[name] + 0.4 * np.tanh(old.run(e))

                return Piece(f"{name} = 0.5 * {name} + 0.4 * tanh({old.text})", look)
            case "more":
                x = self._expression(1)
                less = lambda e: e.update(target=e["target"] - x.run(e))  # noqa: E731
                return Piece(f"target -= {x.text}", less)
            case "reset":
                name, x = self._one_of(self._states), self._one_of(["0.2", "mu0", "leaf"])
                leaf = self._leaf()

                def reset(e: Env) -> None:
                    e[name] = leaf.run(e) if x == "leaf" else {"0.2": 0.2, "mu0": e["mu0"]}[x]

                return Piece(f"{name} = {x} {leaf.text}", reset)
            case "swap":
                x, y = self._one_of(self._states), self._one_of(self._states)
                return Piece(f"{x}, {y} = {y}, {x}", lambda e: e.update({x: e[y], y: e[x]}))
        return self._of_kind(kind, depth)

    def _branch(self, depth: int) -> Piece:
        before, which, sides = self._numbers.copy(), int(self._one_of([0, 1, 1, 2, 7])), []
        for _ in range(2):
            count = self._rng.integers(0, 3)
            sides.append([self._scalar_statement(depth - 1) for _ in range(count)])
            self._numbers = before.copy()
        ends = self._rng.random() < 0.3

        def run(e: Env) -> str | None:
            is_met = e["g"][e["i"]] == which
            for piece in sides[not is_met]:
                if piece.run(e) == "continue":
                    return "continue"
            return "continue" if is_met and ends else None

        inner = [" | ".join(piece.text for piece in side) for side in sides]
        end = "; continue" * ends
        return Piece(f"if g[i] == {which}: [{inner[0]}{end}] else: [{inner[1]}]", run)


def plain(x: Any) -> float:
    return float(np.real(vm.value(x)))


def larger(x: Any, y: Any) -> Any:
    return x if plain(x) > plain(y) else y


def bent(x: Any, y: Any) -> Any:
    return np.tanh(x) * y if plain(x) > plain(y) else x - 0.5 * y


def complex_steps(f: Callable[[np.ndarray], Any], q: np.ndarray) -> tuple[float, np.ndarray]:
    """A value and its gradient, exact to rounding (Squire and Trapp, SIAM Review 40, 1998)."""
    with np.errstate(all="ignore"):
        values = [f(q + 1e-30j * unit) for unit in np.eye(q.size)]
    return float(values[0].real), np.array([value.imag / 1e-30 for value in values])


def has_loops(program: Program, iterations: int) -> bool:
    """Whether the iterations of a model were found again: as a loop, or as steps on arrays."""
    is_loop = any(step.kernel.as_loop is not None for step in program.steps)
    return is_loop or len(program.steps) < 2 * iterations


Slopes = tuple[float, np.ndarray]


def exact(made: Generator, q: np.ndarray) -> tuple[float, np.ndarray, float]:
    """The value, the gradient and its scale. Some of these models are chaotic: rounding errors grow
    as much as a change of the last digit.
    """
    value, gradient = complex_steps(made.at, q)
    change = complex_steps(made.at, q * (1 + 1e-15))[1] - gradient
    return value, gradient, 1 + np.max(np.abs(gradient)) + 1e13 * np.max(np.abs(change))


def wrong(
    title: str, text: str, found: dict[str, Slopes], true: tuple[Any, ...], most: float = 1e-11
) -> str:
    """The routes whose value or gradient differs from the true ones; empty if none does."""
    value, gradient, scale = true
    faults = ""
    for name, (v, g) in found.items():
        error = abs(v - value) / (1 + abs(value))
        error = max(error, np.max(np.abs(g - gradient)) / scale)
        if not error <= most:
            faults += f"{title}, {name}: {error:.1e} in\n{text}\n"
    return faults


def recorded(made: Generator) -> vm.Model:
    """A recorded model of a function in Python."""
    parameters = {name: vm.real(shape) for name, shape in made.sizes().items()}
    return vm.Model(made.log_density, **{**parameters, "s": vm.positive()}, recorded=True)


def disagreement(seed: int) -> tuple[str, int]:
    """What differs between a model and its derivative by complex steps, empty if nothing does; and
    how many of its two recordings have loops.
    """
    made = Generator(seed)
    q = np.random.default_rng([seed, 1]).uniform(-1, 1, made.size)
    models = {"Stan": vm.stan.Program(made.text).model(made.data), "Python": recorded(made)}
    found = {}
    for name, model in models.items():
        found[f"{name}, eager"] = vm.value_and_grad(model._target)(q, False, True)
        found[f"{name}, recorded"] = model.log_density_gradient(q, propto=False)
    programs = [model._value_and_grad.program for model in models.values()]
    loops = sum(p is not None and has_loops(p, made.n) for p in programs)
    return wrong(f"seed {seed}", made.text, found, exact(made, q)), loops


def scalar_disagreement(seed: int) -> tuple[str, bool]:
    """What differs between a Stan loop that hands numbers on and its derivative by complex steps,
    or between its recording and its evaluation; and whether it is recorded as a scan.
    """
    made, faults = ScalarGenerator(seed), ""
    model = vm.stan.Program(made.text).model(made.data)
    for k in range(3):
        q = np.random.default_rng([seed, k]).uniform(-1, 1, made.size)
        value, gradient = complex_steps(made.at, q)
        found = {
            "eager": vm.value_and_grad(model._target)(q, False, True),
            "recorded": model.log_density_gradient(q, propto=False),
        }
        true = value, gradient, 1 + np.max(np.abs(gradient))
        faults += wrong(f"seed {seed}", made.text, found, true, 1e-10)
        dropped = vm.value_and_grad(model._target)(q, True, True)[0]
        if not abs(dropped - model.log_density_gradient(q)[0]) <= 1e-10 * (1 + abs(dropped)):
            faults += f"seed {seed}, dropped terms in\n{made.text}"
    program = model._value_and_grad.program
    return faults, program is not None and len(program.steps) < 10 * made.n + 100


def kind_disagreement(seed: int) -> tuple[str, bool]:
    """What differs between a loop in Python that branches on data and its derivative by complex
    steps; and whether its iterations were found.
    """
    made, faults = KindGenerator(seed), ""
    model = recorded(made)
    for k in range(2):
        q = np.random.default_rng([seed, k]).uniform(-1, 1, made.size)
        found = {
            "eager": vm.value_and_grad(model._target)(q, False, True),
            "recorded": model.log_density_gradient(q, propto=False),
        }
        faults += wrong(f"seed {seed}", made.text, found, exact(made, q))
    program = model._value_and_grad.program
    is_found = program is not None and any(x.kernel.name == "procedure" for x in program.steps)
    return faults, is_found


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scalars", action="store_true", help="loops that hand numbers on")
    parser.add_argument("--kinds", action="store_true", help="loops that branch on data")
    options = parser.parse_args()
    loops, check = 0, scalar_disagreement if options.scalars else disagreement
    check = kind_disagreement if options.kinds else check
    for seed in range(options.seed, options.seed + options.count):
        try:
            text, has = check(seed)
            loops += has
        except Exception as error:
            text = f"seed {seed}: {type(error).__name__}: {error}"
        if text:
            print(text, flush=True)
    recordings = options.count * (1 if options.scalars or options.kinds else 2)
    print(f"{loops} of {recordings} recordings have loops")


if __name__ == "__main__":
    main()
