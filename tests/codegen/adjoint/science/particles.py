"""Particles, molecules, orbits."""

import math

import numpy as np
from numba import prange

from .cases import case


def _fluid(rng, n):
    """Positions near a lattice, and each pair of neighbours once."""
    side = max(2, round(n ** (1 / 3)))
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)
    x = lattice * 1.1 + 0.05 * rng.normal(size=lattice.shape)
    reach = 2 if side > 2 else 1
    pairs = [[] for _ in range(len(x))]
    for i, at in enumerate(lattice):
        for shift in np.ndindex(*[2 * reach + 1] * 3):
            other = at + np.array(shift) - reach
            if (other >= 0).all() and (other < side).all():
                j = int((other[0] * side + other[1]) * side + other[2])
                if i < j and np.sum((x[i] - x[j]) ** 2) < 2.7**2:
                    pairs[i].append(j)
    counts = np.array([len(p) for p in pairs])
    neighbours = np.zeros((len(x), max(1, counts.max())), np.int64)
    for i, p in enumerate(pairs):
        neighbours[i, : len(p)] = p
    return x, neighbours, counts, 1.0, 1.0, 2.5


@case(_fluid, size=27, large=8000)
def lennard_jones(x, neighbours, counts, epsilon, sigma, cutoff):
    """Potential energy of a fluid with a list of neighbours."""
    energy = 0.0
    for i in prange(x.shape[0]):
        for k in range(counts[i]):
            j = neighbours[i, k]
            dx = x[i, 0] - x[j, 0]
            dy = x[i, 1] - x[j, 1]
            dz = x[i, 2] - x[j, 2]
            r2 = dx * dx + dy * dy + dz * dz
            if r2 < cutoff * cutoff:
                s6 = (sigma * sigma / r2) ** 3
                energy += 4.0 * epsilon * (s6 * s6 - s6)
    return energy


