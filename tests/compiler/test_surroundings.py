"""What a jitted function reads besides its arguments is read, or guarded, at each call."""

import argparse
import collections
import functools
import gc
import types
import warnings
from array import array as PlainArray
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

import numgrad as ng
from numgrad import errors
from numgrad.compiler.api import OBJECTS

pytestmark = pytest.mark.usefixtures("reference_backend")

WEIGHT = np.array([1.0, 2.0, 3.0])
RATE = 2.0


def traces_of(fast):
    return len(fast.specialisations)


@pytest.fixture
def module():
    """A module of the user's."""
    return types.ModuleType("a_module_of_the_users")


def test_a_global_array_is_read_at_each_call(monkeypatch):
    fast = ng.jit(lambda x: x * WEIGHT)
    x = np.ones(3)
    np.testing.assert_array_equal(fast(x), WEIGHT)
    WEIGHT[0] = 7.0
    np.testing.assert_array_equal(fast(x), [7.0, 2.0, 3.0])
    WEIGHT[0] = 1.0
    monkeypatch.setitem(globals(), "WEIGHT", np.array([4.0, 5.0, 6.0]))
    np.testing.assert_array_equal(fast(x), [4.0, 5.0, 6.0])
    assert traces_of(fast) == 1
    monkeypatch.setitem(globals(), "WEIGHT", np.array([4.0, 5.0, 6.0], np.float32))
    np.testing.assert_array_equal(fast(x.astype(np.float32)), [4.0, 5.0, 6.0])
    assert fast(x.astype(np.float32)).dtype == np.float32


def test_an_enclosed_tensor_is_read_at_each_call():
    w = ng.tensor([1.0, 2.0])

    @ng.jit
    def fast(x):
        return x * w

    x = np.ones(2)
    np.testing.assert_array_equal(fast(x), [1.0, 2.0])
    w[0] = 5.0
    np.testing.assert_array_equal(fast(x), [5.0, 2.0])
    w.data = ng.tensor([8.0, 9.0])
    np.testing.assert_array_equal(fast(x), [8.0, 9.0])
    w = ng.tensor([3.0, 4.0])
    np.testing.assert_array_equal(fast(x), [3.0, 4.0])
    assert traces_of(fast) == 1
    w = ng.tensor([3.0])
    np.testing.assert_array_equal(fast(x), [3.0, 3.0])
    assert traces_of(fast) == 2


def test_arrays_in_containers_attributes_and_defaults(module):
    class Model:
        scale = 10.0

        def __init__(self):
            self.layers = [{"w": np.ones(2)}, {"w": np.full(2, 2.0)}]

        def __call__(self, x, b=np.array([0.5, 0.5])):  # noqa: B008
            for layer in self.layers:
                x = x * layer["w"]
            return x * self.scale + b + module.offset

    module.offset = np.full(2, 100.0)
    model = Model()
    fast = ng.jit(lambda x: model(x))
    x = np.ones(2)
    np.testing.assert_array_equal(fast(x), model(x))
    model.layers[1]["w"] = np.full(2, 3.0)
    module.offset = np.full(2, 200.0)
    np.testing.assert_array_equal(fast(x), model(x))
    assert traces_of(fast) == 1
    model.layers.append({"w": np.full(2, 7.0)})
    np.testing.assert_array_equal(fast(x), model(x))
    model.scale = 1.0
    np.testing.assert_array_equal(fast(x), model(x))
    model = Model()
    np.testing.assert_array_equal(fast(x), model(x))


