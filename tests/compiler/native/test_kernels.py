"""Functions of ``ng.kernel`` in native functions: values, all sweeps, parallel loops, checks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import prange

import numgrad as ng
from numgrad.core.tree import leaves

RNG = np.random.default_rng(5)
POINTS, ROW = RNG.normal(size=(5, 3)) * 2, RNG.normal(size=6)


@ng.kernel
def potential(p):
    energy = 0.0
    for i in range(p.shape[0]):
        for j in range(i):
            r2 = 0.0
            for k in range(p.shape[1]):
                d = p[i, k] - p[j, k]
                r2 += d * d
            s = 1.0 / (r2 * r2 * r2)
            energy += 4.0 * (s * s - s)
    return energy


@ng.kernel
def tridiagonal(a, b, c, d):
    n = len(d)
    ratio = np.empty(n)
    x = np.empty(n)
    ratio[0] = c[0] / b[0]
    x[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * ratio[i - 1]
        ratio[i] = c[i] / m
        x[i] = (d[i] - a[i] * x[i - 1]) / m
    for i in range(n - 2, -1, -1):
        x[i] = x[i] - ratio[i] * x[i + 1]
    return x


@ng.kernel
def steps(x, count):
    y = x.copy()
    for _ in range(count):
        for i in range(len(y)):
            y[i] = math.sin(y[i]) + 0.1 * y[i]
    return y


@ng.kernel(writes="y")
def square_added(a, x, y):
    for i in range(len(x)):
        y[i] = y[i] + a * x[i] * x[i]


@ng.kernel
def parallel(x):
    total = 0.0
    for i in prange(len(x)):
        total += math.exp(x[i]) * x[i]
    return total


def _solved(d: Any) -> Any:
    return tridiagonal(ROW, ROW + 9, ROW * 0.5, d)


def _in_steps(x: Any) -> Any:
    return np.sum(ng.scan(lambda c, _: (c * parallel(c) / 10, None), x, None, 3)[0])


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "scaled": (ng.value_and_grad(lambda p: potential(p) * 0.37 + np.sum(p)), (POINTS,)),
    "split": (ng.value_and_grad(lambda x, n: np.sum(steps(x, n) ** 2)), (ROW, 4)),
    "in a loop": (ng.value_and_grad(_in_steps), (ROW,)),
    "joint": (ng.value_and_grad(lambda p: potential(p)), (POINTS,)),
    "seed that is computed": (ng.grad(lambda p: np.log(1e3 + potential(p))), (POINTS,)),
    "hvp": (lambda p, v: ng.hvp(potential)(p, v), (POINTS, RNG.normal(size=(5, 3)))),
    "hessian": (ng.hessian(potential), (POINTS[:3],)),
    "jacobian": (ng.jacobian(_solved), (ROW,)),
    "jvp": (lambda x, v: ng.jvp(_solved, (x,), (v,)), (ROW, ROW + 1)),
    "writes": (
        ng.value_and_grad(lambda *x: np.sum(square_added(*x) ** 2), argnums=(0, 1, 2)),
        (2.0, ROW, ROW + 1),
    ),
    "chunks": (ng.value_and_grad(lambda x: parallel(x)), (RNG.normal(size=20_000),)),
    "two calls": (ng.value_and_grad(lambda x: parallel(x) * parallel(2 * x)), (ROW,)),
    "batch": (ng.vmap(parallel), (POINTS,)),
}


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("shapes", ["free", "fixed"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_have_the_bits_of_jit(name: str, shapes: Any) -> None:
    function, arguments = PROGRAMS[name]
    fast = ng.jit(function)
    native = fast.native(*arguments, shapes=shapes)
    for a, b in zip(leaves(native(*arguments)), leaves(fast(*arguments)), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_gradients_that_overflow_for_a_seed_of_1() -> None:
    @ng.kernel
    def steep(x):
        total = 0.0
        for i in range(len(x)):
            total += x[i] * x[i] * x[i]
        return total

    x = np.full(3, 1e154)
    native = ng.jit(ng.grad(lambda x: steep(x) * 1e-10)).native(x)
    np.testing.assert_allclose(native(x), 3e-10 * x * x, rtol=1e-12)


def test_what_a_kernel_itself_refuses() -> None:
    @ng.kernel
    def added(x, y):
        return np.sum(x + y)

    native = ng.jit(lambda x, y: added(x, y)).native(ROW, ROW)
    x, out = ROW.copy(), np.empty(1)
    assert native.ctypes(x.ctypes.data, 6, x.ctypes.data, 6, out.ctypes.data) == 0
    assert out[0] == pytest.approx(2 * np.sum(ROW))
    assert native.ctypes(x.ctypes.data, 6, x.ctypes.data, 5, out.ctypes.data) in (1, 3)
