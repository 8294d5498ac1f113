"""The compared libraries, each behind a namespace with NumPy's names, and the gradient of a
workload in each.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import environment  # noqa: F401 - one thread, before NumPy is imported
import numpy as np
import stan
from formulas import Formulas
from workloads.workload import Workload

import varmat as vm

PEERS = ("jax", "torch", "autograd", "stan")
Gradient = Callable[..., tuple[float, tuple[Any, ...]]]


class MissingError(AttributeError, NotImplementedError):
    """A library, or a revision of varmat, lacks a name. If the setup of an asv benchmark raises
    this error, the benchmark is skipped.
    """


class Namespace:
    """The functions of a library: its own attributes, and then those of the given modules.

    A function that has been found is kept as an attribute, so that a look-up costs no more than
    that in a module.
    """

    library: str

    def __init__(self, *modules: Any) -> None:
        self._modules = modules

    def __getattr__(self, name: str) -> Any:
        for module in self.__dict__.get("_modules", ()):
            found = getattr(module, name, None)
            if found is not None:
                setattr(self, name, found)
                return found
        raise MissingError(f"{self.library} has no {name}")


class Varmat(Namespace):
    """NumPy's functions, and the public functions of varmat that NumPy does not have."""

    library = "varmat"

    def __init__(self) -> None:
        super().__init__(np, vm)
        # `inv` is the inverse of a matrix, not the elementwise reciprocal.
        self.inv, self.det, self.cholesky = np.linalg.inv, np.linalg.det, np.linalg.cholesky

    def solve_triangular(self, a: Any, b: Any, lower: bool = True) -> Any:
        return vm.solve_triangular(a, b, lower=lower)


class Jax(Formulas, Namespace):
    library = "jax"

    def __init__(self) -> None:
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        special = importlib.import_module("jax.scipy.special")
        linalg = importlib.import_module("jax.scipy.linalg")
        super().__init__(importlib.import_module("jax.numpy"), special, jax.nn, jax)
        numpy_linalg = self.linalg
        self.inv, self.det, self.cholesky = (
            numpy_linalg.inv,
            numpy_linalg.det,
            numpy_linalg.cholesky,
        )
        self.logsumexp, self.log1p_exp, self.log_expit = (
            special.logsumexp,
            jax.nn.softplus,
            jax.nn.log_sigmoid,
        )
        self.matrix_exp = linalg.expm
        self._linalg = linalg

    def softmax(self, x: Any, axis: Any = None) -> Any:
        return self._modules[2].softmax(x, axis)

    def solve_triangular(self, a: Any, b: Any, lower: bool = True) -> Any:
        return self._linalg.solve_triangular(a, b, lower=lower)

    def mdivide_left_spd(self, a: Any, b: Any) -> Any:
        return self._linalg.cho_solve(self._linalg.cho_factor(a, lower=True), b)


