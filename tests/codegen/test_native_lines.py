"""Lines that are alike: their syntax is Python's, and they become what each by itself would."""

import ast

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.intrinsics import HAS_FMA
from numgrad.codegen.native import lines
from numgrad.codegen.native.repetition import Repetition
from numgrad.codegen.native.signature import parse as parse_signature
from numgrad.codegen.native.translation import translate

TEXT = """
import numpy as np
C0 = np.float64(0.5)

@outlined
def piece_0(a0, s_float64, a1):
    no_inline()
    e1 = load(float64, a0, 1, 0, 1)
    v1 = float64(e1 - C0)
    store(v1, s_float64, 12, 0, 1)
    v2 = 1.5 + 1e-05 * v1 - 10.0 + 2.0j
    v3 = -v2
    if v3:
        v4 = float64(v1 * v2)
        v5 = v6 = v4
    else:
        v4 = 3
    for i0 in range(0, n3):
        v6 = load(float64, a1, i0 + 2*n2 + 7, 1, 92)
        store(v6, a1, i0, 0, 92)

        if v6 > 0:
            r7, r8 = nest_0(v6, 1, 2)
        while v6:
            p7[task0, 1] = v6
            v6 = p7[task0, 0]
    return v5


def kernel(x0, x1):
    a0 = int64(x0.ctypes.data)
    a1 = piece_0(
        a0, 1,
    )
"""


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "def kernel(x):\n    a1 = f(\n    a2 = 1,\n    )\n",
        "def kernel(x):\n    a1 = (\n    a2 == 1)\n    a2 = 1\n",
        "def kernel(x):\n    a1 = 1\n",
        "def kernel(x):\n    if x:\n        a1 = 1\n    a2 = a1\n    a3 = 01 if x else 2\n",
        'def kernel(x):\n    """\n    a1 = 1\n    """\n    a2 = 2\n',
    ],
)
def test_lines_have_the_syntax_that_python_finds(text):
    try:
        expected = [ast.dump(node) for node in ast.parse(text).body]
    except SyntaxError:
        with pytest.raises(SyntaxError):
            lines.parse(text)
        return
    assert [ast.dump(node) for node in lines.parse(text)] == expected


@pytest.fixture(autouse=True)
def every_text_by_forms(monkeypatch):
    """Short texts too, which Python parses as a whole."""
    monkeypatch.setattr(lines, "SHORT", 0)


def one_by_one(monkeypatch, source, signature):
    """What a kernel becomes without looking for what repeats itself."""
    with monkeypatch.context() as context:
        context.setattr(Repetition, "translate", lambda *_: False)
        return translate(source, signature, has_fma=HAS_FMA)


def sources(function, *arguments):
    """Sources and signatures of what ``ng.jit`` makes of a function."""
    fast = ng.jit(function)
    fast(*arguments)
    for step in fast.specialisations[-1].steps:  # pyright: ignore
        yield step.written.source(parallel=False), parse_signature(step.written.signature())


def unrolled(x, y):
    for _ in range(3):
        x = x * y + x[0] * np.sin(x) - np.where(y > 0.5, x, y * y)
    return np.sum(x * x) + x[1]


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
@pytest.mark.parametrize("size", [3, 40])
def test_repetition_changes_no_instruction(dtype, size, monkeypatch):
    x = np.arange(1, size + 1).astype(dtype)
    y = x[::-1].copy()
    function = unrolled if dtype != "complex128" else lambda x, y: np.sum(x * y - x[0] * y / x)
    called = 0
    translated = Repetition.translate

    def counted(*arguments):
        nonlocal called
        found = translated(*arguments)
        called += found
        return found

    monkeypatch.setattr(Repetition, "translate", counted)
    for source, signature in sources(function, x, y):
        text = translate(source, signature, has_fma=HAS_FMA)
        assert text == one_by_one(monkeypatch, source, signature)
    assert called


NAMES = """
from numba import float64
from numgrad.codegen.intrinsics import load as load
from numgrad.codegen.intrinsics import store as store

def kernel(x, n):
    a1 = int64(x.ctypes.data)
    v1 = load(float64, a1, 0, 0, 1)
    v2 = load(float64, a1, 1, 0, 1)
    v3 = v1 * v2
    v4 = v1 * v1
    v5 = v2 * v3
    store(v3, a1, 2, 0, 1)
    store(v4, a1, 3, 0, 1)
    store(v5, a1, 4, 0, 1)
    z1 = v1 * v2 + v3
    z2 = v2 * v3 + v1
    z3 = v1 * v5 + v4
    store(z1 + z2 + z3, a1, 9, 0, 1)
    factor = 2
    v6 = v1 * factor
    factor = 3
    v7 = v2 * factor
    c1 = 4
    v8 = v1 * c1
    c2 = 5
    v9 = v2 * c2
    store(v6, a1, 5, 0, 1)
    store(v7, a1, 6, 0, 1)
    store(v8, a1, 7, 0, 1)
    store(v9, a1, 8, 0, 1)
    for i0 in range(0, n):
        e1 = load(float64, a1, i0, 0, 1)
        e2 = load(float64, a1, i0 + 20, 0, 1)
        e3 = e1 * e2
        store(e3, a1, i0 + 40, 0, 1)
        e4 = load(float64, a1, 64, 0, 1)
        store(e4, a1, i0 + 100, 0, 1)
"""


def test_what_names_stand_for_is_looked_at(monkeypatch):
    signature = parse_signature("void(float64[::1], int64)")
    source = NAMES.replace("from numba import float64", "from numba import float64, int64")
    text = translate(source, signature, has_fma=HAS_FMA)
    assert text == one_by_one(monkeypatch, source, signature)
