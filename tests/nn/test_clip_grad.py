"""Clipping of gradients: against PyTorch and NumPy, extreme values, what is left alone."""

import math

import numpy as np
import pytest

import numgrad as ng
from numgrad.nn.utils import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)

ORDERS = [2.0, 1, 3, 0.5, math.inf, -math.inf, -2, -1.5]
SHAPES = [(3, 4), (), (5,), (0, 2), (2, 1, 3)]


def arrays(dtypes, seed=0):
    generator = np.random.default_rng(seed)
    for shape, dtype in zip(SHAPES, dtypes, strict=True):
        x = generator.normal(size=shape)
        yield (x + 1j * generator.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


def parameters(lib, dtypes, seed=0):
    found = []
    for x in arrays(dtypes, seed):
        parameter = lib.tensor(np.zeros_like(x), requires_grad=True)
        parameter.grad = lib.tensor(x)
        found.append(parameter)
    return found


def together(dtypes):
    return np.concatenate([x.ravel() for x in arrays(dtypes)])


DTYPES = {
    "double": ["float64"] * 5,
    "single": ["float32"] * 5,
    "mixed": ["float64", "float32", "float32", "float64", "float32"],
    "complex": ["complex128"] * 5,
    "mixed complex": ["complex64", "float32", "complex64", "float32", "float32"],
}


@pytest.mark.parametrize("dtypes", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("order", ORDERS)
def test_the_norm_is_numpys_of_all_elements_together(dtypes, order):
    """Promise 118."""
    ps = parameters(ng, dtypes)
    before = [p.grad.numpy().copy() for p in ps]
    expected = np.linalg.norm(together(dtypes), order)
    rtol = 1e-13 if dtypes[0] in ("float64", "complex128") else 2e-6
    if dtypes[1] == "float32":
        rtol = 2e-6
    total = clip_grad_norm_(ps, max_norm=expected / 3, norm_type=order)
    assert total.shape == ()
    wide = {"float64", "complex128"} & set(dtypes)
    assert total.dtype == ("float64" if wide else "float32")
    np.testing.assert_allclose(total.item(), expected, rtol=rtol)
    share = (expected / 3) / (expected + 1e-6)
    for p, grad in zip(ps, before, strict=True):
        assert p.grad.dtype == p.dtype
        np.testing.assert_allclose(p.grad.numpy(), grad * share, rtol=max(rtol, 1e-13))


@pytest.mark.slow
@pytest.mark.parametrize("dtypes", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("order", [2.0, 1, 3, 0.5, math.inf])
@pytest.mark.parametrize("bound", [0.7, 1e3])
def test_clipping_is_pytorchs(dtypes, order, bound):
    torch = pytest.importorskip("torch")
    ours, theirs = parameters(ng, dtypes), parameters(torch, dtypes)
    del ours[3], theirs[3]  # the empty one, of which PyTorch has no largest element
    got = clip_grad_norm_(ours, bound, order)
    expected = torch.nn.utils.clip_grad_norm_(theirs, bound, order)
    rtol = 1e-5 if "32" in dtypes[1] else 1e-13
    np.testing.assert_allclose(got.item(), expected.item(), rtol=rtol)
    assert str(got.dtype) == str(expected.dtype).removeprefix("torch.")
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=rtol)


def test_zeros_count_all_non_zero_elements():
    tensors = [ng.tensor([0.0, 2.0, 3.0]), ng.zeros(2), ng.tensor(-1.0)]
    assert get_total_norm(tensors, 0).item() == 3


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([3e200, 4e200], "float64"),
        ([3e-200, 4e-200], "float64"),
        ([3e-310, 4e-310], "float64"),
        ([3e30, 4e30], "float32"),
        ([3e-30, 4e-30], "float32"),
        ([3e200j, 4e200], "complex128"),
    ],
)
@pytest.mark.parametrize("order", [2, 3])
def test_no_overflow_or_underflow(values, dtype, order):
    size = max(map(abs, values))
    expected = size * np.linalg.norm(np.abs(values) / size, order)
    rtol = 1e-6 if dtype == "float32" else 1e-13
    x = ng.tensor(np.array(values, dtype))
    parts = [x[:1], x[1:], ng.zeros(3, dtype=dtype)]
    np.testing.assert_allclose(get_total_norm(x, order).item(), expected, rtol=rtol)
    np.testing.assert_allclose(get_total_norm(parts, order).item(), expected, rtol=rtol)
    p = ng.tensor(np.array(values, dtype), requires_grad=True)
    p.grad = x
    clip_grad_norm_(p, size / 10, order)
    if size > 1:
        np.testing.assert_allclose(get_total_norm(p.grad, order).item(), size / 10, rtol=1e-6)