@case(
    lambda rng, n: (10 * rng.random(n), rng.normal(size=n), rng.normal(size=max(8, n // 20)), 10.0),
    ("rho",),
    12,
    1_000_000,
)
def deposit(position, charge, rho, length):
    """Charges onto a periodic grid, with linear weights."""
    n = rho.shape[0]
    dx = length / n
    for p in range(position.shape[0]):
        s = position[p] / dx
        cell = int(math.floor(s))  # noqa: RUF046
        w = s - cell
        rho[cell % n] += charge[p] * (1.0 - w) / dx
        rho[(cell + 1) % n] += charge[p] * w / dx


def _kernel(q):
    """The cubic spline of smoothed particles."""
    if q >= 2.0:
        return 0.0
    if q < 1.0:
        return 1.0 - 1.5 * q * q + 0.75 * q * q * q
    return 0.25 * (2.0 - q) ** 3


@case(lambda rng, n: (rng.random((n, 2)) * 2, 0.5 + rng.random(n), 0.7, 1.4), size=8, large=1500)
def smoothed_particles(x, mass, width, exponent):
    """Density of each particle from its neighbours, and the pressure of all."""
    n = x.shape[0]
    density = np.zeros(n)
    for i in prange(n):
        rho = 0.0
        for j in range(n):
            r2 = 0.0
            for d in range(2):
                r2 += (x[i, d] - x[j, d]) ** 2
            if i == j:
                rho += mass[j] * _kernel(0.0)
            else:
                rho += mass[j] * _kernel(math.sqrt(r2) / width)
        density[i] = rho / width**2
    pressure = 0.0
    for i in range(n):
        pressure += density[i] ** exponent
    return pressure, density


@case(
    lambda rng, n: (
        rng.normal(size=(n, 3)),
        0.1 * rng.normal(size=(n, 3)),
        0.5 + rng.random(n),
        5 if n < 50 else 20,
        0.02,
        0.3,
    ),
    ("x", "v"),
    4,
    200,
)
def bodies(x, v, mass, steps, dt, softening):
    """Leapfrog steps of bodies that attract each other, in place."""
    n = x.shape[0]
    a = np.empty((n, 3))
    for _ in range(steps):
        for i in range(n):
            for d in range(3):
                a[i, d] = 0.0
            for j in range(n):
                if j == i:
                    continue
                dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                r2 = dx * dx + dy * dy + dz * dz + softening * softening
                pull = mass[j] / (r2 * math.sqrt(r2))
                a[i, 0] += pull * dx
                a[i, 1] += pull * dy
                a[i, 2] += pull * dz
        for i in range(n):
            for d in range(3):
                v[i, d] += dt * a[i, d]
                x[i, d] += dt * v[i, d]


@case(
    lambda rng, n: (2 * np.pi * rng.random(n), 0.05 + 0.85 * rng.random(n), 1e-12),
    size=8,
    large=200_000,
)
def kepler(anomaly, eccentricity, tolerance):
    """Eccentric anomalies by Newton's iteration, and where the bodies are."""
    n = anomaly.shape[0]
    place = np.empty((n, 2))
    for i in range(n):
        e = eccentricity[i]
        m = anomaly[i]
        angle = m if e < 0.8 else math.pi
        step = 1.0
        count = 0
        while abs(step) > tolerance and count < 60:
            step = (angle - e * math.sin(angle) - m) / (1.0 - e * math.cos(angle))
            angle -= step
            count += 1
        place[i, 0] = math.cos(angle) - e
        place[i, 1] = math.sqrt(1.0 - e * e) * math.sin(angle)
    return place


@case(
    lambda rng, n: (rng.normal(size=(n, 3)), rng.normal(size=n), rng.normal(size=3), 0.3, 10),
    size=5,
    large=2000,
)
def spin_chain(spins, coupling, field, anisotropy, steps):
    """Heisenberg's chain: unit vectors, turned into their local field again and again."""
    n = spins.shape[0]
    s = np.empty((n, 3))
    for i in range(n):
        norm = math.sqrt(spins[i, 0] ** 2 + spins[i, 1] ** 2 + spins[i, 2] ** 2)
        for d in range(3):
            s[i, d] = spins[i, d] / norm
    for _ in range(steps):
        for i in range(n):
            hx = field[0] + coupling[i] * s[(i + 1) % n, 0] + coupling[i - 1] * s[i - 1, 0]
            hy = field[1] + coupling[i] * s[(i + 1) % n, 1] + coupling[i - 1] * s[i - 1, 1]
            hz = field[2] + coupling[i] * s[(i + 1) % n, 2] + coupling[i - 1] * s[i - 1, 2]
            hz += 2.0 * anisotropy * s[i, 2]
            x = s[i, 0] + 0.1 * hx
            y = s[i, 1] + 0.1 * hy
            z = s[i, 2] + 0.1 * hz
            norm = math.sqrt(x * x + y * y + z * z)
            s[i, 0], s[i, 1], s[i, 2] = x / norm, y / norm, z / norm
    energy = 0.0
    for i in range(n):
        for d in range(3):
            energy -= coupling[i] * s[i, d] * s[(i + 1) % n, d] + field[d] * s[i, d]
        energy -= anisotropy * s[i, 2] ** 2
    return energy


@case(
    lambda rng, n: (
        rng.uniform(-0.5, 0.5, (n, n)),
        0.4 + 0.1 * rng.random((n, n)),
        0.3 * rng.normal(size=(n, n)),
        12,
    ),
    ("m",),
    4,
    300,
)
def ising_mean_field(m, coupling, field, sweeps):
    """Self-consistent magnetization of a lattice, relaxed in place."""
    n = m.shape[0]
    for _ in range(sweeps):
        change = 0.0
        for i in range(n):
            for j in range(n):
                around = m[(i + 1) % n, j] + m[i - 1, j] + m[i, (j + 1) % n] + m[i, j - 1]
                new = math.tanh(coupling[i, j] * around + field[i, j])
                change += (new - m[i, j]) ** 2
                m[i, j] = new
        if change < 1e-6:
            break


@case(
    lambda rng, n: (rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), 1.3, 0.02, 8),
    ("x", "v"),
    4,
    3000,
)
def cloth(x, v, stiffness, dt, steps):
    """A hanging chain of springs with an end held; parts of the state are views."""
    n = x.shape[0]
    force = np.zeros_like(x)
    for _ in range(steps):
        for i in range(n):
            force[i, 0] = 0.0
            force[i, 1] = -1.0
        for i in range(n - 1):
            one = x[i]
            other = x[i + 1]
            dx = other[0] - one[0]
            dy = other[1] - one[1]
            length = math.sqrt(dx * dx + dy * dy)
            pull = stiffness * (length - 0.5) / length
            force[i, 0] += pull * dx
            force[i, 1] += pull * dy
            force[i + 1, 0] -= pull * dx
            force[i + 1, 1] -= pull * dy
        for i in range(1, n):
            for d in range(2):
                v[i, d] = 0.98 * (v[i, d] + dt * force[i, d])
                x[i, d] += dt * v[i, d]
