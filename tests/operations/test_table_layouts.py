"""Layouts, empty arrays, threads and places in memory: results depend on values alone."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import threads
from numgrad.testing.samples import LAYOUTS, draw
from tests.operations.cases import prepare
from tests.operations.reference import ELEMENTWISE, assert_same, by_name, reference, tolerance
from tests.quiet import quiet

pytestmark = pytest.mark.slow

LAYOUT_OPS = [ng.ops[n].op for n in ("add", "multiply", "power", "where", "exp", "sin", "less")]
SHAPES = [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (3, 4)), ((1,), (1, 1)),
          ((2, 1, 3, 1, 2), (3, 4, 1)), ((2, 3, 2, 1, 2, 2), (1, 2, 3, 1, 2))]  # fmt: skip


def args_of(op, shapes, dtype=np.float64):
    count = len(op.inputs)
    shapes = [shapes[k % 2] for k in range(count)]
    args = [draw(op, s, dtype, k) for k, s in enumerate(shapes)]
    return prepare(op, args)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("op", **by_name(LAYOUT_OPS))
def test_broadcasting(op, shapes):
    args = args_of(op, shapes)
    assert_same(op(*args).numpy(), quiet(reference(op), *args), 1e-13)


@pytest.mark.parametrize("layout", [*LAYOUTS, "broadcast", "axes out of order"])
@pytest.mark.parametrize("op", **by_name(LAYOUT_OPS))
def test_operands_that_are_not_contiguous(op, layout):
    args = args_of(op, ((3, 4, 5), (3, 4, 5)))
    if layout == "broadcast":
        args[0] = np.broadcast_to(args[0][:, :1], (3, 4, 5))
    elif layout == "axes out of order":
        args[0] = np.ascontiguousarray(args[0].transpose(1, 2, 0)).transpose(2, 0, 1)
    else:
        args[0] = LAYOUTS[layout](args[0])
    assert not args[0].flags.c_contiguous
    expected = quiet(reference(op), *args)
    assert_same(op(*args).numpy(), expected, 1e-13)
    given = [ng.asarray(a) for a in args]
    for x in given:
        if x.dtype.kind == "f":
            x.requires_grad_()
    out = op(*given)
    if not out.requires_grad:
        return
    g = np.asfortranarray(np.random.default_rng(0).standard_normal(out.shape))
    out.backward(g)
    plain = [ng.tensor(np.array(a, order="C"), requires_grad=a.dtype.kind == "f") for a in args]
    op(*plain).backward(np.ascontiguousarray(g))
    for x, y in zip(given, plain, strict=True):
        if y.requires_grad:
            np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-13)


@pytest.mark.parametrize("op", **by_name(ELEMENTWISE))
def test_empty_arrays(op):
    dtype = np.int64 if op.name.startswith(("bitwise", "invert", "left_", "right_")) else float
    shapes = [(0, 3), (1, 3)]
    args = [np.ones(shapes[k % 2], dtype) for k in range(len(op.inputs))]
    out = op(*[ng.tensor(a, requires_grad=dtype is float) for a in args])
    assert out.shape == (0, 3)
    if op.name not in ("clip_below", "clip_above", "replace_nonfinite", "from_parts"):
        expected = quiet(reference(op), *args)
        assert out.dtype == expected.dtype
    if out.requires_grad:
        x = ng.tensor(args[-1], requires_grad=True)
        y = op(*args[:-1], x)
        if y.requires_grad and op.inputs[-1] not in op.refused:
            y.backward(np.ones(y.shape, y.dtype))
            np.testing.assert_array_equal(x.grad.numpy(), np.zeros(x.shape))


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", ["tanh", "multiply", "logsumexp"])  # of kernels: test_reductions
def test_threads_do_not_change_a_bit(name):
    op = ng.ops[name].op
    rng = np.random.default_rng(0)
    args = [rng.standard_normal((1500, 1000)) for _ in op.inputs]
    if name == "multiply":
        args[1] = args[1][0]
    before = ng.get_num_threads()
    found = []
    try:
        for number in (1, 2):
            ng.set_num_threads(number)
            given = [ng.tensor(a, requires_grad=True) for a in args]
            params = {"axis": 0} if not hasattr(op, "scalar") else {}
            out = op(*given, **params)
            out.backward(np.ones(out.shape))
            found.append([out.numpy(force=True), *[x.grad.numpy() for x in given]])
    finally:
        ng.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        assert one.tobytes() == two.tobytes()
    assert threads is not None


def test_place_in_memory_does_not_change_a_bit():
    """A sum beside stores once took another order where arrays lay close together."""
    op = ng.ops["subtract"].op
    rng = np.random.default_rng(3)
    a, b, g = (rng.uniform(0.3, 3.0, s) for s in ((3, 1), (3, 8), (3, 8)))
    _, plan = op.run((a, b), {})
    plan.backward(3, g, [])
    (kernel,) = [k for k in op.kernels() if "backward3_f8_f8_f8_11_10_11" in k.name]
    buffer, seen = np.zeros(300), set()
    for _ in range(60):
        position, placed = int(rng.integers(0, 8)), {}
        for k in rng.permutation(3):
            size = (24, 3, 24)[k]
            placed[int(k)] = buffer[position : position + size]
            position += size + int(rng.choice([0, 0, 1, 3]))
        placed[0][:] = g.ravel()
        kernel.entry(placed[0], placed[1], placed[2], 3, 8)
        seen.add(placed[1].tobytes())
    assert len(seen) == 1
    np.testing.assert_allclose(placed[1], g.sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_large_arrays(dtype):
    x = draw(ng.ops["exp"].op, (300_001,), dtype)
    assert_same(np.exp(ng.tensor(x)).numpy(), np.exp(x), tolerance(dtype))
