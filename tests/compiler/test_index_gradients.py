"""Second gradients through indices that add and remove axes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng

WEIGHTS = np.array([[1.0, -2.0], [3.0, 0.5], [-1.0, 2.0]])


def _write(p: Any, index: Any, shape: tuple[int, ...]) -> Any:
    out = ng.zeros(shape)
    out[index] = p
    return out


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize(
    "read",
    [
        lambda p: p[:, None],
        lambda p: p[None][..., None],
        lambda p: p[..., None][:, 0, None],
        lambda p: p.reshape(3, 1)[1, 0],
        lambda p: _write(p, (slice(None), 0), (3, 2)),
        lambda p: _write(p[:, None, None], (slice(None), None, slice(1, 2)), (3, 2)),
    ],
    ids=["column", "row", "twice", "number", "written", "written to a new axis"],
)
def test_second_gradient_of_squares_is_twice_the_weights(
    read: Callable[[Any], Any],
) -> None:
    def f(p: Any) -> Any:
        y = read(p)
        return np.sum(y * y * WEIGHTS)

    def product(p: Any, v: Any) -> Any:
        return ng.grad(lambda q: np.sum(ng.grad(f)(q) * v))(p)

    p, v = np.array([0.5, -1.5, 2.0]), np.array([1.0, 10.0, 100.0])
    unit = np.eye(3)
    # f is quadratic, so differences give its Hessian but for rounding
    hessian = [
        [(f(p + a + b) - f(p + a - b) - f(p - a + b) + f(p - a - b)) / 4 for b in unit]
        for a in unit
    ]
    np.testing.assert_allclose(ng.jit(product)(p, v), np.array(hessian) @ v, rtol=1e-12, atol=1e-9)
