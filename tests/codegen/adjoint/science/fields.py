"""Fields on grids: diffusion, waves, flows, relaxation."""

import math

import numpy as np

from .cases import case


def _plate(rng, n):
    return rng.normal(size=(n, n + 1)), 0.5 + rng.random((n, n + 1)), 4 if n < 50 else 100, 0.1


@case(_plate, size=5, large=300)
def heat(u, k, steps, dt):
    """Nonlinear conduction, explicit, two arrays that are swapped."""
    n, m = u.shape
    v = u.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                c = u[i, j]
                lap = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * c
                v[i, j] = c + dt * k[i, j] * (1.0 + 0.1 * c * c) * lap
        u, v = v, u
    total = 0.0
    for i in range(n):
        for j in range(m):
            total += u[i, j] * u[i, j]
    return total


@case(_plate, ("u",), 5, 300)
def heat_in_place(u, k, steps, dt):
    """The same by sweeps that read what they have just written."""
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                lap = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
                u[i, j] += dt * k[i, j] * lap * (1.0 + 0.1 * u[i, j])


@case(
    lambda rng, n: (
        rng.normal(size=(n, n)),
        rng.normal(size=(n, n)),
        0.3 + 0.2 * rng.random((n, n)),
        rng.normal(size=5 if n < 50 else 60),
        2,
        1,
    ),
    size=6,
    large=300,
)
def wave(now, before, speed, source, row, column):
    """The wave equation with a source and an absorbing rim; what a receiver sees."""
    n, m = now.shape
    steps = source.shape[0]
    after = np.zeros((n, m))
    old = before.copy()
    new = now.copy()
    seen = np.zeros(steps)
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                lap = (
                    new[i + 1, j] + new[i - 1, j] + new[i, j + 1] + new[i, j - 1] - 4.0 * new[i, j]
                )
                after[i, j] = 2.0 * new[i, j] - old[i, j] + speed[i, j] ** 2 * lap
        for j in range(m):
            after[0, j] = new[1, j]
            after[n - 1, j] = new[n - 2, j]
        after[row, column] += source[t]
        seen[t] = after[n // 2, m // 2]
        for i in range(n):
            for j in range(m):
                old[i, j] = new[i, j]
                new[i, j] = after[i, j]
    return seen


@case(lambda rng, n: (rng.normal(size=n), 0.05, 0.01, 1.0 / n, 12), ("u",), 9, 20_000)
def burgers(u, viscosity, dt, dx, steps):
    """Burgers' equation on a circle: upwind by the sign of the velocity."""
    n = u.shape[0]
    new = np.empty(n)
    for _ in range(steps):
        for i in range(n):
            left = u[i - 1]
            right = u[(i + 1) % n]
            if u[i] > 0.0:
                slope = (u[i] - left) / dx
            else:
                slope = (right - u[i]) / dx
            new[i] = u[i] - dt * u[i] * slope + dt * viscosity * (left - 2.0 * u[i] + right) / dx
        for i in range(n):
            u[i] = new[i]


@case(
    lambda rng, n: (
        1.0 + 0.1 * rng.random(n),
        0.1 * rng.normal(size=n),
        0.02 * rng.normal(size=n),
        9.81,
        0.02,
        0.5,
        10,
    ),
    ("h", "q"),
    8,
    20_000,
)
def shallow_water(h, q, ground, gravity, dt, dx, steps):
    """Height and discharge of a channel by Rusanov's flux."""
    n = h.shape[0]
    mass = np.zeros(n + 1)
    momentum = np.zeros(n + 1)
    for _ in range(steps):
        for i in range(1, n):
            hl, hr = h[i - 1], h[i]
            ul, ur = q[i - 1] / hl, q[i] / hr
            fastest = max(abs(ul) + math.sqrt(gravity * hl), abs(ur) + math.sqrt(gravity * hr))
            mass[i] = 0.5 * (q[i - 1] + q[i]) - 0.5 * fastest * (hr - hl)
            left = q[i - 1] * ul + 0.5 * gravity * hl * hl
            right = q[i] * ur + 0.5 * gravity * hr * hr
            momentum[i] = 0.5 * (left + right) - 0.5 * fastest * (q[i] - q[i - 1])
        mass[0], mass[n] = 0.0, 0.0
        momentum[0] = 0.5 * gravity * h[0] ** 2
        momentum[n] = 0.5 * gravity * h[n - 1] ** 2
        for i in range(n):
            slope = (ground[(i + 1) % n] - ground[i - 1]) / (2.0 * dx)
            q[i] -= dt / dx * (momentum[i + 1] - momentum[i]) + dt * gravity * h[i] * slope
            h[i] -= dt / dx * (mass[i + 1] - mass[i])


@case(lambda rng, n: (rng.normal(size=(n, n)), 0.5 + rng.random((n, n)), 0.1, 3), size=6, large=300)
def level_set(phi, speed, dt, steps):
    """A front that moves along its normal: Godunov's gradient."""
    n, m = phi.shape
    new = phi.copy()
    old = phi.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                a = max(old[i, j] - old[i - 1, j], 0.0)
                b = min(old[i + 1, j] - old[i, j], 0.0)
                c = max(old[i, j] - old[i, j - 1], 0.0)
                d = min(old[i, j + 1] - old[i, j], 0.0)
                steep = math.sqrt(max(a * a, b * b) + max(c * c, d * d) + 1e-4)
                new[i, j] = old[i, j] - dt * speed[i, j] * steep
        new, old = old, new
    area = 0.0
    for i in range(n):
        for j in range(m):
            area += 1.0 / (1.0 + math.exp(old[i, j] / 0.3))
    return area


@case(lambda rng, n: (rng.normal(size=(n, n)), rng.normal(size=(n, n)), 6, 1.5), ("u",), 6, 300)
def gauss_seidel(u, f, sweeps, relaxation):
    """Poisson's equation by over-relaxation, red points before black ones."""
    n, m = u.shape
    for _ in range(sweeps):
        for colour in range(2):
            for i in range(1, n - 1):
                for j in range(1 + (i + colour) % 2, m - 1, 2):
                    new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
                    u[i, j] += relaxation * (new - u[i, j])


@case(lambda rng, n: (rng.normal(size=(n, n)), rng.normal(size=(n, n)), 5), size=6, large=300)
def jacobi(u, f, sweeps):
    """Poisson's equation by whole sweeps; returns the residual and the array."""
    n, m = u.shape
    old = u.copy()
    new = u.copy()
    for _ in range(sweeps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new[i, j] = 0.25 * (
                    old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1] - f[i, j]
                )
        old, new = new, old
    residual = 0.0
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            r = (
                old[i - 1, j]
                + old[i + 1, j]
                + old[i, j - 1]
                + old[i, j + 1]
                - 4.0 * old[i, j]
                - f[i, j]
            )
            residual += r * r
    return residual, old


@case(
    lambda rng, n: (
        rng.normal(size=(n + 1, n)),
        rng.normal(size=(n, n + 1)),
        rng.normal(size=(n, n)),
        1.0 + rng.random((n, n)),
        0.4,
        4,
    ),
    ("ex", "ey", "hz"),
    4,
    200,
)
def fdtd(ex, ey, hz, permittivity, dt, steps):
    """Maxwell's equations in a plane: electric and magnetic fields in turn."""
    n = hz.shape[0]
    m = hz.shape[1]
    for _ in range(steps):
        for i in range(1, n):
            for j in range(m):
                ex[i, j] += dt * (hz[i, j] - hz[i - 1, j]) / permittivity[i, j]
        for i in range(n):
            for j in range(1, m):
                ey[i, j] -= dt * (hz[i, j] - hz[i, j - 1]) / permittivity[i, j]
        for i in range(n):
            for j in range(m):
                hz[i, j] += dt * (ex[i + 1, j] - ex[i, j] - ey[i, j + 1] + ey[i, j])


def _cable(rng, n):
    return -65.0 + 5.0 * rng.random(n), 10.0 * rng.random(n), 10 if n < 50 else 200, 0.01, 0.5


@case(_cable, size=5, large=1000)
def cable(v0, current, steps, dt, coupling):
    """Hodgkin and Huxley's axon: a potential and three gates in each compartment."""
    n = v0.shape[0]
    v = v0.copy()
    m = np.full(n, 0.053)
    h = np.full(n, 0.596)
    k = np.full(n, 0.318)
    new = np.empty(n)
    highest = 0.0
    for _ in range(steps):
        for i in range(n):
            u = v[i]
            am = 0.1 * (u + 40.0) / (1.0 - math.exp(-(u + 40.0) / 10.0))
            bm = 4.0 * math.exp(-(u + 65.0) / 18.0)
            ah = 0.07 * math.exp(-(u + 65.0) / 20.0)
            bh = 1.0 / (1.0 + math.exp(-(u + 35.0) / 10.0))
            an = 0.01 * (u + 55.0) / (1.0 - math.exp(-(u + 55.0) / 10.0))
            bn = 0.125 * math.exp(-(u + 65.0) / 80.0)
            m[i] += dt * (am * (1.0 - m[i]) - bm * m[i])
            h[i] += dt * (ah * (1.0 - h[i]) - bh * h[i])
            k[i] += dt * (an * (1.0 - k[i]) - bn * k[i])
            flow = 120.0 * m[i] ** 3 * h[i] * (u - 50.0) + 36.0 * k[i] ** 4 * (u + 77.0)
            flow += 0.3 * (u + 54.4)
            left = v[max(i - 1, 0)]
            right = v[min(i + 1, n - 1)]
            new[i] = u + dt * (current[i] - flow + coupling * (left - 2.0 * u + right))
        v, new = new, v
        highest += v[n - 1] * dt
    return highest


@case(
    lambda rng, n: (rng.random((n, n)), rng.random((n, n)), 0.16, 0.08, 0.035, 0.065, 4),
    ("u", "v"),
    5,
    250,
)
def gray_scott(u, v, du, dv, feed, kill, steps):
    """Two substances that react and diffuse on a torus."""
    n = u.shape[0]
    for _ in range(steps):
        u_old = u.copy()
        v_old = v.copy()
        for i in range(n):
            up, down = (i - 1) % n, (i + 1) % n
            for j in range(n):
                left, right = (j - 1) % n, (j + 1) % n
                a, b = u_old[i, j], v_old[i, j]
                lu = u_old[up, j] + u_old[down, j] + u_old[i, left] + u_old[i, right] - 4.0 * a
                lv = v_old[up, j] + v_old[down, j] + v_old[i, left] + v_old[i, right] - 4.0 * b
                u[i, j] = a + du * lu - a * b * b + feed * (1.0 - a)
                v[i, j] = b + dv * lv + a * b * b - (feed + kill) * b
