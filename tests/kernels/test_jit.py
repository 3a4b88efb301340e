"""The kernel cache: entries appear whole, damage is repaired, every kind of directory works."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from numgrad.codegen import cache as cache_files, compile as jit

SOURCE = """
def kernel(x, y):
    for i in range(x.size):
        y[i] = x[i] * {factor}
"""
SIGNATURE = "void(float64[::1], float64[::1])"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache directory, and a process that has loaded nothing from it."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(jit, "_loaded", {})
    return tmp_path / "cache"


def scale(factor):
    return jit.compile_kernel("scale", SOURCE.format(factor=factor), SIGNATURE)


def forget():
    jit._loaded.clear()


def run(kernel):
    x, y = np.arange(4.0), np.empty(4)
    kernel.entry(x, y)
    return y.tolist()


def test_second_process_loads_what_the_first_compiled(cache):
    first = scale(3.0)
    forget()
    second = scale(3.0)
    assert not first.from_cache
    assert second.from_cache
    assert run(second) == [0.0, 3.0, 6.0, 9.0]


def test_entries_are_found_by_content(cache):
    assert run(scale(2.0)) == [0.0, 2.0, 4.0, 6.0]
    assert run(scale(5.0)) == [0.0, 5.0, 10.0, 15.0]
    assert cache_files.info()["entries"] == 2


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty"])
def test_damaged_entry_is_compiled_again(cache, damage):
    scale(4.0)
    (entry,) = cache.glob("*.bin")
    content = bytearray(entry.read_bytes())
    if damage == "truncate":
        content = content[: len(content) // 2]
    elif damage == "flip":
        content[-100] ^= 0xFF
    else:
        content = bytearray()
    entry.write_bytes(content)
    forget()
    repaired = scale(4.0)
    assert not repaired.from_cache
    assert run(repaired) == [0.0, 4.0, 8.0, 12.0]
    forget()
    assert scale(4.0).from_cache


def test_intact_entry_that_cannot_be_linked_warns_and_is_compiled(cache):
    import pickle

    scale(6.0)
    (entry,) = cache.glob("*.bin")
    payload = pickle.dumps(("not", "a", "compile result"))
    cache_files.save(entry.name, payload)
    forget()
    with pytest.warns(RuntimeWarning, match="could not be loaded"):
        assert run(scale(6.0)) == [0.0, 6.0, 12.0, 18.0]


def test_no_partial_files_are_left(cache):
    scale(7.0)
    assert not list(cache.glob(".partial-*"))
    assert {p.suffix or p.name for p in cache.iterdir()} == {".py", ".bin", ".lock"}


def test_unwritable_directory_falls_back_to_a_private_one(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("in the way of a directory")
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(blocker / "cache"))
    monkeypatch.setattr(jit, "_loaded", {})
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        assert run(scale(8.0)) == [0.0, 8.0, 16.0, 24.0]
    forget()
    assert scale(8.0).from_cache
    assert cache_files._temporary is not None
    assert oct(cache_files._temporary.stat().st_mode)[-2:] == "00"


def test_clear_counts_and_kernels_in_use_keep_working(cache):
    kernel = scale(9.0)
    assert cache_files.info() == {
        "path": str(cache),
        "writable": True,
        "refused": "",
        "entries": 1,
        "bytes": next(cache.glob("*.bin")).stat().st_size,
    }
    assert cache_files.clear() == 1
    assert list(cache.iterdir()) == []
    assert run(kernel) == [0.0, 9.0, 18.0, 27.0]
    forget()
    assert not scale(9.0).from_cache


def test_cache_deleted_while_running(cache):
    import shutil

    scale(10.0)
    shutil.rmtree(cache)
    assert run(scale(11.0)) == [0.0, 11.0, 22.0, 33.0]
    assert cache.is_dir()


@pytest.mark.slow(cases=0)
def test_reductions_of_different_processes_do_not_collide(cache):
    # their kernels bring functions of one source with other steps; a third process loads them all
    names = ("sum", "prod", "max", "min")
    program = (
        "import numpy as np, numgrad as ng, sys\n"
        "x = ng.tensor(np.arange(1, 7, dtype=np.int8).reshape(3, 2))\n"
        "print([getattr(ng, name)(x, axis=0).tolist() for name in sys.argv[1:]])\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(jit.__file__).parents[2])}

    def run_in_process(*arguments):
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(
            command, env=env, check=True, timeout=300, stdout=subprocess.PIPE, text=True
        ).stdout

    for name in names:
        run_in_process(name)
    x = np.arange(1, 7, dtype=np.int8).reshape(3, 2)
    expected = [getattr(np, name)(x, axis=0).tolist() for name in names]
    assert eval(run_in_process(*names)) == expected
    assert eval(run_in_process(*reversed(names))) == expected[::-1]


@pytest.mark.slow(cases=0)
def test_symbols_of_different_processes_do_not_collide(cache):
    # kernels of one name from two processes, loaded by a third
    for factor in (21.0, 22.0):
        program = (
            "from numgrad.codegen import compile as jit\n"
            f"jit.compile_kernel('scale', {SOURCE.format(factor=factor)!r}, {SIGNATURE!r})\n"
        )
        env = {**os.environ, "PYTHONPATH": str(Path(jit.__file__).parents[2])}
        subprocess.run([sys.executable, "-c", program], env=env, check=True, timeout=120)
    a, b = scale(21.0), scale(22.0)
    assert (a.from_cache, b.from_cache) == (True, True)
    assert run(a)[1] == 21.0
    assert run(b)[1] == 22.0


def test_source_change_in_the_kernel_library_changes_the_key(cache, monkeypatch):
    scale(12.0)
    forget()
    monkeypatch.setattr("numgrad.codegen.native.kernel.native_stamp", lambda: "another library")
    assert not scale(12.0).from_cache


def test_interrupted_compile_leaves_a_usable_cache(cache, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(cache_files, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scale(13.0)
    monkeypatch.undo()
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(cache))
    assert run(scale(13.0)) == [0.0, 13.0, 26.0, 39.0]


def test_inspection_shows_llvm_and_assembly_of_a_loaded_kernel(cache):
    scale(14.0)
    forget()
    kernel = scale(14.0)
    assert "fmul" in kernel.llvm()
    assert "mul" in kernel.asm()


def test_importing_numgrad_imports_neither_numba_nor_scipy():
    program = (
        "import sys, numgrad\n"
        "print([m for m in ('numba', 'llvmlite', 'scipy') if m in sys.modules])\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(jit.__file__).parents[2])}
    out = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True)
    assert out.stdout.decode().strip() == "[]"


def test_importing_the_kernel_library_does_not_import_numba():
    program = (
        "import importlib, pkgutil, sys\n"
        "import numgrad.codegen, numgrad.kernels\n"
        "for room in (numgrad.codegen, numgrad.kernels):\n"
        "    for found in pkgutil.walk_packages(room.__path__, room.__name__ + '.'):\n"
        "        if not found.name.endswith('_numba'):\n"
        "            importlib.import_module(found.name)\n"
        "print('numgrad.kernels.vmath.exponential' in sys.modules, 'numba' in sys.modules)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(jit.__file__).parents[2])}
    out = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True)
    assert out.stdout.decode().strip() == "True False"


def test_every_instruction_has_a_definition_for_numba():
    """Of those that stand beside calls of users' functions; others say that they have none."""
    from numgrad.codegen import intrinsics, intrinsics_numba
    from numgrad.codegen.device import Instruction
    from numgrad.kernels.products import blas

    for name, instruction in vars(intrinsics).items():
        if isinstance(instruction, Instruction):
            stub = inspect.signature(instruction.__wrapped__)
            assert instruction._numba_type_ is not None
            definition = inspect.signature(getattr(intrinsics_numba, name))
            assert len(definition.parameters) == 1 + len(stub.parameters), name
    for product in (blas.gemm, blas.batched_gemm, blas.parallel_gemm, blas.table_gemm):
        assert product._numba_type_ is not None
    with pytest.raises(NotImplementedError, match=r"tile: Numba has no form .*products\.blas"):
        _ = blas.tile._numba_type_


