"""Programs in C, C++, Fortran and Rust that call exported functions, where a compiler is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

import numgrad as ng

PROGRAMS = Path(__file__).parent / "programs"
TABLE = np.linspace(-1.0, 1.0, 36).reshape(6, 6)
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
UNIX = pytest.mark.skipif(sys.platform == "win32", reason="commands are those of Unix")
pytestmark = UNIX


@ng.jit
def value_and_slope(x: Any, k: float) -> Any:
    def value(x: Any) -> Any:
        return np.sum(np.exp(-k * x * x)) + np.sum(np.tanh(np.outer(x, x) @ np.outer(x, x)))

    return ng.value_and_grad(value)(x)


@ng.jit
def ordered_sum(x: Any) -> Any:
    return ng.scan(lambda c, x: (0.5 * c + x, None), 0.0, np.sort(np.sin(x)))[0]


@ng.jit
def cost_and_slope(torques: Any, state: Any) -> Any:
    """Cost of the next 20 torques of a pendulum, and its gradient."""

    def cost(torques: Any) -> Any:
        angle, speed, total = state[0], state[1], 0.0
        for torque in torques:
            speed = speed + 0.05 * (9.81 * np.sin(angle) + torque)
            angle = angle + 0.05 * speed
            total = total + angle**2 + 0.1 * speed**2 + 1e-3 * torque**2
        return total

    return ng.value_and_grad(cost)(torques)


X = 0.25 * np.arange(6) - 0.5
CPU = "x86-64-v3" if binding.get_host_cpu_features().get("avx2") else "native"
"""Valgrind knows no instructions of AVX-512."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the library ``model``."""
    folder = tmp_path_factory.mktemp("model")
    functions = {
        "value_and_slope": value_and_slope.native(X, 0.5),
        "ordered_sum": ordered_sum.native(X),
    }
    ng.export(functions, folder / "model", cpu=CPU)
    return folder


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    value, slope = value_and_slope(X, 0.5)
    return np.array([value, *slope, ordered_sum(X)])


def run(*command: Any, folder: Path) -> str:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def need(program: str) -> str:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return program


def check(printed: str, expected: np.ndarray) -> None:
    np.testing.assert_allclose([float(x) for x in printed.split()], expected, rtol=1e-13)


LINKED = [
    pytest.param("calls.c", ["gcc", "-std=c99", *WARNINGS, "-I.", "-pthread"], id="C"),
    pytest.param("calls.cpp", ["g++", "-std=c++17", *WARNINGS, "-I."], id="C++"),
    pytest.param("calls.f90", ["gfortran", "-Wall"], id="Fortran"),
    pytest.param("calls.c", ["clang", "-std=c99", *WARNINGS, "-I.", "-pthread"], id="C, clang"),
    pytest.param("calls.cpp", ["clang++", "-std=c++17", *WARNINGS, "-I."], id="C++, clang"),
]


@pytest.mark.slow
@pytest.mark.parametrize("library", [False, True], ids=["object", "library"])
@pytest.mark.parametrize(("source", "command"), LINKED)
def test_linked_programs(
    source: str, command: list[str], library: bool, model: Path, expected: Any
) -> None:
    need(command[0])
    end = "dylib" if sys.platform == "darwin" else "so"
    code = [f"model.{end}", f"-Wl,-rpath,{model}"] if library else ["model.o"]
    program = f"{Path(source).stem}_{command[0]}_{end if library else 'o'}"
    command = command if command[0] == "gfortran" else [*command, "-DCALLS=250"]
    run(*command, PROGRAMS / source, *code, "-lm", "-o", program, folder=model)
    check(run(f"./{program}", folder=model), expected)


@ng.jit
def layer(p: Any, x: Any) -> Any:
    def value(p: Any) -> Any:
        return np.sum(p["scale"] * np.tanh(p["w"] @ x + p["b"][0]))

    value, slope = ng.value_and_grad(value)(p)
    return {"value": value, "slope": slope}


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("command", [["gcc", "-std=c99"], ["g++", "-xc++", "-std=c++17"]])
def test_structures_of_nested_arguments(command: list[str], tmp_path: Path) -> None:
    p = {"w": np.arange(1.0, 5.0).reshape(2, 2), "scale": 2.0, "b": [np.array([0.5, -0.5])]}
    x = np.array([1.0, -1.0])
    ng.export({"layer": layer.native(p, x)}, tmp_path / "nested")
    flags = [*command, *WARNINGS, "-I.", PROGRAMS / "nested.c", "-xnone", "nested.o", "-lm"]
    run(need(command[0]), *flags[1:], "-o", "nested", folder=tmp_path)
    made = layer(p, x)
    slope = made["slope"]
    expected = [made["value"], slope["scale"], *slope["w"].ravel(), *slope["b"][0]]
    check(run("./nested", folder=tmp_path), np.array(expected))


