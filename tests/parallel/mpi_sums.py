"""Compute sums and points with the workers of MPI. `test_mpi` runs this script."""

import numpy as np
from comparing import close
from mpi4py.futures import MPIPoolExecutor

import varmat as vm

Y = np.array([0.1, -0.4, 1.2, 2.2])


def part(y, start, end, mu):
    return vm.normal_lpdf(y, mu, 1.0)


def main():
    model = vm.Model(lambda mu: vm.normal_lpdf(Y, mu, 1.0), mu=vm.real())
    points = np.linspace(-1.0, 1.0, 6)[:, np.newaxis]
    with MPIPoolExecutor() as pool:
        found = vm.value_and_grad(lambda mu: vm.reduce_sum_static(part, Y, 2, mu, executor=pool))(
            0.5
        )
        values, gradients = model.log_density_gradient.map(points, pool)
    close(found, vm.value_and_grad(lambda mu: vm.normal_lpdf(Y, mu, 1.0))(0.5), 1e-12)
    expected = [model.log_density_gradient(q) for q in points]
    close(values, [value for value, _ in expected], 1e-13)
    close(gradients, [gradient for _, gradient in expected], 1e-13)


if __name__ == "__main__":
    main()
