"""Callbacks at the end of a backward, and what PyTorch's ``autograd.graph`` has besides hooks."""

import threading

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.engine.walk import DEEP
from numgrad.autograd.saved import Packed


def queue(lib, fn):
    """Register a callback: PyTorch's is not public."""
    if lib is ng:
        ng.autograd.graph.queue_callback(fn)
    else:
        lib.autograd.Variable._execution_engine.queue_callback(fn)


def product(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    return x, x * 2


def test_a_callback_runs_when_gradients_are_accumulated(lib):
    (x, y), order = product(lib), []
    y.register_hook(lambda g: queue(lib, lambda: order.append(x.grad.tolist())))
    x.register_hook(lambda g: order.append("x"))
    y.sum().backward()
    assert order == ["x", [2.0, 2.0]]


def test_callbacks_run_in_order_and_may_queue_others(lib):
    (_, y), order = product(lib), []

    def first():
        order.append(1)
        queue(lib, lambda: order.append(3))

    def hook(g):
        queue(lib, first)
        queue(lib, lambda: order.append(2))

    y.register_hook(hook)
    y.sum().backward()
    assert order == [1, 2, 3]


def test_a_callback_belongs_to_the_innermost_backward(lib):
    (_, y), order = product(lib), []
    inner = product(lib)[1]
    inner.register_hook(lambda g: queue(lib, lambda: order.append("inner")))
    loss = inner.sum()

    def hook(g):
        queue(lib, lambda: order.append("outer"))
        loss.backward()
        order.append("inner backward returned")

    y.register_hook(hook)
    y.sum().backward()
    assert order == ["inner", "inner backward returned", "outer"]


WAYS = {
    "inputs": lambda lib, x, y: y.sum().backward(inputs=[x]),
    "create_graph": lambda lib, x, y: y.sum().backward(create_graph=True),
    "several": lambda lib, x, y: lib.autograd.backward([y.sum(), y[0]]),
    "grad": lambda lib, x, y: lib.autograd.grad(y.sum(), x),
    "batch": lambda lib, x, y: lib.autograd.grad(y, x, lib.eye(2), is_grads_batched=True),
}


@pytest.mark.filterwarnings("ignore:.*create_graph:UserWarning")
@pytest.mark.parametrize("way", WAYS)
def test_callbacks_run_however_a_backward_is_called(lib, way):
    (x, y), order = product(lib), []
    y.register_hook(lambda g: queue(lib, lambda: order.append("callback")))
    WAYS[way](lib, x, y)
    assert order == ["callback"]


def test_a_backward_that_fails_forgets_its_callbacks(lib):
    (_, y), order = product(lib), []
    y.register_hook(lambda g: queue(lib, lambda: order.append("callback")))
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    product(lib)[1].sum().backward()
    assert order == []


def test_the_error_of_a_callback_comes_out_and_the_others_are_forgotten(lib):
    (x, y), order = product(lib), []

    def hook(g):
        queue(lib, lambda: 1 / 0)
        queue(lib, lambda: order.append("second"))

    y.register_hook(hook)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    product(lib)[1].sum().backward()
    assert order == []


def test_functions_and_hooks_of_accumulators_may_queue(lib):
    order = []

    class Identity(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            queue(lib, lambda: order.append("function"))
            return g

    x = lib.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(
        lambda leaf: queue(lib, lambda: order.append(lib.is_grad_enabled()))
    )
    Identity.apply(x).sum().backward()
    assert order == ["function", False]


def test_a_callback_needs_a_backward_that_runs(lib):
    with pytest.raises(RuntimeError):
        queue(lib, lambda: None)


def test_what_cannot_be_queued():
    with pytest.raises(RuntimeError, match="no backward is running"):
        ng.autograd.graph.queue_callback(print)
    with pytest.raises(TypeError, match="function"):
        ng.autograd.graph.queue_callback(3)

    def f(x):
        y = x * 2
        y.register_hook(lambda g: ng.autograd.graph.queue_callback(print))
        return ng.autograd.grad(y.sum(), x)[0]

    with pytest.raises(ng.errors.NumgradTraceError, match="queue_callback"):
        ng.jit(f)(ng.ones(2, requires_grad=True))


def test_callbacks_of_threads_are_apart():
    found = []

    def work(k):
        (_, y), order = product(ng), []
        y.register_hook(lambda g: queue(ng, lambda: order.append(k)))
        for _ in range(20):
            y.sum().backward(retain_graph=True)
        found.append(order == [k] * 20)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 3


# ---------------------------------------------------------------------------------- save_on_cpu


@pytest.mark.parametrize("pin_memory", [False, True])
def test_gradients_are_those_without_save_on_cpu(lib, pin_memory):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    with lib.autograd.graph.save_on_cpu(pin_memory=pin_memory):
        y = (x * x).exp().sum()
    y.backward()
    np.testing.assert_allclose(x.grad.tolist(), 2 * np.e ** np.array([1.0, 4.0]) * [1, 2])


def test_save_on_cpu_is_innermost(lib):
    x, packed = lib.tensor([1.0, 2.0], requires_grad=True), []
    hooks = lib.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t)
    with hooks, lib.autograd.graph.save_on_cpu():
        (x * x).sum().backward()
    assert packed == []
    with lib.autograd.graph.save_on_cpu(), hooks:
        (x * x).sum().backward()
    assert len(packed) == 2


def test_save_on_cpu_counts_as_hooks(lib):
    with (
        lib.autograd.graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        lib.autograd.graph.save_on_cpu(),
    ):
        pass


def test_save_on_cpu_notices_writes_and_copies_nothing():
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    a = x * 1.0
    with ng.autograd.graph.save_on_cpu():
        y = (a * a).sum()
        z = ng.checkpoint(lambda a: ng.sum(a * a), x)
    node = y.grad_fn.next_functions[0][0]
    assert not any(isinstance(each, Packed) for each in node.saved)
    z.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    a.mul_(2.0)
    with pytest.raises(RuntimeError, match="in-place"):
        y.backward()


def test_names_of_pytorch_that_have_another_home():
    for home, names in {
        ng.autograd: ("set_multithreading_enabled", "profiler", "grad_mode", "gradcheck"),
        ng.autograd.graph: (
            "region_activation_memory_budget",
            "set_warn_on_accumulate_grad_stream_mismatch",
            "set_override_stale_capture_stream",
        ),
    }.items():
        for name in names:
            with pytest.raises(AttributeError, match=name):
                getattr(home, name)


def test_every_public_name_of_pytorch_is_there_or_explained():
    torch = pytest.importorskip("torch")
    for ours, theirs in ((ng.autograd, torch.autograd), (ng.autograd.graph, torch.autograd.graph)):
        for name in theirs.__all__:
            if not hasattr(ours, name):
                with pytest.raises(AttributeError, match=f"{name}'?: "):  # then the remedy
                    getattr(ours, name)


def test_a_callback_of_a_deep_backward_runs():
    """Where nested backwards go on in a thread of its own."""
    order = []

    def nest(depth):
        with ng.enable_grad():
            x, y = product(ng)
            loss = y.sum()

        def hook(g):
            if depth:
                nest(depth - 1)
            else:
                queue(ng, lambda: order.append(x.grad.tolist()))

        y.register_hook(hook)
        loss.backward()

    nest(DEEP)
    assert order == [[2.0, 2.0]]
