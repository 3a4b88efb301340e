"""Calls of jitted functions: kinds, nestings, defaults, static arguments, retraces."""

import collections
import inspect
import warnings

import numpy as np
import pytest

import numgrad as ng

pytestmark = pytest.mark.usefixtures("reference_backend")

Point = collections.namedtuple("Point", "x y")
RNG = np.random.default_rng(0)


def traced(function, **options):
    """The jitted function, and the list of its traces."""
    traces = []

    def noted(*args, **kwargs):
        traces.append(1)
        return function(*args, **kwargs)

    noted.__signature__ = inspect.signature(function)
    return ng.jit(noted, **options), traces


# ----------------------------------------------------------------------------------------- kinds


def test_ndarrays_in_ndarrays_out():
    fast = ng.jit(lambda a, b: (a * b, (a + b).sum()))
    a, b = RNG.random((2, 5))
    product, total = fast(a, b)
    assert type(product) is np.ndarray
    assert type(total) is np.float64
    np.testing.assert_array_equal(product, a * b)
    np.testing.assert_allclose(total, (a + b).sum())


def test_a_tensor_among_the_arguments_makes_tensors():
    fast = ng.jit(lambda a, b: (a * b, a.sum()))
    a, b = RNG.random((2, 5))
    for pair in ((ng.tensor(a), b), (a, ng.tensor(b)), (ng.nn.Parameter(ng.tensor(a)), b)):
        product, total = fast(*pair)
        assert isinstance(product, ng.Tensor)
        assert isinstance(total, ng.Tensor)
        assert total.shape == ()
        np.testing.assert_array_equal(product.detach().numpy(), a * b)


def test_numbers_are_read_at_run_time():
    fast, traces = traced(lambda x, n: x * n)
    x = np.ones(3, np.float32)
    for n in (2, 3, -7):
        out = fast(x, n)
        assert out.dtype == np.float32
        np.testing.assert_array_equal(out, x * n)
    assert len(traces) == 1
    assert fast(x, 2.5).dtype == np.float32  # a Python number promotes like one
    assert fast(x, np.float64(2.5)).dtype == np.float64  # and NumPy's like an array
    assert len(traces) == 3


def test_numbers_alone():
    fast = ng.jit(lambda a, b: (a * b, np.sin(a)))
    product, sine = fast(2, 3.5)
    assert type(product) is float
    assert product == 7.0
    np.testing.assert_allclose(sine, np.sin(2.0))


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int64, np.bool_, np.uint8])
def test_each_dtype_is_a_kind(dtype):
    fast = ng.jit(lambda x: x + x)
    x = np.array([1, 0, 2]).astype(dtype)
    for _ in range(2):
        out = fast(x)
        assert out.dtype == (x + x).dtype
        np.testing.assert_array_equal(out, x + x)


def test_arrays_in_any_memory_layout():
    fast, traces = traced(lambda x: x * 2)
    x = RNG.random((6, 8))
    swapped = x.astype(x.dtype.newbyteorder())
    readonly = x.copy()
    readonly.flags.writeable = False
    for y in (x, x.T.copy().T, x[::2, ::-1], x[:, :5], swapped, readonly):
        np.testing.assert_array_equal(fast(y), np.asarray(y) * 2)
    assert len(traces) == 1


def test_subclasses_and_array_likes(tmp_path):
    class Holder:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    fast = ng.jit(lambda x: x + 1)
    mapped = np.memmap(tmp_path / "x", np.float64, "w+", shape=(3,))
    np.testing.assert_array_equal(fast(mapped), np.ones(3))
    np.testing.assert_array_equal(fast(Holder()), np.arange(3.0) + 1)


def test_results_that_are_not_computed():
    def function(x):
        return {"x": x, "shape": x.shape, "none": None, "text": "t", "list": [1, 2.5]}

    out = ng.jit(function)(np.ones((2, 3)))
    assert out["shape"] == (2, 3)
    assert type(out["shape"][0]) is int
    assert (out["none"], out["text"], out["list"]) == (None, "t", [1, 2.5])
    np.testing.assert_array_equal(out["x"], np.ones((2, 3)))


