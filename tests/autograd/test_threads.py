"""Backwards in several threads at once, modes that belong to a thread, and forked processes."""

import multiprocessing
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd import forward_ad
from numgrad.core.interpreter import State, state

THREADS = 8
ROUNDS = 25


@pytest.fixture(autouse=True)
def frequent_switches():
    """Let threads take turns a hundred times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 100)
    yield
    sys.setswitchinterval(before)


def in_threads(function, count=THREADS):
    """Results of ``function(k)`` for each ``k``, all started at the same moment."""
    barrier = Barrier(count)

    def run(k):
        barrier.wait(timeout=60)
        return function(k)

    with ThreadPoolExecutor(count) as pool:
        return [
            future.result(timeout=300) for future in [pool.submit(run, k) for k in range(count)]
        ]


def value(x, w):
    """Elementwise operations, reductions, a product of matrices, an index, a value used thrice."""
    h = ng.tanh(x @ w)
    return ng.sum(h * h) + ng.sum(ng.softmax(h)[1:] * h[1:]) + ng.logsumexp(x, axis=1).mean()


def operands(seed, n=6):
    rng = np.random.default_rng(seed)
    return [ng.tensor(rng.normal(size=(n, n)), requires_grad=True) for _ in range(2)]


# ------------------------------------------------------------------------------- separate graphs


@pytest.mark.slow
@pytest.mark.parametrize("n", [6, 160])
def test_separate_graphs(n):
    def gradients(seed):
        x, w = operands(seed, n)
        value(x, w).backward()
        (second,) = ng.autograd.grad(value(x, w), w)
        return [x.grad.numpy(), w.grad.numpy(), second.numpy()]

    def many(seed):
        return [gradients(seed) for _ in range(2)]

    expected = [gradients(seed) for seed in range(THREADS)]
    for runs, serial in zip(in_threads(many), expected, strict=True):
        for found in runs:
            for ours, theirs in zip(found, serial, strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_separate_graphs_of_higher_order():
    def third(seed):
        x = ng.tensor(1.0 + seed, requires_grad=True)
        y = x**4
        for _ in range(3):
            (y,) = ng.autograd.grad(y, x, create_graph=True)
        return y.item()

    expected = [24.0 * (1.0 + seed) for seed in range(THREADS)]
    np.testing.assert_allclose(in_threads(third), expected, rtol=1e-13)


def test_kernels_that_nobody_compiled_yet():
    def fresh(seed):  # shapes no other test has, so that all threads make the same plans
        x = ng.tensor(np.full((2, 3, 5, 7), 0.5), requires_grad=True)
        ng.sum(ng.arctan(x) * x, axis=(0, 2)).sum().backward()
        return x.grad.numpy()

    found = in_threads(fresh)
    np.testing.assert_allclose(found[0], np.arctan(0.5) + 0.5 / 1.25, rtol=1e-15)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_backwards_nested_in_hooks():
    def nested(seed):
        x = ng.tensor(0.75, requires_grad=True)

        def gradient(levels):
            with ng.enable_grad():
                y = x * x
            if levels:
                y.register_hook(lambda g: g * gradient(levels - 1))
            return ng.autograd.grad(y, x)[0]

        return gradient(50).item()

    expected = 1.0
    for _ in range(51):
        expected *= 1.5
    np.testing.assert_allclose(in_threads(nested), [expected] * THREADS, rtol=1e-12)


# ---------------------------------------------------------------------------------- shared leaves


@pytest.mark.parametrize("n", [3, 20_000])
def test_shared_leaves_lose_nothing(n):
    x = ng.zeros(n, requires_grad=True)

    def add(k):
        for _ in range(ROUNDS):
            (x * float(k + 1)).sum().backward()

    in_threads(add)
    np.testing.assert_array_equal(x.grad.numpy(), ROUNDS * THREADS * (THREADS + 1) / 2)
    assert x.grad._version == ROUNDS * THREADS - 1


def test_shared_leaves_with_hooks_lose_nothing():
    x, calls = ng.zeros(3, requires_grad=True), []
    x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda _: calls.append(1))

    def add(k):
        for _ in range(ROUNDS):
            (x * float(k + 1)).sum().backward()

    in_threads(add)
    np.testing.assert_array_equal(x.grad.numpy(), ROUNDS * THREADS * (THREADS + 1))
    assert len(calls) == ROUNDS * THREADS


def test_hooks_come_and_go_in_other_threads():
    def one_leaf(k):
        total = 0.0
        for _ in range(ROUNDS):
            x = ng.ones(2, requires_grad=True)
            handle = x.register_hook(lambda g: g * 10)
            x.sum().backward()
            handle.remove()
            x.sum().backward()
            total += x.grad.numpy().sum()
        return total

    assert in_threads(one_leaf) == [ROUNDS * 22.0] * THREADS


def test_leaves_updated_while_others_compute():
    """As in Hogwild: steps overlap, and the weights converge all the same."""
    rng = np.random.default_rng(5)
    features, true = rng.normal(size=(64, 4)), np.array([1.0, -2.0, 3.0, 0.5])
    targets = features @ true
    w = ng.zeros(4, requires_grad=True)

    def descend(k):
        x, y = ng.tensor(features[k::THREADS]), ng.tensor(targets[k::THREADS])
        for _ in range(ROUNDS * 2):
            now = w.detach().clone().requires_grad_()
            difference = x @ now - y
            (g,) = ng.autograd.grad((difference * difference).mean(), now)
            with ng.no_grad():
                w.sub_(0.02 * g)

    in_threads(descend)
    assert np.abs(w.numpy(force=True) - true).max() < 0.2


# --------------------------------------------------------------------------------- shared graphs


def test_a_shared_part_that_is_retained():
    x = ng.tensor(np.linspace(0.5, 1.5, 50), requires_grad=True)
    shared = ng.exp(x) * x

    def gradient(k):
        return ng.autograd.grad((shared * float(k)).sum(), x, retain_graph=True)[0].numpy()

    expected = np.exp(x.numpy(force=True)) * (1 + x.numpy(force=True))
    for k, found in enumerate(in_threads(gradient)):
        np.testing.assert_allclose(found, k * expected, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("large", [False, True])
def test_a_shared_part_that_one_of_them_frees(large):
    n = 40_000 if large else 5
    values = np.linspace(0.5, 1.5, n)
    expected = np.exp(values) * (1 + values)
    outcomes = []
    for _ in range(10):
        x = ng.tensor(values, requires_grad=True)
        shared = ng.exp(x) * x

        def gradient(k, x=x, shared=shared):
            try:
                return ng.autograd.grad((shared * float(k + 1)).sum(), x)[0].numpy()
            except RuntimeError as error:
                return str(error)

        for k, found in enumerate(in_threads(gradient)):
            if isinstance(found, str):
                assert "freed by an earlier backward" in found
            else:
                np.testing.assert_allclose(found, (k + 1) * expected, rtol=1e-13)
            outcomes.append(type(found))
    assert np.ndarray in outcomes
    assert str in outcomes


def test_accumulators_are_one_per_leaf():
    for _ in range(ROUNDS):
        x = ng.ones(1, requires_grad=True)
        y = x * 2
        found = in_threads(lambda k, y=y: y.grad_fn.next_functions[0][0])
        assert len(set(map(id, found))) == 1


# ------------------------------------------------------------------------- what a thread has alone


def states():
    return (
        ng.is_grad_enabled(),
        ng.is_inference_mode_enabled(),
        ng.autograd.is_anomaly_enabled(),
        (ng.ones(1, requires_grad=True) * 2).requires_grad,
    )


@pytest.mark.filterwarnings("ignore:Anomaly Detection:UserWarning")
def test_modes_belong_to_their_thread():
    usual = states()
    contexts = [
        ng.no_grad,
        ng.inference_mode,
        ng.autograd.detect_anomaly,
        lambda: ng.autograd.graph.saved_tensors_hooks(fail, fail),
        lambda: ng.autograd.graph.disable_saved_tensors_hooks("none"),
        forward_ad.dual_level,
        ng.autograd.graph.allow_mutation_on_saved_tensors,
    ]
    for context in contexts:
        with context():
            assert in_threads(lambda k: states(), 2) == [usual] * 2
    assert states() == usual


def fail(*_):
    raise AssertionError("hooks of another thread")


def test_every_thread_sets_its_own_modes():
    barrier = Barrier(4)

    def work(k):
        mode = ng.no_grad if k % 2 else ng.enable_grad
        found = []
        for _ in range(ROUNDS):
            with mode():
                barrier.wait(timeout=60)
                found.append((ng.ones(1, requires_grad=True) * 2).requires_grad)
        return set(found)

    assert in_threads(work, 4) == [{True}, {False}] * 2


def test_saved_tensors_hooks_of_several_threads():
    def work(k):
        counts = [0, 0]

        def pack(t):
            counts[0] += 1
            return k, t

        def unpack(packed):
            counts[1] += 1
            assert packed[0] == k
            return packed[1]

        x = ng.ones(2, requires_grad=True)
        for _ in range(ROUNDS):
            with ng.autograd.graph.saved_tensors_hooks(pack, unpack):
                y = x * x
            y.sum().backward()
        return counts

    assert in_threads(work) == [[2 * ROUNDS, 2 * ROUNDS]] * THREADS


def test_dual_levels_of_several_threads():
    def work(k):
        for _ in range(ROUNDS):
            with forward_ad.dual_level():
                x = forward_ad.make_dual(ng.tensor(2.0), ng.tensor(float(k)))
                found = forward_ad.unpack_dual(x * x).tangent
                assert found is not None
                assert found.item() == 4.0 * k

    in_threads(work)


def test_a_graph_made_in_one_thread_is_walked_in_another():
    x, w = operands(3)
    loss = value(x, w)
    expected = ng.autograd.grad(loss, [x, w], retain_graph=True)
    found = in_threads(lambda k: ng.autograd.grad(loss, [x, w]), 1)[0]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


# --------------------------------------------------------------------------------------- processes


def large_gradient():
    """A gradient whose kernels run in several threads."""
    x = ng.tensor(np.linspace(-2, 2, 1_000_000), requires_grad=True)
    ng.sum(ng.exp(x) * ng.sin(x)).backward()
    return x.grad.numpy()


def small_gradient():
    x, w = operands(4)
    value(x, w).backward()
    return w.grad.numpy()


def new_kernel():
    x = ng.tensor(np.full((2, 1, 3, 1, 2), 0.5), requires_grad=True)
    ng.arctan(x).sum(axis=(1, 3)).sum().backward()
    return x.grad.numpy()


def in_fork(functions):
    """What each function returns in a forked child."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)

    def child():
        send.send([function() for function in functions])

    process = context.Process(target=child)
    process.start()
    send.close()
    try:
        assert receive.poll(120), "the child hangs"
        return receive.recv()
    finally:
        process.join(10)
        if process.is_alive():
            process.kill()
        assert process.exitcode == 0


