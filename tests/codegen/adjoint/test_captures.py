"""What kernels capture is read once, when they are first called."""

import logging
import types

import numpy as np
import pytest

import numgrad as ng

X = np.array([1.0, 2.0])
SCALE = 2.0
ROW = np.array([2.0, 0.0])
settings = types.SimpleNamespace(scale=2.0, row=ROW)


def factor(x):
    return SCALE * x


def other_factor(x):
    return 5.0 * x


def scaled(x):
    s = 0.0
    for i in range(len(x)):
        s += factor(x[i]) * x[i]
    return s


def weighted(x):
    return ROW[0] * np.sum(x * x)


def configured(x):
    return settings.scale * settings.row[0] / 2.0 * np.sum(x * x)


def inside(x):
    def square(v):
        return SCALE * v * v

    return np.sum(np.array([square(x[i]) for i in range(len(x))]))


def times_row(x, row=ROW):
    return row[0] * x


def by_default(x):
    return times_row(np.sum(x * x))


@pytest.fixture
def change(monkeypatch):
    """Change all that the functions read; the arrays in place."""
    before = ROW.copy()

    def change():
        monkeypatch.setitem(globals(), "SCALE", 5.0)
        monkeypatch.setitem(globals(), "factor", other_factor)
        monkeypatch.setattr(settings, "scale", 5.0)
        ROW[0] = 5.0

    yield change
    ROW[:] = before


def uses(f):
    """The value, and what a factor of 2 has it be, by every way that reads the function."""
    values = {
        "call": lambda: f(X),
        "integers": lambda: f(X.astype(int)),
        "single": lambda: f(X.astype(np.float32)),
        "vmap": lambda: ng.vmap(f)(np.stack([X, X]))[0],
        "jit": lambda: ng.jit(f)(X),
        "gradient": lambda: ng.grad(f)(X)[1] * 10 / 8,
        "tangent": lambda: ng.jvp(f, (X,), (X,))[1] / 2,
        "second": lambda: ng.hessian(f)(X)[0, 0] * 10 / 4,
        "of the batch": lambda: ng.vmap(ng.grad(f))(np.stack([X, X]))[0, 1] * 10 / 8,
        "text": lambda: 10 if "5.0" not in f.source("backward", X.astype(np.float32)) else 25,
    }
    return {word: float(use()) for word, use in values.items()}


@pytest.mark.parametrize("save", ["all", "less"])
@pytest.mark.parametrize("function", [scaled, weighted, configured, inside, by_default])
def test_every_use_reads_the_values_of_the_first_call(function, save, change):
    f = ng.kernel(function, save=save)
    f(X)
    change()
    assert set(uses(f).values()) == {10.0}


def test_a_batch_may_come_first(change):
    f = ng.kernel(weighted)
    ng.vmap(f)(np.stack([X, X]))
    change()
    assert f(X) == 10.0
    assert ng.kernel(weighted)(X) == 25.0


def test_values_before_the_first_call_are_not_read(change):
    f = ng.kernel(weighted)
    change()
    assert f(X) == 25.0


def test_a_kernel_in_a_kernel_keeps_its_values(change):
    inner = ng.kernel(weighted)

    @ng.kernel
    def twice(x):
        return 2.0 * inner(x)

    inner(X)
    change()
    assert inner(X) == 10.0
    assert twice(X) == 20.0
    assert ng.grad(twice)(X)[1] == 16.0


def test_a_first_call_that_is_refused_reads_nothing():
    row = np.array(["a"])

    @ng.kernel
    def inner(x):
        return row[0] * x

    @ng.kernel
    def outer(x):
        return inner(x) + late

    with pytest.raises(ng.errors.NumgradKernelError):
        outer(2.0)
    row, late = np.array([3.0]), 1.0
    assert outer(2.0) == 7.0
    row, late = np.array([4.0]), 2.0
    assert outer(2.0) == 7.0
    assert outer(2) == 7.0
    assert inner(2.0) == 6.0


def test_lengths_of_outputs_are_captured(change):
    @ng.kernel(writes={"out": ng.like("x", shape=("int(SCALE)",))})
    def ones(x, out):
        out[:] = x[0]

    assert ones(X).shape == (2,)
    change()
    assert ones(X.astype(np.float32)).shape == (2,)


def test_an_array_in_two_places_is_captured_once():
    a = np.array([1.0, 2.0])
    pair, b = (a, [a, 3.0]), a

    @ng.kernel
    def total(x):
        return x * (pair[0][0] + pair[1][0][1] + a[0] + b[1] + pair[1][1])

    assert total(1.0) == 9.0
    assert len(total.definition.last.function.constants) == 1


def test_an_array_without_axes_is_a_number():
    gain, on = np.array(3.0, np.float32), np.array(True)

    @ng.kernel
    def amplified(x):
        return gain * x * x if on else x

    assert amplified(2.0) == 12.0
    assert ng.grad(amplified)(2.0) == 12.0
    gain[...] = 4.0
    assert amplified(2) == 12.0


def test_values_inside_others_are_those_of_the_first_call():
    inner = types.SimpleNamespace(rates=[1.0, [2.0]], row=np.array([3.0]))
    outer, functions = types.SimpleNamespace(inner=inner, f=factor), (times_row, factor)

    def helped(given, x):
        return given.inner.row[0] * x

    @ng.kernel
    def total(x):
        rate = outer.inner.rates[1][0]
        return rate * x + helped(outer, x) + outer.f(x) + functions[1](x)

    assert total(1.0) == 9.0
    inner.rates[1][0], inner.row[0], outer.f, functions = 7.0, 7.0, None, None
    assert total(1) == 9.0
    assert ng.grad(total)(1.0) == 9.0


def test_a_list_that_contains_itself():
    endless = [1.0]
    endless.append(endless)

    @ng.kernel
    def first(x):
        return endless[0] * x

    with pytest.raises(ng.errors.NumgradKernelError, match="nested too deep"):
        first(1.0)


def test_a_function_that_cannot_be_read_is_refused_where_it_is_called():
    verbose = False

    @ng.kernel
    def logged(x):
        if verbose:
            logging.info(x)
        return 2.0 * x

    assert logged(2.0) == 4.0
    verbose = True
    assert logged(2) == 4.0
    with pytest.raises(ng.errors.NumgradKernelError, match="info"):
        ng.kernel(logged.__wrapped__)(2.0)
