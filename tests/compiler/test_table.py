"""Every operation of the table through jit: values, gradients, second derivatives as in eager code.

The sweep runs emulated; what concerns bits and special values is compiled, many operations in one
function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.op import Op
from tests.compiler.emulator import emulating
from tests.operations.cases import TABLE, Case, cases
from tests.operations.reference import ELEMENTWISE, by_name, operands

pytestmark = [
    pytest.mark.filterwarnings("ignore:jit. .* plain NumPy made"),
    pytest.mark.slow,  # kernels are the same for every Python
]

LOOKS_AT_INDICES = {"multiply_at", "polydiv", "trim_zeros"}
"""Operations whose formula looks at numbers, mostly of indices, which a trace refuses."""
PLACES = {"region", "region_backward", "copy_slices"}
"""Operations of the tape's own, called with another description of a place in a trace."""


def tensors(out: Any) -> list[ng.Tensor]:
    """The Tensors in what an operation returns."""
    if isinstance(out, tuple | list):
        return [t for part in out for t in tensors(part)]
    return [out] if isinstance(out, ng.Tensor) else []


def weighted(outs: Sequence[ng.Tensor]) -> Any:
    """A number with another weight for each element."""
    total = None
    for n, out in enumerate(outs):
        if out.requires_grad:
            shape = tuple([int(length) for length in out.shape])
            weights = np.sin(np.arange(1.0, 1 + math.prod(shape)) + n).reshape(shape)
            term = ng.sum(ng.real(out * weights))
            total = term if total is None else total + term
    return total


def derivatives(each: Sequence[Case]) -> Callable[..., list[Any]]:
    """Values, gradients and products with the Hessian of some calls."""

    def function(*given: Any) -> list[Any]:
        rest = iter(given)
        found: list[Any] = []
        for case in each:
            values = [next(rest).detach() for _ in case.differentiable]
            found += orders(case, values, case.differentiable)
        return found

    return function


def orders(case: Case, values: Sequence[Any], smooth: Sequence[bool]) -> list[Any]:
    x = [v.detach().requires_grad_(d) for v, d in zip(values, smooth, strict=True)]
    leaves = [t for t in x if t.requires_grad]
    found = tensors(case.function(*x))
    loss = weighted(found)
    if loss is None or not leaves:
        return found
    gradients = ng.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
    gradients = [g for g in gradients if g is not None]
    found = [*found, *gradients]
    squares = [ng.sum(ng.real(g * ng.conj(g))) for g in gradients if g.requires_grad]
    if squares:
        products = ng.autograd.grad(sum(squares), leaves, allow_unused=True)
        found += [h for h in products if h is not None]
    return found


def assert_same(found: Sequence[Any], expected: Sequence[Any], rtol: float) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        a, b = (x.numpy(force=True) for x in (a, b))
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1e-3)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale)


def sweep(op: Any, dtype: Any, rtol: float) -> None:
    """Compare an operation's cases."""
    each = list(cases(op, dtype))
    if op.name == "scatter":
        each = each[:2]  # the third multiplies
    if not each:
        pytest.skip("no cases")
    function = derivatives(each)
    given = [ng.asarray(a) for case in each for a in case.operands]
    expected = function(*given)
    with emulating(task=16, lanes=4, short=4):
        assert_same(ng.jit(function)(*given), expected, rtol)


SWEPT = [op for op in TABLE if op.name not in LOOKS_AT_INDICES | PLACES]


@pytest.mark.parametrize("op", **by_name(SWEPT))
def test_derivatives(op):
    sweep(op, np.float64, 1e-9)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("op", **by_name([op for op in SWEPT if not op.real_only]))
def test_derivatives_of_complex_numbers(op):
    sweep(op, np.complex128, 1e-9)


@pytest.mark.parametrize("name", ["cumsum", "getitem", "concat"])
def test_derivatives_of_some(name):
    sweep(ng.ops[name].op, np.float64, 1e-9)


