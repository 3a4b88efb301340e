"""Values that iterations next to each other share: the bits are those of computing them anew."""

import numpy as np
import pytest

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.native import machine
from numgrad.codegen.native.signature import parse
from numgrad.codegen.native.translation import translate

STENCIL = """
import numpy as np
from numba import float32, float64, int32, int64
from numgrad.codegen.intrinsics import add_any_order, load, store

def kernel(x0, x1, y, z, out, n):
    a0 = int64(x0.ctypes.data)
    a1 = int64(x1.ctypes.data)
    a2 = int64(y.ctypes.data)
    a3 = int64(z.ctypes.data)
    total = KIND(0)
    for i in range(3, 3 + y.size):
        e1 = load(KIND, a0, n + i, 0, 4)
        e2 = load(KIND, a0, n + i - 3, 0, 4)
        e3 = load(KIND, a1, i - 1, 1, 4)
        v1 = e2 - e3 * e3
        e4 = load(KIND, a1, i + 2, 1, 4)
        e5 = load(KIND, a3, i - 3, 3, 4)
        v2 = e1 - e4 * e4
        e6 = load(KIND, a0, 1 + i + n, 0, 4)
        store(KIND(v1 + e5), a3, i - 3, 3, 4)
        e7 = load(KIND, a0, i, 0, 4)
        e8 = load(KIND, a0, i + n + 99, 0, 4)
        v3 = v1 * (v2 + e6)
        store(KIND(v3 - e7 * e8), a2, i - 3, 2, 4)
        e9 = load(KIND, a0, 2 * i, 0, 4)
        e10 = load(KIND, a0, 2 * i + 1, 0, 4)
        SUM
    out[0] = total
"""


def computed(length, kind, bits):
    """What the kernel makes of some numbers, and NumPy, both in small integers, which are exact."""
    draw, n = np.random.default_rng(length), 5
    x0, x1, z = (
        draw.integers(-9, 9, size).astype(kind) for size in (2 * length + 120, length + 6, length)
    )
    i = np.arange(3, 3 + length)
    v1, v2 = x0[n + i - 3] - x1[i - 1] ** 2, x0[n + i] - x1[i + 2] ** 2
    y = v1 * (v2 + x0[n + i + 1]) - x0[i] * x0[n + i + 99]
    total = np.sum(x0[2 * i] * x0[2 * i + 1] - x0[n + i + 1], dtype=kind)
    signature = f"void({', '.join([f'{kind}[::1]'] * 5)}, int64)"
    adding = "total += {}" if kind[0] == "i" else "total = add_any_order(total, {})"
    source = STENCIL.replace("SUM", adding.format("e9 * e10 - e6")).replace("KIND", kind)
    source += f"# for vectors of {bits} bits\n"
    found = np.full(length, 7, kind), z.copy(), np.zeros(1, kind)
    kernel = compile_kernel("stencil", source, signature, keep=False)
    assert not kernel.numba_reason
    kernel.entry(x0, x1, *found, n)
    text = translate(source, parse(signature), has_fma=False)
    return found, (y, v1 + z, total), text


@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "int32"])
def test_neighbours_have_the_values_that_they_would_compute(kind, monkeypatch):
    moved = {}
    for bits in (512, 256):
        monkeypatch.setattr(machine, "vector_bits", lambda bits=bits: bits)
        for length in (0, 1, 7, 8, 9, 16, 17, 40, 101):
            found, expected, text = computed(length, kind, bits)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"{bits} bits, length {length}")
        moved[bits] = text.count("shufflevector")
    # e1 follows e6 and v1 follows v2: before the first turn and in each
    assert moved[512] == moved[256] + 4


def test_products_that_may_be_fused_are_computed_in_each_iteration(monkeypatch):
    """Whether they are fused does not depend on the CPU's registers."""
    source = STENCIL.replace("SUM", "total = add_any_order(total, e9)").replace("KIND", "float64")
    head, body = source.split("def kernel")
    source = f"{head}from numgrad.codegen.device import contracted\n@contracted\ndef inner{body}"
    names = "x0, x1, y, z, out, n"
    source += f"\ndef kernel({names}):\n    inner({names})\n"
    moved = {}
    for bits in (512, 256):
        monkeypatch.setattr(machine, "vector_bits", lambda bits=bits: bits)
        signature = parse("void(float64[::1], float64[::1], float64[::1], float64[::1], "
                          "float64[::1], int64)")  # fmt: skip
        text = translate(source, signature, has_fma=True)
        assert " contract " in text
        moved[bits] = text.count("shufflevector")
    # e1 follows e6, e2 follows e1, and e3 follows e4
    assert moved[512] == moved[256] + 6
