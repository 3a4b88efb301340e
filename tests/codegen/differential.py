"""The same text compiled by Numba and by the native compiler, on arguments that tell them apart."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import numgrad.kernels.vmath.library  # noqa: F401  fills the tables
from numgrad.codegen import accumulation, linker
from numgrad.codegen.device import kernel_dispatcher
from numgrad.codegen.dtypes import type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.intrinsics import HAS_FMA
from numgrad.codegen.library import COMPLEX_LIBRARY, EXTERNALS, LIBRARY, WITH_RARE
from numgrad.codegen.native import kernel
from numgrad.codegen.native.signature import parse
from numgrad.codegen.native.translation import translate
from numgrad.codegen.symbols import Reader

FLOATS = [np.dtype(np.float32), np.dtype(np.float64)]
COMPLEX = [np.dtype(np.complex64), np.dtype(np.complex128)]
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
BOOL = np.dtype(bool)
LENGTHS = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 257)
CANARY = 0x5A


@dataclass(frozen=True)
class Case:
    """A function of one element of each input, as the text of a kernel.

    Attributes
    ----------
    expression
        Of ``x0[j]``, ``x1[j]``, ...
    lines
        Statements before it.
    """

    name: str
    header: str
    lines: tuple[str, ...]
    expression: str
    inputs: tuple[np.dtype, ...]
    output: np.dtype
    externals: tuple[str, ...] = ()

    def source(self, plain: bool = False) -> str:
        """The text of a kernel; ``plain`` has a branch in its loop, which keeps it scalar."""
        parameters = ", ".join(f"x{k}" for k in range(len(self.inputs)))
        body = [*self.lines, f"y[j] = {self.expression}"]
        if plain:
            body = ["if j < n:", *(f"    {line}" for line in body)]
        text = "\n".join(f"        {line}" for line in body)
        head = f"def kernel({parameters}, y):\n    n = y.shape[0]\n    for j in range(n):\n"
        return f"{self.header}\n\n{head}{text}\n"

    @property
    def signature(self) -> str:
        kinds = [f"{type_name(d)}[::1]" for d in (*self.inputs, self.output)]
        return f"void({', '.join(kinds)})"


_numbers = itertools.count()


def numba_form(source: str, signature: str, externals: Sequence[str] = ()) -> Callable[..., None]:
    """What Numba makes of the text of a kernel."""
    for external in externals:
        linker.link(external)
    unique = f"test_{next(_numbers)}"
    return kernel_dispatcher(source, unique, unique, False, False, {}).compile(signature)


def native_form(source: str, signature: str, externals: Sequence[str] = ()) -> Callable[..., None]:
    """What the native compiler makes of it."""
    for external in externals:
        linker.link(external)
    unique = f"test_{next(_numbers)}"
    body = translate(source, parse(signature), has_fma=HAS_FMA)
    payload = kernel.assemble(body, signature, unique, verify=True)
    return kernel.bind(payload, unique, signature).entry


def differences(
    case: Case, function: Callable[..., None], expected: np.ndarray, given: Sequence[np.ndarray]
) -> str:
    """Where a function's results are not ``expected``, bit by bit; "" if nowhere.

    NaN is NaN, whatever its sign and payload.
    """
    for length in (len(expected), *LENGTHS):
        room = np.full((length + 64) * case.output.itemsize, CANARY, np.uint8)
        y = room[: length * case.output.itemsize].view(case.output)
        function(*(x[:length] for x in given), y)
        if (room[length * case.output.itemsize :] != CANARY).any():
            return f"{length} elements: wrote behind the end"
        wrong = np.flatnonzero(~same(y, expected[:length]))
        if wrong.size:
            k = wrong[0]
            arguments = ", ".join(repr(x[k].item()) for x in given)
            return (
                f"{wrong.size} of {length} elements: f({arguments}) is {y[k].item()!r}, "
                f"not {expected[k].item()!r}"
            )
    return ""


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which elements have the same bits; NaN is NaN, whatever its sign and payload."""
    if a.dtype.kind == "c":
        part = f"f{a.itemsize // 2}"
        return same(a.view(part), b.view(part)).reshape(-1, 2).all(axis=1)
    if a.dtype.kind != "f":
        return a.view(f"u{a.itemsize}") == b.view(f"u{a.itemsize}")
    bits = f"u{a.itemsize}"
    return (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))


# --------------------------------------------------------------------------------------- cases


def library_case(module: str, name: str, arity: int, dtype: np.dtype, output: Any = None) -> Case:
    """A call of a function of the kernel library."""
    arguments = ", ".join(f"x{k}[j]" for k in range(arity))
    return Case(
        name,
        f"import numpy as np\nfrom {module} import {name} as {name}",
        (),
        f"{name}({arguments})",
        (dtype,) * arity,
        dtype if output is None else np.dtype(output),
    )


