"""Hot paths in machine code do what Python's do: Note [Hot paths] in ``codegen.cpython``."""

import gc
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.engine import walk
from numgrad.autograd.engine.gradients import ArrayEvaluation
from numgrad.codegen.cpython import (
    backward_walk,
    builtin,
    c_api,
    hot_paths,
    kernel_entry,
    offsets,
    records,
)
from numgrad.core.declare import elementwise
from numgrad.core.op import OPS
from numgrad.errors import NumgradRuntimeError
from numgrad.tensors import recorder
from tests.python_paths import machine_code, python_paths

R = np.random.default_rng(0)
pytestmark = pytest.mark.skipif(not offsets.is_readable(), reason=offsets.obstacle())


@pytest.fixture(autouse=True)
def installed():
    machine_code()
    assert walk._advance is not None
    assert not recorder.is_watched()


@pytest.fixture
def in_python():
    """Do with Python what is called."""

    def run(function, *args):
        with python_paths():
            return function(*args)

    return run


def leaf(*shape, dtype="float64"):
    return ng.tensor(R.uniform(0.5, 1.5, shape).astype(dtype), requires_grad=True)


def chain(a, b):
    return ng.sum(ng.exp(ng.tanh(a * b) + a))


def numbers(a, b):
    return ng.sum((2 * a - 0.5) / b + (b - 1) * True)


def shared(a, b):
    c = a * b
    return (c * c + c / (1 + c)).sum() * a.sum()


def broadcast(a, b):
    row = a.sum(axis=0)
    return ng.sum(ng.sqrt(row * b) + b)


def views(a, b):
    return ng.sum(ng.exp(a[1:] - a[:-1] ** 2) + b[1:]) + ng.sum(a.T * b.T)


def several(a, b):
    first, second = ng.split(ng.stack([a * b, a]), 2)
    return ng.sum(ng.tanh(first) * second) + ng.max(a)


def written(a, b):
    c = a * 1.0
    c[0] = b[0]
    c *= b
    return ng.sum(ng.exp(c))


def reused(a, b):
    c = a.detach()
    return ng.sum(ng.exp(c * b) * a) + ng.sum(ng.nn.Parameter(b) * a)


def frozen(a, b):
    with ng.no_grad():
        c = ng.exp(a * b)
    return ng.sum(c * a + c - b)


ANY, VECTORS = (chain, numbers, shared, reused, frozen), (views, several, written, broadcast)
CASES = [
    *((program, shape, "float64") for program in ANY for shape in [(), (5,), (3, 4), (2, 0)]),
    *((program, shape, "float64") for program in VECTORS for shape in [(5,), (3, 4), (1, 1)]),
    *((program, (3, 4), "float32") for program in (*ANY, *VECTORS)),
    *((program, (5,), "complex128") for program in ANY),
]


def gradients(program, a, b):
    for x in (a, b):
        x.grad = None
    y = program(a, b)
    y.backward(retain_graph=1)  # anything that is true
    y.backward()
    return [t.numpy(force=True).copy() for t in (y, a.grad, b.grad)]


@pytest.mark.parametrize(("program", "shape", "dtype"), CASES)
def test_the_same_bits(program, shape, dtype, in_python):
    a, b = leaf(*shape, dtype=dtype), leaf(*shape, dtype=dtype)
    if dtype == "complex128":
        compute = program
        program = lambda a, b: ng.real(compute(a, b))  # noqa: E731
    gradients(program, a, b)  # now there are plans and steps
    found = gradients(program, a, b)
    usual = in_python(gradients, program, a, b)
    for one, other in zip(found, usual, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()


def test_ordinary_nodes_and_calls_are_left_to_machine_code(monkeypatch):
    a, b = leaf(6), leaf(6)
    gradients(chain, a, b)
    a.grad = b.grad = None
    called = set()

    def evaluate(*given):
        raise AssertionError("a node was left to Python")

    monkeypatch.setattr(ArrayEvaluation, "evaluate", evaluate)
    sys.setprofile(lambda frame, what, given: called.add(frame.f_code.co_name))
    chain(a, b).backward()
    sys.setprofile(None)
    assert a.grad is not None
    assert "entry" not in called
    assert {"backward", "walk"} <= called


def test_a_longer_walk_than_python_waits_for():
    x = leaf(3)
    y = x
    for _ in range(2 * backward_walk.MOST + 17):
        y = y + x * 0.0
    ng.sum(y).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(3))


