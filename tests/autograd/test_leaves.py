"""Leaves, flags and ``.grad``: promises 1 to 21 of SEMANTICS.md."""

import copy
import importlib
import io
import pickle

import numpy as np
import pytest

import numgrad as ng


def leaf(lib, values=(1.0, 2.0)):
    return lib.tensor(list(values), requires_grad=True)


def test_leaves_are_what_no_recorded_operation_made(lib):
    """Promise 1."""
    x, constant = leaf(lib), lib.tensor([1.0])
    assert x.is_leaf
    assert not (x * 2).is_leaf
    assert constant.is_leaf
    assert (constant * 2).is_leaf
    with lib.no_grad():
        assert (x * 2).is_leaf


def test_copies_are_results_and_detached_tensors_leaves(lib):
    """Promise 2."""
    x = leaf(lib)
    assert not x.clone().is_leaf
    converted = x.astype(ng.float32) if lib is ng else x.float()
    assert not converted.is_leaf
    assert x.detach().is_leaf
    assert not x.detach().requires_grad


@pytest.mark.parametrize("recording", [True, False])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_a_result_requires_grad_if_an_operand_does(lib, recording, first, second):
    """Promise 3."""
    x = lib.tensor([1.0], requires_grad=first)
    y = lib.tensor([2.0], requires_grad=second)
    with lib.set_grad_enabled(recording):
        assert (x * y).requires_grad == (recording and (first or second))


def test_integers_never_require_grad(lib, raises):
    """Promise 3."""
    with raises(RuntimeError, "int64"):
        lib.tensor([1, 2], requires_grad=True)
    with raises(RuntimeError, "int64"):
        lib.tensor([1, 2]).requires_grad_()
    assert lib.tensor([1j], requires_grad=True).requires_grad


def test_a_result_cannot_stop_requiring_grad(lib, raises):
    """Promise 4."""
    y = leaf(lib) * 2
    with raises(RuntimeError, "leaves only.*MultiplyBackward.*detach"):
        y.requires_grad = False
    assert y.requires_grad


def test_requires_grad_returns_the_tensor(lib):
    """Promise 5."""
    x = lib.tensor([1.0])
    assert x.requires_grad_() is x
    assert x.requires_grad
    y = x * 2
    assert y.requires_grad_() is y
    assert not x.requires_grad_(False).requires_grad


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, x: lib.argmax(x),
        lambda lib, x: lib.argmin(x),
        lambda lib, x: lib.count_nonzero(x),
        lambda lib, x: x > 1,
    ],
    ids=["argmax", "argmin", "count_nonzero", "greater"],
)
def test_integers_and_truth_values_never_require_grad(lib, function):
    """Promise 6."""
    assert not function(lib, leaf(lib)).requires_grad


def test_grad_keeps_its_identity(lib):
    """Promise 7."""
    x = leaf(lib)
    assert x.grad is None
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first
    assert x.grad.tolist() == [4.0, 8.0]


@pytest.mark.filterwarnings("ignore:.*create_graph:UserWarning")
def test_grad_with_a_graph_is_a_new_object(lib):
    """Promise 7."""
    x = leaf(lib)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    second = x.grad
    assert second is not first
    assert second.requires_grad
    assert first.tolist() == [2.0, 4.0]
    (x * x).sum().backward()
    assert x.grad is second
    assert x.grad.tolist() == [6.0, 12.0]


def test_grad_shares_memory_with_nobody(lib):
    """Promise 8."""
    x, y = leaf(lib), leaf(lib)
    given, seen = lib.ones(2), []
    middle = x + y
    middle.retain_grad()
    for tensor in (x, y, middle):
        tensor.register_hook(seen.append)
    middle.backward(given)
    assert not x.grad.requires_grad
    with lib.no_grad():
        x.grad.mul_(7)
    for other in (given, *seen, y.grad, middle.grad):
        assert other.tolist() == [1.0, 1.0]


