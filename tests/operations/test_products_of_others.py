"""Gradients of products: of each element the product of all others, also infinite ones and NaN."""

import numpy as np
import pytest

import numgrad as ng

ROWS = np.array(
    [
        [0.5, np.inf, 3.0, -1.0],
        [0.5, np.nan, 3.0, -1.0],
        [np.inf, -np.inf, 3.0, -1.0],
        [0.0, 2.0, 3.0, -1.0],
        [0.0, 0.0, 3.0, -1.0],
        [1e200, 0.0, 1e200, 1.0],
    ]
)


def product_of_others(row):
    with np.errstate(over="ignore", invalid="ignore"):
        return [np.prod(np.delete(row, k)) for k in range(len(row))]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("form", [lambda f: f, ng.jit], ids=["eager", "compiled"])
def test_each_element_gets_the_product_of_the_others(form, axis):
    wanted = np.array(list(map(product_of_others, ROWS)))
    x = ROWS if axis == 1 else ROWS.T
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = form(ng.grad(lambda x: np.sum(np.prod(x, axis=axis))))(x)
    np.testing.assert_allclose(gradient if axis == 1 else gradient.T, wanted, rtol=1e-14)


def test_a_zero_beside_what_is_not_finite_gives_nan():
    gradient = ng.grad(np.prod)(np.array([0.0, np.inf, 3.0]))
    assert np.isnan(gradient[2])
