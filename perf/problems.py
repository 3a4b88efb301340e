"""Functions whose gradients are compiled as a whole: their arguments, and how libraries write them.

numgrad and JAX share NumPy's notation, so a function is written once for both: ``np`` is NumPy for
numgrad, whose Tensors NumPy's functions take, and ``jax.numpy`` for JAX. torch has its own form,
with its own fused functions where it has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy
from scipy.special import multigammaln


@dataclass(frozen=True)
class Problem:
    """One function and what is asked of it.

    Attributes
    ----------
    arguments
        Makes the arguments from sizes: arrays, or lists of them.
    written
        ``written(np, logsumexp, **sizes)`` is the function for numgrad and JAX.
    torch
        ``torch(torch, **sizes)`` is the function for torch; None where torch takes no part.
    argnums
        What to differentiate.
    transform
        ``value_and_grad`` or ``jacobian``.
    """

    arguments: Callable[..., tuple]
    written: Callable[..., Callable]
    torch: Callable[..., Callable] | None
    argnums: int | tuple[int, ...] = 0
    transform: str = "value_and_grad"


def _generator() -> numpy.random.Generator:
    return numpy.random.default_rng(0)


# ------------------------------------------------------------------------- exp(tanh(a * b) + a)


def _chain_arguments(n: int) -> tuple:
    draw = _generator()
    return draw.uniform(-1.0, 1.0, n), draw.uniform(-1.0, 1.0, n)


def _chain(np: Any, *_: Any, **sizes: int) -> Callable:
    def f(a: Any, b: Any) -> Any:
        return np.sum(np.exp(np.tanh(a * b) + a))

    return f


# ------------------------------------------------------------------------- log of a sum of exp


def _log_sum(np: Any, logsumexp: Any, **sizes: int) -> Callable:
    return lambda a, b: logsumexp(a * b, axis=0)


def _log_sum_torch(torch: Any, **sizes: int) -> Callable:
    return lambda a, b: torch.logsumexp(a * b, 0)


# ------------------------------------------------------------------------- logistic regression


def _logistic_arguments(samples: int, features: int) -> tuple:
    draw = _generator()
    w = draw.normal(size=features) * 0.3
    x = draw.normal(size=(samples, features))
    y = (draw.random(samples) < 0.5).astype(numpy.float64)
    return w, x, y


def _logistic(np: Any, logsumexp: Any, **sizes: int) -> Callable:
    def f(w: Any, x: Any, y: Any) -> Any:
        z = x @ w
        return np.mean(np.logaddexp(0.0, z) - y * z)

    return f


def _logistic_torch(torch: Any, **sizes: int) -> Callable:
    def f(w: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.binary_cross_entropy_with_logits(x @ w, y)

    return f


# ------------------------------------------------------------------------- softmax cross-entropy


def _cross_entropy_arguments(samples: int, classes: int) -> tuple:
    draw = _generator()
    return draw.normal(size=(samples, classes)) * 2.0, draw.integers(0, classes, samples)


def _cross_entropy(np: Any, logsumexp: Any, **sizes: int) -> Callable:
    def f(x: Any, labels: Any) -> Any:
        chosen = np.take_along_axis(x, labels[:, None], axis=1)[:, 0]
        return np.mean(logsumexp(x, axis=1) - chosen)

    return f


def _cross_entropy_torch(torch: Any, **sizes: int) -> Callable:
    return torch.nn.functional.cross_entropy


# ------------------------------------------------------------------------- Gaussian mixture


def _mixture_arguments(n: int, d: int, components: int) -> tuple:
    draw = _generator()
    alphas, means = draw.normal(size=components), draw.normal(size=(components, d))
    icf = draw.normal(size=(components, d * (d + 1) // 2)) * 0.3
    return alphas, means, icf, draw.normal(size=(n, d))


def _mixture(np: Any, logsumexp: Any, *, d: int, **sizes: int) -> Callable:
    gamma, m = 1.0, 0
    columns, rows = numpy.triu_indices(d, 1)
    # where an entry below the diagonal is kept: column by column
    place = numpy.zeros((d, d), numpy.int64)
    place[rows, columns] = numpy.arange(rows.size)
    matrices = place, numpy.tri(d, k=-1, dtype=bool), numpy.eye(d)
    place, below, diagonal = (np.asarray(matrix) for matrix in matrices)
    freedom = d + m + 1
    constant = freedom * d * math.log(gamma / math.sqrt(2.0)) - float(
        multigammaln(0.5 * freedom, d)
    )

    def f(alphas: Any, means: Any, icf: Any, x: Any) -> Any:
        n, components = x.shape[0], alphas.shape[0]
        logarithms, others = icf[:, :d], icf[:, d:]
        scales, sums = np.exp(logarithms), np.sum(logarithms, axis=1)
        factors = scales[:, :, None] * diagonal + np.where(below, others[:, place], 0.0)
        centred = x[:, None, :] - means
        squares = np.sum(np.einsum("kij,nkj->nki", factors, centred) ** 2, axis=2)
        terms = alphas + sums - 0.5 * squares
        likelihood = np.sum(logsumexp(terms, axis=1)) - n * logsumexp(alphas, axis=0)
        normal = 0.5 * n * d * math.log(2.0 * math.pi)
        prior = 0.5 * gamma**2 * (np.sum(scales**2) + np.sum(others**2)) - m * np.sum(sums)
        return likelihood - normal + prior - components * constant

    return f


class _TorchAsNumPy:
    """The functions of NumPy that the mixture uses, by NumPy's names."""

    def __init__(self, torch: Any) -> None:
        self.asarray, self.exp, self.einsum = torch.from_numpy, torch.exp, torch.einsum
        self.where, self.torch = torch.where, torch

    def sum(self, x: Any, axis: int | None = None) -> Any:
        return self.torch.sum(x) if axis is None else self.torch.sum(x, axis)


