"""Loops and batches that are compiled with their gradients, written once for all libraries.

``np`` is NumPy for numgrad, ``jax.numpy`` for JAX and torch's functions for torch; ``library`` has
what is no part of NumPy: ``scan``, ``vmap``, ``grad``, ``value_and_grad``, ``hessian``,
``odeint``, ``logsumexp``. A problem's function asks for its derivatives itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy


@dataclass(frozen=True)
class Loop:
    """One function and its derivatives.

    Attributes
    ----------
    arguments
        Makes the arguments from sizes.
    written
        ``written(np, library, **sizes)`` is what is compiled.
    """

    arguments: Callable[..., tuple]
    written: Callable[..., Callable]


# ------------------------------------------------------------------------- Lorenz's system

STEP = 0.001


def _lorenz_arguments(steps: int, **_: Any) -> tuple:
    return (numpy.array([10.0, 28.0, 8.0 / 3.0]),)


def _lorenz(np: Any, library: Any, *, steps: int, **options: Any) -> Callable:
    def slope(state: Any, p: Any) -> Any:
        x, y, z = state[0], state[1], state[2]
        return np.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])

    start = np.asarray(numpy.array([1.0, 2.0, 20.0]))

    def f(p: Any) -> Any:
        def step(state: Any, _: Any) -> tuple:
            k1 = slope(state, p)
            k2 = slope(state + 0.5 * STEP * k1, p)
            k3 = slope(state + 0.5 * STEP * k2, p)
            k4 = slope(state + STEP * k3, p)
            return state + STEP / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), None

        return np.sum(library.scan(step, start, None, length=steps, **options)[0] ** 2)

    return library.value_and_grad(f)


# ------------------------------------------------------------------------- ADBench's LSTM


def _lstm_arguments(characters: int, letters: int) -> tuple:
    draw = numpy.random.default_rng(0)
    gates = draw.normal(size=(2, 4, 2, letters))
    ends = draw.normal(size=(3, letters))
    memory = draw.normal(size=(2, 2, letters))
    return gates, ends, memory, numpy.eye(letters)[draw.integers(0, letters, characters)]


def _lstm(np: Any, library: Any, **sizes: int) -> Callable:
    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-x))

    def f(gates: Any, ends: Any, memory: Any, text: Any) -> Any:
        def step(carry: Any, letters: Any) -> tuple:
            hidden, cells = list(carry[0]), list(carry[1])
            now, after = letters
            x = now * ends[0]
            for layer in range(2):
                weights, biases = gates[layer, :, 0], gates[layer, :, 1]
                keep = sigmoid(weights[0] * x + biases[0])
                take = sigmoid(weights[1] * hidden[layer] + biases[1])
                give = sigmoid(weights[2] * x + biases[2])
                news = np.tanh(weights[3] * hidden[layer] + biases[3])
                cells[layer] = keep * cells[layer] + take * news
                x = hidden[layer] = give * np.tanh(cells[layer])
            scores = x * ends[1] + ends[2]
            total = np.log(2.0 + np.sum(np.exp(scores)))
            return (hidden, cells), -np.sum(after * (scores - total))

        start = [[memory[layer, kind] for layer in range(2)] for kind in range(2)]
        losses = library.scan(step, tuple(start), (text[:-1], text[1:]))[1]
        return np.mean(losses) / text.shape[1]

    return library.value_and_grad(f, (0, 1))


# ------------------------------------------------------------------------- Kalman filter


def _kalman_arguments(observations: int) -> tuple:
    """Logarithms of variances of motion and of observation, and where the motion begins."""
    seen = numpy.cumsum(numpy.random.default_rng(0).normal(size=(observations, 2)), axis=0)
    return 0.1 * numpy.arange(10.0), seen


def _kalman(np: Any, library: Any, **sizes: int) -> Callable:
    """A body in the plane with its velocity, of which the place is observed."""
    motion = numpy.eye(4) + 0.1 * numpy.eye(4, k=2)
    seen, spread = numpy.eye(2, 4), np.asarray(numpy.eye(4))

    def f(p: Any, observations: Any) -> Any:
        noise, error = np.diag(np.exp(p[:4])), np.diag(np.exp(p[4:6]))

        def step(carry: Any, y: Any) -> tuple:
            mean, matrix = motion @ carry[0], motion @ carry[1] @ motion.T + noise
            expected = seen @ matrix @ seen.T + error
            miss = y - seen @ mean
            gain = np.linalg.solve(expected, seen @ matrix).T
            distance = miss @ np.linalg.solve(expected, miss)
            likelihood = -0.5 * (np.linalg.slogdet(expected)[1] + distance)
            return (mean + gain @ miss, matrix - gain @ seen @ matrix), likelihood

        return np.sum(library.scan(step, (p[6:], spread), observations)[1])

    return library.value_and_grad(f)


# ------------------------------------------------------------------------- fields on a line


def _field_arguments(points: int, steps: int) -> tuple:
    draw = numpy.random.default_rng(0)
    x = numpy.linspace(0.0, 1.0, points)
    start = numpy.exp(-200.0 * (x - 0.5) ** 2)
    start[[0, -1]] = 0.0
    return 0.25 + 0.1 * draw.random(points), start


def _heat(np: Any, library: Any, *, steps: int, **sizes: int) -> Callable:
    """On a ring."""

    def f(c: Any, start: Any) -> Any:
        def step(u: Any, _: Any) -> tuple:
            return u + c * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1)), None

        return np.sum(library.scan(step, start, None, length=steps)[0] ** 2)

    return library.value_and_grad(f)


def _wave(np: Any, library: Any, *, steps: int, **sizes: int) -> Callable:
    """With fixed ends and a force that grows as the cube."""

    def f(c: Any, start: Any) -> Any:
        def step(carry: Any, _: Any) -> tuple:
            before, now = carry
            inner = now[1:-1]
            force = c[1:-1] * (now[2:] - 2.0 * inner + now[:-2]) - 0.01 * inner**3
            return (now, np.pad(2.0 * inner - before[1:-1] + force, 1)), None

        return np.sum(library.scan(step, (start, start), None, length=steps)[0][1] ** 2)

    return library.value_and_grad(f)


# ------------------------------------------------------------------------- hidden Markov model


def _hidden_markov_arguments(states: int, steps: int) -> tuple:
    draw = numpy.random.default_rng(0)
    return (
        draw.normal(size=(states, states)),
        draw.normal(size=(states, 5)),
        draw.integers(0, 5, steps),
    )


def _hidden_markov(np: Any, library: Any, **sizes: int) -> Callable:
    """The forward algorithm, in logarithms: of states that are equally likely at first."""

    def f(moves: Any, emits: Any, seen: Any) -> Any:
        weights = np.exp(moves - library.logsumexp(moves, axis=1)[:, None])
        table = emits - library.logsumexp(emits, axis=1)[:, None]

        def step(likely: Any, k: Any) -> tuple:
            top = np.max(likely)
            return np.log(np.exp(likely - top) @ weights) + top + table[:, k], None

        start = table[:, seen[0]] - numpy.log(moves.shape[0])
        return library.logsumexp(library.scan(step, start, seen[1:])[0], axis=0)

    return library.value_and_grad(f, (0, 1))


# ------------------------------------------------------------------------- derivatives by example


def _examples_arguments(samples: int) -> tuple:
    draw = numpy.random.default_rng(0)
    w, v = draw.normal(size=(10, 32)) / 10**0.5, draw.normal(size=32) / 32**0.5
    parameters = [w, numpy.zeros(32), v, numpy.zeros(())]
    return parameters, draw.normal(size=(samples, 10)), draw.normal(size=samples)


def _examples(np: Any, library: Any, **sizes: int) -> Callable:
    """Gradients of the losses of single samples in the weights of a network 10-32-1."""

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        w, b, v, c = parameters
        return (np.tanh(x @ w + b) @ v + c - y) ** 2

    return library.vmap(library.grad(loss), (None, 0, 0))


def _likelihood_arguments(samples: int, parameters: int) -> tuple:
    draw = numpy.random.default_rng(0)
    x = draw.normal(size=(samples, parameters))
    return 0.3 * draw.normal(size=parameters), x, (draw.random(samples) < 0.5).astype(float)


def _likelihood(np: Any, library: Any, *, derivative: str, **sizes: int) -> Callable:
    """The logistic likelihood's ``grad`` or ``hessian``."""

    def f(w: Any, x: Any, y: Any) -> Any:
        z = x @ w
        return np.sum(np.logaddexp(0.0, z) - y * z)

    return getattr(library, derivative)(f)


