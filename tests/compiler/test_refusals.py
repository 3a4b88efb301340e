"""What a compiled or batched function cannot do, where its own ``try`` catches the error."""

import contextlib
import math

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradRuntimeError, NumgradTraceError

X = np.array([1.0, 2.0])


def by_except(x):
    try:
        factor = math.sqrt(x[0])
    except (TypeError, ValueError):
        factor = 0.0
    return x * factor


def by_suppress(x):
    with contextlib.suppress(Exception):
        if x[0] > 0:
            return x * 10
    return x


@contextlib.contextmanager
def quiet():
    try:  # noqa: SIM105
        yield
    except Exception:
        pass


def by_context(x):
    with quiet():
        return x * float(x[0])
    return x


def by_stack(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(Exception))
        return x * int(x[0])
    return x


def of_numpy(x):
    b = np.zeros(2)
    try:
        b[0] = x[1]
    except ValueError:
        b[0] = 7.0
    return x * b


def then_another(x):
    try:
        return x * float(x[0])
    except TypeError:
        return x * (1 if x[0] > 0 else 2)


def then_ones_own(x):
    try:
        return x * float(x[0])
    except TypeError as error:
        raise ValueError("mine") from error


SWALLOWED = (by_except, by_suppress, by_context, by_stack, of_numpy, then_another, then_ones_own)
AROUND = {
    "itself": lambda f: f,
    "gradient": lambda f: ng.grad(lambda x: np.sum(f(x))),
    "step": lambda f: lambda x: ng.scan(lambda c, _: (f(c), None), x, length=2)[0],
    "branch": lambda f: lambda x: ng.cond(x[0] > 0, lambda: f(x), lambda: x),
}


@pytest.mark.parametrize("f", SWALLOWED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("around", AROUND)
def test_refused_and_caught(f, around):
    with pytest.raises(NumgradTraceError, match=r"test_refusals.py:\d+: (float|bool|int)\(\)"):
        ng.jit(AROUND[around](f))(X)


@pytest.mark.parametrize("f", SWALLOWED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", [ng.vmap, lambda f: ng.jit(ng.vmap(f))])
def test_refused_in_a_batch_and_caught(f, transform):
    with pytest.raises(NumgradRuntimeError, match="all examples of a batch at once"):
        transform(f)(np.stack([X, X]))


def test_fallback_around_a_batch():
    """Eager code takes the second way, too."""

    def f(x):
        try:
            return ng.vmap(lambda v: v * float(v))(x)
        except RuntimeError:
            return x * 3

    np.testing.assert_array_equal(ng.jit(f)(X), f(X))


def test_asking_is_no_branch():
    def f(x):
        extra = 2.0 if hasattr(x, "no_such_name") or isinstance(x[0], float) else 3.0
        y = np.linalg.lstsq(np.eye(2), x, rcond=None)[0]
        try:
            return extra * y[5]
        except IndexError:
            return extra * y

    np.testing.assert_allclose(ng.jit(f)(X), 3 * X)


class Rooted(ng.autograd.Function):
    """Asks for numbers, so that a compiled function calls it back."""

    @staticmethod
    def forward(ctx, x):
        try:
            factor = math.sqrt(x[0])
        except TypeError:
            factor = 0.0
        return ng.tensor(x * factor)

    @staticmethod
    def backward(ctx, g):
        return g


def test_function_that_is_called_back():
    np.testing.assert_array_equal(ng.jit(lambda x: Rooted.apply(ng.asarray(x)))(4 * X), 8 * X)


def test_element_of_an_array():
    """NumPy says nothing of Tensors; ours says what to do."""

    def f(x):
        b = np.zeros(2)
        b[0] = x[1]
        return np.sum(x * b)

    with pytest.raises(NumgradTraceError, match=r"float\(\) needs the numbers"):
        ng.jit(f)(X)
    for transform in (ng.grad, ng.jacobian, ng.jacfwd, ng.hessian):
        with pytest.raises(NumgradRuntimeError, match=r"float\(\): the tensor of shape"):
            transform(f)(X)


@pytest.mark.parametrize("index", [True, np.True_, False, (slice(None), True), (True, slice(1))])
def test_index_that_is_a_constant_mask(index):
    found = ng.jit(lambda x: x[index])(X)
    np.testing.assert_array_equal(found, X[index])
