"""Gradients of the whole table: against differences, in layouts, by kernel and by formula."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.op import AxisOp, Composite, Elementwise
from numgrad.op.base import OPS, Call, Op
from numgrad.testing import gradcheck, gradgradcheck
from numgrad.testing.samples import LAYOUTS, draw, samples
from tests.ops.reference import BINARY, ELEMENTWISE, by_name

pytestmark = pytest.mark.slow

TABLE = [
    op
    for op in OPS.values()
    if op.__module__.startswith("numgrad.")
    and op.differentiable
    and (op.formulas or isinstance(op, Composite))
]
SMOOTH = [op for op in ELEMENTWISE if op.differentiable and op.formulas]

INDICES = np.array([2, 0, 0])
ALONG = np.array([[2, 0], [1, 1]])

# How to call what neither is elementwise, nor works along axes, nor declares samples: shapes of the
# operands, and a function of the operation and the operands.
CALLS: dict[str, list[tuple[tuple, Callable[..., Any]]]] = {
    "clip": [
        (((2, 3),), lambda op, x: op(x, -0.5, 0.7)),
        (((2, 3), (3,)), lambda op, x, low: op(x, low)),
        (((2, 3), ()), lambda op, x, high: op(x, None, high)),
    ],
    "round": [(((2, 3),), lambda op, x: op(x, 1))],
    "nan_to_num": [(((2, 3),), lambda op, x: op(x))],
    "deg2rad": [(((2, 3),), lambda op, x: op(x))],
    "rad2deg": [(((2, 3),), lambda op, x: op(x))],
    "polygamma": [(((3,),), lambda op, x: op(n, x + 3)) for n in (0, 1, 3)],
    "real": [(((2, 3),), lambda op, x: op(x))],
    "imag": [(((2, 3),), lambda op, x: op(x))],
    "astype": [
        (((2, 3),), lambda op, x: op(np.real(x), dtype=np.float64)),
        (((2, 3),), lambda op, x: op(x, dtype=np.complex128)),
    ],
    "norm": [
        (((2, 3),), lambda op, x, k=k: op(x, k, axis=1))
        for k in (1, 2, 3, 2.5, 0.5, -1, np.inf, -np.inf)
    ]
    + [(((2, 3),), lambda op, x: op(x)), (((3,),), lambda op, x: op(x, keepdims=True))],
    "flatten": [(((2, 3),), lambda op, x: op(x)), (((2, 3),), lambda op, x: op(x, "F"))],
    "broadcast_arrays": [(((2, 1), (3,)), lambda op, a, b: op(a, b))],
    "atleast_1d": [(((), (2,)), lambda op, a, b: op(a, b))],
    "atleast_2d": [(((), (2,)), lambda op, a, b: op(a, b))],
    "atleast_3d": [(((2,), (2, 3)), lambda op, a, b: op(a, b))],
    "fliplr": [(((2, 3),), lambda op, x: op(x))],
    "flipud": [(((2, 3),), lambda op, x: op(x))],
    "rot90": [(((2, 3),), lambda op, x: op(x)), (((2, 3),), lambda op, x: op(x, 2))],
    "take": [
        (((3, 2),), lambda op, x: op(x, INDICES, axis=0)),
        (((2, 3),), lambda op, x: op(x, np.array([[-1, 0], [5, 5]]))),
    ],
    "take_backward": [
        (((3, 2),), lambda op, x: op(x, INDICES, shape=(4, 2), axis=0)),
        (((3,),), lambda op, x: op(x, INDICES, shape=(2, 2))),
    ],
    "take_along_axis": [(((2, 3),), lambda op, x: op(x, ALONG, axis=1))],
    "gather_along": [(((2, 3),), lambda op, x: op(x, ALONG, axis=1))],
    "gather_along_backward": [(((2, 2),), lambda op, x: op(x, ALONG, shape=(2, 3), axis=1))],
    "tile": [(((2, 3),), lambda op, x: op(x, (2, 1, 2)))],
    "repeat": [
        (((2, 3),), lambda op, x: op(x, 2)),
        (((2, 3),), lambda op, x: op(x, [0, 2, 1], axis=1)),
    ],
    "pad": [
        (((2, 3),), lambda op, x, mode=mode: op(x, ((1, 2), (0, 1)), mode))
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap")
    ],
    "hstack": [(((2, 1), (2, 3)), lambda op, a, b: op((a, b)))],
    "vstack": [(((3,), (2, 3)), lambda op, a, b: op((a, b)))],
    "dstack": [(((2, 3), (2, 3)), lambda op, a, b: op((a, b)))],
    "column_stack": [(((2,), (2, 3)), lambda op, a, b: op((a, b)))],
    "split": [(((4, 2),), lambda op, x: op(x, 2)), (((4,),), lambda op, x: op(x, [1, 3]))],
    "array_split": [(((5,),), lambda op, x: op(x, 3))],
    "hsplit": [(((2, 4),), lambda op, x: op(x, 2))],
    "vsplit": [(((4, 2),), lambda op, x: op(x, 2))],
    "dsplit": [(((1, 2, 4),), lambda op, x: op(x, 2))],
    "meshgrid": [(((2,), (3,)), lambda op, a, b: op(a, b))],
    "cumulative_sum": [
        (((2, 3),), lambda op, x: op(x, axis=1, include_initial=True)),
        (((3,),), lambda op, x: op(x)),
    ],
    "cumulative_prod": [
        (((2, 3),), lambda op, x: op(x, axis=1, include_initial=True)),
        (((3,),), lambda op, x: op(x)),
    ],
    "diff": [
        (((2, 4),), lambda op, x: op(x, 2)),
        (((2, 3), (2, 1)), lambda op, x, last: op(x, axis=1, prepend=0.0, append=last)),
    ],
    "trace": [(((3, 3),), lambda op, x: op(x)), (((2, 3, 2),), lambda op, x: op(x, 1, 0, 2))],
    "diag": [(((3,),), lambda op, x: op(x, 1)), (((2, 3),), lambda op, x: op(x))],
    "einsum": [
        (((2, 3), (3, 2)), lambda op, a, b: op("ij,jk->ik", a, b)),
        (((3, 3),), lambda op, a: op("ii->i", a)),
        (((2, 3), (2, 3)), lambda op, a, b: op("ij,ij", a, b)),
        (((2, 3), (3,), (2,)), lambda op, a, b, c: op("ij,j,i->j", a, b, c)),
        (((2, 2, 3), (3, 2)), lambda op, a, b: op("...ij,jk->...ik", a, b)),
        (((2, 1), (2, 3)), lambda op, a, b: op("ij,ij->ji", a, b)),
    ],
    "dot": [
        (((3,), (3,)), lambda op, a, b: op(a, b)),
        (((2, 3), (3,)), lambda op, a, b: op(a, b)),
        (((), (2,)), lambda op, a, b: op(a, b)),
        (((2, 3), (2, 3, 2)), lambda op, a, b: op(a, b)),
    ],
    "inner": [(((2, 3), (2, 3)), lambda op, a, b: op(a, b))],
    "outer": [(((2,), (3,)), lambda op, a, b: op(a, b))],
    "vecdot": [
        (((2, 3), (3,)), lambda op, a, b: op(a, b)),
        (((3,), (3,)), lambda op, a, b: op(a, b)),
        (((3, 2), (3, 1)), lambda op, a, b: op(a, b, axis=0)),
    ],
    "vdot": [(((2, 3), (3, 2)), lambda op, a, b: op(a, b))],
    "tensordot": [
        (((2, 3), (3, 2)), lambda op, a, b: op(a, b)),
        (((2, 3), (2, 3)), lambda op, a, b: op(a, b, ((0,), (0,)))),
        (((2,), (3,)), lambda op, a, b: op(a, b, 0)),
    ],
    "kron": [(((2, 1), (3,)), lambda op, a, b: op(a, b))],
}

# NumPy has no complex loop for these, and so refuses complex operands; so do we.
REAL_ONLY = set(
    """
    floor_divide remainder fmod copysign floor ceil trunc cbrt hypot logaddexp logaddexp2 arctan2
    erf erfc erfinv gamma gammaln digamma zeta polygamma from_parts
    """.split()
)
# Reached from ``nan_to_num`` only, which gives it the real and the imaginary part by itself.
NEVER_COMPLEX = {"replace_nonfinite"}
# Operands without a gradient, as the first of these, are not differences of anything.
TOLERANCE = {"atol": 1e-4}  # of second derivatives, by differences of first ones


@dataclass
class Case:
    """A call with operands, some of which may be without a gradient."""

    function: Callable[..., Any]
    operands: list[np.ndarray]
    differentiable: list[bool]

    def tensors(self, arrange: Callable[[np.ndarray], np.ndarray] = np.copy) -> list[ng.Tensor]:
        return [
            ng.asarray(arrange(a)).requires_grad_(d)
            for a, d in zip(self.operands, self.differentiable, strict=True)
        ]


def cases(op: Op, dtype: Any = np.float64) -> Iterator[Case]:
    """Calls of an operation that its gradients are checked on."""
    if op.name in CALLS:
        for shapes, function in CALLS[op.name]:
            operands = [draw(op, s, dtype, k) for k, s in enumerate(shapes)]
            yield Case(lambda *x, f=function: f(op, *x), operands, [True] * len(operands))
        return
    for sample in samples(op, dtype):
        operands = prepare(op, sample.args)
        smooth = [
            op.inputs == ("inputs",) or (op.inputs[k] in op.formulas and a.dtype.kind in "fc")
            for k, a in enumerate(operands)
        ]
        yield Case(lambda *x, p=sample.params: op(*x, **p), operands, smooth)


def prepare(op: Op, operands: Any) -> list[np.ndarray]:
    operands = list(operands)
    if op.name == "where":
        operands[0] = operands[0].real > 0.3
    return operands


def accepts_complex(op: Op) -> bool:
    return op.name not in REAL_ONLY | NEVER_COMPLEX


# -------------------------------------------------------------------------------- differences


@pytest.mark.parametrize("op", **by_name(TABLE))
def test_every_operation_has_cases(op):
    assert any(any(case.differentiable) for case in cases(op)), (
        f"{op.name} declares no samples: say in CALLS how to call it"
    )


@pytest.mark.parametrize("op", **by_name(TABLE))
def test_gradcheck(op):
    for case in cases(op):
        gradcheck(case.function, case.tensors(), check_grad_dtypes=True)


@pytest.mark.parametrize("op", **by_name(TABLE))
def test_gradgradcheck(op):
    for case in _second_order(op, np.float64):
        gradgradcheck(case.function, case.tensors(), **TOLERANCE)


@pytest.mark.parametrize("op", **by_name([op for op in TABLE if accepts_complex(op)]))
def test_complex_gradcheck(op):
    for case in cases(op, np.complex128):
        gradcheck(case.function, case.tensors(), check_grad_dtypes=True)


@pytest.mark.parametrize("op", **by_name([op for op in TABLE if accepts_complex(op)]))
def test_complex_gradgradcheck(op):
    for case in _second_order(op, np.complex128):
        gradgradcheck(case.function, case.tensors(), **TOLERANCE)


def _second_order(op: Op, dtype: Any) -> list[Case]:
    """A few of the cases: differences of all take minutes."""
    found = list(cases(op, dtype))
    if isinstance(op, Elementwise):
        return found[2:3] if len(op.inputs) == 2 else found[:1]
    return [found[2], found[5]] if isinstance(op, AxisOp) else found


@pytest.mark.parametrize("op", **by_name([op for op in TABLE if len(op.inputs) == 2]))
def test_real_operand_beside_a_complex_one(op):
    """Its gradient is real: the real part of what a complex operand would get."""
    if not accepts_complex(op):
        return
    for case in cases(op, np.complex128):
        if len(case.operands) != 2:
            continue
        for k in (0, 1):
            if not case.differentiable[k]:
                continue
            operands = [a.real.copy() if j == k else a for j, a in enumerate(case.operands)]
            mixed = Case(case.function, operands, case.differentiable)
            gradcheck(mixed.function, mixed.tensors(), check_grad_dtypes=True)


@pytest.mark.parametrize("op", **by_name([op for op in TABLE if op.name in REAL_ONLY]))
def test_complex_operands_are_refused_as_numpy_does(op):
    case = next(cases(op, np.complex128))
    with pytest.raises(TypeError):
        case.function(*case.tensors())
    if isinstance(op.ref, np.ufunc):
        with pytest.raises(TypeError):
            op.ref(*case.operands)


# -------------------------------------------------------------------------- layouts and shapes


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", **by_name(TABLE))
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
    return [g.numpy() for g in ng.autograd.grad(outputs, inputs, seeds)]


EMPTY: dict[str, list[tuple[tuple, Callable[..., Any]]]] = {
    "matmul": [
        (((0, 3), (3, 2)), lambda op, a, b: op(a, b)),
        (((2, 0), (0, 3)), lambda op, a, b: op(a, b)),
        (((0,), (0,)), lambda op, a, b: op(a, b)),
        (((0, 2, 3), (3,)), lambda op, a, b: op(a, b)),
    ],
    "einsum": [(((2, 0), (0, 3)), lambda op, a, b: op("ij,jk->ik", a, b))],
    "tensordot": [(((0, 3), (3, 2)), lambda op, a, b: op(a, b, 1))],
    "vecdot": [(((2, 0), (2, 0)), lambda op, a, b: op(a, b))],
    "kron": [(((0,), (2,)), lambda op, a, b: op(a, b))],
    "cumsum": [(((0, 2),), lambda op, x: op(x, axis=0)), (((0,),), lambda op, x: op(x))],
    "cumprod": [(((0, 2),), lambda op, x: op(x, axis=0)), (((0,),), lambda op, x: op(x))],
    "linear_recurrence": [(((0, 2), (0, 2)), lambda op, a, b: op(a, b, axis=0))],
    "diff": [(((0, 2),), lambda op, x: op(x))],
    "take": [(((3, 2),), lambda op, x: op(x, np.zeros(0, int), axis=0))],
    "gather_along": [(((3, 2),), lambda op, x: op(x, np.zeros((0, 2), int), axis=0))],
    "getitem": [(((3, 2),), lambda op, x: op(x, slice(0, 0)))],
    "concat": [(((0, 2), (3, 2)), lambda op, a, b: op((a, b), axis=0))],
    "stack": [(((0,), (0,)), lambda op, a, b: op((a, b)))],
    "pad": [(((0, 2),), lambda op, x: op(x, 1))],
    "tile": [(((2,),), lambda op, x: op(x, 0))],
    "repeat": [(((2,),), lambda op, x: op(x, 0))],
    "reshape": [(((0, 2),), lambda op, x: op(x, (2, 0)))],
    "broadcast_to": [(((1, 2),), lambda op, x: op(x, (0, 2)))],
    "tril": [(((0, 2),), lambda op, x: op(x))],
    "diagonal": [(((0, 2),), lambda op, x: op(x))],
    "norm": [(((0,),), lambda op, x: op(x)), (((0,),), lambda op, x: op(x, 3))],
}


@pytest.mark.parametrize("name", EMPTY)
def test_gradients_of_empty_operands(name):
    for shapes, function in EMPTY[name]:
        op = OPS[name]
        operands = [draw(op, s, np.float64, k) for k, s in enumerate(shapes)]
        case = Case(lambda *x, f=function, op=op: f(op, *x), operands, [True] * len(operands))
        gradcheck(case.function, case.tensors(), check_grad_dtypes=True)
        for g, a in zip(_gradients(case, case.tensors()), operands, strict=True):
            assert g.shape == a.shape


@pytest.mark.parametrize("op", **by_name(SMOOTH))
def test_gradients_of_empty_elementwise_operands(op):
    count = len(op.inputs)
    for shapes in ([(0, 3)] * count, [(2, 0), *[()] * (count - 1)]):
        operands = prepare(op, [draw(op, s, np.float64, k) for k, s in enumerate(shapes)])
        smooth = [name in op.formulas for name in op.inputs]
        case = Case(op, operands, smooth)
        given = [a for a, d in zip(operands, smooth, strict=True) if d]
        for g, a in zip(_gradients(case, case.tensors()), given, strict=True):
            assert g.shape == a.shape
            assert not g.any()


# --------------------------------------------------------------------------------- elementwise


@pytest.mark.parametrize("op", **by_name(SMOOTH))
def test_float32_gradients_are_those_of_float64(op):
    operands = prepare(op, [draw(op, (5,), np.float32, k) for k in range(len(op.inputs))])
    smooth = [name in op.formulas for name in op.inputs]
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
    smooth = [name in op.formulas for name in op.inputs]
    shapes = [((5, 1, 4), (3, 1)), ((), (2, 3)), ((2, 1, 3, 1, 2), (3, 1, 1))]
    for shape_a, shape_b in shapes:
        a, b = draw(op, shape_a), draw(op, shape_b, seed=1)
        full = np.broadcast_shapes(shape_a, shape_b)
        g = np.random.default_rng(2).standard_normal(full).astype(op.run((a, b), {})[0].dtype)
        small = Case(op, [a, b], smooth).tensors()
        op(*small).backward(g)
        whole = Case(op, [np.broadcast_to(x, full) for x in (a, b)], smooth).tensors()
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
