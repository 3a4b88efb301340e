"""Molecular dynamics with Lennard-Jones forces in a periodic box: how far atoms have moved."""

import numpy

SIZES = {"tiny": [4, 2], "small": [8, 20], "middle": [27, 100], "large": [125, 100]}
ARGNUMS = (0, 1)


def arguments(atoms, steps):
    """Depth and width of the potential, atoms and their velocities, times of steps."""
    draw = numpy.random.default_rng(0)
    side = round(atoms ** (1 / 3) + 0.49)
    lattice = 1.2 * numpy.stack(numpy.unravel_index(numpy.arange(atoms), (side,) * 3), axis=1)
    places = lattice + 0.05 * draw.normal(size=(atoms, 3))
    return numpy.array([1.0, 1.0]), places, draw.normal(size=(atoms, 3)), numpy.full(steps, 0.002)


def program(library):
    np = library.np

    def moved(p, start, velocity, times):
        atoms = start.shape[0]
        box = 1.2 * round(atoms ** (1 / 3) + 0.49)

        def energy(x):
            apart = x[:, None] - x
            apart = apart - box * np.round(apart / box)
            square = np.sum(apart**2, axis=-1) + 1e6 * numpy.eye(atoms)
            sixth = (p[1] ** 2 / square) ** 3
            return 2.0 * p[0] * np.sum(sixth**2 - sixth)

        slope = library.grad(energy)

        def step(state, h):
            x, v, force = state
            v = v - 0.5 * h * force
            x = x + h * v
            force = slope(x)
            return (x, v - 0.5 * h * force, force), None

        x = library.scan(step, (start, velocity, slope(start)), times)[0][0]
        return np.mean((x - start) ** 2)

    return moved
