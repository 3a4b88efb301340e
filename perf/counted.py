"""The programs that ``counters.py`` counts: each takes numgrad and gives a function to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Run = Callable[[], Any]


def _numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def _leaves(ng: Any, *shapes: tuple) -> list[Any]:
    return [ng.tensor(_numbers(k, *s), requires_grad=True) for k, s in enumerate(shapes)]


def chain(ng: Any) -> Run:
    """Operations on 100 elements, forward and backward."""
    a, b = _leaves(ng, (100,), (100,))

    def run() -> None:
        ng.sum(ng.exp(ng.tanh(a * b) + a)).backward()
        a.grad = b.grad = None

    return run


def writing(ng: Any) -> Run:
    """Views, indices, joins and writes in place."""
    x, w = _leaves(ng, (12, 10), (5, 4))

    def run() -> None:
        y = x[2:, ::2].reshape(5, -1).clone()
        y[1:3] = w[:2, :].repeat(3, axis=1)[:, : y.shape[1]]
        y *= 2.0
        z = ng.concatenate([y, y[[0, 2, 4]]]).T
        np.sum(z * z).backward()
        x.grad = w.grad = None

    return run


def twice(ng: Any) -> Run:
    """A product of the Hessian with a vector, by recording a backward."""
    x, v = _numbers(0, 50), _numbers(1, 50)
    product = ng.hvp(lambda x: ng.sum(ng.sin(x) * x**2))
    return lambda: product(x, v)


def training(ng: Any) -> Run:
    """A step of training a perceptron with Adam."""
    layers = [ng.nn.Linear(20, 32), ng.nn.Tanh(), ng.nn.Linear(32, 5)]
    model = ng.nn.Sequential(*layers)
    for k, p in enumerate(model.parameters()):
        p.data = ng.tensor(_numbers(k, *p.shape))
    optimizer = ng.optim.Adam(model.parameters(), lr=1e-3)
    x, target = ng.tensor(_numbers(9, 16, 20)), ng.tensor(np.arange(16) % 5)

    def run() -> None:
        optimizer.zero_grad()
        ng.nn.functional.cross_entropy(model(x), target).backward()
        optimizer.step()

    return run


def images(ng: Any) -> Run:
    """A convolution, normalisation and pooling, forward and backward."""
    functional = ng.nn.functional
    x, w = _leaves(ng, (2, 3, 8, 8), (4, 3, 3, 3))

    def run() -> None:
        y = functional.conv2d(x, w, padding=1)
        y = functional.max_pool2d(
            functional.relu(functional.batch_norm(y, None, None, training=True)), 2
        )
        y.mean().backward()
        x.grad = w.grad = None

    return run


def examples(ng: Any) -> Run:
    """Gradients of single examples."""
    w, x = _numbers(0, 6), _numbers(1, 8, 6)
    gradient = ng.vmap(ng.grad(lambda w, x: ng.sum(ng.tanh(w * x)) ** 2), in_axes=(None, 0))
    return lambda: gradient(w, x)


def compiled(problem: str, **sizes: int) -> Callable[[Any], Run]:
    """A problem of ``problems.py``, its gradient included."""

    def program(ng: Any) -> Run:
        from problems import PROBLEMS

        stated = PROBLEMS[problem]
        f = stated.written(np, ng.logsumexp, **sizes)
        gradient = ng.jit(getattr(ng, stated.transform)(f, stated.argnums))
        arguments = stated.arguments(**sizes)
        return lambda: gradient(*arguments)

    program.__doc__ = f"The problem {problem} of problems.py, compiled."
    return program


def compiled_training(ng: Any) -> Run:
    """A compiled loss that is recorded on the tape, and a step of SGD with momentum."""
    (w,) = _leaves(ng, (6, 3))
    x = ng.tensor(_numbers(5, 10, 6))
    optimizer = ng.optim.SGD([w], lr=0.1, momentum=0.9)
    loss = ng.jit(lambda w, x: np.mean(np.tanh(x @ w) ** 2))

    def run() -> None:
        optimizer.zero_grad()
        loss(w, x).backward()
        optimizer.step()

    return run


def loop(ng: Any) -> Run:
    """A compiled loop that is differentiated."""
    x = _numbers(0, 4)
    step = lambda k, s: s + 0.1 * ng.sin(s)  # noqa: E731
    gradient = ng.jit(ng.grad(lambda x: ng.sum(ng.fori_loop(0, 20, step, x))))
    return lambda: gradient(x)


PROGRAMS: dict[str, Callable[[Any], Run]] = {
    "chain": chain,
    "views and writes": writing,
    "second derivatives": twice,
    "training": training,
    "images": images,
    "single examples": examples,
    "compiled chain": compiled("chain", n=100),
    "compiled logistic": compiled("logistic", samples=50, features=8),
    "compiled training": compiled_training,
    "compiled loop": loop,
}