# ------------------------------------------------------------------------------------------- bits


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays are equal, signs of zeros included; any NaN equals any other."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    real = ~np.isnan(a)
    signs = np.array_equal(np.signbit(a[real]), np.signbit(b[real]))
    return signs and np.array_equal(a, b, equal_nan=True)


def all_of(ops: Sequence[Op]) -> Callable[..., list[Any]]:
    """Many operations as one function of the operands of all."""

    def function(*given: Any) -> list[Any]:
        rest = iter(given)
        return [op(*[next(rest) for _ in op.inputs]) for op in ops]

    return function


def is_defined(op: Any, dtype: Any) -> bool:
    """Whether an elementwise operation takes operands of a dtype."""
    try:
        op.result_types([np.dtype(dtype)] * len(op.inputs))
    except ng.NumgradTypeError:
        return False
    return True


def compare_bits(ops: Sequence[Op], dtype: Any) -> None:
    given = [ng.asarray(x) for op in ops for x in operands(op, dtype)]
    found = ng.jit(all_of(ops))(*given)
    for op, a, b in zip(ops, found, all_of(ops)(*given), strict=True):
        assert same_bits(a, b), op.name


PLAIN = (
    "add", "subtract", "divide", "maximum", "fmin", "sqrt", "exp", "log", "tanh", "floor_divide",
    "sign", "rint",
)  # fmt: skip


@pytest.mark.slow(cases=0)
def test_special_values_have_the_bits_of_eager_code():
    compare_bits([ng.ops[name].op for name in PLAIN], np.float64)


GROUPS = [ELEMENTWISE[k : k + 12] for k in range(0, len(ELEMENTWISE), 12)]


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize(
    "dtype",
    [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)],
    ids=["float64", "float32"],
)
@pytest.mark.parametrize("ops", GROUPS, ids=lambda ops: f"{ops[0].name}-{ops[-1].name}")
def test_elementwise_operations_have_the_bits_of_eager_code(ops, dtype):
    ours = [op for op in ops if op.__module__.startswith("numgrad.")]
    compare_bits([op for op in ours if is_defined(op, dtype)], dtype)


def test_a_chain_has_the_bits_of_eager_code():
    def chain(x: Any, y: Any) -> Any:
        z = np.sqrt(x * x - y * y) + np.exp(-x) * y  # contracted, the root would be NaN
        return z, np.where(z > 1, z / y, -z) * 3

    rng = np.random.default_rng(0)
    x = np.abs(rng.normal(size=1001)) + 1
    y = np.where(rng.normal(size=1001) > 0, x, 0.5)
    for a, b in zip(ng.jit(chain)(x, y), chain(ng.asarray(x), ng.asarray(y)), strict=True):
        assert same_bits(a, b)


# -------------------------------------------------------------------------------------- shapes


def mixture(x: Any) -> Any:
    """Operations that meet every way to be computed."""
    y = np.exp(x) - np.sum(x, axis=-1, keepdims=True)
    return y, np.sum(y * x), np.prod(y, axis=0), y.T + 1, x[..., ::-1] * 2, np.concatenate([x, y])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 4), (4, 1), (1, 1), (2, 3)])
def test_shapes_of_all_kinds(shape):
    x = np.random.default_rng(0).normal(size=shape)
    with emulating():
        found = ng.jit(mixture)(x)
    for a, b in zip(found, mixture(x), strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


def test_numbers_and_arguments_in_any_layout():
    def f(x: Any, y: Any) -> Any:
        return np.sin(x) * y, x + y.T if y.ndim else x * y

    rng = np.random.default_rng(0)
    square = rng.normal(size=(6, 6))
    layouts = [square.T, square[::-1, ::-1], np.repeat(square, 2, 1)[:, ::2], np.float64(2.5)]
    with emulating():
        fast = ng.jit(f)
        for x in layouts:
            for y in (np.asfortranarray(square), np.array(0.5), np.broadcast_to(square[0], (6, 6))):
                for a, b in zip(fast(x, y), f(x, y), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-13)