def test_what_cannot_be_returned():
    class Box:
        def __init__(self, x):
            self.x = x

    with pytest.raises(ng.NumgradTypeError, match="returns a Box"):
        ng.jit(Box)(np.ones(3))


# -------------------------------------------------------------------------------------- nesting


def test_nestings_of_arguments_and_results():
    def function(tree, pair):
        assert type(pair) is Point
        return Point(tree["a"][0] + pair.x, {"b": [tree["b"], (pair.y,)]})

    fast = ng.jit(function)
    tree = {"a": [np.ones(2)], "b": np.full(3, 2.0)}
    for _ in range(2):
        out = fast(tree, Point(np.arange(2.0), 5.0))
        assert type(out) is Point
        np.testing.assert_array_equal(out.x, [1.0, 2.0])
        np.testing.assert_array_equal(out.y["b"][0], np.full(3, 2.0))
        assert out.y["b"][1] == (5.0,)


def test_another_nesting_is_another_kind():
    fast, traces = traced(lambda t: sum(t.values()) if isinstance(t, dict) else t[0])
    x = np.ones(2)
    np.testing.assert_array_equal(fast([x]), x)
    np.testing.assert_array_equal(fast((x, x)), x)
    np.testing.assert_array_equal(fast({"a": x, "b": 2 * x}), 3 * x)
    np.testing.assert_array_equal(fast({"a": x, "c": 4 * x}), 5 * x)
    np.testing.assert_array_equal(fast([3 * x]), 3 * x)
    assert len(traces) == 4
    assert fast({}) == 0


def test_the_callers_containers_are_left_alone():
    def function(items):
        items.append(items[0] * 2)
        return items

    given = [np.ones(2)]
    out = ng.jit(function)(given)
    assert len(given) == 1
    assert len(out) == 2


# -------------------------------------------------------------------------------- how one calls


def test_arguments_by_position_and_by_name():
    def function(a, /, b, c=2.0, *, d=1.0):
        return a + 10 * b + 100 * c + 1000 * d

    fast = ng.jit(function)
    a, b = np.ones(2), np.ones(2)
    np.testing.assert_array_equal(fast(a, b), function(a, b))
    np.testing.assert_array_equal(fast(a, b=b, d=5.0), function(a, b=b, d=5.0))
    np.testing.assert_array_equal(fast(a, b, 7.0), function(a, b, 7.0))
    np.testing.assert_array_equal(fast(a, d=0.5, c=3, b=b), function(a, d=0.5, c=3, b=b))
    with pytest.raises(TypeError, match="b"):
        fast(a)
    with pytest.raises(TypeError, match="wrong"):
        fast(a, b, wrong=1)


def test_any_number_of_arguments():
    fast = ng.jit(lambda *xs, scale=1.0, **more: sum(xs) * scale + sum(more.values()))
    x = np.ones(2)
    np.testing.assert_array_equal(fast(x, x), 2 * x)
    np.testing.assert_array_equal(fast(x, x, x, scale=2.0), 6 * x)
    np.testing.assert_array_equal(fast(x, y=x, z=2 * x), 4 * x)


def test_a_default_is_no_argument():
    def function(x, axis=0, flags=("a", "b")):
        assert flags[0] == "a"
        return x.sum(axis=axis)

    fast = ng.jit(function)
    x = RNG.random((2, 3))
    np.testing.assert_allclose(fast(x), x.sum(axis=0))


def test_names_that_a_dispatcher_could_stumble_over():
    def function(type, len, _state, _t0):
        return type + 10 * len + 100 * _state + 1000 * _t0

    def builtins(type, len, Exception):
        return type + 10 * len + 100 * Exception

    a, b, c, d = np.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(ng.jit(function)(a, b, c, d), function(a, b, c, d))
    for _ in range(2):
        np.testing.assert_array_equal(ng.jit(builtins)(a, b, c), builtins(a, b, c))


def test_no_arguments():
    w = np.ones(3)
    fast = ng.jit(lambda: ng.multiply(w, 2))
    np.testing.assert_array_equal(fast().numpy(), 2 * w)


def test_decorator_with_options():
    @ng.jit(static_argnames="n")
    def power(x, n):
        """Repeated product."""
        for _ in range(n - 1):
            x = x * x
        return x

    assert power.__name__ == "power"
    assert power.__doc__ == "Repeated product."
    assert list(inspect.signature(power).parameters) == ["x", "n"]
    np.testing.assert_array_equal(power(np.full(2, 3.0), 2), [9.0, 9.0])


