"""The generated stubs: fresh and complete; what type checkers make of them: tests/typing."""

import ast
import functools
import shutil
import subprocess
import sys
from pathlib import Path

import numgrad as ng
from numgrad.autograd import variable
from numgrad.cli import main, stubs
from numgrad.core.op import OPS
from numgrad.tensors.tensor import Tensor

PACKAGE = Path(ng.__file__).parent


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
