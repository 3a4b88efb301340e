"""Compiled functions that leave Python: `ng.jit(f).native(*examples)`."""

from __future__ import annotations

import ctypes
import gc
import pickle
import shutil
import subprocess
import threading
from typing import Any

import numpy as np
import pytest
from scipy import integrate, ndimage

import numgrad as ng
from numgrad.core.tree import leaves

RNG = np.random.default_rng(7)
X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 5))
WEIGHT = RNG.normal(size=(2, 3))

PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "value and gradient": (ng.value_and_grad(lambda x: np.sum(np.exp(-x * x) * x)), (X[0],)),
    "two matrices": (
        ng.value_and_grad(lambda a, b: np.sum(np.tanh(a @ b)), argnums=(0, 1)),
        (X, Y),
    ),
    "captured": (lambda x: np.tanh(WEIGHT @ x).sum(), (X[0],)),
    "nesting": (lambda p: {"a": p["w"] * 2, "n": None, "s": (p["w"].sum(),)}, ({"w": X[1]},)),
    "single": (lambda x: (x * x, x.sum()), (X[0].astype(np.float32),)),
    "complex": (lambda z, a: (z * np.conj(z) * a, (z * a).sum()), (X[0] + 1j * X[1], 2 + 1j)),
    "complex64": (lambda z: z * z, ((X[0] + 1j * X[1]).astype(np.complex64),)),
    "integers": (lambda i: (i * 2, i.sum(), i > 2), (np.arange(5),)),
    "small integers": (lambda i, k: i + k, (np.arange(5, dtype=np.int8), np.uint8(3))),
    "masks": (lambda m, x: (np.where(m, x, 0.0), ~m), (X[0] > 0, X[0])),
    "views": (lambda x: (x, x[::-1], x.T, x.reshape(-1)), (X,)),
    "twice": (lambda x: (lambda y: (y, y, y + 1))(np.exp(x)), (X[0],)),
    "constants": (lambda x: (ng.full(3, 2.0), x[0] * 1, x.shape[0]), (X[0],)),
    "lengths": (lambda x: (x.sum(), np.mean(x)), (X[0],)),
    "no element": (lambda x: (x.sum(), x * 2), (np.zeros(0),)),
    "one element": (lambda x: (x.sum(), x * 2), (np.ones(1),)),
    "hessian": (ng.hessian(lambda x: np.sum(x**3) * x[0]), (X[0],)),
    "jacobian": (ng.jacobian(lambda x: np.cos(x) * x[0]), (X[0],)),
    "joined": (lambda x, y: np.concatenate([x, y * 2]), (X[0], X[1, :2])),
    "numbers": (lambda a, b: (a * 2, a * b, b, a, b), (3.0, np.float32(2.0))),
}


