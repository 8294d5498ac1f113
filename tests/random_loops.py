"""Random Stan programs with loops: their recordings beside evaluation iteration by iteration.

Run as a script, it compares many of them, and tells which loops are not lowered to statements over
numbers, and why: ``python tests/random_loops.py --count 500 --seed 7``.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pytest

import varmat as vm
from varmat.stan import evaluate, loops, syntax
from varmat.stan.loops import LoopCode
from varmat.stan.recurrences import Recurrence
from varmat.stan.vectorized import VectorizedLoop
from varmat.stan.vectorized_expressions import BoundError

# Templates. In braces is what is put in: a real number (r), a positive one (p), a vector of the
# size at hand (v), that size (s), a condition (c), an integer that is not negative (i), a vector of
# a size of the data (N, K, G), and a place in one (n, k, g).
REALS = """tanh({r}); inv_logit({r}); sqrt(square({r}) + 1); square({r}); exp(tanh({r}));
(-{r});
log1p_exp({r}); pow({r}, 3); ({r})^2; abs({r} + 0.037); lgamma(exp(tanh({r})));
log1p(square({r}));
Phi({r}); log_inv_logit({r}); sin({r}); expm1(tanh({r})); floor({r} * 1.7); ({r} + {r});
({r} - {r});
({r} * {r}); ({r} / (1 + square({r}))); fmax({r}, {r} + 0.0123); fmin({r}, {r} - 0.0123);
lmultiply({r}, {p}); log_sum_exp({r}, {r}); {p}^tanh({r});
log_diff_exp(2 + square({r}), 1 + tanh({r})); ({c} ? {r} : {r}); ({c} ? {r} : {r});
hypot({r}, {p});
max({{r}, {r} + 0.0123}); sum({v}); dot_product({v}, {v}); dot_self({v}); {v}' * {v};
prod(tanh({v}));
squared_distance({v}, {v}); normal_lpdf({r} | {r}, {p}); normal_lpdf({v} | {r}, {p});
log1m_exp(-{p});
student_t_lpdf({v} | 4, {v}, {p}); 0.1 * ({i} % 5); atan2({r}, {p}); fma({r}, {r}, {r});
binomial_logit_lpmf(1 | 3, {r}); inv({p})"""
WITH_ELEMENTS = """mean({v}); log_sum_exp({v});
max({v} + cumulative_sum(rep_vector(0.01, {s})));
{v}[1];
min({v} + cumulative_sum(rep_vector(0.01, {s}))); {v}[{s}]; mean(append_row({v}, {r}));
head({v}, 1)[1];
sum(head({v}, {i} % 2))"""
OF_DATA = """y[{n}]; X[{n}, {k}]; B[{g}, {k}]; w[{g}, {k}]; w[{g}][{k}]; B[{g}] * {K};
X[{n}] * {K};
{K}' * B[{g}]'; {N}' * X * {K}; {G}' * (B * {K}); row(X, {n}) * {K}; sum(y[{n}:N]);
sum(y[{n}:{n}]);
sum(u[1:{n}]); sum(segment(u, {n}, 1)); mean(tail(u, {n})); u[g[{n}]]; dot_product(w[{g}], {K});
categorical_logit_lpmf(cat[{n}] | {K}); sum(B[{g}, 1:{k}]); sum(u[cat])"""
VECTORS = """tanh({v}); inv_logit({v}); exp(tanh({v})); square({v}); (-{v}); ({v} + {v});
({v} - {v});
({v} .* {v}); ({v} ./ (1 + square({v}))); ({r} * {v}); ({v} * {r}); ({v} + {r}); ({r} - {v});
({v} / {p}); cumulative_sum({v}); reverse({v}); rep_vector({r}, {s}); ((({v})')');
log1p_exp({v});
((0.1 * ({v})' .* ({v})')'); head(append_row({v}, {r}), {s}); tail(append_row({v}, {v}), {s});
segment(append_row({r}, {v}), 2, {s}); (({v}) .^ 2); fmax({v}, {v} + 0.0123);
abs({v} + 0.037)"""
VECTORS_WITH_ELEMENTS = """softmax({v}); log_softmax({v}); append_row({r}, head({v}, {s} - 1));
append_row(({v})[2:{s}], ({v})[1]); reverse(softmax({v})); softmax({v})"""
VECTORS_OF_DATA = {
    "N": "(X * {K}); col(X, {k}); X[:, {k}]; ({K})[cat]; u[g]; ({G})[g]; ({N} + col(X, 1))",
    "K": "(B[{g}]'); w[{g}]; ((({N})' * X)'); (B' * {G}); (X[{n}]'); u[1:K]; head(u, K)",
    "G": "(B * {K}); B[:, {k}]; col(B, {k}); B[1:G, {k}]",
}
DENSITIES = """{r} ~ normal({r}, {p}); {v} ~ normal({r}, {p}); {v} ~ normal({v}, {p});
{v} ~ student_t(4, {r}, {p}); {p} ~ exponential({p}); {p} ~ gamma({p}, {p});
inv_logit(tanh({r})) ~ beta({p}, {p}); y[{n}] ~ normal({r}, {p});
cnt[{n}] ~ poisson_log(tanh({r}));
y[{n}] ~ student_t(4, {r}, s); c[{n}] ~ bernoulli_logit({r}); c ~ bernoulli_logit({N});
cnt[{n}] ~ neg_binomial_2_log(tanh({r}), {p}); cat[{n}] ~ categorical_logit({K});
y ~ normal({N}, s);
cat[{n}] ~ categorical(softmax({K})); y[{n}:N] ~ normal({r}, {p});
head(y, {n}) ~ normal({r}, {p});
target += {r}; target += -square({r}); target += {v}; target += normal_lupdf(y[{n}] | {r}, {p});
target += bernoulli_logit_lpmf(c[{n}] | {r});
target += gamma_lpdf({p} | {p}, {p}); cat ~ categorical_logit({K});
target += log_sum_exp(normal_lpdf(y[{n}] | {r}, 1), normal_lpdf(y[{n}] | {r}, {p}))"""
INTEGERS = """({i} + {i}); ({i} * {i} % 7); ({i} %/% 2); abs({i} - {i}); ({i} > 2); max({i}, 2);
min({i}, {i}); ({c} ? {i} : {i}); num_elements({v})"""
# What may not be lowered.
RARE = """log_mix(inv_logit({r}), {r}, {r}); variance(append_row({v}, {r}));
max(linspaced_vector(4, 0, 1) * {r}); rank({v}, 1);
beta_proportion_lpdf(inv_logit(tanh({r})) | 0.3, {p}); norm2({v} + 2.1); sort_asc({v})[1];
Phi_approx({r})"""
BOUNDED = "tanh({r}); inv_logit({r}); 0.5 * sin({r}); {r} / (1 + square({r}))"
ASSIGNED = "{t} = {b}; {t} = {b}; {t} += {b}; {t} -= {b}; {t} *= {b}; {t} = 0.5 * {t} + {b}"


# Loops of the program at hand that were lowered.
LOWERED: list[Any] = []


class Variable(NamedTuple):
    """What may be read: its text, its kind and sizes, and whether it may be assigned.

    Kinds are "real", "int" (not negative), "index" (a place in what has a size), "vector",
    "vectors" (an array of them), "matrix" and "ints".
    """

    text: str
    kind: str
    sizes: tuple[str, ...] = ()
    free: bool = False


class Generator:
    """Writes one program: `text`, `data`, and the `size` of the unconstrained vector."""

    def __init__(self, seed: int) -> None:
        self._rng = rng = np.random.default_rng(seed)
        n, k, g = (int(rng.integers(*ends)) for ends in ((5, 9), (2, 5), (3, 5)))
        counts = np.bincount(rng.integers(0, g, n), minlength=g)
        self._is_full = bool(np.all(counts))  # no group is empty
        self.data: dict[str, Any] = {
            "N": n, "K": k, "G": g, "n": counts, "y": rng.normal(size=n),
            "X": rng.normal(size=(n, k)), "g": rng.integers(1, g + 1, n),
            "c": rng.integers(0, 2, n), "cnt": rng.poisson(2, n),
            "cat": rng.integers(1, k + 1, n),
        }  # fmt: skip
        self.size = 2 + n + k + 2 * g * k
        # Names that are taken; those of scopes that have ended are used again.
        self._taken: list[str] = []
        self._functions = {"real": list[str](), "vector": list[str]()}
        # Whether a statement is one of a loop that may be lowered: others branch on data alone.
        self._in_loop = self._in_block = self._lowers = False
        functions = [x for kind in ("real", "vector", "real") for x in self._function(kind)]
        vectors = [
            Variable(name, "vector", (size,)) for name, size in zip("uvy", "NKN", strict=True)
        ]
        self._scope = [
            *vectors, *(Variable(name, "real") for name in "as"), Variable("N", "int"),
            Variable("w", "vectors", ("G", "K")), Variable("B", "matrix", ("G", "K")),
            Variable("X", "matrix", ("N", "K")), Variable("K", "int"),
        ]  # fmt: skip
        self._sizes, self._result, self._in_main = ["N", "K", "G"], "", True
        first = len(self._scope)
        transformed = [*self._declare(0, False), *self._loop(2)] if self._chance(0.3) else []
        self._scope[first:] = [each._replace(free=False) for each in self._scope[first:]]
        self._in_block = True
        model = [x for _ in range(3) for x in (*self._declare(0), *self._statement(3))]
        model += [x for _ in range(int(rng.integers(1, 4))) for x in self._loop(3)]
        model += [line for each in self._scope[first:] for line in self._use(each)]
        texts = ["\n".join(part) for part in (functions, transformed, model)]
        self.text = f"""functions {{
{texts[0]}
real odd_lpdf(real x, vector m) {{
real t = 0;
for (i in 1:rows(m)) {{
if (m[i] > x + 0.3123) return t - square(x);
t += normal_lpdf(x | m[i], 2);
}}
return t;
}}
}}
data {{
int N; int K; int G; array[G] int n; vector[N] y; matrix[N, K] X;
array[N] int<lower=1, upper=G> g;
array[N] int c; array[N] int cnt; array[N] int<lower=1, upper=K> cat;
}}
parameters {{
real a; real<lower=0> s; vector[N] u; vector[K] v; array[G] vector[K] w; matrix[G, K] B;
}}
transformed parameters {{
{texts[1]}
}}
model {{
{texts[2]}
target += -0.1 * dot_self(u) - s;
}}
"""

    def _function(self, kind: str) -> list[str]:
        """A function of a number, a vector and an integer; one of numbers may return early."""
        name = self._new("f")
        self._scope = [Variable("x", "real"), Variable("z", "vector", ("L",)), Variable("m", "int")]
        self._sizes, self._result, self._in_main, self._lowers = ["L"], kind, False, True
        lines = [*self._declare(0), *self._statement(1), *self._loop(2), *self._statement(0)]
        end = self._filled("tanh({v})" if kind == "vector" else "tanh({r})", 1)
        self._functions[kind].append(name)
        self._lowers = False
        head = f"{kind} {name}(real x, vector z, int m) {{"
        return [head, "int L = rows(z);", *lines, f"return {end};", "}"]

    # --- choices ---

    def _one_of(self, choices: Any) -> Any:
        choices = choices.split(";") if isinstance(choices, str) else list(choices)
        return choices[int(self._rng.integers(len(choices)))]

    def _chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def _new(self, prefix: str) -> str:
        name = next(x for k in count(1) if (x := f"{prefix}{k}") not in self._taken)
        self._taken.append(name)
        return name

    def _of(self, *kinds: str, free: bool = False) -> list[Variable]:
        return [each for each in self._scope if each.kind in kinds and each.free >= free]

    def _add(self, text: str, kind: str, *sizes: str, free: bool = False) -> None:
        self._scope.append(Variable(text, kind, sizes, free))

    @contextmanager
    def _inside(self, loop: bool = True) -> Iterator[None]:
        """A scope of its own, of a loop or not."""
        ends, before = (len(self._scope), len(self._taken)), (self._in_loop, self._lowers)
        self._in_loop, self._lowers = self._in_loop or loop, self._lowers or loop
        yield
        del self._scope[ends[0] :], self._taken[ends[1] :]
        self._in_loop, self._lowers = before

    def _any_size(self, full: bool = False) -> str:
        found = self._sizes * 2
        if self._in_main and (self._is_full or not full):
            found += [f"n[{e.text}]" for e in self._of("index") if e.sizes == ("G",)]
        return str(self._one_of(found))

    def _has_elements(self, size: str) -> bool:
        return self._is_full or size in self._sizes

    # --- expressions ---

    def _filled(self, templates: Any, depth: int, size: str = "", name: str = "") -> str:
        """One of some templates, with expressions in it."""
        size, template = size or self._any_size(), self._one_of(templates).strip()
        parts: dict[str, Callable[[], str]] = {
            "r": lambda: self._real(depth),
            "p": lambda: self._positive(depth),
            "s": lambda: size,
            "v": lambda: self._vector(size, depth),
            "c": lambda: self._condition(min(depth, 1)),
            "i": lambda: self._integer(min(depth, 1)),
            "b": lambda: self._filled(BOUNDED, depth),
            "t": lambda: name,
            "j": lambda: self._index(size),
        }
        for each in "NKG":
            parts[each] = lambda each=each: self._vector(each, depth)  # type: ignore[misc]
            parts[each.lower()] = lambda each=each: self._index(each)  # type: ignore[misc]
        return re.sub(r"\{(\w)\}", lambda found: parts[found[1]](), template)

    def _index(self, size: str) -> str:
        """A place in what has a size; empty if there may be none."""
        names = [e.text for e in self._of("index") if e.sizes == (size,)]
        if names and self._chance(0.75):
            forms = ["{t}"] * 3 + ["{s} + 1 - {t}", "max({t} - 1, 1)", "({t} > 1 ? {t} - 1 : {s})"]
            return self._filled([*forms, "{t} % {s} + 1"], -1, size, self._one_of(names))
        if size not in self._sizes:
            return self._one_of(names) if names else "1" * self._is_full
        forms = ["1", size, "max(1, min({i}, {s}))", "{i} % {s} + 1"]
        if self._in_main:
            forms += {"G": ["g[{n}]"] * 2, "K": ["cat[{n}]", "2"], "N": ["3"]}[size]
        return self._filled(forms, -1, size)

    def _integer(self, depth: int) -> str:
        forms = [str(self._rng.integers(0, 5)), *(e.text for e in self._of("int", "index"))]
        forms += [
            f"{e.text}[{i}]"
            for e in self._of("ints") * (depth >= 0)
            if self._chance(0.5) and (i := self._index(e.sizes[0]))
        ]
        if depth > 0:
            forms += INTEGERS.split(";")
        elif self._in_main:
            forms += ["g[3]", "n[1]", "cnt[2]"]
        return self._filled(forms + ["g[{n}]", "n[{g}]"] * (self._in_main and depth > 0), depth - 1)

    def _condition(self, depth: int) -> str:
        forms = ["{i} % 2 == 0", "{i} > {i}", "{i} <= 2"]
        forms += ["{r} > {r} + 0.0123", "{r} < 0.1234"] * 2 * self._lowers
        forms += ["c[{n}] == 1", "c[{n}]", "g[{n}] > 1"] * self._in_main
        forms += ["!({c})", "({c} && {c})", "({c} || {c})"] * (depth > 0)
        return self._filled(forms, depth - 1)

    def _positive(self, depth: int) -> str:
        forms = ["exp(tanh({r}))", "(0.3 + square({r}))", "log1p_exp(tanh({r}))", "1.3"]
        return self._filled(forms + ["s", "s"] * self._in_main, depth - 1)

    def _real(self, depth: int) -> str:
        size = self._any_size()
        if self._chance(0.005):
            return self._filled(RARE, depth - 1, size)
        if depth <= 0 or self._chance(0.15):
            forms = [e.text for e in self._of("real")] + ["0.7"]
            forms += ["y[3]", "u[5]", "v[2]"] * self._in_main
            for e in self._of("vector", "vectors", "matrix") if depth > -2 else ():
                if self._chance(0.6) and all(places := [self._index(x) for x in e.sizes]):
                    forms += [f"{e.text}[{', '.join(places)}]"] * (2 * e.free + 1)
            return str(self._one_of(forms))
        forms = REALS.split(";") + OF_DATA.split(";") * self._in_main
        if self._has_elements(size):
            forms += WITH_ELEMENTS.split(";") * 2
            names = self._functions["real"] * 2 * self._lowers
            forms += [f"{name}({{r}}, {{v}}, {{i}})" for name in names]
        return self._filled(forms, depth - 1, size)

    def _vector(self, size: str, depth: int) -> str:
        forms = [e.text for e in self._of("vector") if e.sizes == (size,)] * 3
        forms += [
            f"{e.text}[{i}]"
            for e in self._of("vectors")
            if e.sizes[1] == size and (i := self._index(e.sizes[0]))
        ]
        if self._in_main and depth > -2:
            part = "head(u, {s}); y[1:{s}]; tail(y, {s}); segment(u, 1, {s})"
            forms += VECTORS_OF_DATA.get(size, part).split(";")
        if depth > 0 and self._chance(0.8):
            forms += VECTORS.split(";")
            if self._has_elements(size):
                forms += VECTORS_WITH_ELEMENTS.split(";")
                names = self._functions["vector"] * 3 * self._lowers
                forms += [f"{name}({{r}}, {{v}}, {{i}})" for name in names]
        return self._filled(forms or ["rep_vector(0.3, {s})"], depth - 1, size)

    # --- statements ---

    def _statement(self, depth: int) -> list[str]:
        kinds = ["declare", "assign", "assign", "element", "element", "element", "whole", "count"]
        kinds += ["target"] * 3 * self._in_block
        kinds += ["loop", "loop", "if", "if", "while", "each"] * 2 * (depth > 0)
        kinds += ["ragged"] * (depth > 1 and self._in_main)
        made: list[str] = getattr(self, f"_{self._one_of(kinds)}")(depth)
        return made

    def _declare(self, depth: int, integers: bool = True) -> list[str]:
        kinds = ["real", "unset", "vector", "vector", "vectors", "matrix"]
        kind = self._one_of(kinds + ["int", "ints"] * integers)
        name, i, size, inner = (
            self._new("t"),
            self._new("i"),
            self._any_size(),
            self._one_of(self._sizes),
        )
        head = f"for ({i} in 1:{size}) {name}[{i}] ="
        with self._inside():
            self._add(i, "index", size)
            each, row, number = (self._filled(x, 1, inner) for x in (BOUNDED, "tanh({v})", "{i}"))
        self._taken.remove(i)
        match kind:
            case "real":
                lines = [f"real {name} = {self._filled(BOUNDED, 2)};"]
            case "unset":
                choice = self._filled("if ({c}) {t} = {b}: else {t} = {b}", 1, "", name)
                lines, kind = [f"real {name};", f"{choice.replace(': else', '; else')};"], "real"
            case "int":
                lines = [f"int {name} = {self._integer(1)};"]
            case "vector" if self._chance(0.5):
                lines = [f"vector[{size}] {name} = tanh({self._vector(size, 2)});"]
            case "vector":
                lines = [f"vector[{size}] {name};", f"{head} {each};"]
            case "ints":
                lines = [f"array[{size}] int {name};", f"{head} {number};"]
            case "vectors":
                lines = [f"array[{size}] vector[{inner}] {name};", f"{head} {row};"]
            case "matrix":
                lines = [f"matrix[{size}, {inner}] {name};", f"{head} ({row})';"]
        sizes = {"vector": [size], "ints": [size], "real": [], "int": []}.get(kind, [size, inner])
        self._add(name, kind, *sizes, free=True)
        return lines

    def _assign(self, depth: int) -> list[str]:
        if not (names := self._of("real", free=True)):
            return self._declare(depth)
        return [self._filled(ASSIGNED, 2, "", self._one_of(names).text) + ";"]

    def _count_up(self, name: str) -> str:
        forms = "{t} += 1; {t} += {i} % 3; {t} = {i} % 7; {t} = ({c}) ? 1 : {t}"
        return self._filled(forms, 1, "", name) + ";"

    def _element(self, depth: int) -> list[str]:
        """Write into a part of an array."""
        found = self._of("vector", "vectors", "matrix", "ints", free=True)
        e = self._one_of(found) if found else None
        place, inner = (self._index(e.sizes[0]), e.sizes[-1]) if e else ("", "")
        if not e or not place or (len(e.sizes) > 1 and not self._has_elements(inner)):
            return self._declare(depth)
        part = f"{e.text}[{place}]"
        if e.kind == "ints":
            # Stan's compiler refuses to read what is assigned on the left.
            return [self._count_up(part)] if e.text not in place else self._element(depth)
        forms, end = ASSIGNED + f";{{t}} = 0.5 * {e.text}[{{j}}] + {{b}}", ""
        if e.kind != "vector":
            whole = "tanh({v})" if e.kind == "vectors" else "tanh({v})'"
            rows = f"{{t}} = {whole}; {{t}} = 0.5 * {{t}} + {whole}; {{t}} += {whole}"
            if self._chance(0.6):
                return [self._filled(rows, 2, inner, part) + ";"]
            forms, part = ASSIGNED, f"{e.text}[{place}, {self._index(inner)}]"
            if e.kind == "matrix" and self._chance(0.2):
                head = self._filled(f"{e.text}[:, {{j}}] = tanh(", 1, inner)
                return [head + f"{self._vector(e.sizes[0], 1)});"]
        elif self._chance(0.25) and inner in self._sizes:
            forms = """[2:{s}] = {t}[1:({s} - 1)]; [1:{j}] = rep_vector({b}, {j});
            [{j}:{s}] = {t}[{j}:{s}];
            [2:{s}] += 0.1 * tanh(head({v}, {s} - 1)); [1:2] = [{b}, {b}]'; [{2, 1}] = {t}[1:2];
            [1:{j}] = tanh(({v})[1:{j}])"""
            # The places of both sides are the same.
            forms = forms.replace("{j}", place)
            return [e.text + self._filled(forms, 1, inner, e.text) + ";"]
        return [self._filled(forms, 2, e.sizes[0], part) + end + ";"]

    def _whole(self, depth: int) -> list[str]:
        if not (found := self._of("vector", free=True)):
            return self._declare(depth)
        e = self._one_of(found)
        forms = "{t} = tanh({v}); {t} += 0.1 * tanh({v}); {t} = 0.5 * {t} + tanh({v}); {t} *= {b}"
        return [self._filled(forms, 2, e.sizes[0], e.text) + ";"]

    def _count(self, depth: int) -> list[str]:
        found = self._of("int", free=True)
        return [self._count_up(self._one_of(found).text)] if found else self._declare(depth)

    def _target(self, depth: int) -> list[str]:
        own = "; {r} ~ odd({K}); target += odd_lpdf({r} | {G})" * self._lowers
        return [self._filled(DENSITIES + own, 2) + ";"]

    def _body(self, depth: int, loop: bool = True) -> list[str]:
        """The statements of a pass or a branch, which may end early."""
        lines, count = list[str](), int(self._rng.integers(1, 4))
        ends = ["break;", "continue;"] * self._in_loop
        ends += [f"return {self._filled(BOUNDED, 1)};"] * 2 * (self._result == "real")
        place = int(self._rng.integers(count)) if loop and ends and self._chance(0.3) else -1
        for k in range(count):
            if k == place:
                lines += [f"if ({self._condition(1)}) {{", self._one_of(ends), "}"]
            lines += self._statement(depth - 1)
        return [*lines, self._one_of(ends)] if not loop and ends and self._chance(0.2) else lines

    def _loop(self, depth: int) -> list[str]:
        i, size, made = self._new("i"), self._any_size(), list[str]()
        forms = ["1:{s}"] * 3 + ["2:{s}", "1:min({i}, {s})", "max(1, {i}):{s}", "0:({i} % 5)"]
        forms += [f"1:{e.text}" for e in self._of("index") if e.sizes == (size,)]
        limits = self._filled(forms, 1, size)
        with self._inside():
            self._add(i, *(("int",) if limits[0] == "0" else ("index", size)))
            if limits[0] == "2":
                self._add(f"({i} - 1)", "index", size)
            made = self._body(depth)
        self._taken.remove(i)
        return [f"for ({i} in {limits}) {{", *made, "}"]

    def _if(self, depth: int) -> list[str]:
        lines = list[str]()
        for head in ["if", *["} else if"] * self._chance(0.3), *["} else"] * self._chance(0.6)]:
            condition = "" if head == "} else" else f" ({self._condition(1)})"
            with self._inside(False):
                lines += [f"{head}{condition} {{", *self._body(depth, False)]
        return [*lines, "}"]

    def _while(self, depth: int) -> list[str]:
        """As long as a counter has an end, and perhaps a number that is carried on."""
        w, x, free = self._new("w"), self._new("x"), self._chance(0.5)
        lines = [f"int {w} = 0;", f"real {x} = {self._filled(BOUNDED, 1)};"]
        condition = self._filled(f"{w} < {{i}} % 6; {w} < 4; {w} < 3 && {{c}}; {w} != 3", 1)
        lines += [f"while ({condition}{f' && {x} < 0.9' * free}) {{", f"{w} += 1;"]
        with self._inside():
            self._add(w, "int")
            self._add(x, "real", free=True)
            lines += [f"{x} += {self._filled('inv_logit({r})', 1)};", *self._body(depth)]
        self._add(x, "real")
        return [*lines, "}"]

    def _each(self, depth: int) -> list[str]:
        e, arrays = self._new("e"), self._of("vectors", "ints")
        values, kind, sizes = self._vector(self._any_size(), 1), "real", ()
        if arrays and self._chance(0.6):
            values, of, sizes, _ = self._one_of(arrays)
            kind = "vector" if of == "vectors" else "int"
        with self._inside():
            # Those that end early are not lowered.
            self._in_loop = self._chance(0.2)
            self._add(e, kind, *sizes[1:])
            body = self._body(depth)
        self._taken.remove(e)
        return [f"for ({e} in {values}) {{", *body, "}"]

    def _ragged(self, depth: int) -> list[str]:
        """Groups of data one behind the other."""
        at, i, j = self._new("at"), self._new("i"), self._new("j")
        with self._inside():
            self._add(i, "index", "G")
            self._add(f"segment(u, {at}, n[{i}])", "vector", f"n[{i}]")
            self._add(f"y[{at}:({at} + n[{i}] - 1)]", "vector", f"n[{i}]")
            lines = self._statement(depth - 1)
            with self._inside():
                self._add(j, "index", "N")
                body = self._body(depth - 1)
        for name in (i, j):
            self._taken.remove(name)
        head = [f"int {at} = 1;", f"for ({i} in 1:G) {{", *lines]
        inside = [f"for ({j} in {at}:({at} + n[{i}] - 1)) {{", *body, "}"]
        return [*head, *inside, f"{at} += n[{i}];", "}"]

    def _use(self, e: Variable) -> list[str]:
        """A term of a variable at the end."""
        forms = {
            "real": "target += tanh({t}); {t} ~ normal(0, s)", "int": "target += 0.1 * a * {t}",
            "vector": "{t} ~ normal(a, s); target += sum(tanh({t}))",
            "ints": "target += 0.1 * a * sum({t})", "matrix": "target += sum(tanh({t}))",
            "vectors": "for (e in {t}) target += sum(tanh(e))",
        }  # fmt: skip
        return [self._filled(forms[e.kind], 0, "", e.text) + ";"]


def errors(seed: int, options: Any, found: Counter[str]) -> Iterator[str]:
    """How the recording of a random program differs from its evaluation iteration by iteration."""
    made = Generator(seed)
    model = vm.stan.Program(made.text).model(made.data)
    recorder, eager = model._value_and_grad, one_by_one(made)
    calls = Counter[str]()
    function = recorder._eager
    recorder._eager = lambda *args: calls.update(["eager"]) or function(*args)
    other = None
    if options.stanli:
        import stanli

        data = {name: np.asarray(x).tolist() for name, x in made.data.items()}
        try:
            other = stanli.Model(stan_code=made.text, data=data)
        except RuntimeError:
            found["programs that stanli does not know"] += 1
    for k in range(3):
        q = np.random.default_rng([seed, k]).uniform(-1.5, 1.5, made.size)
        try:
            value, gradient = eager(q, True, True)
        except Exception as error:
            found[f"reference: {type(error).__name__}"] += 1
            continue
        if not np.isfinite(value) or not np.all(np.isfinite(gradient)):
            found["reference: not finite"] += 1
            continue
        v, g = model.log_density_gradient(q)
        scale, found["points"] = 1 + np.max(np.abs(gradient)), found["points"] + 1
        if not abs(v - value) <= 1e-11 * (1 + abs(value)) or not np.allclose(
            g, gradient, 1e-9, 1e-10 * scale
        ):
            # Rounding errors may grow as much as a change of the last digits.
            near = [eager(q * (1 + h), True, True) for h in (1e-15, -1e-15, 1e-14, -1e-14)]
            bound = 1e-10 * scale + 100 * max(np.max(np.abs(g - gradient)) for _, g in near)
            change = 100 * max(abs(each - value) for each, _ in near)
            if not abs(v - value) <= 1e-11 * (1 + abs(value)) + change:
                yield f"point {k}: value {v!r}, not {value!r}"
            elif not np.allclose(g, gradient, 1e-9, bound):
                yield f"point {k}: gradient\n{g}, not\n{gradient}"
        if options.hessians and recorder.obstacle is None:
            yield from hessian_errors(model, q)
        if other is not None:
            found["points of stanli"] += 1
            slopes = other.log_prob_grad(q)[1]
            if not np.allclose(g, slopes, 1e-8, 1e-9 * scale):
                yield f"point {k}: gradient\n{g}, not\n{slopes} (stanli)"
    found["programs"] += 1
    found["programs with a lowered loop"] += bool(LOWERED)
    kinds = (syntax.For, syntax.ForEach, syntax.While)
    outer = [each for each in model._blocks.tree.model if isinstance(each, kinds)]
    found["loops of model blocks"] += len(outer)
    found["loops of model blocks, lowered"] += sum(any(x is y for y in LOWERED) for x in outer)
    found["points that a recording left to the function"] += calls["eager"]
    if recorder.obstacle is not None:
        found[f"not recorded: {type(recorder.obstacle).__name__}: {recorder.obstacle}"[:80]] += 1


def one_by_one(made: Any) -> Callable[..., Any]:
    """The value and gradient of a random program, by iterations one after the other."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in (VectorizedLoop, Recurrence):
            patch.setattr(kind, "of_loop", refused)
        f = vm.value_and_grad(vm.stan.Program(made.text).model(made.data)._target)
        f(np.zeros(made.size), True, True)  # translates functions, too
    return f


def hessian_errors(model: Any, q: np.ndarray) -> Iterator[str]:
    """How a Hessian differs from differences of the gradient, where these are no jumps."""

    def gradient(q: np.ndarray) -> np.ndarray:
        return np.asarray(model.log_density_gradient(q)[1])

    found = model.log_density_hessian(q)[2]
    for i, unit in enumerate(np.eye(q.size)):
        a, b = ((gradient(q + h * unit) - gradient(q - h * unit)) / (2 * h) for h in (1e-5, 2e-5))
        scale, row = 1 + np.max(np.abs(a)), found[i]
        if np.allclose(a, b, 1e-5, 1e-5 * scale) and not np.allclose(a, row, 1e-4, 1e-4 * scale):
            yield f"row {i} of the Hessian: {row}, not {a}"


def noting(method: Callable[..., None], found: Counter[str]) -> Callable[..., None]:
    """A method of `LoopCode` that notes which loops are lowered, and why others are not."""

    def noted(*args: Any) -> None:
        try:
            method(*args)
            if method.__name__ == "run":
                LOWERED.append(args[0].loop)
        except Exception as error:
            found[re.sub(r"\d+", "#", f"refused: {type(error).__name__}: {error}")] += 1
            raise

    return noted


def refused(translator: Any, loop: Any, *args: Any) -> None:
    """Refuse a loop."""
    raise BoundError("all loops are lowered", loop.at)


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hessians", action="store_true", help="differences of gradients, too")
    parser.add_argument("--stanli", action="store_true", help="the gradients of stanli, too")
    parser.add_argument("--lowered", action="store_true", help="no loop is traced, or a scan")
    parser.add_argument("--lanes", type=int, help="of the vectors in which passes run")
    options, found = parser.parse_args(), Counter[str]()
    if options.lanes:
        from varmat.programs.run import functions

        functions.LANES = options.lanes
    if options.lowered:
        evaluate.FEW, loops.TRACED = 0, -1
        VectorizedLoop.of_loop = Recurrence.of_loop = refused  # type: ignore[assignment]
    for name in ("__init__", "run"):
        setattr(LoopCode, name, noting(getattr(LoopCode, name), found))
    for seed in range(options.seed, options.seed + options.count):
        text = ""
        LOWERED.clear()
        try:
            text = "\n".join(errors(seed, options, found))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        if text:
            print(f"seed {seed}: {text} in\n{Generator(seed).text}", flush=True)
    for name, times in found.most_common():
        print(f"{times:6} {name}")


if __name__ == "__main__":
    main()
