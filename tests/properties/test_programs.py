"""Random compositions of operations: finite differences, complex steps, transposed Jacobians."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import numgrad as ng
from numgrad.testing import gradcheck

pytestmark = pytest.mark.slow

# smooth on the whole line and holomorphic, so that a complex step h gives f' = Im f(x + ih) / h
UNARY = {
    "sin": np.sin,
    "tanh": np.tanh,
    "square": lambda x: x * x * 0.3,
    "shift": lambda x: 1.5 - x,
    "soft": lambda x: np.log(2.5 + np.sin(x)),
    "root": lambda x: np.sqrt(4.0 + np.tanh(x)),
    "inverse": lambda x: 1.0 / (3.0 + np.cos(x)),
    "transpose": lambda x: x.T,
    "reverse": lambda x: x[::-1],
}
BINARY = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * np.tanh(b),
    "sub_row": lambda a, b: a - b[:1],
    "mul_column": lambda a, b: np.sin(a) * b[:, :1],
    "mean": lambda a, b: a + b.mean(axis=0),
    "sum": lambda a, b: a * 0.2 + np.sum(b, axis=1, keepdims=True),
}
steps = st.lists(
    st.tuples(st.sampled_from(sorted({**UNARY, **BINARY})), st.integers(0, 9), st.integers(0, 9)),
    min_size=2,
    max_size=7,
)


def run(program, x):
    """Apply each step to earlier values; the result depends on the last one."""
    values = [x]
    for name, first, second in program:
        a, b = values[-1 - first % len(values)], values[second % len(values)]
        values.append(UNARY[name](a) if name in UNARY else BINARY[name](a, b))
    return values[-1] + 0.1 * values[0]


def point(seed):
    return np.random.default_rng(seed).uniform(-1.5, 1.5, (3, 3))


@pytest.mark.slow(cases=0)
@given(steps, st.integers(0, 1000))
def test_finite_differences(program, seed):
    assert gradcheck(lambda x: run(program, x), ng.tensor(point(seed), requires_grad=True))


@pytest.mark.slow(cases=0)
@given(steps, st.integers(0, 1000))
def test_complex_step_and_transpose(program, seed):
    array = point(seed)
    rng = np.random.default_rng(seed + 1)
    u, v = rng.standard_normal((2, 3, 3))
    tangent = run(program, array + 1e-30j * u).imag / 1e-30  # J u, from NumPy alone
    x = ng.tensor(array, requires_grad=True)
    y = run(program, x)
    np.testing.assert_allclose(y.numpy(force=True), run(program, array), rtol=1e-12, atol=1e-13)
    (cotangent,) = ng.autograd.grad(y, x, v)
    scale = np.abs(v * tangent).sum() + np.abs(cotangent.numpy() * u).sum()
    assert abs(np.vdot(v, tangent) - np.vdot(cotangent.numpy(), u)) <= 1e-12 * scale + 1e-14


@pytest.mark.slow(cases=0)
@given(steps, st.integers(0, 1000))
def test_recorded_gradient_equals_compiled_gradient(program, seed):
    x = ng.tensor(point(seed), requires_grad=True)
    loss = (run(program, x) ** 2).sum()
    (compiled,) = ng.autograd.grad(loss, x, retain_graph=True)
    (recorded,) = ng.autograd.grad(loss, x, create_graph=True)
    scale = np.abs(compiled.numpy()).max() + 1.0
    np.testing.assert_allclose(
        recorded.numpy(force=True), compiled.numpy(), rtol=1e-11, atol=1e-12 * scale
    )
