"""Gradients of the whole table: against differences, in layouts, by kernel and by formula."""

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import Op
from numgrad.core.plan import Call
from numgrad.errors import NumgradNotImplementedError
from numgrad.testing import gradcheck, gradgradcheck
from numgrad.testing.samples import LAYOUTS, draw, samples
from tests.operations.cases import TABLE, Case, cases, drawn, empty_cases, followed, prepare
from tests.operations.reference import BINARY, ELEMENTWISE, by_name

pytestmark = pytest.mark.slow

SMOOTH = [
    op for op in ELEMENTWISE if op.differentiable and any(followed(op, name) for name in op.inputs)
]
LOOSE = 1e-4  # of second derivatives, by differences of first ones
NOISE = {"fractional_matrix_power": 1e-14}
"""Between two runs, where LAPACK's sums depend on where in memory their operands are."""

# -------------------------------------------------------------------------------- differences


OWN = """
nextafter spacing real_if_close histogram_sums histogram histogramdd_sums histogramdd histogram2d
bincount distinct unique unique_all unique_counts unique_inverse unique_values intersect1d union1d
setdiff1d setxor1d unique_consecutive
emath_sqrt emath_log emath_log2 emath_log10 emath_logn emath_power emath_arccos emath_arcsin
emath_arctanh
"""
"""What numbers decide the shape of, or the gradient is zero: they have tests of their own."""


@pytest.mark.parametrize("op", **by_name([op for op in TABLE if op.name not in OWN.split()]))
def test_every_operation_has_cases(op):
    assert any(any(case.differentiable) for case in cases(op)), (
        f"{op.name} declares neither samples nor calls"
    )


@pytest.mark.parametrize("op", **by_name(TABLE))
def test_gradcheck(op):
    for case in cases(op):
        gradcheck(case.function, case.tensors(), check_grad_dtypes=True)


@pytest.mark.parametrize("op", **by_name(TABLE))
def test_gradgradcheck(op):
    for case in few(op):
        if op.name == "zeta_s":  # its own derivative is refused by name
            with pytest.raises(NumgradNotImplementedError, match="zeta_ss"):
                gradgradcheck(case.function, case.tensors())
        else:
            noise = NOISE.get(op.name, 0.0)
            gradgradcheck(case.function, case.tensors(), atol=LOOSE, nondet_tol=noise)


@pytest.mark.parametrize("op", **by_name([op for op in TABLE if not op.real_only]))
def test_complex_gradcheck(op):
    for case in cases(op, np.complex128):
        gradcheck(case.function, case.tensors(), check_grad_dtypes=True)


@pytest.mark.parametrize("op", **by_name([op for op in TABLE if not op.real_only]))
def test_complex_gradgradcheck(op):
    for case in few(op, np.complex128):
        noise = NOISE.get(op.name, 0.0)
        gradgradcheck(case.function, case.tensors(), atol=LOOSE, nondet_tol=noise)


def few(op: Op, dtype: Any = np.float64) -> list[Case]:
    """Some of the cases, for tests in which all would take minutes."""
    found = list(cases(op, dtype))
    if isinstance(op, Elementwise):
        return found[:1]
    return [found[2], found[5]] if isinstance(op, AxisOp) else found


@pytest.mark.parametrize("op", **by_name([op for op in TABLE if len(op.inputs) == 2]))
def test_real_operand_beside_a_complex_one(op):
    """Its gradient is real: the real part of what a complex operand would get."""
    if op.real_only or op.name == "divmod":
        return
    for case in few(op, np.complex128):
        if len(case.operands) != 2:
            continue
        for k in (0, 1):
            if not case.differentiable[k] or (k == 0 and op.keeps_dtype):
                continue
            operands = [a.real.copy() if j == k else a for j, a in enumerate(case.operands)]
            mixed = Case(case.function, operands, case.differentiable)
            gradcheck(mixed.function, mixed.tensors(), check_grad_dtypes=True)


@pytest.mark.parametrize("op", **by_name([op for op in TABLE if op.real_only]))
def test_complex_operands_are_refused_as_numpy_does(op):
    case = next(drawn(op, np.complex128))
    with pytest.raises(TypeError):
        case.function(*case.tensors())
    if isinstance(op.ref, np.ufunc):
        with pytest.raises(TypeError):
            op.ref(*case.operands)


