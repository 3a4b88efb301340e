"""Prices and volatilities."""

import math

import numpy as np
from numba import prange

from .cases import case


@case(
    lambda rng, n: (
        rng.normal(size=(n, 5 if n < 100 else 100)),
        100.0,
        0.05,
        0.2,
        95.0,
        150.0,
        1.0,
    ),
    size=8,
    large=20_000,
)
def barrier_option(z, spot, rate, vol, strike, barrier, years):
    """An average-price call that dies at a barrier: a loop of paths around a loop of steps."""
    paths, steps = z.shape
    dt = years / steps
    total = 0.0
    for p in prange(paths):
        s = spot
        mean = 0.0
        alive = True
        for t in range(steps):
            s *= math.exp((rate - 0.5 * vol * vol) * dt + vol * math.sqrt(dt) * z[p, t])
            if s > barrier:
                alive = False
                break
            mean += s
        if alive:
            mean /= steps
            if mean > strike:
                total += mean - strike
    return math.exp(-rate * years) * total / paths


@case(lambda rng, n: (rng.normal(size=n), 100.0, 0.03, 0.25, 105.0, 0.5), size=12, large=1_000_000)
def european_option(z, spot, rate, vol, strike, years):
    """A call and a put from given normal numbers, with antithetic paths."""
    drift = (rate - 0.5 * vol**2) * years
    spread = vol * math.sqrt(years)
    call = 0.0
    put = 0.0
    for i in range(z.shape[0]):
        for sign in range(-1, 2, 2):
            end = spot * math.exp(drift + spread * sign * z[i])
            gain = end - strike
            if gain > 0.0:
                call += gain
            else:
                put -= gain
    discount = math.exp(-rate * years) / (2 * len(z))
    return call * discount, put * discount


@case(lambda rng, n: (0.2 * rng.normal(size=n), 4e-3, 0.08, 0.9), size=10, large=1_000_000)
def garch(returns, omega, alpha, beta):
    """Log-likelihood of a volatility that remembers: a recurrence through all days."""
    n = returns.shape[0]
    variance = 0.0
    for t in range(n):
        variance += returns[t] ** 2
    variance /= n
    likelihood = 0.0
    for t in range(n):
        if t > 0:
            variance = omega + alpha * returns[t - 1] ** 2 + beta * variance
        likelihood -= 0.5 * (
            math.log(2.0 * math.pi) + math.log(variance) + returns[t] ** 2 / variance
        )
    return likelihood


@case(lambda rng, n: (100.0, 102.0, 0.03, 0.3, 1.0, n), size=6, large=2000)
def american_put(spot, strike, rate, vol, years, steps):
    """A binomial tree rolled back in place, with the choice to exercise."""
    dt = years / steps
    up = math.exp(vol * math.sqrt(dt))
    down = 1.0 / up
    p = (math.exp(rate * dt) - down) / (up - down)
    discount = math.exp(-rate * dt)
    value = np.empty(steps + 1)
    for k in range(steps + 1):
        value[k] = max(strike - spot * up**k * down ** (steps - k), 0.0)
    for t in range(steps - 1, -1, -1):
        for k in range(t + 1):
            hold = discount * (p * value[k + 1] + (1.0 - p) * value[k])
            value[k] = max(hold, strike - spot * up**k * down ** (t - k))
    return value[0]


def _normal(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@case(
    lambda rng, n: (
        90 + 20 * rng.random(n),
        90 + 20 * rng.random(n),
        0.2 + rng.random(n),
        0.03,
        0.25,
    ),
    size=8,
    large=500_000,
)
def black_scholes(spot, strike, years, rate, vol):
    """Closed prices of calls and puts, one array each."""
    n = len(spot)
    call = np.empty(n, dtype=np.float64)
    put = np.empty_like(call)
    for i in prange(n):
        root = vol * math.sqrt(years[i])
        d1 = (math.log(spot[i] / strike[i]) + (rate + 0.5 * vol * vol) * years[i]) / root
        d2 = d1 - root
        paid = strike[i] * math.exp(-rate * years[i])
        call[i] = spot[i] * _normal(d1) - paid * _normal(d2)
        put[i] = paid * _normal(-d2) - spot[i] * _normal(-d1)
    return call, put