@pytest.mark.filterwarnings("ignore:.*create_graph:UserWarning")
def test_grad_with_a_graph_shares_memory_with_nobody_either(lib):
    """Promise 8."""
    x, given = leaf(lib), lib.ones(2)
    (x + 0).backward(given, create_graph=True)
    with lib.no_grad():
        x.grad.mul_(7)
    assert given.tolist() == [1.0, 1.0]


def test_grad_of_a_result_warns(lib):
    """Promise 9."""
    with pytest.warns(UserWarning, match="not kept" if lib is ng else "leaf"):
        assert (leaf(lib) * 2).grad is None


def test_accumulation_counts_as_a_write(lib, raises):
    """Promise 7."""
    x, w = leaf(lib), leaf(lib)
    x.sum().backward()
    y = w * x.grad
    x.sum().backward()
    with raises(RuntimeError, "MultiplyBackward.*version 0.*version 1"):
        y.sum().backward()


@pytest.mark.parametrize("length", [1, 3])
def test_grad_has_the_shape_of_its_tensor(lib, raises, length):
    """Promise 10."""
    x = leaf(lib)
    with raises(RuntimeError, rf"\({length},\).*\(2,\)"):
        x.grad = lib.ones(length)
    assert x.grad is None


def test_grad_has_the_dtype_of_its_tensor_and_is_another_tensor(lib, raises):
    """Promise 11."""
    x = leaf(lib)
    with raises(RuntimeError, "float32.*float64"):
        x.grad = lib.ones(2, dtype=lib.float32)
    with raises(RuntimeError, "own gradient"):
        x.grad = x
    with raises(TypeError, "int"):
        x.grad = 3
    x.grad = lib.ones(2)
    x.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_grad_can_be_deleted_but_not_requires_grad(lib, raises):
    """Promise 12."""
    x = leaf(lib)
    x.sum().backward()
    del x.grad
    assert x.grad is None
    for name in ("requires_grad", "data"):
        with raises(RuntimeError, f"{name}: cannot be deleted"):
            delattr(x, name)


def test_a_leaf_frozen_after_the_forward_gets_no_gradient(lib):
    """Promise 13."""
    x, y = leaf(lib), leaf(lib)
    z = (x * y).sum()
    x.requires_grad_(False)
    z.backward()
    assert x.grad is None
    assert y.grad.tolist() == [1.0, 2.0]


def test_gradients_conform_to_their_leaf(lib):
    """Promise 14."""
    x = leaf(lib)
    wide = x * lib.ones((3, 2))
    wide.backward(lib.ones((3, 2), dtype=lib.float32))
    assert (x.grad.dtype, tuple(x.grad.shape)) == (lib.float64, (2,))
    assert x.grad.tolist() == [3.0, 3.0]
    column = lib.tensor([[1.0], [2.0]], requires_grad=True)
    (column * lib.tensor([3.0, 4.0, 5.0])).sum().backward()
    assert column.grad.tolist() == [[12.0], [12.0]]


def test_a_real_leaf_gets_a_real_gradient(lib):
    """Promise 14."""
    x = leaf(lib)
    (x * lib.tensor([1j, 2.0])).backward(lib.tensor([1j, 1.0]))
    assert x.grad.dtype == lib.float64
    assert x.grad.tolist() == [1.0, 2.0]


def test_each_leaf_gets_its_own_dtype(lib):
    """Promise 15."""
    x = lib.tensor([1.0, 2.0], dtype=lib.float32, requires_grad=True)
    y = lib.tensor([3.0, 4.0], dtype=lib.float64, requires_grad=True)
    (x * y).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (lib.float32, lib.float64)
    assert (x.grad.tolist(), y.grad.tolist()) == ([3.0, 4.0], [1.0, 2.0])


def test_a_leaf_has_one_accumulator(lib):
    """Promise 16."""
    x = leaf(lib)
    accumulator = (x * 2).grad_fn.next_functions[0][0]
    assert accumulator is (x * 3).grad_fn.next_functions[0][0]
    assert accumulator.variable is x
    assert accumulator.next_functions == ()
    assert accumulator.name().endswith("AccumulateGrad")