def test_errors_are_those_of_python():
    a, b = leaf(4), leaf(4)
    gradients(shared, a, b)
    y = shared(a, b)
    y.backward()
    with pytest.raises(RuntimeError, match="was freed by an earlier backward"):
        y.backward()
    c = a * 1.0
    y = ng.sum(ng.sin(c * b))
    c.add_(1.0)
    with pytest.raises(RuntimeError, match="in-place"):
        y.backward()
    with pytest.raises(ValueError, match="broadcast"):
        a * leaf(3)
    with pytest.raises(TypeError):
        ng.exp(a, 1, 2)
    with pytest.raises(ValueError, match="bits"):
        a * 2**2000
    before = [x.grad.numpy().copy() for x in (a, b)]
    y = shared(a, b)
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    for x, grad in zip((a, b), before, strict=True):
        np.testing.assert_array_equal(x.grad.numpy(), grad)


def test_hooks_in_the_middle_run_once():
    a, b = leaf(4), leaf(4)
    plain = gradients(chain, a, b)
    a.grad = b.grad = None
    t = ng.tanh(a * b)
    seen = []
    t.register_hook(lambda g: seen.append(g) or g * 2.0)
    t.retain_grad()
    ng.sum(ng.exp(t + a)).backward()
    assert len(seen) == 1
    np.testing.assert_array_equal(t.grad.numpy(), 2 * seen[0].numpy())
    np.testing.assert_allclose(b.grad.numpy(), plain[2])  # twice that of one backward, as above


def test_what_is_saved_may_be_replaced():
    a, b = leaf(4), leaf(4)
    gradients(chain, a, b)
    y = ng.sum(a * b)
    a.grad = None
    b.data = ng.tensor(np.full(4, 3.0))
    y.backward()
    np.testing.assert_array_equal(a.grad.numpy(), np.full(4, 3.0))


@pytest.mark.parametrize("values", [np.ones(3), np.ones((4, 1)), np.ones(4, "complex64")])
@pytest.mark.parametrize("by", ["machine code", "python"])
def test_what_is_saved_keeps_its_shape_and_dtype(values, by, in_python):
    def run():
        x, w = ng.tensor(np.ones(4)), leaf()
        y = ng.sum(w * x)
        x.data = ng.tensor(values)
        with pytest.raises(RuntimeError, match="in-place"):
            y.backward()
        y = ng.sum(ng.abs(w * x))
        y.backward()
        assert w.grad.numpy() == pytest.approx(values.size)

    run() if by == "machine code" else in_python(run)


def test_modes():
    a, b = leaf(4), leaf(4)
    assert chain(a, b).requires_grad
    for mode in (ng.no_grad, ng.inference_mode):
        with mode():
            y = chain(a, b)
        assert not y.requires_grad
        assert y.grad_fn is None
        assert y.is_inference() is (mode is ng.inference_mode)
    with ng.inference_mode():
        frozen = ng.tensor(np.ones(4))
    with pytest.raises(RuntimeError, match="inference mode"):
        a * frozen
    packed = []
    with ng.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        chain(a, b).backward()
    assert len(packed) == 4
    with pytest.warns(UserWarning, match="slow"), ng.autograd.detect_anomaly():
        assert chain(a, b).grad_fn.extras is not None
    x = ng.asarray(np.ones(4))
    y = ng.sum(x * a)
    assert type(y.grad_fn.edges[0].saved[0]) is not ng.Tensor  # the owner may write to it


def test_a_formula_that_is_declared_anew():
    @elementwise(register=False)
    def halved(x):
        """Half."""
        return 0.5 * x

    halved.vjp(x=lambda g: 0.5 * g)
    a = leaf(4)
    for _ in range(3):
        a.grad = None
        ng.sum(halved(a)).backward()
    np.testing.assert_array_equal(a.grad.numpy(), np.full(4, 0.5))
    halved.vjp(x=lambda g: 7.0 * g)
    for _ in range(3):
        a.grad = None
        ng.sum(halved(a)).backward()
    np.testing.assert_array_equal(a.grad.numpy(), np.full(4, 7.0))


def test_more_shapes_than_places():
    for _ in range(2):
        for n in range(1, 200):
            x = ng.tensor(np.full(n, 2.0))
            assert np.array_equal((x * x).numpy(), np.full(n, 4.0))


