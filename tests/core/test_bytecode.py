"""Facts read from bytecode, and compiled functions on a Python whose bytecode is not known."""

import sys
import types

import numpy as np
import pytest

import numgrad as ng
from numgrad.core import bytecode

X = np.array([1.0, 2.0, 3.0])
NAMES = ("a", "b")
LIMIT = 2.0


@pytest.fixture(params=["known", "unknown"])
def version(request, monkeypatch):
    """This version of Python, and one that the module does not know."""
    if request.param == "unknown":
        monkeypatch.setattr(bytecode, "VERSION", (3, 99))
    bytecode.facts.cache_clear()
    yield request.param
    bytecode.facts.cache_clear()


def imports():
    import numpy.linalg  # noqa: F401

    from . import samples  # noqa: F401


def builds(end="ape"):
    return getattr(X, "sh" + end), getattr(X, "size", LIMIT)


def asks():
    return getattr(X, "size", np.inf), hasattr(X, "shape")


def changes(counts):
    def inner():
        nonlocal counts
        counts = np.add(counts, 3, out=counts)
        return counts

    counts[0] += 1
    counts.total = 4
    return inner


def catches():
    try:
        return X.size
    except AttributeError:
        return "unit"


def closes(file):
    with file:
        return (0.5, "row"), file


def test_this_python_is_known():
    assert sys.implementation.name != "cpython" or bytecode.is_known()


def test_imports():
    found = set(bytecode.facts(imports.__code__).imports)
    assert found == {("", 1), ("numpy.linalg", 0), ("numpy", 0)}


@pytest.mark.parametrize(
    ("function", "expected"), [(builds, True), (asks, False), (catches, False)]
)
def test_names_that_are_built(function, expected):
    assert bytecode.facts(function.__code__).builds_names is expected


def test_stores_of_a_function_and_those_in_it():
    has = bytecode.facts(changes.__code__)
    assert has.assigns_outside
    assert has.sets_attributes
    assert has.sets_elements
    assert has.updates
    assert has.assigned == frozenset()
    assert has.keywords == {"out"}
    assert {1, 3, 4} <= has.numbers
    inner = next(c for c in changes.__code__.co_consts if isinstance(c, types.CodeType))
    assert bytecode.facts(inner).assigned == {"counts"}


def test_constants_and_handlers():
    assert bytecode.facts(catches.__code__).catches
    assert "unit" in bytecode.facts(catches.__code__).strings
    has = bytecode.facts(closes.__code__)
    assert not has.catches
    assert "row" in has.strings
    assert 0.5 in has.numbers


@pytest.mark.parametrize("function", [imports, builds, asks, changes, catches, closes])
def test_what_an_unknown_version_may_mean_is_more(function, monkeypatch):
    known = bytecode.facts(function.__code__)
    monkeypatch.setattr(bytecode, "VERSION", (3, 99))
    bytecode.facts.cache_clear()
    most = bytecode.facts(function.__code__)
    bytecode.facts.cache_clear()
    for field in ("names", "globals", "attributes", "strings", "keywords", "imports", "assigned"):
        assert set(getattr(most, field)) >= set(getattr(known, field)), field
    for field in ("assigns_outside", "sets_attributes", "sets_elements", "updates", "catches"):
        assert getattr(most, field), field
    assert most.matches_classes
    assert most.builds_names >= known.builds_names


# ------------------------------------------------------------------------ in compiled functions


class Model:
    """Weights that code gets by name."""

    def __init__(self):
        self.a, self.b, self.w0 = 1.0, 2.0, np.array([1.0, 1.0, 2.0])


def agrees(function, change):
    """Check that a compiled function does as the plain one; how often it was traced."""
    fast = ng.jit(function)
    for number in (1.0, 2.0, 5.0, 7.0):
        change(number)
        expected = function(X)
        np.testing.assert_array_equal(fast(X), expected)
        np.testing.assert_array_equal(fast(X), expected)
    return len(fast.specialisations)


def word():
    """A name, which is a constant of its own code."""
    return "a"


GETTERS = {
    "constant": lambda model: lambda x: x * getattr(model, "a"),  # noqa: B009
    "tuple": lambda model: lambda x: next(x * getattr(model, n) for n in ("a", "b")),
    "global": lambda model: lambda x: next(x * getattr(model, n) for n in NAMES),
    "built": lambda model: lambda x: x * getattr(model, f"w{0}") * getattr(model, "a"),  # noqa: B009
    "split": lambda model: lambda x: next(x * getattr(model, n) for n in ["a", "b"]),
    "returned": lambda model: lambda x: x * getattr(model, word()),
    "default": lambda model: lambda x, names=NAMES: next(x * getattr(model, n) for n in names),
    "read": lambda model: lambda x: x * model.a,
}


@pytest.mark.parametrize("getter", GETTERS)
def test_attributes_by_any_name(getter, version):
    model = Model()

    def change(number):
        model.a = number
        model.w0 = np.array([number, 1.0, 2.0])

    agrees(GETTERS[getter](model), change)


def test_numbers_arrays_and_globals(version):
    table, box = np.array([1.0, 2.0, 4.0]), {"scale": 1.0}

    def function(x):
        return x @ table / np.std(table) * box["scale"] * LIMIT

    def change(number):
        table[0] = number
        box["scale"] = number
        globals()["LIMIT"] = number + 1

    traced = agrees(function, change)
    assert traced == 4


def test_promotion_is_left_out_where_bytecode_is_not_read(version):
    model = Model()
    traced = agrees(lambda x: x * model.a, lambda number: setattr(model, "a", number))
    assert traced == (3 if version == "known" else 4)


def test_side_effects_of_steps_are_found(version):
    counts = []

    def step(carry, x):
        counts.append(1)
        return carry + x, carry

    with pytest.raises(ng.errors.NumgradTraceError, match="append"):
        ng.jit(lambda x: ng.scan(step, 0.0, x)[0])(X)


def test_errors_that_a_function_catches(version):
    def function(x):
        try:
            return x * float(x[0])
        except TypeError:
            return x

    with pytest.raises(ng.errors.NumgradError):
        ng.jit(function)(X)


def test_gradients(version):
    value, gradient = ng.jit(ng.value_and_grad(lambda x: np.sum(x**2) * NAMES.index("b")))(X)
    assert value == 14.0
    np.testing.assert_array_equal(gradient, [2.0, 4.0, 6.0])
