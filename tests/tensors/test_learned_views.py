"""Views, and operations along axes, whose calls machine code learns: Note [Learning of calls]."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.cpython import offsets
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.tensors import learned_calls
from tests.python_paths import machine_code

pytestmark = pytest.mark.skipif(not offsets.is_readable(), reason=offsets.obstacle())


@pytest.fixture(autouse=True)
def installed():
    machine_code()
    learned_calls.forget_calls()


CALLS = {
    "reshape": (lambda x, xp: xp.reshape(x, (2, 12))),
    "reshape by integers": (lambda x, xp: x.reshape(3, -1)),
    "reshape in another order": (lambda x, xp: xp.reshape(x, (2, 12), order="F")),
    "ravel": (lambda x, xp: xp.ravel(x)),
    "transpose": (lambda x, xp: xp.transpose(x)),
    "moveaxis": (lambda x, xp: xp.moveaxis(x, 0, 1)),
    "swapaxes": (lambda x, xp: xp.swapaxes(x, -1, 0)),
    "expand_dims": (lambda x, xp: xp.expand_dims(x, axis=1)),
    "broadcast_to": (lambda x, xp: xp.broadcast_to(x, (2, 4, 6))),
    "flip": (lambda x, xp: xp.flip(x, axis=0)),
    "diagonal": (lambda x, xp: xp.diagonal(x, 1)),
    "astype": (lambda x, xp: x.astype(np.float32)),
    "astype the same": (lambda x, xp: x.astype(np.float64, copy=False)),
    "sum": (lambda x, xp: xp.sum(x, axis=0)),
    "mean": (lambda x, xp: xp.mean(x, axis=(1,), keepdims=True)),
    "max": (lambda x, xp: xp.max(x, axis=-1)),
    "var": (lambda x, xp: xp.var(x, axis=1, ddof=1)),
}
OPERANDS = {
    "leaf": lambda: np.linspace(0.5, 2.0, 24).reshape(4, 6),
    "strided": lambda: np.linspace(0.5, 2.0, 48).reshape(4, 12)[:, ::2],
    "transposed": lambda: np.linspace(0.5, 2.0, 24).reshape(6, 4).T,
}


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("name", CALLS)
def test_calls_are_numpys_each_time(name, operand):
    call = CALLS[name]
    for k in range(4):
        array = OPERANDS[operand]() + k
        expected = call(array, np)
        x = ng.tensor(array, requires_grad=True)
        y = call(x, np)
        assert y.dtype == expected.dtype
        assert y.shape == expected.shape
        np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-6)
        weights = np.cos(np.arange(expected.size)).reshape(expected.shape).astype(expected.dtype)
        (y * weights).sum().backward()
        step = np.sin(np.arange(24.0)).reshape(4, 6) * 1e-3  # along which differences are taken
        difference = np.sum((call(array + step, np) - call(array - step, np)) * weights) / 2
        assert np.sum(x.grad.numpy() * step) == pytest.approx(difference, rel=1e-2, abs=1e-6)


def test_calls_with_equal_places_do_not_drive_each_other_out():
    shapes = [(24,), (2, 12), (12, 2), (3, 8), (8, 3), (4, 6), (6, 4), (1, 24), (24, 1), (2, 2, 6)]
    x = ng.tensor(np.arange(24.0))
    for _ in range(3):
        for shape in shapes:
            assert np.array_equal(x.reshape(shape).numpy(), np.arange(24.0).reshape(shape))


def test_calls_with_places_side_by_side_are_learned_once(monkeypatch):
    learned = []
    record = learned_calls.LearnedEntry._record

    def noted(self, args, params, result):
        learned.append((*args[1:], *params.values()))
        return record(self, args, params, result)

    monkeypatch.setattr(learned_calls.LearnedEntry, "_record", noted)
    x = ng.tensor(np.arange(24.0).reshape(2, 3, 4))
    for _ in range(5):
        for axis in range(4):  # whose hashes are side by side as well
            np.expand_dims(x, axis)
    assert sorted(learned) == [(axis,) for axis in range(4)]


def test_views_share_memory_and_versions():
    for _ in range(3):
        x = ng.tensor(np.arange(6.0), requires_grad=True)
        y = x * 1.0
        view = y.reshape((2, 3))
        view[0, 0] = 5.0
        assert y[0].item() == 5.0
        assert view._base is y
        z = np.sin(view)
        y += 1.0
        with pytest.raises(NumgradRuntimeError):
            z.sum().backward()
        with ng.no_grad():
            hidden = y.reshape((3, 2))
        assert not hidden.requires_grad


def test_numbers_that_are_equal_are_not_the_same():
    x = ng.tensor(np.arange(6.0).reshape(2, 3))
    for _ in range(3):
        assert x.reshape((6, 1)).shape == (6, 1)
        with pytest.raises(NumgradTypeError):
            x.reshape((6.0, 1))


def test_gradients_of_views_are_views_of_what_arrived():
    for _ in range(3):
        x = ng.tensor(np.arange(6.0), requires_grad=True)
        y = x.reshape((2, 3))
        (g,) = ng.autograd.grad(y, x, np.broadcast_to(np.float64(2.0), (2, 3)))  # no contiguous one
        assert np.array_equal(g.numpy(), np.full(6, 2.0))
        rows = np.arange(6.0).reshape(2, 3)
        (g,) = ng.autograd.grad(x.reshape((2, 3)).T, x, rows.T)
        assert np.array_equal(g.numpy(), np.arange(6.0))
