"""Products with matrices of up to four rows and columns in nests, whole or in parts."""

import ctypes
import mmap
import re
import sys
from itertools import permutations

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.native.ir import FunctionWriter, ModuleText
from numgrad.codegen.nests import parts

TREE = [(0, 1), (2, 3), (5, 4), (6, 7)]
DRAW = np.random.default_rng(0)
BASES = DRAW.uniform(0.1, 1.0, (5, 300, 4))


def pruned(matrices, sites):
    """A recursion along a tree, unrolled: one nest over the sites."""
    nodes = [*sites]
    for a, b in TREE:
        nodes.append((nodes[a] @ matrices[a].T) * (nodes[b] @ matrices[b].T))
    return np.sum(np.log(nodes[-1] @ np.array([0.1, 0.2, 0.3, 0.4])))


def gradient(values):
    return ng.value_and_grad(lambda m: pruned(np.exp(m.reshape(8, 4, 4)), BASES))(values)


def test_an_unrolled_recursion_is_one_nest_with_the_gradient_of_differences():
    m = DRAW.normal(size=128) / 4
    fast = ng.jit(gradient)
    value, slopes = fast(m)
    assert "gemm" not in fast.source
    np.testing.assert_allclose(value, pruned(np.exp(m.reshape(8, 4, 4)), BASES), rtol=1e-12)
    for k in (0, 37, 90, 127):
        z = m + 1e-30j * np.eye(128)[k]
        expected = pruned(np.exp(z.reshape(8, 4, 4)), BASES).imag / 1e-30
        np.testing.assert_allclose(slopes[k], expected, rtol=1e-11, atol=1e-12)


def test_parts_of_a_nest_compute_the_same(monkeypatch):
    m = DRAW.normal(size=128) / 4
    expected = ng.jit(gradient)(m)
    monkeypatch.setattr(parts, "PART", 30)
    fast = ng.jit(lambda m: gradient(m))
    value, slopes = fast(m)
    calls = re.findall(r"^def nest_\d+_part_(\d+)\(", fast.source, re.MULTILINE)
    assert len(calls) > 4
    assert value == expected[0]
    np.testing.assert_array_equal(slopes, expected[1])


@pytest.mark.parametrize("shapes", [((90, 4), (4, 4)), ((4, 90), (90, 4)), ((3, 3), (3, 70))])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_fixed_lengths(shapes, dtype):
    a, b = (DRAW.normal(size=shape).astype(dtype) for shape in shapes)
    fixed = [tuple(n if n < 5 else -1 for n in shape) for shape in shapes]
    fast = ng.jit(lambda a, b: a.reshape(fixed[0]) @ b.reshape(fixed[1]))
    rtol = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(fast(a, b), a @ b, rtol=rtol, atol=rtol)
    assert "gemm" not in fast.source
    free = ng.jit(lambda a, b: a @ b)
    free(a, b)
    assert "gemm(" in free.source


@pytest.mark.skipif(sys.platform == "win32", reason="mprotect is POSIX")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int8", "bool"])
@pytest.mark.parametrize("columns", [2, 3, 4, 5])
def test_columns_are_read_no_further_than_their_ends(columns, dtype):
    """Lanes read whole rows where these are short, up to the last element that one needs."""

    def f(x):
        x = x.reshape(-1, columns)
        return x[:, 0] + 2 * x[:, columns - 1], np.sum(x[:, columns // 2].astype(float) ** 2)

    fast = ng.jit(f)
    page, size = mmap.PAGESIZE, np.dtype(dtype).itemsize
    memory = mmap.mmap(-1, 2 * page)
    whole = np.frombuffer(memory, np.uint8)
    libc = ctypes.CDLL(None)
    mprotect, second = libc.mprotect, ctypes.c_void_p(whole.ctypes.data + page)
    assert mprotect(second, ctypes.c_size_t(page), 0) == 0
    try:
        for rows in (1, 8, 16, 37, 64):
            x = whole[page - rows * columns * size : page].view(dtype)
            x[:] = DRAW.integers(0, 2 if dtype == "bool" else 30, x.size)
            ours, total = fast(x)
            expected, wanted = f(x)
            np.testing.assert_array_equal(ours, expected)
            np.testing.assert_allclose(total, wanted, rtol=1e-12)
    finally:
        assert mprotect(second, ctypes.c_size_t(page), 3) == 0


def test_scopes_tell_all_arrays_of_a_function_apart():
    """By LLVM's rule: in some domain all scopes of one are among those the other does not alias."""
    module = ModuleText()
    function = FunctionWriter(module, "f", [])
    count = 70
    texts = [function.scope(k, count) for k in range(count)]
    nodes = dict(re.findall(r"(!\d+) = (?:distinct )?!\{(.*)\}", module.text()))

    def scopes(text, kind):
        listed = nodes[re.search(rf"!{kind} (!\d+)", text)[1]].split(", ")
        by_domain = {}
        for node in listed:
            by_domain.setdefault(nodes[node].split(", ")[1], set()).add(node)
        return by_domain

    own = [scopes(text, "alias.scope") for text in texts]
    others = [scopes(text, "noalias") for text in texts]
    for a, b in permutations(range(count), 2):
        assert any(d in own[a] and own[a][d] <= others[b][d] for d in others[b])
    for a in range(count):
        assert not any(d in own[a] and own[a][d] <= others[a][d] for d in others[a])
