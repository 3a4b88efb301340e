"""The user's code is told from that of libraries, wherever these are installed."""

import importlib
import os
import subprocess
import sys
import types
import zipfile

import numpy as np
import pytest

import numgrad as ng
from numgrad import libraries
from numgrad.compiler.trace.side_effects import is_own
from numgrad.libraries import is_pythons, is_users, is_users_module


@pytest.fixture
def forget():
    """What is known of files and folders."""
    known = (is_users, is_pythons, libraries._installed_in)
    for f in known:
        f.cache_clear()
    yield
    for f in known:
        f.cache_clear()


def install(folder, name, text, *, record=None, single=False):
    """What ``pip install --target`` makes of a distribution of one module."""
    file = f"{name}.py" if single else f"{name}/core.py"
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    if not single:
        (folder / name / "__init__.py").write_text("")
    (folder / file).write_text(text)
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    listed = [file] if single else [file, f"{name}/__init__.py"]
    lines = [f"{line},sha256=0,1" for line in (listed if record is None else record)]
    (metadata / "RECORD").write_text("\n".join([*lines, f"{name}-1.0.dist-info/RECORD,,", ""]))
    return str(folder / file)


def test_what_is_installed_into_any_folder_is_a_library(tmp_path, monkeypatch, forget):
    library = install(tmp_path, "numgrad_test_package", "")
    single = install(tmp_path, "numgrad_test_single", "", single=True)
    beside = [tmp_path / "main.py", tmp_path / "numgrad_test_package" / "mine.py"]
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not is_users(library)
    assert not is_users(single)
    for file in beside:
        assert is_users(str(file))


def test_folders_written_otherwise_are_the_same(tmp_path, monkeypatch, forget):
    library = install(tmp_path / "vendor", "numgrad_test_package", "")
    monkeypatch.chdir(tmp_path)
    vendor = str(tmp_path / "vendor")
    for entry in ("vendor", vendor + os.sep, os.path.join("..", tmp_path.name, "vendor")):
        monkeypatch.setattr(sys, "path", [entry, *sys.path])
        is_users.cache_clear()
        assert not is_users(library)
        assert is_users(str(tmp_path / "vendor" / "script.py"))
    monkeypatch.chdir(tmp_path / "vendor")
    monkeypatch.setattr(sys, "path", ["", "/nowhere", *sys.path[3:]])  # of who runs Python there
    is_users.cache_clear()
    assert not is_users(library)
    assert is_users(str(tmp_path / "vendor" / "script.py"))


