"""Results share memory where the function's own would, and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.compiler.emulator import emulating

WEIGHT = ng.tensor(np.arange(6.0).reshape(2, 3))
LEAF = ng.tensor(np.ones((2, 3)), requires_grad=True)
TABLE = np.arange(6.0).reshape(2, 3)


def twice(x: Any) -> Any:
    y = np.exp(x)
    return y, y


def whole_and_parts(x: Any) -> Any:
    y = np.sin(x)
    return {"all": y, "parts": [y[0], y.T, y[:, ::2]]}


def without_history(x: Any) -> Any:
    y = np.exp(x)
    return y, y.detach() if isinstance(y, ng.Tensor) else y


FUNCTIONS = {
    "equal computations": lambda x: (np.exp(x), np.exp(x)),
    "equal after rewriting": lambda x: (x + 1, 1 + x),
    "an equal one in another shape": lambda x: (np.exp(x), np.exp(x).reshape(-1)),
    "the same object": twice,
    "an argument": lambda x: x,
    "an argument twice": lambda x: (x, x),
    "a copy": lambda x: (x.copy(), +x, x),
    "a transposed argument": lambda x: x.T,
    "parts of an argument": lambda x: (x[0], x[:, 1:], x.reshape(-1), x[::-1]),
    "a broadcast argument": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "whole and parts": whole_and_parts,
    "without history": without_history,
    "equal parts": lambda x: (np.exp(x)[0], np.exp(x)[0]),
    "an ndarray from around": lambda x: (TABLE, TABLE[0], TABLE.T, x),
}
WITH_TENSORS = {
    "a Tensor from around": lambda x: (WEIGHT, WEIGHT[0], x * 2),
    "a leaf from around": lambda x: (LEAF, LEAF.T, x * LEAF),
    "detached": lambda x: (x.detach(), x),
}


def flat(results: Any) -> list[Any]:
    if isinstance(results, dict):
        results = list(results.values())
    if isinstance(results, tuple | list):
        return [a for part in results for a in flat(part)]
    return [results]


def array(x: Any) -> np.ndarray:
    return x.detach().numpy() if isinstance(x, ng.Tensor) else np.asarray(x)


def sharing(results: Any, x: Any) -> tuple[Any, ...]:
    """Which results are the same objects, and which arrays share memory."""
    given = [*flat(results), x, WEIGHT, LEAF, TABLE]
    arrays = [array(a) for a in given]
    return (
        [a is b for a in flat(results) for b in flat(results)],
        [np.shares_memory(a, b) for a in arrays for b in arrays],
        [a.flags.writeable for a in arrays],
    )


def check(function: Any, x: Any) -> None:
    with emulating():
        fast = ng.jit(function)
        for _ in range(2):
            found, expected = fast(x), function(x)
            assert sharing(found, x) == sharing(expected, x)
            for a, b in zip(flat(found), flat(expected), strict=True):
                np.testing.assert_allclose(array(a), array(b), rtol=1e-14)
                if isinstance(x, ng.Tensor) and isinstance(b, ng.Tensor):
                    assert a.requires_grad == b.requires_grad
        if isinstance(x, ng.Tensor) and x.requires_grad:
            gradients = [gradient(function, x), gradient(fast, x)]
            assert np.array_equal(gradients[0] is None, gradients[1] is None)
            if gradients[0] is not None:
                np.testing.assert_allclose(*map(array, gradients), rtol=1e-13)


def gradient(function: Any, x: Any) -> Any:
    outs = [a for a in flat(function(x)) if getattr(a, "requires_grad", False)]
    loss = sum(np.sum(np.cos(a) * (k + 1)) for k, a in enumerate(outs))
    return ng.autograd.grad(loss, x, allow_unused=True)[0]


@pytest.mark.parametrize("kind", ["ndarray", "Tensor", "recorded"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_share_what_eager_results_share(name, kind):
    x: Any = np.random.default_rng(0).normal(size=(2, 3))
    x = x if kind == "ndarray" else ng.tensor(x, requires_grad=kind == "recorded")
    if name == "an ndarray from around" and kind != "ndarray":
        pytest.skip("Tensors are returned for Tensors")
    check(FUNCTIONS[name], x)


@pytest.mark.parametrize("kind", ["Tensor", "recorded"])
@pytest.mark.parametrize("name", WITH_TENSORS)
def test_tensors_share_what_eager_ones_share(name, kind):
    x = ng.tensor(np.random.default_rng(0).normal(size=(2, 3)), requires_grad=kind == "recorded")
    check(WITH_TENSORS[name], x)


def test_gradients_have_memory_of_their_own():
    x, y = np.ones(3), np.ones(3)
    p, q = (ng.tensor(np.ones(3), requires_grad=True) for _ in range(2))

    def backward(x: Any) -> Any:
        (p + q + x).sum().backward()
        return p.grad, p.grad * 1

    with emulating():
        a, b = ng.jit(ng.grad(lambda a, b: np.sum(a + b), argnums=(0, 1)))(x, y)
        assert not np.shares_memory(a, b)
        ng.jit(backward)(x)
    assert not np.shares_memory(p.grad.numpy(), q.grad.numpy())


def test_a_result_that_the_backward_needs_is_checked():
    def f(x):
        total = np.sum(np.exp(x), axis=0)
        return total, np.log(total)

    x = ng.tensor(np.ones((2, 3)), requires_grad=True)
    with emulating():
        total, log = ng.jit(f)(x)
        log.sum().backward()
        total, log = ng.jit(f)(x)
        with ng.no_grad():
            total *= 2.0
        with pytest.raises(ng.NumgradRuntimeError, match="its own result"):
            log.sum().backward()


def test_what_an_optimizer_wrote_is_handed_out_as_a_copy():
    p = ng.tensor(np.ones(3), requires_grad=True)
    optimizer = ng.optim.SGD([p], lr=0.5)

    def step(x):
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()
        return p, p.detach().clone()

    with emulating():
        fast = ng.jit(step)
        for k in range(2):
            same, copy = fast(ng.tensor(np.ones(3)))
            assert same is p
            assert not np.shares_memory(copy.numpy(), p.detach().numpy())
            np.testing.assert_array_equal(copy.numpy(), np.full(3, 0.5 - 0.5 * k))


def test_a_segment_that_gives_back_its_operand():
    class Same(ng.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return ng.asarray(x.numpy()) * 1 if x.numpy()[0] < 0 else ng.asarray(x.numpy())

        @staticmethod
        def backward(ctx, g):
            return g

    x = np.ones(3)
    with emulating():
        (found, other) = ng.jit(lambda x: (Same.apply(x), np.exp(Same.apply(x))))(x)
    assert not np.shares_memory(found, x)
    assert not np.shares_memory(found, other)


class Reversed(ng.autograd.Function):
    """What is seen of the argument, with another derivative."""

    @staticmethod
    def forward(ctx, x):
        return x[:1]

    @staticmethod
    def backward(ctx, g):
        return -3 * np.concatenate([g, 0 * g])


def tripled(y):
    y.register_hook(lambda g: 3 * g)
    return y


HISTORIES = {
    "function": lambda x: Reversed.apply(x),
    "hook": lambda x: tripled(x[:]),
    "hook on an argument": lambda x: tripled(x),
    "hook on a view": lambda x: (y := x * 2, tripled(y[0])),
    "hook after a use": lambda x: (y := x * x, y[0] * 1.0, tripled(y[0])),
    "own leaf": lambda x: (y := x * 2, y.detach().requires_grad_()),
    "view of a view": lambda x: (y := x * 2, tripled(y[:])[0]),
    "plain": lambda x: (y := x * 2, y[:][0], x[1:]),
}


@pytest.mark.parametrize("f", HISTORIES.values(), ids=HISTORIES)
def test_shared_results_have_the_gradients_of_eager_code(f):
    def gradient(f):
        x = ng.tensor([1.1, 0.7], requires_grad=True)
        found = f(x)
        parts = found if isinstance(found, tuple) else (found,)
        sum((k + 1.0) * (y * y).sum() for k, y in enumerate(parts)).backward()
        return x.grad.numpy()

    np.testing.assert_allclose(gradient(ng.jit(f)), gradient(f))
