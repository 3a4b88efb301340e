"""SEMANTICS.md section 10: what the gradient is where there is no derivative."""

import math

import numpy as np
import pytest

import numgrad as ng

inf, nan = math.inf, math.nan
OPS = ng.ops

UNARY = [
    ("absolute", 0.0, 0), ("sign", 0.0, 0), ("angle", 0.0, 0), ("sqrt", 0.0, inf),
    ("log", 0.0, inf), ("arccos", 1.0, -inf), ("arccos", -1.0, -inf), ("arcsin", 1.0, inf),
    ("arcsin", -1.0, inf), ("floor", 1.0, 0), ("ceil", 1.0, 0), ("trunc", 1.0, 0),
    ("round", 0.5, 0), ("nan_to_num", nan, 0), ("nan_to_num", inf, 0), ("rint", 2.5, 0),
]  # fmt: skip
BINARY = [
    ("maximum", (1, 1), (0.5, 0.5)), ("minimum", (1, 1), (0.5, 0.5)), ("fmax", (1, 1), (1, 0)),
    ("fmin", (1, 1), (1, 0)), ("fmax", (nan, 1), (0, 1)), ("fmax", (1, nan), (1, 0)),
    ("hypot", (0, 0), (nan, nan)), ("power", (0, 0), (0, 0)), ("power", (-2, 2), (-4, nan)),
    ("logaddexp", (-inf, -inf), (nan, nan)), ("fmod", (5, 3), (1, -1)),
    ("remainder", (-5, 3), (1, 2)), ("copysign", (0, -1), (0, 0)), ("floor_divide", (5, 3), (0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "at", "gradient"), UNARY)
def test_unary(name, at, gradient):
    x = ng.tensor([at], requires_grad=True)
    OPS[name](x).sum().backward()
    assert x.grad.numpy()[0] == gradient


@pytest.mark.parametrize(("name", "at", "gradients"), BINARY)
def test_binary(name, at, gradients):
    a, b = (ng.tensor([float(v)], requires_grad=True) for v in at)
    OPS[name](a, b).sum().backward()
    np.testing.assert_array_equal([a.grad.item(), b.grad.item()], gradients)


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin"])
def test_ties_share(name):
    x = ng.tensor([2.0, 2.0, 2.0, 2.0], requires_grad=True)
    getattr(np, name)(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.25] * 4)
    y = ng.tensor([[1.0, 1.0], [3.0, 3.0]], requires_grad=True)
    getattr(np, name)(y, axis=1).sum().backward()
    np.testing.assert_array_equal(y.grad.numpy(), [[0.5, 0.5], [0.5, 0.5]])


def test_clip_passes_the_gradient_at_both_bounds():
    x = ng.tensor([-1.0, 0.0, 1.0, 2.0, -2.0], requires_grad=True)
    np.clip(x, -1, 1).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1, 1, 0, 0])


def test_norm_at_zero_and_std_of_equal_values():
    for function in (np.linalg.norm, np.std):
        x = ng.tensor([0.0, 0.0, 0.0], requires_grad=True)
        function(x).backward()
        np.testing.assert_array_equal(x.grad.numpy(), [0, 0, 0])


@pytest.mark.parametrize(
    ("values", "expected"),
    [([2.0, 0.0, 3.0], [0, 6, 0]), ([0.0, 0.0, 3.0], [0, 0, 0]), ([2.0, 3.0], [3, 2])],
)
def test_prod_with_zeros(values, expected):
    x = ng.tensor(values, requires_grad=True)
    np.prod(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_masked_branch_leaks():
    x = ng.tensor([0.0, 2.0], requires_grad=True)
    np.where(x > 0, np.log(x), 0.0).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [nan, 0.5])


def test_absolute_of_complex_zero():
    z = ng.tensor([0j, 3 + 4j], requires_grad=True)
    np.abs(z).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), [0, 0.6 + 0.8j], rtol=1e-15)