def test_gradients_are_clipped_also_where_float32_has_no_number_for_the_norm():
    ps = [ng.zeros(1, dtype="float32", requires_grad=True) for _ in range(2)]
    for p in ps:
        p.grad = ng.tensor(np.array([3e38], "float32"))
    assert clip_grad_norm_(ps, 1.0).item() == math.inf
    np.testing.assert_allclose([p.grad.item() for p in ps], 0.5**0.5, rtol=1e-6)


@pytest.mark.slow(cases=0)
def test_the_norm_is_the_same_for_any_number_of_threads():
    x = ng.tensor(np.random.default_rng(3).normal(size=300_001))
    before, totals = ng.get_num_threads(), set()
    try:
        for threads in (1, 2, 3):
            ng.set_num_threads(threads)
            totals.add(get_total_norm([x, x[::2], x.reshape(1, -1)]).item())
    finally:
        ng.set_num_threads(before)
    assert len(totals) == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_norm_that_is_not_finite(bad):
    p = ng.zeros(3, requires_grad=True)
    p.grad = ng.tensor([1.0, bad, 2.0])
    with pytest.raises(RuntimeError, match=f"of order 2.0 of 1 gradients is {bad}") as caught:
        clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    assert isinstance(caught.value, ng.NumgradError)
    np.testing.assert_array_equal(p.grad.numpy(), [1.0, bad, 2.0])
    total = clip_grad_norm_(p, 1.0)
    np.testing.assert_equal(total.item(), bad)
    expected = [math.nan] * 3 if math.isnan(bad) else [0, math.nan, 0]
    np.testing.assert_array_equal(p.grad.numpy(), expected)
    for order in (1, 3, math.inf):
        p.grad = ng.tensor([1.0, bad, 2.0])
        np.testing.assert_equal(get_total_norm(p.grad, order).item(), bad)


def test_a_norm_of_infinities_and_nans():
    tensors = [ng.tensor([math.inf]), ng.tensor([1.0, math.nan]), ng.tensor([-math.inf])]
    for order in (1, 2, 3, math.inf):
        assert math.isnan(get_total_norm(tensors, order).item())
        assert get_total_norm(tensors[::2], order).item() == math.inf


def test_a_gradient_of_two_parameters_is_scaled_twice_as_in_pytorch():
    p, q = ng.zeros(2, requires_grad=True), ng.zeros(2, requires_grad=True)
    p.grad = q.grad = ng.tensor([3.0, 4.0])
    clip_grads_with_norm_([p, q], 1.0, 2.0)
    np.testing.assert_allclose(p.grad.numpy(), [0.75, 1.0], rtol=1e-5)


def test_gradients_that_operations_write_one_by_one():
    p, q = ng.zeros(2, requires_grad=True), ng.zeros(2, requires_grad=True)
    q.grad = ng.tensor([0.0, 12.0])
    with ng.inference_mode():
        p.grad = ng.tensor([3.0, 4.0])
        assert clip_grad_norm_([p, q], 6.5).item() == 13
    with pytest.raises(RuntimeError, match="inference mode"):
        clip_grad_norm_([p, q], 1.0)
    p.grad = ng.tensor([3.0, 4.0])
    saved = ng.tensor([1.0, 1.0], requires_grad=True)
    with ng.autograd.graph.allow_mutation_on_saved_tensors():
        y = (saved * p.grad).sum()
        clip_grad_norm_(p, 1.0)
        y.backward()
    np.testing.assert_array_equal(saved.grad.numpy(), [3, 4])


def test_gradients_within_the_bound_are_not_touched():
    p = ng.zeros(2, requires_grad=True)
    p.grad = ng.tensor([3.0, 4.0])
    version = p.grad._version
    assert clip_grad_norm_([p], 6.0).item() == 5
    assert p.grad._version == version
    clip_grad_norm_([p], 2.0)
    assert p.grad._version > version


def test_clipped_gradients_are_noticed_by_a_backward_that_saved_them():
    x = ng.tensor([3.0, 4.0], requires_grad=True)
    (x**2).sum().backward()
    y = (x * x.grad).sum()
    clip_grad_norm_(x, 1.0)
    with pytest.raises(RuntimeError, match="in-place operations"):
        y.backward()


def test_gradients_in_any_layout():
    p = ng.zeros((3, 2), requires_grad=True)
    base = np.arange(12.0).reshape(2, 6)
    p.grad = ng.asarray(base[:, ::2].T)
    expected = np.linalg.norm(base[:, ::2])
    np.testing.assert_allclose(clip_grad_norm_(p, 1.0).item(), expected)
    assert base[1, 5] == 11
    np.testing.assert_allclose(np.linalg.norm(base[:, ::2]), 1, rtol=1e-6)


def test_nothing_to_clip():
    assert clip_grad_norm_([], 1.0).item() == 0
    assert clip_grad_norm_([ng.ones(2, requires_grad=True)], 1.0).item() == 0
    assert get_total_norm([ng.zeros((0, 3))]).item() == 0
    clip_grad_value_([], 1.0)
    clip_grads_with_norm_([], 1.0, ng.tensor(3.0))
    with pytest.warns(UserWarning, match="generator of parameters gives none") as caught:
        clip_grad_norm_((p for p in []), 1.0)
    assert caught[0].filename == __file__


