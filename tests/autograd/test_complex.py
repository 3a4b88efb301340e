"""Gradients with complex numbers: ``dL/dz*``, that is ``dL/dx + i dL/dy`` of a real ``L``.

Each function is written in NumPy, so that it runs on plain ndarrays too. Its gradient is compared
with differences of NumPy's own values along both directions of the plane, and with PyTorch's; so
is the second derivative with PyTorch's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck

pytestmark = pytest.mark.slow

EPS = 1e-6


@dataclass
class Case:
    """A function of complex ``z``, ``w`` and real ``x`` of shape (2, 3), as many as it names."""

    label: str
    operands: str
    function: Callable[..., Any]
    peer: Callable[..., Any] | None = None  # of torch and the operands

    def __str__(self) -> str:
        return self.label


def named(name: str, peer: str = "", **options: Any) -> Case:
    """An elementwise function with the same or another name in PyTorch."""
    return Case(
        name,
        "z",
        lambda z: getattr(np, name)(z, **options),
        lambda torch, z: getattr(torch, peer or name)(z),
    )


HOLOMORPHIC = [
    *map(named, [
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "square", "reciprocal",
        "negative", "positive", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh",
        "tanh", "arcsinh", "arccosh", "arctanh",
    ]),
    Case("add", "zw", lambda z, w: z + w, lambda torch, z, w: z + w),
    Case("subtract", "zw", lambda z, w: z - w, lambda torch, z, w: z - w),
    Case("multiply", "zw", lambda z, w: z * w, lambda torch, z, w: z * w),
    Case("divide", "zw", lambda z, w: z / w, lambda torch, z, w: z / w),
    Case("power", "zw", lambda z, w: z**w, lambda torch, z, w: z**w),
    Case("power-square", "z", lambda z: z**2, lambda torch, z: z**2),
    Case("power-fraction", "z", lambda z: z**-1.5, lambda torch, z: z**-1.5),
    Case("power-complex", "z", lambda z: z ** (1 + 2j), lambda torch, z: z ** (1 + 2j)),
    Case("power-of-number", "z", lambda z: 2.0**z, lambda torch, z: 2.0**z),
    Case("number-complex", "z", lambda z: (1 - 2j) * z / 3j, lambda torch, z: (1 - 2j) * z / 3j),
]  # fmt: skip

PLANE = [
    named("conjugate", "conj"),
    named("real"),
    named("imag"),
    named("absolute", "abs"),
    named("angle"),
    named("sign", "sgn"),
    Case("norm-squared", "z", lambda z: (z * np.conj(z)).real,
         lambda torch, z: (z * z.conj()).real),
    Case("parts", "z", lambda z: z.real * z.imag, lambda torch, z: z.real * z.imag),
    Case("mixed", "zw", lambda z, w: np.abs(z) * np.conj(w),
         lambda torch, z, w: z.abs() * w.conj()),
    Case("log-magnitude", "z", lambda z: np.log(np.abs(z)), lambda torch, z: z.abs().log()),
    Case("polar", "xz", lambda x, z: x * np.exp(1j * z.real),
         lambda torch, x, z: x * torch.exp(1j * z.real)),
    Case("where", "zw", lambda z, w: np.where(z.real > 1, z, w),
         lambda torch, z, w: torch.where(z.real > 1, z, w)),
    Case("nan_to_num", "z", lambda z: np.nan_to_num(z), lambda torch, z: z * 1),
]  # fmt: skip

REAL_BESIDE_COMPLEX = [
    Case("real-add", "xz", lambda x, z: x + z, lambda torch, x, z: x + z),
    Case("real-subtract", "xz", lambda x, z: z - x, lambda torch, x, z: z - x),
    Case("real-multiply", "xz", lambda x, z: x * z, lambda torch, x, z: x * z),
    Case("real-divide", "xz", lambda x, z: x / z, lambda torch, x, z: x / z),
    Case("divide-real", "xz", lambda x, z: z / x, lambda torch, x, z: z / x),
    Case("real-power", "xz", lambda x, z: x**z, lambda torch, x, z: x**z),
    Case("power-real", "xz", lambda x, z: z**x, lambda torch, x, z: z**x),
    Case("imaginary", "x", lambda x: np.exp(1j * x), lambda torch, x: torch.exp(1j * x)),
    Case("real-broadcast", "xz", lambda x, z: x[0] * z, lambda torch, x, z: x[0] * z),
    Case("real-matmul", "xz", lambda x, z: x @ z.T, lambda torch, x, z: x.to(z.dtype) @ z.T),
    Case("matmul-real", "xz", lambda x, z: z @ x.T, lambda torch, x, z: z @ x.to(z.dtype).T),
    Case("real-vector", "xz", lambda x, z: z @ x[0], lambda torch, x, z: z @ x[0].to(z.dtype)),
    Case("real-einsum", "xz", lambda x, z: np.einsum("ij,ij->i", x, z),
         lambda torch, x, z: torch.einsum("ij,ij->i", x.to(z.dtype), z)),
    Case("real-where", "xz", lambda x, z: np.where(x > 1, x, z),
         lambda torch, x, z: torch.where(x > 1, x.to(z.dtype), z)),
    Case("real-concatenate", "xz", lambda x, z: np.concatenate([x, z]),
         lambda torch, x, z: torch.cat([x, z])),
    Case("astype", "x", lambda x: x.astype(np.complex128) * (1 + 2j),
         lambda torch, x: x.to(torch.complex128) * (1 + 2j)),
    Case("real-sum-dtype", "x", lambda x: np.sum(x, axis=1, dtype=np.complex128) * 1j,
         lambda torch, x: x.to(torch.complex128).sum(1) * 1j),
]  # fmt: skip

ALONG_AXES = [
    Case("sum", "z", lambda z: np.sum(z, axis=1), lambda torch, z: z.sum(1)),
    Case("mean", "z", lambda z: np.mean(z, axis=0), lambda torch, z: z.mean(0)),
    Case("prod", "z", lambda z: np.prod(z, axis=1), lambda torch, z: z.prod(1)),
    Case("var", "z", lambda z: np.var(z, axis=1), lambda torch, z: z.var(1, correction=0)),
    Case("var-ddof", "z", lambda z: np.var(z, ddof=1), lambda torch, z: z.var(correction=1)),
    Case("std", "z", lambda z: np.std(z, axis=1), lambda torch, z: z.std(1, correction=0)),
    Case("norm", "z", lambda z: np.linalg.norm(z), lambda torch, z: torch.linalg.vector_norm(z)),
    *[
        Case(f"norm-{k}", "z", lambda z, k=k: np.linalg.norm(z, k, axis=1),
             lambda torch, z, k=k: torch.linalg.vector_norm(z, k, dim=1))
        for k in (1, 3, 0.5, np.inf, -np.inf)
    ],
    Case("cumsum", "z", lambda z: np.cumsum(z, axis=1), lambda torch, z: z.cumsum(1)),
    Case("cumprod", "z", lambda z: np.cumprod(z, axis=1), lambda torch, z: z.cumprod(1)),
    Case("diff", "z", lambda z: np.diff(z), lambda torch, z: z.diff()),
    Case("max", "z", lambda z: np.max(z, axis=1)),
    Case("trace", "z", lambda z: np.trace(z), lambda torch, z: z.diagonal().sum()),
]  # fmt: skip

PRODUCTS = [
    Case("matmul", "zw", lambda z, w: z @ w.T, lambda torch, z, w: z @ w.T),
    Case("gram", "z", lambda z: np.conj(z.T) @ z, lambda torch, z: z.mH @ z),
    Case("matrix-vector", "zw", lambda z, w: z @ w[0], lambda torch, z, w: z @ w[0]),
    Case("vector-matrix", "zw", lambda z, w: z[0] @ w.T, lambda torch, z, w: z[0] @ w.T),
    Case("dot", "zw", lambda z, w: np.dot(z[0], w[1]), lambda torch, z, w: z[0] @ w[1]),
    Case("batched", "zw", lambda z, w: z.reshape(2, 1, 3) @ w.reshape(2, 3, 1),
         lambda torch, z, w: z.reshape(2, 1, 3) @ w.reshape(2, 3, 1)),
    Case("vdot", "zw", lambda z, w: np.vdot(z, w),
         lambda torch, z, w: torch.vdot(z.reshape(-1), w.reshape(-1))),
    Case("inner", "zw", lambda z, w: np.inner(z, w), lambda torch, z, w: torch.inner(z, w)),
    Case("outer", "zw", lambda z, w: np.outer(z, w),
         lambda torch, z, w: torch.outer(z.reshape(-1), w.reshape(-1))),
    Case("kron", "zw", lambda z, w: np.kron(z, w), lambda torch, z, w: torch.kron(z, w)),
    Case("tensordot", "zw", lambda z, w: np.tensordot(z, w, ((0,), (0,))),
         lambda torch, z, w: torch.tensordot(z, w, dims=([0], [0]))),
    Case("einsum", "zw", lambda z, w: np.einsum("ij,kj->ki", z, np.conj(w)),
         lambda torch, z, w: torch.einsum("ij,kj->ki", z, w.conj())),
    Case("quadratic-form", "zw", lambda z, w: np.einsum("ij,ij->", np.conj(z), w * z),
         lambda torch, z, w: (z.conj() * w * z).sum()),
]  # fmt: skip

VIEWS = [
    Case("transpose", "z", lambda z: z.T * 1j, lambda torch, z: z.T * 1j),
    Case("reshape", "z", lambda z: z.reshape(3, 2) ** 2, lambda torch, z: z.reshape(3, 2) ** 2),
    Case("index", "z", lambda z: z[[0, 0, 1], 1] ** 2, lambda torch, z: z[[0, 0, 1], 1] ** 2),
    Case("slice", "z", lambda z: z[:, ::2] * z[:, :2],
         lambda torch, z: z[:, ::2] * z[:, :2]),
    Case("part-of-slice", "z", lambda z: z[0].imag * z.real[1],
         lambda torch, z: z[0].imag * z.real[1]),
    Case("stack", "zw", lambda z, w: np.stack([z, w * z]),
         lambda torch, z, w: torch.stack([z, w * z])),
    Case("pad", "z", lambda z: np.pad(z, 1),
         lambda torch, z: torch.nn.functional.pad(z, (1, 1, 1, 1))),
    Case("flip-roll", "z", lambda z: np.roll(np.flip(z, 1), 1, 1),
         lambda torch, z: z.flip(1).roll(1, 1)),
    Case("tril", "z", lambda z: np.tril(z), lambda torch, z: z.tril()),
    Case("broadcast", "z", lambda z: np.broadcast_to(z, (2, 2, 3)),
         lambda torch, z: z.expand(2, 2, 3)),
]  # fmt: skip

CASES = HOLOMORPHIC + PLANE + REAL_BESIDE_COMPLEX + ALONG_AXES + PRODUCTS + VIEWS
TABLE = pytest.mark.parametrize("case", CASES, ids=str)
WITH_PEER = pytest.mark.parametrize("case", [c for c in CASES if c.peer is not None], ids=str)


def operands(case: Case) -> list[np.ndarray]:
    """Magnitudes away from 0 and from the branch cuts of the functions above."""
    rng = np.random.default_rng(3)

    def part() -> np.ndarray:
        return rng.uniform(0.4, 1.4, (2, 3))

    values = {"z": part() + 1j * part(), "w": part() - 1j * part(), "x": part()}
    return [values[name] for name in case.operands]


def weights(y: Any, seed: int) -> np.ndarray:
    """Random factors that make a real number of a result: ``L = Re(sum(weights * y))``."""
    rng = np.random.default_rng(seed)
    found = rng.standard_normal(tuple(y.shape))
    if np.asarray(y).dtype.kind == "c":
        found = found + 1j * rng.standard_normal(tuple(y.shape))
    return found


def loss_of_numpy(case: Case, given: list[np.ndarray]) -> float:
    y = np.asarray(case.function(*given))
    return float(np.sum(weights(y, 0) * y).real)


def differences(case: Case) -> list[np.ndarray]:
    """``dL/dx + i dL/dy`` of each element of each operand, by NumPy alone."""
    given = operands(case)
    found = []
    for a in given:
        gradient = np.zeros_like(a)
        for index in np.ndindex(a.shape):
            before = a[index]
            for direction in (1, 1j) if a.dtype.kind == "c" else (1,):
                a[index] = before + EPS * direction
                above = loss_of_numpy(case, given)
                a[index] = before - EPS * direction
                below = loss_of_numpy(case, given)
                a[index] = before
                gradient[index] += direction * (above - below) / (2 * EPS)
        found.append(gradient)
    return found


def of_numgrad(case: Case, order: int) -> list[np.ndarray]:
    given = [ng.tensor(a, requires_grad=True) for a in operands(case)]
    y = case.function(*given)
    loss = np.sum(np.real(weights(y.detach().numpy(), 0) * y))
    found = ng.autograd.grad(loss, given, create_graph=order == 2)
    if order == 2:
        total = sum(
            np.sum(np.real(weights(g.detach().numpy(), k) * g)) for k, g in enumerate(found, 1)
        )
        if not total.requires_grad:
            return [np.zeros_like(a) for a in operands(case)]
        found = ng.autograd.grad(total, given, allow_unused=True, materialize_grads=True)
    return [g.numpy() for g in found]


def of_torch(torch: Any, case: Case, order: int) -> list[np.ndarray]:
    given = [torch.tensor(a, requires_grad=True) for a in operands(case)]

    def loss(values: Any, first: int) -> Any:
        parts = [
            (torch.tensor(weights(v.detach().resolve_conj().numpy(), k)) * v).sum()
            for k, v in enumerate(values, first)
        ]
        return sum(p.real if p.is_complex() else p for p in parts)

    found = torch.autograd.grad(loss([case.peer(torch, *given)], 0), given, create_graph=order == 2)
    if order == 2:
        total = loss(found, 1)
        if not total.requires_grad:
            return [np.zeros_like(a) for a in operands(case)]
        found = torch.autograd.grad(total, given, allow_unused=True, materialize_grads=True)
    return [g.resolve_conj().numpy(force=True) for g in found]


@TABLE
def test_gradient_is_that_of_differences(case):
    for actual, expected, a in zip(
        of_numgrad(case, 1), differences(case), operands(case), strict=True
    ):
        assert actual.dtype == a.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)


@WITH_PEER
@pytest.mark.parametrize("order", [1, 2])
def test_gradient_is_that_of_torch(case, order):
    torch = pytest.importorskip("torch")
    for actual, expected in zip(of_numgrad(case, order), of_torch(torch, case, order), strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_gradient_has_the_dtype_of_its_operand(dtype):
    z = ng.tensor(np.array([1 + 2j, 3 - 1j], dtype), requires_grad=True)
    x = ng.tensor(np.array([1.0, 2.0], z.real.dtype), requires_grad=True)
    np.abs(np.exp(1j * x) * z + x).sum().backward()
    assert z.grad.dtype == dtype
    assert x.grad.dtype == z.real.dtype


def test_complex_gradients_have_the_documented_values():
    """Promise 114."""
    z = ng.tensor(1 + 2j, requires_grad=True)
    np.abs(z).backward()
    np.testing.assert_allclose(z.grad.numpy(), (1 + 2j) / np.sqrt(5), rtol=1e-15)
    z = ng.tensor(1 + 2j, requires_grad=True)
    (z * z).real.backward()
    assert z.grad.item() == 2 - 4j


def test_gradient_of_a_step_against_it_is_descent():
    """Why the conjugate: ``z - step * grad`` lowers a real function."""
    z = ng.tensor([2 + 1j, -1 + 3j], requires_grad=True)

    def loss(z):
        return np.sum(np.abs(z * z - 1j) ** 2)

    (g,) = ng.autograd.grad(loss(z), [z])
    assert loss(z.detach() - 1e-3 * g).item() < loss(z).item()


def test_complex_cotangent():
    """The cotangent of a complex result is complex: ``L = Re(conj(g) * y)``."""
    z = ng.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    g = np.array([2 - 1j, 1j])
    np.exp(z).backward(g)
    expected = g * np.conj(np.exp(z.detach().numpy()))
    np.testing.assert_allclose(z.grad.numpy(), expected, rtol=1e-15)


# ----------------------------------------------------------------------------- points of the plane


def test_modulus_and_phase_at_the_origin():
    for name in ("absolute", "sign", "angle"):
        z = ng.tensor([0j, 3 + 4j], requires_grad=True)
        np.sum(np.real(getattr(np, name)(z))).backward()
        assert z.grad.numpy()[0] == 0
        assert np.isfinite(z.grad.numpy()).all()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_modulus_and_phase_near_the_ends_of_the_range(scale):
    z = ng.tensor((3 + 4j) * scale, requires_grad=True)
    np.testing.assert_allclose(ng.autograd.grad(np.abs(z), [z])[0].numpy(), 0.6 + 0.8j, rtol=1e-15)
    phase = ng.autograd.grad(np.angle(z), [z])[0].numpy()
    np.testing.assert_allclose(phase, (-4 + 3j) / 25 / scale, rtol=1e-14)


@pytest.mark.parametrize("name", ["sqrt", "log", "reciprocal"])
def test_division_by_complex_zero_does_not_raise(name):
    """NumPy divides by 0j without an error, and so do these gradients."""
    z = ng.tensor([0j, 1j], requires_grad=True)
    np.sum(np.real(getattr(np, name)(z))).backward()
    assert not np.isfinite(z.grad.numpy()[0])
    assert np.isfinite(z.grad.numpy()[1])


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "sigmoid"])
def test_functions_numpy_lacks(name):
    """Against their definitions, whose parts are checked above."""
    definitions = {
        "softmax": lambda z: np.exp(z) / np.sum(np.exp(z), axis=-1, keepdims=True),
        "log_softmax": lambda z: z - np.log(np.sum(np.exp(z), axis=-1, keepdims=True)),
        "logsumexp": lambda z: np.log(np.sum(np.exp(z), axis=-1)),
        "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    }
    params = {} if name == "sigmoid" else {"axis": -1}
    function = lambda z: ng.ops[name](z, **params)  # noqa: E731
    for order in (1, 2):
        found = of_numgrad(Case(name, "z", function), order)
        expected = of_numgrad(Case(name, "z", definitions[name]), order)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-13)


# -------------------------------------------------------------------------------------- gradcheck


def test_gradcheck_moves_both_parts_of_an_input():
    z = ng.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    assert gradcheck(lambda z: z.real * z.imag, z)
    for wrong in (
        lambda z: z.real + z.detach().imag,  # misses the imaginary part of the input
        lambda z: z.detach().real + z.imag,  # the real one
        lambda z: z.detach() * np.conj(z),  # as if holomorphic
    ):
        assert not gradcheck(wrong, z, raise_exception=False)


def test_gradcheck_looks_at_both_parts_of_an_output():
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    assert gradcheck(lambda x: x * x + 1j * x, x)
    for wrong in (
        lambda x: x + 1j * x.detach() ** 2,  # misses the imaginary part of the output
        lambda x: x.detach() ** 2 + 1j * x,  # the real one
    ):
        assert not gradcheck(wrong, x, raise_exception=False)


def test_gradgradcheck_with_complex_numbers():
    z = ng.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    x = ng.tensor([0.5, 2.0], requires_grad=True)
    assert gradgradcheck(lambda z, x: np.abs(z) ** 2 * np.exp(1j * x), (z, x))
    assert gradgradcheck(lambda z: np.conj(z) * z * z, z)
    assert gradgradcheck(lambda z: z * z, z, ng.tensor([1j, 2 - 1j]))


def test_gradcheck_wants_the_dtype_of_a_real_input():
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    assert gradcheck(lambda x: x * (1 + 2j), x, check_grad_dtypes=True)
