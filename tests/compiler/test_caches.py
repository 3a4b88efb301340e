"""What a compiled function asks for and does not find around it, and what it stores there."""

import functools
import types
import warnings
from collections import defaultdict

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradTraceError

X = np.ones(2)


class Model:
    def __init__(self):
        self.k = 1.0

    def scaled(self, x):
        return x * self.k * getattr(self, "gain", 1.0)


class Empty:
    pass


class Slotted:
    __slots__ = ("gain",)


class Layer(ng.nn.Module):
    def forward(self, x):
        return x * (self.gain if hasattr(self, "gain") else 1.0)


def asked(owner):
    return lambda x: x * getattr(owner, "gain", 1.0)


def tried(owner):
    def f(x):
        try:
            return x * owner.gain
        except AttributeError:
            return x

    return f


def bound():
    model = Model()
    return model, model.scaled


def layer():
    made = Layer()
    return made, made


OWNERS = {
    "bound": bound,
    "module": layer,
    **{
        kind.__name__: lambda kind=kind: (o := kind(), asked(o)) for kind in (Model, Empty, Slotted)
    },
    "tried": lambda: (o := Empty(), tried(o)),
    "namespace": lambda: (o := types.SimpleNamespace(), asked(o)),
    "class": lambda: (o := type("Kind", (), {}), asked(o)),
    "python module": lambda: (o := types.ModuleType("settings"), asked(o)),
}


@pytest.mark.parametrize("name", OWNERS)
def test_attribute_that_comes_later(name):
    owner, f = OWNERS[name]()
    fast = ng.jit(f)
    np.testing.assert_array_equal(fast(X), X)
    owner.gain = 4.0
    np.testing.assert_array_equal(fast(X), 4 * X)
    del owner.gain
    np.testing.assert_array_equal(fast(X), X)
    assert len(fast.specialisations) == 2


def in_a_dict(cache):
    def f(x):
        if "w" not in cache:
            cache["w"] = np.full(2, 2.0)
        return x * cache["w"]

    return f


class Cached:
    @functools.cached_property
    def w(self):
        return np.full(2, 2.0)

    def kept(self, x):
        if not hasattr(self, "_w"):
            self._w = np.full(2, 2.0)
        return x * self._w


def caches():
    plain, unset, lacking, cached, kept = {}, {}, defaultdict(lambda: 2.0), Cached(), Cached()
    yield "in", in_a_dict(plain), plain, lambda w: plain.update(w=w)
    yield (
        "setdefault", lambda x: x * unset.setdefault("w", 2.0), unset, lambda w: unset.update(w=w)
    )  # fmt: skip
    yield "defaultdict", lambda x: x * lacking["w"], lacking, lambda w: lacking.update(w=w)
    yield "property", lambda x: x * cached.w, vars(cached), lambda w: setattr(cached, "w", w)
    yield "hasattr", kept.kept, vars(kept), lambda w: setattr(kept, "_w", w)


@pytest.mark.parametrize("number", range(5), ids=[case[0] for case in caches()])
def test_what_the_function_stores(number):
    _, f, holder, put = list(caches())[number]
    fast = ng.jit(f)
    for _ in range(3):
        np.testing.assert_array_equal(fast(X), 2 * X)
    assert len(fast.specialisations) <= 2
    stored = next(value for name, value in holder.items() if name.endswith("w"))
    if isinstance(stored, np.ndarray):
        stored[:] = 3.0
        np.testing.assert_array_equal(fast(X), 3 * X)
    put(np.full(2, 5.0))
    np.testing.assert_array_equal(fast(X), 5 * X)
    holder.clear()
    np.testing.assert_array_equal(fast(X), 2 * X)


