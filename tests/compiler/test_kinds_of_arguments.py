"""What code is told of the kinds of its arguments while it is traced."""

import functools
import numbers

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler.call import signature
from numgrad.compiler.call.signature import same_key
from tests.compiler.emulator import emulating

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize("given", [X, 2.0, 2, 2j, True, np.float64(2.0), np.float32(2.0)], ids=repr)
@pytest.mark.parametrize(
    "kind",
    [
        np.ndarray, float, int, bool, complex, numbers.Number, numbers.Integral, np.floating,
        (list, np.ndarray), float | np.float32,
    ],
    ids=str,
)  # fmt: skip
def test_isinstance_says_what_was_given(kind, given):
    def function(x):
        return x * 2 if isinstance(x, kind) else x * 3

    np.testing.assert_array_equal(ng.jit(function)(given), function(given))


def test_other_questions():
    def by_class(x):
        return x * 2 if x.__class__ is np.ndarray else x * 3

    def by_match(x):
        match x:
            case np.ndarray():
                return x * 2
            case float():
                return x * 3
        return x

    def inside(x):
        return helper(x["x"][0], 2.0)

    def helper(x, y):
        return x * y * 2 if isinstance(x, np.ndarray) and isinstance(y, float) else x

    for function, given in ((by_class, X), (by_match, X), (by_match, 2.0), (inside, {"x": [X]})):
        np.testing.assert_array_equal(ng.jit(function)(given), function(given))


def test_tensors_are_tensors_to_us_and_to_those_who_gave_them():
    def function(x):
        assert isinstance(x, ng.Tensor)
        return x * 3 if isinstance(x, np.ndarray) else x * 2

    np.testing.assert_array_equal(ng.jit(function)(ng.tensor(X)), 2 * X)
    np.testing.assert_array_equal(ng.jit(ng.grad(lambda x: np.sum(function(x))))(X), [2.0] * 3)

    def several(x, n, y):
        assert isinstance(x, np.ndarray)
        assert isinstance(n, int)
        z = np.stack([x, np.where(x > 1, x, y), x])
        total = ng.fori_loop(0, n, lambda k, c: c * y + k, x)
        gradient = ng.grad(lambda u: np.sum(np.sin(u * x) * y))(x)
        mapped = ng.vmap(lambda row, w: row @ w, in_axes=(0, None))(z, x)
        return z, total, gradient, mapped, np.linalg.norm(x), ng.jvp(np.sin, (x,), (y,))[1], x

    def plain(x, n, y):
        z = np.stack([x, np.where(x > 1, x, y), x])
        total = x
        for k in range(n):
            total = total * y + k
        gradient = np.cos(x * x) * x * y
        return z, total, gradient, z @ x, np.linalg.norm(x), np.cos(x) * y, x

    found, expected = ng.jit(several)(X, 4, X / 2), plain(X, 4, X / 2)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_gradients_that_lead_through_a_function_that_asks():
    w = ng.tensor(X, requires_grad=True)

    @ng.jit
    def loss(x, scale):
        assert isinstance(x, np.ndarray)
        return (np.sin(w * x) * scale).sum()

    loss(X, 2.0).backward()
    np.testing.assert_allclose(w.grad, np.cos(X * X) * X * 2, rtol=1e-14)


def test_the_kind_is_told_while_the_function_is_traced_only():
    kept = []

    def function(x):
        kept.append((x, isinstance(x, np.ndarray)))
        return x * 2

    ng.jit(function)(X)
    assert kept[0][1]
    assert type(kept[0][0]) is ng.Tensor
    assert not isinstance(kept[0][0], np.ndarray)

    def fails(x):
        kept.append((x, isinstance(x, np.ndarray)))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        ng.jit(fails)(X)
    assert type(kept[1][0]) is ng.Tensor


def test_type_and_what_is_computed_are_those_of_transforms():
    @functools.singledispatch
    def dispatched(x):
        return x * 3

    for function in (
        lambda x: x * 2 if type(x) is np.ndarray else x * 3,
        lambda x: x * 2 if isinstance(x + 0, np.ndarray) else x * 3,
    ):
        np.testing.assert_array_equal(ng.jit(function)(X), 3 * X)  # as ng.jit says in its notes
    np.testing.assert_array_equal(ng.jit(dispatched)(X), 3 * X)


@pytest.mark.filterwarnings("ignore:.*was traced again")
def test_kinds_are_found_without_a_walk(monkeypatch):
    compared = []

    def counted(a, b):
        compared.append(1)
        return same_key(a, b)

    with emulating():
        fast = ng.jit(lambda x: np.sum(x * x), dynamic=False)
        for n in range(2, 30):
            fast(np.ones(n))
        monkeypatch.setattr(signature, "same_key", counted)
        for n in range(2, 30):
            assert fast(np.ones(n)) == n
        assert len(compared) <= 28
        assert fast.statistics.traces == 28


def test_static_values_without_a_hash_are_told_apart():
    with emulating():
        fast = ng.jit(lambda x, scale: np.sum(x) * scale["a"], static_argnames="scale")
        for a in (2.0, 3.0, 2.0):
            assert fast(np.ones(2), {"a": a}) == 2 * a
        assert fast.statistics.traces == 2
