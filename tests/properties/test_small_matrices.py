"""Random programs of small matrices beside long ones through ``ng.jit``: NumPy's values and slopes.

What is made of few elements is kept as scalars, what is long in arrays; a program mixes both, so
that everything that reads the one or the other meets both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import numgrad as ng
from tests.compiler.emulator import emulating

Step = tuple[str, int, int]


def definite(m: Any) -> Any:
    bounded = np.tanh(m)
    return bounded @ bounded.T + np.diag(2.0 + 0.1 * bounded[0])


# what each step reads: m, w, x (a small matrix, a vector, a long matrix), n another of its kind
MATRICES: dict[str, Callable[..., Any]] = {
    "product": lambda m, n, w, x, s: m @ n * 0.3,
    "outer": lambda m, n, w, x, s: np.einsum("i,j->ij", w, np.tanh(w)),
    "transpose": lambda m, n, w, x, s: m.T,
    "inverse": lambda m, n, w, x, s: np.linalg.inv(definite(m)),
    "cholesky": lambda m, n, w, x, s: np.linalg.cholesky(definite(m)),
    "solve matrix": lambda m, n, w, x, s: np.linalg.solve(definite(m), np.tanh(n)),
    "scaled": lambda m, n, w, x, s: np.tanh(m) * s,
    "gram": lambda m, n, w, x, s: x @ x.T / x.shape[1],
    "covariance": lambda m, n, w, x, s: np.cov(np.concatenate([x, w[:, None]], axis=1)) * 0.1,
    "stack": lambda m, n, w, x, s: np.stack([np.sin(w + k) for k in range(len(w))]),
    "stack of stacks": lambda m, n, w, x, s: np.stack(
        [np.stack([w[i] * s if i == k else np.cos(w[k]) + i for k in range(len(w))])
         for i in range(len(w))]
    ),
    "diagonal": lambda m, n, w, x, s: np.diag(w),
    "rotated": lambda m, n, w, x, s: np.einsum("ij,kj->ki", m, np.tanh(n)),
    "select": lambda m, n, w, x, s: np.where(m > n, m, n * 0.5),
    "flip": lambda m, n, w, x, s: m[::-1],
    "shift": lambda m, n, w, x, s: np.concatenate([m[1:], w[None]]),
    "reflect": lambda m, n, w, x, s: np.diag(0 * w + 1) - 2 * np.outer(w, w) / (w @ w + 0.1),
}  # fmt: skip
VECTORS: dict[str, Callable[..., Any]] = {
    "solve": lambda m, n, w, x, s: np.linalg.solve(definite(m), np.tanh(w)),
    "times": lambda m, n, w, x, s: m @ np.tanh(w),
    "sum": lambda m, n, w, x, s: np.sum(m, axis=0),
    "mean": lambda m, n, w, x, s: np.mean(x, axis=1),
    "row": lambda m, n, w, x, s: m[1],
    "column": lambda m, n, w, x, s: m[:, -1],
    "unit": lambda m, n, w, x, s: w / np.sqrt(1.0 + w @ w),
    "running": lambda m, n, w, x, s: np.cumsum(w) * 0.3,
}
LONG: dict[str, Callable[..., Any]] = {
    "moved": lambda m, n, w, x, s: m @ x * 0.5,
    "moved back": lambda m, n, w, x, s: (x.T @ m).T * 0.5,
    "contracted": lambda m, n, w, x, s: np.einsum("ji,jk->ik", m, np.tanh(x)),
    "whitened": lambda m, n, w, x, s: np.linalg.solve(definite(m), x),
    "twice": lambda m, n, w, x, s: (m @ n) @ np.tanh(x),
    "centred": lambda m, n, w, x, s: x - np.mean(x, axis=1, keepdims=True),
    "weighed": lambda m, n, w, x, s: np.tanh(x) * w[:, None],
}
KINDS = MATRICES, VECTORS, LONG


def run(steps: Sequence[Step], m: Any, w: Any, x: Any, s: Any) -> Any:
    """A number that depends on the last values of each kind."""
    made: tuple[list[Any], ...] = [m], [w], [x]
    for name, i, j in steps:
        matrices, vectors, long = made
        operands = matrices[-1 - i % len(matrices)], matrices[j % len(matrices)]
        operands += vectors[-1 - j % len(vectors)], long[-1 - i % len(long)], s
        for kind, values in zip(KINDS, made, strict=True):
            if name in kind:
                values.append(kind[name](*operands))
    m, w, x = (values[-1] for values in made)
    return np.sum(np.sin(m)) + np.sum(np.tanh(m @ x)) + np.sum(np.cos(m @ w)) + np.sum(w * s)


def check(steps: Sequence[Step], rows: int, columns: int, seed: int, **options: Any) -> None:
    """Value and gradient against NumPy, the latter by differences along a direction."""
    rng = np.random.default_rng(seed)
    arguments = [rng.normal(size=n) for n in ((rows, rows), rows, (rows, columns), ())]
    arguments = [np.asarray(x) for x in arguments]
    both = ng.value_and_grad(lambda *x: run(steps, *x), argnums=(0, 1, 2, 3))
    value, found = ng.jit(lambda *x: both(*x), **options)(*arguments)
    np.testing.assert_allclose(value, run(steps, *arguments), rtol=1e-9, atol=1e-9)
    for ours, eager in zip(found, both(*arguments)[1], strict=True):
        scale = float(np.max(np.abs(eager)))
        np.testing.assert_allclose(ours, eager, rtol=1e-8, atol=1e-9 * max(scale, 1.0))
    direction = [rng.normal(size=np.shape(x)) for x in arguments]
    along = sum(np.sum(g * d) for g, d in zip(found, direction, strict=True))
    size = sum(np.sum(np.abs(g * d)) for g, d in zip(found, direction, strict=True))

    def slope(h: float) -> float:
        ahead, behind = (
            run(steps, *[x + t * d for x, d in zip(arguments, direction, strict=True)])
            for t in (h, -h)
        )
        return float(ahead - behind) / (2 * h)

    near = (abs(along - slope(h)) <= 1e-4 * (size + 1) for h in (1e-6, 1e-7))
    assert any(near) or any(name == "select" for name, *_ in steps)  # there are kinks between


steps = st.lists(
    st.tuples(
        st.sampled_from([name for kind in KINDS for name in kind]),
        st.integers(0, 3),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=8,
)
lengths = st.integers(2, 9), st.sampled_from([1, 2, 7, 40])


@settings(max_examples=6)
@given(steps, *lengths, st.integers(0, 99), st.booleans())
@example([("outer", 0, 0), ("moved", 0, 0)], 3, 7, 5, True)
@example([("cholesky", 0, 0), ("whitened", 0, 0)], 8, 40, 5, False)
def test_programs(program, rows, columns, seed, dynamic):
    with emulating():
        check(program, rows, columns, seed, dynamic=dynamic)


@pytest.mark.slow(cases=0)
@settings(max_examples=60)
@given(steps, *lengths, st.integers(0, 99), st.booleans())
def test_many_programs(program, rows, columns, seed, dynamic):
    with emulating():
        check(program, rows, columns, seed, dynamic=dynamic)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("name", ["stack of stacks", "outer", "cholesky", "reflect"])
@pytest.mark.parametrize("rows", [3, 8])
def test_compiled_products_of_small_matrices_with_long_ones(name, rows):
    check([(name, 0, 0), ("moved", 0, 0), ("whitened", 0, 0)], rows, 7, 5)
