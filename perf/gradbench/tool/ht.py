"""Hand tracking: distances of points from a posed hand, and their Jacobian.

The hand is a tree of bones, posed by 26 numbers ``theta``; a point of the skin moves with several
bones. In the "complicated" variant a measured point belongs to a place in a triangle of the skin,
with coordinates ``us`` of its own.
"""

import numpy as np
from timing import as_lists, timed

import numgrad as ng

BENT = np.array([first + k for first in range(1, 21, 4) for k in range(1, 4)])
"""Bones that bend: three of each finger, after the wrist and before its tip."""

BENDS = np.array([[6 + 4 * finger, 8 + 4 * finger, 9 + 4 * finger] for finger in range(5)]).ravel()
SPREADS = 7 + 4 * np.arange(5)
"""Where their angles are in ``theta``; the first of each finger has a second angle."""


def read(message):
    model = message["data"]["model"]
    corresponding = np.array(message["data"]["correspondences"])
    triangles = np.array(model["triangles"])
    hand = {
        "relatives": np.array(model["base_relatives"]),
        "inverses": np.array(model["inverse_base_absolutes"]),
        "positions": np.array(model["base_positions"]),
        "weights": np.array(model["weights"]),
        "mirror": np.array([-1.0 if model["is_mirrored"] else 1.0, 1.0, 1.0]),
        "points": np.array(message["data"]["points"]),
        "vertices": triangles[corresponding] if len(message["us"]) else corresponding,
    }
    return np.array(message["theta"]), np.array(message["us"]), hand, tuple(model["parents"])


def turned_about(axis_angle):
    """The rotation by an angle, the length of a vector, about its direction."""
    angle = np.sqrt(np.sum(axis_angle**2))
    x, y, z = axis = axis_angle / angle
    o = 0.0 * angle
    cross = np.stack([np.stack([o, -z, y]), np.stack([z, o, -x]), np.stack([-y, x, o])])
    outer = np.outer(axis, axis)
    return outer + np.cos(angle) * (np.eye(3) - outer) + np.sin(angle) * cross


def turned_by(angles):
    """The rotations by Euler's angles about x, z and y, as matrices of four by four."""
    x, z, y = angles.T
    one, o = np.ones_like(x), np.zeros_like(x)

    def matrices(rows):
        return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)

    about_x = matrices([[one, o, o], [o, np.cos(x), -np.sin(x)], [o, np.sin(x), np.cos(x)]])
    about_y = matrices([[np.cos(y), o, np.sin(y)], [o, one, o], [-np.sin(y), o, np.cos(y)]])
    about_z = matrices([[np.cos(z), -np.sin(z), o], [np.sin(z), np.cos(z), o], [o, o, one]])
    turned = about_z @ about_y @ about_x
    return np.pad(turned, ((0, 0), (0, 1), (0, 1))) + np.diag([0.0, 0.0, 0.0, 1.0])


def skin(theta, hand, parents):
    """The points of the skin, three coordinates each."""
    angles = ng.zeros((len(parents), 3))
    angles[BENT, 0] = theta[BENDS]
    angles[BENT[::3], 1] = theta[SPREADS]
    relatives = hand["relatives"] @ turned_by(angles)
    absolutes = []
    for relative, parent in zip(relatives, parents, strict=True):
        absolutes.append(relative if parent < 0 else absolutes[parent] @ relative)
    transforms = np.stack(absolutes) @ hand["inverses"]
    moved = np.einsum("bij,vj,vb->vi", transforms[:, :3], hand["positions"], hand["weights"])
    return (moved * hand["mirror"]) @ turned_about(theta[:3]).T + theta[3:6]


def distances(theta, us, hand, parents):
    vertices = skin(theta, hand, parents)[hand["vertices"]]
    if us.size:
        u, v = us.T[:, :, None]
        vertices = u * vertices[:, 0] + v * vertices[:, 1] + (1 - u - v) * vertices[:, 2]
    return (hand["points"] - vertices).ravel()


value = ng.jit(distances, static_argnums=3)


@ng.jit(static_argnums=3)
def slopes(theta, us, hand, parents):
    """A column for each of ``theta``, before them two for the ``us`` that each point has."""

    def of(shift, theta):
        return distances(theta, us + shift if us.size else us, hand, parents)

    shifts, angles = ng.jacfwd(of, (0, 1))(np.zeros(2), theta)
    return np.concatenate([shifts, angles], axis=1) if us.size else angles


@timed(read, as_lists)
def objective(message):
    return value(*message)


@timed(read, as_lists)
def jacobian(message):
    return slopes(*message)
