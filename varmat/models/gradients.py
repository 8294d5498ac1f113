"""The log density of a model and its gradient, at one point or at many, also on an executor."""

from __future__ import annotations

import copy
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.core.tape import Tape, nested
from varmat.core.variables import borrow_leaf, var
from varmat.core.variables import data as plain_data
from varmat.derivatives.hessians import hessian, hessian_times_vector
from varmat.derivatives.inputs_and_outputs import recording, scalar_result
from varmat.derivatives.recorded import Recorded, RecordedIfPossible, RecordedWithData, recorded
from varmat.derivatives.reverse import value_and_grad
from varmat.functions.checks import misfit
from varmat.interrupts import Attempt, Noted
from varmat.models.blocks import Draws, of_blocks
from varmat.models.density import NamedDensity
from varmat.models.functions import recoverable
from varmat.models.minibatches import MinibatchGradient
from varmat.models.unpacking import sum_of_terms
from varmat.programs.ir.program import RecordingError
from varmat.typing import Function, Operand, Plain

if TYPE_CHECKING:
    from concurrent.futures import Executor


_DENSITY = re.compile(r"_l(pdf|pmf|cdf|ccdf)\b")
# From this number of points on, a recording pays.
_FEW = 8


class DensityModel(NamedDensity):
    """A `NamedDensity` with derivatives of its log density, recorded if it wants to.

    Attributes
    ----------
    sampler_words : dict of str to str, optional
        The names of settings of `Model.sample` in warnings -> those of what calls it.
    """

    sampler_words: Mapping[str, str] | None = None

    @cached_property
    def log_density_gradient(self) -> LogDensityGradient:
        """The log density and its gradient at a point: ``log_density_gradient(q, propto=True,
        jacobian=True)``.

        Parameters and errors are as in `log_density`; the result is the value, a float, and the
        gradient, an array of shape ``(N,)``. The method ``map`` of it takes many points at once,
        and an executor: ``log_density_gradient.map(points)``, see `LogDensityGradient`."""
        return LogDensityGradient(self)

    def __getstate__(self) -> dict[str, Operand]:
        """Return the state without derivatives, because a copy makes its own."""
        result = ("log_density_gradient", "_hessian")
        return {name: x for name, x in vars(self).items() if name not in result}

    def for_many_calls(self, spent: float = math.inf) -> Self:
        """Return the model, recorded if it can be and should be; only for the time of one call.
        Gradients have taken `spent` seconds, or will take many.
        """
        if self.recorded is not None:
            return self
        return self._copy(recorded=True, _value_and_grad=RecordedIfPossible(self._target, 0))

    def standardised(self, scale: np.ndarray) -> Self:
        """Return the model in other coordinates: the unconstrained vector is a scale times
        these.
        """
        model = copy.copy(self)
        model.layout = copy.copy(self.layout)
        model.layout.scale = scale
        return model.renewed()

    def renewed(self) -> Self:
        """Copy the model, with separate derivatives."""
        of = value_and_grad if self.recorder() is None else Recorded
        return self._copy(_value_and_grad=of(self._target, 0))

    def as_written(self) -> Self:
        """Copy the model, with recording switched off if it is on."""
        if self.recorder() is None:
            return self
        return self._copy(_value_and_grad=value_and_grad(self._target, 0))

    def _copy(self, **changed: object) -> Self:
        model = copy.copy(self)
        vars(model).update(changed)
        return model

    def recorder(self) -> Recorded[Any] | None:
        """Return the recorded log density; None if it is evaluated as it is written."""
        return self._value_and_grad if isinstance(self._value_and_grad, Recorded) else None

    @contextmanager
    def traced(self, q: np.ndarray) -> Iterator[Tape]:
        """Evaluate the log density at a point, for a look at the tape."""
        with nested() as tape, np.errstate(all="ignore"):
            self._target(var(q), True, True)
            yield tape

    @cached_property
    def _hessian(self) -> Function:
        second: Function = hessian(self._target)
        return recorded(second) if isinstance(self._value_and_grad, Recorded) else second

    def log_density(self, q: Operand, propto: bool = True, jacobian: bool = True) -> float:
        """Compute the log density at an unconstrained point.

        Parameters
        ----------
        q : array_like, shape (N,)
        propto : bool
            Passed to the function of the user if it takes it, and otherwise of no effect.
        jacobian : bool
            Add the log-Jacobian of the transforms: the density is then one of `q`, not of the
            parameters.

        Returns
        -------
        float

        Raises
        ------
        DomainError
            If a function of the model refuses the point.
        ShapeError
            If `q` has another shape, or the function of the user returned an array.

        Notes
        -----
        Once a gradient has been recorded, the recording gives the value, in microseconds.
        """
        point, recorder = self.point("log_density", q), self.recorder()
        if recorder is not None and recorder.known(point, propto, jacobian) is not None:
            return float(recorder(point, propto, jacobian)[0])
        # Called with plain numbers and propto, a density would drop all its terms.
        with recording() as tape:
            y = self._target(borrow_leaf(point, tape), propto, jacobian)
            y = scalar_result("log_density", y, tape)
            return y if type(y) is float else float(y.val)

    def minibatch_gradient(
        self, rows: str | Sequence[str] | None = None, *, jacobian: bool = True
    ) -> MinibatchGradient:
        """Make the function that estimates the log density and its gradient from some rows of the
        data, for stochastic optimisers and variational inference.

        Parameters
        ----------
        rows : str or sequence of str, optional
            The names of the observations and data that have rows. By default all observations, and
            all data with as many rows.
        jacobian : bool
            As in `log_density`.

        Returns
        -------
        MinibatchGradient
            A function of the unconstrained point and the indices of rows. It is recorded once for
            each number of indices, and then holds for other rows.

        Raises
        ------
        TypeError
            If the model has no observations with names, or discrete parameters, or missing
            observations among the rows, or data of a name do not exist.
        ShapeError
            If observations have different numbers of rows.

        Notes
        -----
        The log-likelihood of the rows is multiplied by the number of all rows over the number of
        indices. Priors, and terms of the log density under other names, count once. Observations
        must be independent given the parameters, and parameters must not have an element for each
        row.

        The first call for a number of indices evaluates the model at all rows too. It shows which
        numbers of the recording belong to rows, and holds the data: later changes of an array are
        not seen. If the model cannot be recorded, each call evaluates its functions; `obstacle` of
        the result is the reason. With ``recorded=False`` nothing is recorded.

        Examples
        --------
        >>> import numpy as np, varmat as vm, varmat.distributions as dist
        >>> model = vm.Model(
        ...     mu=vm.real(prior=dist.Normal(0, 5)),
        ...     y=vm.observed([1.0, 3.0, 2.0, 4.0], lambda mu: dist.Normal(mu, 1.0)),
        ... )
        >>> gradient = model.minibatch_gradient()
        >>> batches = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
        >>> slopes = [gradient([0.5], rows)[1] for rows in batches]
        >>> np.mean(slopes, axis=0), model.log_density_gradient([0.5])[1]
        (array([7.98]), array([7.98]))
        """
        return MinibatchGradient(self, rows, jacobian)

    def log_density_hessian(
        self, q: object, propto: bool = True, jacobian: bool = True
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Compute the log density, its gradient and its exact Hessian; parameters and errors as in
        `log_density`.

        Returns
        -------
        value : float
        gradient : ndarray, shape (N,)
        hessian : ndarray, shape (N, N)
        """
        q = self.point("log_density_hessian", q)
        if isinstance(self._value_and_grad, RecordedWithData) and self._value_and_grad.refresh():
            vars(self).pop("_hessian", None)
        first = self._value_and_grad(q, propto, jacobian)
        try:
            return *first, self._hessian(q, propto, jacobian)
        except RecordingError:
            self._hessian = hessian(self._target)
            return *first, self._hessian(q, propto, jacobian)

    def log_density_hessian_vector_product(
        self, q: object, v: object, propto: bool = True, jacobian: bool = True
    ) -> tuple[float, np.ndarray]:
        """Compute the log density and its exact Hessian times a vector, without the Hessian.

        Parameters
        ----------
        q, v : array_like, shape (N,)
            The point, and the vector.
        propto, jacobian : bool
            As in `log_density`.

        Returns
        -------
        value : float
        product : ndarray, shape (N,)
        """
        function = "log_density_hessian_vector_product"
        q, v = self.point(function, q), self.point(function, v, "v")
        product: Plain = hessian_times_vector(self._target, q, v, propto, jacobian)
        return self.log_density(q, propto, jacobian), product

    def blame(self, q: np.ndarray) -> str:
        """Name the reason for a density of zero at a point: data, a prior, or the first result that
        is not finite; empty if all are.
        """
        result = self.stated.impossible(lambda q: self.constrain(q, True), q)
        return result or self._not_finite(q)

    def _not_finite(self, q: np.ndarray) -> str:
        """Name the first result at a point that is not finite, of a density if there is one."""
        results = ""
        with self.traced(q) as tape:
            for rule, result, _, _ in tape:
                value = getattr(result, "_val", 0.0)
                if type(value) is tuple:  # the results of one step, of different shapes
                    continue
                x = np.asarray(value)
                bad = np.argwhere(~np.isfinite(x))
                if len(bad):
                    place = f"[{', '.join(map(str, bad[0]))}]" if x.ndim else ""
                    name = "the log density" if rule.op is sum_of_terms else rule.name
                    text = f"at the last of these, {name}{place} is {x[tuple(bad[0])].item()}"
                    if _DENSITY.search(rule.name):
                        return text
                    results = results or text
        return results


class LogDensityGradient:
    """The log density of a model and its gradient; the attribute `log_density_gradient` of a
    `Model`.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: DensityModel) -> None:
        self._model, self._shape = model, (model.param_unc_num(),)
        self._seconds = 0.0  # that calls of `map` have taken

    def __repr__(self) -> str:
        return f"{self._model!r}.log_density_gradient"

    def __call__(
        self, q: Operand, propto: bool = True, jacobian: bool = True
    ) -> tuple[float, np.ndarray]:
        """Compute the log density and its gradient; parameters and errors as in
        `Model.log_density`.

        Returns
        -------
        value : float
        gradient : ndarray, shape (N,)
        """
        if type(q) is not np.ndarray or q.dtype is not FLOAT64 or q.shape != self._shape:
            q = self._model.point("log_density_gradient", q)
        result: tuple[float, Any] = self._model._value_and_grad(q, propto, jacobian)
        return result

    def map(
        self,
        points: Operand,
        executor: Executor | str | None = None,
        propto: bool = True,
        jacobian: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the log density and its gradient at many points.

        Parameters
        ----------
        points : array_like, shape (m, N)
            A point in each row.
        executor : concurrent.futures.Executor, str or None
            Who computes: any executor, ``"threads"``, ``"processes"`` (those of loky) or
            ``"serial"`` (this thread). By default this process: a recording that runs natively in
            one thread for each processor, anything else point by point.
        propto, jacobian : bool
            As in `Model.log_density`.

        Returns
        -------
        values : ndarray, shape (m,)
            Minus infinity at a point that the model refuses, with a `DomainError`: the density is
            zero there.
        gradients : ndarray, shape (m, N)
            nan at such a point, because no gradient exists.

        Raises
        ------
        ShapeError
            If `points` has another shape.
        TypeError
            If `executor` is not an executor, or the model cannot be sent to another process.
        Exception
            Any other error of the model, with a note that says at which point, counted from 0.

        Notes
        -----
        A single call raises the refusal of a point instead, which says what is wrong with it. Of
        many points the others are wanted too, and samplers and optimisers take a density of zero.

        With 8 points or more the model is recorded for the time of the call, unless it has
        ``recorded=False``: what its functions read must not change meanwhile. A worker of another
        process is sent the model once in each call, and with each block its points.

        A Stan program with long loops is recorded again, in up to 10 s, once calls have taken as
        long as that will: its loops are then traced iteration by iteration, and if that makes
        gradients faster they are computed so from then on.

        Examples
        --------
        >>> import numpy as np, varmat as vm
        >>> model = vm.Model(lambda scale: vm.normal_lpdf(1.0, 0.0, scale), scale=vm.real())
        >>> values, gradients = model.log_density_gradient.map([[1.0], [2.0], [-1.0]])
        >>> values
        array([-1.41893853, -1.73708571,        -inf])
        >>> gradients[:, 0]
        array([ 0.   , -0.375,    nan])
        """
        name = "log_density_gradient.map"
        points = plain_data(points, f"{name}: points")
        size = self._model.param_unc_num()
        if np.ndim(points) != 2 or np.shape(points)[1] != size:
            raise misfit(name, "points", np.shape(points), f"have shape (m, {size})")
        points, start = np.ascontiguousarray(points, float), time.perf_counter()
        if self._model.recorded:
            self._model.for_many_calls(self._seconds)
        block = _Block(self._model, propto, jacobian, len(points), executor is None)
        result = of_blocks(name, block, points, executor)
        self._seconds += time.perf_counter() - start
        if len(result) != 1:
            values = np.concatenate([np.empty(0), *(x[0] for x in result)])
            return values, np.concatenate([np.empty((0, size)), *(x[1] for x in result)])
        ((values, gradients),) = result
        return values, gradients


class _Block:
    """Sent to the workers; gives the values and gradients at a block of points."""

    def __init__(
        self, model: DensityModel, propto: bool, jacobian: bool, count: int, is_alone: bool
    ) -> None:
        self._options, self._is_alone = (propto, jacobian), is_alone
        # A recording is safe here: the data of the functions do not change during the call.
        is_for_many = model.recorded is None and count >= _FEW
        self._model = model.for_many_calls() if is_for_many else model

    def __call__(self, block: Draws) -> tuple[np.ndarray, np.ndarray]:
        # An array that was sent has an equal dtype, not the same object.
        start, points = block.start, plain_data(block.rows, "log_density_gradient.map: points")
        values, gradients = np.empty(len(points)), np.empty(points.shape)
        left: Iterable[int] = range(len(points))
        recorder = self._model.recorder()
        if len(points) and recorder is not None:
            recording = recorder.known(points[0], *self._options)
            if recording is None:
                self._at(points, 0, start, values, gradients)  # records it
                recording = recorder.known(points[0], *self._options)
            if recording is not None:
                threads = None if self._is_alone else "serial"
                recording.run.map([points], [values, gradients], threads)
                # The function itself is called where the program stopped, or is not finite.
                holds = np.isfinite(values)
                left = () if holds.all() else np.flatnonzero(~holds).tolist()
        for i in left:
            self._at(points, i, start, values, gradients)
        return values, gradients

    def _at(
        self, points: np.ndarray, i: int, start: int, values: np.ndarray, gradients: np.ndarray
    ) -> None:
        """Store the value and the gradient at one point."""
        values[i], gradients[i] = -np.inf, np.nan
        with (
            Attempt(recoverable),
            Noted(f"log_density_gradient.map: at point {start + i}, counted from 0"),
        ):
            values[i], gradients[i] = self._model.log_density_gradient(points[i], *self._options)
