"""Hamiltonian Monte Carlo in Numba on gradients of ``ng.jit``: ``python perf/hmc.py``.

A leapfrog sampler (Neal, MCMC using Hamiltonian dynamics, 2011) written in Numba, whose gradient
is ``.njit_into`` of a native function, on eight schools (Rubin 1981, not centred) and a logistic
regression of 1,000 rows and 10 columns. It adapts step size (dual averaging: Hoffman and Gelman,
The No-U-Turn Sampler, 2014) and variances while it warms up. Printed are leapfrog steps a second of
CPU time beside those of BlackJAX for the same number of steps, in turns, and effective samples a
second, the least of all parameters (ArviZ), beside nutpie's NUTS of the same model in PyMC. What is
not installed is left out.
"""

from __future__ import annotations

import os

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numba
import numpy as np

import numgrad as ng

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
_RNG = np.random.default_rng(0)
ROWS = _RNG.normal(size=(1000, 10))
LABELS = (_RNG.uniform(size=1000) < 1 / (1 + np.exp(-ROWS @ _RNG.normal(size=10)))).astype(float)


def schools(q: Any, np: Any = np) -> Any:
    """Minus the logarithm of the density: mean, logarithm of the spread, standardised effects."""
    z = q[2:]
    residuals = (EFFECTS - (q[0] + np.exp(q[1]) * z)) / ERRORS
    prior = (q[0] / 5) ** 2 / 2 + np.log1p(np.exp(2 * q[1]) / 25) - q[1]  # half-Cauchy of 5
    return prior + np.sum(z * z) / 2 + np.sum(residuals * residuals) / 2


def logistic(b: Any, np: Any = np) -> Any:
    z = ROWS @ b
    return np.sum(np.logaddexp(0.0, z) - LABELS * z) + np.sum(b * b) / 2


MODELS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "eight schools": (schools, 10, 16),
    "logistic regression": (logistic, 10, 8),
}
"""Minus a log density, its parameters, leapfrog steps of a trajectory."""


