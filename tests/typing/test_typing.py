"""Type checkers on a user's program: it is right, and an error put into it is found."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import numgrad as ng

ROOT = Path(ng.__file__).parent.parent
PROGRAM = Path(__file__).with_name("program.py")
CHECKERS = {
    "mypy": ["--follow-imports=silent", "--warn-unused-ignores", "--cache-dir", "cache"],
    "pyright": ["--pythonpath", sys.executable],
}


@pytest.mark.slow(cases=0)  # .ci/run gives the program to both
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_users_program(checker, tmp_path, monkeypatch):
    if shutil.which(checker, path=str(Path(sys.executable).parent)) is None:
        pytest.skip(f"{checker} is not installed")
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{ROOT.as_posix()}"]}}')
    text = PROGRAM.read_text(encoding="utf-8")
    wrong = text.replace("assert_type(r.success, bool)", "assert_type(r.success, str)")
    assert wrong != text
    for name, program, status in (("right", text, 0), ("wrong", wrong, 1)):
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
        command = [sys.executable, "-m", checker, *CHECKERS[checker], f"{name}.py"]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == status, done.stdout
