"""Which hooks run, and where gradients go, for every way to ask for gradients: promises 33, 73.

What is expected is written out, and ``lib`` is numgrad, its Python form and PyTorch.
"""

import threading

import pytest

import numgrad as ng
from numgrad.autograd.engine.gradients import ArrayEvaluation
from numgrad.autograd.engine.task import Task
from numgrad.codegen.cpython import offsets
from tests.python_paths import machine_code

pytestmark = pytest.mark.filterwarnings("ignore:.*create_graph:UserWarning")


def edge(lib, tensor):
    return lib.autograd.graph.get_gradient_edge(tensor)


def node_of(tensor):
    node = tensor.grad_fn
    return tensor.reshape(1, 2).grad_fn.next_functions[0][0] if node is None else node


def hook_everywhere(order, **tensors):
    """Note ``name`` for a tensor's hooks, ``name<`` and ``name>`` before and after its node."""

    def noting(what):
        return lambda *_: order.append(what)

    for name, tensor in tensors.items():
        tensor.register_hook(noting(name))
        node_of(tensor).register_prehook(noting(name + "<"))
        node_of(tensor).register_hook(noting(name + ">"))
        if tensor.is_leaf:
            tensor.register_post_accumulate_grad_hook(noting(name + "+"))


def square_sum(lib, b):
    return (b * b).sum()


def checkpointed(lib, b):
    if lib is ng:
        return ng.checkpoint(lambda b: square_sum(ng, b), b)
    from torch.utils.checkpoint import checkpoint

    return checkpoint(lambda b: square_sum(lib, b), b, use_reentrant=False)


def twice(y):
    y.backward(retain_graph=True)
    y.backward()


ALL = "b b< b> x x< x+ x> w w< w+ w>"
X, W, B = [18.0, 100.0], [6.0, 40.0], [6.0, 20.0]
WAYS = [
    ("backward", lambda lib, y, x, w, b: y.backward(), ALL, (X, W, None)),
    ("create_graph", lambda lib, y, x, w, b: y.backward(create_graph=True), ALL, (X, W, None)),
    (
        "twice",
        lambda lib, y, x, w, b: twice(y),
        f"{ALL} {ALL}",
        ([36.0, 200.0], [12.0, 80.0], None),
    ),
    (
        "inputs=x",
        lambda lib, y, x, w, b: y.backward(inputs=x),
        "b b< b> x x< x+ x>",
        (X, None, None),
    ),
    ("inputs=b", lambda lib, y, x, w, b: y.backward(inputs=(b,)), "b b< b>", (None, None, B)),
    (
        "inputs=b, create_graph",
        lambda lib, y, x, w, b: y.backward(inputs=(b,), create_graph=True),
        "b b< b>",
        (None, None, B),
    ),
    (
        "inputs=x, b",
        lambda lib, y, x, w, b: y.backward(inputs=(x, b)),
        "b b< b> x x< x+ x>",
        (X, None, B),
    ),
    (
        "inputs=dict",
        lambda lib, y, x, w, b: y.backward(inputs={"x": x, "b": b}),
        "b b< b> x x< x+ x>",
        (X, None, B),
    ),
    (
        "inputs=edge of x",
        lambda lib, y, x, w, b: y.backward(inputs=edge(lib, x)),
        "b b< b> x x< x+ x>",
        (X, None, None),
    ),
    (
        "inputs=edge of b",
        lambda lib, y, x, w, b: y.backward(inputs=(edge(lib, b),)),
        "b b< b>",
        (None, None, None),
    ),
    (
        "inputs=edges",
        lambda lib, y, x, w, b: y.backward(inputs=[edge(lib, b), edge(lib, x), x]),
        "b b< b> x x< x+ x>",
        (X, None, None),
    ),
    (
        "inputs=b and its edge",
        lambda lib, y, x, w, b: y.backward(inputs=(b, edge(lib, b), b)),
        "b b< b>",
        (None, None, B),
    ),
    (
        "root is an edge",
        lambda lib, y, x, w, b: lib.autograd.backward(
            edge(lib, b), lib.tensor([6.0, 20.0]), inputs=[w]
        ),
        "b b< b> w w< w+ w>",
        (None, W, None),
    ),
    (
        "root is the input",
        lambda lib, y, x, w, b: b.backward(lib.tensor(B), inputs=[b]),
        "b b< b>",
        (None, None, B),
    ),
    (
        "root is a leaf",
        lambda lib, y, x, w, b: x.backward(lib.tensor(B), inputs=[x]),
        "x x< x+ x>",
        (B, None, None),
    ),
    ("grad x", lambda lib, y, x, w, b: lib.autograd.grad(y, x), "b b< b> x", [X]),
    ("grad b", lambda lib, y, x, w, b: lib.autograd.grad(y, b), "b", [B]),
    ("grad x, b", lambda lib, y, x, w, b: lib.autograd.grad(y, (x, b)), "b b< b> x", [X, B]),
    (
        "grad of edges",
        lambda lib, y, x, w, b: lib.autograd.grad(y, (edge(lib, x), edge(lib, b))),
        "b b< b> x",
        [X, B],
    ),
    (
        "grad with create_graph",
        lambda lib, y, x, w, b: lib.autograd.grad(y, (x, w), create_graph=True),
        "b b< b> x w",
        [X, W],
    ),
    (
        "grad of a batch",
        lambda lib, y, x, w, b: lib.autograd.grad(
            y, (x, w), lib.tensor([1.0, 2.0]), is_grads_batched=True
        ),
        "b b< b> x w",
        [[X, [36.0, 200.0]], [W, [12.0, 80.0]]],
    ),
    (
        "grad b of a batch",
        lambda lib, y, x, w, b: lib.autograd.grad(
            y, b, lib.tensor([1.0, 2.0]), is_grads_batched=True
        ),
        "b",
        [[B, [12.0, 40.0]]],
    ),
]