class Torch(Formulas, Namespace):
    """PyTorch, with wrappers where names, defaults or arguments differ from NumPy's. PyTorch itself
    accepts `axis` and `keepdims`.
    """

    library = "torch"

    def __init__(self) -> None:
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float64)
        super().__init__(torch, torch.special)
        linalg = torch.linalg
        self.inv, self.det, self.cholesky, self.matrix_exp = (
            linalg.inv,
            linalg.det,
            linalg.cholesky,
            linalg.matrix_exp,
        )
        self.power, self.dot, self.max, self.min = torch.pow, torch.matmul, torch.amax, torch.amin
        self.gammaln, self.expit, self.repeat = torch.lgamma, torch.sigmoid, torch.repeat_interleave
        self.log_expit = torch.nn.functional.logsigmoid
        self.expand_dims, self.append, self.newaxis = (
            torch.unsqueeze,
            lambda a, b: torch.cat((a, b)),
            None,
        )

    def asarray(self, x: Any) -> Any:
        return self.from_numpy(np.array(x))

    def array(self, x: Any) -> Any:
        parts = x if isinstance(x, (list, tuple)) else ()
        if any(isinstance(part, self.Tensor) for part in parts):
            return self.stack(
                [
                    part if isinstance(part, self.Tensor) else self.tensor(float(part))
                    for part in parts
                ]
            )
        return self.asarray(x)

    def transpose(self, x: Any, axes: Any = None) -> Any:
        return x.permute(tuple(reversed(range(x.ndim))) if axes is None else axes)

    def take(self, x: Any, indices: Any, axis: int = 0) -> Any:
        return (
            self.index_select(x, axis, indices)
            if getattr(indices, "ndim", 0) == 1
            else x[(slice(None),) * axis + (indices,)]
        )

    def cumsum(self, x: Any, axis: int = 0) -> Any:
        return self._modules[0].cumsum(x, axis)

    def std(self, x: Any, axis: Any = None, ddof: int = 0) -> Any:
        return self._modules[0].std(x, dim=axis, correction=ddof)

    def var(self, x: Any, axis: Any = None, ddof: int = 0) -> Any:
        return self._modules[0].var(x, dim=axis, correction=ddof)

    def maximum(self, x: Any, y: Any) -> Any:
        return (
            self.clamp_min(x, y) if isinstance(y, (int, float)) else self._modules[0].maximum(x, y)
        )

    def minimum(self, x: Any, y: Any) -> Any:
        return (
            self.clamp_max(x, y) if isinstance(y, (int, float)) else self._modules[0].minimum(x, y)
        )

    def logsumexp(self, x: Any, axis: Any = None) -> Any:
        return self._modules[0].logsumexp(x, tuple(range(x.ndim)) if axis is None else axis)

    def softmax(self, x: Any, axis: Any = None) -> Any:
        if axis is None and x.ndim > 1:
            return self._modules[0].softmax(x.reshape(-1), 0).reshape(x.shape)
        return self._modules[0].softmax(x, 0 if axis is None else axis)

    def log1p_exp(self, x: Any) -> Any:
        # Above the threshold the function is linear. PyTorch's own threshold, 20, is for single
        # precision.
        return self.nn.functional.softplus(x, threshold=40)

    def solve_triangular(self, a: Any, b: Any, lower: bool = True) -> Any:
        if b.ndim == 1:
            return self.linalg.solve_triangular(a, b[:, None], upper=not lower)[:, 0]
        return self.linalg.solve_triangular(a, b, upper=not lower)

    def mdivide_left_spd(self, a: Any, b: Any) -> Any:
        factor = self.linalg.cholesky(a)
        return (
            self.cholesky_solve(b[:, None], factor)[:, 0]
            if b.ndim == 1
            else self.cholesky_solve(b, factor)
        )


class Autograd(Formulas, Namespace):
    library = "autograd"

    def __init__(self) -> None:
        special = importlib.import_module("autograd.scipy.special")
        super().__init__(importlib.import_module("autograd.numpy"), special)
        linalg = self.linalg
        self.inv, self.det, self.cholesky, self.mdivide_left_spd = (
            linalg.inv,
            linalg.det,
            linalg.cholesky,
            linalg.solve,
        )
        self._triangular = importlib.import_module("autograd.scipy.linalg").solve_triangular

    def diagonal(self, x: Any) -> Any:
        # autograd differentiates diagonals of these axes only.
        return self._modules[0].diagonal(x, 0, -1, -2)

    def take(self, x: Any, indices: Any, axis: int = 0) -> Any:
        return x[(slice(None),) * axis + (indices,)]

    def softmax(self, x: Any, axis: Any = None) -> Any:
        e = self.exp(x - self.max(x, axis=axis, keepdims=True))
        return e / self.sum(e, axis=axis, keepdims=True)

    def log1p_exp(self, x: Any) -> Any:
        return self.logaddexp(0.0, x)

    def log_ndtr(self, x: Any) -> Any:
        return importlib.import_module("autograd.scipy.stats").norm.logcdf(x)

    def log_determinant_spd(self, a: Any) -> Any:
        return self.linalg.slogdet(a)[1]

    def solve_triangular(self, a: Any, b: Any, lower: bool = True) -> Any:
        return self._triangular(a, b, lower=lower)


NAMESPACES: dict[str, type[Namespace]] = {
    each.library: each for each in (Varmat, Jax, Torch, Autograd)
}


@cache
def namespace(library: str) -> Any:
    """Import a library and return its namespace."""
    return NAMESPACES[library]()


def installed() -> tuple[str, ...]:
    """Return the peers that can take part here."""
    return tuple(library for library in PEERS if missing(library) is None)


def missing(library: str) -> str | None:
    """Return why a peer cannot take part here, or None."""
    if library == "stan":
        return stan.missing()
    return None if importlib.util.find_spec(library) else f"{library} is not installed"


def version(library: str) -> str:
    return stan.version() if library == "stan" else importlib.metadata.version(library)


