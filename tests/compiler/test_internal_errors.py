"""What runs eagerly compiles, or says at which line it does not and what to do."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
import numgrad.nn.functional as F
from numgrad import nn
from numgrad.compiler.lower import lowering
from tests.compiler.emulator import emulating

pytestmark = pytest.mark.filterwarnings("ignore:jit. .* plain NumPy made")
RNG = np.random.default_rng(0)


def random(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def padded(mode: str) -> Callable:
    return lambda x: np.sum(np.pad(x, 2, mode=mode) ** 2)


def filled(x: Any) -> Any:
    y = ng.zeros(3)
    np.copyto(y, x * 2)
    return y


def put_nothing(x: Any, i: Any) -> Any:
    y = x * 2
    y[i] = 1.0
    return y


NOTHING = np.zeros(0, int)
TWICE = np.array([0, 0])
CASES: dict[str, tuple[Callable, tuple]] = {
    "conv2d beside a second use of its input": (
        ng.grad(lambda x, w: np.sum(F.conv2d(np.sin(x), w)) + np.sum(np.sin(x) ** 2)),
        (random(1, 1, 5, 5), random(1, 1, 3, 3)),
    ),
    "a sum that two kernels read": (
        lambda x, i: np.sum(x, axis=1) * 2 + np.sum(x, axis=1)[i] + F.max_pool1d(x[None], 2).sum(),
        (random(4, 6), np.array(1)),
    ),
    "an empty index": (lambda x, i: np.sum(x, axis=0)[i] * 2, (random(3, 4), NOTHING)),
    "an empty index, gradient": (
        ng.grad(lambda x, i: np.sum(np.sum(x**2, axis=0)[i]) + np.sum(x)),
        (random(3, 4), NOTHING),
    ),
    "an empty index written to": (put_nothing, (random(4), NOTHING)),
    "a scatter into length 1": (
        ng.grad(lambda x, i: np.sum(np.sin(x[i]) ** 2)),
        (random(1), TWICE),
    ),
    "a scatter into a row": (ng.grad(lambda x, i: np.sum(x[i] ** 2)), (random(1, 3), TWICE)),
    "pad edge of length 1": (ng.grad(padded("edge")), (random(1),)),
    "pad wrap of length 1": (ng.grad(padded("wrap")), (random(1),)),
    "take of 0-d": (ng.value_and_grad(lambda x, i: np.sum(np.take(x, i))), (np.array(3.0), TWICE)),
    "parts of an array made a Tensor": (
        ng.grad(lambda x: np.sum(x[0] * ng.asarray(np.ones(3))[1:] * x[1])),
        (random(2),),
    ),
    "where of a number": (lambda k, x: np.where(k > 0, x, -x), (3, random(3))),
    "numbers compared": (lambda k: (k > 2, k == 3, k != 4, np.where(k < 3, k, -k)), (3,)),
    "copyto": (filled, (random(3),)),
    "prod of nothing": (ng.value_and_grad(lambda x: np.prod(x)), (np.ones((0, 3)),)),
    "prod of nothing, by rows": (
        ng.grad(lambda x: np.sum(np.prod(x, axis=1))),
        (np.ones((3, 0)),),
    ),
    "var of nothing": (ng.grad(lambda x: np.sum(np.var(x, axis=1))), (np.ones((0, 3)),)),
    "cumsum of a number": (lambda x: np.cumsum(x), (3,)),
    "cumprod of a number": (lambda x: np.cumprod(x), (2.5,)),
}


def numbers(results: Any) -> list[np.ndarray]:
    if isinstance(results, tuple | list):
        return [a for part in results for a in numbers(part)]
    return [results.numpy(force=True) if isinstance(results, ng.Tensor) else np.asarray(results)]


@pytest.mark.parametrize("name", CASES)
def test_cases_that_once_failed(name):
    function, given = CASES[name]
    with emulating():
        found = ng.jit(lambda *x: function(*x))(*given)
    expected = function(*given)
    for a, b in zip(numbers(found), numbers(expected), strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4)

    def forward(self, x):
        return self.rnn(x)[0]


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)
        self.last = nn.Linear(2 * 3 * 3, 2)

    def forward(self, x):
        y = F.max_pool2d(ng.relu(self.norm(self.conv(x))), 2)
        return self.last(y.reshape((y.shape[0], -1)))


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3)

    def forward(self, x):
        return F.avg_pool1d(np.tanh(self.conv(x)), 2) + np.mean(x)


STEPS = {
    "lstm": (Recurrent, (5, 2, 3), ng.optim.Adam),
    "convolution": (Convolutional, (3, 1, 8, 8), ng.optim.SGD),
    "pooling": (Pooled, (2, 2, 8), ng.optim.AdamW),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_whole_training_steps(name):
    make, shape, optimizer = STEPS[name]
    losses = []
    for wrap in (ng.jit, lambda f: f):
        ng.random.manual_seed(0)
        net = make()
        o = optimizer(net.parameters(), lr=0.1)

        def step(x, net=net, o=o):
            o.zero_grad()
            loss = np.mean((net(x) - 1.0) ** 2)
            loss.backward()
            o.step()
            return loss

        x = ng.tensor(np.random.default_rng(1).normal(size=shape))
        with emulating():
            fast = wrap(step)
            losses.append([fast(x).item() for _ in range(3)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-9)


def test_einsum_keeps_no_symbol_of_another_trace():
    with emulating():
        for n, m in ((23, 24), (25, 26), (24, 24)):
            a, b = random(n, m), random(m, n)
            pair = ng.jit(lambda a, b: np.einsum("ij,jk->ik", a, b))
            chain = ng.jit(lambda a, b: np.einsum("ij,jk,kl->il", a, b, a, optimize=True))
            np.testing.assert_allclose(pair(a, b), a @ b)
            np.testing.assert_allclose(chain(a, b), a @ b @ a)
            pair(random(27, 29), random(29, 28))
            assert len(pair.specialisations) == 1  # no length was looked at


def test_a_first_backward_in_several_threads():
    errors: list[BaseException] = []
    with emulating():
        fast = ng.jit(lambda x: np.sum(np.tanh(x) ** 2) * np.sum(x))
        fast(ng.tensor(np.ones(3), requires_grad=True))
        barrier = threading.Barrier(4)

        def work() -> None:
            x = ng.tensor(np.ones(3), requires_grad=True)
            y = fast(x)
            barrier.wait()
            try:
                y.backward()
                (g,) = ng.autograd.grad(fast(x), x, create_graph=True)
                g.sum().backward()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors


# ---------------------------------------------------------------------------------- surroundings

TABLE = np.arange(6.0).reshape(2, 3)
TENSOR = ng.tensor(np.arange(6.0).reshape(2, 3))


class Box:
    def __init__(self):
        self.inner = [{"w": np.arange(6.0).reshape(2, 3)}]


BOX = Box()
READS: dict[str, Callable] = {
    "transposed": lambda x: x @ TABLE.T,
    "sliced": lambda x: x * TABLE[1:, ::-1],
    "strided": lambda x: x[:, :2] * TABLE[:, ::2],
    "reshaped": lambda x: x.reshape(-1) * TABLE.reshape(-1) + TABLE.ravel(),
    "a row": lambda x: x * TABLE[0][None],
    "broadcast": lambda x: x * np.broadcast_to(TABLE[0], (2, 3)),
    "as a Tensor": lambda x: x * ng.asarray(TABLE) + ng.from_numpy(TABLE[:1]),
    "as a new Tensor": lambda x: x * ng.tensor(TABLE),
    "converted": lambda x: x * ng.asarray(TABLE, np.float32),
    "in an attribute": lambda x: x.T * BOX.inner[0]["w"].T,
    "memory of a Tensor": lambda x: x.T * TENSOR.numpy().T,
    "part of the memory of a Tensor": lambda x: x * TENSOR.numpy()[0],
}


@pytest.mark.parametrize("name", READS)
def test_views_of_what_is_around_are_read_at_each_call(name):
    function, x = READS[name], np.ones((2, 3))
    with emulating():
        fast = ng.jit(function)
        for _ in range(3):
            np.testing.assert_allclose(numbers(fast(x))[0], numbers(function(x))[0])
            for array in (TABLE, TENSOR.numpy(), BOX.inner[0]["w"]):
                array += np.arange(6.0).reshape(2, 3)
            BOX.inner[0]["w"] = BOX.inner[0]["w"] * 2
    assert len(fast.specialisations) == 1


def test_a_view_of_an_array_in_another_form_is_traced_anew():
    box = Box()
    box.w = np.arange(6.0).reshape(2, 3)
    with emulating():
        fast = ng.jit(lambda x: x + box.w[1:])
        np.testing.assert_array_equal(fast(np.zeros(3)), [[3.0, 4.0, 5.0]])
        box.w = np.asfortranarray(box.w)
        np.testing.assert_array_equal(fast(np.zeros(3)), [[3.0, 4.0, 5.0]])
        box.w = np.ones((3, 3))
        np.testing.assert_array_equal(fast(np.zeros(3)), np.ones((2, 3)))


def test_writes_through_a_tensor_over_an_array_reach_it():
    table = np.zeros((2, 3))

    def count(x):
        seen = ng.asarray(table.T)
        seen += x
        return seen * 2

    with emulating():
        fast = ng.jit(count)
        for k in range(1, 3):
            np.testing.assert_array_equal(fast(np.ones((3, 2))), np.full((3, 2), 2.0 * k))
            np.testing.assert_array_equal(table, np.full((2, 3), k))


# ------------------------------------------------------------------------------------- Functions


class Root(ng.autograd.Function):
    """Of matrices that are positive definite, which ones are not."""

    @staticmethod
    def forward(ctx, x):
        return ng.asarray(np.linalg.cholesky(x.numpy()))

    @staticmethod
    def backward(ctx, g):
        return g


def test_a_function_is_called_with_numbers_of_the_call():
    x = np.eye(3) * 4
    with emulating():
        np.testing.assert_allclose(ng.jit(lambda x: Root.apply(x * 1))(x), np.eye(3) * 2)
        chain = ng.jit(lambda x: Root.apply(Root.apply(x) * 1))
        np.testing.assert_allclose(chain(x * 4), np.eye(3) * 2)
        gradient = ng.jit(ng.grad(lambda x: np.sum(Root.apply(x * 1))))
        np.testing.assert_allclose(gradient(x), np.ones((3, 3)))


RANDOM = ng.random.default_rng(0)


def test_a_function_of_random_numbers_names_the_line():
    def f(x):
        noise = RANDOM.normal(size=(3, 3)) * 0.01
        return Root.apply(x + noise @ noise.T)

    with emulating(), pytest.raises(ng.NumgradTraceError, match=r"_errors.py:\d+: Root: .*ones"):
        ng.jit(f)(np.eye(3))


# --------------------------------------------------------------------------------------- methods


class Slim:
    __slots__ = ("__weakref__", "w")

    def __init__(self):
        self.w = np.ones(3)

    @ng.jit
    def times(self, x):
        return self.w * x


class Base:
    def __init__(self):
        self.w = np.full(3, 2.0)

    @ng.jit
    def times(self, x):
        return self.w * x

    @ng.jit(static_argnums=(0, 2))
    def power(self, x, n):
        return self.w * x**n


class Derived(Base):
    @ng.jit
    def times(self, x):
        return super().times(x) + 1


@pytest.mark.slow
@pytest.mark.parametrize("make", [Slim, Base, Derived])
def test_an_object_with_compiled_methods_is_freed(make):
    with emulating():
        for _ in range(2):
            one = make()
            expected = one.w + (make is Derived)
            np.testing.assert_array_equal(one.times(np.ones(3)), expected)
            one.w = one.w * 2
            np.testing.assert_array_equal(one.times(np.ones(3)), expected + one.w / 2)
            gone = weakref.ref(one)
            del one
            gc.collect()
            assert gone() is None
    assert not Slim.times._bound
    assert not Base.times._bound


@pytest.mark.parametrize("make", [Slim, Base, Derived])
def test_a_method_is_called_through_its_class(make):
    one = make()
    with emulating():
        for _ in range(2):
            found = make.times(one, np.ones(3))
            np.testing.assert_array_equal(found, one.times(np.ones(3)))
        if make is Base:
            np.testing.assert_array_equal(Base.power(one, np.full(3, 3.0), 2), np.full(3, 18.0))
            np.testing.assert_array_equal(one.power(np.full(3, 3.0), 2), np.full(3, 18.0))


# ------------------------------------------------------------------------------ the last resort


def test_a_fault_in_lowering_names_the_function_and_the_remedy(monkeypatch):
    def fault(*given):
        raise KeyError("unforeseen")

    monkeypatch.setitem(lowering.LOWERINGS, "take", fault)
    with pytest.raises(ng.NumgradTraceError, match=r"_errors.py:\d+: .*ng.config.jit = False") as e:
        ng.jit(lambda x: x[np.array([0, 1])])(np.ones(3))
    assert isinstance(e.value.__cause__, KeyError)


def test_errors_of_the_users_code_pass_as_they_are():
    def fails(x):
        return {}["key"]

    with pytest.raises(KeyError, match="key") as e:
        ng.jit(fails)(np.ones(3))
    assert not isinstance(e.value, ng.NumgradError)
    with pytest.raises(AttributeError, match="nothing"):
        ng.jit(lambda x: x.nothing)(np.ones(3))


def test_deep_and_cyclic_containers_are_refused():
    deep: Any = np.ones(2)
    for _ in range(3000):
        deep = [deep]
    cyclic: list[Any] = [np.ones(2)]
    cyclic.append(cyclic)
    for given in (deep, cyclic):
        with pytest.raises(ng.NumgradValueError, match="64 levels deep"):
            ng.jit(lambda x: x)(given)
        with pytest.raises(ng.NumgradTypeError, match="static argument"):
            ng.jit(lambda x, s: x, static_argnums=1)(np.ones(2), given)
    with pytest.raises(ng.NumgradValueError, match="64 levels deep"):
        ng.jit(lambda x: cyclic)(np.ones(2))
