"""What nodes keep, and hooks that keep it: promises 91 to 94 of SEMANTICS.md; no cycles."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.interpreter import state

A = np.array([0.3, -0.7, 1.1])


def leaf(lib, values=A):
    return lib.tensor(values, requires_grad=True)


def as_they_are(lib, packed=None, unpacked=None):
    """Hooks that pass tensors on, and note them in lists."""

    def pack(t):
        if packed is not None:
            packed.append(t)
        return t

    def unpack(t):
        if unpacked is not None:
            unpacked.append(t)
        return t

    return lib.autograd.graph.saved_tensors_hooks(pack, unpack)


# ------------------------------------------------------------------------------ promise 91


COUNTS = {
    "x * x": (lambda lib, x: x * x, 2),
    "x * constant": (lambda lib, x: x * lib.ones(3), 1),
    "x * 3": (lambda lib, x: x * 3, 0),
    "exp": (lambda lib, x: x.exp(), 1),
    "x + x": (lambda lib, x: x + x, 0),
    "sum": (lambda lib, x: x.sum(), 0),
    "view": (lambda lib, x: x[1:].reshape(2, 1), 0),
    "x @ x": (lambda lib, x: x @ x, 2),
    "detached": (lambda lib, x: x.detach() * lib.ones(3), 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_how_often_the_pack_hook_runs(lib, name):
    """Promise 91."""
    function, count = COUNTS[name]
    packed, x = [], leaf(lib)
    with as_they_are(lib, packed):
        function(lib, x)
    assert len(packed) == count


def test_nothing_is_packed_where_nothing_is_recorded(lib):
    """Promise 91."""
    packed, x = [], leaf(lib)
    with as_they_are(lib, packed), lib.no_grad():
        x * x
    assert packed == []


# ------------------------------------------------------------------------------ promise 92


def test_the_innermost_pair_wins(lib):
    """Promise 92."""
    outer, inner, x = [], [], leaf(lib)
    with as_they_are(lib, outer):
        y = x.exp()
        with as_they_are(lib, inner):
            y = y.exp()
        y = y.exp()
    assert (len(outer), len(inner)) == (2, 1)
    y.exp()
    assert (len(outer), len(inner)) == (2, 1)


def test_packed_once_and_unpacked_on_every_access(lib):
    """Promise 92."""
    packed, unpacked, x = [], [], leaf(lib)
    with as_they_are(lib, packed, unpacked):
        y = x.exp()
    for count in range(1, 3):
        y.sum().backward(retain_graph=True)
        assert len(unpacked) == count
    y.grad_fn._saved_result  # noqa: B018 (reading it unpacks)
    assert (len(packed), len(unpacked)) == (1, 3)


def test_hooks_see_new_objects_over_the_same_memory():
    """Promise 92."""
    packed, x = [], leaf(ng)
    with as_they_are(ng, packed):
        y = (x * x).exp()
    for t, saved in zip(packed, (x, x, y), strict=True):
        assert t is not saved  # PyTorch hands out operands as they are
        assert not t.requires_grad
        assert np.shares_memory(t.numpy(), saved.detach().numpy())


def test_the_pack_hook_must_not_change_its_argument(lib, raises):
    """Promise 92."""
    x = leaf(lib)

    def pack(t):
        with lib.no_grad():
            t *= 2
        return t

    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = x * 1.5
        with raises(RuntimeError, "in place"):
            y.exp()


@pytest.mark.parametrize("nothing", [None, 1.0, A])
def test_the_unpack_hook_returns_a_tensor(lib, raises, nothing):
    """Promise 92."""
    x = leaf(lib)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: nothing):
        y = x.exp().sum()
    with raises(TypeError, "unpack hook returned"):
        y.backward()
    assert x.grad is None


def test_the_unpack_hook_returns_the_same_shape_and_dtype():
    """Promise 92."""
    for wrong in (ng.zeros(2), ng.zeros(3, dtype="float32")):
        x = leaf(ng)
        with ng.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t, wrong=wrong: wrong):
            y = x.exp().sum()
        with pytest.raises(ng.NumgradRuntimeError, match="unpack hook returned shape"):
            y.backward()


def test_saved_tensor_hooks_are_functions(lib):
    """Promise 92."""
    with pytest.raises(TypeError), lib.autograd.graph.saved_tensors_hooks(lambda t: t, 3):
        leaf(lib).exp().sum().backward()


def test_hooks_may_change_values(lib):
    """Promise 92."""
    x = leaf(lib)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t * 10, lambda t: t):
        y = (x * x).sum()
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), 20 * A, rtol=1e-15)


def test_operations_in_hooks_are_neither_recorded_nor_packed(lib):
    """Promise 92."""
    seen, x = [], leaf(lib)

    def pack(t):
        seen.append((t * t).requires_grad)
        return t

    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        x.exp()
    assert seen == [False]


# ------------------------------------------------------------------------ promises 93 and 94


def test_modes_that_an_unpack_hook_enters_end_with_it():
    def unpack(tensor):
        ng.no_grad().__enter__()
        return tensor

    x, before = ng.tensor([2.0], requires_grad=True), dict(vars(state))
    with ng.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        ng.sum(x * x).backward()
    assert vars(state) == before
    np.testing.assert_array_equal(x.grad.numpy(), [4.0])


@pytest.mark.parametrize("enter", [
    lambda: ng.set_grad_enabled(False), lambda: ng.no_grad().__enter__(),
    lambda: ng.inference_mode().__enter__(),
])  # fmt: skip
def test_modes_that_a_users_code_enters_end_with_it(enter):
    class Double(ng.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            enter()
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            enter()
            return 2 * g

    def hook(g):
        enter()

    x, before = ng.tensor([2.0], requires_grad=True), dict(vars(state))
    y = Double.apply(x * x)
    assert vars(state) == before
    y.register_hook(hook)
    y.sum().backward()
    assert vars(state) == before
    np.testing.assert_array_equal(x.grad.numpy(), [8.0])


def test_hooks_can_be_disabled(lib):
    """Promise 93."""
    graph = lib.autograd.graph
    with graph.disable_saved_tensors_hooks("outer"):
        with pytest.raises(RuntimeError, match=r"^outer$"), as_they_are(lib):
            pass
        with (
            graph.disable_saved_tensors_hooks("inner"),
            pytest.raises(RuntimeError, match=r"^inner$"),
            as_they_are(lib),
        ):
            pass
        with pytest.raises(RuntimeError, match=r"^outer$"), as_they_are(lib):
            pass
    with as_they_are(lib):
        leaf(lib).exp()


def test_errors_of_hooks_keep_their_type(lib):
    """Promise 94."""

    def fail(t):
        raise LookupError("mine")

    hooks = lib.autograd.graph.saved_tensors_hooks
    x = leaf(lib)
    with hooks(fail, lambda t: t), pytest.raises(LookupError, match="mine"):
        x.exp()
    with hooks(lambda t: t, fail):
        y = x.exp().sum()
    with pytest.raises(LookupError, match="mine"):
        y.backward()
    assert x.grad is None
    (x * x).sum().backward()  # both contexts were left
    np.testing.assert_allclose(x.grad.numpy(), 2 * A, rtol=1e-15)


# --------------------------------------------------------------- what is packed, what comes back


KINDS = {
    "operands": lambda x: ng.sum(x * x * x),
    "result": lambda x: ng.sum(ng.tanh(ng.exp(x))),
    "reduction": lambda x: ng.logsumexp(x * 2, axis=1).sum() + ng.max(x) + ng.prod(x),
    "several operands": lambda x: ng.sum(ng.concat([x, x * x]) ** 2),
    "several results": lambda x: ng.sum(ng.prod(ng.stack(ng.unstack(x * x)), axis=0)),
    "product": lambda x: ng.sum(ng.exp(x @ x.mT)),
    "strided": lambda x: ng.sum(ng.exp(x.mT[::2]) * x.mT[::2]),
    "condition": lambda x: ng.sum(ng.where(x > 0, ng.sin(x), x * x)),
    "array": lambda x: ng.sum(x * np.arange(6.0).reshape(2, 3)),
    "index": lambda x: ng.sum(x[np.array([0, 0, 1])] ** 2),
}


def by_bytes():
    """Hooks that keep nothing but bytes."""

    def pack(t):
        return t.numpy().tobytes(), t.shape, t.dtype

    def unpack(kept):
        content, shape, dtype = kept
        return ng.tensor(np.frombuffer(content, dtype).reshape(shape))

    return ng.autograd.graph.saved_tensors_hooks(pack, unpack)


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize("kind", KINDS)
def test_values_that_were_packed_give_the_same_gradients(kind):
    a = np.random.default_rng(2).normal(size=(2, 3))
    x, z = leaf(ng, a), leaf(ng, a)
    with by_bytes():
        y = KINDS[kind](x)
    y.backward()
    KINDS[kind](z).backward()
    np.testing.assert_array_equal(x.grad.numpy(), z.grad.numpy())


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives_through_packed_values(kind):
    a = np.random.default_rng(3).normal(size=(2, 3))

    def packed(x):
        with by_bytes():
            return KINDS[kind](x)

    assert ng.testing.gradgradcheck(packed, (leaf(ng, a),))


# --------------------------------------------------------------------------------- recipes


class OnDisk:
    """A saved tensor in a file, which goes with it."""

    def __init__(self, directory, tensor):
        self.path = Path(directory, f"{id(self)}.npy")
        np.save(self.path, tensor.numpy())

    def __del__(self):
        self.path.unlink(missing_ok=True)

    def load(self):
        return ng.from_numpy(np.load(self.path))


def test_recipe_saved_tensors_on_disk(tmp_path):
    x = leaf(ng)
    with ng.autograd.graph.saved_tensors_hooks(lambda t: OnDisk(tmp_path, t), OnDisk.load):
        y = ng.sum(ng.exp(ng.sin(x) * x))
    assert len(list(tmp_path.iterdir())) == 4  # x; sin(x) and x; the result of exp
    y.backward(retain_graph=True)
    expected = np.exp(np.sin(A) * A) * (np.cos(A) * A + np.sin(A))
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-14)
    assert len(list(tmp_path.iterdir())) == 4
    y.backward()
    assert list(tmp_path.iterdir()) == []
    np.testing.assert_allclose(x.grad.numpy(), 2 * expected, rtol=1e-14)


def test_recipe_files_go_with_the_graph(tmp_path):
    with ng.autograd.graph.saved_tensors_hooks(lambda t: OnDisk(tmp_path, t), OnDisk.load):
        y = leaf(ng).exp()
    assert len(list(tmp_path.iterdir())) == 1
    del y
    assert list(tmp_path.iterdir()) == []


def test_recipe_hooks_in_other_threads():
    log = []

    def work(x):
        return ng.exp(x)

    def work_with_hooks(x):
        with as_they_are(ng, log):
            return ng.exp(x)

    x = leaf(ng)
    with as_they_are(ng, log), ThreadPoolExecutor(1) as pool:
        pool.submit(work, x).result()
        assert log == []  # hooks do not reach other threads
        y = pool.submit(work_with_hooks, x).result()
        assert len(log) == 1
    ng.sum(y).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(A), rtol=1e-15)


def test_unpacking_in_another_thread(tmp_path):
    x = leaf(ng)
    with ng.autograd.graph.saved_tensors_hooks(lambda t: OnDisk(tmp_path, t), OnDisk.load):
        y = ng.sum(ng.exp(x))
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(A), rtol=1e-15)


# --------------------------------------------------------------------------- no reference cycles


def _retained(x):
    y = ng.sin(x)
    y.retain_grad()
    ng.sum(y).backward(retain_graph=True)
    return ng.exp(y)


def _written(x):
    y = ng.sin(x)
    y.mul_(y)
    y[0] += 1
    return ng.exp(y)


def _written_through_a_view(x):
    y = ng.sin(x)
    view = y[1:]
    view.exp_()
    return y * y


def _hooked(x):
    y = ng.sin(x)
    y.register_hook(lambda g: g * 2)
    y.grad_fn.register_prehook(lambda grads: None)
    return ng.exp(y)


def _packed(x):
    with as_they_are(ng):
        return ng.tanh(ng.exp(x) * x)


GRAPHS = {
    "elementwise": lambda x: ng.tanh(ng.exp(x) * x),
    "where": lambda x: ng.where(x > 0, ng.sqrt(x * x), x),
    "sum": lambda x: ng.sum(ng.exp(x), axis=0),
    "logsumexp": lambda x: ng.logsumexp(ng.sin(x), axis=1),
    "max": lambda x: ng.max(ng.exp(x), axis=1),
    "softmax": lambda x: ng.softmax(ng.exp(x)),
    "cumulative": lambda x: ng.cumulative_sum(ng.exp(x), axis=0),
    "views": lambda x: ng.exp(x).mT[1:].reshape(-1),
    "matmul": lambda x: ng.exp(x) @ ng.sin(x).mT,
    "unstack": lambda x: ng.unstack(ng.exp(x))[0] * 2.0,
    "concat": lambda x: ng.concat([ng.exp(x), x]),
    "index": lambda x: ng.exp(x)[np.array([0, 1, 1])],
    "cumulative product": lambda x: ng.cumulative_prod(ng.exp(x), axis=1),
    "einsum": lambda x: ng.einsum("ij,kj->ik", ng.exp(x), x),
    "retained gradient": _retained,
    "written": _written,
    "written through a view": _written_through_a_view,
    "hooks": _hooked,
    "packed": _packed,
    "checkpoint": lambda x: ng.checkpoint(lambda x: ng.exp(ng.sin(x)), x * 1),
}


def _nodes(node, found):
    """All nodes that a node leads to."""
    if node is not None and id(node) not in found and hasattr(node, "saved"):
        found[id(node)] = node
        for function, _ in node.next_functions:
            _nodes(function, found)
    return found.values()


def _watched(y, x):
    """Weak references to all that the graph of ``y`` is made of, but for the leaf's own array."""
    alive = [weakref.ref(y), weakref.ref(y._array)]
    for node in _nodes(y.grad_fn, {}):
        alive.append(weakref.ref(node))
        for value in node.saved or ():
            array = value._array if isinstance(value, ng.Tensor) else value
            if isinstance(array, np.ndarray) and array is not x._array:
                alive.append(weakref.ref(array))
    return alive