def test_detached_tensors_share_the_version(lib, raises):
    """Promise 17."""
    x = leaf(lib)
    y = x * x
    x.detach().mul_(2)
    with raises(RuntimeError, "MultiplyBackward.*version 0.*version 1"):
        y.sum().backward()


@pytest.mark.filterwarnings("ignore:.data hides:UserWarning")
def test_data_hides_changes(lib):
    """Promise 17."""
    x = leaf(lib)
    y = (x * x).sum()
    x.data.mul_(2)
    assert x._version == 0
    assert x.tolist() == [2.0, 4.0]
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]  # wrong, and nobody told


def test_data_warns_once(monkeypatch):
    """Promise 17."""
    attributes = importlib.import_module("numgrad.tensors.attributes")
    monkeypatch.setattr(attributes, "_warned_of_data", False)
    x = leaf(ng)
    with pytest.warns(UserWarning, match="detach"):
        assert x.data.numpy() is x.numpy(force=True)
    assert not x.data.requires_grad  # no second warning, which would be an error here


def test_an_ndarray_cannot_carry_a_gradient(lib, raises):
    """Promise 18."""
    x = leaf(lib)
    with raises(RuntimeError, "requires grad.*detach"):
        x.numpy()
    with raises(RuntimeError, "requires grad.*detach"):
        np.asarray(x)
    assert x.numpy(force=True).tolist() == [1.0, 2.0]
    assert x.detach().numpy().tolist() == [1.0, 2.0]


def test_an_ndarray_is_given_where_nothing_is_recorded():
    """Promise 18."""
    x = leaf(ng)  # PyTorch refuses here, too
    with ng.no_grad():
        assert x.numpy().tolist() == [1.0, 2.0]
        assert np.asarray(x).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("kind", [float, int, complex])
def test_a_number_would_lose_the_gradient(kind):  # PyTorch warns
    """Promise 19."""
    x = ng.tensor(2.5, requires_grad=True)
    with pytest.raises(RuntimeError, match=rf"{kind.__name__}\(\).*item"):
        kind(x)
    assert x.item() == 2.5
    assert kind(x.detach()) == kind(2.5)
    with ng.no_grad():
        assert kind(x) == kind(2.5)


def test_leaves_can_be_deepcopied_with_their_grad(lib, raises):
    """Promise 20."""
    x = leaf(lib)
    (x * x).sum().backward()
    twin = copy.deepcopy(x)
    assert twin.requires_grad
    assert twin.is_leaf
    assert twin.grad is not x.grad
    assert twin.grad.tolist() == [2.0, 4.0]
    with lib.no_grad():
        twin.mul_(2)
        twin.grad.mul_(2)
    assert (x.tolist(), x.grad.tolist()) == ([1.0, 2.0], [2.0, 4.0])
    with raises(RuntimeError, "MultiplyBackward"):
        copy.deepcopy(x * 2)


@pytest.mark.filterwarnings("ignore:.*leaf Tensor:UserWarning")  # PyTorch looks at .grad
def test_pickles_have_no_graph(lib):
    """Promise 20."""
    y = leaf(lib) * 2
    if lib is ng:
        loaded = pickle.loads(pickle.dumps(y))
    else:
        file = io.BytesIO()
        lib.save(y, file)
        file.seek(0)
        loaded = lib.load(file)
    assert loaded.is_leaf
    assert loaded.requires_grad
    assert loaded.tolist() == [2.0, 4.0]


def test_repr_says_what_requires_grad():
    """Promise 21."""
    x = leaf(ng)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MultiplyBackward>)"
    assert repr(x.astype(ng.float32)).endswith("dtype=float32, grad_fn=<AstypeBackward>)")


def test_repr_of_an_invalid_view(lib):
    """Promise 21."""
    base = leaf(lib).clone()
    with lib.no_grad():
        view = base[:1]
        view.mul_(2)
    assert "grad_fn=<Invalid>" in repr(view)
