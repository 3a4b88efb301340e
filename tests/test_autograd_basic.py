"""Leaves, .grad, backward and grad, grad modes: sections 1, 2 and 4 of SEMANTICS.md."""

import gc
import weakref

import numpy as np
import pytest

import numgrad as ng


def leaf(values=(1.0, 2.0), dtype=np.float64):
    return ng.tensor(np.array(values, dtype), requires_grad=True)


def test_leaves():
    x = leaf()
    assert x.is_leaf
    assert not (x * 2).is_leaf
    assert not x.clone().is_leaf
    assert x.detach().is_leaf
    assert not x.detach().requires_grad
    assert (ng.tensor([1.0]) * 2).is_leaf
    assert not (x > 0).requires_grad
    assert not np.argmax(x).requires_grad


def test_flags():
    x = leaf()
    with pytest.raises(RuntimeError, match="leaves only"):
        (x * 2).requires_grad = False
    assert (x * 2).requires_grad_().requires_grad
    y = ng.tensor([1.0])
    assert y.requires_grad_() is y
    with pytest.raises(RuntimeError, match="int64"):
        ng.tensor([1, 2], requires_grad=True)


def test_grad_keeps_its_identity():
    x = leaf()
    assert x.grad is None
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first
    np.testing.assert_array_equal(x.grad.numpy(), [4.0, 8.0])
    assert not x.grad.requires_grad
    with pytest.warns(UserWarning, match="reference cycle"):
        (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    del x.grad
    assert x.grad is None


def test_grad_shares_memory_with_nobody():
    x, y = leaf(), leaf()
    g = np.array([1.0, 1.0])
    (x + y).backward(g)
    x.grad.numpy()[:] = 7
    np.testing.assert_array_equal(g, [1.0, 1.0])
    np.testing.assert_array_equal(y.grad.numpy(), [1.0, 1.0])
    given = np.array([1.0, 2.0])
    (x + x * 1.0 + x).backward(given)
    np.testing.assert_array_equal(given, [1.0, 2.0])
    np.testing.assert_array_equal(x.grad.numpy(), [10.0, 13.0])


def test_grad_of_a_result_warns():
    with pytest.warns(UserWarning, match="not kept"):
        assert (leaf() * 2).grad is None


def test_setting_grad():
    x = leaf()
    for value, error in ((ng.ones(3), RuntimeError), (ng.ones(2, np.float32), RuntimeError),
                         (x, RuntimeError), (3, TypeError)):  # fmt: skip
        with pytest.raises(error, match="grad"):
            x.grad = value
    x.grad = ng.ones(2)
    x.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 2.0])


def test_gradients_conform_to_their_leaf():
    x, y = leaf([[1.0], [2.0]], np.float32), leaf([3.0, 4.0, 5.0])
    (x * y).sum().backward()
    assert (x.grad.dtype, x.grad.shape) == (np.float32, (2, 1))
    assert (y.grad.dtype, y.grad.shape) == (np.float64, (3,))
    np.testing.assert_array_equal(x.grad.numpy(), [[12.0], [12.0]])
    z = leaf()
    (z * 2).backward(np.ones(2, np.float32))
    assert z.grad.dtype == np.float64
    r = leaf()
    (r * ng.tensor([1j, 2.0])).backward(np.array([1j, 1.0]))
    np.testing.assert_array_equal(r.grad.numpy(), [1.0, 2.0])


def test_second_backward():
    x = leaf()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [4.0, 8.0])
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()
    z = x + 1
    z.backward(np.ones(2))
    z.backward(np.ones(2))  # add saved nothing
    np.testing.assert_array_equal(x.grad.numpy(), [6.0, 10.0])


def test_roots():
    x = leaf()
    with pytest.raises(RuntimeError, match=r"root 0 has shape \(2,\)"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="complex"):
        (x[0] * 1j).backward()
    with pytest.raises(RuntimeError, match="root 1"):
        ng.autograd.backward([x.sum(), ng.tensor(1.0)])
    with pytest.raises(RuntimeError, match=r"\(\).*\(1,\)"):
        x[:1].backward(ng.tensor(1.0))
    with pytest.raises(RuntimeError, match="2 roots but 1"):
        ng.autograd.backward([x.sum(), x.sum()], [ng.tensor(1.0)])
    with pytest.raises(RuntimeError, match="real or both complex"):
        (x * 2).backward(np.array([1j, 1]))
    with pytest.raises(RuntimeError, match="empty"):
        x.sum().backward(inputs=[])
    x[:1].backward()
    y = (x * 3).sum()
    ng.autograd.backward([y, y])
    np.testing.assert_array_equal(x.grad.numpy(), [7.0, 6.0])