# -------------------------------------------------------------------------- layouts and shapes


# Of elementwise operations and those along axes: test_table_layouts and test_table_axis.
OTHERS = [op for op in TABLE if not isinstance(op, Elementwise | AxisOp)]


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", **by_name(OTHERS))
def test_gradients_of_operands_that_are_not_contiguous(op, layout):
    for case in cases(op):
        given = case.tensors(lambda a: LAYOUTS[layout](a) if a.ndim else a.copy())
        for actual, expected in zip(
            _gradients(case, given), _gradients(case, case.tensors()), strict=True
        ):
            np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def _gradients(case: Case, given: list[ng.Tensor]) -> list[np.ndarray]:
    outputs = case.function(*given)
    outputs = [outputs] if isinstance(outputs, ng.Tensor) else list(outputs)
    rng = np.random.default_rng(0)
    seeds = [rng.standard_normal(y.shape).astype(y.dtype) for y in outputs]
    inputs = [x for x in given if x.requires_grad]
    pairs = [(y, w) for y, w in zip(outputs, seeds, strict=True) if y.requires_grad]
    outputs, seeds = (list(part) for part in zip(*pairs, strict=True))
    found = ng.autograd.grad(outputs, inputs, seeds, materialize_grads=True)
    return [g.numpy() for g in found]


@pytest.mark.parametrize("op", **by_name([op for op in TABLE if any(empty_cases(op))]))
def test_gradients_of_empty_operands(op):
    for case in empty_cases(op):
        gradcheck(case.function, case.tensors(), check_grad_dtypes=True)
        for g, a in zip(_gradients(case, case.tensors()), case.operands, strict=True):
            assert g.shape == a.shape


# --------------------------------------------------------------------------------- elementwise


@pytest.mark.parametrize("op", **by_name(SMOOTH))
def test_float32_gradients_are_those_of_float64(op):
    operands = prepare(op, [draw(op, (5,), np.float32, k) for k in range(len(op.inputs))])
    smooth = [followed(op, name) for name in op.inputs]
    found = {}
    for dtype in (np.float32, np.float64):
        given = [a.astype(dtype) if a.dtype.kind == "f" else a for a in operands]
        case = Case(op, given, smooth)
        tensors = case.tensors()
        out = op(*tensors)
        out.backward(np.ones(out.shape, out.dtype))
        found[dtype] = [x.grad.numpy() for x in tensors if x.requires_grad]
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
    smooth = sum(1 << k for k, name in enumerate(op.inputs) if followed(op, name))
    # gradients of some operands only are tried where operands are broadcast
    for args, masks in (
        (drawn[0], [smooth]),
        (drawn[2] if count == 2 else drawn[1], range(1, 1 << count)),
    ):
        for mask in masks:
            if mask & ~smooth:
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


SMOOTH_BINARY = [op for op in SMOOTH if len(op.inputs) == 2]
BROADCAST = [((5, 1, 4), (3, 1)), ((), (2, 3)), ((2, 1, 3, 1, 2), (3, 1, 1))]


@pytest.mark.parametrize("op", **by_name(SMOOTH_BINARY))
def test_broadcast_gradients_are_sums(op):
    """Against the same operation on operands that were broadcast beforehand.

    The loops that sum are those of the family: one operation is tried on all shapes, each of the
    others on one of them (``test_gradcheck`` has all of them broadcast in many ways).
    """
    smooth = [followed(op, name) for name in op.inputs]
    k = SMOOTH_BINARY.index(op) % len(BROADCAST)
    for shape_a, shape_b in BROADCAST if op.name == "multiply" else BROADCAST[k : k + 1]:
        a, b = draw(op, shape_a), draw(op, shape_b, seed=1)
        full = np.broadcast_shapes(shape_a, shape_b)
        g = np.random.default_rng(2).standard_normal(full).astype(op.run((a, b), {})[0].dtype)
        small = Case(op, [a, b], smooth).tensors()
        op(*small).backward(g)
        whole = Case(op, [np.broadcast_to(x, full) for x in (a, b)], smooth)
        whole = whole.tensors(np.ascontiguousarray)
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
