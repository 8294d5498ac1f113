"""Bundle adjustment: errors of projected points, and their sparse Jacobian."""

from functools import partial

import numpy as np
from gradbench import wrap

import varmat as vm

CAMERA, POINT = 11, 3
INPUTS = CAMERA + POINT + 1


def cross(a, b):
    return np.stack(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


def rotate(rotation, x):
    """Rotate `x` about an axis by an angle that is the length of `rotation` (Rodrigues)."""
    angle = np.sqrt(np.sum(rotation**2, axis=0))
    axis = rotation / angle
    cosine = np.cos(angle)
    along = np.sum(axis * x, axis=0) * (1.0 - cosine)
    return x * cosine + cross(axis, x) * np.sin(angle) + axis * along


def reprojection_error(z, feature):
    """Compute the two errors of observations, from their cameras, points and weights, which lie
    below one another.
    """
    rotation, centre, focal_length, principal_point, distortion, point, weight = (
        z[0:3], z[3:6], z[6], z[7:9], z[9:11], z[11:14], z[14],
    )  # fmt: skip
    x = rotate(rotation, point - centre)
    projected = x[:2] / x[2]
    square = np.sum(projected**2, axis=0)
    factor = 1.0 + distortion[0] * square + distortion[1] * square**2
    return weight * (projected * factor * focal_length + principal_point - feature)


def sum_of_reprojection_errors(z, features, i):
    """Sum one of the two errors. Each observation has inputs of its own, so that the gradient has
    the derivatives of all of them.
    """
    return np.sum(reprojection_error(z, features)[i])


def weight_error(w):
    return 1.0 - w**2


def sum_of_weight_errors(w):
    return np.sum(weight_error(w))


weight_error_derivatives = vm.recorded(sum_of_weight_errors)


def prepare(input):
    n, m, p = input["n"], input["m"], input["p"]
    cameras, points = np.tile(input["cam"], (n, 1)), np.tile(input["x"], (m, 1))
    features = np.tile(np.array(input["feat"])[:, None], p)
    observations = np.arange(p, dtype=np.int32) % n, np.arange(p, dtype=np.int32) % m
    # The matrix has two rows for each observation and one for each weight.
    size = 2 * p * INPUTS + p
    matrix = {
        "rows": np.zeros(3 * p + 1, np.int32),
        "cols": np.empty(size, np.int32),
        "vals": np.empty(size),
    }
    derivatives = [
        vm.recorded(partial(sum_of_reprojection_errors, features=features, i=i)) for i in range(2)
    ]
    given = cameras.T.copy(), points.T.copy(), np.full(p, input["w"]), observations
    return given, features, derivatives, matrix


def inputs_of_observations(cameras, points, weights, observations):
    camera, point = observations
    inputs = np.take(cameras, camera, axis=1), np.take(points, point, axis=1), weights[None]
    return np.concatenate(inputs)


def listed_errors(errors):
    reprojection, weight = errors
    elements = reprojection[:, 0].tolist()
    return {
        "reproj_error": {"elements": elements, "repeated": reprojection.shape[1]},
        "w_err": {"element": float(weight[0]), "repeated": len(weight)},
    }


def listed_jacobian(matrix):
    """List the parts of a sparse matrix that the eval compares."""
    return {name: [*x[: 2 * INPUTS].tolist(), x[-1].item()] for name, x in matrix.items()}


@wrap.multiple_runs(pre=prepare, post=listed_errors)
def objective(input):
    given, features, _, _ = input
    return reprojection_error(inputs_of_observations(*given), features), weight_error(given[2])


@wrap.multiple_runs(pre=prepare, post=listed_jacobian)
def jacobian(input):
    given, _, derivatives, matrix = input
    cameras, points, weights, (camera, point) = given
    n, m, p = cameras.shape[1], points.shape[1], len(weights)
    z = inputs_of_observations(*given)
    places, values = (matrix[name][:-p].reshape(p, 2, INPUTS) for name in ("cols", "vals"))
    for i in range(2):
        values[:, i] = derivatives[i](z)[1].T
    matrix["vals"][-p:] = weight_error_derivatives(weights)[1]
    own = np.arange(CAMERA * n + POINT * m, CAMERA * n + POINT * m + p, dtype=np.int32)
    for j in range(CAMERA):
        places[:, 0, j] = CAMERA * camera + j
    for j in range(POINT):
        places[:, 0, CAMERA + j] = CAMERA * n + POINT * point + j
    places[:, 0, -1] = matrix["cols"][-p:] = own
    places[:, 1] = places[:, 0]
    matrix["rows"][: 2 * p + 1] = np.arange(0, 2 * p * INPUTS + 1, INPUTS)
    matrix["rows"][2 * p + 1 :] = np.arange(2 * p * INPUTS + 1, 2 * p * INPUTS + p + 1)
    return matrix
