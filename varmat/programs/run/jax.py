"""Programs as functions of JAX, for its devices, `vmap` and the samplers that build on it.

Kernels say how they run in JAX (`Kernel.in_jax`); views become slices and gathers of their base.
Compiled functions of JAX cannot raise, so the results are nan if a guard fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.programs.ir.program import Program, Step, Value, element_places

if TYPE_CHECKING:
    from jax import Array as JaxArray

    from varmat.programs.ir.kernel import Module

JaxRule = Callable[..., Any]
# A function of the arguments, which returns the outputs and whether all guards hold.
JaxRun = Callable[..., tuple[list["JaxArray"], "JaxArray"]]

# Ufuncs that JAX has outside jax.numpy, or under another name.
_SPECIAL = (
    "betainc entr erf erfc erfinv exp1 expi expit gamma gammainc gammaincc gammaln i0 i0e "
    "i1 i1e kl_div logit ndtr ndtri poch rel_entr spence xlog1py xlogy zeta"
)
_NAMES = {name: f"jax.scipy.special.{name}" for name in _SPECIAL.split()}
_NAMES |= {"psi": "jax.scipy.special.digamma", "log_expit": "jax.nn.log_sigmoid"}


def to_jax(program: Program) -> Callable[..., tuple[JaxArray, ...]]:
    """Convert a program to a function of JAX.

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

    def function(*arguments: JaxArray) -> tuple[JaxArray, ...]:
        results, holds = run(*arguments)
        return tuple(jax.numpy.where(holds, x, jax.numpy.nan) for x in results)

    return function


class _LackingError(TypeError):
    """JAX cannot run some steps; `names` says which."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        steps = ", ".join(sorted(names))
        super().__init__(f"to_jax: JAX cannot run the steps {steps} of this program")


def translated(jax: Module, program: Program) -> JaxRun:
    """Convert a program to a function of JAX from arguments to outputs and whether guards hold."""
    jnp, rules = jax.numpy, _rules(jax, program.steps)

    def run(*arguments: JaxArray) -> tuple[list[JaxArray], JaxArray]:
        values = {
            id(v): jnp.reshape(jnp.asarray(x, float), v.shape)
            for v, x in zip(program.arguments, arguments, strict=True)
        }
        holds: JaxArray = jnp.array(True)

        def array(value: Value) -> Any:
            base = value.base
            if id(base) not in values:
                values[id(base)] = jnp.asarray(base.data)
            full = values[id(base)]
            return _part(jnp, full, value) if value.is_view else full

        for step, rule in zip(program.steps, rules, strict=True):
            operands = [array(v) for v in step.operands]
            result = rule(*operands)
            if not step.results:
                holds = jnp.logical_and(holds, result)
                continue
            result = result if isinstance(result, (tuple, list)) else (result,)
            for value, x in zip(step.results, result, strict=True):
                values[id(value)] = jnp.broadcast_to(
                    jnp.reshape(x, value.shape) if x.size == value.size else x, value.shape
                )
        return [array(v) for v in program.outputs], holds

    return run


def scalar_to_jax(program: Program) -> JaxRule:
    """Make a function of JAX for the value of a program, with the gradients that it returns.

    The program returns a number, then a gradient for each argument. JAX takes these gradients
    instead of differentiating, so second derivatives do not exist.
    """
    import jax

    run = to_jax(program)

    @jax.custom_vjp
    def value(*arguments: JaxArray) -> JaxArray:
        return run(*arguments)[0]

    def forward(*arguments: JaxArray) -> tuple[JaxArray, tuple[JaxArray, ...]]:
        first, *gradients = run(*arguments)
        return first, tuple(gradients)

    value.defvjp(forward, lambda gradients, g: tuple(g * gradient for gradient in gradients))
    return value


def _part(jnp: Module, full: JaxArray, value: Value) -> Any:
    """Take a view as elements of its base."""
    flat = jnp.reshape(full, (-1,))
    start = value.offset // value.dtype.itemsize
    if value.is_contiguous:
        return jnp.reshape(flat[start : start + value.size], value.shape)
    return flat[element_places(value.shape, value.strides, value.offset, value.dtype.itemsize)]


def _rules(jax: Module, steps: Sequence[Step]) -> list[JaxRule]:
    """Convert each step to a function of its operands. Raise an error that names the steps that
    JAX does not have, steps of a program within a step as "a in b".
    """
    rules: list[JaxRule | None] = []
    lacking: set[str] = set()
    for step in steps:
        rule, name = None, step.kernel.name
        try:
            rule = step.kernel.in_jax(jax, step)
        except _LackingError as error:
            lacking.update(f"{x} in {name}" for x in error.names)
        else:
            lacking.update([name] if rule is None else [])
        rules.append(rule)
    if lacking:
        raise _LackingError(lacking)
    return rules  # type: ignore[return-value]


def _named(jax: Module, name: str) -> JaxRule | None:
    """Return the function of JAX for the name of a ufunc, or None."""
    path = _NAMES.get(name, f"jax.numpy.{name}")
    attribute: object = jax
    for part in path.split(".")[1:]:
        attribute = getattr(attribute, part, None)
    return attribute if callable(attribute) else None


def _erfcx(jax: Module, x: JaxArray) -> Any:
    """Compute exp(x^2) erfc(x), which JAX lacks; above 3 by the continued fraction of DLMF 7.9."""
    jnp = jax.numpy
    far = jnp.where(x > 3.0, x, 3.0)
    tail = far
    for n in range(30, 0, -1):
        tail = far + 0.5 * n / tail
    near = jnp.where(x > 3.0, 3.0, x)
    return jnp.where(
        x > 3.0, 1.0 / (np.sqrt(np.pi) * tail), jnp.exp(near**2) * jax.scipy.special.erfc(near)
    )


def _betaln(jax: Module, x: JaxArray, y: JaxArray) -> Any:
    """Compute the log beta function, because JAX's is wrong from the sixth digit on. Programs use
    this up to 100, and Stirling's series above.
    """
    gammaln = jax.scipy.special.gammaln
    return gammaln(x) + gammaln(y) - gammaln(x + y)


def _log_ndtr(jax: Module, x: JaxArray) -> Any:
    """Compute log Phi, because JAX's loses digits from 1 to 8, and has nine below -20."""
    jnp, z = jax.numpy, jax.numpy.minimum(x, 0.0)
    below = jnp.log(0.5 * _erfcx(jax, -np.sqrt(0.5) * z)) - 0.5 * z**2
    return jnp.where(x > 0.0, jnp.log1p(-jax.scipy.special.ndtr(-abs(x))), below)


# Functions that are written here, because JAX lacks them or loses digits.
_WRITTEN: dict[str, JaxRule] = {"erfcx": _erfcx, "betaln": _betaln, "log_ndtr": _log_ndtr}


def of_ufunc(jax: Module, ufunc: np.ufunc) -> JaxRule | None:
    """Return a ufunc as a function of JAX; None if JAX does not have it."""
    import scipy.special
    from jax.scipy import special  # noqa: F401 - an attribute of jax from now on

    name = ufunc.__name__
    if not any(getattr(home, name, None) is ufunc for home in (np, scipy.special)):
        return None  # a user's of that name
    return partial(_WRITTEN[name], jax) if name in _WRITTEN else _named(jax, name)
