"""Native functions that take memory from their caller: `jit(f).native(..., workspace=True)`."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate

import numgrad as ng
from numgrad.codegen.c_library import Workspace
from numgrad.core.tree import leaves

numba = pytest.importorskip("numba")
RNG = np.random.default_rng(11)
X = RNG.normal(size=9)
SQUARE = RNG.normal(size=(9, 9)) + 9 * np.eye(9)
ALLOCATES = r"(?:malloc|calloc|realloc|numgrad_allocate|numgrad_grow)"
LONG = np.linspace(-2.0, 2.0, 20_000)


@ng.kernel
def halved(x):
    total = 0.0
    for i in range(len(x)):
        y = x[i]
        while abs(y) > 1e-3:
            y = 0.5 * np.sin(y)
            total += y * y
    return total


@ng.kernel
def smoothed(x, n):
    y = x.copy()
    for _ in range(n):
        old = y.copy()
        for i in range(1, len(y) - 1):
            y[i] = 0.5 * old[i] + 0.25 * (old[i - 1] + old[i + 1])
    return y


def energy(x: Any) -> Any:
    return np.sum(np.exp(-x * x) * np.cumsum(x))


def step(x: Any, _: Any) -> Any:
    return x - 0.1 * np.linalg.solve(SQUARE, x), np.sum(x)


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "growing vectors": (ng.value_and_grad(halved), (LONG,)),
    "system": (ng.value_and_grad(lambda a, b: np.sum(np.linalg.solve(a, b))), (SQUARE, X)),
    "long sums": (ng.value_and_grad(energy), (LONG,)),
    "order and spectrum": (lambda x: (np.sort(x), np.abs(np.fft.fft(x))), (X,)),
    "products": (lambda a: np.tanh(a @ a) @ np.linalg.cholesky(a @ a.T), (SQUARE,)),
    "loop of several kernels": (lambda x: ng.scan(step, x, length=30), (X,)),
    "explicit loop": (ng.value_and_grad(lambda x: np.sum(smoothed(x, 40) ** 2)), (LONG,)),
}


def computed(native: Any, workspace: Any, arguments: Any) -> list[Any]:
    """The results of a call by ctypes."""
    arrays = native.checked(leaves(arguments), native.inputs)
    address = None if workspace is None else ctypes.addressof(workspace)
    status, results = native._computed(arrays, address)
    assert status == 0
    return results


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_comes_from_the_caller(name: str) -> None:
    function, arguments = PROGRAMS[name]
    fast = ng.jit(function)
    native = fast.native(*arguments, workspace=True)
    expected = leaves(fast.native(*arguments)(*arguments))
    whole = native.workspace(*arguments)
    assert whole.size > 0
    assert f"needs {whole.size} bytes of workspace for the examples" in repr(native)
    for workspace in (whole, Workspace(whole.size // 2), Workspace(0), None):
        for _ in range(2):
            for a, b in zip(computed(native, workspace, arguments), expected, strict=True):
                np.testing.assert_array_equal(a, b)
        assert workspace is None or workspace.needed == whole.size
    text = native.program.module.text()  # in which nothing else asks for memory
    assert (
        len(re.findall(r"call[^\n]* @(?:malloc|calloc|realloc|numgrad_\w*allocate)\(", text)) == 1
    )


@pytest.mark.slow(cases=0)
def test_memory_is_used_again() -> None:
    def smooth(x: Any, _: Any) -> Any:
        return smoothed(np.linalg.solve(SQUARE, x), 3), None

    def loop(length: int) -> Any:
        return ng.jit(lambda x: ng.scan(smooth, x, length=length)[0]).native(X, workspace=True)

    assert loop(4).workspace_size == loop(400).workspace_size > 0


@pytest.mark.slow(cases=0)
def test_numba_gives_an_array() -> None:
    native = ng.jit(ng.value_and_grad(lambda a, b: np.sum(np.linalg.solve(a, b)))).native(
        SQUARE, X, workspace=True
    )
    into, size = native.njit_into, native.workspace(SQUARE, X).size

    @numba.njit
    def run(a: Any, b: Any, slope: Any, memory: Any) -> Any:
        return into(a, b, slope, memory)

    expected = native(SQUARE, X)
    for memory in (np.empty(size, np.uint8), np.empty(size // 8 + 1), None):
        slope = np.empty_like(SQUARE)
        assert run(SQUARE, X, slope, memory) == expected[0]
        np.testing.assert_array_equal(slope, expected[1])


def test_what_goes_along_with_a_workspace(tmp_path: Path) -> None:
    a = SQUARE[:3, :3]
    integrand = ng.jit(lambda t: np.sum(np.linalg.solve(a, t * a[0]))).native(0.5, workspace=True)
    callback = integrand.low_level_callable("double(double)")
    assert abs(integrate.quad(callback, 0, 2)[0] - 2 * np.linalg.solve(a, a[0]).sum()) < 1e-12
    ng.export({"f": integrand}, tmp_path / "model")
    loaded = ng.load_native(tmp_path / "model")["f"]
    assert loaded(0.5) == integrand(0.5)
    assert loaded.workspace(0.5).size == loaded.workspace_size == integrand.workspace_size
    assert "int32_t f(double t, double *result, struct numgrad_workspace *workspace);" in (
        tmp_path / "model.h"
    ).read_text(encoding="utf-8")


def test_what_has_no_workspace() -> None:
    with pytest.raises(ng.NumgradTypeError, match="has no workspace; make it with workspace=True"):
        ng.jit(np.sin).native(X).workspace(X)
    with pytest.raises(ng.NumgradTypeError, match="workspace is True or False, got 64"):
        ng.jit(np.sin).native(X, workspace=64)  # pyright: ignore
    with pytest.raises(ng.NumgradValueError, match="threads=1 or workspace=False"):
        ng.jit(np.sin).native(X, workspace=True, threads=2)