# ------------------------------------------------------------------------- residuals of two peaks


def _gaussians_arguments(points: int) -> tuple:
    x = numpy.linspace(0.0, 1.0, points)
    return numpy.array([1.0, 0.3, 0.1, 0.6, 0.7, 0.2]), x, numpy.sin(9.0 * x)


def _gaussians(np: Any, *_: Any, **sizes: int) -> Callable:
    def f(p: Any, x: Any, y: Any) -> Any:
        peaks = p.reshape(-1, 3)
        amplitudes, centres, widths = peaks[:, 0, None], peaks[:, 1, None], peaks[:, 2, None]
        return np.sum(amplitudes * np.exp(-(((x - centres) / widths) ** 2)), axis=0) - y

    return f


# ------------------------------------------------------------------------- Bratu's equation


def _bratu_arguments(side: int) -> tuple:
    return (_generator().random((side, side)),)


def _bratu(np: Any, *_: Any, side: int, **sizes: int) -> Callable:
    """Residuals of five points each, within the boundary."""

    def f(u: Any) -> Any:
        inner = u[1:-1, 1:-1]
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return 4.0 * inner - around - 6.0 / side**2 * np.exp(inner)

    return f


# ------------------------------------------------------------------------- multi-layer perceptron


def _mlp_arguments(batch: int, layers: list[int]) -> tuple:
    draw = _generator()
    params: list[numpy.ndarray] = []
    for inputs, outputs in pairwise(layers):
        params += [draw.normal(size=(inputs, outputs)) / inputs**0.5, numpy.zeros(outputs)]
    x = draw.normal(size=(batch, layers[0])).astype(numpy.float32)
    return [a.astype(numpy.float32) for a in params], x, draw.integers(0, layers[-1], batch)


def _mlp(np: Any, logsumexp: Any, **sizes: int) -> Callable:
    loss = _cross_entropy(np, logsumexp)

    def f(params: Any, x: Any, labels: Any) -> Any:
        *hidden, weight, bias = params
        for w, b in zip(hidden[::2], hidden[1::2], strict=True):
            x = np.maximum(x @ w + b, 0)
        return loss(x @ weight + bias, labels)

    return f


def _mlp_torch(torch: Any, **sizes: int) -> Callable:
    def f(params: Any, x: Any, labels: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = params
        hidden = torch.relu(torch.addmm(b1, x, w1))
        hidden = torch.relu(torch.addmm(b2, hidden, w2))
        return torch.nn.functional.cross_entropy(torch.addmm(b3, hidden, w3), labels)

    return f


# ------------------------------------------------------------------------- Python loops, unrolled


def _long_chain_arguments(n: int, operations: int) -> tuple:
    draw = _generator()
    return draw.uniform(-1.0, 1.0, n), draw.uniform(0.5, 1.5, n)


def _long_chain(np: Any, *_: Any, operations: int, **sizes: int) -> Callable:
    def f(x: Any, w: Any) -> Any:
        for _ in range(operations // 4):
            x = x + 0.01 * np.sin(w * x)
        return np.sum(x)

    return f


def _lorenz_arguments(steps: int) -> tuple:
    return numpy.array([1.0, 2.0, 20.0]), numpy.array([10.0, 28.0, 8.0 / 3.0])


def _lorenz(np: Any, *_: Any, steps: int) -> Callable:
    h = 0.01

    def f(state: Any, parameters: Any) -> Any:
        sigma, rho, beta = parameters[0], parameters[1], parameters[2]

        def slope(state: Any) -> Any:
            x, y, z = state[0], state[1], state[2]
            return np.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])

        for _ in range(steps):
            k1 = slope(state)
            k2 = slope(state + 0.5 * h * k1)
            k3 = slope(state + 0.5 * h * k2)
            k4 = slope(state + h * k3)
            state = state + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return np.sum(state**2)

    return f