def test_lengths_of_arrays_outside_are_guarded(monkeypatch):
    def fast_by(make):
        monkeypatch.setitem(globals(), "WEIGHT", make(np.ones(3)))
        fast = ng.jit(lambda x: x * np.sum(WEIGHT) / len(WEIGHT) + x * (x @ WEIGHT))
        np.testing.assert_array_equal(fast(np.ones(3)), np.full(3, 4.0))
        monkeypatch.setitem(globals(), "WEIGHT", make(np.full(5, 2.0)))
        np.testing.assert_array_equal(fast(np.ones(5)), np.full(5, 12.0))
        return fast

    assert traces_of(fast_by(np.asarray)) == 2
    assert traces_of(fast_by(ng.tensor)) == 2
    assert "WEIGHT" in fast_by(ng.tensor).specialisations[1].reason


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x * WEIGHT.sum(),
        lambda x: x * float(WEIGHT[0]),
        lambda x: x if WEIGHT[0] > 1 else -x,
        lambda x: sum(x * w for w in WEIGHT),
        lambda x: x * (WEIGHT @ WEIGHT),
        lambda x: x * len(WEIGHT[WEIGHT > 1]),
    ],
)
@pytest.mark.parametrize("length", [3, 1000])
def test_what_plain_numpy_reads_of_arrays_outside_is_guarded(monkeypatch, use, length):
    monkeypatch.setitem(globals(), "WEIGHT", np.ones(length))
    fast = ng.jit(use)
    x = np.arange(3.0)
    for array in (WEIGHT, np.ones(length), np.linspace(2.0, 3.0, length)):
        monkeypatch.setitem(globals(), "WEIGHT", array)
        np.testing.assert_allclose(fast(x), use(x))
    assert traces_of(fast) == 2
    WEIGHT[0] = -7.0
    np.testing.assert_allclose(fast(x), use(x))
    assert "WEIGHT" in fast.specialisations[1].reason
    assert "WEIGHT is as it was" in str(fast.report())


@pytest.mark.parametrize("length", [3, 20_000])
def test_masks_outside_select_and_are_compared_at_each_call(length):
    mask = np.arange(length) % 2 == 0
    slope = ng.jit(ng.grad(lambda x: np.sum(x[mask] ** 2)))
    x = np.arange(1.0, length + 1)
    for count in (1, 2, 3):
        np.testing.assert_array_equal(slope(x), np.where(mask, 2 * x, 0))
        np.testing.assert_array_equal(slope(x), np.where(mask, 2 * x, 0))
        assert traces_of(slope) == count
        if count == 1:
            mask[1] = True
        else:
            mask = np.arange(length) % 3 == 1
    with pytest.raises(ng.NumgradTraceError, match="indexing with a mask"):
        ng.jit(lambda x, mask: x[mask])(x, mask)
    written = ng.jit(lambda x: _without(x, mask))
    for _ in range(2):
        np.testing.assert_array_equal(written(x), np.where(mask, 0, x))
        mask[:] = ~mask
    assert traces_of(written) == 1  # no length depends on the mask


def _without(x, mask):
    y = np.copy(x)
    y[mask] = 0.0
    return y


@pytest.mark.parametrize("later", [2.0, 3])
def test_an_array_outside_may_become_something_else(later):
    w = np.ones(2)
    fast = ng.jit(lambda x: x * w)
    fast(np.ones(2))
    w = later
    np.testing.assert_array_equal(fast(np.ones(2)), np.ones(2) * later)
    assert "was an array, now of type" in fast.specialisations[1].reason


def test_a_counter_of_traces_is_not_guarded():
    count = np.zeros(1, int)

    @ng.jit
    def fast(x):
        count[0] += 1
        return x * 2

    for _ in range(3):
        fast(1.0), fast(np.ones(3)), fast(np.ones((2, 2)))
    assert count[0] == traces_of(fast) == 3


def test_arrays_beside_those_that_are_used_do_not_count():
    data = {"used": np.ones(3), "other": np.ones(3)}
    fast = ng.jit(lambda x: x * data["used"])
    fast(np.ones(3))
    data["other"][0] = 5.0
    np.testing.assert_array_equal(fast(np.ones(3)), np.ones(3))
    data["used"][0] = 5.0
    np.testing.assert_array_equal(fast(np.ones(3)), [5.0, 1.0, 1.0])
    assert traces_of(fast) == 1


def test_containers_of_pythons_own(monkeypatch):
    options = types.SimpleNamespace(rate=2.0)
    last, names = collections.deque([1.0]), {"a"}

    def scale(x):
        return x * options.rate * last[-1] * len(last) * ("b" in names or 3) * scale.factor

    scale.factor = 1.0
    fast = ng.jit(lambda x: scale(x))
    changes = [
        lambda: setattr(options, "rate", 5.0),
        lambda: last.append(7.0),
        lambda: names.add("b"),
        lambda: setattr(scale, "factor", 0.5),
    ]
    for change in (lambda: None, *changes):
        change()
        assert fast(2.0) == scale(2.0)
    assert traces_of(fast) == 5


