"""Kernels are compiled for systems and CPUs that are not at hand; conversions that they share."""

import ctypes
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import cache, linker
from numgrad.codegen.dtypes import KERNEL_DTYPES, _wrapped, convert
from numgrad.codegen.native import machine
from tests.codegen.other_systems import TARGETS

SAMPLE = ("erf", "sum", "matmul", "sort")
"""Operations of each kind of kernel: elementwise, along axes, products, orders; SciPy's."""

PYTHON = {
    "PyBool_FromLong", "PyBytes_AsString", "PyComplex_FromDoubles", "PyComplex_ImagAsDouble",
    "PyComplex_RealAsDouble", "PyErr_Clear", "PyErr_NoMemory", "PyErr_Occurred",
    "PyEval_RestoreThread", "PyEval_SaveThread", "PyFloat_AsDouble", "PyFloat_FromDouble",
    "PyLong_AsLongLong", "PyLong_AsUnsignedLongLong", "PyLong_FromLongLong",
    "PyLong_FromUnsignedLongLong", "PyObject_IsTrue", "PyObject_Vectorcall", "PyType_IsSubtype",
    "Py_IncRef",
}  # fmt: skip
C = {"malloc", "free", "memcpy", "memset", "memmove", "fmod", "fmodf", "pow"}
BESIDE = {"win64": {"__chkstk", "_fltused"}}
"""What else LLVM asks for on a system; ``machine`` makes it known."""


def _swept(target, operations):
    command = [sys.executable, "-m", "tests.codegen.other_systems", target, *operations]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert report["modules"] > 2 * len(operations)
    assert not report["refused"]  # which would go to Numba
    assert report["any_order"] == 0
    known = PYTHON | C | BESIDE.get(target, set())
    assert {s for s in report["symbols"] if not s.startswith("numgrad_")} <= known


@pytest.mark.slow  # compiling takes two seconds of CPU a target
@pytest.mark.parametrize("target", TARGETS)
def test_a_sample_of_the_table_is_compiled_for(target):
    _swept(target, SAMPLE)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("target", TARGETS)
def test_the_whole_table_is_compiled_for(target):
    _swept(target, ())


@pytest.mark.slow(cases=0)  # whatever tests compile otherwise is looked at too: see conftest
@pytest.mark.parametrize("dtype", [dtype.name for dtype in KERNEL_DTYPES])
def test_no_kernel_of_the_table_goes_to_numba(dtype):
    command = [sys.executable, "-m", "tests.codegen.other_systems", "translated", dtype]
    report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert not report["refused"]
    assert report["modules"] > 100


PROGRAM = """
import numpy as np, numgrad as ng
x = np.random.default_rng(0).normal(size=(37, 53))
t = ng.tensor(x, requires_grad=True)
y = (t * np.tanh(t)).sum()
y.backward()
np.testing.assert_allclose(t.grad.numpy(), np.tanh(x) + x / np.cosh(x) ** 2, rtol=1e-12)
np.testing.assert_allclose((t @ x.T).detach().numpy(), x @ x.T, rtol=1e-12, atol=1e-12)
print(float(ng.tensor(x).sum()).hex(), float(ng.jit(np.sum)(x)).hex())
"""


@pytest.mark.skipif(machine.is_arm(), reason="the lesser CPU is one of x86")
def test_a_lesser_cpu_has_the_same_sums_and_close_values():
    target = TARGETS["x86-64-plain"]
    environment = {"NUMBA_CPU_NAME": target.cpu, "NUMBA_CPU_FEATURES": target.features}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **environment}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    x = np.random.default_rng(0).normal(size=(37, 53))
    assert done.stdout.split() == [float(f(x)).hex() for f in (ng.sum, ng.jit(np.sum))]


@pytest.mark.parametrize(
    ("features", "fma", "bits"), [("", False, 128), ("+avx,+fma", True, 256), ("+avx", False, 256)]
)
@pytest.mark.skipif(machine.is_arm(), reason="which always has both")
def test_what_is_known_of_the_cpu_is_of_the_one_compiled_for(features, fma, bits, monkeypatch):
    monkeypatch.setenv("NUMBA_CPU_FEATURES", features)
    assert machine.has_fma() == fma
    assert machine.vector_bits() == bits


# ------------------------------------------------------------- floats out of an integer's range

