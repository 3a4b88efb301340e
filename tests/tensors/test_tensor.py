"""Tensor: conversions, operators, copies, printing."""

import copy
import operator
import pickle

import numpy as np
import pytest

import numgrad as ng

SYMBOLS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]


@pytest.mark.parametrize("name", SYMBOLS)
@pytest.mark.parametrize(
    "other",
    [2, 1.5, np.float32(2), np.array([1.0, 2.0]), [1.0, 2.0], range(1, 3)],
    ids=lambda o: type(o).__name__,
)
def test_operators_with_others_on_either_side(name, other):
    symbol = getattr(operator, name)
    a = np.array([3.0, 4.0])
    t = ng.tensor(a)
    plain = np.asarray(other) if isinstance(other, list | range) else other
    for result, expected in ((symbol(t, other), symbol(a, plain)),
                             (symbol(other, t), symbol(plain, a))):  # fmt: skip
        assert isinstance(result, ng.Tensor)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-15)


def test_comparisons_logic_and_unary():
    a, b = np.array([1, 2, 3]), np.array([3, 2, 1])
    s, t = ng.tensor(a), ng.tensor(b)
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "xor", "lshift", "rshift"):
        symbol = getattr(operator, name)
        np.testing.assert_array_equal(symbol(s, t).numpy(), symbol(a, b))
    for name in ("neg", "pos", "abs", "invert"):
        symbol = getattr(operator, name)
        np.testing.assert_array_equal(symbol(s).numpy(), symbol(a))
    for ours, theirs in zip(divmod(s, 2), divmod(a, 2), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    with pytest.raises(TypeError):
        s + "a"


def test_numbers():
    t = ng.tensor([2.5])
    assert (float(t), int(t), complex(t), t.item()) == (2.5, 2, 2.5 + 0j, 2.5)
    assert bool(ng.tensor(0.0)) is False
    assert [10, 20, 30][ng.tensor(1)] == 20
    with pytest.raises(ValueError, match="any"):
        bool(ng.ones(2))
    with pytest.raises(TypeError, match=r"\(2,\)"):
        float(ng.ones(2))
    with pytest.raises(ValueError, match="item"):
        ng.ones(2).item()


def test_sequence_protocol():
    t = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(t) == 2
    assert 3.0 in t
    assert 5.0 not in t
    assert [row.tolist() for row in t] == [[1.0, 2.0], [3.0, 4.0]]
    for function in (len, list):
        with pytest.raises(TypeError):
            function(ng.tensor(1.0))


def test_properties():
    t = ng.tensor(np.arange(6.0).reshape(2, 3))
    assert (t.shape, t.ndim, t.size, t.nbytes, t.itemsize) == ((2, 3), 2, 6, 48, 8)
    np.testing.assert_array_equal(t.T.numpy(), t.numpy().T)
    np.testing.assert_array_equal(t.mT.numpy(), t.numpy().T)
    assert t.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert t.numpy() is t.numpy()


def test_conversion_never_loses_a_gradient_silently():
    t = ng.tensor([1.0], requires_grad=True)
    for convert in (np.asarray, np.array, lambda x: x.numpy()):
        with pytest.raises(RuntimeError, match="requires grad"):
            convert(t)
    np.testing.assert_array_equal(t.numpy(force=True), [1.0])
    np.testing.assert_array_equal(np.asarray(t.detach()), [1.0])
    assert np.asarray(ng.tensor([1.0]), dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ng.tensor([1.0, 2.5]), "tensor([1. , 2.5])"),
        (lambda: ng.tensor([1.0], np.float32), "tensor([1.], dtype=float32)"),
        (lambda: ng.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
        (lambda: ng.tensor([1.0], requires_grad=True) * 2, "grad_fn=<MultiplyBackward>"),
        (lambda: ng.zeros((0, 3)), "shape=(0, 3)"),
        (lambda: ng.tensor(3), "tensor(3)"),
    ],
)
def test_repr(make, text):
    assert text in repr(make())
    assert f"{ng.tensor(1.25):.1f}" in ("1.2", "1.3")


def test_copies_and_pickles():
    t = ng.tensor([1.0, 2.0], requires_grad=True)
    (t * t).sum().backward()
    twin = copy.deepcopy(t)
    assert twin.requires_grad
    np.testing.assert_array_equal(twin.grad.numpy(), t.grad.numpy())
    assert not np.shares_memory(twin.numpy(force=True), t.numpy(force=True))
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(t * 2)
    loaded = pickle.loads(pickle.dumps(t * 2))
    assert loaded.is_leaf
    assert loaded.requires_grad
    np.testing.assert_array_equal(loaded.numpy(force=True), [2.0, 4.0])
    assert copy.copy(t).detach().numpy() is t.numpy(force=True)
    assert pickle.loads(pickle.dumps(ng.ops["tanh"].op)) is ng.ops["tanh"].op
