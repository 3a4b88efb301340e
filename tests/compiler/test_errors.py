"""Errors of compiled functions: each names the line of the user's code, and a way out."""

import inspect
import math
import pickle
import re

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.errors import NumgradIndexError
from tests.operations.reference import by_name

X = np.array([1.0, 2.0, 3.0])


def raised(kind, match, function, *args, **options):
    """The error of the compiled function; it names the line of ``function`` marked with ``# !``."""
    fast = ng.jit(function, **options)
    with pytest.raises(kind, match=match) as caught:
        fast(*args)
    names_line(str(caught.value), function)
    return str(caught.value)


def names_line(message, function):
    lines, first = inspect.getsourcelines(function)
    (place,) = [k for k, line in enumerate(lines, first) if "# !" in line]
    assert message.startswith(f"{__file__}:{place}: "), message
    assert message.count(__file__) == 1


def test_branch_on_a_value():
    def f(x):
        if x.sum() > 0:  # !
            return x
        return -x

    assert "static" in raised(ng.NumgradTraceError, r"bool\(\).*np\.where", f, X)


def test_a_print_in_a_body():
    def step(c, _):
        print(c)  # !
        return c * 2.0, None

    fast = ng.jit(lambda x: ng.scan(step, x, length=2)[0])
    with pytest.raises(ng.NumgradTraceError, match="would happen once") as caught:
        fast(X)
    names_line(str(caught.value), step)
    assert ng.jit(lambda x: f"{x} {x!r}" and x)(X) is not None  # what is no body says what it is


def test_numbers_of_a_traced_value():
    def as_float(x):
        return x * float(x.sum())  # !

    def by_math(x):
        return x * math.sin(x[0])  # !

    def as_numpy(x):
        return np.sum(x.numpy())  # !

    def sliced(x, n):
        return x[:n]  # !

    raised(ng.NumgradTraceError, r"float\(\) needs the numbers.*static", as_float, X)
    raised(ng.NumgradTraceError, r"float\(\) needs the numbers", by_math, X)
    raised(ng.NumgradTraceError, r"numpy\(\).*numgrad function", as_numpy, ng.tensor(X))
    raised(ng.NumgradTraceError, "a bound of a slice.*static", sliced, X, 2)


@pytest.mark.parametrize("kind", [np.array, ng.tensor])
def test_writing_to_an_argument(kind):
    def f(x):
        x += 1.0  # !
        return x * 2

    def g(x):
        x[0] = 1.0  # !
        return x * 2

    raised(ng.NumgradTraceError, "belongs to the caller; clone.*donate", f, kind(X))
    raised(ng.NumgradTraceError, "belongs to the caller; clone.*donate", g, kind(X))


@pytest.mark.usefixtures("reference_backend")
def test_escaped_values():
    kept = []

    def escape(x):
        kept.append(x * 2)
        return x

    def use(x):
        return x + kept[0]  # !

    ng.jit(escape)(X)
    raised(ng.NumgradTraceError, "finished trace.*return the value", use, X)
    for attempt in (
        lambda: kept[0] + 1,
        lambda: np.sum(kept[0]),
        lambda: kept[0].numpy(),
        lambda: float(kept[0][0]),
    ):
        with pytest.raises(ng.NumgradTraceError, match="finished trace") as caught:
            attempt()
        assert str(caught.value).startswith(f"{__file__}:{attempt.__code__.co_firstlineno}: ")


@pytest.mark.usefixtures("reference_backend")
def test_shapes_that_do_not_fit():
    def add(a, b):
        c = np.exp(a)
        return c + b  # !

    def product(a, b):
        return (a @ b).sum()  # !

    fast = ng.jit(add)
    fast(X, X)  # the lengths are equal, which is a guard from now on
    with pytest.raises(ng.NumgradValueError, match=r"add: shapes \(3,\), \(4,\)") as caught:
        fast(X, np.ones(4))
    names_line(str(caught.value), add)
    raised(ng.NumgradValueError, r"matmul: shapes \(3, 4\) and \(3, 5\)", product,
           np.ones((3, 4)), np.ones((3, 5)))  # fmt: skip


def test_gradients_name_the_line_too():
    def f(x):
        return np.sum(x * ng.tensor(np.ones(4)))  # !

    with pytest.raises(ng.NumgradValueError, match="multiply: shapes") as caught:
        ng.jit(ng.grad(f))(X)
    names_line(str(caught.value), f)


