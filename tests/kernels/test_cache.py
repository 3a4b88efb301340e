"""Files of compiled kernels: who may have written them, and which process compiles."""

import errno
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

from numgrad.cli.cache import describe
from numgrad.codegen import cache, compile as jit, locks

ROOT = str(Path(cache.__file__).parents[2])
posix = pytest.mark.skipif(os.name != "posix", reason="modes and owners are those of POSIX")
NAME = "kernel-key.bin"


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """A cache directory with one file in it, in a process that has not judged it yet."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(cache, "_judged", {})
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setattr(cache, "_temporary", None)
    cache.save(NAME, b"payload")
    assert cache.load(NAME) == b"payload"
    return tmp_path / "kernels"


def give_away(path, monkeypatch):
    """Let the path belong to another user."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)


def test_the_content_of_another_kernels_file_is_not_taken(directory):
    cache.save("other-key.bin", b"machine code of another kernel")
    one, other = directory / NAME, directory / "other-key.bin"
    first = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(first)
    assert cache.load(NAME) is None
    assert cache.load("other-key.bin") is None
    cache.save(NAME, b"payload")
    assert cache.load(NAME) == b"payload"


@posix
def test_directories_and_files_are_private_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "a" / "b"))
    before = os.umask(0)
    try:
        path = cache.write("x-y.py", b"")
    finally:
        os.umask(before)
    assert path == tmp_path / "a" / "b" / "x-y.py"
    modes = [p.stat().st_mode & 0o777 for p in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


@posix
@pytest.mark.parametrize("mode", [0o770, 0o720, 0o702, 0o1777])
def test_a_directory_that_others_may_write_to_is_left_alone_until_it_is_repaired(directory, mode):
    directory.chmod(mode)
    with pytest.warns(RuntimeWarning, match=rf"not used: other users.* chmod go-w '{directory}'"):
        assert cache.load(NAME) is None
    assert cache.load(NAME) is None  # said once
    kept = cache.write("other-key.py", b"")
    assert kept is not None
    assert kept.parent == cache._temporary
    assert f"not used: other users may write to it (mode {mode:04o})" in describe(cache.info())
    directory.chmod(0o755)
    assert cache.load(NAME) == b"payload"


@posix
@pytest.mark.parametrize("mode", [0o660, 0o602])
def test_a_file_that_others_may_write_to_is_not_read_but_replaced(directory, mode):
    (directory / NAME).chmod(mode)
    with pytest.warns(RuntimeWarning, match=rf"chmod go-w '{directory / NAME}'"):
        assert cache.load(NAME) is None
    assert cache.load(NAME) is None
    cache.save(NAME, b"new")
    assert cache.load(NAME) == b"new"


@posix
@pytest.mark.parametrize("name", [".", NAME])
def test_what_belongs_to_another_user_is_not_read(directory, name, monkeypatch):
    give_away(directory / name, monkeypatch)
    with pytest.warns(RuntimeWarning, match=r"it belongs to another user .* NUMGRAD_CACHE_DIR"):
        assert cache.load(NAME) is None


@posix
def test_what_belongs_to_root_is_read(directory, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("needs to be root to make such files")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert cache.load(NAME) == b"payload"


@posix
def test_a_directory_that_everybody_may_exchange_is_left_alone(directory, tmp_path):
    tmp_path.chmod(0o777)
    cache._judged.clear()
    with pytest.warns(RuntimeWarning, match=rf"everybody may rename .* chmod o-w '{tmp_path}'"):
        assert cache.load(NAME) is None
    tmp_path.chmod(0o1777)
    cache._judged.clear()
    assert cache.load(NAME) == b"payload"


@posix
def test_a_link_is_judged_by_where_it_leads_and_where_it_is(directory, tmp_path, monkeypatch):
    place = tmp_path / "place"
    place.mkdir(0o755)
    (place / "link").symlink_to(directory)
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(place / "link"))
    assert cache.load(NAME) == b"payload"
    cache._judged.clear()
    place.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="everybody may rename"):
        assert cache.load(NAME) is None
    place.chmod(0o755)
    directory.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="other users"):
        assert cache.load(NAME) is None


class Planted:
    def __reduce__(self):
        return os.mkdir, (os.environ["NUMGRAD_TEST_PLANTED"],)