LEAST_32, LEAST_64 = -(2**31), -(2**63)
FLOATS = [
    -1.5,
    3e9,
    -3e9,
    1e20,
    np.nan,
    np.inf,
    -np.inf,
    300.75,
    -200.25,
    2.0**31,
    -(2.0**31) - 0.5,
]
INTEGERS = {  # as C's conversions of x86: of 32 bits, what is left of these, of 64 bits
    "int32": [-1, LEAST_32, LEAST_32, LEAST_32, LEAST_32, LEAST_32, LEAST_32, 300, -200, LEAST_32,
              LEAST_32],
    "int8": [-1, 0, 0, 0, 0, 0, 0, 44, 56, 0, 0],
    "int16": [-1, 0, 0, 0, 0, 0, 0, 300, -200, 0, 0],
    "uint8": [255, 0, 0, 0, 0, 0, 0, 44, 56, 0, 0],
    "uint16": [65535, 0, 0, 0, 0, 0, 0, 300, 65336, 0, 0],
    "uint32": [2**32 - 1, 3 * 10**9, 2**31, 0, 2**31, 0, 2**31, 300, 2**32 - 200, 2**31, 2**31],
    "int64": [-1, 3 * 10**9, -3 * 10**9, LEAST_64, LEAST_64, LEAST_64, LEAST_64, 300, -200, 2**31,
              LEAST_32],
    "uint64": [2**64 - 1, 3 * 10**9, 2**64 - 3 * 10**9, 0, 2**63, 0, 2**63, 300, 2**64 - 200, 2**31,
               2**64 - 2**31],
}  # fmt: skip


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_floats_out_of_range_become_the_same_integers_everywhere(dtype):
    x, expected = np.array(FLOATS), np.array(INTEGERS[dtype], dtype)
    np.testing.assert_array_equal(_wrapped(x, np.dtype(dtype)), expected)
    np.testing.assert_array_equal(convert(x, np.dtype(dtype)), expected)
    written = ng.zeros(len(x), dtype=dtype)
    written[:] = x
    for result in (
        ng.tensor(x).astype(dtype),
        ng.jit(lambda x: x.astype(dtype))(x),
        written,
        ng.asarray(x, dtype=dtype),
        np.diff(np.cumsum(ng.tensor(x), dtype=dtype), prepend=np.zeros(1, dtype)),
    ):
        np.testing.assert_array_equal(np.asarray(result), expected)


# ---------------------------------------------------------------------- complex numbers in C


class _Pair(ctypes.Structure):
    _fields_ = (("real", ctypes.c_double), ("imag", ctypes.c_double))


@pytest.mark.skipif(machine.is_arm(), reason="where the result's address has a register of its own")
def test_complex_numbers_are_passed_by_reference_where_c_does_so():
    pointer = ctypes.POINTER(_Pair)

    @ctypes.CFUNCTYPE(None, pointer, ctypes.c_double, pointer, pointer, ctypes.c_int)
    def theirs(out, v, a, b, skip):  # as a C compiler for Windows has it
        value = v * complex(a[0].real, a[0].imag) - complex(b[0].real, b[0].imag) + skip
        out[0].real, out[0].imag = value.real, value.imag

    declaration = (
        "__pyx_t_double_complex (double, __pyx_t_double_complex, __pyx_t_double_complex, "
        "int __pyx_skip_dispatch)"
    )
    address = ctypes.cast(theirs, ctypes.c_void_p).value
    doubles = [ctypes.c_double] * 5
    ours = ctypes.CFUNCTYPE(_Pair, *doubles, ctypes.c_int)(
        linker.by_reference(declaration, address)
    )
    result = ours(2.0, 3.0, 4.0, 0.5, 0.25, 1)
    assert complex(result.real, result.imag) == 2 * (3 + 4j) - (0.5 + 0.25j) + 1


@pytest.mark.parametrize(
    ("triple", "expected"),
    [("x86_64-pc-windows-msvc", True), ("x86_64-unknown-linux-gnu", False),
     ("aarch64-pc-windows-msvc", False), ("arm64-apple-darwin", False)],
)  # fmt: skip
def test_only_windows_on_x86_passes_by_reference(triple, expected, monkeypatch):
    monkeypatch.setattr("llvmlite.binding.get_process_triple", lambda: triple)
    assert linker.passes_by_reference() == expected


# ------------------------------------------------------------------------ files as on Windows


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path))
    return tmp_path


def _refuse(*_, **__):
    raise PermissionError(13, "The process cannot access the file")


def test_a_file_that_another_process_reads_stays(directory, monkeypatch):
    cache.save("a-1.bin", b"first")
    monkeypatch.setattr("os.replace", _refuse)
    cache.save("a-1.bin", b"first")
    assert cache.load("a-1.bin") == b"first"
    assert sorted(p.name for p in directory.iterdir()) == ["a-1.bin"]


def test_clear_goes_on_where_a_file_is_held(directory, monkeypatch):
    for name in ("a-1.bin", "b-2.bin"):
        cache.save(name, b"code")
    unlink = type(directory).unlink

    def held(self, **options):
        if self.name == "a-1.bin":
            _refuse()
        unlink(self, **options)

    monkeypatch.setattr(type(directory), "unlink", held)
    assert cache.clear() == 1
    assert [p.name for p in directory.iterdir()] == ["a-1.bin"]


def test_a_kernel_of_a_long_name_has_files_of_short_ones(directory):
    def twice(x):
        return x + x

    twice.__name__ = "f" * 240
    assert float(ng.elementwise(register=False)(twice)(ng.tensor(1.5))) == 3.0
    assert 0 < max(len(p.name) for p in directory.iterdir()) < 120
