"""Programs as functions of JAX, for its devices, `vmap` and the samplers that build on it.

Every step becomes one or two calls of `jax.numpy`; views become slices and gathers of their base.
Initial value problems are in `jax_loops`. Compiled functions of JAX cannot raise, so the results
are nan if a guard fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from varmat.programs import kernels
from varmat.programs.ir.kernel import Module
from varmat.programs.ir.program import Array, Program, Step, Value, element_places
from varmat.programs.kernels.sparse import SampledProduct, SparseProduct

Rule = Callable[..., Any]
# A function of the arguments, which returns the outputs and whether all guards hold.
Run = Callable[..., tuple[list[Array], Array]]

# Ufuncs that JAX has under another name or outside jax.numpy.
_NAMES = {
    "psi": "jax.scipy.special.digamma", "xlogy": "jax.scipy.special.xlogy",
    "xlog1py": "jax.scipy.special.xlog1py", "gammaln": "jax.scipy.special.gammaln",
     "expit": "jax.scipy.special.expit",
    "ndtr": "jax.scipy.special.ndtr", "ndtri": "jax.scipy.special.ndtri",
    "erf": "jax.scipy.special.erf", "erfc": "jax.scipy.special.erfc",
     "erfinv": "jax.scipy.special.erfinv",
    "gammainc": "jax.scipy.special.gammainc", "gammaincc": "jax.scipy.special.gammaincc",
     "betainc": "jax.scipy.special.betainc",
    "gamma": "jax.scipy.special.gamma", "logit": "jax.scipy.special.logit",
     "i0e": "jax.scipy.special.i0e",
    "i1e": "jax.scipy.special.i1e", "i0": "jax.scipy.special.i0", "i1": "jax.scipy.special.i1",
     "entr": "jax.scipy.special.entr",
    "zeta": "jax.scipy.special.zeta", "log_expit": "jax.nn.log_sigmoid",
     "exp1": "jax.scipy.special.exp1",
    "expi": "jax.scipy.special.expi", "rel_entr": "jax.scipy.special.rel_entr",
     "kl_div": "jax.scipy.special.kl_div",
    "poch": "jax.scipy.special.poch", "spence": "jax.scipy.special.spence",
}  # fmt: skip


def to_jax(program: Program) -> Callable[..., tuple[Array, ...]]:
    """A program as a function of JAX.

    Parameters
    ----------
    program : Program

    Returns
    -------
    callable
        Takes the arguments of the program and returns its outputs, a tuple of JAX arrays.

    Raises
    ------
    ImportError
        If JAX is not installed.
    TypeError
        If the program has steps that call Python, or functions that JAX does not have; the message
        names them.
    """
    try:
        import jax
    except ImportError as error:
        raise ImportError("to_jax: JAX is not installed: pip install jax") from error
    run = translated(jax, program)

    def function(*arguments: Array) -> tuple[Array, ...]:
        results, holds = run(*arguments)
        return tuple(jax.numpy.where(holds, x, jax.numpy.nan) for x in results)

    return function


class _LackingError(TypeError):
    """JAX cannot run some steps; `names` says which."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        steps = ", ".join(sorted(names))
        super().__init__(f"to_jax: JAX cannot run the steps {steps} of this program")


def translated(jax: Module, program: Program) -> Run:
    """A program as a function of JAX, which returns the outputs and whether all guards hold."""
    jnp, rules = jax.numpy, _rules(jax, program.steps)

    def run(*arguments: Array) -> tuple[list[Array], Array]:
        known = {
            id(v): jnp.reshape(jnp.asarray(x, float), v.shape)
            for v, x in zip(program.arguments, arguments, strict=True)
        }
        holds: Array = jnp.array(True)

        def array(value: Value) -> Array:
            base = value.base
            if id(base) not in known:
                known[id(base)] = jnp.asarray(base.data)
            whole = known[id(base)]
            return _part(jnp, whole, value) if value.is_view else whole

        for step, rule in zip(program.steps, rules, strict=True):
            operands = [array(v) for v in step.operands]
            made = rule(step, *operands)
            if not step.results:
                holds = jnp.logical_and(holds, made)
                continue
            made = made if isinstance(made, (tuple, list)) else (made,)
            for value, x in zip(step.results, made, strict=True):
                known[id(value)] = jnp.broadcast_to(
                    jnp.reshape(x, value.shape) if x.size == value.size else x, value.shape
                )
        return [array(v) for v in program.outputs], holds

    return run