def test_what_is_for_compiled_functions_cannot_be_called_by_python():
    from numgrad.codegen.intrinsics import fma
    from numgrad.kernels.scipy_functions import _gammaln
    from numgrad.kernels.vmath.exponential import exp_f64

    for function in (exp_f64, fma, _gammaln):
        with pytest.raises(NotImplementedError, match="compiled functions"):
            function(1.0)


def test_a_key_covers_what_a_source_imports_and_no_other_file():
    from numgrad.codegen import cache

    def files(source):
        pending, found = cache._imported(source), set()
        while pending:
            found |= pending
            pending = {p for path in pending for p in cache._content(path)[1]} - found
        return {os.path.basename(path) for path in found}

    found = files("from numgrad.kernels.vmath.exponential import exp_f64 as exp_f64\n")
    assert {"exponential.py", "precision.py", "intrinsics.py", "device.py"} <= found
    assert "intrinsics_numba.py" in found  # which nothing imports by name
    assert not {"window_steps.py", "linalg.py"} & found
    several = "from numgrad.kernels.products import (\n    gemm,\n    blocks,\n)\n"
    assert {"gemm.py", "blocks.py", "blas.py"} <= files(several)


def test_a_change_of_a_library_file_changes_the_key(monkeypatch):
    from numgrad.codegen import cache

    source = "from numgrad.kernels.vmath.roots import cbrt_f64\n"
    before, other = cache.library_digest(source), cache.library_digest("import numpy\n")
    read = cache._content

    def edited(path):
        digest, imports = read(path)
        return (b"edited" if os.path.basename(path) == "exponential.py" else digest), imports

    monkeypatch.setattr(cache, "_content", edited)
    assert cache.library_digest(source) != before
    assert cache.library_digest("import numpy\n") == other


ONLY_DOUBLE = np.float64(2.0)


def test_a_constant_without_a_counterpart_for_float32_is_an_error():
    from numgrad.codegen.device import device
    from numgrad.kernels.vmath.precision import single

    @device
    def twice_f64(x):
        return x * ONLY_DOUBLE

    with pytest.raises(AttributeError, match="ONLY_DOUBLE has no counterpart for float32"):
        single(twice_f64)