@pytest.mark.slow(cases=0)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_gradients_in_a_forked_child():
    functions = [small_gradient, large_gradient, new_kernel]
    expected = [function() for function in functions[:2]]
    small, large, new = in_fork(functions)
    np.testing.assert_array_equal(small, expected[0])
    np.testing.assert_array_equal(large, expected[1])
    np.testing.assert_allclose(new, 0.8, rtol=1e-15)
    np.testing.assert_array_equal(large_gradient(), expected[1])  # the parent goes on


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_fork_continues_the_graph_of_its_parent():
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()

    def child():
        loss.backward()
        return x.grad.tolist()

    assert in_fork([child]) == [[2.0, 4.0]]
    assert x.grad is None
    loss.backward()
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_fork_in_the_middle_of_a_backward():
    x, found = ng.ones(2, requires_grad=True), []
    y = x * 3

    def fork(_):
        with ng.enable_grad():
            found.extend(in_fork([small_gradient]))

    x.register_post_accumulate_grad_hook(fork)
    y.sum().backward()
    np.testing.assert_array_equal(found[0], small_gradient())
    assert x.grad.tolist() == [3.0, 3.0]


# ----------------------------------------------------------------- one mode used by several threads

SHARED_MODES = {
    "no_grad": ng.no_grad,
    "enable_grad": ng.enable_grad,
    "inference_mode": ng.inference_mode,
    "inference_mode(False)": lambda: ng.inference_mode(False),
    "set_grad_enabled(False)": lambda: ng.set_grad_enabled(False),
    "set_grad_enabled(True)": lambda: ng.set_grad_enabled(True),
    "saved_tensors_hooks": lambda: ng.autograd.graph.saved_tensors_hooks(abs, abs),
    "save_on_cpu": ng.autograd.graph.save_on_cpu,
    "set_detect_anomaly(True)": lambda: ng.autograd.set_detect_anomaly(True),
    "set_detect_anomaly(False)": lambda: ng.autograd.set_detect_anomaly(False),
    "detect_anomaly": ng.autograd.detect_anomaly,
    "dual_level": forward_ad.dual_level,
    "record_function": lambda: ng.profiler.record_function("both"),
}


