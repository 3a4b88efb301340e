"""Bodies that attract each other, by leapfrog: the gradient in masses, places and velocities."""

import numpy

SIZES = {"tiny": [3, 2], "small": [5, 100], "middle": [16, 200], "large": [100, 200]}
ARGNUMS = (0, 1, 2)


def arguments(bodies, steps):
    """Masses, places, velocities, times of steps."""
    draw = numpy.random.default_rng(0)
    places, velocities = draw.normal(size=(2, bodies, 3))
    return 1.0 / bodies + numpy.zeros(bodies), places, 0.1 * velocities, numpy.full(steps, 0.01)


def program(library):
    np = library.np

    def size(masses, places, velocities, times):
        def pull(x):
            apart = x - x[:, None]
            square = np.sum(apart**2, axis=-1) + 0.01
            return np.sum((masses / square**1.5)[..., None] * apart, axis=1)

        def step(state, h):
            x, v = state
            v = v + 0.5 * h * pull(x)
            x = x + h * v
            return (x, v + 0.5 * h * pull(x)), None

        return np.sum(library.scan(step, (places, velocities), times)[0][0] ** 2)

    return size
