"""Particle in cell: energy of the field in a plasma of electrons between two beams."""

import numpy

SIZES = {
    "tiny": [6, 4, 2],
    "small": [100, 32, 20],
    "middle": [3000, 64, 50],
    "large": [50_000, 128, 50],
}
ARGNUMS = (0, 1)


def arguments(particles, cells, steps):
    """Places in cells, velocities; times of steps; one number for each cell."""
    draw = numpy.random.default_rng(0)
    beam = numpy.where(numpy.arange(particles) % 2, 2.0, -2.0)
    places = draw.uniform(0.0, cells, particles)
    return (
        places,
        beam + 0.1 * draw.normal(size=particles),
        numpy.full(steps, 0.1),
        numpy.zeros(cells),
    )


def program(library):
    np = library.np

    def energy(places, velocities, times, grid):
        cells = grid.shape[0]
        wave = 2.0 * numpy.pi * numpy.arange(cells // 2 + 1) / cells
        inverse = 1j / numpy.where(wave == 0.0, numpy.inf, wave)
        charge = cells / places.shape[0]

        def step(state, h):
            x, v = state
            cell = np.floor(x)
            right = x - cell
            left = 1.0 - right
            i = cell.astype(int) % cells
            j = (i + 1) % cells
            density = library.bincount(i, left, length=cells)
            density = charge * (density + library.bincount(j, right, length=cells))
            field = np.fft.irfft(inverse * np.fft.rfft(density - 1.0), cells)
            v = v + h * (left * field[i] + right * field[j])
            return ((x + h * v) % cells, v), np.sum(field**2)

        return np.sum(library.scan(step, (places, velocities), times)[1])

    return energy
