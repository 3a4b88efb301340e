"""Optimizers a second time, in NumPy, as their papers and PyTorch's documentation write them.

Each function walks from ``p`` along given gradients with the defaults that PyTorch documents, and
returns all positions and the last state. A complex parameter is a pair of real ones to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.optim.problems import FORMULA_OPTIMIZERS

Walk = tuple[list[np.ndarray], dict[str, Any]]


def walk(name: str, p: np.ndarray, grads: Sequence[np.ndarray], **options: Any) -> Walk:
    """Positions after each step and the last state, also of complex parameters."""
    if options.pop("maximize", False):
        grads = [-g for g in grads]
    if p.dtype.kind != "c":
        return OPTIMIZERS[name](p, grads, **options)
    pairs = [np.stack([a.real, a.imag]) for a in (p, *grads)]
    positions, state = OPTIMIZERS[name](pairs[0], pairs[1:], **options)
    join = lambda a: a[0] + 1j * a[1] if np.ndim(a) else a  # noqa: E731
    return list(map(join, positions)), {key: join(value) for key, value in state.items()}


def adadelta(p, grads, *, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0) -> Walk:
    """Algorithm 1 of Zeiler, times a learning rate."""
    accumulated_gradient, accumulated_update, out = np.zeros_like(p), np.zeros_like(p), []
    for g in grads:
        g = g + weight_decay * p
        accumulated_gradient = rho * accumulated_gradient + (1 - rho) * g**2
        rms_update, rms_gradient = (
            np.sqrt(a + eps) for a in (accumulated_update, accumulated_gradient)
        )
        update = -rms_update / rms_gradient * g
        accumulated_update = rho * accumulated_update + (1 - rho) * update**2
        p = p + lr * update
        out.append(p)
    return out, {
        "square_avg": accumulated_gradient, "acc_delta": accumulated_update, "step": len(grads),
    }  # fmt: skip


def adagrad(
    p, grads, *, lr=0.01, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10
) -> Walk:
    """The diagonal form of Duchi, Hazan and Singer, with a learning rate that falls."""
    total, out = np.full_like(p, initial_accumulator_value), []
    for t, g in enumerate(grads):
        g = g + weight_decay * p
        total = total + g**2
        rate = lr / (1 + t * lr_decay)
        p = p - rate * g / (np.sqrt(total) + eps)
        out.append(p)
    return out, {"sum": total, "step": len(grads)}


def adam(
    p, grads, *, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False,
    decoupled_weight_decay=False,
) -> Walk:  # fmt: skip
    """Algorithm 1 of Kingma and Ba, Loshchilov and Hutter's decay, the maximum of Reddi et al."""
    b1, b2 = betas
    m, v, largest, out = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p), []
    for t, g in enumerate(grads, 1):
        if decoupled_weight_decay:
            p = p - lr * weight_decay * p
        else:
            g = g + weight_decay * p
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        largest = np.maximum(largest, v)
        m_hat = m / (1 - b1**t)
        v_hat = (largest if amsgrad else v) / (1 - b2**t)
        p = p - lr * m_hat / (np.sqrt(v_hat) + eps)
        out.append(p)
    state = {"exp_avg": m, "exp_avg_sq": v, "step": len(grads)}
    return out, state | ({"max_exp_avg_sq": largest} if amsgrad else {})


def adamw(p, grads, *, weight_decay=0.01, **options) -> Walk:
    """Algorithm 2 of Loshchilov and Hutter, whose decay PyTorch multiplies by the learning rate."""
    return adam(p, grads, weight_decay=weight_decay, decoupled_weight_decay=True, **options)


def adamax(p, grads, *, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0) -> Walk:
    """Algorithm 2 of Kingma and Ba; PyTorch adds ``eps`` to the gradient's magnitude."""
    m, u, out = np.zeros_like(p), np.zeros_like(p), []
    for t, g in enumerate(grads, 1):
        g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        u = np.maximum(betas[1] * u, np.abs(g) + eps)
        p = p - lr / (1 - betas[0] ** t) * m / u
        out.append(p)
    return out, {"exp_avg": m, "exp_inf": u, "step": len(grads)}


