"""Sampling without Python: the recorded model as C functions that nutpie's threads call, where
llvmlite is installed.

Python is called where the recording does not hold. After sampling it makes generated quantities and
values that cannot be recorded. For these the sampler stores the points, which are removed from the
result.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from varmat.derivatives.recorded_programs import record_values
from varmat.interrupts import Attempt
from varmat.models.at_draws import AtDraws, quantities
from varmat.models.blocks import rows_of
from varmat.models.callbacks import Callbacks
from varmat.models.functions import of_values
from varmat.models.nuts import library, variables
from varmat.models.progress import Count
from varmat.models.results import Groups, check_shapes
from varmat.programs.run import has_native, runner_for
from varmat.typing import Operand, Result

# The name of the points among the values; no parameter and no quantity has such a name.
_POINT = " point"
# Points at which a log density that branches is recorded before sampling.
_WAYS = 32
# The groups of draws, and whether they come after the adaptation. The first is completed first, in
# case of an interrupt.
_GROUPS = {"posterior": True, "warmup_posterior": False}


def prepared(calls: Callbacks) -> NativeModel | None:
    """Prepare the recorded model for nutpie, started once. Return None if Python must evaluate
    it.
    """
    recorder, size = calls.model.recorder(), calls.model.param_unc_num()
    if recorder is None or not (size and has_native()):
        return None
    point = calls.start()
    if recorder.branches:  # the ways that it takes elsewhere
        for q in np.random.default_rng(0).uniform(-2.0, 2.0, (_WAYS, size)):
            with Attempt():
                recorder(q, True, True)
    if point is None or (recording := recorder.known(point, True, True)) is None:
        return None
    if recording.run.name != "native":
        return None
    return NativeModel(calls, point, recording.run)


class NativeModel:
    """A recorded model for nutpie.

    Parameters
    ----------
    calls : Callbacks
    point : ndarray
        Where the model has a density: its values are recorded there.
    density : NativeRunner
    """

    def __init__(self, calls: Callbacks, point: np.ndarray, density: Any) -> None:
        from varmat.programs.run import sampler

        self.calls, self._doubles, self._size = calls, sampler.doubles, point.size
        # Errors in values at draws. They are forgiven if the draws belong to the adaptation.
        self._refused: list[BaseException] = []
        self._parameters, self._transformed = (
            calls.model.shapes(),
            calls.model.shapes(include_tp=True),
        )
        values, varies = self._recorded_values(point)
        # Quantities are made from the stored draws if the values there are arrays of numbers.
        self._reads_draws = values is not None and all(varies)
        self._later = [
            name for name in calls.shapes if values is None or name not in self._transformed
        ]
        self._data = sampler.SamplerFunctions(
            density, values, self._density_at, self._values_at, bool(self._later)
        )

    def _recorded_values(self, point: np.ndarray) -> tuple[Any, list[bool]]:
        """Return a runner for the program of the named values, and which of them vary; None if they
        cannot be recorded at a point, or do not run natively.
        """
        with Attempt():
            program, varies = record_values(self._named_values, point)
            run = runner_for(program)
            if run.name == "native" and [v.shape for v in program.outputs[1:]] == list(
                self._transformed.values()
            ):
                return run, varies
        return None, []

    def _named_values(self, q: object) -> list[Result]:
        """Return parameters and transformed parameters."""
        model = self.calls.model
        values = model.completed(model.layout.unpack(q, False)[0])
        return [values[name] for name in self._transformed]

    # --- called from the threads of the sampler ---

    def _density_at(self, point: int, gradient: int, value: int) -> int:
        """Compute the density where the recording does not hold; return 1 if the point is
        rejected.
        """
        try:
            density, slope = self.calls.log_density(self._doubles(point, self._size).copy())
        # A refusal, or kept among the failures: compiled code can only print it.
        except BaseException:
            if self.calls.failures:
                self._data.refuse()
            return 1
        if not math.isfinite(density):
            return 1
        self._doubles(gradient, self._size)[...], self._doubles(value, 1)[...] = slope, density
        return 0

    def _values_at(self, point: int, draw: int, _: int) -> int:
        """Compute the values at a draw where their recording does not hold; nan if they are
        rejected.
        """
        result = sum(map(math.prod, self._transformed.values()))
        q, place = self._doubles(point, self._size).copy(), self._doubles(draw, result)
        try:
            with np.errstate(all="ignore"):
                values = self.calls.model.constrain(q, True)
            check_shapes("Model.sample", values, self._transformed)
        # Any, which is kept: compiled code can only print it.
        except BaseException as error:
            values = self.calls.parameters_only(q)
            if of_values(error):
                self._refused.append(error)
            else:
                self.calls.failures.append(error)
                self._data.refuse()
        place[...] = np.concatenate([np.ravel(values[name]) for name in self._transformed])
        return 0

    # --- before and after sampling ---

    def compiled(self, start: Callable[[int], np.ndarray]) -> Any:
        """Return the model in nutpie's form; `start` returns the start of the chain."""
        shapes, nuts = dict(self.calls.shapes), library()
        if self._later:
            shapes[_POINT] = (self._size,)
        result, sizes = variables(shapes)
        user, total = self._data.user.ctypes.data, sum(map(math.prod, shapes.values()))
        density = nuts.LogpFunc(self._data.log_density, user, self._data)
        expand = nuts.ExpandFunc(self._size, total, self._data.expand, user, self._data)
        return nuts.PyMcModel(density, expand, result, self._size, sizes, {}, start, None)

    def completed(self, result: Groups, progress_bar: bool = False) -> Groups:
        """Add the values that are made after sampling to the result, and remove the points."""
        if self._later:
            groups = [group for group in _GROUPS if group in result]
            total = sum(math.prod(result[group][_POINT].shape[:2]) for group in groups)
            count = Count("Generated quantities", total, progress_bar)
            at_draws = self._at_draws()
            try:
                for group in groups:
                    self._complete(result[group], _GROUPS[group], count, at_draws, total)
            except KeyboardInterrupt:  # return what there is, as nutpie does
                self._leave_out([result[group] for group in groups], count.done)
                missing = (name for name in self._later if name not in self._parameters)
                names = ", ".join(missing) or "none"
                text = (
                    f"interrupted after sampling: of {total} draws {total - count.done} lack "
                    f"quantities ({names}), which are nan"
                )
                warnings.warn(f"Model.sample: {text}", UserWarning, stacklevel=4)
            for group in groups:
                del result[group][_POINT]
        elif self._refused:
            draws = result["posterior"]
            self.calls.lost += self._refused[:1] * int(np.sum(self._is_refused(draws, 2)))
        return self.calls.completed(result)

    def _is_refused(self, values: dict[str, Operand], axes: int = 0) -> np.ndarray:
        """Return whether values have been rejected, at each draw along their first axes."""
        names = [
            name for name in self._transformed if name not in self._parameters
        ] or self._parameters
        arrays = [np.isnan(values[name]) for name in names]
        nan = [x.all(axis=tuple(range(axes, x.ndim))) for x in arrays]
        return np.asarray(np.all(nan, axis=0))

    def _at_draws(self) -> AtDraws | None:
        """Return the function of generated quantities at many draws, if it reads nothing else."""
        generated = self.calls.model.generated
        if not self._reads_draws or generated is None:
            return None
        return AtDraws(partial(quantities, generated), self._transformed)

    def _complete(
        self,
        draws: dict[str, np.ndarray],
        is_kept: bool,
        count: Count,
        at_draws: AtDraws | None,
        total: int,
    ) -> None:
        """Add to a group of draws the values that are made after sampling, of `total` draws."""
        calls, points = self.calls, draws[_POINT]
        there = ~np.isnan(points).all(axis=2)  # not where a chain was interrupted
        rng = np.random.default_rng([calls.seed, is_kept])
        if at_draws is not None and there.any():
            with Attempt():
                rows = rows_of({name: draws[name] for name in self._transformed})[there.ravel()]
                result = None
                if at_draws.pays(rows[0], total):
                    with np.errstate(all="ignore"):
                        result = at_draws.everywhere(rows, rng)
                if result is not None and all(
                    x.shape[1:] == calls.shapes.get(name) for name, x in result.items()
                ):
                    for name, x in result.items():
                        draws[name][there] = x
                    count.add(there.size)
                    return
        for chain, draw in np.ndindex(there.shape):
            if there[chain, draw]:
                q = points[chain, draw]
                rng = calls.rng(calls.tune * is_kept + draw + 1, q)
                row = {name: draws[name][chain, draw] for name in self._transformed}
                with Attempt() as refused:
                    with np.errstate(all="ignore"):
                        values = self._values_with_quantities(q, row, rng)
                    check_shapes("Model.sample", values, calls.shapes)
                if refused.error is not None:
                    values = calls.parameters_only(q)
                    if is_kept or not of_values(refused.error):
                        calls.lost.append(refused.error)
                for name in self._later:
                    draws[name][chain, draw] = values[name]
            count.add()

    def _leave_out(self, groups: list[dict[str, np.ndarray]], done: int) -> None:
        """Remove values made after sampling from all but the first draws. Keep parameters, because
        they are cheap to compute.
        """
        indices = (
            (group, place) for group in groups for place in np.ndindex(group[_POINT].shape[:2])
        )
        for group, place in islice(indices, done, None):
            q = group[_POINT][place]
            with np.errstate(all="ignore"):
                values = {} if np.isnan(q).all() else self.calls.model.constrain(q)
            for name in self._later:
                group[name][place] = values.get(name, np.nan)

    def _values_with_quantities(
        self, q: np.ndarray, row: dict[str, Operand], rng: np.random.Generator
    ) -> dict[str, Operand]:
        model = self.calls.model
        if not self._reads_draws or (self._refused and self._is_refused(row)):
            return model.constrain(q, True, True, rng)
        return model.with_quantities(row, rng)
