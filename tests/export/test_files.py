"""Files of compiled functions: `ng.export` and `ng.load_native`."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding
from scipy import integrate, ndimage

import numgrad as ng
from numgrad.codegen import c_library
from numgrad.codegen.c_library import length_of
from numgrad.codegen.native import elf, machine, objects
from numgrad.core.tree import leaves
from tests.compiler.native.test_native import PROGRAMS, RNG, X, Y

HOST = binding.get_host_cpu_features()
LIBRARY = {
    "malloc", "calloc", "free", "madvise", "memcpy", "memmove", "memset", "floor", "ceil",
    "trunc", "rint", "floorf", "ceilf", "truncf", "rintf", "",
}  # fmt: skip
"""Functions of the C library and its mathematics that exported code may call."""
A = RNG.normal(size=(3, 4))


def energy(x: Any, w: Any) -> Any:
    """Elementary functions, sums, a product, an index."""
    return np.sum(np.exp(-x * x) * w) + np.sum(np.sin(30 * x) * np.tanh(A @ x)[0]) + np.sinh(x[0])


EXAMPLES = np.linspace(-1.0, 1.0, 4), np.ones(4)
BY_NAME = {name.replace(" ", "_"): program for name, program in PROGRAMS.items()}
FEW = ["captured", "nesting", "complex"]


@ng.jit
def slopes(x: Any, w: Any) -> Any:
    return ng.value_and_grad(energy)(x, w)


@ng.jit
def scaled(x: Any, k: Any) -> Any:
    return np.sum(x) * k, np.exp(x) * k


SMALL = np.linspace(-1.0, 1.0, 4), 2.0


@pytest.fixture(scope="module")
def gradient() -> Any:
    return slopes.native(*EXAMPLES)


@pytest.fixture(scope="module")
def native() -> Any:
    return scaled.native(*SMALL)


def same(ours: Any, theirs: Any) -> bool:
    return all(
        a is b is None or (type(a) is type(b) and np.array_equal(a, b))
        for a, b in zip(leaves(ours), leaves(theirs), strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("names", [FEW, [n for n in BY_NAME if n not in FEW]])
def test_loaded_functions_have_the_bits_of_jit(names: list[str], tmp_path: Path) -> None:
    compiled = {name: ng.jit(BY_NAME[name][0]) for name in names}
    natives = {name: fast.native(*BY_NAME[name][1]) for name, fast in compiled.items()}
    exported = ng.export(natives, tmp_path / "model")
    assert "library" in exported.files, exported.missing
    loaded = ng.load_native(tmp_path / "model")
    for name, fast in compiled.items():
        arguments = BY_NAME[name][1]
        assert same(loaded[name](*arguments), fast(*arguments)), name


SQUARE = RNG.normal(size=(6, 6)) + 6 * np.eye(6)
KERNELS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "large_product": (lambda a, b: a @ b, (RNG.normal(size=(70, 80)), RNG.normal(size=(80, 66)))),
    "order": (lambda x: (np.sort(x), np.argsort(x)), (X[0],)),
    "spectrum": (lambda x: np.abs(np.fft.rfft(x)), (RNG.normal(size=12),)),
    "system": (lambda a, b: np.linalg.solve(a, b), (SQUARE, RNG.normal(size=6))),
    "factor": (lambda a: np.linalg.cholesky(a @ a.T), (SQUARE,)),
    "loop": (
        ng.value_and_grad(lambda x: ng.scan(lambda c, a: (np.sin(c) * a, c), 1.0, x)[0]),
        (X[0],),
    ),
    "branch": (lambda x: ng.cond(x[0] > 0, lambda x: x.sum(), lambda x: x.prod(), x), (X[0],)),
}


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("cpu", ["native", "generic"])
def test_kernels_go_along(cpu: str, tmp_path: Path) -> None:
    compiled = {name: ng.jit(f) for name, (f, _) in KERNELS.items()}
    natives = {
        name: fast.native(*KERNELS[name][1], shapes="fixed") for name, fast in compiled.items()
    }
    ng.export(natives, tmp_path / "model", cpu=cpu)
    loaded = ng.load_native(tmp_path / "model")
    for name, fast in compiled.items():
        arguments = KERNELS[name][1]
        ours = loaded[name](*arguments)
        if cpu == "native" and name != "large_product":  # which has BLAS in the process
            assert same(ours, natives[name](*arguments))
        for a, b in zip(leaves(ours), leaves(fast(*arguments)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_one_function_is_loaded_by_itself(native: Any, tmp_path: Path) -> None:
    exported = ng.export(native, tmp_path / "model")
    assert {path.name for path in exported.files.values()} == {
        "model.o", "model.h", "model.json", exported.files["library"].name
    }  # fmt: skip
    loaded = ng.load_native(tmp_path / "model")
    assert repr(loaded) == repr(native)
    assert same(loaded(*SMALL), native(*SMALL))
    x = np.arange(7.0)
    assert same(loaded(x, k=0.5), native(x, 0.5))
    with pytest.raises(ng.NumgradTypeError, match="takes x, k, got 1 by position and none by name"):
        loaded(x)
    with pytest.raises(ng.NumgradTypeError, match="of dtype float32"):
        loaded(x.astype(np.float32), 1.0)
    with pytest.raises(ng.NumgradValueError, match="lengths 0 and 1 are examples of their own"):
        loaded(np.ones(1), 1.0)
    with pytest.raises(ng.NumgradTypeError, match="machine code of this process"):
        pickle.dumps(loaded)


def test_it_loads_with_numpy_alone(native: Any, tmp_path: Path) -> None:
    ng.export(native, tmp_path / "model")
    program = (
        "import sys\n"
        "for name in ('llvmlite', 'numba', 'scipy'):\n"
        "    sys.modules[name] = None\n"
        "import numpy as np, numgrad as ng\n"
        f"f = ng.load_native({str(tmp_path / 'model')!r})\n"
        "print(f(np.linspace(-1.0, 1.0, 4), 2.0)[1].sum().hex())\n"
        "rooms = ('tensors', 'operations', 'autograd', 'compiler.api')\n"
        "assert not [room for room in rooms if f'numgrad.{room}' in sys.modules]\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == native(*SMALL)[1].sum().hex()


def test_a_module_that_stands_alone(native: Any, tmp_path: Path) -> None:
    files = ng.export({"f": native}, tmp_path / "model", module=True).files
    program = (
        "import sys\n"
        "sys.modules['numgrad'] = None\n"
        "import numpy as np, model_native as model\n"
        "print(model.f(np.linspace(-1.0, 1.0, 4), 2.0)[1].sum().hex(), model.f)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(native(*SMALL)[1].sum().hex() + " native f, int32_t f(const")
    assert files["module"].name == "model_native.py"


def test_a_library_hides_no_module(native: Any, tmp_path: Path) -> None:
    (tmp_path / "model.py").touch()
    with pytest.raises(ng.NumgradValueError, match="would hide it from import; choose another"):
        ng.export(native, tmp_path / "model")


@pytest.mark.slow(cases=0)
def test_a_function_for_numba(native: Any, tmp_path: Path) -> None:
    ng.export(native, tmp_path / "model")
    value, grown = ng.load_native(tmp_path / "model").njit(*SMALL)
    assert value == native(*SMALL)[0]
    np.testing.assert_array_equal(grown, native(*SMALL)[1])


def test_callbacks_of_loaded_functions(tmp_path: Path) -> None:
    functions = {
        "wave": ng.jit(lambda t, k, c: np.exp(-k * t) * np.sin(t) + np.sum(c)).native(
            0.0, 0.0, np.ones(2)
        ),
        "weighted": ng.jit(lambda w, k: np.sum(w * k)).native(np.zeros(9), np.zeros(9)),
    }
    ng.export(functions, tmp_path / "model")
    loaded = ng.load_native(tmp_path / "model")
    c = np.array([0.5, -0.5, 1.0])
    one = loaded["wave"].low_level_callable("double(double)", 0.5, c)
    expected = integrate.quad(lambda t: np.exp(-0.5 * t) * np.sin(t) + 1.0, 0, 10)[0]
    assert integrate.quad(one, 0, 10)[0] == pytest.approx(expected, rel=1e-12)
    several = loaded["wave"].low_level_callable("double(int, double *)", c)
    assert integrate.quad(several, 0, 10, args=(0.5,))[0] == pytest.approx(expected, rel=1e-12)
    window = "int(double *, intptr_t, double *, void *)"
    call = loaded["weighted"].low_level_callable(window, np.arange(9.0))
    image = RNG.normal(size=(6, 7))
    filtered = ndimage.generic_filter(image, lambda w: np.sum(w * np.arange(9.0)), size=3)
    np.testing.assert_allclose(ndimage.generic_filter(image, call, size=3), filtered)


@pytest.mark.slow
@pytest.mark.parametrize("cpu", ["generic", "native"])
def test_only_functions_of_the_c_library_are_needed(cpu: str, native: Any, tmp_path: Path) -> None:
    product = ng.jit(lambda a, b: a @ b).native(X, Y)
    files = ng.export({"f": native, "g": product}, tmp_path / "model", cpu=cpu).files
    data = files["object"].read_bytes()
    if data[:4] == b"\x7fELF":
        symbols = elf.ElfObject(data).symbols
        assert {s.name for s in symbols if s.is_global and s.section} == {"f", "g"}
        assert {s.name for s in symbols if s.is_global and not s.section} <= LIBRARY


def texts_for(cpu: str, native: Any) -> str:
    target = objects.target_of(cpu)
    with machine.targeting(target):
        texts = native.program.modules("f")
    return objects.assembly(texts, ["f"], target)


@pytest.mark.slow
@pytest.mark.skipif("avx" not in HOST, reason="for CPUs of the kind x86-64")
@pytest.mark.parametrize(
    ("cpu", "absent", "present"),
    [
        ("x86-64-v2", ("%ymm", "%zmm", "vfmadd"), ("%xmm", "blendv")),
        ("x86-64-v3", ("%zmm",), ("%ymm", "vfmadd")),
        ("generic", ("%ymm", "%zmm", "vfmadd", "blendv"), ("%xmm",)),
        ("x86-64-v4", (), ("%zmm", "vfmadd")),
    ],
)
def test_instructions_are_those_of_the_cpu(
    cpu: str, absent: tuple[str, ...], present: tuple[str, ...], gradient: Any, tmp_path: Path
) -> None:
    text = texts_for(cpu, gradient)
    assert not [word for word in absent if word in text]
    assert all(word in text for word in present)
    needs = {"x86-64-v3": "avx2", "x86-64-v4": "avx512vl"}.get(cpu, "sse4.2")
    if not HOST.get(needs):
        pytest.skip(f"this CPU does not run {cpu}")
    ng.export(gradient, tmp_path / "model", cpu=cpu)
    value, slope = ng.load_native(tmp_path / "model")(*EXAMPLES)
    expected = slopes(*EXAMPLES)
    np.testing.assert_allclose(value, expected[0], rtol=1e-14)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-13)


def test_objects_for_other_systems(native: Any, tmp_path: Path) -> None:
    arm = ng.export(native, tmp_path / "arm", cpu="neoverse-n1").files
    for kind, number in (("object", 1), ("library", 3)):
        head = arm[kind].read_bytes()[:20]
        assert head[:4] == b"\x7fELF"
        assert struct.unpack_from("<HH", head, 16) == (number, elf.AARCH64)
    exported = ng.export(native, tmp_path / "apple", cpu="apple-m1")
    magic, kind = struct.unpack_from("<II", exported.files["object"].read_bytes())
    assert (magic, kind) == (0xFEEDFACF, 0x0100000C)  # Mach-O of 64 bits, arm64
    if sys.platform != "darwin":
        assert "library" not in exported.files
        assert "link apple.o there" in repr(exported)
        with pytest.raises(ng.NumgradValueError, match="apple was exported for arm64-apple"):
            ng.load_native(tmp_path / "apple")


def test_an_image_is_copied_to_memory(native: Any, gradient: Any, tmp_path: Path) -> None:
    """As on systems without ELF where no linker is found."""
    names = ["f", "g"]
    texts = [*native.program.modules("f"), *gradient.program.modules("g")]
    target = objects.target_of("native")
    if not target.triple.endswith(("gnu", "musl")):
        target = target._replace(triple=f"{target.triple}-elf")
    image = elf.memory_image(objects.relocatable(texts, names, target), names)
    (tmp_path / "image").write_bytes(image.content)
    functions = {k: v.about | {"name": k} for k, v in zip(names, (native, gradient), strict=True)}
    about = {"library": None, "image": {"file": "image", **image._asdict()}, "name": "model",
             "build": elf.build_id(image.content).hex(), "target": target._asdict(),
             "functions": functions}  # fmt: skip
    loaded = c_library.loaded(about, str(tmp_path))
    x = SMALL[0].copy()
    total, grown = np.empty(1), np.empty(4)
    given = x.ctypes.data, 4, 2.0, total.ctypes.data, grown.ctypes.data
    assert loaded["f"].ctypes(*given) == 0
    assert same((total[0], grown), native(*SMALL))
    value, slope, ones = np.empty(1), np.empty(4), np.ones(4)
    given = x.ctypes.data, ones.ctypes.data, value.ctypes.data, slope.ctypes.data
    assert loaded["g"].ctypes(*given) == 0
    assert same((value[0], slope), gradient(*EXAMPLES))


def test_the_description_says_what_it_was_made_by(native: Any, tmp_path: Path) -> None:
    ng.export({"f": native}, tmp_path / "model", cpu="generic")
    about = json.loads((tmp_path / "model.json").read_text())
    assert about["versions"]["numgrad"] == ng.__version__
    assert about["target"]["name"] == "generic"
    assert about["functions"]["f"]["inputs"][0]["shape"] == ["x_length"]
    (tmp_path / "model.json").write_text(json.dumps(about | {"format": 0}))
    with pytest.raises(ng.NumgradValueError, match="has format 0, this reads 2; export it again"):
        ng.load_native(tmp_path / "model")


def test_what_is_exported_again_is_loaded_again(native: Any, tmp_path: Path) -> None:
    x = np.arange(3.0)
    first = ng.jit(lambda x: x * 2.0).native(x)
    second = ng.jit(lambda k, x: x + k).native(2, x)
    ng.export({"f": first}, tmp_path / "model")
    before = ng.load_native(tmp_path / "model")["f"]
    again = ng.load_native(tmp_path / "model")["f"]
    assert before.address == again.address or sys.platform != "linux"
    ng.export({"f": second}, tmp_path / "model")
    np.testing.assert_array_equal(before(x), x * 2)
    np.testing.assert_array_equal(ng.load_native(tmp_path / "model")["f"](5, x), x + 5)


@pytest.mark.parametrize("change", ["another", "shorter"])
def test_a_library_beside_another_description(change: str, native: Any, tmp_path: Path) -> None:
    library = ng.export(native, tmp_path / "model").files["library"]
    if change == "shorter":
        library.write_bytes(library.read_bytes()[:3000])
    else:
        other = ng.jit(lambda x, k: x + k).native(*SMALL)
        library.write_bytes(ng.export(other, tmp_path / "other").files["library"].read_bytes())
    with pytest.raises(ng.NumgradValueError, match="is not the file that its description was"):
        ng.load_native(tmp_path / "model")


@pytest.mark.skipif(shutil.which("strip") is None, reason="strip is not installed")
def test_a_library_may_be_stripped(native: Any, tmp_path: Path) -> None:
    library = ng.export(native, tmp_path / "model").files["library"]
    subprocess.run(["strip", str(library)], check=True)
    assert same(ng.load_native(tmp_path / "model")(*SMALL), native(*SMALL))


def test_names_that_are_not_of_c(tmp_path: Path) -> None:
    native = ng.jit(lambda p, errno: p["\xe9"] * errno).native({"\xe9": SMALL[0]}, 2.0)
    assert native.declaration.split("(")[1] == (
        "const double *p, int64_t p_length, double errno_2, double *result);"
    )
    assert same(native({"\xe9": SMALL[0]}, 2.0), SMALL[0] * 2.0)


@dataclass
class Point:
    """Two numbers."""

    x: float
    y: float


def test_nestings_and_constants(tmp_path: Path) -> None:
    def moved(p: Any, flag: bool, *more: Any, **named: Any) -> Any:
        total = sum(more) + named["k"]
        return {"p": Point(p.x + total, p.y * 2 if flag else p.y), "n": None, "t": [1.0 * total]}

    given = (Point(1.0, 2.0), True, 3.0, 4.0)
    fast = ng.jit(moved, static_argnames="flag")
    ng.export(fast, tmp_path / "model", *given, k=5.0)
    loaded = ng.load_native(tmp_path / "model")
    expected = {"p": {"x": 13.0, "y": 4.0}, "n": None, "t": [12.0]}
    assert loaded(*given, k=5.0) == expected
    assert loaded({"x": 1.0, "y": 2.0}, *given[1:], k=5.0) == expected
    with pytest.raises(ng.NumgradValueError, match="flag is the constant True of the examples"):
        loaded(given[0], False, 3.0, 4.0, k=5.0)
    with pytest.raises(ng.NumgradTypeError, match="more is nested otherwise"):
        loaded(given[0], True, 3.0, k=5.0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda f, p: ng.export(f, p, cpu="z80"), ng.NumgradValueError, "one of native, generic"),
        (lambda f, p: ng.export(np.sin, p, 1.0), ng.NumgradTypeError, "got a ufunc, expected ng.j"),
        (lambda f, p: ng.export({}, p), ng.NumgradValueError, "got no function"),
        (lambda f, p: ng.export({"int": f}, p), ng.NumgradValueError, "'int' is no name of a fun"),
        (lambda f, p: ng.export({"int64_t": f}, p), ng.NumgradValueError, "is no name of a fun"),
        (lambda f, p: ng.export({"free": f}, p), ng.NumgradValueError, "free is a function of t"),
        (lambda f, p: ng.export({"f": f, "f_x": f}, p), ng.NumgradValueError, "f_x would be"),
        (lambda f, p: ng.export({"model_message": f}, p), ng.NumgradValueError, "name of two th"),
        (lambda f, p: ng.export({"f": f}, p, 1.0), ng.NumgradTypeError, "no examples beside sev"),
        (lambda f, p: ng.export(f, p, 1.0), ng.NumgradTypeError, "has its examples; give none"),
        (
            lambda f, p: ng.export(ng.jit(ng.special.gamma), p, 1.5),
            ng.NumgradNotImplementedError,
            "cannot leave",
        ),
    ],
)
def test_what_is_refused(
    make: Callable[[Any, Path], Any], error: Any, message: str, native: Any, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        make(native, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_lengths_are_expressions() -> None:
    lengths = {"n": 7, "m": 3}
    for text in ("n", "12", "2*n + m - 1", "((n + 1) // (m)) * 2", "-n + 2*((n) % (m))"):
        assert length_of(text, lengths) == eval(text, {}, lengths)