def test_the_source_of_an_editable_install_is_the_users(tmp_path, monkeypatch, forget):
    record = ["__editable___numgrad_test_package_1_0_finder.py"]
    file = install(tmp_path, "numgrad_test_package", "", record=record)
    (tmp_path / "numgrad_test_package.egg-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert is_users(file)


def test_in_a_zip_file(tmp_path, monkeypatch, forget):
    install(tmp_path / "in", "numgrad_test_package", "x = 1\n")
    (tmp_path / "in" / "numgrad_test_own.py").write_text("x = 2\n")
    archive = tmp_path / "app.pyz"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in (tmp_path / "in").rglob("*"):
            packed.write(file, file.relative_to(tmp_path / "in"))
    monkeypatch.syspath_prepend(str(archive))
    library = importlib.import_module("numgrad_test_package.core")
    own = importlib.import_module("numgrad_test_own")
    try:
        assert library.x + own.x == 3
        assert not is_users(library.__file__)
        assert not is_users_module("numgrad_test_package.core")
        assert is_users(own.__file__)
        assert is_users_module("numgrad_test_own")
    finally:
        for name in ("numgrad_test_package.core", "numgrad_test_package", "numgrad_test_own"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("file", "users"),
    [
        ("/home/me/project/model.py", True),
        ("/home/me/project/.venv/lib/python3.13/site-packages/lib/a.py", False),
        ("/usr/lib/python3/dist-packages/lib/a.py", False),
        (r"C:\Users\me\venv\Lib\site-packages\lib\a.py", False),
        (r"C:\Users\me\project\model.py", True),
        ("/home/me/my-site-packages-notes/a.py", True),
        ("/home/me/project/functools.py", True),
        ("<stdin>", True),
        ("<string>", True),
        ("<ipython-input-3-0a1b2c>", True),
        ("/tmp/ipykernel_7342/1234567.py", True),
        ("<doctest README.md[0]>", True),
        ("<frozen importlib._bootstrap>", False),
        ("<frozen runpy>", False),
        (os.__file__, False),
        (importlib.__file__, False),
        (np.ma.core.__file__, False),
        (pytest.__file__, False),
        (__file__, True),
        (ng.__file__, False),
        (f"{libraries.PACKAGE}<entry>", False),
    ],
)
def test_by_the_place_of_a_file(file, users, forget):
    assert is_users(file) == users


def test_in_frozen_programs_names_tell(monkeypatch, forget):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", "/tmp/_MEI1", raising=False)
    for folder in ("", "/tmp/_MEI1/"):
        for file in ("numpy/ma/core.py", "numgrad/core/op.py", "json/decoder.py", "abc.py"):
            assert not is_users(folder + file)
        assert is_pythons(f"{folder}json/decoder.py")
        assert is_users(f"{folder}app/model.py")
        assert is_users(f"{folder}main.py")
    assert is_users("<frozen main>")


def test_modules(forget, monkeypatch):
    for name in ("numpy", "numpy.ma.core", "json", "builtins", "numgrad.errors", "numpy.nothing"):
        assert not is_users_module(name)
    for name in (__name__, "__main__", "", None, "made_by_a_notebook", "tests"):
        assert is_users_module(name)
    mine = types.ModuleType("test")  # Python has one of this name
    mine.__file__ = "/home/me/project/test/__init__.py"
    monkeypatch.setitem(sys.modules, "test", mine)
    assert is_users_module("test")
    spread = types.ModuleType("spread")
    spread.__path__ = ["/home/me/lib/site-packages/spread"]
    monkeypatch.setitem(sys.modules, "spread", spread)
    assert not is_users_module("spread.part")


class Mine:
    pass


def test_classes():
    assert is_own(Mine)
    assert not is_own(np.ma.MaskedArray)
    assert not is_own(dict)


def test_masked_beside_a_function_can_be_compared():
    """Wherever it is installed: a masked array's methods write to it, but for this one."""
    masked, values = np.ma.masked, np.ma.masked_array([1.0, 2.0, 4.0], [False, True, False])
    x = np.array([1.0, 3.0])
    f = ng.jit(lambda x: x * values.sum() if masked is not None else x)
    np.testing.assert_array_equal(f(x), 5.0 * x)
    values[0] = 3.0
    np.testing.assert_array_equal(f(x), 7.0 * x)
    values.mask = [False, False, False]
    np.testing.assert_array_equal(f(x), 9.0 * x)


PROGRAM = """
import numpy.ma
import numpy as np
import numgrad as ng
import numgrad_test_package.core as library

def loss(x):
    return np.sum(library.scaled(np.sin(x)) * x) if np.ma.masked is not None else x

x = np.array([0.5, -1.25])
print(*ng.jit(ng.grad(loss))(x))
library.FACTOR = 5.0  # of a library, and so a constant
print(*ng.jit(ng.grad(loss))(x), *ng.grad(loss)(x))

WEIGHT = 2.0
f = ng.jit(lambda x: WEIGHT * x)
print(*f(x))
WEIGHT = 3.0
print(*f(x))
try:
    ng.jit(lambda x: library.fails(x))(x)
except ng.NumgradError as error:
    print(error)
"""
LIBRARY = """
FACTOR = 3.0

def scaled(x):
    return FACTOR * x

def fails(x):
    return x if float(x[0]) > 0 else -x
"""


def test_a_program_with_libraries_in_another_folder(tmp_path):
    """``.ci/run`` does the same with NumPy and this package in such a folder."""
    vendor = tmp_path / "vendor"
    install(vendor, "numgrad_test_package", LIBRARY)
    (vendor / "main.py").write_text(PROGRAM)
    root = os.path.dirname(os.path.dirname(ng.__file__))
    found = subprocess.run(
        [sys.executable, vendor / "main.py"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(vendor), root])},
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    x = np.array([0.5, -1.25])
    slope = np.cos(x) * x + np.sin(x)
    lines = found.stdout.splitlines()
    np.testing.assert_allclose(np.fromstring(lines[0], sep=" "), 3 * slope)
    np.testing.assert_allclose(np.fromstring(lines[1], sep=" ")[2:], 5 * slope)
    np.testing.assert_array_equal(np.fromstring(lines[2], sep=" "), 2 * x)
    np.testing.assert_array_equal(np.fromstring(lines[3], sep=" "), 3 * x)
    assert lines[4].startswith(f"{vendor / 'main.py'}:21: ")