def test_grad_function():
    x, y, unused = leaf(), leaf(), leaf()
    z = (x * y).sum()
    with pytest.raises(RuntimeError, match="not used"):
        ng.autograd.grad(z, [x, unused], retain_graph=True)
    gx, none = ng.autograd.grad(z, [x, unused], allow_unused=True, retain_graph=True)
    np.testing.assert_array_equal(gx.numpy(), [1.0, 2.0])
    assert none is None
    _, zeros = ng.autograd.grad(z, [x, unused], materialize_grads=True, retain_graph=True)
    np.testing.assert_array_equal(zeros.numpy(), [0.0, 0.0])
    assert not zeros.requires_grad
    with pytest.raises(ValueError, match="materialize_grads"):
        ng.autograd.grad(z, [x], allow_unused=False, materialize_grads=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        ng.autograd.grad(z, [ng.tensor(1.0)])
    named = ng.autograd.grad(z, {"a": x, "b": y})
    np.testing.assert_array_equal(named["b"].numpy(), [1.0, 2.0])
    assert x.grad is y.grad is None


def test_batched_cotangents():
    x = leaf()
    (rows,) = ng.autograd.grad(x * x, x, np.eye(2), is_grads_batched=True, retain_graph=True)
    np.testing.assert_array_equal(rows.numpy(), [[2.0, 0.0], [0.0, 4.0]])
    with pytest.raises(RuntimeError, match="batch"):
        ng.autograd.grad(x * x, x, np.ones(2), is_grads_batched=True)


def test_backward_into_inputs_only():
    x, y = leaf(), leaf()
    middle = x * y
    middle.sum().backward(inputs=[x])
    assert y.grad is None
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 2.0])


def test_higher_orders():
    x = ng.tensor(2.0, requires_grad=True)
    value, expected = x**4, [32.0, 48.0, 48.0, 24.0]
    for number in expected:
        (value,) = ng.autograd.grad(value, x, create_graph=True)
        assert value.item() == pytest.approx(number, rel=1e-13)


def test_grad_modes():
    x = leaf()

    @ng.no_grad()
    def off():
        return x * 2

    @ng.no_grad
    def bare():
        return x * 2

    assert not off().requires_grad
    assert not bare().requires_grad
    with ng.no_grad():
        assert ng.tensor([1.0], requires_grad=True).requires_grad
        with ng.enable_grad():
            assert (x * 2).requires_grad
        np.testing.assert_array_equal(np.asarray(x), x.numpy())
    assert off.__name__ == "off"
    with ng.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert ng.is_grad_enabled()

    @ng.set_grad_enabled(False)
    def decorated():
        return ng.is_grad_enabled()

    assert ng.is_grad_enabled()
    assert not decorated()
    with pytest.raises(KeyError), ng.no_grad():
        raise KeyError


def test_generators_hold_the_mode_only_while_running():
    modes = []

    @ng.no_grad()
    def numbers():
        try:
            got = yield ng.is_grad_enabled()
            modes.append((got, ng.is_grad_enabled()))
            yield ng.is_grad_enabled()
        finally:
            modes.append(ng.is_grad_enabled())

    generator = numbers()
    assert next(generator) is False
    assert ng.is_grad_enabled()
    assert generator.send("sent") is False
    generator.close()
    assert modes == [("sent", False), False]


def test_deep_chain():
    x = ng.tensor([1.0], requires_grad=True)
    y = x
    for _ in range(150_000):
        y = y + 1.0
    node = weakref.ref(y.grad_fn)
    y.backward()
    assert x.grad.item() == 1.0
    del y
    gc.collect()
    assert node() is None


@pytest.mark.parametrize("size", [10, 100_000])
def test_array_changed_by_its_owner(size):
    a, x = np.ones(size), ng.ones(size, requires_grad=True)
    y = (x * a).sum()
    a[:] = 5.0
    if a.nbytes <= 32 * 1024:  # was copied
        y.backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.ones(size))
    else:
        with pytest.raises(RuntimeError, match="MultiplyBackward"):
            y.backward()


def test_next_functions():
    x = leaf()
    accumulate = (x * 2).grad_fn.next_functions[0][0]
    assert accumulate is (x * 3).grad_fn.next_functions[0][0]
    assert accumulate.variable is x
    assert accumulate.next_functions == ()
    assert (x * x).grad_fn.name() == "MultiplyBackward"


def test_duplicate_indices_accumulate():
    x = leaf([1.0, 2.0, 3.0])
    x[[0, 0, 2]].sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 0.0, 1.0])