def run(lib, way, forward):
    """The order of hooks, and the gradients that a call left or gave."""
    order = []
    x, w = (lib.tensor(v, requires_grad=True) for v in ([1.0, 2.0], [3.0, 5.0]))
    b = x * w
    hook_everywhere(order, x=x, w=w, b=b)
    y = forward(lib, b)
    found = way(lib, y, x, w, b)
    if found is None:
        found = [None if t.grad is None else t.grad for t in (x, w)]
        found.append(b.grad if b.retains_grad else None)
    else:
        assert x.grad is None
        assert w.grad is None
    return " ".join(order), [None if g is None else g.tolist() for g in found]


@pytest.mark.parametrize(
    ("way", "order", "gradients"), [case[1:] for case in WAYS], ids=[case[0] for case in WAYS]
)
@pytest.mark.parametrize("forward", [square_sum, checkpointed], ids=["plain", "checkpoint"])
def test_hooks_run_for_every_way_to_call(lib, way, order, gradients, forward):
    if forward is checkpointed and lib is not ng:
        pytest.importorskip("torch.utils.checkpoint")
    assert run(lib, way, forward) == (order, list(gradients))


def test_hooks_run_in_every_thread(lib):
    found = []

    def work():
        for name, way, *_ in WAYS:
            found.append((name, run(lib, way, square_sum)))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3 * len(WAYS)
    expected = {name: (order, list(gradients)) for name, _, order, gradients in WAYS}
    assert all(outcome == expected[name] for name, outcome in found)


def test_backward_at_a_result_sees_what_its_hooks_made(lib):
    """Promises 71 and 73: the tensor's hooks change what it gets, those of its node do not."""
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    b = x * x
    b.register_hook(lambda g: g * 10)
    b.grad_fn.register_prehook(lambda grads: (grads[0] * 100,))
    (b * b).sum().backward(inputs=(b, x))
    assert b.grad.tolist() == [20.0, 80.0]
    assert x.grad.tolist() == [4000.0, 32000.0]


def test_backward_at_a_result_frees_its_node(lib):
    """Its node runs, so that its hooks do."""
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    b = x * x
    (b * b).sum().backward(inputs=[b])
    with pytest.raises(RuntimeError):
        b.backward(b.grad)
    assert x.grad is None


