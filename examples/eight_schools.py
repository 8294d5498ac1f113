"""Eight schools: a hierarchical model, its gradient, its posterior mode and standard errors from the exact Hessian.

Eight schools tried a coaching programme; each estimated its effect with a standard error (Rubin 1981, Journal of Educational
Statistics 6, 377-401). How far should the estimates be drawn together? The model, in its non-centred form:

    theta_trans ~ normal(0, 1), mu ~ normal(0, 5), tau ~ cauchy(0, 5) restricted to tau > 0
    theta = mu + tau * theta_trans,  y ~ normal(theta, sigma)

The unknowns are ``(theta_trans[8], mu, log tau)``, so that every real vector is allowed. The mode of all unknowns together lies
at a large tau, where the density is high but its mass is small: what is printed are facts about the mode, and the plot
shows how little the schools are drawn together there.

    python examples/eight_schools.py [--output PLOT.png] [--quick]
"""

from __future__ import annotations

import argparse
import timeit
from pathlib import Path

import numpy as np
from scipy import optimize

import varmat as vm

y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
sigma = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def normal(x, mean, scale):
    """The normal log density, summed: ordinary NumPy, on numbers and on variables."""
    return np.sum(-0.5 * ((x - mean) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi))


def effects(unknowns):
    return unknowns[8] + np.exp(unknowns[9]) * unknowns[:8]


def log_density(unknowns):
    """The log posterior with all constants, and with the log-Jacobian of ``tau = exp(log_tau)``."""
    theta_trans, mu, log_tau = unknowns[:8], unknowns[8], unknowns[9]
    tau = np.exp(log_tau)
    cauchy = -np.log(5 * np.pi) - np.log1p((tau / 5) ** 2)
    return normal(y, mu + tau * theta_trans, sigma) + normal(theta_trans, 0.0, 1.0) + normal(mu, 0.0, 5.0) + cauchy + log_tau


def gradient_by_hand(unknowns):
    theta_trans, mu, tau = unknowns[:8], unknowns[8], np.exp(unknowns[9])
    score = (y - mu - tau * theta_trans) / sigma**2
    by_tau = score @ theta_trans - 2 * tau / (25 + tau**2)
    return np.concatenate([tau * score - theta_trans, [np.sum(score) - mu / 25, tau * by_tau + 1]])


def finite_differences(f, x, step=1e-5):
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))])


def worst(found, expected):
    """The largest difference, relative to the largest element."""
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


def plot(theta, errors, path):
    # Here, so that the model can be imported without matplotlib.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.subplots()
    rows = np.arange(8)[::-1]
    axes.axvline(theta.mean(), color="0.75", linewidth=1, zorder=0)
    axes.errorbar(y, rows + 0.15, xerr=1.96 * sigma, fmt="C1s", capsize=3, markersize=5, label="published estimate, 95 % interval")
    axes.errorbar(
        theta, rows - 0.15, xerr=1.96 * errors, fmt="C0o", capsize=3, markersize=5, label="posterior mode, 95 % Laplace interval"
    )
    axes.set_yticks(rows, [f"school {name}" for name in "ABCDEFGH"])
    axes.set_xlabel("effect of coaching (points of the SAT-V score)")
    axes.set_title("Eight schools: estimates, and effects at the posterior mode")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".png"), help="where the plot goes")
    parser.add_argument("--quick", action="store_true", help="fewer repeats in the timing")
    options = parser.parse_args()

    value_and_grad = vm.value_and_grad(log_density)
    start = np.append(np.linspace(-0.5, 0.5, 8), [4.0, 1.0])
    value, gradient = value_and_grad(start)
    print(f"log density at the start                         {value:.10f}")
    print(f"  the same on plain arrays, difference           {abs(value - log_density(start)):.1e}")
    print(f"  gradient against the one by hand, relative     {worst(gradient, gradient_by_hand(start)):.1e}")
    print(f"  gradient against finite differences, relative  {worst(gradient, finite_differences(log_density, start)):.1e}")

    number, repeats = (20, 3) if options.quick else (500, 9)
    plain = min(timeit.repeat(lambda: log_density(start), number=number, repeat=repeats)) / number
    derivative = min(timeit.repeat(lambda: value_and_grad(start), number=number, repeat=repeats)) / number
    print(f"value and gradient {1e6 * derivative:.0f} us, {derivative / plain:.2f} times the value alone ({1e6 * plain:.0f} us)")

    def loss(unknowns):
        return -log_density(unknowns)

    fit = optimize.minimize(
        vm.value_and_grad(loss), start, jac=True, hessp=vm.hessp(loss), method="trust-krylov", options={"gtol": 1e-9}
    )
    covariance = np.linalg.inv(vm.hessian(loss, fit.x))
    by_unknowns = vm.jacobian(effects, fit.x)
    theta, errors = effects(fit.x), np.sqrt(np.diag(by_unknowns @ covariance @ by_unknowns.T))
    print(f"\nposterior mode in {fit.nit} Newton steps: log density {-fit.fun:.10f}, largest gradient {np.abs(fit.jac).max():.1e}")
    print(f"{'':10}{'mode':>8} {'error':>7}")
    unknowns = [("mu", 8), ("log tau", 9)]
    rows = [(name, fit.x[i], np.sqrt(covariance[i, i])) for name, i in unknowns]
    for name, centre, error in rows + [(f"school {c}", theta[i], errors[i]) for i, c in enumerate("ABCDEFGH")]:
        print(f"{name:10}{centre:8.2f} {error:7.2f}")
    plot(theta, errors, options.output)
    print(f"plot saved to {options.output}")


if __name__ == "__main__":
    main()
