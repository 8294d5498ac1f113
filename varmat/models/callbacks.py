"""What a sampler calls in Python, and what becomes of errors.

nutpie calls from worker threads, one per chain. An error that says ``is_recoverable`` rejects the
point, as a `DomainError` does. Any other ends the sampling: it is kept here, with the line of the
model in its traceback, and from then on every point is refused, by which all chains come to their
end at once. (Handed to nutpie it would panic in the worker threads.)"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from varmat.core.errors import DomainError
from varmat.models.functions import of_values, recoverable
from varmat.models.results import check_shapes, optional
from varmat.models.starts import names_at, random_start

# What nutpie is told of a derivative that is zero; `varmat.programs.runners.pointers` has it too.
_FLAT = 1e-10


class Callbacks:
    """The functions of a model that a sampler calls.

    Parameters
    ----------
    model : Model
    seed : int
        Of the generated quantities.
    centre : ndarray, optional
        Of the random starting points.
    tune : int
        How many draws of each chain are for adaptation.
    chain : int
        The number of the first chain that they are asked for.

    Attributes
    ----------
    shapes : dict of str to tuple of int
        Of all named values at a draw.
    failures : list of BaseException
        Errors other than refusals of a point, in the order in which they came.
    """

    def __init__(
        self, model: Any, seed: int, centre: np.ndarray | None = None, tune: int = 0, chain: int = 0
    ) -> None:
        self.model = model
        self.seed = seed
        self.centre = centre
        self.tune = tune
        self.shapes: dict[str, tuple[int, ...]] = model.shapes(include_tp=True, include_gq=True)
        self.failures: list[BaseException] = []
        self.expansions = count(chain)

    def initial_point(self, seed: int) -> np.ndarray:
        """For one chain: where it starts. nutpie's own choice knows no centre, and does not say
        what is wrong if there is none.
        """

        def accepts(q: np.ndarray) -> bool:
            value, gradient = self._density_at(q)
            if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
                return False
            if not gradient.all():  # nutpie scales its first steps by the gradient
                raise DomainError(
                    f"the log density is flat in {names_at(self.model, gradient == 0.0)}: a prior "
                    "or a bound may be missing"
                )
            return True

        try:
            return random_start(
                np.random.default_rng(seed), self.model.param_unc_num(), accepts, self.centre
            )
        except DomainError as error:
            self.failures.append(error)
            raise

    def start(self) -> np.ndarray | None:
        """A point with a density; None if there is none, which is among the failures."""
        try:
            return self.initial_point(self.seed)
        except DomainError:
            return None

    def rng(self, draws: int, q: np.ndarray, chain: int = 0) -> np.random.Generator:
        """The random numbers of the quantities at a draw, the number of which in its chain is
        given.

        They are of the draw itself, so that they do not depend on which thread ran which chain;
        nutpie does not say which chain it is, and draws of no parameters are alike."""
        return np.random.default_rng(
            [self.seed, draws, zlib.crc32(q.tobytes()) if q.size else chain]
        )

    def make_log_density(self) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """For one chain: the log density and its gradient."""
        return self.log_density

    def log_density(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """The log density and its gradient; whatever it raises is recoverable."""
        value, gradient = self._density_at(q)
        # nutpie gives up where the density is flat. Any field of gradients is right: the density
        # accepts points.
        return value, gradient if gradient.all() else np.where(gradient == 0.0, _FLAT, gradient)

    def _density_at(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        if self.failures:
            raise DomainError("the model has failed")
        try:
            # A sampler tries points at which things overflow; that is no news to the user.
            with np.errstate(all="ignore"):
                result: tuple[float, np.ndarray] = self.model.log_density_gradient(q)
                return result
        except BaseException as error:  # also what ends a program, or a test
            if recoverable(error):
                raise
            self.failures.append(error)
            raise DomainError("the model has failed") from error

    def make_expand(self, *_: int) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        """For one chain: all named values at a draw."""
        draws, number = 0, next(self.expansions)

        def expand(q: np.ndarray) -> dict[str, np.ndarray]:
            nonlocal draws
            draws += 1
            rng = self.rng(draws, q, number)
            try:
                with np.errstate(all="ignore"):
                    values = self.model.constrain(q, True, True, rng)
                check_shapes("Model.sample", values, self.shapes)
            except BaseException as error:
                if draws > self.tune or not of_values(error):
                    self.failures.append(error)
                values = {name: np.full(shape, np.nan) for name, shape in self.shapes.items()}
            return {name: np.asarray(values[name]) for name in self.shapes}

        return expand

    def compiled(self, coords: dict[str, Any], dims: dict[str, Any]) -> Any:
        """The model as nutpie takes it."""
        # nutpie writes into the dict of dimensions.
        from_pyfunc, dims = (
            optional("nutpie.compiled_pyfunc", "Model.sample").from_pyfunc,
            dict(dims),
        )
        return from_pyfunc(
            self.model.param_unc_num(),
            self.make_log_density,
            self.make_expand,
            [np.dtype(np.float64)] * len(self.shapes),
            list(self.shapes.values()),
            list(self.shapes),
            coords=coords,
            dims=dims,
            make_initial_point_fn=self.initial_point,
        )
