"""Small programs as people write them in NumPy. Only the first import mentions varmat.

Each program is a scalar function of parameters, and comes with a point.
"""

import math

import scipy.linalg
import scipy.special
from scipy import stats

import varmat.numpy as np

rng = np.random.default_rng(11)
PROGRAMS = {}


def program(*point):
    """Put a program into the table."""

    def add(f):
        PROGRAMS[f.__name__] = (f, np.array(point))
        return f

    return add


@program(0.5, 0.02, 0.4, 0.8)
def predator_and_prey(theta):
    """Solve an ODE with Euler's method, with its states in the rows of an array."""
    alpha, beta, gamma, y0 = theta
    n, dt = 50, 0.05
    y = np.zeros((n + 1, 2))
    y[0] = [10.0 * y0, 5.0]
    for t in range(n):
        x, z = y[t]
        dydt = np.array([alpha * x - beta * x * z, -gamma * z + beta * x * z])
        y[t + 1] = y[t] + dt * dydt
    return np.sum((y[:, 0] - 8.0) ** 2) / n


@program(1.5, 0.3, 0.8)
def pendulum(theta):
    """Take fourth-order steps of Runge and Kutta with a right-hand side that returns an array."""

    def rhs(state, t):
        angle, speed = state
        return np.array([speed, -theta[0] * np.sin(angle) - theta[1] * speed])

    state = np.array([theta[2], 0.0])
    h, path = 0.1, []
    for i in range(20):
        k1 = rhs(state, i * h)
        k2 = rhs(state + 0.5 * h * k1, (i + 0.5) * h)
        k3 = rhs(state + 0.5 * h * k2, (i + 0.5) * h)
        k4 = rhs(state + h * k3, (i + 1) * h)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(state)
    return np.array(path)[:, 0].std()


TRACK = np.cumsum(rng.normal(size=25))


@program(0.1, -0.3, 0.2)
def kalman_filter(theta):
    """Return the log-likelihood of a local linear trend."""
    dt = 1.0
    F = np.array([[1.0, dt], [0.0, 1.0]])
    H = np.array([[1.0, 0.0]])
    Q = np.diag(np.exp(np.asarray([theta[0], theta[1]])))
    R = np.eye(1)
    R[0, 0] = np.exp(theta[2])
    x, P = np.zeros(2), np.eye(2) * 10.0
    loglik = 0.0
    for y in TRACK:
        x = F @ x
        P = F @ P @ F.T + Q
        v = y - H @ x
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        loglik += -0.5 * (np.log(2 * np.pi) + np.linalg.slogdet(S)[1] + v @ np.linalg.solve(S, v))
        x = x + K @ v
        P = (np.eye(2) - K @ H) @ P
    return loglik


RETURNS = 0.01 * rng.normal(size=60)


@program(1e-5, 0.1, 0.85)
def garch(params):
    omega, alpha, beta = params
    T = len(RETURNS)
    sigma2 = np.empty(T)
    sigma2[0] = np.var(RETURNS)
    for t in range(1, T):
        sigma2[t] = omega + alpha * RETURNS[t - 1] ** 2 + beta * sigma2[t - 1]
    return 0.5 * np.sum(np.log(2 * np.pi * sigma2) + RETURNS**2 / sigma2)


INPUTS = rng.normal(size=(12, 3))
TARGETS = np.sin(INPUTS.sum(axis=1))


@program(*rng.normal(size=21))
def neural_net(weights):
    """Return the loss of a network with one hidden layer, whose weights are unpacked from one
    vector.
    """
    sizes = [(3, 4), (4,), (4, 1), (1,)]
    parts, start = [], 0
    for shape in sizes:
        n = int(np.prod(shape))
        parts.append(weights[start : start + n].reshape(shape))
        start += n
    W1, b1, W2, b2 = parts
    hidden = np.tanh(np.dot(INPUTS, W1) + b1)
    out = (np.dot(hidden, W2) + b2).flatten()
    return np.mean((out - TARGETS) ** 2) + 1e-3 * np.sum(weights**2)


LABELS = (TARGETS > 0).astype(int)


@program(0.2, -0.1, 0.4, 0.3)
def logistic_regression(w):
    X = np.c_[np.ones(len(INPUTS)), INPUTS]
    z = X @ w
    p = 1.0 / (1.0 + np.exp(-z))
    eps = 1e-12
    return -np.mean(LABELS * np.log(p + eps) + (1 - LABELS) * np.log(1 - p + eps))


