"""The generated stubs: fresh, complete, and what a type checker makes of a user's program."""

import ast
import functools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import numgrad as ng
from numgrad.autograd import variable
from numgrad.cli import main, stubs
from numgrad.core.op import OPS
from numgrad.tensors.tensor import Tensor

PACKAGE = Path(ng.__file__).parent

PROGRAM = """
import numpy as np
import numgrad as ng

x = ng.tensor([1.0, 2.0], requires_grad=True)
X = np.ones((3, 2))
reveal_type(ng.exp(x))
reveal_type(x + 1)
reveal_type(2.0 / x)
reveal_type(x * np.ones(2))
reveal_type(-x @ x)
reveal_type(x > 0)
reveal_type(x[0])
reveal_type(x.sum(axis=0, keepdims=True))
reveal_type(x.reshape(2, 1).T)
reveal_type(ng.stack([x, x]))
reveal_type(x.shape)
reveal_type(x.dtype)
reveal_type(x.grad)
reveal_type(x.item())
reveal_type(ng.split(x, 2))
reveal_type(ng.ops["tanh"].asm())
np.sum(np.exp(x) * np.sin(x)).backward()
np.mean((X @ x - 1.0) ** 2).backward()
ng.mean(ng.square(X @ x)).backward()
value, gradient = ng.value_and_grad(lambda w: np.sum(w**2))(np.ones(2))
for row in x:
    print(float(row), row.requires_grad)


@ng.elementwise()
def bell(x):
    return np.exp(-(x * x))


bell.vjp(x=lambda g, x, y: -2 * g * x * y)
"""
REVEALED = [
    *["Tensor"] * 10,
    "tuple[int, ...]",
    "dtype[Any]",
    "Tensor | None",
    "Any",
    "tuple[Tensor, ...]",
    "str",
]


def names(path):
    """The names a stub defines or re-exports, by class."""
    found = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef):
            own = found.setdefault(getattr(node, "name", ""), set())
            for child in node.body:
                if isinstance(child, ast.FunctionDef | ast.ClassDef):
                    own.add(child.name)
                elif isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
                    own.add(child.target.id)
                elif isinstance(child, ast.ImportFrom):
                    own.update(alias.asname for alias in child.names if alias.asname)
    return found


def test_stubs_are_fresh():
    check = [sys.executable, "-m", "numgrad", "stubs", "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_command_writes_and_notices_stale_stubs(tmp_path, monkeypatch, capsys):
    shutil.copy(PACKAGE / "__init__.py", tmp_path)
    (tmp_path / "autograd").mkdir()
    monkeypatch.setattr(stubs, "PACKAGE", tmp_path)
    for name in ("namespace_stub", "tensor_stub"):  # texts are made once
        monkeypatch.setattr(stubs, name, functools.cache(getattr(stubs, name)))
    assert main(["stubs", "--check"]) == 1
    assert "python -m numgrad stubs" in capsys.readouterr().err
    assert not (tmp_path / "__init__.pyi").exists()
    assert main(["stubs"]) == 0
    assert main(["stubs", "--check"]) == 0
    (tmp_path / "autograd" / "variable.pyi").write_text("class Tensor: ...\n")
    assert main(["stubs", "--check"]) == 1


def test_every_public_name_is_in_a_stub():
    functions = names(PACKAGE / "__init__.pyi")[""]
    assert set(ng.__all__) - functions == set()
    users = {name for name, op in OPS.items() if not op.function.__module__.startswith("numgrad.")}

    users |= {f"{name}_" for name in users}  # in-place forms

    members = names(PACKAGE / "autograd" / "variable.pyi")
    tensor = {name for name in vars(Tensor) if not name.startswith("_")}
    assert tensor - members["Tensor"] - users == set()
    assert {"Extra", "Parameter", "TENSORS", "extra", "refresh", "root"} <= members[""] & set(
        vars(variable)
    )
    assert {"hooks", "retains_grad", "tangents"} <= members["Extra"]
    assert set(Tensor.__slots__) - {"__weakref__"} <= members["Tensor"]


@pytest.mark.slow(cases=0)
def test_pyright_accepts_a_users_program(tmp_path):
    if shutil.which("pyright", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("pyright is not installed")
    (tmp_path / "program.py").write_text(PROGRAM)
    settings = {"extraPaths": [str(PACKAGE.parent)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(
        [*command, "-p", str(tmp_path)], capture_output=True, text=True, check=False, timeout=300
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = [d for d in found if d["severity"] == "error"]
    assert not errors
    revealed = [d["message"].split(' is "')[1].rstrip('"') for d in found]
    assert revealed == REVEALED