@pytest.mark.parametrize("value", [3.0, -0.0, True, np.float32(2), None])
def test_numbers_are_guarded_by_value(monkeypatch, value):
    fast = ng.jit(lambda x: x if RATE is None else x * RATE)
    x = np.array([1.0, -1.0], np.float32)
    np.testing.assert_array_equal(fast(x), 2 * x)
    monkeypatch.setitem(globals(), "RATE", value)
    out, expected = fast(x), x if value is None else x * value
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(expected))
    monkeypatch.setitem(globals(), "RATE", 1.0 + 1.0)  # equal, another object
    np.testing.assert_array_equal(fast(x), 2 * x)
    assert traces_of(fast) == 2


def test_a_function_that_is_called_may_be_replaced(monkeypatch):
    fast = ng.jit(lambda x: _helper(x))
    x = np.ones(2)
    np.testing.assert_array_equal(fast(x), 2 * x)
    monkeypatch.setitem(globals(), "RATE", 5.0)  # which the helper reads
    np.testing.assert_array_equal(fast(x), 5 * x)
    monkeypatch.setitem(globals(), "_helper", lambda x: -x)
    np.testing.assert_array_equal(fast(x), -x)


def _helper(x):
    return x * RATE


def test_partial_functions_and_bound_methods():
    class Line:
        def __init__(self, slope):
            self.slope, self.calls = slope, 0

        def at(self, x):
            return x * self.slope

    x = np.ones(2)
    line = Line(3.0)
    fast = ng.jit(line.at)
    np.testing.assert_array_equal(fast(x), 3 * x)
    line.slope = 4.0
    np.testing.assert_array_equal(fast(x), 4 * x)
    line.calls = 1  # nobody reads it
    np.testing.assert_array_equal(fast(x), 4 * x)
    assert traces_of(fast) == 2
    w = np.array([5.0, 6.0])
    part = ng.jit(functools.partial(lambda w, x, k: w * x * k, w, k=2.0))
    np.testing.assert_array_equal(part(x), 2 * w)
    w[0] = 1.0
    np.testing.assert_array_equal(part(x), [2.0, 12.0])


def test_modules_and_their_mode():
    model = ng.nn.Sequential(ng.nn.Linear(3, 2), ng.nn.Dropout(1.0))
    fast = ng.jit(model)
    x = ng.ones((4, 3))
    model.eval()
    np.testing.assert_allclose(fast(x).detach(), model(x).detach())
    model.train()
    np.testing.assert_array_equal(fast(x).detach(), np.zeros((4, 2)))
    model.eval()
    with ng.no_grad():
        model[0].weight.zero_()
        np.testing.assert_allclose(fast(x), model(x))
    model[0] = ng.nn.Linear(3, 2)
    np.testing.assert_allclose(fast(x).detach(), model(x).detach())


def test_containers_that_contain_themselves():
    ring = [np.ones(2)]
    ring.append(ring)

    def odd(x, n):
        return x * ring[1][1][0] if n == 0 else even(x, n - 1)

    def even(x, n):
        return odd(x, n - 1) if n else -x * ring[0]

    fast = ng.jit(odd, static_argnums=1)
    np.testing.assert_array_equal(fast(np.ones(2), 2), np.ones(2))


