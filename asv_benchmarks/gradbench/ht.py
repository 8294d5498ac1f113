"""Hand tracking: distances of measured points to a hand in a pose, and their Jacobian."""

import numpy as np
from gradbench import wrap

import varmat as vm

FINGERS = 5
# Angles of a finger's bones, by (row, column) of its first bone: bend and spread, bend, bend.
ROWS, COLUMNS = np.array([0, 0, 1, 2]), np.array([0, 1, 0, 0])


def pose_of(theta, bones):
    """Place the pose parameters: rotation, scale and translation of the hand, angles of bones."""
    pose = np.zeros_like(theta, shape=(bones + 3, 3))
    pose[0], pose[1], pose[2] = theta[:3], 1.0, theta[3:6]
    rows = 5 + 4 * np.arange(FINGERS)[:, None] + ROWS
    pose[rows, np.broadcast_to(COLUMNS, rows.shape)] = theta[6:].reshape(rows.shape)
    return pose


def euler_rotations(angles):
    """Make a matrix of each row of angles about the axes x, z and y."""
    (cx, cz, cy), (sx, sz, sy) = np.cos(angles).T, np.sin(angles).T
    entries = [
        cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx,
        sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx,
        -sy, cy * sx, cy * cx,
    ]  # fmt: skip
    return np.stack(entries, axis=1).reshape(-1, 3, 3)


def rotation(axis):
    """Make the matrix of a rotation about an axis by an angle that is the length of `axis`."""
    angle = np.sqrt(np.sum(axis**2))
    x, y, z = axis / angle
    zero = np.zeros_like(x)
    cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero]).reshape(3, 3)
    unit = axis / angle
    outer = np.outer(unit, unit)
    return outer + (np.eye(3) - outer) * np.cos(angle) + cross * np.sin(angle)


def vertices(theta, model):
    """Compute the positions of the vertices of a hand."""
    pose = pose_of(theta, len(model["parents"]))
    relatives = model["base_relatives"][:, :, :3] @ euler_rotations(pose[3:])
    relatives = np.concatenate([relatives, model["base_relatives"][:, :, 3:]], axis=2)
    absolutes = []
    for parent, relative in zip(model["parents"].tolist(), relatives, strict=True):
        absolutes.append(relative if parent == -1 else absolutes[parent] @ relative)
    transforms = np.stack(absolutes)[:, :3] @ model["inverse_base_absolutes"]
    blended = (model["weights"] @ transforms.reshape(-1, 12)).reshape(-1, 3, 4)
    positions = np.sum(blended * model["base_positions"][:, None, :], axis=2)
    return positions @ (rotation(pose[0]) * pose[1]).T + pose[2]


def errors(moves_and_theta, model, us, points, correspondences):
    """Compute the distances of points to a hand.

    All `us` are moved alike: the derivative with respect to the move has for each point that with
    respect to its own pair. Without `us`, points correspond to vertices, and otherwise to places in
    triangles.
    """
    theta = moves_and_theta[len(moves_and_theta) - 6 - 4 * FINGERS :]
    found = vertices(theta, model)
    if not len(us):
        return (points - found[correspondences]).ravel()
    u, v = (us + moves_and_theta[:2]).T[:, :, None]
    a, b, c = (found[corner] for corner in model["triangles"][correspondences].T)
    return (points - (u * a + v * b + (1.0 - u - v) * c)).ravel()


def prepare(input):
    data, us, theta = input["data"], np.array(input["us"]), np.array(input["theta"])
    names = ("base_relatives", "inverse_base_absolutes", "base_positions", "weights")
    model = {name: np.array(data["model"][name]) for name in names}
    model |= {name: np.array(data["model"][name], int) for name in ("parents", "triangles")}
    us = us.reshape(-1, 2)
    rest = model, us, np.array(data["points"]), np.array(data["correspondences"], int)
    moves = np.zeros(2 if len(us) else 0)
    function = vm.recorded(vm.jacobian(lambda z: errors(z, *rest)))
    return function, np.concatenate([moves, theta]), rest


@wrap.multiple_runs(pre=prepare, post=np.ndarray.tolist)
def objective(input):
    _, z, rest = input
    return errors(z, *rest)


@wrap.multiple_runs(pre=prepare, post=np.ndarray.tolist)
def jacobian(input):
    errors_jacobian, z, _ = input
    return errors_jacobian(z)