def test_no_object_is_kept_or_lost():
    a, b = leaf(4), leaf(4)
    objects = [ng.Tensor, np.ndarray, np.dtype("f8"), tuple, a, b, a._array]
    everywhere = [None, True, False]  # others use them too

    def run():
        for _ in range(20):
            for program in (chain, shared, numbers):
                y = program(a, b)
                ng.autograd.grad(y, [a, b], retain_graph=True)
                y.backward()
                a.grad = b.grad = None
        gc.collect()
        counts = np.array([*map(sys.getrefcount, everywhere), 10 * len(gc.get_objects())])
        return [sys.getrefcount(x) for x in objects], counts

    run()
    seen = [run() for _ in range(4)]  # what else the process does may make objects in one of them
    assert all(references == seen[0][0] for references, _ in seen)
    growth = [abs(after - before).max() for (_, before), (_, after) in pairwise(seen)]
    assert min(growth) < 200


def test_threads():
    a, b = leaf(50), leaf(50)
    expected = gradients(shared, a, b)
    found = []

    def work():
        x, y = (ng.tensor(t.numpy(force=True), requires_grad=True) for t in (a, b))
        for _ in range(50):
            found.append(gradients(shared, x, y))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 200
    for values in found:
        assert all(np.array_equal(x, y) for x, y in zip(values, expected, strict=True))


# ------------------------------------------------------------------------------- writes in place


def read_only():
    x = ng.asarray(np.arange(1.0, 67.0))
    x._array.flags.writeable = False
    return x


def without_history():
    with ng.no_grad():
        return ng.tensor(np.arange(1.0, 69.0), requires_grad=True)[1:67]


WRITTEN_TO = {
    "array": lambda: ng.tensor(np.arange(1.0, 67.0)),
    "of float32": lambda: ng.tensor(np.arange(1.0, 67.0, dtype="float32")),
    "of integers": lambda: ng.tensor(np.arange(1, 67)),
    "a user's": lambda: ng.asarray(np.arange(1.0, 67.0)),
    "read-only": read_only,
    "view": lambda: ng.tensor(np.arange(69.0))[2:68],
    "strided": lambda: ng.tensor(np.arange(132.0))[::2],
    "leaf": lambda: ng.tensor(np.arange(1.0, 67.0), requires_grad=True),
    "view of a leaf": lambda: ng.tensor(np.arange(1.0, 69.0), requires_grad=True)[1:67],
    "view of a leaf without history": without_history,
    "result": lambda: ng.tensor(np.arange(1.0, 67.0), requires_grad=True) * 1.0,
    "parameter": lambda: ng.nn.Parameter(np.arange(1.0, 67.0)),
}
WRITES = {
    "number": lambda x: x.multiply_(1.5),
    "integer": lambda x: x.add_(2),
    "operator": lambda x: x.__isub__(ng.tensor(np.linspace(0.5, 1.5, 66))),
    "itself": lambda x: x.multiply_(x),
    "function": lambda x: x.sqrt_(),
    "across": lambda x: x[1:].add_(x[:-1]),
    "broadcast": lambda x: x.divide_(ng.tensor(3.0)),
    "too many": lambda x: x.add_(ng.ones((2, 66))),
    "recorded": lambda x: x.multiply_(ng.tensor(np.ones(66), requires_grad=True)),
    "numbers": lambda x: x.copy_(ng.tensor(np.linspace(0.5, 1.5, 66))),
    "zeros": lambda x: x.zero_(),
    "one": lambda x: x.fill_(0.1),
    "part": lambda x: x.__setitem__(slice(1, 3), x[2:4]),
}


def write_several(make, write, recording):
    """What writes leave: numbers, versions, histories, or the class of an error."""
    seen = []
    for _ in range(3):
        x = make()
        try:
            with ng.set_grad_enabled(recording):
                assert write(x) is x or write in (WRITES["across"], WRITES["part"])
            y = (x * x).sum()
            if y.requires_grad:
                y.backward()
            seen.append((x.numpy(force=True).tolist(), x._version, x.requires_grad, x.is_leaf))
        except Exception as error:
            seen.append((type(error), str(error)))
    assert all(str(each) == str(seen[0]) for each in seen)
    return seen[0]