def test_classes_cached_functions_and_operators():
    class Config:
        rate = 2.0
        table = {"w": np.ones(2)}  # noqa: RUF012

    class Layers:
        def __init__(self):
            self.items = [3.0, 4.0]

        def __getitem__(self, k):
            return self.items[k]

        def __len__(self):
            return len(self.items)

    @functools.lru_cache
    def factor(k):
        return layers[k] * Config.rate

    layers = Layers()
    fast = ng.jit(lambda x: x * factor(len(layers) - 1) * Config.table["w"])
    x = np.ones(2)
    np.testing.assert_array_equal(fast(x), 8 * x)
    layers.items[1] = 5.0
    factor.cache_clear()
    np.testing.assert_array_equal(fast(x), 10 * x)
    Config.rate = 3.0
    factor.cache_clear()
    np.testing.assert_array_equal(fast(x), 15 * x)
    Config.table["w"] = np.full(2, 2.0)
    np.testing.assert_array_equal(fast(x), 30 * x)
    assert traces_of(fast) == 3
    layers.items.append(1.0)
    factor.cache_clear()
    np.testing.assert_array_equal(fast(x), 6 * x)


def test_a_name_that_is_gone():
    fast = ng.jit(lambda x: x * holder["w"])
    holder = {"w": np.ones(2)}
    fast(np.ones(2))
    del holder["w"]
    with pytest.raises(KeyError, match="w"):
        fast(np.ones(2))


def test_what_the_function_itself_changes_while_it_is_traced():
    seen = []
    count = 0

    @ng.jit
    def fast(x):
        nonlocal count
        seen.append(x.shape)
        count += 1
        return x * count

    x = np.ones(2)
    for n in (1, 2, 3):  # the number counts by value, so the function runs anew each time
        np.testing.assert_array_equal(fast(x), n * x)

    log = []
    logging = ng.jit(lambda x: (log.append("traced"), x * 2)[1])
    for _ in range(3):
        np.testing.assert_array_equal(logging(x), 2 * x)
    assert log == ["traced"]


