"""``ng.implicit``: derivatives of solutions, by differences and closed forms."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

import numgrad as ng

implicit = ng.implicit
A = np.array([2.0, 0.5])
SYMMETRIC = np.array([[4.0, 1.0, 0.0], [1.0, 5.0, 1.0], [0.0, 1.0, 6.0]])
COUNTED, UNITS = np.arange(3.0), np.eye(3)
SKEW = SYMMETRIC + np.array([[0.0, 0.5, 0.0], [-0.5, 0.0, 0.3], [0.0, -0.3, 0.0]])


def curves(z, a):
    return np.stack([z[0] ** 3 + z[1] - a[0], z[1] * np.exp(0.1 * z[0]) - a[1] * z[0] ** 2 + 0.3])


def bowl(z, a):
    return np.sum((z - a) ** 4) + np.sum(z**2 * a[::-1]) + np.exp(0.1 * z[0] * z[1])


def by_newton_krylov(f, x0):
    return scipy.optimize.newton_krylov(f, x0, f_tol=1e-13)


def right(a):
    return COUNTED + a[0]


def scaled(matrix, a):
    return matrix * a[0] + 3 * a[1] * UNITS


SOLUTIONS = {
    "root": lambda a: implicit.root(curves, [1.0, 1.0], (a,)),
    "root by gmres": lambda a: implicit.root(curves, np.ones(2), (a,), linear="gmres"),
    "root of a solver": lambda a: implicit.root(curves, np.ones(2), (a,), solver=by_newton_krylov),
    "root by closure": lambda a: implicit.root(lambda z: curves(z, 1.0 * a), np.ones(2)),
    "fixed point": lambda a: implicit.fixed_point(
        lambda z, a: 0.5 * np.cos(0.3 * z * a) + a, np.zeros(2), (a,)
    ),
    "argmin": lambda a: implicit.argmin(bowl, np.zeros(2), (a,)),
    "argmin by cg": lambda a: implicit.argmin(bowl, np.zeros(2), (a,), linear="cg", solver="BFGS"),
    "matrix": lambda a: implicit.linear_solve(scaled(SKEW, a), right(a)),
    "matrix by gmres": lambda a: implicit.linear_solve(scaled(SKEW, a), right(a), method="gmres"),
    "matrix by cg": lambda a: implicit.linear_solve(scaled(SYMMETRIC, a), right(a), method="cg"),
    "function": lambda a: implicit.linear_solve(lambda v, a: SKEW @ v * a[0] + v, right(a), (a,)),
    "function by gmres": lambda a: implicit.linear_solve(
        lambda v, a: SKEW @ v * a[0] + v, right(a), (a,), method="gmres"
    ),
    "sparse": lambda a: implicit.linear_solve(sp.csr_array(SKEW), right(a) ** 2),
    "sparse by cg": lambda a: implicit.linear_solve(
        sp.csr_array(SYMMETRIC), right(a) ** 2, method="cg"
    ),
}


def difference(f, a, h=1e-5):
    columns = [(np.asarray(f(a + h * e)) - np.asarray(f(a - h * e))) / (2 * h) for e in np.eye(2)]
    return np.stack(columns, -1)


@pytest.mark.slow(cases=14)
@pytest.mark.parametrize("name", SOLUTIONS)
def test_derivatives_of_solutions(name):
    f = SOLUTIONS[name]

    def values(a):
        return f(ng.tensor(a)).numpy()

    first = ng.jacobian(f)(A)
    np.testing.assert_allclose(first, difference(values, A), rtol=1e-5, atol=1e-8)
    second = ng.jacrev(ng.jacrev(f))(A)
    np.testing.assert_allclose(second, difference(ng.jacobian(f), A), rtol=1e-5, atol=1e-7)
    if "closure" in name:
        return
    np.testing.assert_allclose(ng.jacfwd(f)(A), first, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(ng.jacfwd(ng.jacrev(f))(A), second, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ng.jacrev(ng.jacfwd(f))(A), second, rtol=1e-9, atol=1e-12)
    both = ng.vmap(f)(np.stack([A, 1.1 * A]))
    np.testing.assert_allclose(both[1], f(ng.tensor(1.1 * A)), rtol=1e-9)
    fast = ng.jit(ng.grad(lambda a: f(a).sum()))
    np.testing.assert_allclose(fast(A), first.sum(0), rtol=1e-9)


def test_third_derivatives_in_closed_form():
    """Of the cube root."""

    def root(a):
        return implicit.root(lambda z, a: z**3 - a, 1.0, (a,))

    third = ng.grad(ng.grad(ng.grad(root)))(8.0)
    np.testing.assert_allclose(third, 10 / 27 * 8.0 ** (-8 / 3))


def test_closures_reach_the_leaves():
    a = ng.tensor(4.0, requires_grad=True)
    b = 1.0 * a
    implicit.root(lambda z: z**2 - b * a, 1.0).backward()  # z = a
    np.testing.assert_allclose(a.grad, 1.0)
    np.testing.assert_allclose(
        ng.hessian(lambda a: implicit.argmin(lambda z: np.sum((z - a**2) ** 2), [0.0]).sum())(3.0),
        2.0,
    )


def test_an_argument_that_is_closed_over_as_well():
    def square(k):
        return implicit.root(lambda z, a: z - a * k, 1.0, (k,))

    np.testing.assert_allclose([ng.grad(square)(1.5), ng.grad(ng.grad(square))(1.5)], [3.0, 2.0])


@dataclass
class Pair:
    u: Any
    v: Any


def test_containers():
    def f(z, p):
        return {"a": z["w"].u - p["k"][0] * z["w"].v[0], "b": z["w"].v ** 2 - p["k"][1]}

    def solution(p):
        return implicit.root(f, {"w": Pair(1.0, np.ones(2))}, (p,))["w"]

    p = {"k": (2.0, 3.0)}
    assert solution(p).v.shape == (2,)
    gradient = ng.grad(lambda p: solution(p).u)(p)  # of k0 sqrt(k1)
    np.testing.assert_allclose(gradient["k"], [3**0.5, 3**-0.5])

    def system(x, k):
        return {"a": k * x["a"] + x["b"][0], "b": x["b"] * 2.0}

    b = {"a": 1.0, "b": np.array([2.0, 4.0])}
    for method in ("dense", "gmres"):
        x = implicit.linear_solve(system, b, (4.0,), method=method)
        np.testing.assert_allclose(x["a"], 0.0, atol=1e-12)
        np.testing.assert_allclose(x["b"], [1.0, 2.0])


def test_dtypes():
    a = A.astype(np.float32)
    z = implicit.root(curves, np.ones(2, np.float32), (a,))
    assert z.dtype == np.float32
    np.testing.assert_allclose(z, implicit.root(curves, np.ones(2), (A,)), rtol=1e-5)
    gradient = ng.grad(lambda a: implicit.root(curves, np.ones(2, np.float32), (a,)).sum())(a)
    assert gradient.dtype == np.float32
    c = np.array([1 + 2j, 3 - 1j, 2.0])
    expected = np.linalg.solve(SKEW * (1 + 1j), c)
    for method in ("dense", "gmres"):
        x = implicit.linear_solve(lambda v: (1 + 1j) * (SKEW @ v), c, method=method)
        np.testing.assert_allclose(x, expected)
    given = (ng.tensor(SKEW * (1 + 1j), requires_grad=True), ng.tensor(c, requires_grad=True))
    assert ng.testing.gradcheck(
        lambda m, c: implicit.linear_solve(m, c, method="gmres"), given, rtol=1e-4
    )


def test_under_jit_what_cannot_be_is_said():
    def closed(a):
        return implicit.root(lambda z: z**2 - a, np.ones(2))

    with pytest.raises(ng.NumgradError, match="args"):
        ng.jit(closed)(A)
    with pytest.raises(ng.NumgradRuntimeError, match="args"):
        ng.jit(ng.grad(lambda a: closed(a).sum()))(A)
    for follow in (ng.vmap(closed), lambda a: ng.jvp(closed, (a,), (a,))):
        with pytest.raises(ng.NumgradRuntimeError, match="pass the Tensor in args"):
            follow(A[None])
    with pytest.raises(ng.NumgradRuntimeError, match="second derivative"):
        ng.jit(ng.hessian(lambda a: SOLUTIONS["root"](a).sum()))(A)


BAD = {
    "no root": (lambda: implicit.root(lambda z: z**2 + 1, 1.0), "without a solution"),
    "no contraction": (lambda: implicit.fixed_point(lambda z: 2 * z + 1, 1.0), "no contraction"),
    "no minimum": (lambda: implicit.argmin(lambda z: z, 1.0), "without a solution"),
    "sizes": (lambda: implicit.root(lambda z: z[:1], np.ones(2)), "1 numbers for 2 unknowns"),
    "not a number": (lambda: implicit.argmin(lambda z: z, np.ones(2)), "one real number"),
    "nan": (lambda: implicit.root(curves, [1.0, np.nan], (A,)), "NaN"),
    "complex": (lambda: implicit.root(curves, [1j, 1.0], (A,)), "real and imaginary"),
    "empty": (lambda: implicit.root(lambda z: z, np.zeros(0)), "nothing to solve for"),
    "object": (lambda: implicit.root(lambda z: z, np.array([None])), "dtype object"),
    "method": (lambda: implicit.root(curves, [1.0, 1.0], (A,), solver="no"), "no method 'no'"),
    "linear": (lambda: implicit.root(curves, [1.0, 1.0], (A,), linear="no"), "'no'"),
    "args": (lambda: implicit.root(curves, [1.0, 1.0], A), r"args=\(a,\)"),
    "lies": (lambda: implicit.root(curves, [1.0, 1.0], (A,), solver=lambda f, x: x), "norm"),
    "singular": (
        lambda: ng.grad(lambda a: implicit.root(lambda z, a: (z - a) ** 2, 2.0, (a,)))(2.0),
        "singular at the solution",
    ),
    "not linear": (lambda: implicit.linear_solve(lambda v: v + 1, np.ones(2)), "not linear"),
    "not square": (lambda: implicit.linear_solve(np.ones((2, 3)), np.ones(2)), "square"),
    "not definite": (
        lambda: implicit.linear_solve(np.diag([1.0, -1.0, 0.0]), np.ones(3), method="cg"),
        "positive definite",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named(name):
    call, match = BAD[name]
    with pytest.raises(ng.NumgradError, match=match):
        call()


@pytest.mark.parametrize("f", [lambda x: x**2, np.conj], ids=["square", "conj"])
def test_a_function_that_is_not_linear_is_refused(f):
    with pytest.raises(ng.NumgradValueError, match="not linear"):
        implicit.linear_solve(f, np.array([1.5 + 1j, 2.0]))


def test_a_nearly_singular_linear_function_is_solved():
    hilbert = 1 / (np.arange(12)[:, None] + np.arange(12) + 1)
    found = implicit.linear_solve(lambda x: hilbert @ x, np.ones(12))
    np.testing.assert_allclose(hilbert @ found, np.ones(12), rtol=1e-4)