# --------------------------------------------------------------------------------------- static


def test_static_arguments():
    fast, traces = traced(lambda x, axis, op: getattr(ng, op)(x, axis=axis), static_argnums=(1, -1))
    x = RNG.random((2, 3))
    for axis, op in [(0, "sum"), (1, "sum"), (0, "sum"), (None, "sum"), (1, "mean"), (1, "sum")]:
        np.testing.assert_allclose(fast(x, axis, op), getattr(np, op)(x, axis=axis))
    assert len(traces) == 4
    np.testing.assert_allclose(fast(op="sum", x=x, axis=1), x.sum(axis=1))
    assert len(traces) == 4


def test_static_values_are_compared_with_their_types():
    fast, traces = traced(lambda x, k: x * k, static_argnames="k")
    x = np.ones(2, np.float32)
    for k in (1, True, 1.0, 0.0, -0.0):
        np.testing.assert_array_equal(fast(x, k=k), x * k)
        assert np.signbit(fast(x, k=k)[0]) == np.signbit((x * k)[0])
    assert len(traces) == 5


def test_a_static_list_is_compared_by_content():
    fast, traces = traced(lambda x, shape: x.reshape(shape), static_argnums=1)
    shape = [2, 3]
    assert fast(np.arange(6.0), shape).shape == (2, 3)
    assert fast(np.arange(6.0), [2, 3]).shape == (2, 3)
    assert len(traces) == 1
    shape.reverse()
    assert fast(np.arange(6.0), shape).shape == (3, 2)
    assert len(traces) == 2


def test_strings_bools_and_functions_are_static_by_themselves():
    fast, traces = traced(lambda x, f, flag, name: f(x) if flag and name == "a" else -x)
    x = np.ones(2)
    np.testing.assert_allclose(fast(x, np.sin, True, "a"), np.sin(x))
    np.testing.assert_allclose(fast(x, np.cos, True, "a"), np.cos(x))
    np.testing.assert_allclose(fast(x, np.sin, False, "a"), -x)
    np.testing.assert_allclose(fast(x, np.sin, True, "b"), -x)
    np.testing.assert_allclose(fast(x, np.sin, True, "a"), np.sin(x))
    assert len(traces) == 4


def test_static_arguments_that_cannot_be():
    with pytest.raises(ng.NumgradTypeError, match=r"static argument x .* is an array"):
        ng.jit(lambda x: x, static_argnums=0)(np.ones(2))

    class Strange:
        __hash__ = None

        def __eq__(self, other):
            raise RuntimeError

    with pytest.raises(ng.NumgradTypeError, match="neither be hashed nor compared"):
        ng.jit(lambda x: x, static_argnums=0)(Strange())


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"static_argnames": "y"}, "names 'y', and the parameters of f are x"),
        ({"static_argnums": 1}, "names argument 1"),
        ({"donate": 3}, "donate names argument 3"),
        ({"static_argnums": 0, "donate": "x"}, "both static and donated"),
        ({"parallel": "yes"}, "parallel"),
    ],
)
def test_options_that_make_no_sense(options, match):
    def f(x):
        return x

    with pytest.raises(ng.NumgradValueError, match=match):
        ng.jit(f, **options)


def test_what_is_no_function():
    with pytest.raises(ng.NumgradTypeError, match="compiles functions"):
        ng.jit(3)
    with pytest.raises(ng.NumgradTypeError, match="contract"):
        ng.jit(lambda x: x, contract=1)


def test_an_argument_that_is_nothing_jit_knows():
    class Config:
        rate = 0.5

    fast = ng.jit(lambda x, c: x * c.rate)
    with pytest.raises(ng.NumgradTypeError, match=r"the argument c of .* is a Config"):
        fast(np.ones(2), Config())
    static = ng.jit(lambda x, c: x * c.rate, static_argnames="c")
    np.testing.assert_array_equal(static(np.ones(2), Config()), [0.5, 0.5])
    with pytest.raises(ng.NumgradTypeError, match="float16"):
        fast(np.ones(2, np.float16), 1)