def test_an_index_out_of_range_at_run_time():
    def pick(x, i):
        y = x * 2
        return y[i].sum()  # !

    fast = ng.jit(pick)
    assert fast(X, np.array([0, -1])) == 8.0
    with pytest.raises(ng.NumgradIndexError, match="index 7 is out of range") as caught:
        fast(X, np.array([0, 7]))
    names_line(str(caught.value), pick)
    assert fast(X, np.array([1, 1])) == 8.0


def test_a_negative_exponent_at_run_time():
    def total(n, k):
        y = n**k  # !
        return y.sum()

    fast, n = ng.jit(total), np.array([2, 3])
    assert fast(n, np.array([3, 2])) == 17
    with pytest.raises(ng.NumgradValueError, match="power: an integer to a negative") as caught:
        fast(n, np.array([3, -2]))
    names_line(str(caught.value), total)
    assert fast(n, np.array([0, 1])) == 4
    assert fast(np.array([2.0, 4.0]), np.array([3, -1])) == 8.25


def test_a_frozen_array_is_warned_of():
    noise = np.random.default_rng(0)

    def f(x):
        return x + noise.random(3)  # !

    _, first = inspect.getsourcelines(f)
    with pytest.warns(UserWarning, match="frozen|becomes part of the compiled function") as seen:
        ng.jit(f).graph(X)
    found = next(w for w in seen if re.search("becomes part", str(w.message)))
    assert found.filename == __file__
    assert found.lineno >= first


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("number", [2**63, 2**70, -(2**63) - 1])
def test_integers_beyond_int64_as_arguments(number):
    fast = ng.jit(lambda n, x: n["k"] * x)
    for _ in range(2):  # before and after it is compiled
        with pytest.raises(ng.NumgradTypeError, match=rf"argument n\['k'\] .*{number}.* a float"):
            fast({"k": number}, X)
        np.testing.assert_array_equal(fast({"k": 2}, X), 2 * X)
    np.testing.assert_array_equal(fast({"k": 2**63 - 1}, X), (2**63 - 1) * X)
    np.testing.assert_array_equal(fast({"k": -(2**63)}, X), -(2**63) * X)


def test_methods_that_need_bytes_and_operands_that_are_text():
    def as_bytes(x):
        return x.tobytes()  # !

    def element(x):
        return x.item(1)  # !

    def strides(x):
        return x.strides  # !

    def pickled(x):
        return pickle.dumps(x)  # !

    def text(x):
        return x * "a"  # !

    def text_first(x):
        return b"a" * x  # !

    raised(ng.NumgradTraceError, r"tobytes\(\) needs the numbers", as_bytes, X)
    raised(ng.NumgradTraceError, r"item\(\) needs the numbers", element, X)
    raised(ng.NumgradTraceError, "strides needs the numbers", strides, X)
    raised(ng.NumgradTraceError, "pickling needs the numbers", pickled, X)
    raised(ng.NumgradTypeError, "multiply: .* got str 'a'", text, X)
    raised(ng.NumgradTypeError, "multiply: .* got bytes b'a'", text_first, X)


OTHERS = {
    "roll": {"shift": 1}, "repeat": {"repeats": 2}, "take": {"indices": [0]}, "topk": {"k": 1},
    "split": {"indices_or_sections": 1}, "array_split": {"indices_or_sections": 1},
    "partition": {"kth": 1}, "argpartition": {"kth": 1}, "quantile": {"q": 0.5},
    "percentile": {"q": 50.0}, "nanquantile": {"q": 0.5}, "unfold": {"size": 1},
    "sliding_window_view": {"window_shape": 2}, "gaussian_filter1d": {"sigma": 1.0},
    "uniform_filter1d": {"size": 3}, "resample": {"num": 2},
    "savgol_filter": {"window_length": 3, "polyorder": 1},
}  # fmt: skip
"""What operations along an axis take besides one operand."""


def operations_along_an_axis():
    for op in [*OPS.values()]:
        known = inspect.signature(op).parameters
        needed = {n for n, p in known.items() if p.default is p.empty and n != "axis"}
        needed -= {*OTHERS.get(op.name, {})}
        if "axis" in known and len(needed) == 1 and op.name != "runs":
            yield op


@pytest.mark.parametrize("op", **by_name([*operations_along_an_axis()]))
def test_an_axis_that_is_not_there(op):
    """The error of eager code, and while a function is traced."""
    call = lambda x: op(x, axis=7, **OTHERS.get(op.name, {}))  # noqa: E731
    for function in (call, ng.jit(call)):
        with pytest.raises(NumgradIndexError, match="axis"):
            function(ng.ones((2, 3)))
