"""Entries for C and exported objects on disk: who finds them, and who does not."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.native import kernel, machine, objects


@pytest.fixture
def compiled(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What LLVM compiles from now on, with an empty cache."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "kernels"))
    calls: list[str] = []
    compile_ir, relocatable = machine.compile_ir, objects.relocatable

    def of_module(text: str, unique: str, **options: Any) -> bytes:
        if unique.startswith("native"):  # no module that all kernels share
            calls.append("compile_ir")
        return compile_ir(text, unique, **options)

    def of_file(*args: Any) -> bytes:
        calls.append("relocatable")
        return relocatable(*args)

    monkeypatch.setattr(machine, "compile_ir", of_module)
    monkeypatch.setattr(objects, "relocatable", of_file)
    return calls


def scaled(power: int, offset: Any) -> Any:
    """A function that captures an array."""
    return ng.jit(ng.value_and_grad(lambda x: np.sum((x + offset) ** power)))


def test_native_functions_are_found(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    x, offsets = np.array([1.0, 2.0]), [np.zeros(2), np.array([0.5, 1.5])]
    for offset in offsets:  # addresses differ, what is captured too: not so the machine code
        value, slope = scaled(3, offset).native(x)(x)
        np.testing.assert_allclose(value, np.sum((x + offset) ** 3))
        np.testing.assert_allclose(slope, 3 * (x + offset) ** 2)
    assert len(compiled) == 1
    scaled(4, offsets[0]).native(x)  # of another source
    assert len(compiled) == 2
    one = ng.jit(lambda t, k: k * t).native(0.0, 0.0)
    callbacks = [one.low_level_callable("double(double)", k) for k in (2.0, 3.0)]
    assert len(compiled) == 4  # of both one
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_void_p)
    for k, callback in zip((2.0, 3.0), callbacks, strict=True):
        code, data = callback.function, callback.user_data
        address = ctypes.cast(code, ctypes.c_void_p).value
        assert address is not None
        assert kind(address)(5.0, data) == 5.0 * k
    monkeypatch.setattr(machine, "stamp", lambda: "of other versions")
    scaled(3, offsets[0]).native(x)
    assert len(compiled) == 5
    monkeypatch.setattr(kernel, "_own_digest", lambda: "of another compiler")
    scaled(3, offsets[0]).native(x)
    assert len(compiled) == 6


def test_exported_objects_are_found(compiled: list[str], tmp_path: Any) -> None:
    x = np.array([1.0, 2.0])

    def exported(offset: Any, cpu: str = "native", name: str = "model") -> int:
        ng.export(scaled(3, offset), tmp_path / name, x, cpu=cpu)
        if cpu == "native":
            value, slope = ng.load_native(tmp_path / name)(x)
            np.testing.assert_allclose(value, np.sum((x + offset) ** 3))
            np.testing.assert_allclose(slope, 3 * (x + offset) ** 2)
        return compiled.count("relocatable")

    offset = np.array([0.5, 1.5])
    first = exported(offset)
    assert exported(offset.copy(), name="again/model") == first
    assert exported(offset, "x86-64-v2") > first  # for another CPU
    second = compiled.count("relocatable")
    assert exported(offset + 1.0, name="other") > second  # what is captured is in it