def test_a_result_that_was_an_input_retains_its_gradient(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    b = x * x
    y = (b * b).sum()
    assert not b.retains_grad
    y.backward(inputs=[b], retain_graph=True)
    assert b.retains_grad
    y.backward()
    assert b.grad.tolist() == [4.0, 16.0]
    assert x.grad.tolist() == [4.0, 32.0]


def test_one_of_several_outputs_is_an_input(lib):
    x, seen = lib.tensor([1.0, 2.0], requires_grad=True), []
    first, _ = ng.unstack(x) if lib is ng else lib.unbind(x)
    first.grad_fn.register_prehook(lambda grads: seen.append([g is None for g in grads]))
    first.grad_fn.register_hook(lambda found, grads: seen.append([g is None for g in found]))
    (first * 3).backward(inputs=(first,))
    assert first.grad.tolist() == 3.0
    assert seen[0] == [False, True]
    assert len(seen) == 2


def test_an_error_leaves_results_that_are_inputs_as_they_were():
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    b = x * x
    b.grad_fn.register_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (b * b).sum().backward(inputs=[b])
    assert not b.retains_grad
    assert b._grad is None


# ------------------------------------------------------------------- which backwards look for hooks


@pytest.fixture
def counted(monkeypatch):
    """Calls that look through a graph for leaves with hooks."""
    calls, count = [], Task.leaf_counts
    monkeypatch.setattr(
        Task, "leaf_counts", lambda task, pending: calls.append(1) or count(task, pending)
    )
    return calls


def test_hooks_elsewhere_cost_a_backward_nothing(counted):
    elsewhere, removed = (ng.ones(2, requires_grad=True) for _ in range(2))
    elsewhere.register_hook(lambda g: None)
    ng.nn.Linear(2, 2).weight.register_hook(lambda g: None)
    x = ng.ones(2, requires_grad=True)
    (x * removed).sum().backward()
    handles = [
        removed.register_hook(lambda g: None),
        node_of(removed).register_prehook(lambda g: None),
        node_of(removed).register_hook(lambda *g: None),
        removed.register_post_accumulate_grad_hook(lambda leaf: None),
    ]
    for handle in handles:
        (x * removed).sum().backward()
        assert counted.pop() == 1
        handle.remove()
    (x * removed).sum().backward()
    assert not counted


@pytest.mark.skipif(not offsets.is_readable(), reason=offsets.obstacle())
def test_leaves_with_hooks_leave_nodes_to_machine_code(monkeypatch):
    machine_code()
    seen = []

    def run():
        x = ng.tensor([1.0, 2.0], requires_grad=True)
        weights = [ng.tensor([3.0, 5.0], requires_grad=True) for _ in range(4)]
        for w in weights:
            w.register_hook(lambda g: seen.append(g.tolist()))
        y = x
        for w in weights:
            y = ng.tanh(y * w + w)
        y.sum().backward()
        return x.grad.tolist()

    expected = run()
    run()
    count = len(seen)

    def evaluate(*given):
        raise AssertionError("a node was left to Python")

    monkeypatch.setattr(ArrayEvaluation, "evaluate", evaluate)
    assert run() == expected
    assert seen[count:] == seen[: count // 2]


def test_a_hook_that_is_registered_on_the_way_runs(lib):
    """At a leaf to which gradients are still to come."""
    x, w = (lib.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    seen, later = [], []
    b = x * w
    y = b * w
    b.register_hook(lambda g: later.append(x.register_hook(lambda g: seen.append(g.tolist()))))
    w.register_hook(lambda g: seen.append("w"))
    y.sum().backward()
    assert seen == [[1.0, 4.0], "w"]
    assert w.grad.tolist() == [2.0, 8.0]


def test_the_hook_of_a_leaf_in_many_places_runs_once(lib):
    """Promise 43: when the last gradient has arrived, before nodes that wait."""
    x, w, order = *(lib.tensor([1.0, 2.0], requires_grad=True) for _ in range(2)), []
    first = x * 2
    first.register_hook(lambda g: order.append("first"))
    y = first + (w * w + w) * w
    w.register_hook(lambda g: order.append(g.tolist()))
    y.sum().backward()
    assert order == [[5.0, 16.0], "first"]


def test_a_path_that_carries_nothing_completes_a_leaf(lib):
    """Promise 43: its hooks run then, and not at the end."""

    class Nothing(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    x, w, order = *(lib.tensor([1.0, 2.0], requires_grad=True) for _ in range(2)), []
    first = w * 2
    first.register_hook(lambda g: order.append("first"))
    x.register_hook(lambda g: order.append(g.tolist()))
    nothing = Nothing.apply(x)
    (x * 3 + nothing + first).sum().backward()
    assert order == [[3.0, 3.0], "first"]


def test_gradients_that_are_zeros_for_want_of_a_dependence_require_grad(lib):
    """Promise 36."""
    x, unused = (lib.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    _, zeros = lib.autograd.grad(
        (x * x).sum(), [x, unused], create_graph=True, materialize_grads=True
    )
    assert zeros.requires_grad
    assert zeros.is_leaf
    (zeros * 3).sum().backward()
    assert zeros.grad.tolist() == [3.0, 3.0]