@pytest.mark.filterwarnings("ignore:.*took what comes next")
def test_an_array_that_plain_numpy_made_is_reported():
    made = iter([np.arange(3.0) ** 2])
    kept = list(made)  # somebody has it, in no variable of the function's
    made = iter(kept)
    fast = ng.jit(lambda x: x * next(made))
    with pytest.warns(UserWarning, match=r"shape \(3,\) and dtype float64 .* plain NumPy") as found:
        out = fast(np.ones(3))
    assert found[0].filename == __file__
    np.testing.assert_array_equal(out, np.arange(3.0) ** 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(fast(np.full(3, 2.0)), 2 * np.arange(3.0) ** 2)


def test_a_jitted_function_inside_another(monkeypatch):
    inner = ng.jit(lambda x: x * RATE + WEIGHT)
    outer = ng.jit(lambda x: inner(x) * 2)
    x = np.ones(3)
    np.testing.assert_array_equal(outer(x), 2 * (x * RATE + WEIGHT))
    assert traces_of(inner) == 0
    monkeypatch.setitem(globals(), "RATE", 3.0)
    monkeypatch.setitem(globals(), "WEIGHT", np.full(3, 4.0))
    np.testing.assert_array_equal(outer(x), np.full(3, 14.0))
    np.testing.assert_array_equal(inner(x), np.full(3, 7.0))


# ---------------------------------------------------------------------------------------- writes


def test_captured_tensors_are_written_to():
    total = ng.zeros(2)

    @ng.jit
    def add(x):
        total.add_(x)
        return total * 1

    x = np.ones(2)
    for n in (1, 2, 3):
        before = total._version
        np.testing.assert_array_equal(add(x), n * x)
        np.testing.assert_array_equal(total.numpy(), n * x)
        assert total._version > before


def test_two_names_for_memory_that_is_written_to():
    whole = ng.zeros(4)
    part = whole[:2]

    @ng.jit
    def fast(x):
        whole.add_(x)
        return part * 1

    with pytest.raises(ng.NumgradNotImplementedError, match="make the view inside"):
        fast(np.ones(4))


def test_arguments_are_written_to_if_they_are_donated():
    def double(x, y):
        x *= 2
        return x + y

    x, y = np.ones(3), np.ones(3)
    with pytest.raises(ng.NumgradError, match=r"test_surroundings.py:\d+: .*donate="):
        ng.jit(double)(x, y)
    for donate in (0, "x", ("x",)):
        x = np.ones(3)
        np.testing.assert_array_equal(ng.jit(double, donate=donate)(x, y), np.full(3, 3.0))
        np.testing.assert_array_equal(x, np.full(3, 2.0))
    apart = np.ones(6)
    ng.jit(double, donate="x")(apart[::2], y)
    np.testing.assert_array_equal(apart, [2.0, 1.0] * 3)
    t = ng.ones(3)
    ng.jit(double, donate="x")(t, y)
    np.testing.assert_array_equal(t.numpy(), np.full(3, 2.0))
    assert t._version == 1


@pytest.mark.parametrize("first", [700, 0, 10**6])
def test_garbage_is_looked_for_as_before_once_compiled(first):
    before = gc.get_threshold()
    seen = []

    @ng.jit
    def f(x):
        seen.append(gc.get_threshold())
        return x * 2

    gc.set_threshold(first, *before[1:])
    try:
        f(np.ones(3))
        assert seen[0][0] == {700: OBJECTS}.get(first, first)
        assert gc.get_threshold() == (first, *before[1:])
    finally:
        gc.set_threshold(*before)


class Scaled:
    factor = 2.0
    weights = np.ones(2)


def _change(holder, **values):
    return lambda: [setattr(holder, name, value) for name, value in values.items()]


def _surroundings():
    namespace, options = SimpleNamespace(a=2.0, b=np.ones(2)), argparse.Namespace(rate=0.5)
    kind = type("Own", (Scaled,), {"weights": np.ones(2)})
    held, name, queue = kind(), ["a"], deque([1.0, 2.0])

    def defaulted(x, q=4.0):
        return np.sum(x * q)

    yield lambda x: np.sum(x * namespace.a), _change(namespace, a=3.0)
    yield lambda x: np.sum(x * namespace.b), _change(namespace, b=np.full(2, 3.0))
    yield lambda x: np.sum(x * getattr(namespace, name[0])), _change(namespace, a=7.0)
    yield lambda x: np.sum(x * options.rate), _change(options, rate=3.0)
    yield lambda x: np.sum(x * held.weights), _change(kind, weights=np.full(2, 3.0))
    yield lambda x: np.sum(x * held.weights), _change(held, weights=np.full(2, 4.0))
    yield lambda x: np.sum(x * queue[0]), lambda: queue.__setitem__(0, 5.0)
    yield lambda x: np.sum(x * queue[0]), lambda: queue.popleft()
    yield lambda x: defaulted(x), _change(defaulted, __defaults__=(9.0,))


def test_what_namespaces_classes_queues_and_defaults_hold_is_noticed():
    x = np.array([1.1, 0.7])
    for f, change in _surroundings():
        fast = ng.jit(ng.grad(f))
        before = fast(x)
        np.testing.assert_allclose(before, ng.grad(f)(x))
        change()
        assert not np.allclose(ng.grad(f)(x), before)
        np.testing.assert_allclose(fast(x), ng.grad(f)(x))


def test_gradients_that_arguments_have_are_not_looked_at():
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    x.grad = ng.tensor([3.0, 4.0])
    with pytest.raises(errors.NumgradTraceError, match="give the gradient as an argument"):
        ng.jit(lambda x: x * 2 if x.grad is None else x.grad)(x)


def test_operators_of_np_matrix_are_not_taken_for_those_of_arrays():
    matrix = np.eye(2).view(np.matrix)  # without the warning of its constructor
    for transform in (ng.jit, ng.grad, ng.vmap):
        with pytest.raises(TypeError, match=r"np\.asarray"):
            transform(lambda a: np.sum(a * a))(matrix)


def _distance(a, b):
    return np.sum((a - b) ** 2)


def _scaled_distance(a, b):
    return _distance(a, b) / np.std(b)


def _returned(a, b):
    c = a * b
    return a if c.ndim else b


def _kept(x):
    y = WEIGHT
    return _distance(x, y), y.shape


@pytest.mark.parametrize(
    ("use", "retraced"),
    [
        (lambda x: np.sum(x - WEIGHT), False),
        (lambda x: _distance(x, WEIGHT) / len(WEIGHT) / WEIGHT.shape[0], False),
        (lambda x: np.concatenate([x, WEIGHT]) @ np.hstack((WEIGHT[:1], WEIGHT[1:], x)), False),
        (lambda x: ng.grad(lambda v: _distance(v, WEIGHT))(x), False),
        (lambda x: ng.scan(lambda c, _: (c - WEIGHT, c @ WEIGHT), x, length=2)[1], False),
        (lambda x: np.sum(ng.vmap(lambda v, w: v * w)(x, WEIGHT)), False),
        (lambda x: _kept(x)[0], False),
        (lambda x: ng.asarray(WEIGHT)[0] * x[0] + np.sum(ng.tensor(WEIGHT)), False),
        (lambda x: np.sum(_returned(WEIGHT, x) * _returned(x, WEIGHT)), False),
        (lambda x: np.std(_returned(WEIGHT, x)) * np.sum(_returned(x, WEIGHT)), True),
        (lambda x: np.sum(x - WEIGHT) / np.std(WEIGHT), True),
        (lambda x: np.sum(x - WEIGHT) * WEIGHT[0], True),
        (lambda x: np.sum(x - WEIGHT) if WEIGHT.sum() > 6 else np.sum(x * WEIGHT), True),
        (lambda x: x @ WEIGHT + x[int(WEIGHT.argmax())], True),
        (lambda x: _scaled_distance(x, WEIGHT), True),
        (lambda x: ng.grad(lambda v: _scaled_distance(v, WEIGHT))(x), True),
        (lambda x: _kept(x)[0] * max(_kept(x)[1]) + sum(w for w in WEIGHT), True),
    ],
)
def test_arrays_that_are_operands_and_read_by_numpy_too(monkeypatch, use, retraced):
    monkeypatch.setitem(globals(), "WEIGHT", np.array([1.0, 2.0, 3.0]))
    fast, x = ng.jit(use), np.array([0.5, -1.0, 4.0])
    np.testing.assert_allclose(fast(x), use(ng.tensor(x)).numpy())
    WEIGHT[:] = [2.0, 5.0, -1.0]
    np.testing.assert_allclose(fast(x), use(ng.tensor(x)).numpy())
    monkeypatch.setitem(globals(), "WEIGHT", np.array([7.0, 1.5, 3.5]))
    np.testing.assert_allclose(fast(x), use(ng.tensor(x)).numpy())
    assert traces_of(fast) == (3 if retraced else 1)


def test_numbers_of_large_arrays_are_compared():
    table = np.arange(200_000.0).reshape(2, -1)
    fast = ng.jit(lambda x: x * table.T[::2].sum())
    for _ in range(2):
        assert fast(1.0) == table.T[::2].sum()
        table[1, -2] += 1.0
    assert traces_of(fast) == 2


class _Base:
    def scale(self, x):
        return x * 2.0

    @staticmethod
    def shift(x):
        return x + 1.0

    @classmethod
    def twice(cls, x):
        return x * 2.0

    @property
    def factor(self):
        return 3.0


class _Derived(_Base):
    class Options:
        rate = 0.5

    def __call__(self, x):
        return self.twice(self.shift(self.scale(x))) * self.factor * self.Options.rate


@pytest.mark.parametrize(
    ("owner", "name", "new"),
    [
        (_Base, "scale", lambda self, x: x * 7.0),
        (_Derived, "scale", lambda self, x: x * 8.0),
        (None, "scale", lambda x: x * 9.0),
        (_Base, "shift", staticmethod(lambda x: x - 1.0)),
        (_Base, "twice", classmethod(lambda cls, x: x * 4.0)),
        (_Base, "factor", property(lambda self: 5.0)),
        (_Derived, "__call__", lambda self, x: x),
        (_Derived.Options, "rate", 0.25),
    ],
)
def test_methods_that_are_replaced(monkeypatch, owner, name, new):
    model = _Derived()
    fast = ng.jit(lambda x: model(x))
    assert fast(2.0) == model(2.0) == 15.0
    monkeypatch.setattr(model if owner is None else owner, name, new, raising=False)
    assert fast(2.0) == model(2.0) != 15.0
    assert traces_of(fast) == 2


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: bytearray([2, 3]), lambda kept: kept.__setitem__(0, 7)),
        (lambda: PlainArray("d", [2, 3]), lambda kept: kept.__setitem__(0, 7)),
        (lambda: memoryview(bytearray([2, 3])), lambda kept: kept.__setitem__(0, 7)),
        (lambda: collections.UserList([2, 3]), lambda kept: kept.__setitem__(0, 7)),
        (lambda: collections.UserDict({0: 2}), lambda kept: kept.__setitem__(0, 7)),
        (lambda: collections.ChainMap({}, {0: 2}), lambda kept: kept.__setitem__(0, 7)),
    ],
)
def test_what_buffers_and_wrappers_hold(make, change):
    kept = make()
    fast = ng.jit(lambda x: x * kept[0])
    assert fast(3.0) == 6.0
    change(kept)
    assert fast(3.0) == 21.0


