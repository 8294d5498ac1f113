"""The eight schools, with which models are tested."""

import numpy as np

import varmat as vm

Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def normal(x, mean, scale):
    return np.sum(-0.5 * ((x - mean) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi))


def eight_schools(theta_trans, mu, tau):
    cauchy = -np.log(5 * np.pi) - np.log1p((tau / 5) ** 2)
    return (
        normal(Y, mu + tau * theta_trans, SIGMA)
        + normal(theta_trans, 0.0, 1.0)
        + normal(mu, 0.0, 5.0)
        + cauchy
    )


PARAMETERS = {"theta_trans": vm.real(8), "mu": vm.real(), "tau": vm.positive()}
SCHOOLS = vm.Model(eight_schools, **PARAMETERS)
Q = np.append(np.linspace(-0.5, 0.7, 8), [1.5, 0.8])