def test_a_generator_is_used_once():
    p = ng.zeros(2, requires_grad=True)
    p.grad = ng.tensor([3.0, 4.0])
    assert clip_grad_norm_((q for q in [p]), 1.0).item() == 5
    np.testing.assert_allclose(p.grad.numpy(), [0.6, 0.8], rtol=1e-6)


def test_a_norm_that_is_known():
    p = ng.zeros(2, requires_grad=True)
    p.grad = ng.tensor([3.0, 4.0])
    clip_grads_with_norm_([p], 2.0, ng.tensor(8.0))
    np.testing.assert_allclose(p.grad.numpy(), [0.75, 1.0], rtol=1e-6)
    clip_grads_with_norm_(p, 2.0, 1.0)
    np.testing.assert_allclose(p.grad.numpy(), [0.75, 1.0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_are_clipped(dtype):
    p, without = ng.zeros(5, dtype=dtype, requires_grad=True), ng.zeros(2, requires_grad=True)
    p.grad = ng.tensor(np.array([-3, -0.5, 0.25, 7, math.nan], dtype))
    clip_grad_value_([p, without], 0.5)
    assert p.grad.dtype == dtype
    np.testing.assert_array_equal(p.grad.numpy(), [-0.5, -0.5, 0.25, 0.5, math.nan])
    assert without.grad is None


def test_row_sparse_gradients():
    table, dense = ng.zeros((4, 2), requires_grad=True), ng.zeros(1, requires_grad=True)
    rows = [[3.0, 0.0], [1.0, 2.0], [0.0, 4.0]]  # the first and the last are one
    table.grad = ng.RowSparseTensor([2, 0, 2], rows, (4, 2))
    dense.grad = ng.tensor([7.0])
    whole = np.array([[1.0, 2], [0, 0], [3, 4], [0, 0]])
    for order in (1, 2, 3, np.inf):
        expected = np.linalg.norm([*whole.ravel(), 7.0], order)
        total = get_total_norm([table.grad, dense.grad], order)
        np.testing.assert_allclose(total.item(), expected)
    total = np.linalg.norm([*whole.ravel(), 7.0])
    np.testing.assert_allclose(clip_grad_norm_([table, dense], total / 2).item(), total)
    np.testing.assert_allclose(table.grad.to_dense().numpy(), whole / 2, rtol=1e-6)
    assert table.grad.is_sparse
    clip_grad_value_([table, dense], 1.5)
    np.testing.assert_allclose(table.grad.to_dense().numpy(), np.clip(whole / 2, 0, 1.5), rtol=1e-6)
    assert table.grad.is_sparse
    assert dense.grad.item() == 1.5


def test_complex_values_have_no_order():
    real, p = ng.zeros(1, requires_grad=True), ng.zeros(2, dtype="complex128", requires_grad=True)
    real.grad = ng.tensor([5.0])
    p.grad = ng.ones(2, dtype="complex128")
    with pytest.raises(TypeError, match="dtype complex128"):
        clip_grad_value_([real, p], 0.5)
    assert real.grad.item() == 5


@pytest.mark.parametrize("call", [clip_grad_norm_, clip_grad_value_, get_total_norm])
def test_no_tensors(call):
    arguments = () if call is get_total_norm else (1.0,)
    with pytest.raises(TypeError, match=rf"{call.__name__}: .* got one of type ndarray"):
        call([np.ones(2)], *arguments)


def test_norms_of_integers():
    with pytest.raises(TypeError, match="got dtype int64"):
        get_total_norm(ng.tensor([1, 2]))


@pytest.mark.parametrize(
    ("clip", "message"),
    [
        (
            lambda p: clip_grad_norm_(p, "a"),
            "clip_grad_norm_: max_norm is 'a'; it must be a number",
        ),
        (lambda p: clip_grad_norm_(p, 1.0, "a"), "clip_grad_norm_: norm_type is 'a'; it must be a"),
        (lambda p: clip_grads_with_norm_(p, None, 1.0), "clip_grads_with_norm_: max_norm is None"),
        (lambda p: clip_grad_value_(p, "a"), "clip_grad_value_: clip_value is 'a'; it must be a n"),
    ],
)
def test_bounds_are_numbers(clip, message):
    p = ng.zeros(2, requires_grad=True)
    p.grad = ng.tensor([3.0, 4.0])
    with pytest.raises(ng.NumgradTypeError, match=message):
        clip(p)
    assert p.grad.tolist() == [3.0, 4.0]
    assert clip_grad_norm_(p, np.float32(1e3), np.int64(2)).item() == 5.0
    clip_grad_value_(p, np.int8(2))
    assert p.grad.tolist() == [2.0, 2.0]
