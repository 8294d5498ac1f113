"""Evaluate chains and points of a model with the workers of a Dask cluster. `test_dask` runs this
script.
"""

import numpy as np
from comparing import close
from distributed import Client, LocalCluster

import varmat as vm

SETTINGS = {"draws": 20, "tune": 30, "chains": 3, "seed": 3, "progress_bar": False}


def main():
    model = vm.Model(
        lambda mu, y: vm.normal_lpdf(y, mu, 1.0),
        mu=vm.real(),
        data={"y": np.array([0.1, -0.4, 1.2])},
        log_likelihood=lambda mu, y: {"y": vm.normal_lpdf.pointwise(y, mu, 1.0)},
        generated_quantities=lambda mu, rng: {"z": rng.normal(mu)},
    )
    points = np.linspace(-1.0, 1.0, 6)[:, np.newaxis]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        executor = client.get_executor(pure=False)
        result = model.sample(**SETTINGS, executor=executor)
        values, gradients = model.log_density_gradient.map(points, executor)
    expected = model.sample(**SETTINGS)
    for group in ("posterior", "warmup_posterior", "log_likelihood"):
        assert result[group].drop_attrs().identical(expected[group].drop_attrs())
    found = [model.log_density_gradient(q) for q in points]
    close(values, [value for value, _ in found], 1e-13)
    close(gradients, [gradient for _, gradient in found], 1e-13)


if __name__ == "__main__":
    main()