# -------------------------------------------------------------------------- differential equations


def _animals_arguments(observations: int) -> tuple:
    return (numpy.array([1.5, 1.0, 3.0, 1.0]),)


def _animals(np: Any, library: Any, *, observations: int) -> Callable:
    """The system of Lotka and Volterra, for 20 units of time, in its four rates."""
    start = np.asarray(numpy.array([10.0, 5.0]))
    times = np.asarray(numpy.linspace(0.0, 20.0, observations + 1))

    def slope(y: Any, t: Any, p: Any) -> Any:
        hares, lynxes = y[0], y[1]
        grown, eaten = p[0] * hares, hares * lynxes
        return np.stack([grown - p[1] * eaten, p[3] * eaten - p[2] * lynxes])

    def f(p: Any) -> Any:
        return np.sum(library.odeint(slope, start, times, p, rtol=1e-8, atol=1e-8) ** 2)

    return library.value_and_grad(f)


LOOPS = {
    "lorenz": Loop(_lorenz_arguments, _lorenz),
    "lstm": Loop(_lstm_arguments, _lstm),
    "kalman": Loop(_kalman_arguments, _kalman),
    "heat": Loop(_field_arguments, _heat),
    "wave": Loop(_field_arguments, _wave),
    "hidden_markov": Loop(_hidden_markov_arguments, _hidden_markov),
    "lotka_volterra": Loop(_animals_arguments, _animals),
    "examples": Loop(_examples_arguments, _examples),
    "likelihood": Loop(
        lambda derivative, **sizes: _likelihood_arguments(**sizes),
        _likelihood,
    ),
}