# ------------------------------------------------------------------------------------- retraces


def test_one_trace_for_all_sizes():
    fast, traces = traced(lambda a, b: a @ b + a.shape[0])
    for m, n, k in [(2, 3, 4), (5, 6, 7), (3, 3, 3)]:
        a, b = RNG.random((m, n)), RNG.random((n, k))
        np.testing.assert_allclose(fast(a, b), a @ b + m)
    assert len(traces) == 1


def test_lengths_of_0_and_1_are_kinds():
    fast, traces = traced(lambda a, b: a + b)
    for shape_a, shape_b in [((3,), (3,)), ((3,), (1,)), ((1,), (3,)), ((0,), (1,)), ((4,), (4,))]:
        a, b = np.ones(shape_a), np.ones(shape_b)
        assert fast(a, b).shape == (a + b).shape
    assert len(traces) == 4


def test_a_shape_mismatch_raises_as_eager_code_does():
    fast = ng.jit(lambda a, b: a + b)
    fast(np.ones(3), np.ones(3))
    with pytest.raises(ng.NumgradValueError, match="broadcast"):
        fast(np.ones(3), np.ones(4))
    np.testing.assert_array_equal(fast(np.ones(4), np.ones(4)), np.full(4, 2.0))


def test_a_branch_on_a_length_is_guarded():
    fast, traces = traced(lambda x: x * 2 if x.shape[0] > 3 else x * 3)
    for n, factor in [(5, 2), (2, 3), (7, 2), (3, 3)]:
        np.testing.assert_array_equal(fast(np.ones(n)), np.full(n, factor))
    assert len(traces) == 2


def test_fixed_shapes_on_request():
    fast, traces = traced(lambda x: x * 2, dynamic=False)
    for n in (2, 3, 2):
        np.testing.assert_array_equal(fast(np.ones(n)), np.full(n, 2.0))
    assert len(traces) == 2


def test_a_warning_after_eight_retraces_says_why():
    fast, traces = traced(lambda x: x * len(range(x.shape[0])))
    for n in range(2, 10):
        fast(np.ones(n))
    with pytest.warns(UserWarning, match=r"noted was traced again 8 times.*x\.shape\[0\] was 9"):
        fast(np.ones(10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(2, 12):  # the oldest are still there
            np.testing.assert_array_equal(fast(np.ones(n)), np.full(n, n))
    assert len(traces) == 10


def test_an_error_leaves_nothing_behind():
    fails = [True]

    @ng.jit
    def function(x):
        y = x * 2
        if fails:
            raise KeyError("of the user's")
        return y

    for _ in range(2):
        with pytest.raises(KeyError, match="of the user's"):
            function(np.ones(3))
    assert function.specialisations == []
    assert ng.tanh(ng.tensor(0.0)).item() == 0.0  # no tracer is left
    fails.clear()
    np.testing.assert_array_equal(function(np.ones(3)), np.full(3, 2.0))


# --------------------------------------------------------------------------------- seeing inside


def test_statistics():
    def quadrupled(x):
        return 4 * x

    fast = ng.jit(quadrupled)
    for n in (3, 4, 5):
        fast(np.ones(n))
    fast(np.ones((2, 2)))
    found = next(s for s in ng.jit_stats() if s.name.endswith("quadrupled"))
    assert (found.calls, found.traces) == (4, 2)
    assert found.seconds > 0
    assert "quadrupled" in repr(ng.jit_stats())


def test_raw_graph_and_report():
    fast = ng.jit(lambda x, y: {"s": x["a"] * y + x["a"].shape[0]})
    assert "multiply" in str(fast.graph({"a": np.ones(3)}, np.ones(3)))
    assert fast.specialisations == []
    with pytest.raises(ng.NumgradRuntimeError, match="not compiled yet"):
        _ = fast.raw
    a, b = RNG.random((2, 3))
    fast({"a": a}, b)
    np.testing.assert_array_equal(fast.raw({"a": a}, b)["s"], a * b + 3)
    fast({"a": a}, 2.0)
    text = fast.report()
    assert "2 calls, 2 traces" in text
    assert "x['a']: float64[n0]" in text
    assert "argument y was an ndarray, now a number (float)" in text
