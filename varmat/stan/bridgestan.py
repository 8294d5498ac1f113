"""The interface of BridgeStan's Python class, over `varmat.stan.Program`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from varmat.functions.checks import check_integer, misfit
from varmat.stan import orders
from varmat.stan.program import Program
from varmat.typing import Function, Operand, Shape

__all__ = ["BridgeStanModel"]

_INCLUDES = "--include-paths="


class BridgeStanModel:
    """A Stan program with data, as ``StanModel`` of BridgeStan, without a compiler.

    Names, defaults and the order of elements are the same as in BridgeStan: the first index of an
    array or matrix varies fastest in names and in constrained values. Points that the model refuses
    raise ``RuntimeError``, as there.

    Parameters
    ----------
    model_lib : str or Path
        The path of a Stan program, which ends in ``.stan``, or the text of one. A compiled library
        is refused.
    data : str, Path, dict or None
        A text in Stan's JSON, the path of a file, or values by name.
    seed : int
        Seed for random numbers in transformed data.
    stanc_args : sequence of str
        ``--include-paths=`` with directories between commas is used; options that choose warnings
        or optimisations have no effect.
    make_args, capture_stan_prints, warn
        Without effect, because nothing is compiled.

    Raises
    ------
    StanError
        If the program has a mistake.
    TypeError, ValueError
        If data are missing, or do not fit their declarations.

    Examples
    --------
    >>> from varmat.stan import BridgeStanModel
    >>> model = BridgeStanModel('''
    ...     data { int N; array[N] int<lower=0, upper=1> y; }
    ...     parameters { real<lower=0, upper=1> theta; }
    ...     model { y ~ bernoulli(theta); }
    ... ''', '{"N": 4, "y": [0, 1, 0, 0]}')
    >>> model.param_names()
    ['theta']
    >>> value, gradient = model.log_density_gradient([0.0])
    >>> gradient
    array([-1.])
    """

    def __init__(
        self,
        model_lib: str | Path,
        data: str | Path | Mapping[str, object] | None = None,
        *,
        seed: int = 1234,
        stanc_args: Sequence[str] = (),
        make_args: Sequence[str] = (),
        capture_stan_prints: bool = True,
        warn: bool = True,
    ) -> None:
        if Path(model_lib).suffix in (".so", ".dll", ".dylib"):
            raise TypeError(
                f"BridgeStanModel: model_lib is {str(model_lib)!r}, but must be the path of a Stan "
                "program, because nothing is compiled!"
            )
        check_integer("BridgeStanModel", "seed", seed, 0)
        includes = [x.removeprefix(_INCLUDES) for x in stanc_args if _INCLUDES in x]
        self._program = Program(model_lib, [path for x in includes for path in x.split(",")])
        self._path, self._seed = str(model_lib), seed
        if isinstance(data, str) and data.lstrip().startswith("{"):
            data = json.loads(data)
        self._model = self._program.model(data or None, seed=seed)
        self._shape = (self._model.param_unc_num(),)

    @classmethod
    def from_stan_file(
        cls, stan_file: str | Path, model_data: str | None = None, **settings: Any
    ) -> BridgeStanModel:
        """Make a model, with the arguments of older versions."""
        return cls(stan_file, model_data, **settings)

    def __repr__(self) -> str:
        return f"BridgeStanModel({self.name()!r}, seed={self._seed})"

    # --- names and numbers ---

    def name(self) -> str:
        """Return the name of the file with ``_model``; "model" for a text."""
        return f"{Path(self._path).stem}_model" if self._path.endswith(".stan") else "model"

    def param_num(self, *, include_tp: bool = False, include_gq: bool = False) -> int:
        """Count the elements of the constrained parameters."""
        return self._model.param_num(include_tp, include_gq)

    def param_unc_num(self) -> int:
        """Return the size of the unconstrained vector."""
        return self._model.param_unc_num()

    def param_names(self, *, include_tp: bool = False, include_gq: bool = False) -> list[str]:
        """Name the elements of the constrained parameters, as ``m.2.1``."""
        shapes = self._model.shapes(include_tp, include_gq).items()
        return [label for name, shape in shapes for label in orders.elements(name, shape)]

    def param_unc_names(self) -> list[str]:
        """Name the elements of the unconstrained vector, in their order there: an array has whole
        elements in sequence, while BridgeStan's names let the first index vary fastest.
        """
        return orders.unconstrained_names(self._program.tree, self._model.layout)

    # --- values ---

    def new_rng(self, seed: int) -> np.random.Generator:
        """Make a generator for `param_constrain`."""
        check_integer("BridgeStanModel.new_rng", "seed", seed, 0)
        return np.random.default_rng(seed)

    def param_constrain(
        self,
        theta_unc: Operand,
        *,
        include_tp: bool = False,
        include_gq: bool = False,
        out: np.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> np.ndarray:
        """Return the constrained values in the order of `param_names`; generated quantities need
        `rng`.
        """
        if include_gq and rng is None:
            raise ValueError(
                "BridgeStanModel.param_constrain: rng is None, but must be what new_rng(seed) "
                "returned, because include_gq is True!"
            )
        q = self._vector("param_constrain", theta_unc)
        values = _called("param_constrain", self._model.constrain, q, include_tp, include_gq, rng)
        return _stored("param_constrain", "out", orders.by_columns(values.values()), out)

    def param_unconstrain(self, theta: Operand, *, out: np.ndarray | None = None) -> np.ndarray:
        """Return the unconstrained vector of constrained values in the order of `param_names`."""
        flat = self._vector("param_unconstrain", theta, "theta", (self.param_num(),))
        values = orders.from_columns(flat, self._model.shapes())
        return self._unconstrained("param_unconstrain", values, out)

    def param_unconstrain_json(
        self, theta_json: str, *, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the unconstrained vector of constrained values in Stan's JSON."""
        arguments = json.loads(theta_json).items()
        values = {label: x for name, item in arguments for label, x in orders.leaves(name, item)}
        return self._unconstrained("param_unconstrain_json", values, out)

    def _unconstrained(
        self, method: str, values: Mapping[str, object], out: np.ndarray | None
    ) -> np.ndarray:
        q = _called(method, self._model.layout.pack, f"BridgeStanModel.{method}", values)
        return _stored(method, "out", q, out)

    def log_density(
        self, theta_unc: Operand, *, propto: bool = True, jacobian: bool = True
    ) -> float:
        """Return the log density, without constant terms if `propto`, with the log-Jacobian of the
        transforms if `jacobian`.
        """
        q = self._vector("log_density", theta_unc)
        # The gradient is recorded, so it takes less time than a value that is not.
        function = self._model.log_density_gradient
        value, _ = _called("log_density", function, q, propto, jacobian)
        return float(value)

    def log_density_gradient(
        self,
        theta_unc: Operand,
        *,
        propto: bool = True,
        jacobian: bool = True,
        out: np.ndarray | None = None,
    ) -> tuple[float, np.ndarray]:
        """Return the log density and its gradient."""
        name, function = "log_density_gradient", self._model.log_density_gradient
        q = self._vector(name, theta_unc)
        value, gradient = _called(name, function, q, propto, jacobian)
        return value, _stored(name, "out", gradient, out)

    def log_density_hessian(
        self,
        theta_unc: Operand,
        *,
        propto: bool = True,
        jacobian: bool = True,
        out_grad: np.ndarray | None = None,
        out_hess: np.ndarray | None = None,
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the log density, its gradient and its exact Hessian."""
        name, function = "log_density_hessian", self._model.log_density_hessian
        q = self._vector(name, theta_unc)
        value, gradient, hessian = _called(name, function, q, propto, jacobian)
        gradient = _stored(name, "out_grad", gradient, out_grad)
        return value, gradient, _stored(name, "out_hess", hessian, out_hess)

    def log_density_hessian_vector_product(
        self,
        theta_unc: Operand,
        v: Operand,
        *,
        propto: bool = True,
        jacobian: bool = True,
        out: np.ndarray | None = None,
    ) -> tuple[float, np.ndarray]:
        """Return the log density, and its exact Hessian times a vector."""
        name = "log_density_hessian_vector_product"
        function = self._model.log_density_hessian_vector_product
        q, vector = self._vector(name, theta_unc), self._vector(name, v, "v")
        value, product = _called(name, function, q, vector, propto, jacobian)
        return value, _stored(name, "out", product, out)

    def _vector(
        self, method: str, x: object, title: str = "theta_unc", shape: Shape | None = None
    ) -> np.ndarray:
        vector, shape = np.asarray(x, float), self._shape if shape is None else shape
        if vector.shape != shape:
            raise misfit(f"BridgeStanModel.{method}", title, vector.shape, f"have shape {shape}")
        return vector


def _called(method: str, function: Function, *args: object) -> Any:
    """Call a function, and raise the exception of BridgeStan where the program raises."""
    try:
        return function(*args)
    except (ValueError, IndexError) as error:
        title = f"BridgeStanModel.{method}: "
        raise RuntimeError(f"{title}{str(error).removeprefix(title)}") from error


def _stored(method: str, title: str, x: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """Put a result into the array that the caller gave."""
    if out is None:
        return x
    if out.shape != x.shape:
        raise misfit(f"BridgeStanModel.{method}", title, out.shape, f"have shape {x.shape}")
    out[...] = x
    return out
