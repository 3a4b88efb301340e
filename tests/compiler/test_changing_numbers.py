"""Floating numbers around a function that change: after two values they are inputs."""

import math
import threading

import numpy as np
import pytest

import numgrad as ng

X = np.array([0.25, 1.5, -2.0])
MANY = [0.75 * k - 3.0 for k in range(100)]
SPECIAL = [1.0, 2.0, 3.0, -0.0, 0.0, math.nan, math.inf, -math.inf, 5e-324, 1e300]
RATE = 1.0


class Holder:
    rate: float

    def __init__(self, rate=0.5):
        self.rate = rate

    def __call__(self, x):
        return x - self.rate * x * x


def enclosed(make):
    """A function over an enclosed number, and what sets that."""
    cell = make.__closure__
    assert cell is None
    function = make(1.0)
    place = function.__closure__[function.__code__.co_freevars.index("a")]
    return function, lambda value: setattr(place, "cell_contents", value)


def set_rate(value):
    global RATE
    RATE = value


def reads_global(x):
    return x * RATE


def calls_global(x):
    return reads_global(x) + RATE


def check(function, change, values, x=X, traces=3, fast=None):
    """Compare a compiled function with the plain one at each value."""
    fast = ng.jit(function) if fast is None else fast
    with np.errstate(all="ignore"):
        for value in values:
            change(value)
            got, want = fast(x), function(x)
            assert type(got) is type(want)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    assert len(fast.specialisations) <= traces
    return fast


def product(a):
    return lambda x: x * a - (1 - a)


def through_helper(a):
    def helper(x):
        return x * a

    return lambda x: helper(x) + a


@pytest.mark.parametrize("make", [product, through_helper])
@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_enclosed_number(make, kind, dtype):
    function = make(1.0)
    places = dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))
    change = [places["a"]]
    if "helper" in places:
        inner = places["helper"].cell_contents
        assert inner.__closure__[0] is places["a"]

    def put(value):
        change[0].cell_contents = kind(value)

    fast = check(function, put, MANY, X.astype(dtype))
    assert "rate" not in fast.report()
    assert f"{'a'}:" in fast.report()


@pytest.mark.parametrize("value", SPECIAL)
def test_special_values(value):
    function, change = enclosed(lambda a: lambda x: x * a + a)
    check(function, change, [1.0, 2.0, 3.0, value, 4.0, value])


def test_a_global():
    check(calls_global, set_rate, MANY)
    check(calls_global, set_rate, MANY, X.astype(np.float32))


def test_an_attribute():
    holder = Holder()
    names = set(vars(Holder))

    def change(value):
        holder.rate = value

    check(holder, change, MANY)
    check(lambda x: holder(x) + holder.rate, change, MANY)
    assert set(vars(Holder)) == names
    assert vars(holder) == {"rate": MANY[-1]}


def test_attributes_of_two_objects_of_a_class():
    one, two = Holder(), Holder()

    def change(value):
        one.rate, two.rate = value, 3 * value

    check(lambda x: one(x) + two(x) * one.rate, change, MANY)


def test_gradients():
    function, change = enclosed(lambda a: lambda x: np.sum(np.sin(x) * a))
    both = ng.jit(ng.value_and_grad(function))
    second = ng.jit(lambda x: ng.grad(lambda y: np.sum(ng.grad(function)(y)))(x))
    mapped = ng.jit(ng.vmap(lambda x: x * 2))
    for value in MANY[::5]:
        change(value)
        result, gradient = both(X)
        np.testing.assert_allclose(result, np.sum(np.sin(X) * value), rtol=1e-14)
        np.testing.assert_allclose(gradient, np.cos(X) * value, rtol=1e-14)
        np.testing.assert_allclose(second(X), -np.sin(X) * value, rtol=1e-13)
        np.testing.assert_array_equal(mapped(X), 2 * X)
    assert len(both.specialisations) == 3


def test_the_tape():
    function, change = enclosed(lambda a: lambda x: np.sum(x * x * a))
    fast = ng.jit(function)
    for value in MANY[:20]:
        change(value)
        x = ng.tensor(X, requires_grad=True)
        fast(x).backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * X * value, rtol=1e-15)
    assert len(fast.specialisations) == 3


def test_steps_of_a_loop():
    holder = Holder()

    def function(x):
        def step(carry, _):
            return carry - holder.rate * carry, carry[0]

        return ng.scan(step, x, None, length=5)[0]

    fast = ng.jit(function)
    for value in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6):
        holder.rate = value
        want = X.copy()
        for _ in range(5):
            want = want - value * want
        np.testing.assert_allclose(fast(X), want, rtol=1e-14)


def test_another_kind_of_number():
    function, change = enclosed(lambda a: lambda x: x * a)
    values = [1.0, 2.0, 3.0, 4, 5.0, True, np.float64(2.0), np.float64(3.0), 2.5]
    check(function, change, values, np.array([1, 2, 3]), traces=7)


