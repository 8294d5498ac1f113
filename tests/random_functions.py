"""Random functions, made of everything that recordings write as steps of their own.

Run as a script, it compares the recordings of many of them with eager evaluation:
``python tests/random_functions.py --count 20000 --seed 7``.
"""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from recordings import agree_everywhere

import varmat as vm

# Larger values are scaled down, so that nothing overflows and rounding errors stay small.
MOST = 20.0
SIZES = (1, 1, 2, 3, 3, 4, 5)

# Arguments of comparisons are moved a little, so that no two sides differ by rounding alone.
UNARY = {
    "tanh": np.tanh, "sin": np.sin, "negative": np.negative, "square": np.square,
     "exp": lambda x: np.exp(-(x * x)),
    "log1p": lambda x: np.log1p(x * x), "sqrt": lambda x: np.sqrt(x * x + 0.1), "abs": np.abs,
     "inv_logit": vm.inv_logit,
    "log1p_exp": vm.log1p_exp, "twice": lambda x: 2.0 * x, "half": lambda x: x / 2.0,
     "less": lambda x: x - 0.3,
    "from": lambda x: 1.0 - x, "cube": lambda x: x**3, "inverse": lambda x: 1.0 / (1.5 + np.cos(x)),
     "arctan": np.arctan,
    "lgamma": lambda x: vm.lgamma(x * x + 1.0), "copy": np.copy,
}  # fmt: skip
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": lambda x,
     y: x / (1.0 + y * y),
    "maximum": lambda x, y: np.maximum(x, y + 0.137), "hypot": lambda x, y: np.hypot(x, y + 0.2),
    "where": lambda x, y: np.where(x > y + 0.051, x * y, y), "arctan2": lambda x,
     y: np.arctan2(x, 1.0 + y * y),
    "fma": lambda x, y: vm.fma(x, y, x), "products": lambda x, y: x * y + x * y * 0.5 - y * x,
}  # fmt: skip
WITH_DATA = {
    "multiply": np.multiply, "add": np.add, "where": lambda x, y: np.where(y > 0.0, x, 0.5 * y),
    "less": lambda x, y: np.where(x < y, x, y), "subtract": lambda x, y: y - x,
}  # fmt: skip
TOTALS = {
    "sum(x * y)": lambda x, y, s: np.sum(x * y), "sum(x**2)": lambda x, y, s: np.sum(x**2),
    "sum(2xy - s)": lambda x, y, s: np.sum(2.0 * x * y - s), "sum(s * x)": lambda x, y,
     s: np.sum(s * x),
    "sum(-x * y / 3)": lambda x, y, s: np.sum(-x * y / 3.0), "sum(x + s)": lambda x, y,
     s: np.sum(x + s),
    "logsumexp": lambda x, y, s: vm.logsumexp(x), "vdot": lambda x, y, s: np.vdot(x, x),
}  # fmt: skip


def assigned(x: Any) -> Any:
    c = np.zeros_like(x)
    c[...] = x
    return c


def added(x: Any) -> Any:
    c = np.zeros_like(x)
    c += x
    return c


# Every way to copy an array that has an axis.
COPIES = {
    "copy": lambda x: x.copy(), "np.copy": np.copy, "times one": lambda x: x * 1.0,
    "plus": lambda x: +x, "plus zero": lambda x: x + 0.0, "where": lambda x: np.where(True, x, 0.0),
    "where all": lambda x: np.where(np.ones(x.shape, bool), x, 7.0),
    "flatten": lambda x: x.flatten().reshape(x.shape), "gather": lambda x: x[np.arange(len(x))],
    "concatenate": lambda x: np.concatenate([x[:1], x[1:]]), "stack": lambda x: np.stack(list(x)),
    "assigned": assigned, "added": added, "another": lambda x: 2.0 * x,
}  # fmt: skip


def moved(x: Any, y: Any, s: Any, data: Any) -> None:
    x[1:] = x[:-1]


def swapped(x: Any, y: Any, s: Any, data: Any) -> None:
    x[0], x[-1] = x[-1] * s, x[0].copy() if np.ndim(x) > 1 else x[0]


def increased(x: Any, y: Any, s: Any, data: Any) -> None:
    x += y


def shrunk(x: Any, y: Any, s: Any, data: Any) -> None:
    x *= np.tanh(y)


