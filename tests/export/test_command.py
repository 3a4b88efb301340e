"""The command `python -m numgrad export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.cli import main

MODULE = """
import numpy as np, numgrad as ng

SIZE = 3

def energy(x, k=1.0):
    return np.sum(k * x * x)

slopes = {"energy": ng.jit(energy).native(np.zeros(3), 2.0)}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: Any) -> Path:
    (tmp_path / "exported_energy.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_function_with_examples(module: Path, capsys: Any) -> None:
    given = ["--example", "np.zeros(SIZE)", "--example", "k=2.0", "-o", "out/model"]
    assert main(["export", "exported_energy:energy", *given, "--cpu", "generic"]) == 0
    assert "out/model.h" in capsys.readouterr().out.replace("\\", "/")
    assert ng.load_native(module / "out" / "model")(np.array([1.0, 2.0]), k=3.0) == 15.0


def test_several_functions(module: Path) -> None:
    assert main(["export", "exported_energy:slopes", "--module"]) == 0
    assert (module / "slopes_native.py").exists()
    assert ng.load_native(module / "slopes")["energy"](np.array([1.0, 2.0]), 3.0) == 15.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["exported_energy:power"], "has no attribute 'power'"),
        (["nowhere:energy"], "No module named 'nowhere'"),
        (["exported_energy:energy", "--example", "np.zero(3)"], "has no attribute 'zero'"),
        (["exported_energy:energy", "--example", "1 +"], "invalid syntax"),
    ],
)
def test_what_is_not_there(given: list[str], message: str, module: Path, capsys: Any) -> None:
    assert main(["export", *given]) == 2
    assert message in capsys.readouterr().err