AFTER = {
    "forward": lambda y, x: None,
    "backward": lambda y, x: ng.sum(y).backward(),
    "retained backward": lambda y, x: ng.sum(y).backward(retain_graph=True),
    "recorded gradient": lambda y, x: ng.autograd.grad(ng.sum(y), x, create_graph=True),
    "looked at": lambda y, x: (repr(y), y.grad_fn.next_functions, y.grad_fn.metadata),
}


@pytest.mark.slow
@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_is_released_with_its_result(name, after):
    x = leaf(ng, np.random.default_rng(4).normal(size=(2, 3)))
    AFTER[after](GRAPHS[name](x), x)  # compiling leaves cycles of its own behind
    gc.disable()
    try:
        y = GRAPHS[name](x)
        alive = _watched(y, x)
        AFTER[after](y, x)
        del y
        assert not [kept for reference in alive if (kept := reference()) is not None]
    finally:
        gc.enable()


def test_an_inner_result_keeps_only_its_own_past():
    gc.disable()
    try:
        x = leaf(ng)
        inner = ng.exp(x)
        node = weakref.ref(ng.sin(inner).grad_fn)
        assert node() is None
        past = weakref.ref(inner.grad_fn)
        assert past() is not None
        del inner
        assert past() is None
    finally:
        gc.enable()


def test_a_backward_frees_arrays_while_the_result_lives():
    gc.disable()
    try:
        x = leaf(ng)
        inner = ng.exp(x)
        array = weakref.ref(inner._array)
        y = ng.sum(ng.sin(inner))
        del inner
        assert array() is not None
        y.backward()
        assert array() is None
    finally:
        gc.enable()