@pytest.mark.parametrize("target", WRITTEN_TO)
def test_writes_in_place_are_those_of_python(target, in_python):
    for name, write in WRITES.items():
        for recording in (True, False):
            args = WRITTEN_TO[target], write, recording
            expected = in_python(write_several, *args)
            assert str(write_several(*args)) == str(expected), name


def test_numbers_written_in_place_are_those_of_numpy():
    x, other = ng.tensor(np.arange(1.0, 7.0)), np.linspace(0.5, 1.5, 6)
    expected = np.arange(1.0, 7.0)
    for _ in range(3):
        x += ng.tensor(other)
        x *= 0.5
        x[1:] -= x[:-1]
        x /= ng.tensor(2.0)
        expected += other
        expected *= 0.5
        expected[1:] -= expected[:-1]
        expected /= 2.0
    assert x.numpy().tolist() == expected.tolist()
    assert x._version == 15  # the part is written, and stored


def test_what_was_saved_before_a_write_is_missed():
    x, y = leaf(4), ng.tensor(np.ones(4))
    for _ in range(3):
        z = (x * y).sum()
        y *= 2.0
        with pytest.raises(NumgradRuntimeError, match="version"):
            z.backward()


def test_memory_of_users_is_guarded(in_python):
    """Operands over a user's ndarray are saved as they are now, or their change is missed."""

    def run(requires_grad):
        memory = np.arange(1.0, 4.0)
        x, w = ng.asarray(memory), leaf(3)
        x.requires_grad = requires_grad
        z = (x * w).sum()
        memory[:] = 7.0
        try:
            z.backward()
        except NumgradRuntimeError as error:
            return str(error)
        return w.grad.numpy().tolist()

    for requires_grad in (False, True):
        assert [run(requires_grad) for _ in range(3)] == [in_python(run, requires_grad)] * 3
    assert run(False) == [1.0, 2.0, 3.0]


# --------------------------------------------------------------------- what is out of the ordinary


def test_more_operands_than_an_integer_has_bits(in_python):
    @ng.jit
    def product_sum(xs):
        total = xs[0] * xs[0]
        for x in xs[1:]:
            total = total + x * xs[0]
        return total

    xs = [leaf(3) for _ in range(70)]

    def run():
        for x in xs:
            x.grad = None
        inner = [x * 1.5 for x in xs]
        ng.sum(product_sum(inner) * inner[0] + inner[69]).backward()
        return [x.grad.numpy().copy() for x in xs]

    assert all(map(np.array_equal, run(), in_python(run)))


@pytest.mark.parametrize("truth", [1, np.True_])
def test_any_truth_says_that_gradients_are_wanted(truth):
    x = ng.ones(3, requires_grad=truth)
    assert x.requires_grad is True
    x._requires_grad = truth
    for _ in range(3):
        assert (x * x).requires_grad
        assert ng.exp(x).requires_grad


def test_a_tensor_that_nobody_initialised():
    with pytest.raises(AttributeError):
        ng.exp(ng.Tensor.__new__(ng.Tensor))


@pytest.mark.parametrize("at", ["cached", "install"])
def test_what_cannot_be_installed_stays_in_python(at, monkeypatch):
    def broken():
        raise AttributeError("no such thing")

    told = []
    monkeypatch.setattr(hot_paths, "tell", told.append)
    monkeypatch.setattr(recorder.RECORDER, "in_use", False)
    monkeypatch.setattr(recorder.RECORDER.code, "load", broken)
    cached = broken if at == "cached" else lambda: True
    monkeypatch.setattr(hot_paths, "waiting", [hot_paths.HotPath(cached, recorder.RECORDER._use)])
    hot_paths.install(only_cached=True)
    assert len(told) == 1
    assert not hot_paths.waiting
    assert not recorder.RECORDER.in_use


def test_a_record_lives_as_long_as_its_place():
    class Forgetful(dict):
        def __setitem__(self, key, record):
            super().__setitem__(key, record)
            entry.clear()  # as another thread, or a finalizer

    op = OPS["exp"]
    entry = recorder.MachineEntry(op, op.in_python, recorder.RECORDER)
    entry._records = Forgetful()
    x = leaf(5)
    assert np.array_equal(entry.call(x).numpy(force=True), ng.exp(x).numpy(force=True))
    assert [type(found) for found in entry._table if found is not None] == [c_api.Words]
    entry.call(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(x.numpy(force=True)), rtol=1e-14)