@posix
def test_a_planted_kernel_is_compiled_and_never_unpickled(directory, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMGRAD_TEST_PLANTED", str(tmp_path / "was unpickled"))
    source, signature = "def kernel(x):\n    x[0] = 5.0\n", "void(float64[::1])"
    jit.compile_kernel("five", source, signature)
    (entry,) = directory.glob("five-*.bin")
    cache.save(entry.name, pickle.dumps(Planted()))
    entry.chmod(0o666)
    monkeypatch.setattr(jit, "_loaded", {})
    with pytest.warns(RuntimeWarning, match="other users may write"):
        kernel = jit.compile_kernel("five", source, signature)
    assert not kernel.from_cache
    assert not (tmp_path / "was unpickled").exists()
    monkeypatch.setattr(jit, "_loaded", {})
    assert jit.compile_kernel("five", source, signature).from_cache  # was replaced


def test_a_temporary_directory_that_is_gone_is_not_made_again(directory, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(directory / NAME / "under a file"))
    monkeypatch.setattr(cache, "_temporary", tmp_path / "gone")
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        assert cache.write("x-y.py", b"") is None
    assert cache.load(NAME) is None


# ----------------------------------------------------------------------------- one compiles

HOLD = """
import fcntl, os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds all locks of the file ``lock``."""
    pytest.importorskip("fcntl")
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path, holder, monkeypatch):
    monkeypatch.setattr(locks, "FILE_PATIENCE", 600.0)
    holder.kill()
    holder.wait()
    began = time.monotonic()
    with locks.held(tmp_path / "lock", "a"):
        assert time.monotonic() - began < locks.FILE_PATIENCE / 2


def test_a_lock_is_not_waited_for_for_ever_and_waiting_can_be_interrupted(
    tmp_path, holder, monkeypatch
):
    def interrupted(seconds):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", interrupted)
        with pytest.raises(KeyboardInterrupt), locks.held(tmp_path / "lock", "a"):
            pass
    monkeypatch.setattr(locks, "FILE_PATIENCE", 0.01)
    with locks.held(tmp_path / "lock", "a"):
        assert holder.poll() is None


def test_without_locks_everybody_goes_on(tmp_path, monkeypatch):
    def unsupported(*arguments):
        raise OSError(errno.ENOLCK, "no locks here")

    pytest.importorskip("fcntl")
    monkeypatch.setattr(locks.fcntl, "lockf", unsupported)
    entered = []
    for path in (tmp_path / "lock", tmp_path / "missing" / "lock", None):
        with locks.held(path, "a"):
            entered.append(path)
    assert len(entered) == 3


PROGRAM = """
import numpy as np, numgrad as ng
from numgrad.codegen import compile as jit
x = ng.tensor(np.linspace(0.1, 1, 5), requires_grad=True)
ng.sum(ng.cbrt(x)).backward()
kernels = jit._loaded.values()
print((x.grad.tolist(), len(kernels), sum(not kernel.from_cache for kernel in kernels)))
"""


@pytest.mark.slow(cases=0)
def test_of_processes_that_start_at_once_one_compiles_a_kernel(tmp_path):
    env = {**os.environ, "PYTHONPATH": ROOT, "NUMGRAD_CACHE_DIR": str(tmp_path / "kernels")}
    command = [sys.executable, "-c", PROGRAM]
    processes = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE) for _ in range(3)]
    found = [eval(process.communicate(timeout=120)[0]) for process in processes]
    expected = [(k / 40 * 9 + 0.1) ** (-2 / 3) / 3 for k in range(5)]
    for gradient, _, _ in found:
        assert gradient == pytest.approx(expected, rel=1e-14)
    (count,) = {count for _, count, _ in found}
    assert sum(compiled for _, _, compiled in found) == count


def test_a_directory_that_cannot_be_made_is_named_once(directory, tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("in the way of a directory")
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(blocked / "cache"))
    with pytest.warns(RuntimeWarning, match=r"cannot be kept in .*cache .*NUMGRAD_CACHE_DIR"):
        first = cache.write("kernel.bin", b"code")
    assert first is not None
    assert first.read_bytes() == b"code"  # in a directory of this process
    assert cache.write("another.bin", b"code") is not None  # without a further warning