def sampler(gradient: Any) -> Any:
    """A sampler in Numba for ``gradient(x, out) -> value``.

    ``run(start, warm_up, draws, most, seed)`` returns draws and the number of leapfrog steps of
    these; with ``most`` below 0 all trajectories have that many steps, else at most so many.
    """

    @numba.njit
    def run(start, warm_up, draws, most, seed):
        np.random.seed(seed)
        n = start.size
        x, g = start.copy(), np.empty(n)
        u = gradient(x, g)
        y, h, p = np.empty(n), np.empty(n), np.empty(n)
        variance, mean, moment = np.ones(n), np.zeros(n), np.zeros(n)
        step, smooth, sums, count, adapted = 0.1, 0.0, 0.0, 0, 0
        out, made = np.empty((draws, n)), 0
        centre = np.log(10 * step)
        for k in range(warm_up + draws):
            length = -most if most < 0 else 1 + np.random.randint(most)
            energy = u
            for i in range(n):
                p[i] = np.random.normal() / np.sqrt(variance[i])
                energy += p[i] * p[i] * variance[i] / 2
                y[i], h[i] = x[i], g[i]
            v = u
            for _ in range(length):
                for i in range(n):
                    p[i] -= step / 2 * h[i]
                    y[i] += step * variance[i] * p[i]
                v = gradient(y, h)
                for i in range(n):
                    p[i] -= step / 2 * h[i]
            after = v
            for i in range(n):
                after += p[i] * p[i] * variance[i] / 2
            ratio = min(1.0, np.exp(energy - after)) if np.isfinite(after) else 0.0
            if np.random.uniform(0.0, 1.0) < ratio:
                u = v
                for i in range(n):
                    x[i], g[i] = y[i], h[i]
            if k >= warm_up:
                out[k - warm_up] = x
                made += length
                continue
            count += 1
            weight = 1 / (count + 10)
            sums = (1 - weight) * sums + weight * (0.8 - ratio)
            logarithm = centre - np.sqrt(count) / 0.05 * sums
            share = count**-0.75
            smooth = share * logarithm + (1 - share) * smooth
            step = np.exp(logarithm)
            adapted += 1
            for i in range(n):
                change = x[i] - mean[i]
                mean[i] += change / adapted
                moment[i] += change * (x[i] - mean[i])
            if k + 1 in (warm_up // 8, warm_up // 4, warm_up // 2):
                for i in range(n):
                    variance[i] = (moment[i] + 5e-3) / (adapted + 5)
                    mean[i] = moment[i] = 0.0
                centre, sums, smooth = np.log(10 * np.exp(smooth)), 0.0, 0.0
                count = adapted = 0
            if k + 1 == warm_up:
                step = np.exp(smooth)
        return out, made

    return run


def ours(name: str) -> Any:
    density, size, _ = MODELS[name]
    native = ng.jit(ng.value_and_grad(density)).native(np.zeros(size), shapes="fixed")
    return sampler(native.njit_into)


def blackjax_steps(name: str, count: int) -> Callable[[int], Any] | None:
    """``count`` transitions of BlackJAX's sampler, compiled; None if it is not installed."""
    try:
        import blackjax  # pyright: ignore
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    density, size, steps = MODELS[name]
    kernel = blackjax.hmc(lambda q: -density(q, jnp), 0.05, jnp.ones(size), steps)

    @jax.jit
    def run(key: Any) -> Any:
        def one(state: Any, key: Any) -> Any:
            state, _ = kernel.step(key, state)
            return state, state.position

        start = kernel.init(jnp.zeros(size))
        return jax.lax.scan(one, start, jax.random.split(key, count))[1]

    return lambda seed: run(jax.random.key(seed)).block_until_ready()


def pymc_model(name: str) -> Any:
    import pymc as pm  # pyright: ignore

    with pm.Model() as model:
        if name == "eight schools":
            mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
            z = pm.Normal("z", 0, 1, shape=8)
            pm.Normal("y", mu + tau * z, ERRORS, observed=EFFECTS)
        else:
            b = pm.Normal("b", 0, 1, shape=10)
            pm.Bernoulli("y", logit_p=ROWS @ b, observed=LABELS)
    return model


def least_effective(draws: Any) -> float:
    """The effective samples of the parameter that has fewest, of ``draws[chain, draw, ...]``."""
    import arviz  # pyright: ignore

    return float(min(arviz.ess(draws[..., k]) for k in range(draws.shape[-1])))


def cpu_seconds(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def leapfrog_steps(name: str, run: Any, rounds: int, draws: int) -> None:
    """Nanoseconds of a leapfrog step, the least of some rounds in turns."""
    _, size, steps = MODELS[name]
    start, count = np.zeros(size), draws // 4
    theirs = blackjax_steps(name, count)
    best, best_theirs = float("inf"), float("inf")
    for seed in range(-1, rounds):  # the first one compiles
        seconds, (_, made) = cpu_seconds(run, start, 0, draws, -steps, seed + 1)
        best = min(best, seconds / made)
        if theirs is not None:
            seconds, _ = cpu_seconds(theirs, seed + 1)
            best_theirs = min(best_theirs, seconds / (count * steps))
    print(f"{name}: a leapfrog step takes {best * 1e9:,.0f} ns")
    if theirs is not None:
        print(f"  BlackJAX {best_theirs * 1e9:,.0f} ns, {best_theirs / best:.2f} times as long")


def effective_samples(name: str, run: Any, rounds: int, draws: int) -> None:
    """Effective samples a second, warming up included; the median of some rounds."""
    _, size, steps = MODELS[name]
    try:
        import arviz  # noqa: F401  # pyright: ignore
    except ImportError:
        return
    own, theirs = [], []
    for seed in range(rounds):
        seconds, (out, _) = cpu_seconds(run, np.zeros(size), 1000, draws, 2 * steps, seed)
        own.append(least_effective(out[None]) / seconds)
    print(f"  {np.median(own):,.0f} effective samples a second")
    try:
        import nutpie  # pyright: ignore

        compiled = nutpie.compile_pymc_model(pymc_model(name))
    except ImportError:
        return

    def sample(seed: int) -> Any:
        return nutpie.sample(
            compiled, draws=draws, tune=1000, chains=1, cores=1, seed=seed, progress_bar=False
        )

    sample(0)
    for seed in range(rounds):
        seconds, trace = cpu_seconds(sample, seed)
        values = [np.asarray(v).reshape(1, draws, -1) for v in trace.posterior.data_vars.values()]
        theirs.append(least_effective(np.concatenate(values, -1)) / seconds)
    ratio = np.median(own) / np.median(theirs)
    print(f"  nutpie {np.median(theirs):,.0f}: ours are {ratio:.2f} times as many")


def main() -> None:
    parser = argparse.ArgumentParser(description="Leapfrog steps and effective samples a second")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=4000)
    options = parser.parse_args()
    for name in MODELS:
        run = ours(name)
        leapfrog_steps(name, run, options.rounds, options.draws)
        effective_samples(name, run, options.rounds, options.draws)


if __name__ == "__main__":
    main()