GRID = np.linspace(0, 1, 8)
CURVE = np.sin(6 * GRID)


@program(0.2, -1.0, -2.0)
def gaussian_process(theta):
    """Return the log marginal likelihood, with a kernel that is filled in element by element."""
    variance, length, noise = np.exp(theta)
    n = len(GRID)
    K = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            K[i, j] = variance * np.exp(-0.5 * (GRID[i] - GRID[j]) ** 2 / length**2)
    K[np.diag_indices(n)] += noise
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, CURVE))
    return -0.5 * CURVE @ alpha - np.log(np.diag(L)).sum() - 0.5 * n * np.log(2 * np.pi)


SYMBOLS = rng.integers(0, 2, 20)


@program(0.3, -0.4, 0.8, -0.6)
def hidden_markov(theta):
    """Run the forward algorithm with a normalisation at each step."""
    a, b = 1 / (1 + np.exp(-theta[:2]))
    A = np.array([[a, 1 - a], [1 - b, b]])
    B = np.zeros((2, 2))
    B[:, 1] = 1 / (1 + np.exp(-theta[2:]))
    B[:, 0] = 1 - B[:, 1]
    alpha = np.full(2, 0.5) * B[:, SYMBOLS[0]]
    loglik = 0.0
    for s in SYMBOLS[1:]:
        scale = alpha.sum()
        loglik += np.log(scale)
        alpha = (alpha / scale) @ A * B[:, s]
    return loglik + np.log(alpha.sum())


@program(-1.2, 1.0, 0.5, 0.9)
def rosenbrock(x):
    terms = np.zeros_like(x)
    for i in range(len(x) - 1):
        terms[i] = 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return terms.sum()


POINTS = rng.normal(size=(15, 2))


@program(-1.0, 0.0, 1.0, 0.5, 0.2)
def gaussian_mixture(params):
    means = params[:4].reshape(2, 2)
    weight = scipy.special.expit(params[4])
    logp = np.empty((len(POINTS), 2))
    for k, w in enumerate([weight, 1 - weight]):
        diff = POINTS - means[k]
        logp[:, k] = np.log(w) - 0.5 * np.sum(diff**2, axis=1) - np.log(2 * np.pi)
    top = logp.max(axis=1, keepdims=True)
    return np.sum(top[:, 0] + np.log(np.exp(logp - top).sum(axis=1)))


@program(100.0, 0.05, 0.2, 1.0)
def black_scholes(p):
    spot, rate, vol, years = p
    strike = 95.0
    d1 = (np.log(spot / strike) + (rate + 0.5 * vol**2) * years) / (vol * np.sqrt(years))
    d2 = d1 - vol * np.sqrt(years)
    return spot * scipy.special.ndtr(d1) - strike * np.exp(-rate * years) * scipy.special.ndtr(d2)


@program(0.02, 0.25)
def heat_equation(theta):
    """Run an explicit scheme on a grid, with in-place updates of copies and np.r_ at the ends."""
    u = np.exp(-30 * (np.linspace(0, 1, 21) - theta[1]) ** 2)
    for _ in range(10):
        new = u.copy()
        new[1:-1] = u[1:-1] + theta[0] * 20 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = np.r_[0.0, new[1:-1], 0.0]
    return (u**2).sum()


@program(0.3, 0.2, 0.1)
def robot_arm(angles):
    """Multiply rotations, which are matrices made of lists, along the chain."""

    def rotation(a):
        return np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])

    pose = np.eye(3)
    for angle in angles:
        shift = np.eye(3)
        shift[0, 2] = 1.0
        pose = pose @ rotation(angle) @ shift
    return np.linalg.norm(pose[:2, 2] - np.array([1.5, 1.0]))


@program(0.1, 0.5)
def normal_by_scipy(theta):
    """Call SciPy's distributions, which need plain arrays."""
    return np.sum(stats.norm.logpdf(CURVE, loc=theta[0], scale=theta[1]))


@program(0.4, 1.2)
def learning_curve(theta):
    """Call functions of `math`, which take floats only."""
    total = 0.0
    for t in range(1, 6):
        total += (theta[1] * (1 - math.exp(-theta[0] * t)) - 1.0) ** 2
    return total