class _Data:
    """Converts data arguments when it sees them for the first time."""

    def __init__(self, convert: Callable[[Any], Any]) -> None:
        self._convert = convert
        self._seen: tuple[Any, ...] = ()
        self._converted: tuple[Any, ...] = ()

    def __call__(self, data: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(data) != len(self._seen) or any(
            a is not b for a, b in zip(data, self._seen, strict=True)
        ):
            self._seen = data
            self._converted = tuple(
                self._convert(x) if isinstance(x, np.ndarray) else x for x in data
            )
        return self._converted


def in_varmat(f: Any, variables: int) -> Gradient:
    return vm.value_and_grad(f, tuple(range(variables)))  # type: ignore[no-any-return]


def in_recorded(f: Any, variables: int, runner: str = "auto") -> Gradient:
    if not hasattr(vm, "recorded"):
        raise MissingError("varmat has no recorded")
    return vm.recorded(f, tuple(range(variables)), runner=runner)  # type: ignore[no-any-return]


def in_matvar(f: Any, variables: int) -> Gradient:
    def gradient(*args: Any) -> tuple[float, tuple[Any, ...]]:
        # The cyclic collector is off, as in `vm.value_and_grad`.
        collecting = gc.isenabled()
        gc.disable()
        try:
            with vm.nested():
                leaves = [vm.matvar(x) if np.ndim(x) else vm.var(x) for x in args[:variables]]
                value = f(*leaves, *args[variables:])
                value.grad()
                return float(value.val), tuple(
                    np.array(x.adj) if np.ndim(x) else float(x.adj) for x in leaves
                )
        finally:
            if collecting:
                gc.enable()

    return gradient


def in_plain(f: Any, variables: int) -> Gradient:
    """Return the value alone, with no gradients."""
    return lambda *args: (float(f(*args)), ())


def in_jax(f: Any, variables: int) -> Gradient:
    jax = importlib.import_module("jax")
    compiled = jax.jit(jax.value_and_grad(f, tuple(range(variables))))
    convert = _Data(jax.numpy.asarray)

    def gradient(*args: Any) -> tuple[float, tuple[Any, ...]]:
        value, gradients = compiled(*args[:variables], *convert(args[variables:]))
        return float(value), tuple(map(np.asarray, gradients))

    return gradient


def in_torch(f: Any, variables: int) -> Gradient:
    torch = importlib.import_module("torch")
    convert = _Data(torch.from_numpy)

    def leaf(x: Any) -> Any:
        tensor = (
            torch.from_numpy(x)
            if isinstance(x, np.ndarray)
            else torch.tensor(x, dtype=torch.float64)
        )
        return tensor.requires_grad_()

    def gradient(*args: Any) -> tuple[float, tuple[Any, ...]]:
        leaves = [leaf(x) for x in args[:variables]]
        value = f(*leaves, *convert(args[variables:]))
        gradients = torch.autograd.grad(value, leaves)
        return value.item(), tuple(g.contiguous().numpy() for g in gradients)

    return gradient


def in_autograd(f: Any, variables: int) -> Gradient:
    gradient: Any = importlib.import_module("autograd").value_and_grad(f, tuple(range(variables)))
    return gradient  # type: ignore[no-any-return]


# Name of an implementation -> the library whose namespace its expression gets, and the function
# that makes a gradient of it.
IMPLEMENTATIONS: dict[str, tuple[str, Callable[[Any, int], Gradient]]] = {
    "plain": ("varmat", in_plain),
    "varmat": ("varmat", in_varmat),
    "recorded": ("varmat", in_recorded),
    "numpy runner": ("varmat", partial(in_recorded, runner="numpy")),
    "matvar": ("varmat", in_matvar),
    "jax": ("jax", in_jax),
    "torch": ("torch", in_torch),
    "autograd": ("autograd", in_autograd),
}


def gradient_function(library: str, workload: Workload, size: int) -> Gradient:
    """Return a function from the arguments of a workload, plain arrays and floats, to its value, a
    float, and its gradients, a tuple of plain arrays.

    `library` is "by hand", "stan" or one of `IMPLEMENTATIONS`. The first call may compile.
    Variables are converted in every call, data arguments when they are seen for the first time. If
    a workload has a method ``implementation(library, size)``, that method is called first; if it
    returns None, the expression is used. Raises `MissingError` if the library cannot compute the
    workload.
    """
    if library in workload.without:
        raise MissingError(f"{library} cannot do {workload.name}")
    ready = getattr(workload, "implementation", None)
    given = ready(library, size) if ready else None
    if given is not None:
        return given  # type: ignore[no-any-return]
    if library == "by hand":
        if workload.by_hand is None:
            raise MissingError(f"{workload.name} is not derived by hand")
        return workload.by_hand
    if library == "stan":
        if workload.stan is None:
            raise MissingError(f"{workload.name} is no Stan program")
        return stan.Gradient(workload.stan(size), workload.variables)
    xp, differentiate = IMPLEMENTATIONS[library]
    return differentiate(workload.expression(namespace(xp), size), workload.variables)
