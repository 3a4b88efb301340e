"""Layouts, the elementwise template, and the source it generates."""

import os
from pathlib import Path

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.loops import broadcast_shape, layout, strided_view
from numgrad.core.op import OPS
from numgrad.errors import NumgradValueError

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("shapes", "dims", "masks"),
    [
        (((32, 64), (64,)), (32, 64), ("11", "01")),
        (((5, 6, 7), (5, 6, 7)), (210,), ("1", "1")),
        (((5, 6, 7), (5, 1, 1)), (5, 42), ("11", "10")),
        (((5, 6, 7), (6, 1)), (5, 6, 7), ("111", "010")),
        (((4, 1), (1, 3)), (4, 3), ("10", "01")),
        (((1, 1), (1,)), (1,), ("1", "1")),
        (((), ()), (1,), ("1", "1")),
        (((8,), (1,)), (8,), ("1", "0")),
        (((2, 3, 1, 4), (3, 5, 4)), (2, 3, 5, 4), ("1101", "0111")),
    ],
)
def test_axes_that_behave_alike_are_merged(shapes, dims, masks):
    shape = np.broadcast_shapes(*shapes)
    found = layout(shape, [(s, None) for s in shapes])
    assert found.shape == shape
    assert found.dims == dims
    assert found.masks == masks


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[::2],
        lambda x: x[:, ::-1],
        lambda x: x[:, 1:2],
        lambda x: np.broadcast_to(x[:1], (6, 4)),
        lambda x: x[:, None, ::2],
    ],
)
def test_strided_views_cover_the_operand(view):
    x = view(np.arange(24.0).reshape(6, 4))
    if x.flags.c_contiguous:
        pytest.skip("contiguous after all")
    found = layout(x.shape, [(x.shape, None), (x.shape, x.strides)])
    seen = strided_view(x, found, found.masks[1])
    np.testing.assert_array_equal(np.broadcast_to(seen, found.dims).ravel(), x.ravel())


def test_shapes_that_do_not_broadcast_are_named():
    with pytest.raises(NumgradValueError, match=r"add: shapes \(2,\), \(3,\) do not broadcast"):
        broadcast_shape("add", [(2,), (3,)])


@pytest.mark.parametrize("n", [1, 7, 4095, 4096, 4097, 50_000])
@pytest.mark.parametrize("other", [(1,), ()])
def test_gradient_of_a_scalar_operand_is_the_sum_over_all_tasks(n, other):
    x = np.random.default_rng(n).normal(size=n)
    w = ng.tensor(np.full(other, 1.5), requires_grad=True)
    ng.sum(ng.asarray(x) * w).backward()
    import math

    assert w.grad.item() == pytest.approx(math.fsum(x), rel=1e-13, abs=1e-12)


def test_infinite_terms_do_not_become_nan_in_the_compensated_sum():
    x = np.zeros(20_000)
    x[3] = np.inf
    w = ng.tensor([2.0], requires_grad=True)
    ng.sum(ng.asarray(x) * w).backward()
    assert w.grad.tolist() == [np.inf]


def _compile_examples():
    x = ng.tensor(np.linspace(0.1, 1, 6).reshape(2, 3), requires_grad=True)
    b = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    ng.sum(ng.tanh(x) * b).backward()
    ng.sum(ng.sin(x)).backward()
    ng.sum(x * 2.0).backward()
    wanted = {
        "tanh_f8_f8_1_1": "tanh",
        "tanh_backward1_f8_f8_f8_1_1_1": "tanh",
        "multiply_f8_f8_f8_11_01_11": "multiply",
        "multiply_backward3_f8_f8_f8_f8_f8_11_11_01_11_01": "multiply",
        "multiply_f8_f8_f8_1_x_1": "multiply",
        "sin_f8_f8_1_1": "sin",
        "sin_backward1_f8_f8_f8_1_1_1": "sin",
    }
    found = {}
    for name, op in wanted.items():
        (kernel,) = [k for k in OPS[op].kernels() if k.name == name and not k.nogil]
        found[name] = f"# {kernel.signature}\n{kernel.source}"
    return found


def test_generated_source_is_what_it_was():
    """Refactoring leaves kernels as they are; NUMGRAD_UPDATE_GOLDEN=1 accepts changes."""
    sources = _compile_examples()
    for name, source in sources.items():
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("NUMGRAD_UPDATE_GOLDEN"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(source)
        assert source == path.read_text(), f"{name} changed"
