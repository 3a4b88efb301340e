"""What steps and branches of compiled functions do besides computing is refused, with the line."""

import contextlib
import cProfile
import functools
import heapq
import io
import itertools
import logging
from array import array
from types import SimpleNamespace

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradTraceError

X = np.linspace(-1.0, 1.0, 3)
SEEN, COUNTS, KNOWN, STREAM = [], {"steps": 0}, {}, io.StringIO()
TOTAL = 0


def prints(c):
    print("a step")
    return c * 2


def appends(c):
    SEEN.append(1)
    return c * 2


def counts(c):
    COUNTS["steps"] += 1
    return c * 2


def assigns(c):
    global TOTAL
    TOTAL += 1
    return c * 2


def writes(c):
    STREAM.write("a step")
    return c * 2


def logs(c):
    logging.getLogger("steps").warning("a step")
    return c * 2


def closing():
    count, rows = 0, []

    def counting(c):
        nonlocal count
        count += 1
        return c * 2

    def keeping(c):
        rows.extend([c])
        return c * 2

    return counting, keeping


LOOPS = {
    "scan": lambda f: lambda x: ng.scan(lambda c, _: (f(c), None), x, length=2)[0],
    "while_loop": lambda f: (
        lambda x: ng.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]
    ),
    "cond": lambda f: lambda x: ng.cond(x[0] > 0, f, lambda x: x, x),
}
EFFECTS = [prints, appends, counts, assigns, writes, logs, *closing()]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("step", EFFECTS, ids=lambda f: f.__name__)
def test_effects_are_refused(step, loop, capsys):
    with pytest.raises(NumgradTraceError, match="would happen once") as caught:
        ng.jit(LOOPS[loop](step))(X)
    lines = range(step.__code__.co_firstlineno, step.__code__.co_firstlineno + 5)
    assert any(f"{__file__}:{line}:" in str(caught.value) for line in lines)
    assert (SEEN, STREAM.getvalue(), capsys.readouterr().out) == ([], "", "")
    LOOPS[loop](step)(X + 3)  # eager code does as Python does
    SEEN.clear()
    STREAM.truncate(0)
    STREAM.seek(0)


def test_hooks_of_modules_are_watched():
    layer = ng.nn.Sequential(ng.nn.Identity())
    layer[0].register_forward_hook(lambda *_: SEEN.append(1))
    with pytest.raises(NumgradTraceError, match="would happen once"):
        ng.jit(LOOPS["scan"](layer))(X)
    assert SEEN == []


def collects(c):
    """Containers and variables of its own."""
    rows, known, count = [], {}, 0

    def add(x):
        nonlocal count
        count += 1
        rows.append(x)
        known[count] = x

    add(c)
    add(c * 2)
    rows.sort(key=id)
    return sum(known.values()) * count


def remembers(c):
    """What it computed once, of nothing that is traced."""
    if "weights" not in KNOWN:
        KNOWN["weights"] = np.ones(3)
    return c * KNOWN["weights"].sum()


def silent(c):
    if KNOWN.get("verbose"):
        print(c)
    return c * 2


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("step", [collects, remembers, silent], ids=lambda f: f.__name__)
def test_what_is_no_effect_is_not(step, loop):
    f = LOOPS[loop](step)
    np.testing.assert_array_equal(ng.jit(f)(X), f(X))


# ------------------------------------------------------------------ what is found by comparison


class Counter:
    """Counts its calls."""

    total = 0

    def __init__(self):
        self.n, self.log = 0, []

    def __call__(self, c):
        self.n += 1
        return c * self.n

    def logging(self, c):
        self.log.append(1)
        return c * len(self.log)

    @classmethod
    def counting(cls, c):
        cls.total += 1
        return c * cls.total


class Slotted:
    """Counts its calls in a slot."""

    __slots__ = ("n",)

    def __init__(self):
        self.n = 0

    def step(self, c):
        self.n += 1
        return c * self.n


class Layer(ng.nn.Module):
    """Counts its calls, in whatever module it is."""

    def __init__(self):
        super().__init__()
        self.n = 0

    def forward(self, c):
        self.n += 1
        return c * self.n


def naturals():
    k = 0
    while True:
        yield k
        k += 1


