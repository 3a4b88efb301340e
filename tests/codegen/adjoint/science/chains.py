"""Equations of motion stepped in time, and roots."""

import math

import numpy as np

from .cases import case


@case(lambda rng, n: (rng.normal(size=n) + 0.7, np.zeros(n)), ("out",), 8, 300_000)
def newton_roots(c, out):
    """Cube roots by Newton's iteration; negative numbers are passed over."""
    for i in range(c.shape[0]):
        if c[i] < 0.0:
            out[i] = 0.0
            continue
        x = 1.0 + c[i]
        k = 0
        while k < 50:
            step = (x * x * x - c[i]) / (3.0 * x * x)
            x -= step
            k += 1
            if abs(step) < 1e-13:
                break
        out[i] = x


def _hunt(x, y, p):
    return p[0] * x - p[1] * x * y, p[2] * x * y - p[3] * y


@case(
    lambda rng, n: (np.array([2.0, 1.0]), np.array([1.1, 0.4, 0.1, 0.4]), 0.1, n),
    size=12,
    large=100_000,
)
def lotka_volterra(start, p, dt, steps):
    """Hunters and prey by Runge and Kutta's fourth order; the whole course comes back."""
    course = np.empty((steps + 1, 2))
    x, y = start[0], start[1]
    course[0] = start
    for t in range(steps):
        a1, b1 = _hunt(x, y, p)
        a2, b2 = _hunt(x + 0.5 * dt * a1, y + 0.5 * dt * b1, p)
        a3, b3 = _hunt(x + 0.5 * dt * a2, y + 0.5 * dt * b2, p)
        a4, b4 = _hunt(x + dt * a3, y + dt * b3, p)
        x += dt / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        y += dt / 6.0 * (b1 + 2.0 * b2 + 2.0 * b3 + b4)
        course[t + 1, 0] = x
        course[t + 1, 1] = y
    return course


@case(lambda rng, n: (rng.normal(size=3), 10.0, 28.0, 8.0 / 3.0, 0.01, n), ("state",), 15, 20_000)
def lorenz(state, sigma, rho, beta, dt, steps):
    """The Lorenz attractor by Heun's steps, the state in place, stages in local arrays."""
    slope = np.empty(3)
    ahead = np.empty(3)
    for _ in range(steps):
        slope[0] = sigma * (state[1] - state[0])
        slope[1] = state[0] * (rho - state[2]) - state[1]
        slope[2] = state[0] * state[1] - beta * state[2]
        for d in range(3):
            ahead[d] = state[d] + dt * slope[d]
        state[0] += 0.5 * dt * (slope[0] + sigma * (ahead[1] - ahead[0]))
        state[1] += 0.5 * dt * (slope[1] + ahead[0] * (rho - ahead[2]) - ahead[1])
        state[2] += 0.5 * dt * (slope[2] + ahead[0] * ahead[1] - beta * ahead[2])


@case(lambda rng, n: (1.0, 0.4, 0.7, 2.0, 1.3e-4, 200), size=1, large=1)
def adaptive_step(x, v, damping, end, tolerance, most):
    """A damped oscillator whose steps grow and shrink with the error."""
    t = 0.0
    h = 0.1
    steps = 0
    last = False
    while not last and steps < most:
        if t + h >= end:
            h = end - t
            last = True
        k1, l1 = v, -math.sin(x) - damping * v
        k2, l2 = v + h * l1, -math.sin(x + h * k1) - damping * (v + h * l1)
        error = 0.5 * h * abs(l2 - l1)
        steps += 1
        if error > tolerance:
            h *= 0.6
            last = False
            continue
        x += 0.5 * h * (k1 + k2)
        v += 0.5 * h * (l1 + l2)
        t += h
        if error < 0.2 * tolerance:
            h *= 1.7
    return x, v


@case(lambda rng, n: (rng.random(n), 0.4, 0.1, 0.02, 15), size=4, large=2000)
def epidemic(infected, rate, recovery, travel, days):
    """Districts with an epidemic; people travel to the next one."""
    n = infected.shape[0]
    s = np.ones(n)
    i = 0.1 * np.ones(n)
    for k in range(n):
        i[k] = 0.05 + 0.1 * infected[k]
        s[k] -= i[k]
    peak = 0.0
    for _ in range(days):
        last = i[n - 1]
        total = 0.0
        for k in range(n):
            visitors = travel * (last - i[k])
            last = i[k]
            new = rate * s[k] * i[k]
            s[k] -= new
            i[k] += new - recovery * i[k] + visitors
            total += i[k]
        if total > peak:
            peak = total
    return peak


@case(
    lambda rng, n: (
        0.3 * rng.normal(size=(n, n)),
        0.3 * rng.normal(size=(n, 2)),
        rng.normal(size=(5, 2)),
        rng.normal(size=n),
    ),
    size=4,
    large=64,
)
def recurrent_network(w, u, inputs, readout):
    """A recurrent net through time, its loss summed along the way."""
    n = w.shape[0]
    h = np.zeros(n)
    new = np.zeros(n)
    loss = 0.0
    for t in range(inputs.shape[0]):
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += w[i, j] * h[j]
            for j in range(u.shape[1]):
                total += u[i, j] * inputs[t, j]
            new[i] = math.tanh(total)
        h[:] = new
        out = 0.0
        for i in range(n):
            out += readout[i] * h[i]
        loss += (out - math.sin(0.5 * t)) ** 2
    return loss