def setter(index: Any, source: Any) -> Any:
    def write(x: Any, y: Any, s: Any, data: Any) -> None:
        x[index] = source(x, y, s, data)

    return write


# Every way to write into an array, or into all of it; `data` are truth values of its shape.
WRITES = {
    "[...] =": setter(Ellipsis, lambda x, y, s, data: y),
    "[::-1] =": setter(slice(None, None, -1), lambda x, y, s, data: y),
    "= reversed": setter(Ellipsis, lambda x, y, s, data: x[::-1]),
    "= transposed": setter(Ellipsis, lambda x, y, s, data: x.T),
    "= chosen": setter(Ellipsis, lambda x, y, s, data: np.where(x > y + 0.0417, y, x * 0.5)),
    "fill": lambda x, y, s, data: x.fill(s), "moved": moved, "swapped": swapped,
    "flat": lambda x, y, s, data: x.flat.__setitem__(slice(None, None, 2), np.sum(s)),
    "out": lambda x, y, s, data: np.multiply(x, np.tanh(y), out=x),
    "out where": lambda x, y, s, data: np.add(x, s, out=x, where=data),
    "add.at": lambda x, y, s, data: np.add.at(x, np.nonzero(data), np.sum(s)),
    "mask": lambda x, y, s, data: x.__setitem__(data, s), "+=": increased, "*=": shrunk,
}  # fmt: skip


def carried(x: Any, s: Any) -> Any:
    kept = []
    for row in x:
        s = np.tanh(s + row)
        kept.append(s)
    return np.stack(kept)


