"""The step of Newton's method for k-means clustering."""

from functools import partial

import numpy as np
from gradbench import wrap

import varmat as vm


def sum_of_squares(centroids, points):
    """Sum the squared distances of points to the nearest centroid."""
    squares = np.sum(points**2, axis=1) + np.sum(centroids**2, axis=1)[:, None]
    return np.sum(np.min(squares - 2.0 * (centroids @ points.T), axis=0))


def prepare(input):
    centroids, points = np.array(input["centroids"]), np.array(input["points"])
    objective = partial(sum_of_squares, points=points)
    return objective, vm.recorded(vm.jvp(vm.grad(objective))), centroids


@wrap.multiple_runs(pre=prepare, post=float)
def cost(input):
    objective, _, centroids = input
    return objective(centroids)


@wrap.multiple_runs(pre=prepare, post=np.ndarray.tolist)
def dir(input):
    _, gradient_and_product, centroids = input
    # The Hessian is diagonal, so its product with ones is the diagonal.
    gradient, diagonal = gradient_and_product((centroids,), (np.ones_like(centroids),))
    return gradient / diagonal
