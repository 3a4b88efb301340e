"""Values and gradients of programs derived and written by hand for Numba, where they are short.

A function has the name of its program and takes the arguments of that.
"""

import numpy as np
from numba import njit

SETTINGS = {"fastmath": {"contract"}, "error_model": "numpy"}


@njit(**SETTINGS)
def ising(couplings, fields, means, damping):
    """By the adjoint iteration, from the kept states."""
    n, steps = fields.size, damping.size
    symmetric = 0.5 * (couplings + couplings.T)
    m, settled = np.zeros((steps + 1, n)), np.empty((steps, n))
    for t in range(steps):
        settled[t] = np.tanh(symmetric @ m[t] + fields)
        m[t + 1] = m[t] + damping[t] * (settled[t] - m[t])
    miss = m[steps] - means
    g, for_fields, inner = 2.0 * miss, np.zeros(n), np.empty((steps, n))
    for t in range(steps - 1, -1, -1):
        inner[t] = damping[t] * g * (1.0 - settled[t] ** 2)
        for_fields += inner[t]
        g = (1.0 - damping[t]) * g + symmetric @ inner[t]
    outer = inner.T @ m[:steps]
    return np.sum(miss**2), (0.5 * (outer + outer.T), for_fields)


@njit(**SETTINGS)
def diffusion(logarithm, start, measured):
    """By the adjoint of each step, which is symmetric in the temperatures."""
    n, steps = start.shape[0], measured.shape[0]
    k = 0.2 * np.exp(logarithm)
    u = np.zeros((steps + 1, n, n))
    u[0] = start
    near, far = n // 4, 3 * n // 4
    for t in range(steps):
        spread(k, u[t], u[t + 1])
    value, g, before, for_k = 0.0, np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    for t in range(steps - 1, -1, -1):
        for p in range(4):
            row, column = (near, far)[p // 2], (near, far)[p % 2]
            miss = u[t + 1, row, column] - measured[t, p]
            value += miss * miss
            g[row, column] += 2.0 * miss
        for i in range(n):
            for j in range(n):
                if i + 1 < n:
                    slope = 0.5 * (u[t, i + 1, j] - u[t, i, j]) * (g[i, j] - g[i + 1, j])
                    for_k[i, j] += slope
                    for_k[i + 1, j] += slope
                if j + 1 < n:
                    slope = 0.5 * (u[t, i, j + 1] - u[t, i, j]) * (g[i, j] - g[i, j + 1])
                    for_k[i, j] += slope
                    for_k[i, j + 1] += slope
        spread(k, g, before)
        g, before = before, g
    return value, (for_k * k,)


@njit(**SETTINGS)
def spread(k, u, out):
    """One explicit step: heat flows between neighbours by the mean of their conductivities."""
    n = u.shape[0]
    out[:] = u
    for i in range(n - 1):
        for j in range(n):
            flow = 0.5 * (k[i, j] + k[i + 1, j]) * (u[i + 1, j] - u[i, j])
            out[i, j] += flow
            out[i + 1, j] -= flow
    for i in range(n):
        for j in range(n - 1):
            flow = 0.5 * (k[i, j] + k[i, j + 1]) * (u[i, j + 1] - u[i, j])
            out[i, j] += flow
            out[i, j + 1] -= flow


@njit(**SETTINGS)
def gravity(masses, places, velocities, times):
    """By the adjoint of each half step, from the kept places; forces twice a step, as stated."""
    n, steps = masses.size, times.size
    x, v = places.copy(), velocities.copy()
    kept = np.empty((steps + 1, n, 3))
    kept[0] = x
    for t in range(steps):
        h = times[t]
        pull(masses, x, 0.5 * h, v)
        x += h * v
        pull(masses, x, 0.5 * h, v)
        kept[t + 1] = x
    gx, gv, gm = 2.0 * x, np.zeros((n, 3)), np.zeros(n)
    for t in range(steps - 1, -1, -1):
        h = times[t]
        pulled(masses, kept[t + 1], 0.5 * h, gv, gx, gm)
        gv += h * gx
        pulled(masses, kept[t], 0.5 * h, gv, gx, gm)
    return np.sum(x * x), (gm, gx, gv)


@njit(**SETTINGS)
def pull(masses, x, h, v):
    """Adds ``h`` times the accelerations."""
    for i in range(masses.size):
        ax = ay = az = 0.0
        for j in range(masses.size):
            dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            square = dx * dx + dy * dy + dz * dz + 0.01
            w = masses[j] / (square * np.sqrt(square))
            ax += w * dx
            ay += w * dy
            az += w * dz
        v[i, 0] += h * ax
        v[i, 1] += h * ay
        v[i, 2] += h * az


@njit(**SETTINGS)
def pulled(masses, x, h, g, gx, gm):
    """The transpose of ``pull``: pairs act on both bodies, so each gathers its own."""
    for i in range(masses.size):
        sx = sy = sz = sm = 0.0
        for j in range(masses.size):
            dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            square = dx * dx + dy * dy + dz * dz + 0.01
            cube = 1.0 / (square * np.sqrt(square))
            # i's force from j, and j's from i
            wx = masses[j] * g[i, 0] - masses[i] * g[j, 0]
            wy = masses[j] * g[i, 1] - masses[i] * g[j, 1]
            wz = masses[j] * g[i, 2] - masses[i] * g[j, 2]
            along = 3.0 * cube / square * (wx * dx + wy * dy + wz * dz)
            sx += along * dx - cube * wx
            sy += along * dy - cube * wy
            sz += along * dz - cube * wz
            sm -= cube * (g[j, 0] * dx + g[j, 1] * dy + g[j, 2] * dz)
        gx[i, 0] += h * sx
        gx[i, 1] += h * sy
        gx[i, 2] += h * sz
        gm[i] += h * sm
