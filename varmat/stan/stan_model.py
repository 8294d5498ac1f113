"""The model of a Stan program with data."""

from __future__ import annotations

import math
import timeit
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from varmat.core.errors import DomainError
from varmat.derivatives.recorded import RecordedIfPossible
from varmat.derivatives.reverse import Terms
from varmat.models.model import Model
from varmat.stan import representation as forms
from varmat.stan.running import Evaluation
from varmat.stan.values import StanValue
from varmat.typing import Function, Operand, Result

if TYPE_CHECKING:
    from varmat.stan.program import Blocks

__all__: list[str] = []

# Expressions that loops may evaluate to be traced for sampling, which takes up to 10 s.
LONGEST = 400_000
# What tracing one of them takes.
TRACE_SECONDS = 2e-5


class StanModel(Model):
    """A Stan program with data, as `Program.model` makes it."""

    _takes_indices_from_zero = False

    def __init__(self, blocks: Blocks, forced: forms.Forced) -> None:
        self._blocks, self._forced = blocks, forced

        # The values by name are `_`, because no name of a program is like it.
        def log_density(_: Mapping[str, StanValue], propto: bool) -> list[StanValue]:
            return blocks.terms(Evaluation(propto), _)

        def transformed_parameters(_: Mapping[str, StanValue]) -> dict[str, StanValue]:
            return blocks.transformed(_)

        def generated_quantities(
            _: Mapping[str, StanValue], rng: np.random.Generator
        ) -> dict[str, StanValue]:
            return blocks.generated(_, rng)

        super().__init__(
            log_density,
            blocks.parameters,
            data=blocks.data,
            transformed_parameters=transformed_parameters if blocks.transforms else None,
            generated_quantities=generated_quantities if blocks.generates else None,
        )
        # The evaluation is recorded once, because nothing that it reads can change.
        self.recorded, self._value_and_grad = True, RecordedIfPossible(self._target, 0)

    def with_data(self, /, **_: Operand) -> NoReturn:
        """Refused: call ``program.model(data)`` with all data, because they decide the sizes."""
        raise TypeError(
            "with_data: data decide the sizes of a Stan program: call program.model(data) again!"
        )

    def for_many_calls(self, spent: float = math.inf) -> Self:
        """This model, recorded with longer loops traced if its gradient is faster then, once
        gradients have taken as long as that takes.
        """
        tracing, q = self._blocks.translator.tracing, np.zeros(self.param_unc_num())
        now: Any = self._value_and_grad
        with suppress(DomainError):
            if spent == math.inf:  # there may be no recording yet
                now(q, True, True)
            longer = sum(tracing.left_out.values())
            if now.obstacle is None and 0 < longer <= min(LONGEST, spent / TRACE_SECONDS):
                other = RecordedIfPossible(self._target, 0)
                with tracing.up_to(LONGEST):
                    other(q, True, True)
                if other.obstacle is None and _seconds(other, q) < _seconds(now, q):
                    self._value_and_grad = other
                tracing.left_out.clear()
        return self

    def representation(self) -> forms.Representation:
        """As `Program.representation`, and what the recording makes of each loop that is run pass
        by pass: loops again, or operations one by one.
        """
        recorded = forms.recorded_loops(self.param_unc_num(), self._evaluated)
        return forms.representation(self._blocks.tree, self._forced, recorded)

    def _terms(self, q: Operand, propto: bool, jacobian: bool) -> Result:
        return self._evaluated(q, Evaluation(propto, jacobian))

    def _evaluated(self, q: Operand, run: Evaluation) -> Result:
        values, log_jacobians = self.layout.unpack(q, run.jacobian)
        run.terms.extend(log_jacobians)  # in front, because `target()` counts them
        with np.errstate(all="ignore"):
            return Terms(self._blocks.terms(run, values))

    constrain = np.errstate(all="ignore")(Model.constrain)


def _seconds(recorded: Function, q: np.ndarray) -> float:
    """The shortest time of a few calls."""
    return min(timeit.repeat(lambda: recorded(q, True, True), number=3))
