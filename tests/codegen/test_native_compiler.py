"""What the native compiler is given that is easy to get wrong: lanes, order, shifts, threads."""

import os
import subprocess
import sys

import numpy as np
import pytest
from llvmlite import binding

import numgrad as ng
from numgrad.codegen import compile as compiler
from numgrad.codegen.intrinsics import HAS_FMA
from numgrad.codegen.native import machine
from numgrad.codegen.native.kernel import NativeCode
from numgrad.codegen.native.machine import divided

HEADER = """
import numpy as np
from numba import prange
from numba import boolean, int8, int32, int64, uint64, float32, float64, complex128
from numgrad.codegen.intrinsics import add_any_order, load, store
"""


def native(text, signature, **options):
    """The kernel of a text, which must not be one for Numba."""
    kernel = compiler.compile_kernel("native", HEADER + text, signature, keep=False, **options)
    assert not kernel.numba_reason
    return kernel


def test_one_place_that_several_lanes_add_to():
    kernel = native(
        """
def kernel(x, places):
    for k in range(places.size):
        x[places[k]] += 1.0
""",
        "void(float64[::1], int64[::1])",
    )
    x = np.zeros(3)
    kernel.entry(x, np.array([1] * 20 + [2] * 5))
    assert x.tolist() == [0.0, 20.0, 5.0]


def test_an_iteration_that_reads_what_the_one_before_wrote():
    kernel = native(
        """
def kernel(x):
    for k in range(1, x.size):
        x[k] = x[k - 1] + x[k]
""",
        "void(float64[::1])",
    )
    x = np.ones(50)
    kernel.entry(x)
    np.testing.assert_array_equal(x, np.arange(1.0, 51.0))


@pytest.mark.parametrize("distance", [*range(-40, 41, 3), 0, 1, -1, 130, -130])
def test_rows_of_one_array_that_overlap(distance):
    kernel = native(
        """
def kernel(x, first, second, n):
    a = x[first : first + n]
    b = x[second : second + n]
    for k in range(n):
        b[k] = a[k] + b[k]
""",
        "void(float64[::1], int64, int64, int64)",
    )
    x = np.random.default_rng(0).random(400)
    expected = x.copy()
    for k in range(100):
        expected[140 + distance + k] = expected[140 + k] + expected[140 + distance + k]
    kernel.entry(x, 140, 140 + distance, 100)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 31, 32, 33, 100])
def test_nothing_is_written_beside_an_array(length):
    kernel = native(
        """
def kernel(x, y):
    for k in range(x.size):
        y[k] = x[k] * 2.0
""",
        "void(float64[::1], float64[::1])",
    )
    y = np.full(length + 64, -1.0)
    kernel.entry(np.ones(length), y[:length])
    assert y.tolist() == [2.0] * length + [-1.0] * 64


def test_lanes_read_only_what_their_branch_reads():
    kernel = native(
        """
def kernel(x, places, y):
    for k in range(y.size):
        y[k] = x[places[k]] if places[k] >= 0 else 0.5
    for k in range(y.size):
        y[k] = 2.0 * y[k] if places[k] < 0 else x[places[k]]
""",
        "void(float64[::1], int64[::1], float64[::1])",
    )
    x, y = np.arange(4.0), np.empty(21)
    places = np.arange(21) % 4
    places[::3] = -(1 << 50)
    kernel.entry(x, places, y)
    np.testing.assert_array_equal(y, np.where(places < 0, 1.0, x[np.maximum(places, 0)]))


WIDE = binding.get_host_cpu_features().get("avx2") and HAS_FMA