@pytest.mark.slow(cases=0)
def test_a_model_predictive_controller(tmp_path: Path) -> None:
    examples = np.zeros(20), np.zeros(2)
    ng.export(cost_and_slope, tmp_path / "pendulum", *examples, shapes="fixed")
    run(need("gcc"), "-std=c99", "-O2", *WARNINGS, "-I.", PROGRAMS / "controller.c", "pendulum.o",
        "-lm", "-o", "controller", folder=tmp_path)  # fmt: skip
    angle, speed = map(float, run("./controller", folder=tmp_path).split())
    assert abs(angle) < 1e-2
    assert abs(speed) < 5e-2


@pytest.mark.slow(cases=0)
def test_a_program_in_rust(model: Path, expected: Any) -> None:
    need("rustc")
    end = "dylib" if sys.platform == "darwin" else "so"
    run("rustc", "-O", PROGRAMS / "calls.rs", "-C", f"link-arg=model.{end}",
        "-C", f"link-arg=-Wl,-rpath,{model}", "-o", "calls_rust", folder=model)  # fmt: skip
    check(run("./calls_rust", folder=model), expected)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("code", ["model.o", "model.so"])
def test_memory_is_used_well(code: str, model: Path, expected: Any) -> None:
    need("valgrind")
    flags = [need("gcc"), "-g", "-I.", "-pthread", "-Wl,-rpath,."]
    run(*flags, PROGRAMS / "calls.c", code, "-lm", "-o", "watched", folder=model)
    check(run(
        "valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "./watched", folder=model
    ), expected)  # fmt: skip


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_no_sanitizer_objects(sanitizer: str, model: Path, expected: Any) -> None:
    flags = [need("gcc"), f"-fsanitize={sanitizer}", "-g", "-I.", "-pthread"]
    run(*flags, PROGRAMS / "calls.c", "model.o", "-lm", "-o", "checked", folder=model)
    check(run("./checked", folder=model), expected)


@ng.jit
def bell(x: Any) -> Any:
    return ng.value_and_grad(lambda x: np.sum(np.exp(-x * x) * np.sin(x)))(x)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("code", ["team.o", "team.so"])
@pytest.mark.parametrize("sanitizer", ["", "address,undefined", "thread"])
def test_loops_in_several_threads(code: str, sanitizer: str, tmp_path: Path) -> None:
    x = np.zeros(9)
    functions = {"several": bell.native(x, threads=3), "alone": bell.native(x)}
    ng.export(functions, tmp_path / "team", cpu=CPU)
    flags = [need("gcc"), "-std=c99", "-g", *WARNINGS, "-I.", "-pthread", "-Wl,-rpath,."]
    flags += [f"-fsanitize={sanitizer}"] if sanitizer else []
    counted = ["-DCOUNTED", "-Wl,--wrap=pthread_create"] if code == "team.o" else []
    run(*flags, *counted, PROGRAMS / "team.c", code, "-lm", "-o", "team", folder=tmp_path)
    created = int(run("./team", folder=tmp_path))
    assert not counted or 0 < created <= 6  # two beside the caller, in three calls


@ng.jit
def system_and_slope(x: Any) -> Any:
    return ng.value_and_grad(lambda x: np.sum(np.linalg.solve(np.outer(x, x) + 9 * np.eye(9), x)))(
        x
    )


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("sanitizer", ["", "address,undefined"])
def test_memory_of_the_caller(sanitizer: str, tmp_path: Path) -> None:
    x = 0.3 * np.arange(9) - 1.0
    ng.export(system_and_slope, tmp_path / "workspace", x, shapes="fixed", workspace=True, cpu=CPU)
    flags = [need("gcc"), "-std=c99", "-g", *WARNINGS, "-I.", "-Wl,--wrap=malloc"]
    flags += [f"-fsanitize={sanitizer}"] if sanitizer else []
    run(*flags, PROGRAMS / "workspace.c", "workspace.o", "-lm", "-o", "own", folder=tmp_path)
    check(run("./own", folder=tmp_path), np.array([system_and_slope(x)[0]]))


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("code", ["arm.o", "arm.so"])
def test_code_for_arm_computes_the_same(code: str, tmp_path: Path, expected: Any) -> None:
    compiler, emulator = need("aarch64-linux-gnu-gcc"), need("qemu-aarch64")
    functions = {
        "value_and_slope": value_and_slope.native(X, 0.5),
        "ordered_sum": ordered_sum.native(X),
    }
    ng.export(functions, tmp_path / "arm", cpu="neoverse-n1")
    (tmp_path / "arm.h").rename(tmp_path / "model.h")
    run(compiler, "-std=c99", "-I.", "-Wno-implicit-function-declaration", "-pthread",
        "-DCALLS=10", "-Dmodel_message=arm_message", PROGRAMS / "calls.c", code, "-lm",
        "-Wl,-rpath,.", "-o", "calls", folder=tmp_path)  # fmt: skip
    printed = run(emulator, "-L", "/usr/aarch64-linux-gnu", "./calls", folder=tmp_path)
    check(printed, expected)