def changed():
    """Steps that change what is around them, made anew."""
    buf, large, o = np.zeros(3), np.zeros(100_000), SimpleNamespace(n=0)
    d: dict = {"a": [], "d": {}}
    heap, plain, raw, module = [], array("d", [0.0]), bytearray(3), ng.nn.Sequential(Layer())
    iterators = {
        "range": iter(range(99)), "count": itertools.count(), "generator": naturals(),
        "zip": zip(range(99), itertools.count(), strict=False), "list": iter([0.0] * 99),
    }  # fmt: skip

    def attribute(c):
        o.n += 1
        return c * o.n

    def new_attribute(c):
        o.k = getattr(o, "k", 0) + 1
        return c * o.k

    def traced_attribute(c):
        o.last = c
        return c * 2

    def of_function(c):
        own = vars(of_function)
        own["n"] = own.get("n", 0) + 1
        return c * own["n"]

    def default(c, seen=[]):  # noqa: B006
        seen.append(1)
        return c * len(seen)

    def given(seen, c):
        seen += [1]
        return c * len(seen)

    def nested(c):
        d["a"].append(1)
        return c * len(d["a"])

    def alias(c):
        rows = d["a"]
        rows += [1]
        return c * len(rows)

    def nested_key(c):
        d["d"]["k"] = d["d"].get("k", 0) + 1
        return c * d["d"]["k"]

    def new_keys(c):
        d[len(d)] = 1
        return c * len(d)

    def by_method(c):
        d["a"].__iadd__([1])
        return c * len(d["a"])

    def pushes(c):
        heapq.heappush(heap, 1)
        return c * len(heap)

    def written(c):
        buf[0] += 1
        return c * buf[0]

    def written_large(c):
        large[77] += 1
        return c * large[77]

    def by_out(c):
        np.add(buf, 1, out=buf)
        return c * buf[0]

    def of_array(c):
        plain[0] += 1
        return c * plain[0]

    def of_bytes(c):
        raw[0] += 1
        return c * raw[0]

    def swallowed(c):
        with contextlib.suppress(TypeError):
            d["a"].append(1)
        return c * len(d["a"])

    steps = {f.__name__: f for f in (
        attribute, new_attribute, traced_attribute, of_function, default, nested, alias,
        nested_key, new_keys, by_method, pushes, written, written_large, by_out, of_array,
        of_bytes, swallowed,
    )}  # fmt: skip
    steps |= {
        "partial": functools.partial(given, []), "object": Counter(), "slot": Slotted().step,
        "method": Counter().logging, "class": Counter.counting,
        "module": lambda c: module(c),
    }  # fmt: skip
    steps |= {k: lambda c, it=it: c * np.sum(next(it)) for k, it in iterators.items()}
    return steps


@pytest.mark.parametrize("loop", ["scan", "cond"])
@pytest.mark.parametrize("name", list(changed()))
def test_what_changes_around_a_step_is_refused(name, loop):
    f = LOOPS[loop](changed()[name])
    with pytest.raises(NumgradTraceError, match=rf"{__file__}:\d+: .*would happen once"):
        ng.jit(f)(X + 3)


@pytest.mark.parametrize("name", ["attribute", "nested", "written", "generator", "swallowed"])
def test_it_is_refused_in_a_program_that_is_profiled(name):
    f = ng.jit(LOOPS["scan"](changed()[name]))
    with pytest.raises(NumgradTraceError, match="would happen once"):
        cProfile.Profile().runcall(f, X)


def test_a_place_is_named():
    for name, place in {
        "attribute": "'o.n'", "traced_attribute": "'o.last'", "nested_key": "d['d']['k']",
        "method": "'self.log'", "default": "'seen'", "written": "'buf'",
    }.items():  # fmt: skip
        with pytest.raises(NumgradTraceError) as caught:
            ng.jit(LOOPS["scan"](changed()[name]))(X)
        assert place in str(caught.value)


class Weighted:
    """Remembers what it computed of nothing that is traced."""

    @functools.cached_property
    def weights(self):
        return np.ones(3)

    def __call__(self, c):
        self.scale = 2.0
        return c * self.weights * self.scale


@functools.cache
def table(n):
    return np.arange(n)


def looks_up(c):
    return c * table(3)


def owns(c):
    """Objects, arrays and iterators of its own."""
    counter, rows, numbers = Counter(), np.zeros(3), itertools.count()
    rows[0] = next(numbers)
    rows += next(numbers)
    return counter(c) * rows + next(iter([1]))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.filterwarnings("ignore:jit")
@pytest.mark.parametrize("step", [Weighted(), looks_up, owns], ids=["cached", "memo", "owns"])
def test_what_is_remembered_is_no_effect(step, loop):
    f = LOOPS[loop](step)
    np.testing.assert_array_equal(ng.jit(f)(X), f(X))


def test_a_layer_is_no_effect():
    module = ng.nn.Sequential(ng.nn.BatchNorm1d(3), ng.nn.Tanh()).double().eval()
    f = LOOPS["scan"](lambda c: module(np.stack([c, c * 2]))[0])
    np.testing.assert_allclose(ng.jit(f)(X).detach(), f(X).detach(), rtol=1e-12)