@pytest.mark.slow(cases=0)
@pytest.mark.skipif(not WIDE, reason="needs a CPU with vectors of 256 bits and of 128")
def test_a_sum_has_the_same_bits_for_any_vector_width():
    program = (
        "import numpy as np, numgrad as ng\n"
        "x = np.random.default_rng(0).standard_normal(1001)\n"
        "f = ng.jit(lambda x: (np.sum(np.exp(x) * x), np.sum(x.astype(np.float32))))\n"
        "print([float(v).hex() for v in f(x)], float(np.sum(ng.tensor(x))).hex())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "NUMBA_CPU_FEATURES": features},
            check=True,
            timeout=120,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        for features in ("+sse2,+fma,+avx", "+sse2,+fma,+avx,+avx2")
    }
    assert len(found) == 1


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_shifts_by_any_number_are_those_of_numpy(dtype):
    info = np.iinfo(dtype)
    values = np.array([0, 1, 5, info.max, info.min, info.min // 2], dtype)
    counts = [0, 1, 7, 8, 31, 63, 64, 100, info.max] + ([-1, -64, info.min] if info.min else [])
    a, b = (part.ravel() for part in np.meshgrid(values, np.array(counts, dtype)))
    for shift in (np.left_shift, np.right_shift):
        expected = shift(a, b)
        np.testing.assert_array_equal(shift(ng.tensor(a), ng.tensor(b)).numpy(), expected)
        np.testing.assert_array_equal(ng.jit(shift)(a, b), expected)
        np.testing.assert_array_equal(ng.jit(shift)(a[:1], b[:1]), expected[:1])


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
def test_divisions_by_powers_of_two_are_those_of_numpy(dtype):
    info = np.iinfo(dtype)
    x = np.array([0, 1, 5, 63, 64, 65, info.max, info.max - 1, info.min, info.min + 1], dtype)
    x = np.concatenate([x, x - np.array(7, dtype)])
    powers = [1, 2, 64, int(info.max) // 2 + 1]

    def divided(x):
        return [(x % k, x // k) for k in (dtype(n) for n in powers)]

    dtype = np.dtype(dtype).type
    for (rest, quotient), n in zip(ng.jit(divided)(x), powers, strict=True):
        assert np.asarray(rest).tolist() == [k % n for k in x.tolist()]
        assert np.asarray(quotient).tolist() == [k // n for k in x.tolist()]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "float32", "bool"])
def test_what_adds_to_elements_writes_their_bytes_alone(dtype):
    def added(x, places, values):
        x = x.copy()
        np.add.at(x, places, values)
        return x

    x, places, values = np.zeros(40, dtype), np.arange(40) // 2, np.ones(40, dtype)
    np.testing.assert_array_equal(ng.jit(added)(x, places, values), added(x, places, values))


def test_tasks_that_are_shared_have_the_bits_of_those_that_are_not():
    text = """
def kernel(x, y, n):
    for t in @RANGE@(n):
        total = 0.0
        for k in range(x.size):
            total = add_any_order(total, x[k] * float64(t))
        y[t] = total
"""
    x = np.random.default_rng(1).standard_normal(1000)
    found = []
    for parallel in (False, True):
        written = text.replace("@RANGE@", "prange" if parallel else "range")
        kernel = native(written, "void(float64[::1], float64[::1], int64)", parallel=parallel)
        y = np.empty(50)
        kernel.entry(x, y, 50)
        found.append(y.tobytes())
    assert found[0] == found[1]


def test_what_is_not_in_the_language_goes_to_numba():
    text = "import numpy as np\ndef kernel(x):\n    x[0] = np.sinh(x[1])\n"
    kernel = compiler.compile_kernel("hosted", text, "void(float64[::1])", keep=False)
    assert "sinh" in kernel.numba_reason
    x = np.array([0.0, 1.0])
    kernel.entry(x)
    assert x[0] == pytest.approx(np.sinh(1.0))


def test_what_goes_to_numba_is_translated_in_one_process_only(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "kernels"))
    text = "import numpy as np\ndef kernel(x):\n    x[0] = np.sinh(x[1])\n"
    tries = []
    translated = NativeCode.translated
    monkeypatch.setattr(NativeCode, "translated", lambda self: tries.append(0) or translated(self))
    for again in (False, True):
        monkeypatch.setattr(compiler, "_loaded", {})
        kernel = compiler.compile_kernel("hosted_once", text, "void(float64[::1])")
        assert "sinh" in kernel.numba_reason
        assert kernel.from_cache == again
    assert len(tries) == 1


def test_what_llvm_does_not_take_goes_to_numba(monkeypatch):
    monkeypatch.setattr(NativeCode, "translated", lambda self: "define nonsense")
    text = "def kernel(x):\n    x[0] = 2.0 * x[1]\n"
    kernel = compiler.compile_kernel("refused", text, "void(float64[::1])", keep=False)
    assert "LLVM does not take" in kernel.numba_reason
    x = np.array([0.0, 1.0])
    kernel.entry(x)
    assert x[0] == 2.0


def test_no_memory_is_an_error_that_says_so():
    kernel = native(
        """
def kernel(x, n):
    y = np.empty(n)
    y[0] = 1.0
    x[0] = y[0]
""",
        "void(float64[::1], int64)",
    )
    x = np.zeros(1)
    with pytest.raises(MemoryError):
        kernel.entry(x, 1 << 56)
    assert x[0] == 0.0
    kernel.entry(x, 10)
    assert x[0] == 1.0


def test_code_is_valid_for_llvm():
    kernel = native(
        """
def kernel(x, y, n):
    z = np.empty(n)
    for t in prange(n):
        total = 0.0
        for k in range(x.size):
            total = add_any_order(total, x[k] if x[k] > float64(t) else y[k])
        z[t] = total
    for k in range(n):
        y[k] = z[k]
""",
        "void(float64[::1], float64[::1], int64)",
        parallel=True,
    )
    assert isinstance(kernel.code, NativeCode)
    machine.compile_ir(kernel.code.translated(), "verified", verify=True)


def test_parts_of_a_long_module_call_each_other():
    text = ""
    for k in range(6):
        calls = "".join([f"    t = part{j}(x, y)\n    y[0] += t\n" for j in range(k)][-2:])
        steps = "".join([f"    y[{k}] += x[{j % 8}] * {j + 0.5}\n" for j in range(20)])
        text += f"\n@outlined\ndef part{k}(x, y):\n{calls}{steps}    return y[{k}] * 0.125\n"
    text += "\ndef kernel(x, y):\n    y[7] = part5(x, y) + part2(x, y)\n"
    kernel = native(
        f"from numgrad.codegen.device import outlined\n{text}",
        "void(float64[::1], float64[::1])",
    )
    whole = kernel.code.translated()
    parts = divided(whole, "name")
    assert len(parts) == 2
    assert sum(p.count("define ") for p in parts) == whole.count("define ")
    assert any("define double @part" in p for p in parts)  # the other part calls it
    space: dict = {}
    exec(text.replace("@outlined", ""), space)
    x, y, z = np.linspace(0.0, 1.0, 8), np.zeros(8), np.zeros(8)
    kernel.entry(x, y)
    space["kernel"](x, z)
    np.testing.assert_allclose(y, z, rtol=1e-12)
    again = machine.compile_ir(whole, "again_1")
    assert again == machine.compile_ir(whole, "again_1")
    assert set(machine.load(again)) == {"packed"}
    for part in ("part0", "part5"):  # in whichever thread
        with pytest.raises(RuntimeError, match="parsing error"):
            machine.compile_ir(whole.replace(f"@{part}(", f"@{part}(nothing ", 1), "broken")


def test_a_long_function_of_calls_is_compiled_in_haste(monkeypatch):
    efforts = []
    plain = machine._machine

    def noted(effort):
        efforts.append(effort)
        return plain(effort)

    monkeypatch.setattr(machine, "_machine", noted)
    text = "from numgrad.codegen.device import outlined\n\n@outlined\ndef step(x, k):\n"
    text += "    x[k] = x[k] * 1.5 + x[k + 1]\n" * 80 + "\n\ndef kernel(x):\n"
    text += "".join([f"    step(x, {k % 7})\n" for k in range(200)])
    results = {}
    for least in (machine.GLUE, 100):
        monkeypatch.setattr(machine, "GLUE", least)
        efforts.clear()
        kernel = native(f"# {least}\n{text}", "void(float64[::1])")
        results[least] = np.linspace(0.5, 1.0, 8)
        kernel.entry(results[least])
        assert (0 in efforts) == (least == 100)
    assert len({x.tobytes() for x in results.values()}) == 1


LONG = """
import numpy as np
from numgrad.kernels.vmath.trigonometric import sin_f64, sin_rare_f64, sin_slow_f64
from numgrad.codegen.intrinsics import add_any_order


def kernel(x, y):
    total = 0.0
    for k in range(x.size):
        a = x[k]
        b = sin_slow_f64(a) if sin_rare_f64(a) else sin_f64(a)
        c = sin_slow_f64(b) if sin_rare_f64(b) else sin_f64(b)
        y[k] = c
        total = add_any_order(total, c)
    z = np.empty(3, np.float64)
    z[1] = sin_slow_f64(total) if sin_rare_f64(total) else sin_f64(total)
    return z[1]
"""


def test_a_long_text_is_written_once_and_has_the_bits_of_a_short_one(monkeypatch):
    kernels = []
    for long in (10**9, 0):
        monkeypatch.setattr("numgrad.codegen.native.translation.LONG", long)
        monkeypatch.setattr("numgrad.codegen.native.loops.MOST_TWICE", long)
        kernel = compiler.compile_kernel(
            "long", LONG, "float64(float64[::1], float64[::1])", keep=False
        )
        assert ("@choice" in NativeCode(kernel).translated()) == (long == 0)
        kernels.append(kernel.entry)
    for length in (0, 1, 7, 8, 9, 31, 100):
        x = np.random.default_rng(length).normal(size=length)
        x[::5] *= 1e9
        (y, z) = (np.full(length + 2, 7.0) for _ in range(2))
        assert kernels[0](x, y[1:-1]) == kernels[1](x, z[1:-1])
        assert y.tolist() == z.tolist()
        assert z[0] == z[-1] == 7.0


@pytest.mark.parametrize("dtype", ["boolean", "int8", "uint16", "complex128"])
def test_what_is_left_over_of_lanes_touches_nothing_beside_it(dtype):
    kernel = native(
        """
def kernel(x, y, z, n, step):
    for k in range(n):
        y[k] = x[k]
    for k in range(n):
        z[k * step] = x[k * step]
    for k in range(n):
        kept = x[k] if x[k + step] != x[k] else z[k * step]
        y[k] = x[k] if kept != z[k * step] else kept
""",
        f"void({dtype}[::1], {dtype}[::1], {dtype}[::1], int64, int64)",
    )
    x = np.ones(300, dtype.replace("boolean", "bool"))
    for n in (0, 1, 7, 8, 63, 64, 65, 100):
        y, z = np.zeros_like(x), np.zeros_like(x)
        kernel.entry(x, y, z, n, 2)
        assert y[:n].all()
        assert not y[n:].any()
        assert z[: 2 * n : 2].all()
        assert np.count_nonzero(z) == n


def test_what_a_loop_need_not_repeat_is_read_before_it_only_where_it_runs():
    kernel = native(
        """
def kernel(x, a, n, m, out):
    for i in range(m):
        for j in range(m):
            for k in range(n):
                out[k] = out[k] + (load(float64, a, i, 0, 2) * float64(i * m + n) + x[j])
    for k in range(n):
        out[k] = out[k] * (x[0] if n > 5 else load(float64, a, 1 << 40, 0, 2))
""",
        "void(float64[::1], int64, int64, int64, float64[::1])",
    )
    x, a = np.arange(1.0, 4.0), np.array([3.0, -2.0, 0.5])
    for n in (6, 8, 21):
        out = np.ones(n)
        kernel.entry(x, a.ctypes.data, n, 3, out)
        whole = 1 + sum(a[i] * (3 * i + n) + x[j] for i in range(3) for j in range(3))
        np.testing.assert_allclose(out, whole, rtol=1e-14)
    kernel.entry(x[:0], 0, 0, 3, np.empty(0))  # address 0 is not read


def test_a_very_long_block_is_cut_and_keeps_its_bits(monkeypatch):
    monkeypatch.setattr("numgrad.codegen.native.translation.VERY_LONG", 0)
    monkeypatch.setattr("numgrad.codegen.native.ir.LONG", 10)
    steps = "\n".join(f"        a = a * {k}.0 + x[k] / (a - {k}.5)" for k in range(60))
    head = "\ndef kernel(x, y):\n    for k in range(x.size):\n        a = x[k]\n"
    text = f"{head}{steps}\n        y[k] = a\n"
    found = []
    for least in (10**9, 50):
        monkeypatch.setattr("numgrad.codegen.native.ir.LONG_BLOCK", least)
        kernel = native(text, "void(float64[::1], float64[::1])")
        assert ("br label %block." in NativeCode(kernel).translated()) == (least == 50)
        y = np.empty(21)
        kernel.entry(np.linspace(0.1, 0.7, 21), y)
        found.append(y.tobytes())
    assert found[0] == found[1]
    assert found[0] != bytes(8 * 21)