def spelled_case(name: str, formula: Callable[..., Any], *dtypes: np.dtype) -> Case:
    """What the emitter writes for a formula."""
    reader, emitter = Reader(), Emitter()
    inputs = [reader.input(f"x{k}", dtype) for k, dtype in enumerate(dtypes)]
    symbol = formula(*inputs)
    names = {x: f"x{k}[j]" for k, x in enumerate(inputs)}
    lines, (expression,) = emitter.block([symbol], names)
    label = f"{name} of {', '.join(map(str, dtypes))}"
    externals = tuple(emitter.externals)
    return Case(label, emitter.header(), tuple(lines), expression, dtypes, symbol.dtype, externals)


def elementary(real: bool = True) -> list[Case]:
    """Every function of the elementary library, with its rare and slow forms."""
    cases: dict[str, Case] = {}
    calls_of_scipy = 0
    for op, (module, function) in LIBRARY.items() if real else ():
        calls_of_scipy += module.endswith("scipy_functions")
        if module.endswith("scipy_functions") and calls_of_scipy > 4:  # one is like the other
            continue
        for dtype in FLOATS:
            suffix = "f32" if dtype == FLOATS[0] else "f64"
            for form in ("", "_rare", "_slow") if op in WITH_RARE else ("",):
                name = f"{function}{form}_{suffix}"
                found = getattr(importlib.import_module(module), name)
                arity = found.py_func.__code__.co_argcount
                case = library_case(module, name, arity, dtype, BOOL if form == "_rare" else None)
                cases[name] = replace(case, externals=EXTERNALS.get(op, ()))
    for op, module in COMPLEX_LIBRARY.items() if not real else ():
        if module.endswith(("scipy_functions", "zeta", "carlson")):  # of complex128 only
            if op in ("erf", "gamma", "digamma", "xlogy"):  # one is like the other
                name = f"{op}_c128"
                case = library_case(module, name, 1 + (op == "xlogy"), COMPLEX[1], None)
                cases[name] = replace(case, externals=EXTERNALS[name])
            continue
        for dtype in COMPLEX:
            name = f"{op}_{'c64' if dtype == COMPLEX[0] else 'c128'}"
            output = f"f{dtype.itemsize // 2}" if op == "absolute" else None
            arity = getattr(importlib.import_module(module), name).py_func.__code__.co_argcount
            cases[name] = library_case(module, name, arity, dtype, output)
    return list(cases.values())


def steps() -> list[Case]:
    """The steps of reductions, for the dtypes that each is for."""
    dtypes = {
        "add": [*INTEGERS[3:4], *FLOATS, *COMPLEX],
        "multiply": [*INTEGERS[3:4], *FLOATS, *COMPLEX],
        "either": [BOOL],
        "both": [BOOL],
        **dict.fromkeys(("maximum", "minimum", "compensated", "is_nan_float"), FLOATS),
        **dict.fromkeys(("larger_float_first", "smaller_float_first"), FLOATS),
        **dict.fromkeys(("larger", "smaller", "larger_first", "smaller_first"), INTEGERS),
        **dict.fromkeys(("is_nan", "before", "larger_complex", "smaller_complex"), COMPLEX),
        **dict.fromkeys(("larger_complex_first", "smaller_complex_first"), COMPLEX),
    }
    found = []
    for name, kinds in dtypes.items():
        arity = getattr(accumulation, name).py_func.__code__.co_argcount
        decides = name.startswith(("is_", "before")) or name.endswith("_first")
        for dtype in kinds:
            module = accumulation.__name__
            case = library_case(module, name, arity, dtype, BOOL if decides else None)
            found.append(replace(case, name=f"{name} of {dtype}"))
    return found


_EVERY = [BOOL, *INTEGERS, *FLOATS, *COMPLEX]
SPELLED: list[tuple[str, Sequence[np.dtype]]] = [
    ("add subtract multiply divide", [*INTEGERS, *FLOATS, *COMPLEX]),
    ("equal less less_equal logical_and logical_xor isnan isinf isfinite", _EVERY),
    ("maximum minimum", [BOOL, *INTEGERS, *FLOATS]),
    ("negative square absolute", [*INTEGERS, *FLOATS]),
    ("floor ceil trunc rint sqrt signbit copysign reciprocal", FLOATS),
    ("bitwise_and bitwise_xor invert", [BOOL, *INTEGERS]),
    ("left_shift right_shift", INTEGERS),
    ("conjugate", COMPLEX),
]
"""NumPy's functions that the emitter writes itself, and the dtypes for which."""
EXACT: list[tuple[str, Sequence[np.dtype]]] = [
    ("floor_divide remainder fmod power reciprocal sign fmax fmin floor trunc", INTEGERS),
    ("maximum minimum", COMPLEX),
]
"""Those whose results are NumPy's to the bit: Numba's are not for some integers."""