def asgd(p, grads, *, lr=0.01, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0) -> Walk:
    """Bottou's averaged gradient descent with the schedules of PyTorch."""
    eta, mu, average, out = lr, 1.0, np.zeros_like(p), []
    for t, g in enumerate(grads, 1):
        g = g + weight_decay * p
        p = p - lambd * eta * p
        p = p - eta * g
        average = p if mu == 1 else mu * p + (1 - mu) * average
        eta = lr * (1 + lambd * lr * t) ** -alpha
        mu = 1 / max(1, t - t0)
        out.append(p)
    return out, {"ax": average, "eta": eta, "mu": mu, "step": len(grads)}


def nadam(
    p, grads, *, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3,
    decoupled_weight_decay=False,
) -> Walk:  # fmt: skip
    """Dozat's algorithm with his schedule of momenta."""
    b1, b2 = betas
    momenta = b1 * (1 - 0.96 ** (np.arange(1, len(grads) + 2) * momentum_decay) / 2)
    products = np.cumprod(momenta)
    m, v, out = np.zeros_like(p), np.zeros_like(p), []
    for t, g in enumerate(grads, 1):
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        now, coming = momenta[t - 1], momenta[t]
        m_hat = coming * m / (1 - products[t]) + (1 - now) * g / (1 - products[t - 1])
        v_hat = v / (1 - b2**t)
        p = p - lr * m_hat / (np.sqrt(v_hat) + eps)
        out.append(p)
    return out, {
        "exp_avg": m, "exp_avg_sq": v, "mu_product": products[len(grads) - 1], "step": len(grads),
    }  # fmt: skip


def radam(
    p, grads, *, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0,
    decoupled_weight_decay=False,
) -> Walk:  # fmt: skip
    """Algorithm 2 of Liu et al., adapted where the length is above 5 as PyTorch does."""
    b1, b2 = betas
    longest = 2 / (1 - b2) - 1
    m, v, out = np.zeros_like(p), np.zeros_like(p), []
    for t, g in enumerate(grads, 1):
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        m_hat = m / (1 - b1**t)
        length = longest - 2 * t * b2**t / (1 - b2**t)
        if length > 5:
            r = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            p = p - lr * m_hat * np.sqrt(r) * np.sqrt(1 - b2**t) / (np.sqrt(v) + eps)
        else:
            p = p - lr * m_hat
        out.append(p)
    return out, {"exp_avg": m, "exp_avg_sq": v, "step": len(grads)}


def rmsprop(
    p, grads, *, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False
) -> Walk:
    """Hinton's lecture; Graves's centred form; ``eps`` outside of the root, as in PyTorch."""
    square, mean, buffer, out = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p), []
    for g in grads:
        g = g + weight_decay * p
        square = alpha * square + (1 - alpha) * g**2
        mean = alpha * mean + (1 - alpha) * g
        scale = np.sqrt(square - mean**2 if centered else square) + eps
        buffer = momentum * buffer + g / scale
        p = p - lr * buffer
        out.append(p)
    state = {"square_avg": square, "step": len(grads)}
    state |= {"grad_avg": mean} if centered else {}
    return out, state | ({"momentum_buffer": buffer} if momentum else {})


def rprop(p, grads, *, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0)) -> Walk:
    """Riedmiller and Braun, where a change of sign holds the element back for one step."""
    size, last, out = np.full_like(p, lr), np.zeros_like(p), []
    for g in grads:
        p, size, last = map(np.array, (p, size, last))  # copies
        for i in np.ndindex(p.shape):
            now = g[i]
            if now * last[i] > 0:
                size[i] = min(size[i] * etas[1], step_sizes[1])
            elif now * last[i] < 0:
                size[i] = max(size[i] * etas[0], step_sizes[0])
                now = 0.0
            else:
                size[i] = min(max(size[i], step_sizes[0]), step_sizes[1])
            p[i] -= size[i] * np.sign(now)
            last[i] = now
        out.append(p)
    return out, {"prev": last, "step_size": size, "step": len(grads)}


def sgd(
    p, grads, *, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False
) -> Walk:
    """Momentum as in Sutskever et al., in PyTorch's form; the first gradient is not dampened."""
    buffer, out = None, []
    for g in grads:
        g = g + weight_decay * p
        buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
        if momentum:
            direction = g + momentum * buffer if nesterov else buffer
        else:
            direction = g
        p = p - lr * direction
        out.append(p)
    return out, {"momentum_buffer": buffer} if momentum else {}


OPTIMIZERS: dict[str, Callable[..., Walk]] = {
    name: globals()[name.lower()] for name in FORMULA_OPTIMIZERS
}
"""The function of each optimizer made of a formula, which has its name in small letters."""
