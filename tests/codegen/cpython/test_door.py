"""One door to machine code over objects: where it stands, how it is switched, when it opens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.engine import walk
from numgrad.codegen import cpython
from numgrad.codegen.cpython import offsets
from numgrad.core.op import OPS
from numgrad.tensors import recorder
from tests.python_paths import machine_code

ROOM = Path(cpython.__file__).parent
PACKAGE = Path(ng.__file__).parent
READING = {
    "offsets": r"__basicsize__|\blayout\.(?:HEAD|TYPE|DATA|RANK|LENGTHS|STRIDES|DTYPE|FLAGS"
    r"|ITEMSIZE|SCALAR|ORDER|LIST_ITEMS|BYTES|SIZE|TUPLE|FIELDS|slots)\b",
    "memory of objects": r"\bstring_at\(|\bfrom_address\(|ctypes\.memmove",
    "reference counts": r"getrefcount|Py_IncRef|Py_DecRef|ob_refcnt",
    "Python's C functions": r"pythonapi|py_object|PyCFunction|PyCapsule|\bPy(?:List|Dict|Long)_",
    "objects as numbers": r"cpython\.objects|struct\.pack\([^)]*\bid\(|np\.array\([^)]*\bid\b",
}
"""Words by which code is known that reads objects as C does."""
ELSEWHERE = {
    ("codegen/native/machine.py", "memory of objects"): "of LLVM's buffers",
    ("codegen/native/kernel.py", "memory of objects"): "of a text in machine code",
    ("codegen/c_library.py", "memory of objects"): "of an image of machine code",
    ("codegen/memory.py", "memory of objects"): "of counts in machine code",
    ("codegen/native/machine.py", "offsets"): "the head of objects is part of the cache's key",
}


@pytest.mark.parametrize("kind", READING)
def test_objects_are_read_in_one_room(kind):
    places = {
        (str(file.relative_to(PACKAGE)), kind)
        for file in PACKAGE.rglob("*.py")
        if ROOM not in file.parents and re.search(READING[kind], file.read_text())
    }
    assert places <= ELSEWHERE.keys()
    inside = [f for f in ROOM.glob("*.py") if re.search(READING[kind], f.read_text())]
    assert inside, "the words are out of date"


def test_the_door_says_which_versions_are_known():
    first, last = ("{}.{}".format(*version) for version in (offsets.KNOWN[0], offsets.KNOWN[-1]))
    text = cpython.__doc__
    assert f"CPython {first} to {last}" in text
    for word in ("NUMGRAD_MACHINE_CODE=0", "ng.config.machine_code = False", "SlowEntry"):
        assert word in text


@pytest.fixture
def switch(monkeypatch):
    if offsets.unknown():
        pytest.skip(offsets.unknown())
    if not ng.config.machine_code:
        pytest.skip("kernels were loaded without machine code")
    machine_code()
    assert walk._advance is not None
    monkeypatch.setattr(ng.config, "machine_code", True)  # and back
    return lambda on: setattr(ng.config, "machine_code", on)


def functions_called(run):
    names = set()
    sys.setprofile(lambda frame, event, argument: names.add(frame.f_code.co_name))
    try:
        run()
    finally:
        sys.setprofile(None)
    return names


def test_the_setting_takes_effect_at_once(switch):
    x = ng.tensor([0.5, 2.0], requires_grad=True)
    gradients = []

    def run():
        x.grad = None
        ng.sum(ng.exp(x) * x).backward()
        gradients.append(x.grad.numpy().copy())

    for on in (True, False, True):
        switch(on)
        run()
        run()  # with records
        assert ("entry" in functions_called(run)) is not on
        assert (walk._advance is not None) is on
        assert bool(offsets.obstacle()) is not on
    values = np.array([0.5, 2.0])
    for gradient in gradients:
        np.testing.assert_array_equal(gradient, gradients[0])
    np.testing.assert_allclose(gradients[0], np.exp(values) * (1 + values), rtol=1e-14)


def test_kernels_that_are_loaded_meanwhile_have_an_entry_in_python(switch):
    from numgrad.codegen.compile import compile_kernel

    source = "def kernel(a, b):\n    b[0] = a[0] + 41.0\n"
    types = []
    for number, on in enumerate((True, False)):
        switch(on)
        named = source.replace("41.0", f"41.0 + {number}.0")
        entry = compile_kernel("switched", named, "void(float64[::1], float64[::1])").entry
        result = np.zeros(1)
        entry(np.ones(1), result)
        assert result[0] == 42.0 + number
        types.append(type(entry).__name__)
    assert types == ["builtin_function_or_method", "SlowEntry"]


def test_watchers_and_the_setting_do_not_undo_each_other(switch):
    recorder.stand_aside(True)
    switch(False)
    recorder.stand_aside(False)
    assert recorder.is_watched()
    switch(True)
    assert not recorder.is_watched()


FORWARD_ONLY = """
import numpy as np
import numgrad as ng
from numgrad.codegen.cpython import hot_paths
from numgrad.core.op import OPS

a, b = ng.tensor(np.ones(3)), ng.tensor(np.full(3, 2.0))
multiply = OPS["{name}"]
first = type(multiply.entry).__name__
for _ in range(hot_paths.ENOUGH + 5):
    y = {call}
print(first, type(multiply.entry).__name__, bool(hot_paths.waiting), y.tolist())
"""


@pytest.mark.parametrize(
    ("name", "call", "expected"),
    [
        ("multiply", "a * b", "[2.0, 2.0, 2.0]"),
        pytest.param("exp", "ng.exp(a - a)", "[1.0, 1.0, 1.0]", marks=pytest.mark.slow(cases=1)),
        pytest.param("sum", "a.sum()", "3.0", marks=pytest.mark.slow(cases=1)),
    ],
)
def test_a_program_without_gradients_gets_machine_code_too(name, call, expected, tmp_path):
    """Of a known plan, whose calls go through no interpreter; nothing is in the cache."""
    if offsets.unknown():
        pytest.skip(offsets.unknown())
    environment = {k: v for k, v in os.environ.items() if k != "NUMGRAD_MACHINE_CODE"}
    done = subprocess.run(
        [sys.executable, "-c", FORWARD_ONLY.format(name=name, call=call)],
        env={**environment, "NUMGRAD_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kinds = "function builtin_function_or_method False"
    assert done.stdout.strip() == f"{kinds} {expected}"


def test_operations_that_machine_code_does_are_in_the_table(switch):
    assert type(OPS["multiply"].entry).__name__ == "builtin_function_or_method"
