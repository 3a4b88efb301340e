"""Linear algebra with gradients, the same text for numgrad and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import Statement

_VALUES = {
    "solve": "solve(a, b)",
    "cholesky": "cholesky(a)",
    "eigh": "eigh(a)",
    "svd": "svd(a, full_matrices=False)",
}
_TOTALS = {
    "eigh": "(lambda r: r[0].sum() + r[1].sum())(linalg.{})",
    "svd": "(lambda r: r[0].sum() + r[1].sum() + r[2].sum())(linalg.{})",
}


def operands(n: int, stack: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric positive definite matrices, and right sides."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(*stack, n, n))
    a = a @ a.swapaxes(-1, -2) / n + np.eye(n)
    return a, rng.normal(size=(*stack, n, 1))


def value(function: str, linalg: Any, convert: Any, n: int, stack: list[int]) -> Statement:
    """A function alone."""
    a, b = map(convert, operands(n, tuple(stack)))
    return Statement(f"linalg.{_VALUES[function]}", {"linalg": linalg, "a": a, "b": b})


def gradient(
    function: str, linalg: Any, leaf: Any, grad: Any, n: int, stack: list[int]
) -> Statement:
    """A function, and the gradient of the sum of its results."""
    a, b = map(leaf, operands(n, tuple(stack)))
    inputs = [a, b] if function == "solve" else [a]
    total = _TOTALS.get(function, "linalg.{}.sum()").format(_VALUES[function])
    names = {"linalg": linalg, "a": a, "b": b, "grad": grad, "inputs": inputs}
    return Statement(f"grad({total}, inputs)", names)


def gaussian_process(library: Any, leaf: Any, grad: Any, points: int) -> Statement:
    """The marginal likelihood of a Gaussian process and its gradient by three parameters."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, points))
    y = np.sin(x) + 0.1 * rng.normal(size=points)
    squares, eye = (x[:, None] - x) ** 2, np.eye(points)
    exp, log, linalg = library.exp, library.log, library.linalg
    of_torch = library.__name__ == "torch"
    if of_torch:
        squares, eye, y = map(library.from_numpy, (squares, eye, y))
    parameters = [leaf(np.array(k)) for k in (1.0, 0.1, 1.3)]

    def likelihood(length: Any, noise: Any, scale: Any) -> Any:
        kernel = scale * exp(-0.5 * squares / length**2) + noise * eye
        factor = linalg.cholesky(kernel)
        if of_torch:
            alpha = library.cholesky_solve(y[:, None], factor)[:, 0]
        else:
            alpha = linalg.cho_solve((factor, True), y)
        return 0.5 * (y * alpha).sum() + log(factor.diagonal()).sum()

    names = {"f": likelihood, "p": parameters, "grad": grad}
    return Statement("grad(f(*p), p)", names)