@pytest.mark.slow(cases=8)
@pytest.mark.parametrize("shapes", ["free", "fixed"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_have_the_bits_of_jit(name: str, shapes: Any) -> None:
    function, arguments = PROGRAMS[name]
    fast = ng.jit(function)
    native = fast.native(*arguments, shapes=shapes)
    ours, theirs = native(*arguments), fast(*arguments)
    for a, b in zip(leaves(ours), leaves(theirs), strict=True):
        assert a is b is None or (type(a) is type(b) and np.array_equal(a, b))
        assert a is None or np.asarray(a).dtype == np.asarray(b).dtype


def test_lengths_are_arguments() -> None:
    native = ng.jit(lambda a, b: a @ b).native(X, Y)
    assert native.declaration == (
        "int32_t lambda_2(const double *a, int64_t a_length0, int64_t a_length1, const double *b, "
        "int64_t b_length1, double *result);"
    )
    a, b = RNG.normal(size=(6, 2)), RNG.normal(size=(2, 7))
    np.testing.assert_allclose(native(a, b), np.einsum("ij,jk", a, b))
    with pytest.raises(ng.NumgradValueError, match=r"b has shape \(3, 7\), expected \(2, 7\)"):
        native(a, RNG.normal(size=(3, 7)))


def test_fixed_lengths_are_no_arguments() -> None:
    native = ng.jit(lambda x: x * 2).native(X[0], shapes="fixed")
    assert native.declaration == "int32_t lambda_2(const double *x, double *result);"
    with pytest.raises(ng.NumgradValueError, match=r"x has shape \(2,\), expected \(3,\)"):
        native(X[0, :2])


def test_what_is_captured_is_a_copy() -> None:
    weight = np.ones(3)
    native = ng.jit(lambda x: x * weight).native(X[0])
    weight[:] = 5.0
    np.testing.assert_array_equal(native(X[0]), X[0])


def test_a_captured_tensor_that_requires_grad_is_a_constant() -> None:
    weight = ng.tensor([2.0, 3.0, 4.0], requires_grad=True)
    native = ng.jit(lambda x: x * weight).native(X[0])
    np.testing.assert_array_equal(native(X[0]), X[0] * [2, 3, 4])


def test_raw_call_by_ctypes() -> None:
    native = ng.jit(ng.value_and_grad(lambda x, k: np.sum(k * x**3))).native(X[0], 1.0)
    value, gradient, x = np.empty(1), np.empty(3), X[0].copy()
    status = native.ctypes(x.ctypes.data, 3, 0.5, value.ctypes.data, gradient.ctypes.data)
    assert status == 0
    np.testing.assert_allclose(value[0], 0.5 * np.sum(X[0] ** 3))
    np.testing.assert_allclose(gradient, 1.5 * X[0] ** 2)
    assert ctypes.cast(native.ctypes, ctypes.c_void_p).value == native.address


def test_operands_that_an_operation_refuses() -> None:
    native = ng.jit(np.take).native(X[0], np.array([0, 1]))
    np.testing.assert_array_equal(native(X[0], np.array([2, 0])), X[0][[2, 0]])
    with pytest.raises(IndexError, match="index 7 is out of range"):
        native(X[0], np.array([2, 7]))
    x, i, out = X[0].copy(), np.array([2, 7]), np.empty(2)
    assert native.ctypes(x.ctypes.data, 3, i.ctypes.data, 2, out.ctypes.data) == 3


def test_lengths_that_do_not_suit() -> None:
    native = ng.jit(lambda x, y: x[: y.shape[0]] * y).native(X[0], X[1, :2])
    x, out = X[0].copy(), np.empty(9)
    for length in (9, 1, 0, -4):
        y = np.ones(max(0, length))
        status = native.ctypes(x.ctypes.data, 3, y.ctypes.data, length, out.ctypes.data)
        assert status == 1
        assert status in native.messages
    with pytest.raises(
        ng.NumgradValueError, match="x_length >= y_length does not hold for x_length = 3"
    ):
        native(X[0], np.ones(9))
    largest = ng.jit(np.max).native(X[0])
    with pytest.raises(ng.NumgradValueError, match="lengths 0 and 1 are examples of their own"):
        largest(np.zeros(0))


def test_lengths_of_what_is_captured() -> None:
    table = np.ones(3)
    native = ng.jit(lambda x: np.sum(x * table)).native(X[0])
    assert "length" not in native.declaration
    for wrong in (np.ones(5), np.ones(1)):
        with pytest.raises(ng.NumgradValueError, match=r"expected \(3,\)"):
            native(wrong)
    product = ng.jit(lambda x: x @ WEIGHT.T).native(X)
    with pytest.raises(ng.NumgradValueError, match=r"expected \(5, 3\)"):
        product(np.ones((5, 7)))


def test_arguments_are_nested_as_the_examples() -> None:
    native = ng.jit(lambda d, flag: d["a"] - d["b"] if flag else d["a"]).native(
        {"a": 1.0, "b": 2.0}, True
    )
    assert native({"b": 2.0, "a": 1.0}, True) == -1.0
    with pytest.raises(ng.NumgradTypeError, match="d is nested otherwise"):
        native({"a": 1.0, "c": 2.0}, True)
    with pytest.raises(ng.NumgradTypeError, match="d is nested otherwise"):
        native([1.0, 2.0], True)
    with pytest.raises(ng.NumgradValueError, match="flag is the constant True"):
        native({"a": 1.0, "b": 2.0}, False)


def test_numbers_are_not_cut() -> None:
    native = ng.jit(lambda i: i * 2).native(np.int8(1))
    assert native(3) == 6
    for wrong in (2.7, 300, 1j, "a", None):
        with pytest.raises(ng.NumgradError):
            native(wrong)


def test_nothing_is_recorded_or_traced() -> None:
    native = ng.jit(lambda t: t**2).native(3.0)
    for transform in (ng.grad, ng.vmap, ng.jit):
        argument = np.ones(2) if transform is ng.vmap else 3.0
        with pytest.raises(ng.NumgradTypeError, match="call the compiled function"):
            transform(lambda t: native(t))(argument)
    with pytest.raises(ng.NumgradTypeError, match="machine code of this process"):
        pickle.dumps(native)


def test_threads_share_it() -> None:
    native = ng.jit(ng.value_and_grad(lambda x: np.sum(np.sin(x) * x))).native(X[0])
    results: list[Any] = [None] * 4

    def work(k: int) -> None:
        for _ in range(200):
            results[k] = native(np.full(3, 0.5 * k))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, (value, gradient) in enumerate(results):
        t = 0.5 * k
        np.testing.assert_allclose(value, 3 * np.sin(t) * t)
        np.testing.assert_allclose(gradient, np.full(3, np.cos(t) * t + np.sin(t)))


def test_wrong_arguments() -> None:
    fast = ng.jit(lambda x: x * 2)
    native = fast.native(X[0])
    with pytest.raises(ng.NumgradTypeError, match="of dtype float32 with 1 axes"):
        native(X[0].astype(np.float32))
    with pytest.raises(ng.NumgradTypeError, match="with 2 axes"):
        native(X)
    with pytest.raises(ng.NumgradValueError, match="shapes is"):
        fast.native(X[0], shapes="other")  # pyright: ignore


# ------------------------------------------------------------------------------------------- SciPy


def test_integrands() -> None:
    native = ng.jit(lambda t, k: np.exp(-k * t) * np.sin(t)).native(0.0, 0.0)
    one = native.low_level_callable("double(double)", 0.5)
    assert integrate.quad(one, 0, 10)[0] == pytest.approx(0.8059891297577093, rel=1e-12)
    several = native.low_level_callable("double (int, double *, void *)")
    exact = integrate.nquad(lambda t, k: np.exp(-k * t) * np.sin(t), [[0, 2], [0.4, 0.5]])[0]
    assert integrate.nquad(several, [[0, 2], [0.4, 0.5]])[0] == pytest.approx(exact, rel=1e-12)


def test_constants_of_a_callback_are_arrays_too() -> None:
    native = ng.jit(lambda t, c: np.sum(c * t)).native(0.0, np.ones(3))
    call = native.low_level_callable("double(double,void*)", np.array([1.0, 2.0]))
    assert integrate.quad(call, 0, 2)[0] == pytest.approx(6.0)


def test_filters() -> None:
    image = RNG.normal(size=(6, 7))
    native = ng.jit(lambda w: np.sqrt(np.mean(w * w))).native(np.zeros(9))
    call = native.low_level_callable("int(double *, intptr_t, double *, void *)")
    expected = ndimage.generic_filter(image, lambda w: np.sqrt(np.mean(w * w)), size=3)
    np.testing.assert_allclose(ndimage.generic_filter(image, call, size=3), expected)


@pytest.mark.parametrize(
    ("signature", "rest", "message"),
    [
        ("double(double)", (), "0 values for the 2 inputs"),
        ("int(x)", (), "no callback has the signature"),
        ("int(double*,intptr_t,double*,void*)", (1.0,), "a filter has an array"),
    ],
)
def test_callbacks_that_do_not_fit(signature: str, rest: Any, message: str) -> None:
    native = ng.jit(lambda t, k: t * k).native(0.0, 0.0)
    with pytest.raises(ng.NumgradError, match=message):
        native.low_level_callable(signature, *rest)


def test_callbacks_do_not_read_beyond_what_they_get() -> None:
    window = "int(double *, intptr_t, double *, void *)"
    weighted = ng.jit(lambda w, k: np.sum(w * k)).native(np.zeros(9), np.zeros(9))
    call = weighted.low_level_callable(window, np.arange(9.0))
    image = RNG.normal(size=(6, 7))
    expected = ndimage.generic_filter(image, lambda w: np.sum(w * np.arange(9.0)), size=3)
    np.testing.assert_allclose(ndimage.generic_filter(image, call, size=3), expected)
    for size in (2, 5):
        with pytest.raises(RuntimeError):
            ndimage.generic_filter(image, call, size=size)
    both = ng.jit(lambda a, b: a + 10 * b).native(0.0, 0.0)
    call = both.low_level_callable("double(int, double *)")
    assert integrate.quad(call, 0, 1, args=(7.0,))[0] == pytest.approx(70.5)
    with pytest.warns(integrate.IntegrationWarning):
        assert np.isnan(integrate.quad(call, 0, 1)[0])


# ------------------------------------------------------------------------------------------- Numba


@pytest.mark.slow(cases=0)
def test_captured_arrays_stay() -> None:
    def made(k: float) -> Any:
        captured = np.full(3, k)
        return ng.jit(lambda x: np.sum(x * captured)).native(X[0]).njit

    functions = [made(float(k)) for k in range(4)]
    gc.collect()
    others = [np.full(3, 1e9) for _ in range(1000)]
    assert [f(np.ones(3)) for f in functions] == [0.0, 3.0, 6.0, 9.0]
    del others


@pytest.mark.slow(cases=0)
def test_numba_gets_constants_among_the_results() -> None:
    out = ng.jit(lambda x: (x, 3.0)).native(X[0]).njit(X[0])
    np.testing.assert_array_equal(out[0], X[0])
    assert out[1] == 3.0


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("parallel", [False, True])
def test_numba_calls_it(parallel: bool) -> None:
    numba = pytest.importorskip("numba")
    gradient = ng.jit(ng.value_and_grad(lambda x: np.sum(x * x))).native(X[0]).njit

    @numba.njit(parallel=parallel)
    def run(rows: Any) -> Any:
        out = np.empty(len(rows))
        for k in numba.prange(len(rows)):
            value, slope = gradient(rows[k, ::2])  # which is not contiguous
            out[k] = value + slope[0] + slope[1] + slope[2]
        return out

    rows = RNG.normal(size=(20, 5))
    used = rows[:, ::2]
    np.testing.assert_allclose(run(rows), (used**2).sum(1) + 2 * used.sum(1))


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", PROGRAMS)
def test_numba_gets_the_same_bits(name: str) -> None:
    function, arguments = PROGRAMS[name]
    fast = ng.jit(function)
    out = fast.native(*arguments).njit(*leaves(arguments))
    expected = leaves(fast(*arguments))
    for a, b in zip(out if isinstance(out, tuple) else (out,), expected, strict=True):
        assert (a is None) == (b is None)
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow(cases=0)
def test_numba_writes_into_arrays() -> None:
    native = ng.jit(ng.value_and_grad(lambda x: np.sum(x * x))).native(X[0])
    slope = np.empty(3)
    assert native.njit_into(X[0], slope) == native(X[0])[0]
    np.testing.assert_array_equal(slope, 2 * X[0])
    with pytest.raises(ValueError, match="the wrong length"):
        native.njit_into(X[0], np.empty(4))


@pytest.mark.slow(cases=0)
def test_numba_names_what_is_wrong() -> None:
    numba = pytest.importorskip("numba")
    native = ng.jit(lambda x, y: x + y).native(X[0], X[1])
    for wrong in (X[0].astype(np.float32), X, 2.0, None):
        with pytest.raises(numba.TypingError, match="expected an array of float64 with 1 axes"):
            native.njit(wrong, X[1])
    with pytest.raises(numba.TypingError, match="expected int64"):
        ng.jit(lambda i: i * 2).native(1).njit(2.7)
    with pytest.raises(ValueError, match="y has another length"):
        native.njit(X[0], np.ones(9))


# ----------------------------------------------------------------------------------------------- C


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("compiler", [["cc", "-std=c99"], ["c++", "-std=c++17", "-x", "c++"]])
def test_declarations_are_c(compiler: list[str], tmp_path: Any) -> None:
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"no {compiler[0]} here")
    lines = ["#include <stdint.h>"]
    for k, (function, arguments) in enumerate(PROGRAMS.values()):
        text = ng.jit(function).native(*arguments).declaration
        lines.append(text.replace("(", f"_{k}(", 1))
    path = tmp_path / "declarations.h"
    path.write_text("\n".join(lines) + "\n")
    options = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([*compiler, *options, str(path)], check=True, capture_output=True)


def test_arguments_have_the_names_of_the_function_that_is_differentiated():
    fast = ng.jit(ng.value_and_grad(lambda weights, *, rate: np.sum(weights**2) * rate))
    assert [a.name for a in fast.native(np.ones(3), rate=2.0).inputs] == ["weights", "rate"]


@pytest.mark.slow(cases=0)
def test_integers_that_numba_gives_have_to_fit() -> None:
    numba = pytest.importorskip("numba")
    x = np.arange(3.0)
    scaled = ng.jit(lambda k, x: k * x).native(np.int32(3), x).njit

    @numba.njit
    def run(k: Any) -> Any:
        return scaled(k, x)

    for k in (-1, np.uint8(7), True):
        np.testing.assert_array_equal(run(k), k * x)
    for k in (1 << 40, np.uint64(1 << 63)):
        with pytest.raises(ValueError, match="k does not fit in int32"):
            run(k)
    with pytest.raises(numba.TypingError, match="k is float64, expected int32"):
        run(2.0)


@pytest.mark.slow(cases=0)
def test_numba_may_not_write_over_an_argument() -> None:
    numba = pytest.importorskip("numba")
    native = ng.jit(lambda x: x[::-1] * 2).native(X[0]).njit_into
    run = numba.njit(lambda x, y: native(x, y))
    x = X[0].copy()
    run(x[:], np.empty(3))
    with pytest.raises(ValueError, match=r"result is the memory of x, which only a donated"):
        run(x, x)
    np.testing.assert_array_equal(x, X[0])


def test_lengths_that_tracing_fixed_are_told() -> None:
    native = ng.jit(ng.jacobian(np.sin)).native(X[0])
    assert "it was traced for these lengths of x, no others" in repr(native)
    with pytest.raises(ng.NumgradValueError, match=r"expected \(3,\), for which it was traced"):
        native(np.ones(4))
    assert "traced for" not in repr(ng.jit(np.sin).native(X[0]))
    assert "traced for" not in repr(ng.jit(np.sin).native(X[0], shapes="fixed"))


@pytest.mark.parametrize(
    ("function", "arguments", "seen"),
    [
        (np.linalg.inv, (np.eye(3) * 1j,), r"complex128 \(3, 3\): its kernels are for real"),
        (lambda a: np.fft.fft(a), (np.ones(101),), r"float64 \(101,\) .* prime factors up to 67"),
        (lambda m: m @ m, (np.eye(2) > 0,), r"bool \(2, 2\), bool \(2, 2\): .* not for masks"),
        (np.sort, (1j * X[0],), r"complex128 \(3,\) .* real numbers"),
    ],
)
def test_refusals_say_what_was_seen(function: Any, arguments: Any, seen: str) -> None:
    with pytest.raises(ng.NumgradNotImplementedError, match=f"no kernel for operands {seen}"):
        ng.jit(function).native(*arguments)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_products_of_small_integers(dtype: Any) -> None:
    a = np.arange(5000).astype(dtype)
    native = ng.jit(lambda a, b: a @ b).native(a, a)
    assert native(a, a) == a @ a
    assert native(a, a).dtype == dtype


@pytest.mark.slow(cases=0)
def test_iminuit_calls_it_by_its_address() -> None:
    numba, iminuit = (pytest.importorskip(name) for name in ("numba", "iminuit"))
    value = ng.jit(lambda p: np.sum((p - X[0]) ** 2)).native(X[0]).njit

    @numba.cfunc(numba.double(numba.uint32, numba.types.CPointer(numba.double)))
    def cost(count: Any, place: Any) -> Any:
        return value(numba.carray(place, (count,)))

    minuit = iminuit.Minuit(cost, np.zeros(3), name=["a", "b", "c"])
    minuit.errordef = 1.0
    minuit.migrad()
    np.testing.assert_allclose(minuit.values, X[0], atol=1e-6)
