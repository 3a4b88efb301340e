"""Kernels in compiled functions: the backward sweep reads the state of the forward sweep."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.adjoint.program import DerivativeProgram
from tests.codegen.adjoint import hyperdual
from tests.codegen.adjoint.test_split import chain, smooth

RNG = np.random.default_rng(8)
X = RNG.uniform(0.2, 1.2, 7)


def squares(x, a):
    """A fused sum."""
    s = 0.0
    for i in range(len(x)):
        s += (x[i] - a) ** 2
    return s


def late(x, a):
    """Loops of which only the last is fused."""
    y = np.zeros(len(x))
    for _ in range(3):
        for i in range(len(x)):
            y[i] = a * y[i] * x[i] + x[i]
    s = 0.0
    for i in range(len(x)):
        s += y[i] * y[i]
    return s


def ragged(x, a):
    """A loop whose length is computed from floats: there is no split form."""
    s = 1.0
    while s < 20.0:
        s = s * (1.5 + a * x[0]) + x[1]
    return s


CASES = [(chain, ()), (smooth, "u"), (squares, ()), (late, ()), (ragged, ())]
IDS = ["split", "overwritten", "fused", "fused at the end", "joint"]


@pytest.fixture
def sweeps(monkeypatch):
    """The names of sweeps that run, in order."""
    ran = []
    for name in ("call", "vjp", "forward_sweep", "backward_sweep"):
        whole = getattr(DerivativeProgram, name)

        def counted(self, *args, _name=name, _whole=whole, **kwargs):
            ran.append(_name)
            return _whole(self, *args, **kwargs)

        monkeypatch.setattr(DerivativeProgram, name, counted)
    return ran


def exact(function, written, weights):
    return hyperdual.run(function, [X, 0.3], [0] if written else [], weights)


@pytest.mark.parametrize(("function", "writes"), CASES, ids=IDS)
def test_the_function_is_not_computed_twice(function, writes, sweeps):
    kernel = ng.kernel(function, writes=writes)

    def loss(x, a):
        return np.sum(kernel(x, a) ** 2)

    (y,) = exact(function, writes, None).outputs
    truth = exact(function, writes, [2.0 * np.asarray(y)])
    value, gradients = ng.jit(ng.value_and_grad(loss, argnums=(0, 1)))(X, 0.3)
    assert sweeps == ["forward_sweep", "backward_sweep"]
    np.testing.assert_allclose(float(value), np.sum(np.asarray(y) ** 2), rtol=1e-12)
    for seen, wanted in zip(gradients, truth.gradients, strict=True):
        np.testing.assert_allclose(np.asarray(seen), wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("function", "writes"), CASES[:4], ids=IDS[:4])
def test_a_recorded_call_of_a_compiled_function(function, writes, sweeps):
    kernel = ng.kernel(function, writes=writes)
    compiled = ng.jit(lambda x, a: np.sum(kernel(np.sin(x), a * a) ** 2))

    def plain(x, a):
        return ng.value_and_grad(lambda x, a: np.sum(kernel(np.sin(x), a * a) ** 2), (0, 1))(x, a)

    x, a = ng.tensor(X, requires_grad=True), ng.tensor(0.3, requires_grad=True)
    out = compiled(x, a)
    assert sweeps == ["forward_sweep"]
    for _ in range(2):  # the state is there for another backward
        x.grad = a.grad = None
        out.backward(retain_graph=True)
        value, wanted = plain(X, 0.3)
        np.testing.assert_allclose(out.item(), float(value), rtol=1e-13)
        np.testing.assert_allclose(np.asarray(x.grad), np.asarray(wanted[0]), rtol=1e-11)
        np.testing.assert_allclose(float(a.grad), float(wanted[1]), rtol=1e-11)
    # the backward of the compiled function is differentiated from its operands
    (gx,) = ng.autograd.grad(compiled(x, 0.3), (x,), create_graph=True)
    (hx,) = ng.autograd.grad(np.sum(gx * X), (x,))
    wanted = ng.hvp(lambda x: np.sum(kernel(np.sin(x), 0.09) ** 2))(X, X)
    np.testing.assert_allclose(np.asarray(hx), np.asarray(wanted), rtol=1e-9, atol=1e-11)


def test_several_gradients_of_one_call(sweeps):
    kernel = ng.kernel(smooth, writes="u")

    def rows(x, a):
        y = kernel(x, a)
        one = ng.autograd.grad(y[2] ** 2, (x,), retain_graph=True)[0]
        other = ng.autograd.grad(y[5] * y[6], (x, a))
        return y, one, *other

    def recorded(x, a):
        return rows(ng.tensor(x, requires_grad=True), ng.tensor(a, requires_grad=True))

    wanted = recorded(X, np.float64(0.3))
    sweeps.clear()
    seen = ng.jit(lambda x, a: rows(x, a))(
        ng.tensor(X, requires_grad=True), ng.tensor(0.3, requires_grad=True)
    )
    assert sorted(sweeps) == ["backward_sweep", "backward_sweep", "forward_sweep"]
    for s, w in zip(seen, wanted, strict=True):
        np.testing.assert_allclose(s.detach().numpy(), w.detach().numpy(), rtol=1e-12)