def test_a_record_is_that_of_its_plan():
    class Changing(dict):
        def get(self, key):
            x.data = ng.tensor(np.ones(9))  # as another thread
            return super().get(key)

    op = OPS["exp"]
    entry = recorder.MachineEntry(op, op.in_python, recorder.RECORDER)
    entry._plans, x = Changing(op.plans), leaf(5)
    entry._call_and_learn(0, x)
    (record,) = entry._records.values()
    entry._table[:] = [record] * len(entry._table)
    assert entry.call(x).shape == (9,)


def test_what_machine_code_reads_is_held():
    referenced = OPS["exp"].shortcuts.call.__self__.referenced
    assert any(each is recorder.RECORDER.objects for each in referenced)
    assert any(each is walk._objects for each in walk._advance.__self__.referenced)


# ------------------------------------------------------------------------- what they are made of


def test_functions_of_python_in_machine_code():
    text = f"""\
from numba import int64
from numgrad.codegen.intrinsics import peek
from numgrad.codegen.cpython.objects import poke, keep, new_tuple, new_int

def kernel(me, args, count, names):
    pair = new_tuple(2)
    first = peek(int64, args)
    keep(first)
    poke(first, pair + {offsets.TUPLE})
    poke(new_int(count + peek(int64, me + {offsets.BYTES})), pair + {offsets.TUPLE + 8})
    return pair
"""
    made = builtin.Builtin("pair", text).function("pair", c_api.Words.of(40))
    thing = object()
    before = sys.getrefcount(thing)
    assert made(thing, 1) == (thing, 42)
    assert sys.getrefcount(thing) == before


def test_slots_that_machine_code_can_fill():
    x = np.ones((2, 3))
    entry = OPS["multiply"].plan((x, x)).entry
    found = records.filled(entry, [x.shape, x.shape, x.shape])
    assert found.places == [0, 2, 4]
    assert found.words == [0, 6] * 3
    assert found.packed == kernel_entry.launched(entry).packed
    assert records.filled(entry, [x.shape, x.shape]) is None
    assert records.filled(entry, [x.shape, None, x.shape]) is None
    assert records.filled(len, [x.shape]) is None
    entry = OPS["multiply"].plan((x, 2.0)).entry
    for number in (-0.0, 3, 0.5):
        place = (found := records.filled(entry, [x.shape, number, x.shape])).places[1]
        assert np.float64(number).tobytes() == np.int64(found.words[place]).tobytes()
    assert records.filled(lambda *given: None, [x.shape]) is None


def test_machine_code_is_made_when_python_has_done_enough(monkeypatch):
    done = []
    paths = [hot_paths.HotPath(lambda k=k: k > 0, lambda k=k: done.append(k)) for k in (0, 1)]
    monkeypatch.setattr(hot_paths, "waiting", list(paths))
    monkeypatch.setattr(hot_paths, "_calls", 0)
    hot_paths.count_call()
    assert done == [1]
    for _ in range(hot_paths.ENOUGH - 2):
        hot_paths.count_call()
    assert done == [1]
    hot_paths.count_call()
    assert done == [1, 0]
    assert not hot_paths.waiting
    monkeypatch.setattr(
        hot_paths, "waiting", [hot_paths.HotPath(lambda: True, lambda: int("x")), *paths]
    )
    told = []
    monkeypatch.setattr(hot_paths, "tell", told.append)
    hot_paths.install()
    assert done == [1, 0, 0, 1]
    assert "stays in Python" in told[0]
    monkeypatch.setattr(hot_paths, "waiting", list(paths))
    monkeypatch.setattr(offsets, "unknown", lambda: "a reason")
    hot_paths.install()
    assert (done, hot_paths.waiting) == ([1, 0, 0, 1], [])


# ------------------------------------------------------------------------ both forms of the walk


@pytest.fixture(params=["machine code", "python"])
def form(request):
    """Each of the two, one test after the other."""
    if request.param == "machine code":
        yield
        return
    with python_paths():
        yield


@elementwise(register=False, types=lambda dtypes: (dtypes, np.result_type(*dtypes)))
def weighted(a, b, c, d):
    """A sum of products, whose last gradients are the cotangent itself."""
    return a * b + (c + d)


weighted.vjp(
    a=lambda g, b: g * b, b=lambda g, a: g * a, c=lambda g: g, d=lambda g: g
)  # fmt: skip


