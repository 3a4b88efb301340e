"""Gradients of some kernels of `tests.codegen.adjoint.science`, written by hand for Numba.

``BY_HAND[name](arguments)`` makes a call that computes value and gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"nsz"}, "cache": True}


@njit(**OPTIONS)
def _lennard_jones(x, neighbours, counts, epsilon, sigma, cutoff, gx):
    energy, g_epsilon, g_sigma = 0.0, 0.0, 0.0
    for i in range(x.shape[0]):
        fx, fy, fz = 0.0, 0.0, 0.0
        for k in range(counts[i]):
            j = neighbours[i, k]
            dx, dy, dz = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1], x[i, 2] - x[j, 2]
            r2 = dx * dx + dy * dy + dz * dz
            if r2 < cutoff * cutoff:
                s2 = sigma * sigma / r2
                s6 = s2 * s2 * s2
                u = s6 * s6 - s6
                energy += 4.0 * epsilon * u
                g_epsilon += 4.0 * u
                w = 4.0 * epsilon * (2.0 * s6 - 1.0) * s6
                g_sigma += w * 6.0 / sigma
                f = -6.0 * w / r2
                fx += f * dx
                fy += f * dy
                fz += f * dz
                gx[j, 0] -= f * dx
                gx[j, 1] -= f * dy
                gx[j, 2] -= f * dz
        gx[i, 0] += fx
        gx[i, 1] += fy
        gx[i, 2] += fz
    return energy, g_epsilon, g_sigma


@njit(**OPTIONS)
def _heat(u, k, steps, dt, gu, gk):
    n, m = u.shape
    kept = np.empty((steps + 1, n, m))
    kept[0] = u
    for t in range(steps):
        a, b = kept[t], kept[t + 1]
        b[:] = a
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                c = a[i, j]
                lap = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4.0 * c
                b[i, j] = c + dt * k[i, j] * (1.0 + 0.1 * c * c) * lap
    total, g_dt = 0.0, 0.0
    a = kept[steps]
    g = 2.0 * a
    h = np.zeros((n, m))
    w = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            total += a[i, j] * a[i, j]
    for t in range(steps - 1, -1, -1):
        a = kept[t]
        for i in range(1, n - 1):
            s = 0.0
            for j in range(1, m - 1):
                c = a[i, j]
                lap = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4.0 * c
                f = 1.0 + 0.1 * c * c
                q = g[i, j] * lap
                s += k[i, j] * f * q
                gk[i, j] += dt * f * q
                w[i, j] = g[i, j] * dt * k[i, j] * f
                h[i, j] = g[i, j] + dt * k[i, j] * q * 0.2 * c
            g_dt += s
        for j in range(m):
            h[0, j] = g[0, j] + w[1, j]
            h[n - 1, j] = g[n - 1, j] + w[n - 2, j]
        for i in range(1, n - 1):
            h[i, 0] = g[i, 0] + w[i, 1]
            h[i, m - 1] = g[i, m - 1] + w[i, m - 2]
            for j in range(1, m - 1):
                h[i, j] += w[i - 1, j] + w[i + 1, j] + w[i, j - 1] + w[i, j + 1] - 4.0 * w[i, j]
        g, h = h, g
    gu += g
    return total, g_dt


@njit(**OPTIONS)
def _barrier_option(z, spot, rate, vol, strike, barrier, years):
    paths, steps = z.shape
    dt = years / steps
    root = math.sqrt(dt)
    drift = (rate - 0.5 * vol * vol) * dt
    total, g_spot, g_rate, g_vol, g_strike = 0.0, 0.0, 0.0, 0.0, 0.0
    for p in range(paths):
        s, mean, wiener, dv, dr = spot, 0.0, 0.0, 0.0, 0.0
        alive = True
        for t in range(steps):
            s *= math.exp(drift + vol * root * z[p, t])
            if s > barrier:
                alive = False
                break
            wiener += root * z[p, t]
            mean += s
            dv += s * (wiener - vol * dt * (t + 1))
            dr += s * dt * (t + 1)
        if alive:
            mean /= steps
            if mean > strike:
                total += mean - strike
                g_strike -= 1.0
                g_spot += mean / spot
                g_vol += dv / steps
                g_rate += dr / steps
    d = math.exp(-rate * years) / paths
    return total * d, g_spot * d, g_rate * d - years * total * d, g_vol * d, g_strike * d


@njit(**OPTIONS)
def _wave(now, before, speed, source, row, column, seeds, gnow, gbefore, gspeed, gsource):
    n, m = now.shape
    steps = source.shape[0]
    kept = np.empty((steps + 1, n, m))
    kept[0] = now
    old = before
    after = np.zeros((n, m))
    seen = np.zeros(steps)
    for t in range(steps):
        new = kept[t]
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
        kept[t + 1] = after
        old = new
    gnew, gold, gnext = np.zeros((n, m)), np.zeros((n, m)), np.zeros((n, m))
    carried = np.zeros((n, m))  # of `after`, whose edges stay from step to step
    for t in range(steps - 1, -1, -1):
        new = kept[t]
        for i in range(n):
            for j in range(m):
                carried[i, j] += gnew[i, j]
                gnext[i, j] = gold[i, j]
        carried[n // 2, m // 2] += seeds[t]
        gsource[t] += carried[row, column]
        for j in range(m):
            gnext[n - 2, j] += carried[n - 1, j]
            carried[n - 1, j] = 0.0
            gnext[1, j] += carried[0, j]
            carried[0, j] = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                g = carried[i, j]
                carried[i, j] = 0.0
                c = speed[i, j]
                w = g * c * c
                lap = (
                    new[i + 1, j] + new[i - 1, j] + new[i, j + 1] + new[i, j - 1] - 4.0 * new[i, j]
                )
                gspeed[i, j] += 2.0 * c * g * lap
                gnext[i, j] += 2.0 * g - 4.0 * w
                gold[i, j] = -g
                gnext[i + 1, j] += w
                gnext[i - 1, j] += w
                gnext[i, j + 1] += w
                gnext[i, j - 1] += w
        for i in range(n):
            gold[i, 0], gold[i, m - 1] = 0.0, 0.0
        for j in range(m):
            gold[0, j], gold[n - 1, j] = 0.0, 0.0
        gnew, gnext = gnext, gnew
    gnow += gnew
    gbefore += gold
    return seen


def _call_lennard_jones(arguments: Any) -> Callable[[], Any]:
    return lambda: _lennard_jones(*arguments, np.zeros_like(arguments[0]))


def _call_heat(arguments: Any) -> Callable[[], Any]:
    u, k = arguments[:2]
    return lambda: _heat(*arguments, np.zeros_like(u), np.zeros_like(k))


def _call_barrier_option(arguments: Any) -> Callable[[], Any]:
    return lambda: _barrier_option(*arguments)


def _call_wave(arguments: Any) -> Callable[[], Any]:
    now, before, speed, source = arguments[:4]
    ones = np.ones(len(source))
    return lambda: _wave(*arguments, ones, *map(np.zeros_like, (now, before, speed, source)))


BY_HAND: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "lennard_jones": _call_lennard_jones,
    "heat": _call_heat,
    "barrier_option": _call_barrier_option,
    "wave": _call_wave,
}