def functions(table: list[tuple[str, Sequence[np.dtype]]]) -> list[Case]:
    """What the emitter writes for NumPy's functions."""
    found = []
    for names, dtypes in table:
        for name in names.split():
            function = getattr(np, name)
            found += [spelled_case(name, function, *[d] * function.nin) for d in dtypes]
    return found


def spelled() -> list[Case]:
    """What the emitter writes for NumPy's functions, for conversions and for ``where``."""
    found = functions(SPELLED)
    for target in _EVERY:
        for source in _EVERY:
            if source != target:

                def convert(x: Any, target: np.dtype = target) -> Any:
                    return x.astype(target)

                found.append(spelled_case(f"to {target}", convert, source))
        found.append(spelled_case("where", np.where, BOOL, target, target))
    return found


# ----------------------------------------------------------------------------------- arguments


@cache
def specials(dtype: np.dtype) -> np.ndarray:
    """Numbers of a dtype near which something changes, both signs."""
    if dtype == BOOL:
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = {info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 8, 10, 100}
        values |= {-v for v in (1, 2, 3, 7, 8, 10, 100)} if dtype.kind == "i" else set()
        return np.array(sorted(values), dtype)
    if dtype.kind == "c":
        few = specials(np.dtype(f"f{dtype.itemsize // 2}"))[::3]
        pairs = np.stack(np.meshgrid(few, few), axis=-1)
        return pairs.reshape(-1).view(dtype)
    info = np.finfo(dtype)
    values = [0.0, 0.25, 0.3, 0.5, 0.75, 0.8203125, 1.0, 1.5, 2.0, 2.5, 3.0, 4.5, 6.0, 7.0, 10.0]
    values += [22.0, 27.3, 39.0, 88.7, 103.9, 127.0, 150.0, 709.7, 745.2, 1023.0, 1075.0]
    values += [np.pi * k / 4 for k in range(1, 9)] + [100 * np.pi, 2.0**17, 2.0**23, 2.0**24]
    values += [2.0**30, 2.0**31, 2.0**52, 2.0**53, 2.0**63, 1e10, 1e22, 1e300, 1e-3, 1e-10]
    values += [1e-300, float(info.max), float(info.tiny), float(info.smallest_subnormal)]
    values += [float(info.tiny) / 8, float(info.eps), 1 + float(info.eps), np.inf, np.nan]
    with np.errstate(over="ignore"):
        positive = np.array(values, dtype)
        around = np.nextafter(positive, dtype.type(0)), np.nextafter(positive, dtype.type(np.inf))
    positive = np.unique(np.concatenate([positive, *around]))
    return np.concatenate([positive, -positive])


@cache
def arguments(dtype: np.dtype, count: int = 4000) -> np.ndarray:
    """Special numbers, then random ones of every size."""
    random = np.random.default_rng(dtype.num)
    if dtype == BOOL:
        return random.integers(0, 2, 300).astype(bool)
    if dtype.kind in "iu":
        every = random.integers(0, 256, count // 8 * dtype.itemsize, np.uint8).view(dtype)
        return np.concatenate([specials(dtype), every, every >> (8 * dtype.itemsize - 6)])
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        parts = arguments(part, count)
        random.shuffle(mixed := parts[: len(parts) // 2 * 2].copy())
        return np.concatenate([specials(dtype), mixed.view(dtype)])
    every = random.integers(0, 256, count // 4 * dtype.itemsize, np.uint8).view(dtype)
    ranges = [random.uniform(-size, size, count // 8) for size in (1, 8, 100, 800, 1e5, 1e10)]
    return np.concatenate([specials(dtype), every, *(r.astype(dtype) for r in ranges)])


def given_to(case: Case) -> list[np.ndarray]:
    """Arguments for which a case's result is defined."""
    given = grid(case.inputs)
    name, source, target = case.name.split()[0], case.inputs[0], case.output
    if name.endswith("_shift"):
        given[1] = (given[1] % (8 * source.itemsize)).astype(source)
    elif name == "power" and source.kind == "i":
        given[1] &= np.iinfo(source).max  # NumPy refuses negative powers
    elif name == "to" and target.kind in "iu" and source.kind in "fc":
        real, info = given[0].real, np.iinfo(target)
        least, most = (np.nextafter(source.type(m).real, 0) for m in (info.min, info.max))
        given[0] = given[0][(real >= least) & (real <= most)]
    return given


def grid(dtypes: Sequence[np.dtype]) -> list[np.ndarray]:
    """Arguments of a function: special ones against each other, random ones side by side."""
    if len(dtypes) == 1:
        return [arguments(dtypes[0])]
    few = [specials(d)[:: 1 if len(dtypes) == 2 and d.kind != "c" else 17] for d in dtypes]
    crossed = [x.ravel() for x in np.meshgrid(*few, indexing="ij")]
    random = np.random.default_rng(len(dtypes))
    beside = [random.permutation(np.resize(arguments(d), 4000)) for d in dtypes]
    return [np.concatenate(both) for both in zip(crossed, beside, strict=True)]
