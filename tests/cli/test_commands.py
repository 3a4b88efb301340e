"""``python -m numgrad`` and its commands other than the demo."""

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import numgrad as ng
from numgrad.cli import COMMANDS, doctor, main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def kernel_cache(tmp_path, monkeypatch):
    """An empty kernel cache, for new kernels of this process and for child processes."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def run(*arguments):
    """Run ``python -m numgrad`` in a process of its own."""
    command = [sys.executable, "-m", "numgrad", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert all(name in out and module.HELP in out for name, module in COMMANDS.items())


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["cache", "burn"], ["warmup", "--dtype", "x"]])
def test_wrong_usage_is_status_2(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert "usage: python -m numgrad" in capsys.readouterr().err


def test_as_a_module():
    done = run("cache", "--json")
    assert done.returncode == 0, done.stderr
    assert {"path", "entries", "bytes"} <= json.loads(done.stdout).keys()
    assert main(["demo", "--problem", "nope"]) == 2


def test_ctrl_c_ends_a_command_with_the_shells_status(monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("numgrad.cli.cache.run", interrupted)
    assert main(["cache"]) == 130


@pytest.mark.slow(cases=0)
def test_cache_counts_the_kernels_on_disk_and_clears_them(kernel_cache):
    assert json.loads(run("cache", "--json").stdout)["entries"] == 0
    warmed = run("warmup", "--op", "tanh", "--dtype", "float32")
    assert warmed.returncode == 0, warmed.stderr
    assert "compiling 1/1 tanh float32" in warmed.stderr
    info = json.loads(run("cache", "--json").stdout)
    assert info["entries"] > 0
    assert info["bytes"] > 0
    assert info["path"].startswith(str(kernel_cache))
    assert f"{info['entries']} kernel" in run("cache").stdout
    cleared = json.loads(run("cache", "clear", "--json").stdout)
    assert cleared["removed"] == info["entries"]
    assert json.loads(run("cache", "--json").stdout)["entries"] == 0


def test_warmup_compiles_every_dtype_asked_for(capsys):
    assert main(["warmup", "--op", "multiply", "--dtype", "float64", "--dtype", "float32"]) == 0
    out, err = capsys.readouterr()
    assert "kernels for float64, float32 are compiled" in out
    assert err.splitlines() == ["compiling 1/2 multiply float64", "compiling 2/2 multiply float32"]


def test_warmup_of_an_unknown_operation_names_those_near_it(capsys):
    assert main(["warmup", "--op", "tanhh", "--op", "qqq"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("warmup: no operation is named tanhh; there is tanh")
    assert second == "warmup: no operation is named qqq; there is nothing near it"


def test_the_version(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"numgrad {ng.__version__}\n"


def test_doctor_reports_what_numgrad_runs_on(capsys):
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["versions"]["numgrad"] == ng.__version__
    assert report["versions"]["numpy"] == np.__version__
    assert report["cpu"]["name"]
    assert report["cpu"]["simd_bits"] in (0, 128, 256, 512)
    assert report["threads"]["layer"] in ("omp", "tbb", "workqueue")
    assert report["threads"]["threads"] >= 1
    assert isinstance(report["threads"]["safe_for_threads"], bool)
    assert isinstance(report["threads"]["safe_after_fork"], bool)
    assert report["cache"].keys() >= {"path", "entries", "bytes"}
    assert report["blas"]["blas"]["name"]


def test_doctor_in_words(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for word in ("numgrad", "numba", "CPU", "SIMD", "threads", "cache", "BLAS"):
        assert word in out


@pytest.mark.parametrize("safe", [True, False])
def test_doctor_says_whether_threads_and_forks_are_safe(safe, capsys, monkeypatch):
    pool = {"layer": "x", "threads": 3, "safe_for_threads": safe, "safe_after_fork": safe}
    monkeypatch.setattr("numgrad.codegen.threads.describe", lambda: pool)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "3 of layer x" in out
    assert ("at once" in out) == safe
    assert ("take turns" in out) == (not safe)
    assert ("serially" in out) == (not safe)


def test_doctor_tells_the_cpu_that_is_compiled_for(monkeypatch, capsys):
    pool = {"layer": "x", "threads": 3, "safe_for_threads": True, "safe_after_fork": True}
    monkeypatch.setattr("numgrad.codegen.threads.describe", lambda: pool)  # which compiles for it
    monkeypatch.setenv("NUMBA_CPU_NAME", "a-cpu")
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "+sse2,+avx,-fma")
    cpu = doctor.examine()["cpu"]
    assert (cpu["name"], cpu["features"]) == ("a-cpu", ["sse2", "avx"])
    assert main(["doctor"]) == 0
    assert f"a-cpu (this machine has {cpu['host']})" in capsys.readouterr().out


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert ng.__version__ == project["version"]


def test_the_installed_distribution_if_any_has_that_version():
    try:
        installed = importlib.metadata.version("numgrad-jit")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("numgrad-jit is not installed, only importable")
    assert installed == ng.__version__


@pytest.mark.slow(cases=0)
@pytest.mark.skipif(sys.platform == "win32", reason="pipes close differently there")
def test_a_reader_that_leaves_early_gets_no_traceback():
    command = [sys.executable, "-u", "-m", "numgrad", "demo", "--list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait(timeout=300) == 141
    assert error == b""