@pytest.mark.parametrize("size", [3, 40_000])
@pytest.mark.parametrize("place", range(4))
def test_only_gradients_that_were_made_are_added_to(form, size, place):
    """Of four gradients of a node two are the cotangent, which stays as the user gave it."""
    for _ in range(3):
        leaves = [ng.tensor(np.full(size, k + 2.0), requires_grad=True) for k in range(4)]
        given = [ng.ones(size), ng.ones(size)]
        twice = leaves[place]
        ng.autograd.backward([weighted(*leaves), twice + 0.0], given)
        ng.autograd.backward([weighted(*leaves), twice], given)
        for g in given:
            np.testing.assert_array_equal(g.numpy(), np.ones(size))
        expected = [6.0, 4.0, 2.0, 2.0]
        expected[place] += 2.0
        for x, value in zip(leaves, expected, strict=True):
            np.testing.assert_array_equal(x.grad.numpy(), np.full(size, value))


@pytest.mark.parametrize("size", [3, 40_000])
def test_gradients_that_meet_at_a_node(form, size):
    """One of several that wait is passed on, others are added where they wait."""
    x = ng.tensor(np.full(size, 0.5), requires_grad=True)
    for _ in range(3):
        x.grad = None
        a, b = x * 2.0, x + 1.0
        c = weighted(a, b, a, b)
        y = weighted(c, a, c, x)
        ng.autograd.backward([y, c], [ng.ones(size), ng.ones(size)])
        # c = 2x (x + 1) + 3x + 1 and y = 2xc + c + x, with dc/dx = 4x + 5
        slope = 4 * 0.5 + 5.0
        value = 2 * 0.5 * 1.5 + 3 * 0.5 + 1.0
        expected = 2 * value + 2 * 0.5 * slope + slope + 1.0 + slope
        np.testing.assert_allclose(x.grad.numpy(), np.full(size, expected), rtol=1e-15)


@pytest.mark.parametrize("size", [3, 40_000])
def test_a_cotangent_is_not_written_over(form, size):
    """By a backward that computes into what arrived, at the first node of a chain."""
    x, given = ng.tensor(np.full(size, 0.5), requires_grad=True), ng.ones(size)
    for _ in range(3):
        ng.tanh(x).backward(given)
        ng.exp(ng.sin(x)).backward(given)
    np.testing.assert_array_equal(given.numpy(), np.ones(size))


def test_gradients_that_meet_at_one_output_of_several(form):
    x = ng.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    for _ in range(3):
        x.grad = None
        a, b = ng.split(x, 2)
        ng.sum(a * 2.0 + a * 3.0 + b * a).backward()
        np.testing.assert_array_equal(x.grad.numpy(), [8.0, 9.0, 1.0, 2.0])


@pytest.mark.parametrize("operands", [70])
def test_many_gradients_of_one_node(form, operands):
    """More than an integer has bits; the first are made for it, the last come as they are."""
    leaves = [ng.tensor(np.full(3, 1.0), requires_grad=True) for _ in range(operands)]
    given = ng.ones(3 * operands)
    for _ in range(2):
        ng.concatenate([x * 1.0 for x in leaves]).backward(given)
    for x in leaves:
        np.testing.assert_array_equal(x.grad.numpy(), np.full(3, 2.0))
    np.testing.assert_array_equal(given.numpy(), np.ones(3 * operands))


@pytest.mark.parametrize("program", [*ANY, *VECTORS], ids=lambda program: program.__name__)
def test_gradients_are_those_of_differences(form, program):
    a, b = leaf(3, 4), leaf(3, 4)
    direction = [R.uniform(-1, 1, (3, 4)) for _ in range(2)]
    found = gradients(program, a, b)[1:]  # of two backwards
    slope = sum(np.sum(g * d) for g, d in zip(found, direction, strict=True)) / 2
    values = []
    for h in (1e-6, -1e-6):
        moved = [
            ng.tensor(x.numpy(force=True) + h * d) for x, d in zip((a, b), direction, strict=True)
        ]
        values.append(program(*moved).item())
    if program not in (reused, frozen):  # which hold parts constant
        np.testing.assert_allclose(slope, (values[0] - values[1]) / 2e-6, rtol=1e-6)
    else:
        assert np.isfinite(slope)