def test_traced_result_that_is_stored():
    cache, last = {}, {}

    def reads(x):
        if "w" not in cache:
            cache["w"] = np.exp(x)
        return x * cache["w"]

    fast = ng.jit(reads)
    fast(X)
    with pytest.raises(NumgradTraceError, match="belongs to a finished trace"):
        fast(2 * X)

    def writes(x):
        last["y"] = x * 2
        return x * 3

    fast = ng.jit(writes)
    for k in range(4):
        np.testing.assert_array_equal(fast(k * X), 3 * k * X)
    assert len(fast.specialisations) <= 2


def test_records_of_a_trace_are_no_reason_to_trace_again():
    log, counts = [], {}

    def f(x):
        log.append(x.shape)
        counts["traces"] = counts.get("traces", 0) + 1
        return x * 2

    fast = ng.jit(f)
    for _ in range(3):
        fast(X)
    assert len(log) == counts["traces"] == len(fast.specialisations) == 1


class Reading:
    def __init__(self, name):
        self.name = name

    def __get__(self, instance, owner):
        return instance._value


def test_descriptor_of_the_users():
    class Holder:
        value = Reading("_value")

        def __init__(self):
            self._value = 1.0

    holder = Holder()
    fast = ng.jit(lambda x: x * holder.value)
    fast(X)
    holder._value = 3.0
    np.testing.assert_array_equal(fast(X), 3 * X)


def changed(fast, f, change):
    fast(X)
    change()
    expected = np.asarray(f(X))
    np.testing.assert_array_equal(fast(X), expected)
    fast(X)
    assert len(fast.specialisations) == 2


@pytest.mark.filterwarnings("ignore:.*plain NumPy made")
def test_tables_that_are_changed_in_place():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0], "b": [4, 5]})
    named = pandas.DataFrame({"a": [1.0, 2.0], "s": ["x", "y"]})
    row = pandas.Series([1.0, 2.0])
    table.attrs["k"] = 2.0
    for f, change in (
        (lambda x: (x - table["a"].mean()) / table["a"].std(), lambda: table.update(table * 3)),
        (lambda x: x * float(table.iloc[0, 1]), lambda: table.__setitem__("b", [7, 8])),
        (lambda x: x * table["a"].to_numpy(), lambda: table.__setitem__("a", [7.0, 8.0])),
        (lambda x: x * table.attrs["k"], lambda: table.attrs.update(k=3.0)),
        (lambda x: x * len(named["s"].iloc[0]), lambda: named.__setitem__("s", ["xyz", "y"])),
        (lambda x: x * row.iloc[0], lambda: row.__setitem__(0, 5.0)),
        (lambda x: x * row.index[1], lambda: setattr(row, "index", [3, 4])),
    ):
        changed(ng.jit(f), f, change)


def test_objects_of_libraries_that_are_changed_in_place():
    from scipy.interpolate import CubicSpline

    line = np.polynomial.Polynomial([1.0, 2.0])
    spline = CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])
    f = lambda x: x * line(3.0) + line.coef[1]  # noqa: E731
    changed(ng.jit(f), f, lambda: line.coef.__setitem__(0, 9.0))
    f = lambda x: x * float(spline(0.5))  # noqa: E731
    changed(ng.jit(f), f, lambda: spline.c.__setitem__((0, 0), 9.0))


def warnings_of(f):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ng.jit(f)(np.ones(4))
    return [str(w.message) for w in found]


def test_constants_that_plain_numpy_makes():
    for f in (
        lambda x: x * np.linspace(0.0, 1.0, 4),
        lambda x: x * np.ones(8)[:4],
        lambda x: np.eye(4) @ x,
        lambda x: x * np.array([1.0, -5.0, 7.0, 2.0]),
        lambda x: x * np.sin(np.arange(4.0)),
    ):
        assert not warnings_of(f)
    hidden = iter([np.ones(4), np.ones(8)])
    kept = list(iter([next(hidden)]))
    again = iter(kept * 4)
    next_one, made = sorted(warnings_of(lambda x: x * next(again)))
    assert "took what comes next from again" in next_one
    assert "plain NumPy made" in made