def test_globals_by_their_names(monkeypatch):
    fast = ng.jit(lambda x: x * globals()["RATE"])
    assert fast(3.0) == 6.0
    monkeypatch.setitem(globals(), "RATE", 7.0)
    assert fast(3.0) == 21.0


def _with_default(x, y=np.array([1.0, 2.0, 6.0])):  # noqa: B008
    return x * y / np.std(y)


@pytest.mark.parametrize("plain", [True, False])
def test_elements_and_defaults_that_numpy_reads_too(plain):
    rows, pair = [np.array([1.0, 2.0, 3.0])], collections.namedtuple("Pair", "y")([np.ones(3)][0])

    def operands(x):
        return x * rows[0] * pair.y

    def both(x):
        return _with_default(operands(x)) / rows[0][0] / pair.y.max()

    use = both if plain else operands
    fast, x = ng.jit(use), np.array([1.0, -1.0, 2.0])
    for k, kept in enumerate((rows[0], pair.y, _with_default.__defaults__[0])):
        np.testing.assert_allclose(fast(x), use(ng.tensor(x)).numpy())
        kept[:] = [2.0, 5.0, 1.0 + k]
        np.testing.assert_allclose(fast(x), use(ng.tensor(x)).numpy())
    assert traces_of(fast) == (4 if plain else 1)


