"""Sequences with Tensors in them as operands: one Tensor, as NumPy makes an array of them."""

import numpy as np
import pytest

import numgrad as ng
from tests.compiler.emulator import emulating

X = np.array([0.53, 1.47, 2.61])
LISTS = {
    "numbers": lambda x: [x[0], x[1] * 2, x[2]],
    "beside a number": lambda x: [x[0], 1.0],
    "rows": lambda x: [[x[0], x[1]], [x[2], x[0] * x[1]]],
    "rows beside numbers": lambda x: [[x[0], 1.0], (0.5, x[1])],
    "a row of numbers": lambda x: [[0.5, 1.0], [x[0], x[1]]],
    "vectors": lambda x: [x[:2], x[1:]],
    "deep": lambda x: [[[x[0], 2.0]], [[x[1], x[2]]]],
}
FUNCTIONS = [
    "sum", "mean", "max", "min", "amax", "amin", "std", "var", "prod", "median", "ptp", "cumsum",
    "cumprod", "sort", "exp", "ravel", "nansum", "average", "diff", "argmax", "any", "stack",
    "vstack", "hstack",
]  # fmt: skip


@pytest.mark.parametrize("given", LISTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_lists(name, given):
    ours, theirs = getattr(ng, name, None), getattr(np, name)
    if ours is None:
        pytest.skip("no such name")
    make = LISTS[given]
    expected = theirs(make(X))
    found = ours(make(ng.tensor(X)))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)
    assert found.dtype == np.asarray(expected).dtype
    with emulating():
        np.testing.assert_allclose(ng.jit(lambda x: ours(make(x)))(X), expected, rtol=1e-13)
    if found.dtype.kind != "f":
        return
    slopes = [
        (np.sum(theirs(make(X + e)) ** 2) - np.sum(theirs(make(X - e)) ** 2)) / 2e-6
        for e in 1e-6 * np.eye(3)
    ]
    gradient = ng.grad(lambda x: np.sum(ours(make(x)) ** 2))(X)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("function", [np.sum, np.mean, np.array, np.asarray, np.exp, np.max])
@pytest.mark.parametrize("derive", [ng.jit, ng.grad, ng.vmap])
def test_errors_of_numpys_functions_name_what_to_write(function, derive):
    """NumPy asks nobody about what is in a list."""

    def f(x):
        return np.sum(function([x[0], x[1]]))

    with pytest.raises((TypeError, RuntimeError), match=r"np\.stack"):
        derive(f)(np.stack([X, X]) if derive is ng.vmap else X)


def test_lists_that_contain_themselves():
    endless: list = [ng.tensor(1.0)]
    endless.append(endless)
    with pytest.raises(ValueError, match="nested too deeply"):
        ng.sum(endless)