def filled(x: Any, s: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = 0.5 * y[i - 1] + x[i] * s
    return y


def in_place(x: Any, s: Any) -> Any:
    y = x.copy()
    for i in range(1, len(x)):
        y[i] += 0.3 * np.tanh(y[i - 1])
    return y


def summed(x: Any, s: Any) -> Any:
    total = 0.0
    for row in x:
        total = total + np.where(row > s, np.sin(row), row * s)
    return total


def scanned(x: Any, s: Any) -> Any:
    return vm.scan(lambda c, r, s: ((c := np.tanh(c + np.sum(r))), c * s), s, x, s)[1]


LOOPS = {"carried": carried, "filled": filled, "in place": in_place, "summed": summed}
LOOPS["scanned"] = scanned
CHOICES = {
    "where s": lambda x, y, s: np.where(s > 0.0, x, y * 0.5),
    "where x": lambda x, y, s: np.where(x < s, x * x, y),
    "product": lambda x, y, s: (x > s) * y + (x <= s) * 0.3,
    "clip": lambda x, y, s: np.clip(x, -0.4123, 0.7219) + y, "minimum": lambda x, y, s:
     np.minimum(x, y - 0.0931),
    "select": lambda x, y, s: np.select([x > 0.6137, x > -0.2719], [x * y, np.sin(x)], 0.5 * y),
    "sign": lambda x, y, s: np.sign(x - 0.0513) * y, "fmax": lambda x, y, s: np.fmax(x - 0.0137, s),
    "both": lambda x, y, s: np.where((x > 0.0219) & (s > y), x, y),
    "largest": lambda x, y, s: np.max(np.stack([x * y, y - 0.1379, x + 1e-3])),
    "nested": lambda x, y, s: np.where(x > 0.0217, np.where(s > 0.4, x, y), np.exp(-x * x)),
}  # fmt: skip


def either(x: Any, y: Any, s: Any) -> Any:
    """One of two functions, which return a long and a short result."""
    here = lambda x, y: (np.sin(x) * np.sum(y), np.sum(x))  # noqa: E731
    there = lambda x, y: (x * 0.5, np.sum(np.tanh(y)))  # noqa: E731
    made = vm.cond(s > 0.0314, here, there, x, y)
    return made[0] + made[1]


def one_of_three(x: Any, y: Any, s: Any) -> Any:
    functions = [lambda x, y: np.tanh(x), lambda x, y: x * np.mean(y), lambda x, y: x - 0.3]
    return vm.switch((s > -0.4271) + 1.0 * (np.sum(y) > 0.2913), functions, x, y)


def shrunk_until(x: Any, y: Any, s: Any) -> Any:
    def is_large(c: Any, y: Any) -> Any:
        return np.sum(c**2) > 0.3171

    def shrink(c: Any, y: Any) -> Any:
        return 0.6 * c + 0.02 * np.tanh(np.sum(y)) * np.sin(c)

    return vm.while_loop(is_large, shrink, np.tanh(x), y, max_iterations=30)


def stepwise(x: Any, y: Any, s: Any) -> Any:
    """A choice at each step of a loop, whose state it is about."""

    def step(c: Any, r: Any, s: Any) -> Any:
        c = vm.cond(c > 0.1319, lambda c, r: 0.3 * c + r, lambda c, r: np.sin(c - r), c, r * s)
        return c, c**2

    return vm.scan(step, s, np.ravel(x * 0.5), np.tanh(s))[1]


# Choices by value, of which one side runs; and loops whose number of steps depends on values.
CONTROL = {"either": either, "one of three": one_of_three, "shrunk until": shrunk_until}
CONTROL["stepwise"] = stepwise
TABLE = np.array([-20.0, -1.0, 0.1, 0.7, 3.0, 20.0])
# Functions that look at values, which programs call; of elements that are not equal.
LOOKING = {
    "median": np.median, "quantile": lambda x: np.quantile(x, [0.21, 0.83]),
    "interp": lambda x: np.interp(x, TABLE, np.cos(TABLE)),
    "maximum.accumulate": lambda x: np.maximum.accumulate(np.ravel(x)),
    "nansum": lambda x: np.nansum(np.log(x + 0.0173)), "isnan": lambda x:
     np.where(np.isnan(np.log(x - 0.0293)), np.sin(x), x * x),
    "any": lambda x: np.where(np.any(x > 0.6177), x, 2.0 * x), "count": lambda x:
     np.count_nonzero(x > 0.0519) * x, "isfinite": lambda x:
     np.where(np.isfinite(np.sqrt(x + 0.0071)), x, x**2),
}  # fmt: skip
DENSITIES = {
    "normal": lambda x, y: vm.normal_lpdf(x, y, 0.5 + np.exp(0.1 * np.tanh(y))),
    "student_t": lambda x, y: vm.student_t_lpdf(x, 4.0, y, 1.3),
    "cauchy": lambda x, y: vm.cauchy_lpdf(np.tanh(x), y, 1.0),
    "logistic": lambda x, y: vm.logistic_lpdf(x, 0.3, 1.0 + np.tanh(y) ** 2),
    "bernoulli": lambda x, y: vm.bernoulli_logit_lpmf(1, x) + np.sum(y),
    "poisson": lambda x, y: vm.poisson_log_lpmf(2, np.tanh(x)),
    "gamma": lambda x, y: vm.gamma_lpdf(1.0 + x * x, 2.0, 1.0 + np.tanh(y) ** 2),
    "exponential": lambda x, y: vm.exponential_lpdf(x * x + 0.1, 1.1 + np.sin(y)),
}  # fmt: skip
MATRICES = {
    "inverse": np.linalg.inv, "solve": lambda a: np.linalg.solve(a, a[:, ::-1] * 0.5),
    "cholesky": np.linalg.cholesky, "logdet": lambda a: np.linalg.slogdet(a)[1],
}  # fmt: skip


@dataclass
class Function:
    """A list of statements. Each statement is a function of the list of values so far. A call runs
    them all and returns the last value.
    """

    shapes: list[tuple[int, ...]]
    statements: list[tuple[str, Any]] = field(default_factory=list)

    def __call__(self, *arguments: Any) -> Any:
        values = list(arguments)
        for _, statement in self.statements:
            statement(values)
        return values[-1]

    def __str__(self) -> str:
        texts = (text for text, _ in self.statements)
        return "\n".join([f"arguments of shapes {self.shapes}", *texts])

    def points(self, count: int) -> list[tuple[Any, ...]]:
        """Return random arguments."""
        rng = np.random.default_rng(len(self.statements))
        return [
            tuple(rng.normal(size=shape) if shape else float(rng.normal()) for shape in self.shapes)
            for _ in range(count)
        ]


class Maker:
    """Makes a function. It keeps plain values at one point, to know the shapes."""

    def __init__(self, seed: int, statements: int, large: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        rng = self.rng
        shapes = [self.shape(int(rng.integers(0, 4))) for _ in range(rng.integers(1, 4))]
        if large:
            shapes[0] = [(5000,), (70, 60), (3, 1500)][rng.integers(3)]
        self.function = Function(shapes)
        self.values: list[Any] = [
            np.array(x) if np.ndim(x) else x for x in self.function.points(1)[0]
        ]
        kinds = [getattr(self, name) for name in dir(self) if name.startswith("add_")]
        while len(self.function.statements) < statements:
            kinds[rng.integers(len(kinds))]()
        self.finish()

    # --- choices ---

    def shape(self, ndim: int) -> tuple[int, ...]:
        return tuple(int(n) for n in self.rng.choice(SIZES, ndim))

    def pick(self, least: int = 0, most: int = 9) -> int | None:
        """Return the index of a value with the given number of axes. Newer values are chosen more
        often.
        """
        found = [i for i, x in enumerate(self.values) if least <= np.ndim(x) <= most]
        if not found:
            return None
        return found[-1 - min(int(self.rng.geometric(0.2)) - 1, len(found) - 1)]

    def fits(self, i: int) -> int | None:
        """Return the index of a value that broadcasts with another one."""
        found = []
        for j, x in enumerate(self.values):
            try:
                if np.broadcast(x, self.values[i]).size <= 10_000:
                    found.append(j)
            except ValueError:
                pass
        return int(self.rng.choice(found)) if found else None

    def one_of(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def numbers(self, *shape: int) -> Any:
        return self.rng.normal(size=shape)

    def index(self, shape: tuple[int, ...], gathers: bool = True) -> Any:
        """Return an index into an array."""
        rng, parts = self.rng, []
        for n in shape[: rng.integers(1, len(shape) + 1)]:
            start, stop = sorted(int(i) for i in rng.integers(-n, n + 1, 2))
            step = self.one_of(1, 1, 2, -1)
            some = slice(start, stop, step) if step > 0 else slice(stop, start, step)
            kinds = [slice(None), some, some, np.newaxis, Ellipsis]
            if n:
                kinds.append(int(rng.integers(-n, n)))
            if gathers and n:
                kinds += [rng.integers(-n, n, rng.integers(1, 5)), rng.integers(-n, n, (2, 2))]
                kinds.append(rng.uniform(size=n) < 0.6)
            part = kinds[rng.integers(len(kinds))]
            if part is Ellipsis and Ellipsis in [p for p in parts if p is Ellipsis]:
                part = slice(None)
            parts.append(part)
        return tuple(parts) if len(parts) > 1 or rng.uniform() < 0.5 else parts[0]

    # --- statements ---

    def state(self, text: str, statement: Any) -> bool:
        """Add a statement, unless it raises or makes its result too large. Large numbers are scaled
        down.
        """
        before = [np.array(x) if np.ndim(x) else x for x in self.values]
        try:
            with np.errstate(all="ignore"):
                statement(self.values)
            made = all(map(self.is_fine, self.values))
        except (ValueError, IndexError, TypeError, RuntimeWarning, np.linalg.LinAlgError):
            made = False
        if not made:
            del self.values[len(before) :]
            for x, y in zip(self.values, before, strict=True):
                if np.ndim(x) and x.flags.writeable:
                    x[...] = y
            return False
        last = len(self.values) - 1
        self.function.statements.append((text, statement))
        if len(self.values) > len(before) and np.max(np.abs(self.values[last]), initial=0.0) > MOST:
            self.make(f"tanh(0.2 * v{last})", lambda v: np.tanh(0.2 * v[last]))
        return True

    @staticmethod
    def is_fine(x: Any) -> bool:
        return np.size(x) <= 50_000 and np.ndim(x) <= 4 and bool(np.all(np.abs(x) < 1e3))

    def make(self, text: str, function: Any) -> bool:
        """Add a statement that makes a new value."""

        def statement(v: Any) -> None:
            x = function(v)
            # Of no axes a view is a number here, and an array in NumPy.
            v.append(x if type(x) is not np.ndarray or np.ndim(x) else x[()])

        return self.state(f"v{len(self.values)} = {text}", statement)

    def add_unary(self) -> None:
        i = self.pick()
        name, f = self.one_of(*UNARY.items())
        self.make(f"{name}(v{i})", lambda v: f(v[i]))

    def add_binary(self) -> None:
        i = self.pick()
        j = self.fits(i)
        name, f = self.one_of(*BINARY.items())
        self.make(f"{name}(v{i}, v{j})", lambda v: f(v[i], v[j]))

    def add_with_data(self) -> None:
        i = self.pick(1)
        if i is not None:
            data = self.numbers(*np.shape(self.values[i])[self.rng.integers(2) :])
            name, f = self.one_of(*WITH_DATA.items())
            self.make(f"{name}(v{i}, data)", lambda v: f(v[i], data))

    def add_view(self) -> None:
        i = self.pick(1)
        if i is None:
            return
        shape = np.shape(self.values[i])
        n = len(shape)
        index, order = self.index(shape, gathers=False), tuple(self.rng.permutation(n).tolist())
        axis = int(self.rng.integers(n))
        divisors = [k for k in (1, 2, 3, 4, 5, 6) if np.size(self.values[i]) % k == 0]
        rows = int(self.rng.choice(divisors))
        size = np.size(self.values[i]) // rows
        # Copies are in C order here, and in that of the operand in NumPy: a view of a reshaped
        # one is made where both make a view.
        kept = (lambda x: x) if self.values[i].flags.c_contiguous else np.copy
        views = {
            f"[{index}]": lambda x: x[index], "[::-1]": lambda x: x[::-1],
            "[..., ::-1]": lambda x: x[..., ::-1],
            f"reshape({rows}, -1)": lambda x: kept(np.reshape(x, (rows, size))),
            "ravel": lambda x: kept(np.ravel(x)),
            f"transpose{order}": lambda x: np.transpose(x, order), "T": lambda x: x.T,
             f"[...][{index}]": lambda x: x[...][index],
            "flip": lambda x: np.flip(x, axis), "expand": lambda x: np.expand_dims(x, axis),
             "squeeze": np.squeeze,
            "broadcast": lambda x: np.broadcast_to(x * 1.0, (2, *shape)),
            "diagonal": lambda x: np.diagonal(x) if np.ndim(x) > 1 else x[::-1],
        }  # fmt: skip
        name, f = self.one_of(*views.items())
        self.make(f"{name} of v{i}", lambda v: f(v[i]))

    def add_gather(self) -> None:
        i = self.pick(1)
        if i is not None:
            index = self.index(np.shape(self.values[i]))
            self.make(f"v{i}[{index!r}]", lambda v: v[i][index])

    def add_assignment(self) -> None:
        i = self.pick(1)
        if i is None or not self.values[i].flags.writeable:
            return
        index = self.index(np.shape(self.values[i]))
        try:
            j = self.fits_into(self.values[i][index])
            shape = np.shape(self.values[i][index])
        except IndexError:
            return
        number = float(self.rng.normal())
        kind = self.one_of("=", "=", "+=", "*=", "number", "copy", "out", "add.at")

        def statement(v: Any) -> None:
            if kind == "copy":
                v.append(v[i] * 1.0)
                v[-1][index] = v[j]
            elif kind == "number":
                v[i][index] = number
            elif kind == "=":
                v[i][index] = v[j]
            elif kind == "+=":
                v[i][index] += v[j]
            elif kind == "out":
                part = v[i][index]
                np.multiply(part, np.tanh(v[j]), out=part)
            elif kind == "add.at":
                # Of the whole shape: NumPy 2.4 adds what it broadcasts once to a repeated element.
                np.add.at(v[i], index, np.tanh(v[j]) + np.zeros(shape))
            else:
                v[i][index] *= np.tanh(v[j])

        self.state(f"v{i}[{index!r}] {kind} v{j}", statement)

    def fits_into(self, part: Any) -> int:
        found = [j for j, x in enumerate(self.values) if fits_into(np.shape(x), np.shape(part))]
        return int(self.rng.choice(found)) if found else len(self.values)

    def add_whole_assignment(self) -> None:
        i = self.pick(1)
        if i is None or not self.values[i].flags.writeable:
            return
        j, number = self.fits_into(self.values[i]), self.pick(0, 0)
        data = self.rng.uniform(size=np.shape(self.values[i])) < 0.6
        how, write = self.one_of(*WRITES.items())
        k = j if number is None else number
        self.state(f"{how} of v{i}, v{j}, v{k}", lambda v: write(v[i], v[j], v[k], data))

    def add_copy_and_write(self) -> None:
        """Overwrite a copy of a view through another view, all or part of it."""
        i = self.pick(1)
        if i is None:
            return
        n = np.ndim(self.values[i])
        order, back = tuple(self.rng.permutation(n).tolist()), self.rng.integers(0, 2, (2, n))
        source, target = (tuple(slice(None, None, 1 - 2 * b) for b in each) for each in back)
        name, copy = self.one_of(*COPIES.items())
        self.make(f"{name} of v{i}[{source}]", lambda v: copy(v[i][source]))
        k = len(self.values) - 1
        self.make(f"v{k}.transpose{order}[{target}]", lambda v: v[k].transpose(order)[target])
        m = len(self.values) - 1
        if self.rng.uniform() < 0.3:
            self.add_sum()
        j = self.fits_into(self.values[m])
        how, write = self.one_of(*WRITES.items())
        data = self.rng.uniform(size=np.shape(self.values[m])) < 0.6
        self.state(f"{how} of v{m}, v{j}", lambda v: write(v[m], v[j], 0.3, data))

    def add_copy(self) -> None:
        i = self.pick(1)
        if i is not None:
            name, f = self.one_of(*COPIES.items())
            self.make(f"{name} of v{i}", lambda v: f(v[i]))

    def add_loop(self) -> None:
        i, number = self.pick(1, 2), self.pick(0, 0)
        if i is not None:
            j = i if number is None else number
            name, f = self.one_of(*LOOPS.items())
            self.make(f"{name} of v{i}, v{j}", lambda v: f(v[i], np.sum(v[j])))

    def add_choice(self) -> None:
        """Choose by the values: the recording must choose anew at each point."""
        i, number = self.pick(), self.pick(0, 0)
        j, k = self.fits(i), i if number is None else number
        name, f = self.one_of(*CHOICES.items())
        self.make(f"{name} of v{i}, v{j}, v{k}", lambda v: f(v[i], v[j], np.sum(v[k]) - 0.0731))

    def add_control(self) -> None:
        i, number = self.pick(1), self.pick(0, 0)
        if i is not None and np.size(self.values[i]):
            j, k = self.fits(i), i if number is None else number
            name, f = self.one_of(*CONTROL.items())
            self.make(f"{name} of v{i}, v{j}, v{k}", lambda v: f(v[i], v[j], np.sum(v[k]) - 0.0731))

    def add_looking(self) -> None:
        i = self.pick(1)
        if i is not None and np.size(self.values[i]):
            name, f = self.one_of(*LOOKING.items())
            ramp = np.linspace(0.0, 0.0271, np.size(self.values[i]))
            apart = ramp.reshape(np.shape(self.values[i]))
            self.make(f"{name} of v{i}", lambda v: f(v[i] + apart))

    def add_density(self) -> None:
        i = self.pick()
        j = self.fits(i)
        name, f = self.one_of(*DENSITIES.items())
        self.make(f"{name} of v{i}, v{j}", lambda v: f(v[i], v[j]))

    def add_matrix(self) -> None:
        i = self.pick(2, 2)
        if i is not None:
            n = np.shape(self.values[i])[0]
            name, f = self.one_of(*MATRICES.items())
            matrix = lambda x: np.tanh(x) @ np.tanh(x).T + n * np.eye(n)  # noqa: E731
            self.make(f"{name} of v{i}", lambda v: f(matrix(v[i])))

    def add_sum(self) -> None:
        i = self.pick(1)
        if i is None:
            return
        if not np.size(self.values[i]):
            return
        n = np.ndim(self.values[i])
        several = tuple(self.rng.permutation(n)[: self.rng.integers(1, n + 1)].tolist())
        axis = self.one_of(None, -1, int(self.rng.integers(n)), several)
        keepdims = bool(self.rng.integers(2))
        name, f = self.one_of(*SUMS)
        text = f"{name}(v{i}, {axis}, keepdims={keepdims})"
        self.make(text, lambda v: f(v[i], axis=axis, keepdims=keepdims))

    def add_total(self) -> None:
        i = self.pick(1)
        if i is not None:
            j, number = self.fits(i), self.pick(0, 0)
            k = i if number is None else number
            name, f = self.one_of(*TOTALS.items())
            self.make(f"{name} of v{i}, v{j}, v{k}", lambda v: f(v[i], v[j], v[k]))

    def add_running(self) -> None:
        i = self.pick(1)
        if i is not None:
            axis = self.one_of(None, int(self.rng.integers(np.ndim(self.values[i]))))
            self.make(f"cumsum(v{i}, {axis})", lambda v: np.cumsum(v[i], axis=axis))

    def add_product(self) -> None:
        i = self.pick(1, 3)
        if i is None:
            return
        n = np.shape(self.values[i])[-1]
        kind = self.one_of("@ data", "@ value", "@ its transpose", "dot", "outer")
        if kind == "@ data":
            data = self.numbers(*self.one_of((n,), (n, 3), (2, n, 2))) * 0.5
            self.make(f"v{i} @ data", lambda v: v[i] @ data)
        elif kind == "@ its transpose":
            self.make(f"v{i} @ v{i}.T / {n}", lambda v: v[i] @ v[i].T / max(n, 1))
        elif kind == "outer":
            self.make(f"outer(v{i}, v{i})", lambda v: np.outer(v[i], v[i]))
        else:
            j = self.pick(1, 3)
            f = np.dot if kind == "dot" else np.matmul
            self.make(f"{kind}(v{i}, v{j})", lambda v: f(v[i], v[j]))

    def add_joined(self) -> None:
        i = self.pick()
        same = [j for j, x in enumerate(self.values) if np.shape(x) == np.shape(self.values[i])]
        chosen = [int(j) for j in self.rng.choice(same, self.rng.integers(1, 4))]
        axis = int(self.rng.integers(max(np.ndim(self.values[i]), 1)))
        f = np.concatenate if np.ndim(self.values[i]) and self.rng.uniform() < 0.5 else np.stack
        self.make(f"{f.__name__}({chosen}, {axis})", lambda v: f([v[j] for j in chosen], axis=axis))

    def finish(self) -> None:
        """Add the sum of some of the values, with data as weights or with numbers."""
        chosen = [j for j in range(len(self.values)) if self.rng.uniform() < 0.3]
        chosen.append(len(self.values) - 1)
        weights = []
        for j in chosen:
            shape = np.shape(self.values[j]) if self.rng.uniform() < 0.5 else ()
            weights.append(self.rng.normal(size=shape))

        def statement(v: Any) -> None:
            total = sum(np.sum(w * v[j]) for w, j in zip(weights, chosen, strict=True))
            v.append(total + np.sum(np.tanh(v[0])))

        self.function.statements.append((f"the sum of sums of {chosen}", statement))


def fits_into(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    while len(shape) > len(target) and shape[0] == 1:
        shape = shape[1:]
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def greatest(x: Any, axis: Any, keepdims: bool) -> Any:
    """Return the maximum, after the elements are made unequal."""
    apart = np.linspace(0.0, 0.0137, np.size(x)).reshape(np.shape(x))
    return np.max(x + apart, axis=axis, keepdims=keepdims)


def product(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.prod(1.0 + 0.1 * np.tanh(x), axis=axis, keepdims=keepdims)


SUMS = [("sum", np.sum), ("sum", np.sum), ("mean", np.mean), ("max", greatest), ("prod", product)]


def random_function(seed: int, statements: int = 15, large: bool = False) -> Function:
    """Return a random function of one to three arguments with the given number of statements."""
    return Maker(seed, statements, large).function


def check(seed: int, second: bool = True, **settings: Any) -> None:
    """Demand that the recordings of a function agree with eager evaluation, and that with NumPy."""
    f = random_function(seed, **settings)
    points = f.points(2)
    try:
        for point in points:
            with np.errstate(all="ignore"):
                value = vm.value_and_grad(f, tuple(range(len(point))))(*point)[0]
                expected = f(*map(np.copy, point))
            np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-10)
        agree_everywhere(f, points, tolerance=1e-11, second=second)
    except Exception as error:
        error.add_note(f"of seed {seed} with {settings}:\n{f}")
        raise


def main() -> None:
    parser = ArgumentParser(description="Compare recordings of random functions with eager runs.")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--statements", type=int, default=12, help="the most of one function")
    given, failed = parser.parse_args(), 0
    for k in range(given.count):
        seed = given.seed * 1_000_000 + k
        try:
            check(seed, second=k % 3 == 0, statements=2 + k % (given.statements - 1))
        except Exception as error:
            failed += 1
            print(f"{type(error).__name__}: {error}", *error.__notes__, sep="\n", flush=True)
        if k % 1000 == 999:
            print(f"{k + 1} functions, {failed} with a difference", flush=True)
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
