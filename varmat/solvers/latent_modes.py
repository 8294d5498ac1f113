"""The mode of latent Gaussian variables by Newton's method, on plain arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.operation import is_differentiable
from varmat.core.variables import data
from varmat.derivatives.inputs_and_outputs import lost
from varmat.functions.checks import misfit, outside
from varmat.solvers.inner import Inner
from varmat.typing import Operand, Result

# The search ends at steps this short, relative to the mode: the error left is of their square.
SHORT = 1e-8
# Rounding may lower the objective by this much, relative to its size, at a step that raises it.
ROUNDING = 1e-13
# The relative size of elements of the Hessian that are tolerated outside its blocks.
OUTSIDE = 1e-8


class Control(NamedTuple):
    """The settings of the search, in Stan's order."""

    theta_0: Any = None
    tolerance: float = 1.5e-8
    max_num_steps: int = 500
    block: int = 1
    solver: int = 1
    max_steps_line_search: int = 1000
    allow_fallthrough: bool = True


class DirectionalRate(Inner):
    """The derivative of a function along a direction in its first argument.

    The direction is the last leading argument.
    """

    def __init__(self, inner: Inner) -> None:
        super().__init__(inner.name, inner.function, ())
        self.inner, self.leaves = inner, inner.leaves

    def __call__(self, lead: Sequence[Operand], leaves: Sequence[Operand]) -> Result:
        *others, direction = lead
        nothing = [None] * (len(others) - 1 + len(leaves))
        _, rate = self.inner.along(others, (direction, *nothing), leaves)
        return 0.0 if rate is None else rate


def units(n: int, block: int) -> Iterator[np.ndarray]:
    """Yield, for each column of a block, the vector with a one at that index in every block."""
    for k in range(block):
        unit = np.zeros(n)
        unit[k::block] = 1.0
        yield unit


def blocks_of(matrix: np.ndarray, block: int) -> np.ndarray:
    """Return the diagonal blocks, shape (n / block, block, block); for `block` 1 the diagonal."""
    if block == 1:
        return np.diagonal(matrix).copy()
    m = len(matrix) // block
    where = np.arange(m)
    result: np.ndarray = matrix.reshape(m, block, m, block)[where, :, where]
    return result


def times(blocks: np.ndarray, x: np.ndarray) -> Result:
    """Multiply a block-diagonal matrix, given by its blocks, by a vector or a matrix."""
    if blocks.ndim == 1:
        return blocks * x if x.ndim == 1 else blocks[:, None] * x
    m, block, _ = blocks.shape
    return (blocks @ x.reshape(m, block, -1)).reshape(x.shape)


