"""Where the parameters of a model are in its unconstrained vector, and the way from there to
their values and back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.variables import ARRAYS, data
from varmat.derivatives.structure import shaped
from varmat.distributions.distribution import Distribution
from varmat.functions.checks import misfit
from varmat.models.bounds import Dependent
from varmat.models.unpacking import BoundedParameter, part_of, read_off
from varmat.transforms import Real, Transform
from varmat.typing import Index, Operand, Plain, Shape


def indexed(name: str, shape: Shape) -> list[str]:
    """Name every element, counted from one: ``theta.1``; the last index runs fastest."""
    return [".".join([name, *(str(i + 1) for i in index)]) for index in np.ndindex(*shape)]


class Layout:
    """The parameters of a model, in order.

    Parameters
    ----------
    parameters : dict of str to Transform
    given : Mapping
        Data, on which bounds may depend.

    Attributes
    ----------
    parameters, given
    size : int
        Number of unconstrained elements.
    scale : ndarray or None
        The vector is this matrix, or these numbers, times the unconstrained one: standardised
        coordinates, in which a sampler moves.
    """

    scale: np.ndarray | None = None

    def __init__(self, parameters: Mapping[str, Transform], data: Mapping[str, object]) -> None:
        self.parameters = dict(parameters)
        self.given = data
        # For each parameter its name, its index in the vector, the shape if it is not a scalar or
        # vector, and its transform.
        self._entries: list[tuple[str, Index, Shape | None, Transform | None]] = []
        parts: dict[str, BoundedParameter] = {}
        start = 0
        for name, transform in self.parameters.items():
            self._check(name, transform)
            shape, size = transform.unconstrained_shape, transform.unconstrained_size
            where = slice(start, start + size) if shape else start
            inner, result = shape if len(shape) > 1 else None, transform
            self._entries.append((name, where, inner, None if type(result) is Real else result))
            simple = part_of(transform, where)
            if simple is not None:
                parts[name] = simple
            start += size
        self.size = start
        self._simple, self._parts = tuple(parts), tuple(parts.values())

    def _check(self, name: str, transform: object) -> None:
        if not isinstance(transform, Transform):
            kind, remedy = type(transform).__name__, "data go into data={...}"
            if isinstance(transform, Distribution):
                remedy = f"varmat.real(prior=...) takes a {kind}"
            raise TypeError(
                f"Model: {name} is a {kind}, but must be a parameter such as varmat.real(): "
                f"{remedy}!"
            )
        if isinstance(transform, Dependent):
            names = [entry[0] for entry in self._entries] + list(self.given)
            for function in transform.functions:
                # For a parameter that comes later the default would be used silently.
                for other in [
                    *function.needed,
                    *(x for x in function.optional if x in self.parameters),
                ]:
                    if other not in names:
                        raise TypeError(
                            f"Model: a bound of {name} is a function of {other!r}, but must be one "
                            "of parameters before it or of data: "
                            f"{', '.join(names) or 'there are none'}!"
                        )

    def unpack(self, q: Operand, jacobian: bool) -> tuple[dict[str, Operand], list[Operand]]:
        """Return the parameters at an unconstrained vector, by name, and the log-Jacobians to add
        up.
        """
        if self.scale is not None:
            q = self.scale * q if self.scale.ndim == 1 else self.scale @ q
        values: dict[str, Operand] = {}
        log_jacobians: list[Operand] = []
        together: dict[str, Operand] = {}
        if self._parts and type(q) in ARRAYS:
            *results, term = read_off(q, self._parts)
            together = dict(zip(self._simple, results, strict=True))
            if jacobian:
                log_jacobians.append(term)
        for name, where, shape, transform in self._entries:
            if name in together:
                values[name] = together[name]
                continue
            x = q[where]
            if shape is not None:
                x = x.reshape(shape)
            if transform is None:
                values[name] = x
                continue
            if type(transform) is Dependent:
                transform = transform.at({**self.given, **values} if self.given else values)
            if type(x) is np.float64:
                x = float(x)
            if jacobian:
                y, term = transform.constrain_with_log_jacobian(x)
                if type(term) is not float or term:
                    log_jacobians.append(term)
            else:
                y = transform.constrain(x)
            # A Python float would raise where arrays and variables become infinite, and would take
            # on the precision of float32 data.
            values[name] = np.float64(y) if type(y) is float else y
        return values, log_jacobians

    def pack(self, function: str, values: Mapping[str, object]) -> np.ndarray:
        """Return the unconstrained vector at which the parameters have these values."""
        return self._packed(function, values, [n for n in self.parameters if n not in values])[0]

    def pack_some(
        self, function: str, values: Mapping[str, object]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pack some of the parameters: return the vector, zero for the others, and a mask of the
        elements of parameters that have values.
        """
        return self._packed(function, values, [])

    def _packed(
        self, function: str, values: Mapping[str, object], missing: list[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        surplus = [name for name in values if name not in self.parameters]
        if missing or surplus:
            text = (
                f"has no {', '.join(missing)}" if missing else f"has {', '.join(map(str, surplus))}"
            )
            raise TypeError(
                f"{function}: the dict {text}, but must have the parameters "
                f"{', '.join(self.parameters)}!"
            )
        names = [name for name in self.parameters if name in values]
        plain = {name: self._plain(function, name, values[name]) for name in names}
        q, is_given = np.zeros(self.size), np.zeros(self.size, bool)
        for name, where, shape, transform in self._entries:
            if type(transform) is Dependent:
                transform = transform.at({**self.given, **plain})
            if name not in values:
                x = q[where] if shape is None else q[where].reshape(shape)
                plain[name] = x if transform is None else transform.constrain(x)
                continue
            is_given[where] = True
            try:
                x = plain[name] if transform is None else transform.unconstrain(plain[name])
            except DomainError as error:
                raise DomainError(f"{function}: {name}: {error}") from None
            q[where] = np.ravel(x) if np.ndim(x) else x
        return q, is_given

    def standardised(self, q: np.ndarray) -> np.ndarray:
        """Convert a point to the coordinates in which a sampler moves."""
        if self.scale is None:
            return q
        return q / self.scale if self.scale.ndim == 1 else np.linalg.solve(self.scale, q)

    def _plain(self, function: str, name: str, value: Operand) -> Plain:
        value = data(value, f"{function}: {name}")
        shape = self.parameters[name].shape
        if np.shape(value) != shape:
            raise misfit(function, name, np.shape(value), f"have shape {shape}")
        return value

    def split(self, flat: np.ndarray) -> dict[str, Operand]:
        """Split a vector of constrained values in sequence into values by name."""
        parts = shaped(flat, (transform.shape for transform in self.parameters.values()))
        return dict(zip(self.parameters, parts, strict=True))

    def unconstrained_names(self) -> Iterator[str]:
        """Yield the name of every element of the unconstrained vector."""
        for name, transform in self.parameters.items():
            yield from indexed(name, transform.unconstrained_shape)