def scalar_to_jax(program: Program) -> Rule:
    """A function of JAX for the value of a program, with the gradients that the program returns.

    The program returns a number, then a gradient for each argument. JAX takes these gradients
    instead of differentiating, so there are no second derivatives.
    """
    import jax

    run = to_jax(program)

    @jax.custom_vjp
    def value(*arguments: Array) -> Array:
        return run(*arguments)[0]

    def forward(*arguments: Array) -> tuple[Array, Array]:
        first, *gradients = run(*arguments)
        return first, tuple(gradients)

    value.defvjp(forward, lambda gradients, g: tuple(g * each for each in gradients))
    return value


def _part(jnp: Module, whole: Array, value: Value) -> Array:
    """A view as elements of its base."""
    flat = jnp.reshape(whole, (-1,))
    start = value.offset // value.dtype.itemsize
    if value.is_contiguous:
        return jnp.reshape(flat[start : start + value.size], value.shape)
    return flat[element_places(value.shape, value.strides, value.offset, value.dtype.itemsize)]


def _rules(jax: Module, steps: Sequence[Step]) -> list[Rule]:
    """The rule of each step. Steps that JAX does not have are refused by name, those of a program
    within a step as "a in b".
    """
    rules: list[Rule | None] = []
    lacking: set[str] = set()
    for step in steps:
        rule, name = None, step.kernel.name
        try:
            rule = _rule(jax, step.kernel)
        except _LackingError as error:
            lacking.update(f"{each} in {name}" for each in error.names)
        else:
            lacking.update([name] if rule is None else [])
        rules.append(rule)
    if lacking:
        raise _LackingError(lacking)
    return rules  # type: ignore[return-value]


def _rule(jax: Module, kernel: kernels.Kernel) -> Rule | None:
    """A kernel as a function of the step and its operands; None if JAX does not have it."""
    for kind, make in _RULES.items():
        if isinstance(kernel, kind):
            rule: Rule | None = make(jax, kernel)
            return rule
    return kernel.in_jax(jax)


def _named(jax: Module, name: str) -> Rule | None:
    """The function of JAX for the name of a ufunc, or None."""
    path = _NAMES.get(name, f"jax.numpy.{name}")
    found: Rule | None = jax
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def _erfcx(jax: Module, x: Array) -> Array:
    """exp(x^2) erfc(x), which JAX lacks; above 3 by the continued fraction of DLMF 7.9."""
    jnp = jax.numpy
    far = jnp.where(x > 3.0, x, 3.0)
    tail = far
    for n in range(30, 0, -1):
        tail = far + 0.5 * n / tail
    near = jnp.where(x > 3.0, 3.0, x)
    return jnp.where(
        x > 3.0, 1.0 / (np.sqrt(np.pi) * tail), jnp.exp(near**2) * jax.scipy.special.erfc(near)
    )


def _betaln(jax: Module, x: Array, y: Array) -> Array:
    """JAX's own is wrong from the sixth digit on. Programs use this up to 100, and Stirling's
    series above.
    """
    gammaln = jax.scipy.special.gammaln
    return gammaln(x) + gammaln(y) - gammaln(x + y)


def _log_ndtr(jax: Module, x: Array) -> Array:
    """JAX's own loses digits from 1 to 8, and has nine below -20."""
    jnp, z = jax.numpy, jax.numpy.minimum(x, 0.0)
    below = jnp.log(0.5 * _erfcx(jax, -np.sqrt(0.5) * z)) - 0.5 * z**2
    return jnp.where(x > 0.0, jnp.log1p(-jax.scipy.special.ndtr(-abs(x))), below)


# Functions that are written here, because JAX lacks them or loses digits.
_WRITTEN: dict[str, Rule] = {"erfcx": _erfcx, "betaln": _betaln, "log_ndtr": _log_ndtr}


def _ufunc(jax: Module, kernel: kernels.Ufunc) -> Rule | None:
    import scipy.special
    from jax.scipy import special  # noqa: F401 - an attribute of jax from now on

    if not any(getattr(home, kernel.name, None) is kernel.ufunc for home in (np, scipy.special)):
        return None  # a user's of that name
    if kernel.name in _WRITTEN:
        return lambda step, *x: _WRITTEN[kernel.name](jax, *x)
    function = _named(jax, kernel.name)
    return None if function is None else lambda step, *x: function(*x)


def _reduce(jax: Module, kernel: kernels.Reduce) -> Rule | None:
    jnp = jax.numpy
    by_name = {
        "add": jnp.sum, "multiply": jnp.prod, "maximum": jnp.max, "minimum": jnp.min,
         "logical_and": jnp.all, "logical_or": jnp.any,
        "logaddexp": jax.nn.logsumexp,
    }  # fmt: skip
    function = by_name.get(kernel.ufunc.__name__)
    return None if function is None else lambda step, x: function(x, axis=kernel.axes)