TABLE = {1.0: 5, 2.0: 6}
ASKS = {
    "a branch": lambda a: lambda x: x * a if a > 3 else x - a,
    "a function of math": lambda a: lambda x: x * math.cos(a),
    "an integer": lambda a: lambda x: x + int(a),
    "a length": lambda a: lambda x: np.concatenate([x, np.zeros(int(abs(a)))]),
    "a text": lambda a: lambda x: x * len(f"{a}"),
    "a key": lambda a: lambda x: x * TABLE.get(a, 1),
    "a class": lambda a: lambda x: x * a if type(a) is float else x,
    "a bool": lambda a: lambda x: x if a else -x,
    "an array": lambda a: lambda x: x * np.array([a, a + 1, 2.0]),
    "membership": lambda a: lambda x: x if a in (1.0, 4.0) else -x,
    "a power": lambda a: lambda x: x * abs(a) ** 0.5,
    "NumPy's sum": lambda a: lambda x: np.add(a, a) * x,
    "an outer product": lambda a: lambda x: np.multiply.outer(x, a),
    "a product": lambda a: lambda x: np.dot(x, a),
    "a copy": lambda a: lambda x: x * np.copy(a),
    "rounding": lambda a: lambda x: x * round(a, 1),
}


@pytest.mark.parametrize("what", ASKS)
def test_what_asks_for_the_number_is_compiled_for_it(what):
    function, change = enclosed(ASKS[what])
    fast = ng.jit(function)
    values = [1.0, 2.0, 4.0, 5.5, 1.0, 2.5, -3.0]
    for value in values:
        change(value)
        got, want = fast(X), function(X)
        np.testing.assert_allclose(got, want, rtol=1e-14)
        assert got.dtype == want.dtype
    assert len(fast.specialisations) == len(set(values))


def test_an_error_that_the_function_catches():
    def make(a):
        def function(x):
            try:
                return x * math.sqrt(a)
            except TypeError:
                return x

        return function

    function, change = enclosed(make)
    check(function, change, [1.0, 2.0, 3.0, 4.0], traces=4)


def test_errors_of_python_stay():
    function, change = enclosed(lambda a: lambda x: x * (1 / a))
    fast = ng.jit(function)
    for value in (1.0, 2.0, 4.0, 8.0):
        change(value)
        np.testing.assert_array_equal(fast(X), X / value)
    change(0.0)
    with pytest.raises(ZeroDivisionError):
        fast(X)


def test_a_number_that_is_read_in_another_way_too():
    def make(a):
        def helper(x):
            return x * a

        helpers = [helper]
        return lambda x: helpers[0](x) + a

    function, change = enclosed(make)
    check(function, change, [1.0, 2.0, 3.0, 4.0, 5.0], traces=5)


def test_results_of_numbers_alone():
    function, change = enclosed(lambda a: lambda x: (x * a, a, 2 * a))
    fast = ng.jit(function)
    for value in (1.0, 2.0, 3.0, 4.0):
        change(value)
        assert fast(ng.tensor(X))[1:] == (value, 2 * value)
        assert type(fast(ng.tensor(X))[2]) is float
    assert len(fast.specialisations) == 3


def test_what_a_function_stores():
    holder, log = Holder(), []

    def function(x):
        log.append(holder.rate * 2)
        return x * holder.rate

    fast = ng.jit(function)
    for value in (0.1, 0.2, 0.3, 0.4):
        holder.rate = value
        np.testing.assert_array_equal(fast(X), X * value)
    assert all(type(entry) is float for entry in log)


def test_other_threads_see_the_number():
    holder, seen = Holder(0.1), set()
    going, tracing = threading.Event(), threading.Event()

    def read():
        while not going.is_set():
            rate = holder.rate
            seen.add((type(rate), isinstance(rate, float)))
            tracing.set()

    thread = threading.Thread(target=read)

    def function(x):
        tracing.clear()
        tracing.wait(10)
        tracing.clear()
        tracing.wait(10)
        return holder(x)

    fast = ng.jit(function)
    thread.start()
    try:
        for value in (0.1, 0.2, 0.3, 0.4):
            holder.rate = value
            np.testing.assert_array_equal(fast(X), X - value * X * X)
    finally:
        going.set()
        thread.join(10)
    assert len(fast.specialisations) == 3
    assert seen == {(float, True)}


class Swallowing:
    """Code of a library, so to say, which asks for a number and goes on without."""

    @staticmethod
    def number_or_one(value):
        namespace = {"__name__": "numpy.some_module"}
        exec(  # a function of a module of NumPy's
            "def ask(value):\n try:\n  return float(value)\n except TypeError:\n  return 1.0\n",
            namespace,
        )
        return namespace["ask"](value)


@pytest.mark.parametrize(
    "use",
    [
        lambda x, a: x * {0.5: 1.0, 1.0: 2.0, 1.5: 3.0, 2.0: 4.0}.get(2 * a, 9.0),
        lambda x, a: x * len(f"{2 * a}"),
        lambda x, a: x * len(str(-a)),
        lambda x, a: x * Swallowing.number_or_one(2 * a),
        lambda x, a: x * (3.0 if a + a > 1.2 else 2.0),
        lambda x, a: x * [1.0, 2.0, 3.0, 4.0, 5.0][int(a + a)],
    ],
)
def test_what_is_computed_of_a_changing_number_is_no_number_yet(use):
    a = 0.25

    def f(x):
        return use(x, a)

    compiled = ng.jit(f)
    for a in (0.25, 0.5, 0.75, 1.0, 10.125 / 8, 0.25):  # noqa: B007 (``f`` reads it)
        np.testing.assert_array_equal(compiled(X), f(X))
