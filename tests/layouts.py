"""Operands with all kinds of memory layouts, and programs of one step on them, for the tests of
programs.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from programs.verified import verify

import varmat as vm
from varmat.programs.build.arithmetic import NEGATIVE
from varmat.programs.build.builder import Builder
from varmat.programs.build.symbol import Symbol, lift
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import BOOL
from varmat.programs.run import has_native, runner_for

ROOT = Path(vm.__file__).parents[1]
LENGTHS = (0, 1, 1, 2, 3, 4, 17)


def shape(rng, least=0, most=3, lengths=LENGTHS):
    return tuple(int(n) for n in rng.choice(lengths, rng.integers(least, most + 1)))


def smaller(rng, whole):
    """Choose a shape that broadcasts to another one."""
    kept = whole[rng.integers(len(whole) + 1) :] if rng.uniform() < 0.3 else whole
    return tuple(1 if rng.uniform() < 0.2 else n for n in kept)


def laid_out(rng, at):
    """Choose the shape of a base, and a way to take a view of the given shape from it."""
    order = tuple(int(i) for i in rng.permutation(len(at)))
    kind = rng.choice(["whole", "transposed", "strided", "reversed", "repeated", "part"])
    if kind == "whole" or not at:
        return at, lambda a: a
    if kind == "transposed":
        return tuple(at[i] for i in np.argsort(order)), lambda a: a.transpose(order)
    if kind == "strided":
        return tuple(2 * n for n in at), lambda a: a[(slice(1, None, 2),) * len(at)]
    if kind == "reversed":
        flips = tuple(slice(None, None, -1 if rng.uniform() < 0.5 else 1) for _ in at)
        return at, lambda a: a[flips]
    if kind == "repeated":
        ones = tuple(1 if rng.uniform() < 0.5 else n for n in at)
        return ones, lambda a: np.broadcast_to(a, at)
    return tuple(n + 3 for n in at), lambda a: a[tuple(slice(1, n + 1) for n in at)]


class Operands:
    """Makes operands of a program, and collects the arguments for it.

    Attributes
    ----------
    builder : Builder
    arguments : list of ndarray
    arrays : list of ndarray
        What the operands are, in the order in which they were made.
    """

    def __init__(self, rng):
        self.rng, self.builder = rng, Builder()
        self.arguments = []
        self.arrays = []

    def number(self, at, low=-2.0, high=2.0, contiguous=False):
        """Make an operand of numbers with a random layout. It is an argument, a constant, or the
        result of a step.
        """
        rng, builder = self.rng, self.builder
        base_shape, how = (at, lambda a: a) if contiguous else laid_out(rng, at)
        base = rng.uniform(low, high, base_shape)
        base = np.asarray(base)
        kind = rng.choice(["argument", "made", "made", "constant"])
        if kind == "constant":
            value = builder.constant(base)
        else:
            self.arguments.append(base)
            value = builder.argument(base_shape)
            if kind == "made":
                value, base = builder.call(NEGATIVE, value), -base
        self.arrays.append(np.array(how(base)))
        return builder.view(value, how) if base.ndim else value

    def truth(self, at):
        """Make an operand of truth values."""
        base_shape, how = laid_out(self.rng, at)
        base = np.asarray(self.rng.uniform(-1.0, 1.0, base_shape))
        self.arguments.append(base)
        value = self.builder.compare(
            np.greater, self.builder.argument(base_shape), self.builder.constant(0.0)
        )
        self.arrays.append(np.array(how(base > 0.0)))
        return self.builder.view(value, how) if base.ndim else value


def with_arguments(*shapes):
    """Return a builder and arguments of these shapes."""
    builder = Builder()
    return builder, *map(builder.argument, shapes)


def returning(builder, *values):
    """Make a program that returns the given numbers and arrays after a first number."""
    program = builder.program(
        [builder.constant(0.5), *(builder.number(v) if v.dtype == BOOL else v for v in values)]
    )
    verify(program)
    return program


def run_all(program, *arguments):
    """Run a program with the interpreter and every runner. Each runner runs twice, because it uses
    its memory again.
    """
    found = {"interpreter": interpret(program, *arguments)[1:]}
    for name in ("numpy", "native") if has_native() else ("numpy",):
        run = runner_for(program, name)
        given = [x.copy() if np.ndim(x) else float(x) for x in arguments]
        run([np.ones_like(x) if np.ndim(x) else 1.0 for x in given])
        found[name] = run(given)[1:]
        for x, y in zip(given, arguments, strict=True):
            np.testing.assert_array_equal(
                x, y, err_msg=f"an argument has changed in the {name} runner"
            )
    return found


def of_one_step(kernel, *shapes):
    """Make a program of one step, which returns the sum of its result and the result."""
    builder = Builder()
    made = builder.call(kernel, *map(builder.argument, shapes))
    return builder.program([builder.sum(made), made])


# A matrix and a vector, and a number, for functions that are traced.
X, Y, S = np.array([[0.5, -1.0, 2.0], [0.3, 0.1, -0.7]]), np.array([1.5, 0.2, -0.4]), 0.8


def traced(f, *arrays):
    """Return the program of a function, and its result with symbols."""
    builder = Builder()
    symbols = [Symbol(builder, builder.argument(np.shape(a))) for a in arrays]
    made = f(*symbols)
    return returning(builder, lift(builder, made)), made


def check_traced(f):
    """Demand that a function of symbols gives what it gives of arrays, with every runner."""
    program, made = traced(f, X, Y, S)
    expected = f(X.copy(), Y.copy(), np.float64(S))
    assert made.shape == np.shape(expected)
    assert all(step.kernel.is_native for step in program.steps)
    for runner, found in run_all(program, X, Y, S).items():
        np.testing.assert_allclose(found[0], expected, rtol=1e-13, err_msg=f"{runner}: {program}")
    return program


def python(text, *paths, arguments=()):
    """Run a text in a process of its own, which finds modules in these folders and the library."""
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*paths, ROOT)))}
    command = [sys.executable, "-X", "faulthandler", "-c", text, *arguments]
    return subprocess.run(
        command, env=settings, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=240
    )


def native_code(program):
    """Make the instructions of the native runner for a program, before they are compiled."""
    from varmat.programs.run.constants import Constants
    from varmat.programs.run.native import instructions

    code, _ = instructions(program, Constants([]))
    return code
