"""Versions of Python that machine code does not know: the same results, and a reason is told."""

import os
import platform
import re
import subprocess
import sys

import numpy as np
import pytest

import numgrad as ng
from numgrad.cli import doctor
from numgrad.codegen.cpython import offsets

FREE_THREADING = re.sub(r"(\S+) \(", r"\1 free-threading build (", sys.version)


@pytest.fixture
def forget():
    offsets.unknown.cache_clear()
    yield
    offsets.unknown.cache_clear()


def test_this_python_is_known(forget, monkeypatch):
    monkeypatch.setattr(ng.config, "machine_code", True)
    assert offsets.obstacle() == ""
    assert doctor._calls("") == "handled in machine code"


@pytest.mark.parametrize(
    ("on", "name", "value", "told"),
    [
        (offsets, "KNOWN", ((2, 6), (2, 7)), "is none of the known ones, 2.6 to 2.7"),
        (sys, "version", FREE_THREADING, "without the global lock"),
        (sys, "version", FREE_THREADING.replace("free", "experimental free"), "the global lock"),
        (offsets, "TUPLE", offsets.TUPLE - 8, "keep their objects in another way"),
        (offsets, "DATA", offsets.DATA + 8, "keep their objects in another way"),
    ],
    ids=["version", "free-threaded", "free-threaded 3.13", "tuples", "arrays"],
)
def test_what_is_not_known_is_told(forget, monkeypatch, on, name, value, told):
    monkeypatch.setattr(ng.config, "machine_code", True)
    monkeypatch.setattr(platform, "python_version", lambda: "3.14.0")  # it reads sys.version
    monkeypatch.setattr(on, name, value)
    assert told in offsets.obstacle()
    assert not offsets.is_readable()
    report = doctor._text(doctor.examine())
    (line,) = [line for line in report.splitlines() if line.startswith("calls")]
    assert told in line


def test_it_can_be_chosen(forget, monkeypatch):
    monkeypatch.setattr(ng.config, "machine_code", False)
    assert "NUMGRAD_MACHINE_CODE=0" in offsets.obstacle()
    assert offsets.unknown() == ""
    with pytest.raises(TypeError, match="machine_code is True or False"):
        ng.config.machine_code = "no"
    assert ng.config.machine_code is False


PROGRAM = """
import numpy as np
import numgrad as ng

rng = np.random.default_rng(0)
w = ng.tensor(rng.normal(size=(3, 4)), requires_grad=True)
b = ng.tensor(rng.normal(size=3), requires_grad=True)
x = rng.normal(size=(5, 4))
optimizer = ng.optim.Adam([w, b], lr=1e-2)
for step in range(60):
    optimizer.zero_grad()
    loss = ((np.tanh(x @ w.T + b) * np.exp(-b) + np.sin(2.0 * b)) ** 2).sum()
    loss.backward()
    optimizer.step()
f = ng.jit(ng.value_and_grad(lambda b: np.sum(np.sort(b) * b[::-1])))
parts = [loss, w, b, w.grad, *f(b.detach().numpy())]
print(*[np.asarray(ng.asarray(p).detach()).tobytes().hex() for p in parts])
"""
BEFORE = {
    "known": "",
    "unknown": "from numgrad.codegen.cpython import offsets; offsets.KNOWN = ((2, 7),)\n",
    "switched off": "import numgrad; numgrad.config.machine_code = False\n",
    "free-threaded": "import numgrad, sys; sys.version += ' free-threading build'\n",
}
AFTER = """
from numgrad.autograd.engine import walk
from numgrad.codegen.cpython.offsets import is_readable
from numgrad.tensors import recorder
from numgrad.core.op import OPS
x = np.ones(3)
kernel = OPS["multiply"].plan((x, x)).entry
print(is_readable(), type(kernel).__name__, walk._advance is not None, recorder.RECORDER.in_use)
"""


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("other", ["switched off", "unknown", "free-threaded"])
def test_the_results_are_the_same(other):
    """Bit by bit, those of Python alone and those of machine code."""
    printed = {}
    for name in ("known", other):
        found = subprocess.run(
            [sys.executable, "-c", BEFORE[name] + PROGRAM + AFTER],
            env={k: v for k, v in os.environ.items() if k != "NUMGRAD_MACHINE_CODE"},
            capture_output=True, text=True,
        )  # fmt: skip
        assert found.returncode == 0, found.stderr
        printed[name] = found.stdout.splitlines()
    assert {name: lines[1] for name, lines in printed.items()} == {
        "known": "True builtin_function_or_method True True",
        other: "False SlowEntry False False",
    }
    assert len({lines[0] for lines in printed.values()}) == 1
    numbers = [np.frombuffer(bytes.fromhex(text)) for text in printed["known"][0].split()]
    b = numbers[2]
    np.testing.assert_allclose(numbers[4], np.sum(np.sort(b) * b[::-1]))
    assert np.all(np.isfinite(np.concatenate(numbers)))
    assert ng.tensor(numbers[1]).shape == (12,)