def settings():
    return {name: getattr(state, name) for name in State.__annotations__}


def different():
    """Settings that no mode of ``SHARED_MODES`` leaves all alone, and no new thread has."""
    ng.set_grad_enabled(False)
    ng.autograd.set_detect_anomaly(True, check_nan=False)
    forward_ad.enter_dual_level()
    ng.autograd.graph.saved_tensors_hooks(abs, abs).__enter__()


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("first_out", [0, 1])
@pytest.mark.parametrize("make", SHARED_MODES.values(), ids=SHARED_MODES)
def test_a_mode_that_threads_share_gives_each_its_own_settings_back(make, first_out):
    """Promise 66: one enters after the other, with other settings, and they leave in turn."""
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        other.submit(different).result()
        threads = [one, other]
        alone = [thread.submit(settings).result() for thread in threads]
        mode = one.submit(make).result()
        threads[0].submit(mode.__enter__).result()
        inside = threads[0].submit(settings).result()
        threads[1].submit(mode.__enter__).result()
        assert threads[0].submit(settings).result() == inside
        threads[first_out].submit(mode.__exit__, None, None, None).result()
        threads[1 - first_out].submit(mode.__exit__, None, None, None).result()
        assert [thread.submit(settings).result() for thread in threads] == alone
        # a thread that did not enter it, as one that collects another's generator, keeps its own
        threads[1].submit(mode.__enter__).result()
        threads[0].submit(mode.__exit__, None, None, None).result()
        assert threads[0].submit(settings).result() == alone[0]


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("make", SHARED_MODES.values(), ids=SHARED_MODES)
def test_a_decorated_function_that_threads_run_at_once(make):
    """Each call returns to the settings of its thread, whichever ends first."""
    mode = make()
    if not callable(mode):
        mode.__exit__(None, None, None)
        ng.autograd.set_detect_anomaly(False)  # which changes at once
        pytest.skip("is no decorator")
    inside, may_end = [Event(), Event()], [Event(), Event()]

    @mode
    def function(k):
        inside[k].set()
        assert may_end[k].wait(60)
        return settings()

    def call(k):
        before = settings()
        during = function(k)
        return before == settings(), during["grad_enabled"]

    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        other.submit(different).result()
        calls = []
        for k, thread in enumerate((one, other)):
            calls.append(thread.submit(call, k))
            assert inside[k].wait(60)
        for event, running in zip(may_end, calls, strict=True):
            event.set()
            assert running.result(60)[0]


def test_a_mode_that_is_entered_again_by_its_thread():
    with ng.no_grad() as mode:
        with ng.enable_grad(), mode, ng.enable_grad():
            with mode:
                assert not ng.is_grad_enabled()
            assert ng.is_grad_enabled()
        assert not ng.is_grad_enabled()
    mode = ng.set_grad_enabled(False)
    for _ in range(2):
        with mode, mode:
            assert not ng.is_grad_enabled()
        assert ng.is_grad_enabled()
    assert state.entered == ()
