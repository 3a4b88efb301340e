"""Making Tensors, from data and filled."""

import numpy as np
import pytest

import numgrad as ng


def test_tensor_copies_asarray_shares():
    a = np.arange(3.0)
    assert not np.shares_memory(ng.tensor(a).numpy(), a)
    for make in (ng.asarray, ng.from_numpy):
        assert np.shares_memory(make(a).numpy(), a)
    t = ng.tensor(a)
    assert np.shares_memory(ng.asarray(t).numpy(), t.numpy())


@pytest.mark.parametrize(
    ("data", "dtype"),
    [(1.5, "float64"), (1, "int64"), (True, "bool"), (1j, "complex128"), ([1, 2.0], "float64"),
     (np.float32(1), "float32"), ([[1], [2]], "int64"), ([], "float64")],
)  # fmt: skip
def test_dtypes(data, dtype):
    t = ng.tensor(data)
    assert t.dtype == dtype
    np.testing.assert_array_equal(t.numpy(), np.array(data))


def test_nested_tensors():
    t = ng.tensor([ng.tensor([1.0, 2.0]), [3.0, 4.0]])
    np.testing.assert_array_equal(t.numpy(), [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("data", "error"),
    [([[1, 2], [3]], ValueError), ("text", TypeError), (np.ones(2, np.float16), TypeError),
     (np.array([None]), TypeError), (np.array(["2020"], "datetime64"), TypeError)],
)  # fmt: skip
def test_bad_data(data, error):
    for make in (ng.tensor, ng.asarray):
        with pytest.raises(error, match=make.__name__):
            make(data)


def test_integers_do_not_require_grad():
    for make in (lambda: ng.ones(2, int, requires_grad=True), lambda: ng.arange(3,
    requires_grad=True),
                 lambda: ng.tensor(True, requires_grad=True)):  # fmt: skip
        with pytest.raises(RuntimeError, match="floating"):
            make()


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.zeros((2, 3)), lambda m: m.ones(4), lambda m: m.full((2,), 7),
        lambda m: m.full(2, 1j), lambda m: m.eye(3, k=1), lambda m: m.eye(2, 3),
        lambda m: m.arange(5),
        lambda m: m.arange(1, 2, 0.25), lambda m: m.linspace(0, 1, 5), lambda m: m.ones(2,
        np.float32),
        lambda m: m.linspace(0, 1, 4, endpoint=False), lambda m: m.zeros_like(m.ones((2, 2))),
        lambda m: m.ones_like(m.arange(3)), lambda m: m.full_like(m.ones(2), 3.0),
    ],
)  # fmt: skip
def test_filled(call):
    ours, theirs = call(ng), call(np)
    assert isinstance(ours, ng.Tensor)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours.numpy(), theirs)


def test_empty():
    assert ng.empty((2, 3)).shape == (2, 3)
    assert ng.empty_like(ng.ones(2, np.float32)).dtype == np.float32


def test_meshgrid():
    for ours, theirs in zip(ng.meshgrid(ng.arange(2), ng.arange(3)),
                            np.meshgrid(np.arange(2), np.arange(3)), strict=True):  # fmt: skip
        np.testing.assert_array_equal(ours.numpy(), theirs)


def test_bytes_in_the_other_order_are_swapped():
    x = np.arange(1.0, 4.0)
    swapped = x.astype(x.dtype.newbyteorder())
    for made in (ng.tensor(swapped), ng.asarray(swapped)):
        assert made.dtype.isnative
        np.testing.assert_array_equal(made, x)
    for function in (ng.grad(lambda x: np.sum(x**3)), ng.jacobian(np.square), ng.hessian(np.prod)):
        found = function(swapped)
        assert found.dtype.isnative
        np.testing.assert_array_equal(found, function(x))
    result = ng.minimize(lambda p: np.sum((p - 1) ** 2), swapped)
    np.testing.assert_allclose(result.x, 1)
    with pytest.raises(ng.NumgradTypeError, match=r"other order .* astype.np.float64."):
        ng.tensor(x) * swapped
    with pytest.raises(ng.NumgradTypeError, match=r"from_numpy: dtype .* other order"):
        ng.from_numpy(swapped)
