"""Gradients of the elementwise table: differences, the formula itself, layouts, broadcasting."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.op.base import Call
from numgrad.testing import gradcheck, gradgradcheck
from numgrad.testing.samples import draw, samples
from tests.ops.reference import BINARY, ELEMENTWISE, by_name, quiet, reference

pytestmark = pytest.mark.slow

SMOOTH = [op for op in ELEMENTWISE if op.differentiable and op.formulas]
# Complex numbers are ordered by their real parts, which has no derivative in the plane
ORDERED = {"maximum", "minimum", "fmax", "fmin", "clip_below", "clip_above"}
# No gradient in the first operand, or in the condition
FIRST_FIXED = {"zeta", "where", "replace_nonfinite"}
BY_FORMULA = {"sigmoid", "softplus", "logit"}


def tensors(op, args):
    """Operands that require grad where there is a formula."""
    return [
        ng.tensor(a, requires_grad=name in op.formulas and a.dtype.kind in "fc")
        for name, a in zip(op.inputs, args, strict=True)
    ]


def prepare(op, args):
    if op.name == "where":
        args = (args[0].real > 0.3, *args[1:])
    return args


def has_complex(op):
    if op.name in BY_FORMULA | {"where"}:
        return True
    if op.name in ORDERED | {"from_parts", "replace_nonfinite"}:
        return False
    try:
        quiet(reference(op), *[np.ones(1, np.complex128)] * len(op.inputs))
    except TypeError:
        return False
    return op.name not in {"erf", "erfc", "gamma", "gammaln", "digamma"}


@pytest.mark.parametrize("op", **by_name(SMOOTH))
def test_gradcheck(op):
    for sample in samples(op):
        gradcheck(op, tensors(op, prepare(op, sample.args)), check_grad_dtypes=True)


@pytest.mark.parametrize("op", **by_name(SMOOTH))
def test_gradgradcheck(op):
    drawn = list(samples(op))
    sample = drawn[2] if len(op.inputs) == 2 else drawn[0]
    gradgradcheck(op, tensors(op, prepare(op, sample.args)), atol=1e-4)


@pytest.mark.parametrize("op", **by_name([op for op in SMOOTH if has_complex(op)]))
def test_complex_gradcheck(op):
    args = prepare(op, [draw(op, (3,), np.complex128, k) for k in range(len(op.inputs))])
    gradcheck(op, tensors(op, args), check_grad_dtypes=True)
    if len(args) == 2:  # a real operand beside a complex one
        gradcheck(op, tensors(op, [args[0].real.copy(), args[1]]), check_grad_dtypes=True)
    gradgradcheck(op, tensors(op, args), atol=1e-4)


@pytest.mark.parametrize("op", **by_name(SMOOTH))
def test_float32_gradients_are_those_of_float64(op):
    args = prepare(op, [draw(op, (5,), np.float32, k) for k in range(len(op.inputs))])
    found = {}
    for dtype in (np.float32, np.float64):
        given = tensors(op, [a.astype(dtype) if a.dtype.kind == "f" else a for a in args])
        out = op(*given)
        out.backward(np.ones(out.shape, out.dtype))
        found[dtype] = [x.grad.numpy() for x in given if x.requires_grad]
    assert found[np.float32]
    for single, double in zip(found[np.float32], found[np.float64], strict=True):
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, double, rtol=2e-5, atol=1e-6)


def backward_both_ways(op, args, mask):
    out, plan = op.run(args, {})
    g = draw(op, out.shape, out.dtype, 9)
    named = {**dict(zip(op.inputs, args, strict=True)), "y": out}
    saved = [named[name] for name in plan.saves(mask)]
    with np.errstate(all="ignore"):
        expected, _ = Call.backward(plan, mask, g, saved)
    actual, owned = plan.backward(mask, g, saved)
    return actual, expected, owned


@pytest.mark.parametrize("op", **by_name(SMOOTH))
def test_kernel_is_the_formula(op):
    count = len(op.inputs)
    drawn = [prepare(op, s.args) for s in samples(op)]
    for args in (drawn[0], drawn[2] if count == 2 else drawn[1]):
        for mask in range(1, 1 << count):
            if any(mask >> k & 1 and name not in op.formulas for k, name in enumerate(op.inputs)):
                continue
            actual, expected, owned = backward_both_ways(op, args, mask)
            for k in range(count):
                if not mask >> k & 1:
                    assert actual[k] is None
                    assert not owned >> k & 1
                    continue
                assert actual[k].shape == args[k].shape
                assert actual[k].dtype == args[k].dtype
                np.testing.assert_allclose(actual[k], expected[k], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("op", **by_name([op for op in SMOOTH if len(op.inputs) == 2]))
def test_broadcast_gradients_are_sums(op):
    """Against the same operation on operands that were broadcast beforehand."""
    shapes = [((5, 1, 4), (3, 1)), ((), (2, 3)), ((2, 1, 3, 1, 2), (3, 1, 1))]
    for shape_a, shape_b in shapes:
        a, b = draw(op, shape_a), draw(op, shape_b, seed=1)
        full = np.broadcast_shapes(shape_a, shape_b)
        g = np.random.default_rng(2).standard_normal(full).astype(op.run((a, b), {})[0].dtype)
        small = tensors(op, (a, b))
        op(*small).backward(g)
        whole = tensors(op, [np.ascontiguousarray(np.broadcast_to(x, full)) for x in (a, b)])
        op(*whole).backward(g)
        for x, y in zip(small, whole, strict=True):
            if not x.requires_grad:
                continue
            axes = tuple(range(len(full) - x.ndim))
            expected = y.grad.numpy().sum(axis=axes)
            kept = tuple(k for k, n in enumerate(x.shape) if n == 1 and expected.shape[k] != 1)
            expected = expected.sum(axis=kept, keepdims=True)
            np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("op", **by_name(BINARY))
def test_shapes_that_do_not_broadcast(op):
    a, b = np.ones((3, 4), int), np.ones((3,), int)
    with pytest.raises(ValueError, match=rf"{op.name}.*\(3, 4\).*\(3,\)"):
        op(ng.tensor(a), ng.tensor(b))