def _accumulate(jax: Module, kernel: kernels.Accumulate) -> Rule | None:
    lax = jax.lax
    by_name = {
        "add": lax.cumsum, "multiply": lax.cumprod, "maximum": lax.cummax, "minimum": lax.cummin,
         "logaddexp": lax.cumlogsumexp,
    }  # fmt: skip
    function = by_name.get(kernel.ufunc.__name__)
    return None if function is None else lambda step, x: function(x, axis=kernel.axis)


def _sum(jax: Module, kernel: kernels.Sum) -> Rule:
    return lambda step, *x: sum(x[1:], start=x[0])


def _gufunc(jax: Module, kernel: kernels.Gufunc) -> Rule | None:
    linalg = jax.numpy.linalg
    by_name: dict[str, Rule] = {
        "cholesky_lo": linalg.cholesky, "inv": linalg.inv, "det": linalg.det, "solve": linalg.solve,
        "solve1": lambda a, b: linalg.solve(a, b[..., None])[..., 0], "slogdet": linalg.slogdet,
         "eigvalsh_lo": linalg.eigvalsh,
        "eigh_lo": lambda a: linalg.eigh(a, symmetrize_input=False),
    }  # fmt: skip
    function = by_name.get(kernel.name)
    return None if function is None else lambda step, *x: function(*x)


def _assemble(jax: Module, kernel: kernels.Assemble) -> Rule:
    jnp = jax.numpy

    def rule(step: Step, *operands: Array) -> Array:
        dtype = jax.dtypes.canonicalize_dtype(kernel.dtype)
        whole = operands[0] if kernel.has_base else jnp.zeros(kernel.shape, dtype)
        flat = jnp.reshape(whole, (-1,))
        for place, shape, part, index in kernel.parts(operands):
            values = jnp.broadcast_to(part, shape)
            if place is None:
                flat = flat.at[jnp.reshape(index, (-1,))].add(jnp.reshape(values, (-1,)))
            else:
                here = flat.at[element_places(shape, place[1], place[0], kernel.dtype.itemsize)]
                flat = here.set(values) if kernel.is_partition else here.add(values)
        return jnp.reshape(flat, kernel.shape)

    return rule


def _write(jax: Module, kernel: kernels.Write) -> Rule:
    jnp = jax.numpy

    def rule(step: Step, before: Array, part: Array) -> Array:
        flat = (
            jnp.reshape(before, (-1,))
            .at[element_places(kernel.part, *kernel.place[::-1])]
            .set(jnp.broadcast_to(part, kernel.part))
        )
        return jnp.reshape(flat, kernel.shape)

    return rule


def _triangular(jax: Module, kernel: kernels.SolveTriangular) -> Rule:
    from jax.scipy.linalg import solve_triangular

    return lambda step, a, b: solve_triangular(a, b, lower=True, trans=int(kernel.transposed))


def _sparse(jax: Module, kernel: SparseProduct) -> Rule:
    jnp = jax.numpy

    def rule(step: Step, data: Array, indices: Array, indptr: Array, b: Array) -> Array:
        counts = np.diff(np.asarray(step.operands[2].data))
        rows = np.repeat(np.arange(len(counts)), counts)
        source, target = (rows, indices) if kernel.transposed else (indices, rows)
        terms = jnp.reshape(data, (-1,) + (1,) * (b.ndim - 1)) * b[source]
        return jnp.zeros(step.results[0].shape).at[target].add(terms)

    return rule


def _sampled(jax: Module, kernel: SampledProduct) -> Rule:
    jnp = jax.numpy
    return lambda step, x, y, rows, columns: jnp.sum(
        jnp.reshape(x[rows] * y[columns], (len(rows), -1)), axis=1
    )


# By class of kernel.
_RULES: dict[type, Callable[[Module, Any], Rule | None]] = {
    kernels.Ufunc: _ufunc,
    kernels.Select: lambda jax, kernel: lambda step, *x: jax.numpy.where(*x),
    kernels.Guard: lambda jax, kernel: lambda step, x: jax.numpy.all(x),
    kernels.GuardBetween: lambda jax, kernel: lambda step, x: (x > kernel.low) & (x < kernel.high),
    kernels.Reduce: _reduce,
    kernels.Accumulate: _accumulate,
    kernels.Sum: _sum,
    kernels.Matmul: lambda jax, kernel: lambda step, a, b: jax.numpy.matmul(a, b),
    kernels.Gufunc: _gufunc,
    kernels.Copy: lambda jax, kernel: lambda step, x: jax.numpy.broadcast_to(x, kernel.shape),
    kernels.Gather: lambda jax, kernel: lambda step, x, index: jax.numpy.reshape(x, (-1,))[index],
    kernels.Assemble: _assemble,
    kernels.Write: _write,
    kernels.SolveTriangular: _triangular,
    SparseProduct: _sparse,
    SampledProduct: _sampled,
}
