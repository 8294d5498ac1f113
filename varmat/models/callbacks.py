"""The Python functions that a sampler calls, and what becomes of their errors.

nutpie calls them from worker threads, one per chain. An error whose ``is_recoverable`` is true
(`DomainError`) rejects the point. Any other ends the sampling. It is kept here, with the line of
the model in its traceback, and every later point is refused, so that all chains end at once. The
threads of nutpie would panic if they were given the error.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, product
from typing import Any

import numpy as np

from varmat.core.errors import DomainError
from varmat.interrupts import Attempt, from_signal
from varmat.models.functions import of_values, recoverable
from varmat.models.gradients import DensityModel
from varmat.models.nuts import library, variables
from varmat.models.results import LOST, Groups, check_shapes, lost_values
from varmat.models.starts import Starts, random_start
from varmat.typing import Shape

# nutpie is given this for a derivative that is zero; `varmat.programs.run.sampler` has it too.
_FLAT = 1e-10


class Callbacks:
    """The functions of a model that a sampler calls.

    Parameters
    ----------
    model : DensityModel
    seed : int
        Seed for the generated quantities.
    starts : Starts, optional
        Where chains start.
    tune : int
        How many draws of each chain are for adaptation.
    chain : int
        The number of the first chain that they are asked for.

    Attributes
    ----------
    shapes : dict of str to tuple of int
        The shapes of all named values at a draw.
    kinds : dict of str to numpy.dtype
        The dtypes of the quantities that are integers or truth values.
    failures : list of BaseException
        Errors other than refusals of a point, in the order in which they came.
    lost : list of BaseException
        Errors in values at draws that are kept: the values are nan there.
    row : ndarray
        What chains report; the number of draws is counted first.
    """

    def __init__(
        self,
        model: DensityModel,
        seed: int,
        starts: Starts | None = None,
        tune: int = 0,
        chain: int = 0,
    ) -> None:
        self.model = model
        self.seed = seed
        self.starts, self.chain = starts or Starts(), chain
        self.tune = tune
        example = model.example(include_tp=True, include_gq=True)
        self.shapes: dict[str, Shape] = {name: np.shape(x) for name, x in example.items()}
        dtypes = {name: np.asarray(x).dtype for name, x in example.items()}
        self.kinds = {name: dtype for name, dtype in dtypes.items() if dtype.kind in "biu"}
        self.failures: list[BaseException] = []
        self.lost: list[BaseException] = []
        self.expansions = count(chain)
        self.row = np.zeros(1)

    @property
    def calls(self) -> Callbacks:
        """The functions of Python that are called: these."""
        return self

    @contextmanager
    def failing_first(self) -> Iterator[None]:
        """Raise the first of the failures, instead of what the sampler raises because of it."""
        try:
            yield
        # A panic of nutpie, in any thread, is not an Exception.
        except BaseException:
            if not self.failures:
                raise
        if self.failures:
            raise self.failures[0]

    def initial_point(self, seed: int, chain: int | None = None) -> np.ndarray:
        """Find where a chain starts, because nutpie does not say why it finds no start."""
        centre = self.starts.of(self.chain if chain is None else chain)

        standardised = self.model.layout.standardised

        def accepts(q: np.ndarray) -> bool:
            value, gradient = self._density_at(standardised(q))
            if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
                return False
            if not gradient.all():  # nutpie scales its first steps by the gradient
                names = self.model.unconstrained_names_at(gradient == 0.0)
                raise DomainError(
                    f"the log density is flat in {names}: a prior or a bound may be missing"
                )
            return True

        rng, size = np.random.default_rng(seed), self.model.param_unc_num()
        radius = self.starts.radius

        def blame(q: np.ndarray) -> str:
            return self.model.blame(standardised(q))

        try:
            q = random_start(rng, size, accepts, centre, blame=blame, radius=radius)
            return standardised(q)
        except DomainError as error:
            self.failures.append(error)
            raise

    def start(self) -> np.ndarray | None:
        """Find a point with a density. Return None if none has; the error is among the
        failures.
        """
        try:
            return self.initial_point(self.seed)
        except DomainError:
            return None

    def rng(self, draws: int, q: np.ndarray, chain: int = 0) -> np.random.Generator:
        """Make the generator for the quantities at a draw, given the draw's number in the chain.

        They depend on the draw, not on which thread ran the chain, for nutpie does not say which
        chain it is. The number tells draws of no parameters apart.
        """
        return np.random.default_rng(
            [self.seed, draws, zlib.crc32(q.tobytes()) if q.size else chain]
        )

    def log_density(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log density and its gradient; all errors that it raises are recoverable."""
        value, gradient = self._density_at(q)
        # nutpie gives up where the density is flat. Any gradients are correct there, because points
        # are accepted by the density.
        return value, gradient if gradient.all() else np.where(gradient == 0.0, _FLAT, gradient)

    def _density_at(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        if self.failures:
            raise DomainError("the model has failed")
        try:
            # A sampler tries points that overflow, which need not concern the user.
            with np.errstate(all="ignore"):
                result: tuple[float, np.ndarray] = self.model.log_density_gradient(q)
                return result
        # Any, SystemExit too: nutpie's threads would panic.
        except BaseException as error:
            if recoverable(error):
                raise
            self.failures.append(error)
            raise DomainError("the model has failed") from error

    def make_expand(self, *_: int) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        """Make a function for one chain that returns all named values at a draw."""
        draws, number = 0, next(self.expansions)

        def expand(q: np.ndarray) -> dict[str, np.ndarray]:
            nonlocal draws
            draws += 1
            self.row[0] += 1
            rng = self.rng(draws, q, number)
            try:
                with np.errstate(all="ignore"):
                    values = self.model.constrain(q, True, True, rng)
                check_shapes("Model.sample", values, self.shapes)
            # Any, as above.
            except BaseException as error:
                if draws > self.tune and isinstance(error, Exception) and not from_signal(error):
                    self.lost.append(error)
                elif not of_values(error):
                    self.failures.append(error)
                values = self.parameters_only(q)
            return {name: np.asarray(values[name], float) for name in self.shapes}

        return expand

    def parameters_only(self, q: np.ndarray) -> dict[str, Any]:
        """Return the parameters at a draw, with nan for all that follows from them."""
        values: dict[str, Any] = {name: np.full(s, np.nan) for name, s in self.shapes.items()}
        with Attempt(), np.errstate(all="ignore"):
            values |= self.model.constrain(q)
        return values

    def compiled(self, start: Callable[[int], np.ndarray]) -> Any:
        """Return the model in nutpie's form; `start` returns the start of the chain."""
        (result, sizes), size = variables(self.shapes), self.model.param_unc_num()
        make = (lambda: self.log_density), self.make_expand
        others = {"dim_sizes": sizes, "coords": {}, "init_point_func": start}
        return library().PyModel(*make, result, size, **others, transform_adapter=None)

    def completed(self, result: Groups, progress_bar: bool = False) -> Groups:
        """Complete the result of a sampler, and restore the dtypes that nutpie changed."""
        draws = [result[x] for x in ("posterior", "warmup_posterior") if x in result]
        for group, (name, dtype) in product(draws, self.kinds.items()):
            with np.errstate(invalid="ignore"):
                saved = group[name].astype(dtype)
            if np.array_equal(saved, group[name]):  # not where a quantity is missing
                group[name] = saved
        if self.lost:
            result[LOST] = lost_values(self.lost)
        return result
