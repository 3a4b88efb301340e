"""Finalizers, gc callbacks and signal handlers that run while something is traced or read.

Note [Asides] in ``core.asides``.
"""

import gc
import signal
import threading
import weakref

import numpy as np
import pytest

import numgrad as ng
from numgrad.core import asides
from numgrad.core.interpreter import state


class Record(list):
    """What code that runs aside met: values, or the errors that it caught."""

    def use(self, t):
        """Ask for what has no answer in a trace, and would be part of it."""
        for question in (
            lambda: (t * 2).sum().item(),
            lambda: float(np.exp(t.numpy())[0]),
            lambda: bool((t > 1).all()),
            lambda: ng.tensor([3.0]).tolist(),
            lambda: (ng.zeros(2) + ng.full((2,), 4.0)).tolist(),
        ):
            try:
                self.append(question())
            except Exception as error:
                self.append(error)


EXPECTED = [6.0, np.exp(1.0), False, [3.0], [4.0, 4.0]]


class Owner:
    """What has a finalizer, alone or in a cycle."""

    def __init__(self, record, t, cycle):
        self.record, self.t, self.me = record, t, self if cycle else None

    def __del__(self):
        self.record.use(self.t)


class Plain:
    pass


def in_a_cycle(record, t):
    Owner(record, t, True)
    return gc.collect


def without_a_reference(record, t):
    def happen():
        owner = Owner(record, t, False)
        del owner

    return happen


def replaced(record, t):
    def happen():
        owner = Owner(record, t, False)
        owner = None  # noqa: F841

    return happen


def weak_reference(record, t):
    def happen():
        target = Plain()
        reference = weakref.ref(target, lambda _: record.use(t))
        del target
        assert reference() is None

    return happen


def weak_reference_in_a_cycle(record, t):
    target = Plain()
    target.me = target
    held.append(weakref.ref(target, lambda _: record.use(t)))
    return gc.collect


def finalized(record, t):
    def happen():
        target = Plain()
        weakref.finalize(target, record.use, t)
        del target

    return happen


def callback(record, t):
    def run(phase, info):
        gc.callbacks.remove(run)
        record.use(t)

    gc.callbacks.append(run)
    return gc.collect


def callback_at_the_end(record, t):
    def run(phase, info):
        if phase == "stop":
            gc.callbacks.remove(run)
            record.use(t)

    gc.callbacks.append(run)
    return gc.collect


def handler(record, t):
    signal.signal(signal.SIGTERM, lambda *_: record.use(t))
    return lambda: signal.raise_signal(signal.SIGTERM)


KINDS = [
    in_a_cycle, without_a_reference, replaced, weak_reference, weak_reference_in_a_cycle,
    finalized, callback, callback_at_the_end, handler,
]  # fmt: skip
held = []


@pytest.fixture
def aside():
    """What happens in the middle of something, and the record of it."""
    before = signal.getsignal(signal.SIGTERM), list(gc.callbacks)
    gc.collect()
    gc.disable()
    yield lambda kind: (record := Record(), kind(record, ng.tensor([1.0, 2.0])))
    gc.enable()
    signal.signal(signal.SIGTERM, before[0])
    assert gc.callbacks == before[1]
    held.clear()


TRANSFORMS = {
    "jit": (lambda f: ng.jit(f), 6 * np.e),
    "grad": (lambda f: ng.grad(f), [2 * np.e] * 3),
    "jit(grad)": (lambda f: ng.jit(ng.grad(f)), [2 * np.e] * 3),
    "vmap": (lambda f: ng.vmap(f), [2 * np.e] * 3),
    "jvp": (lambda f: lambda x: ng.jvp(f, (x,), (x,))[1], 6 * np.e),
    "hessian": (lambda f: lambda x: ng.hessian(f)(x).sum(axis=0), [2 * np.e] * 3),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_runs_aside_is_no_part_of_a_transform(aside, kind, transform):
    record, happen = aside(kind)
    wrap, expected = TRANSFORMS[transform]

    def f(x):
        y = np.exp(x)
        happen()
        return np.sum(y * 2)

    found = wrap(f)(np.ones(3))
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert record[: len(EXPECTED)] == EXPECTED
    assert not [each for each in record if isinstance(each, Exception)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_runs_aside_is_no_part_of_a_formula(aside, kind):
    record, happen = aside(kind)

    @ng.elementwise(register=False)
    def twice(x):
        happen()
        return 2 * x

    twice.vjp(x=lambda g: 2 * g)
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    ng.sum(twice(x) * x).backward()
    assert x.grad.tolist() == [4.0, 8.0]
    assert record[: len(EXPECTED)] == EXPECTED
    assert not [each for each in record if isinstance(each, Exception)]


def test_what_a_function_itself_catches_still_comes_back():
    def f(x):
        try:
            return x * float(x)
        except TypeError:
            return x

    with pytest.raises(ng.errors.NumgradTraceError, match="float"):
        ng.jit(f)(np.array(2.0))


def test_a_trace_that_a_finalizer_begins_is_one():
    found = []

    class Compiling:
        def __del__(self):
            found.append(ng.jit(lambda x: np.sum(x * x))(np.arange(3.0)))

            def f(x):
                try:
                    return x * float(x)
                except TypeError:
                    return x

            try:
                ng.jit(f)(np.array(2.0))
            except ng.errors.NumgradTraceError as error:
                found.append(error)

    compiling = Compiling()
    del compiling
    assert found[0] == 5.0
    assert isinstance(found[1], ng.errors.NumgradTraceError)


def test_handlers_are_back_after_a_trace():
    before = signal.getsignal(signal.SIGINT)
    during = []

    def f(x):
        during.append(signal.getsignal(signal.SIGINT))
        return x * 2

    assert ng.jit(f)(3.0) == 6.0
    assert signal.getsignal(signal.SIGINT) is before
    assert during[0] is not before

    def failing(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        ng.jit(failing)(3.0)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_of_a_trace_leaves_the_state_as_it_was():
    def f(x):
        signal.raise_signal(signal.SIGINT)
        return x

    with pytest.raises(KeyboardInterrupt):
        ng.jit(f)(np.ones(2))
    assert state.interpreters == ()
    assert (ng.tensor([1.0]) * 2).item() == 2.0


def test_collections_elsewhere_change_nothing():
    """One thread traces while another collects."""
    x = np.linspace(0, 1, 5)
    started, done = threading.Event(), threading.Event()

    def collect():
        started.set()
        while not done.is_set():
            gc.collect(0)

    thread = threading.Thread(target=collect)
    thread.start()
    started.wait()
    try:
        for k in range(8):
            f = ng.jit(lambda x, k=k: np.sum(np.exp(x) * k))
            np.testing.assert_allclose(f(x), np.sum(np.exp(x) * k), rtol=1e-14)
    finally:
        done.set()
        thread.join()
    assert asides._collections.before is None