def _lstm_arguments(steps: int, letters: int) -> tuple:
    draw = _generator()
    gates = draw.normal(size=(2, 4, 2, letters))
    ends = draw.normal(size=(3, letters))
    memory = draw.normal(size=(2, 2, letters))
    return gates, ends, memory, numpy.eye(letters)[draw.integers(0, letters, steps + 1)]


def _lstm(np: Any, *_: Any, steps: int, letters: int) -> Callable:
    """ADBench's language model: two layers of cells whose gates see one number each."""

    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-x))

    def f(gates: Any, ends: Any, memory: Any, text: Any) -> Any:
        hidden = [memory[layer, 0] for layer in range(2)]
        cells = [memory[layer, 1] for layer in range(2)]
        loss = 0.0
        for step in range(steps):
            x = text[step] * ends[0]
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
            loss = loss - np.sum(text[step + 1] * (scores - total))
        return loss / (steps * letters)

    return f


# ------------------------------------------------------------------------- bundle adjustment


def _bundle_arguments(cameras: int, points: int, observations: int) -> tuple:
    draw = _generator()
    turns, centres = 0.2 * draw.normal(size=(cameras, 3)), draw.normal(size=(cameras, 3))
    lenses = draw.normal(size=(cameras, 5)) * [1.0, 1.0, 1.0, 1e-3, 1e-3] + [500.0, 0, 0, 0, 0]
    world = draw.normal(size=(points, 3)) * [1.0, 1.0, 0.2] + [0.0, 0.0, 8.0]
    seen_by, seen = draw.integers(0, cameras, observations), draw.integers(0, points, observations)
    features = 50.0 * draw.normal(size=(observations, 2))
    poses = numpy.concatenate([turns, centres, lenses], axis=1)
    return poses, world, draw.random(observations), seen_by, seen, features


def _bundle(np: Any, *_: Any, **sizes: int) -> Callable:
    """ADBench's reprojection errors, here as half the sum of their squares."""

    def f(poses: Any, world: Any, weights: Any, seen_by: Any, seen: Any, features: Any) -> Any:
        pose, point = poses[seen_by], world[seen]
        turn, focal, middle = pose[:, 0:3], pose[:, 6:7], pose[:, 7:9]
        angle = np.sqrt(np.sum(turn**2, axis=1, keepdims=True))
        axis, arm = turn / angle, point - pose[:, 3:6]
        ax, ay, az = axis[:, 0], axis[:, 1], axis[:, 2]
        bx, by, bz = arm[:, 0], arm[:, 1], arm[:, 2]
        across = np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=1)
        along = axis * np.sum(axis * arm, axis=1, keepdims=True)
        cosine, sine = np.cos(angle), np.sin(angle)
        turned = cosine * arm + sine * across + (1.0 - cosine) * along
        flat = turned[:, 0:2] / turned[:, 2:3]
        square = np.sum(flat**2, axis=1, keepdims=True)
        bent = flat * (1.0 + pose[:, 9:10] * square + pose[:, 10:11] * square**2)
        errors = weights[:, None] * (focal * bent + middle - features)
        return 0.5 * np.sum(errors**2)

    return f


PROBLEMS = {
    "chain": Problem(_chain_arguments, _chain, _chain, (0, 1)),
    "log sum": Problem(_chain_arguments, _log_sum, _log_sum_torch, (0, 1)),
    "logistic": Problem(_logistic_arguments, _logistic, _logistic_torch),
    "cross_entropy": Problem(_cross_entropy_arguments, _cross_entropy, _cross_entropy_torch),
    "mixture": Problem(
        _mixture_arguments,
        _mixture,
        lambda torch, **sizes: _mixture(_TorchAsNumPy(torch), torch.logsumexp, **sizes),
        (0, 1, 2),
    ),
    "gaussians": Problem(_gaussians_arguments, _gaussians, _gaussians, transform="jacobian"),
    "bratu": Problem(_bratu_arguments, _bratu, None, transform="jacobian"),
    "mlp": Problem(_mlp_arguments, _mlp, _mlp_torch),
    "long chain": Problem(_long_chain_arguments, _long_chain, None, (0, 1)),
    "lorenz": Problem(_lorenz_arguments, _lorenz, None, (0, 1)),
    "lstm": Problem(_lstm_arguments, _lstm, None, (0, 1)),
    "bundle": Problem(_bundle_arguments, _bundle, None, (0, 1, 2)),
}