def root_of(blocks: np.ndarray) -> Result:
    """Return the symmetric square root, or None if it does not exist."""
    if blocks.ndim == 1:
        return np.sqrt(blocks) if (blocks >= 0.0).all() else None
    values, vectors = np.linalg.eigh(blocks)
    if not (values >= -1e-14 * np.abs(values).max(initial=0.0)).all():
        return None
    return (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def without_negative(blocks: np.ndarray) -> Result:
    """Find the nearest positive semidefinite matrix, with which Newton's steps raise the objective.

    Higham, Linear Algebra Appl. 103, 1988.
    """
    if blocks.ndim == 1:
        return np.maximum(blocks, 0.0)
    values, vectors = np.linalg.eigh(blocks)
    return (vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)


class Factor:
    """A factor of I + K W in one of Stan's three forms; W, given by blocks, is minus the Hessian of
    the log likelihood.

    Raises `numpy.linalg.LinAlgError` if a factor in that form does not exist.

    Attributes
    ----------
    log_determinant : float
        Of I + K W.
    """

    def __init__(self, name: str, k: np.ndarray, w: np.ndarray, form: int) -> None:
        from scipy import linalg

        self.k, self.w, self.form = k, w, form
        n = len(k)
        if form == 1:
            root = root_of(w)
            if root is None:
                raise np.linalg.LinAlgError
            self.root = root
            b = times(root, times(root, k).T)
        elif form == 2:
            self.root = _root_of_covariance(name, k)
            b = self.root.T @ times(w, self.root)
        if form == 3:
            self.factor = linalg.lu_factor(np.eye(n) + times(w, k).T, check_finite=False)
            diagonal = np.diagonal(self.factor[0])
            if (
                np.sum(diagonal < 0.0) + np.sum(self.factor[1] != np.arange(n))
            ) % 2 or not diagonal.all():
                raise np.linalg.LinAlgError
            self.log_determinant = float(np.sum(np.log(np.abs(diagonal))))
        else:
            b[np.diag_indices(n)] += 1.0
            self.factor = linalg.cholesky(b, lower=True, check_finite=False)
            self.log_determinant = 2.0 * float(np.sum(np.log(np.diagonal(self.factor))))

    def curvature_times(self, x: np.ndarray) -> Result:
        """Compute W (I + K W)^-1 x."""
        from scipy import linalg

        if self.form == 1:
            return times(
                self.root,
                linalg.cho_solve((self.factor, True), times(self.root, x), check_finite=False),
            )
        if self.form == 2:
            wx = times(self.w, x)
            inner = linalg.cho_solve((self.factor, True), self.root.T @ wx, check_finite=False)
            return wx - times(self.w, self.root @ inner)
        return times(self.w, linalg.lu_solve(self.factor, x, check_finite=False))

    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """Compute (K^-1 + W)^-1, the covariance at the mode, and W (I + K W)^-1."""
        from scipy import linalg

        n = len(self.k)
        if self.form == 1:
            v = linalg.solve_triangular(
                self.factor, times(self.root, np.eye(n)), lower=True, check_finite=False
            )
            z = v @ self.k
            return self.k - z.T @ z, v.T @ v
        if self.form == 2:
            p = linalg.solve_triangular(self.factor, self.root.T, lower=True, check_finite=False)
            result = p.T @ p
        else:
            result = linalg.lu_solve(self.factor, self.k, check_finite=False)
            result = 0.5 * (result + result.T)
        return result, times(self.w, np.eye(n)) - times(self.w, times(self.w, result).T)


def _root_of_covariance(name: str, k: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.cholesky(k)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(k)
    if values[0] < -1e-8 * max(values[-1], 0.0):
        raise DomainError(
            f"{name}: the covariance has the eigenvalue {values[0]!r}, but must be positive "
            "semidefinite!"
        )
    root: np.ndarray = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


class Mode(NamedTuple):
    """The mode of the latent variables, with its factor and density.

    Attributes
    ----------
    theta : ndarray, shape (n,)
    a : ndarray, shape (n,)
        The gradient of the log likelihood, K^-1 theta.
    factor : Factor
    log_density : float
        Laplace's approximation.
    """

    theta: np.ndarray
    a: np.ndarray
    factor: Factor
    log_density: float


def find_mode(inner: Inner, k: np.ndarray, leaves: Sequence[object], control: Control) -> Mode:
    """Find the mode and the approximate log density.

    Rasmussen and Williams (2006), algorithm 3.1, with a line search.
    """
    _check_covariance(inner.name, k, control)
    with np.errstate(all="ignore"):
        return Search(inner, k, leaves, control).run()


def _check_covariance(name: str, k: np.ndarray, control: Control) -> None:
    if k.ndim != 2 or k.shape[0] != k.shape[1] or not k.size:
        raise misfit(name, "the covariance", k.shape, "be a square matrix")
    if not np.isfinite(k).all():
        i, j = np.argwhere(~np.isfinite(k))[0].tolist()
        raise outside(name, f"the covariance[{i}, {j}]", float(k[i, j]), "be finite")
    if np.abs(k - k.T).max() > 1e-8 * np.abs(k).max():
        i, j = np.unravel_index(np.abs(k - k.T).argmax(), k.shape)
        raise outside(
            name,
            f"the covariance[{i}, {j}]",
            float(k[i, j]),
            f"be equal to element [{j}, {i}], {float(k[j, i])!r}",
        )
    n = len(k)
    if n % control.block:
        raise outside(
            name, "hessian_block_size", control.block, f"divide the number of latent variables, {n}"
        )
    if control.theta_0 is not None and np.shape(control.theta_0) != (n,):
        raise misfit(
            name,
            "theta_0",
            np.shape(control.theta_0),
            f"have the shape of the latent variables, ({n},)",
        )


class Search:
    """One search for a mode."""

    def __init__(
        self, inner: Inner, k: np.ndarray, leaves: Sequence[object], control: Control
    ) -> None:
        self.inner, self.k, self.leaves, self.control = inner, k, leaves, control
        self.n = len(k)
        self.rate = DirectionalRate(inner)

    def value(self, theta: np.ndarray) -> float:
        """Evaluate the log likelihood."""
        result = self.inner((theta,), self.leaves)
        if is_differentiable(result):
            raise lost(self.inner.name, result)
        if np.shape(result):
            raise misfit(self.inner.name, "the log likelihood", np.shape(result), "be a scalar")
        return float(data(result, f"{self.inner.name}: what the log likelihood returns"))

    def derivatives(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the gradient of the log likelihood, and the blocks of minus its Hessian."""
        columns = []
        for unit in units(self.n, self.control.block):
            _, pullback = self.rate.pullback((theta, unit), self.leaves)
            column, gradient, *_ = pullback(1.0)
            columns.append(-column)
        if self.control.block == 1:
            return gradient, columns[0]
        blocks = np.stack([column.reshape(-1, self.control.block) for column in columns], axis=2)
        return gradient, 0.5 * (blocks + np.swapaxes(blocks, 1, 2))

    def factor(self, w: np.ndarray) -> Factor | None:
        """Make a factor in the form that the user chose or, if allowed, in the next possible."""
        last = 3 if self.control.allow_fallthrough else self.control.solver
        for form in range(self.control.solver, last + 1):
            try:
                return Factor(self.inner.name, self.k, w, form)
            except np.linalg.LinAlgError:
                pass
        return None

    def run(self) -> Mode:
        name, control = self.inner.name, self.control
        theta = a = np.zeros(self.n)
        objective = self.value(theta)
        if control.theta_0 is not None and np.any(control.theta_0):
            theta, a, objective = self.started(np.array(control.theta_0, float), theta, objective)
        if not np.isfinite(objective):
            raise DomainError(
                f"{name}: the log likelihood is {objective!r} where the search starts, but must be "
                "finite!"
            )
        before = np.inf
        for _ in range(control.max_num_steps):
            gradient, w = self.derivatives(theta)
            target = self.newton(theta, gradient, w)
            ahead = target - a
            moved = self.k @ ahead
            gain = float(moved @ (gradient - a))
            if not gain >= 0.0 and abs(gain) > control.tolerance:
                ahead = self.newton(theta, gradient, without_negative(w)) - a
                moved = self.k @ ahead
                gain = float(moved @ (gradient - a))
            theta, a, objective = self.line_search(theta, a, objective, ahead, moved)
            change = float(np.abs(moved).max())
            if abs(gain) < control.tolerance and (
                change <= SHORT * max(1.0, float(np.abs(theta).max())) or change > 0.5 * before
            ):
                return self.found(theta)
            before = change
        raise DomainError(
            f"{name}: the mode was not found in {control.max_num_steps} steps; the next one would "
            f"raise the log density by {0.5 * gain!r}, but that must be less than half the "
            f"tolerance, {control.tolerance!r}!"
        )

    def newton(self, theta: np.ndarray, gradient: np.ndarray, w: np.ndarray) -> Result:
        """Compute K^-1 theta after a full step."""
        factor = self.factor(w) if np.isfinite(w).all() else None
        if factor is None:
            w = without_negative(np.nan_to_num(w))
            factor = Factor(self.inner.name, self.k, w, 1)
        b = times(w, theta) + gradient
        return b - factor.curvature_times(self.k @ b)

    def started(
        self, start: np.ndarray, theta: np.ndarray, objective: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Take a full step from the user's start, or return zero if that is better.

        The step is taken first because K^-1 times the start itself is not known.
        """
        a = self.newton(start, *self.derivatives(start))
        stepped = self.k @ a
        reached = self.value(stepped) - 0.5 * float(a @ stepped)
        if reached >= objective or not np.isfinite(objective):
            return stepped, a, reached
        return theta, theta, objective

    def line_search(
        self,
        theta: np.ndarray,
        a: np.ndarray,
        objective: float,
        ahead: np.ndarray,
        moved: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Take a step, halved until it raises the objective."""
        part = 1.0
        for _ in range(1 + self.control.max_steps_line_search):
            stepped, along = theta + part * moved, a + part * ahead
            reached = self.value(stepped) - 0.5 * float(along @ stepped)
            if (
                reached >= objective - ROUNDING * (1.0 + abs(objective))
                or not self.control.max_steps_line_search
            ):
                return stepped, along, reached
            part *= 0.5
        raise DomainError(
            f"{self.inner.name}: no step along the direction of Newton's method raises the log "
            f"density, {objective!r}, after {self.control.max_steps_line_search} halvings!"
        )

    def found(self, theta: np.ndarray) -> Mode:
        """Make the result at `theta`, checked to be a maximum with a Hessian of these blocks."""
        name = self.inner.name
        a, w = self.derivatives(theta)
        self.check_blocks(theta, w)
        factor = self.factor(w)
        if factor is None:
            raise DomainError(
                f"{name}: the log density has no maximum where the search ended, or solver "
                f"{self.control.solver} does not find its covariance; use another start or, if the "
                f"likelihood is not log-concave, another solver!"
            )
        objective = self.value(theta) - 0.5 * float(a @ theta)
        return Mode(theta, a, factor, objective - 0.5 * factor.log_determinant)

    def check_blocks(self, theta: np.ndarray, w: np.ndarray) -> None:
        if self.control.block == self.n:
            return
        probe = 1.0 + np.modf(np.arange(self.n) * 0.6180339887498949)[0]
        _, pullback = self.rate.pullback((theta, probe), self.leaves)
        if np.abs(pullback(1.0)[0] + times(w, probe)).max() > OUTSIDE * np.abs(w).max():
            raise DomainError(
                f"{self.inner.name}: the Hessian of the log likelihood is not block-diagonal with "
                f"blocks of {self.control.block}; give a hessian_block_size that fits it!"
            )