def test_memory_that_is_written_to_is_that_of_nothing_else():
    def change(p, q):
        p += q
        p *= q
        return p

    fast, a = ng.jit(change, donate=0), np.array([1.0, 2.0, 3.0])
    t, line, buffer = ng.tensor(a), np.arange(10.0), bytearray(24)
    for p, q in (
        (a, a),
        (a[::-1], a),
        (t, t),
        (t, t.numpy()),
        (line[:3], line[1:4]),
        (np.frombuffer(buffer), np.frombuffer(buffer)),
    ):
        before = np.array(p)
        with pytest.raises(ng.NumgradValueError, match=r"p, whose memory .* with q; .*copy"):
            fast(p, q)
        np.testing.assert_array_equal(p, before)
    for p, q in ((a.copy(), a), (line[:3], line[4:7]), (line[:6:2], line[1:6:2])):
        expected = (p + q) * q
        np.testing.assert_array_equal(fast(p, q), expected)
        np.testing.assert_array_equal(p, expected)
    with pytest.raises(ng.NumgradValueError, match="shares it"):  # may serve as memory for results
        ng.jit(lambda x, y: x[::-1] + y, donate="x")(a, a)
    with pytest.raises(ng.NumgradValueError, match=r"both\[0\], .* with both\[1\]"):
        ng.jit(lambda both: change(*both), donate="both")([a, a])


def test_written_memory_around_a_function_is_that_of_no_argument():
    w, v = ng.ones(3), np.ones(3)

    @ng.jit
    def add(x):
        w.add_(x)
        return w * x

    add(np.ones(3))
    for x in (w, w.numpy(), w.numpy()[::-1]):
        with pytest.raises(ng.NumgradValueError, match=r"w, whose memory .* shares it with x"):
            add(x)
    np.testing.assert_array_equal(w, [2.0, 2.0, 2.0])

    def change(x):
        x += v
        x *= v
        return x

    with pytest.raises(ng.NumgradValueError, match=r"x, whose memory .* shares it with v"):
        ng.jit(change, donate="x")(v)
