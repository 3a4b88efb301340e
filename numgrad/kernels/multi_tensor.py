"""One kernel that applies an update formula to every element of many tensors.

Note [Tensors laid end to end]
------------------------------
The elements of all tensors form one range, which is cut into tasks of equal length; ``starts`` says
where each tensor begins in it. A task walks over the tensors its part of the range touches, so
that a hundred small tensors and a few huge ones both spread evenly over threads. Every element is
computed alone: results are the same for any number of threads.

Note [Uniform values]
---------------------
What is the same for all elements of a tensor (hyper-parameters, step counts and what is computed
from them) is computed once per tensor, in double precision, and meets the elements as a Python
number would: it takes their dtype.

Note [Sums of squares]
----------------------
The elements are cut into tasks as in Note [Tensors laid end to end] of ``multi_tensor``. Where a
task begins and ends depends on the number of elements alone, each has a sum of its own, with eight
partial sums that fill SIMD lanes, and these are added in order: the result is the same bit by bit
for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.cpython.addresses import addresses, copied_addresses
from numgrad.codegen.dtypes import BOOL, FLOAT64, type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.symbols import Reader, Symbol, in_order
from numgrad.codegen.threads import serial_ns

TASK = 4096
"""Elements a task handles at least."""
MAX_TASKS = 1024


# ------------------------------------------------------------------------------------ reading


class UniformReader(Reader):
    """Reads formulas over elements and uniform values: Note [Uniform values]."""

    def uniform(self, name: str) -> Symbol:
        """A uniform value of that name."""
        return self._wrap(self.make("input", (), FLOAT64, name))

    def _wrap(self, inner: Symbol) -> Symbol:
        return self.make("uniform", (inner,), BOOL if inner.dtype == BOOL else float)

    def ufunc(self, ufunc: np.ufunc, *inputs: Any) -> Symbol:
        symbols = [self.lift(x) for x in inputs]
        if _all_uniform(symbols):
            return self._wrap(super().ufunc(ufunc, *map(_inner, symbols)))
        return super().ufunc(ufunc, *symbols)

    def where(self, condition: Any, a: Any, b: Any) -> Symbol:
        symbols = [self.lift(v) for v in (condition, a, b)]
        if _all_uniform(symbols):
            return self._wrap(super().where(*map(_inner, symbols)))
        return super().where(*symbols)


def _all_uniform(symbols: Sequence[Symbol]) -> bool:
    ops = {symbol.op for symbol in symbols}
    return "uniform" in ops and ops <= {"uniform", "const"}


def _inner(symbol: Symbol) -> Symbol:
    return symbol.args[0] if symbol.op == "uniform" else symbol


# ----------------------------------------------------------------------------------- template


@dataclass(frozen=True)
class UpdateKernel:
    """The source of an update, compiled as needed.

    The entry points take pointers, starts, and each hyper-parameter as a float; ``pointers[r, t]``
    is the address of array ``r`` of tensor ``t``: elements first, then uniform values. ``cost_ns``
    is what the arithmetic of one element takes, and ``moved`` how many bytes it reads and writes.
    """

    name: str
    source: str
    signature: str
    externals: frozenset[str]
    cost_ns: float
    moved: int

    def work_ns(self, count: int) -> float:
        """About what ``count`` elements take in one thread."""
        return serial_ns(count * self.cost_ns, count * self.moved)

    @cache  # noqa: B019 (kernels live as long as the process)
    def entry(self, parallel: bool = False, nogil: bool = False) -> Callable[..., Any]:
        """The compiled variant."""
        return compile_kernel(
            f"{self.name}{'_p' if parallel else ''}",
            self.source.replace(_TASKS, _TASKS.replace("range", "prange"))
            if parallel
            else self.source,
            self.signature,
            parallel=parallel,
            nogil=nogil,
            externals=self.externals,
        ).entry


_TASKS = "for task in range("


def update_kernel(
    formula: Callable[..., Mapping[str, Any]],
    elements: Sequence[str],
    uniforms: Sequence[str],
    hypers: Sequence[str],
    fixed: Mapping[str, Any],
    dtype: np.dtype,
    shared: bool = False,
) -> UpdateKernel:
    """The loops that apply ``formula``, which maps old values to a dictionary of new ones.

    Parameters
    ----------
    formula
        Called by keyword with a symbol for each of ``elements``, ``uniforms`` and ``hypers``, and
        with ``fixed`` as it is.
    elements, uniforms
        Names of the arrays of a tensor: one value an element; one float64.
    hypers
        Names of the numbers given at each call.
    dtype
        float32 or float64, that of the elements.
    shared
        Whether all tensors have the uniform values of the first, which are then updated once.
    """
    reading = _Reading.of(formula, elements, uniforms, hypers, fixed, dtype)
    emitter = Emitter()
    for name in ("load", "store"):
        emitter.imports[name] = f"numgrad.codegen.intrinsics:{name}"
    emitter.imports["last_start"] = "numgrad.codegen.accumulation:last_start"
    arguments = ["pointers", "starts", *[f"h{k}" for k in range(len(hypers))]]
    lines = [
        f"def kernel({', '.join(arguments)}):",
        *_uniform_part(reading, emitter, shared),
        *_element_part(reading, emitter, shared),
    ]
    signature = ", ".join(["int64[:,::1]", "int64[::1]", *["float64"] * len(hypers)])
    return UpdateKernel(
        f"{formula.__name__}_{dtype.name}{'_shared' if shared else ''}",
        emitter.header() + "\n".join(lines) + "\n",
        f"void({signature})",
        frozenset(emitter.externals),
        emitter.cost_ns,
        (2 * len(elements) - 1) * dtype.itemsize,  # all are read, all but the gradient written
    )


@dataclass(frozen=True)
class _Reading:
    """A formula read on symbols.

    ``entering`` are the uniform values that the loop over elements reads, ``needed`` what must be
    computed for them before it.
    """

    elements: tuple[str, ...]
    uniforms: tuple[str, ...]
    hypers: tuple[str, ...]
    dtype: np.dtype
    arrays: dict[str, Symbol]
    common: dict[str, Symbol]
    outputs: dict[str, Symbol]
    counted: dict[str, Symbol]
    entering: list[Symbol]
    needed: list[Symbol]

    @classmethod
    def of(
        cls,
        formula: Callable[..., Mapping[str, Any]],
        elements: Sequence[str],
        uniforms: Sequence[str],
        hypers: Sequence[str],
        fixed: Mapping[str, Any],
        dtype: np.dtype,
    ) -> _Reading:
        """Call the formula with symbols."""
        reader = UniformReader()
        arrays = {name: reader.input(name, dtype) for name in elements}
        common = {name: reader.uniform(name) for name in (*uniforms, *hypers)}
        results = {
            name: reader.lift(value)
            for name, value in formula(**arrays, **common, **fixed).items()
            if value is not None
        }
        outputs = {
            name: reader.cast(results[name], dtype)
            for name in elements
            if name in results and results[name] is not arrays[name]
        }
        counted = {
            name: _inner(results[name])
            for name in uniforms
            if name in results and results[name] is not common[name]
        }
        entering = [
            s
            for s in in_order(list(outputs.values()), {})
            if (s.op == "cast" and s.args[0].op == "uniform")
            or (s.op == "uniform" and s.dtype == BOOL)
        ]
        needed = [_inner(s.args[0] if s.op == "cast" else s) for s in entering]
        return cls(
            tuple(elements), tuple(uniforms), tuple(hypers), dtype, arrays, common, outputs,
            counted, entering, needed,
        )  # fmt: skip


def _indented(depth: int, *lines: str) -> list[str]:
    return ["    " * depth + line for line in lines]


def _uniform_part(reading: _Reading, emitter: Emitter, shared: bool) -> list[str]:
    """Statements that run once a tensor: a row of ``table``, and new uniform values."""
    needed, counted = reading.needed, reading.counted
    uniforms, first = range(len(reading.uniforms)), len(reading.elements)
    names = {_inner(reading.common[n]): f"u{k}" for k, n in enumerate(reading.uniforms)}
    names |= {_inner(reading.common[n]): f"h{k}" for k, n in enumerate(reading.hypers)}
    before, values = emitter.block([*needed, *counted.values()], names, slow=True)
    emitter.cost_ns = 0.0  # from here on it is that of an element
    started = [f"before{k}" for k in uniforms] + [f"new{k}" for k in range(len(counted))]
    # mostly the same as those of the tensor before, and powers take a while
    known = " and ".join(["t > 0", *[f"u{k} == before{k}" for k in uniforms]])
    row = [f"table[t, {k}] = {value}" for k, value in enumerate(values[: len(needed)])]
    new = [f"new{k} = {value}" for k, value in enumerate(values[len(needed) :])]
    return [
        *_indented(
            1,
            "count = starts.size - 1",
            f"table = np.empty((count, {max(1, len(needed))}))",
            *[f"{name} = 0.0" for name in started],
            f"for t in range({1 if shared else 'count'}):",
        ),
        *_indented(
            2,
            *[
                f"u{k} = load(float64, pointers[{first + k}, t], 0, {k}, {len(uniforms)})"
                for k in uniforms
            ],
            f"if {known}:",
            *[f"    table[t, {k}] = table[t - 1, {k}]" for k in range(len(needed))],
            "    pass",
            "else:",
        ),
        *_indented(3, *before, *row, *new, "pass"),
        *_indented(2, *[f"before{k} = u{k}" for k in uniforms]),
        *_indented(
            2,
            *[
                f"store(new{j}, pointers[{first + k}, t], 0, {k}, {len(uniforms)})"
                for j, k in enumerate(map(reading.uniforms.index, counted))
            ],
            "pass",
        ),
    ]


def _element_part(reading: _Reading, emitter: Emitter, shared: bool) -> list[str]:
    """The loop over tasks, each of which updates elements of one tensor after the other."""
    of, count = type_name(reading.dtype), len(reading.elements)
    outputs = list(reading.outputs.values())
    inside = {reading.arrays[name]: f"x{k}" for k, name in enumerate(reading.elements)}
    inside |= {symbol: f"c{k}" for k, symbol in enumerate(reading.entering)}
    reached = set(in_order(outputs, {}))
    used = [k for k, name in enumerate(reading.elements) if reading.arrays[name] in reached]
    changed = [reading.elements.index(name) for name in reading.outputs]
    loop, stored = emitter.block(outputs, inside)
    row = "0" if shared else "t"
    constants = [
        f"c{k} = table[{row}, {k}] != 0"
        if symbol.dtype == BOOL
        else f"c{k} = {of}(table[{row}, {k}])"
        for k, symbol in enumerate(reading.entering)
    ]
    return [
        *_indented(
            1,
            "total = starts[count]",
            f"length = max({TASK}, -(-total // {MAX_TASKS}))",
            f"{_TASKS}-(-total // length)):",
        ),
        *_indented(
            2,
            "low = task * length",
            "high = min(total, low + length)",
            "t = last_start(starts, low)",
            "while low < high:",
        ),
        *_indented(
            3,
            "end = min(high, starts[t + 1])",
            f"skip = (low - starts[t]) * {reading.dtype.itemsize}",
            *[f"a{k} = pointers[{k}, t] + skip" for k in sorted({*used, *changed})],
            *constants,
            "for j in range(end - low):",
        ),
        *_indented(
            4,
            *[f"x{k} = load({of}, a{k}, j, {k}, {count})" for k in used],
            *loop,
            *[
                f"store({value}, a{k}, j, {k}, {count})"
                for k, value in zip(changed, stored, strict=True)
            ],
            "pass",
        ),
        *_indented(3, "low = end", "t += 1"),
    ]


LANES = 8
_COST_NS = 0.1
"""Nanoseconds an element takes besides reading it, about."""


def sum_of_squares(arrays: Sequence[np.ndarray], dtype: np.dtype, factor: float = 1.0) -> float:
    """The sum of ``(factor * x) ** 2`` over all elements of all arrays, in float64.

    Parameters
    ----------
    arrays
        Of ``dtype``, any shapes and layouts, at least one.
    dtype
        float32, float64, or complex64 or complex128, whose real and imaginary parts are summed.
    factor
        For elements whose squares would leave the range of float64.
    """
    listed = list(arrays)
    call = listed, len(listed), 1, 0, dtype
    table = addresses(*call) or copied_addresses(*call)
    entry = partial(_entry, np.finfo(dtype).dtype)
    run = threads.choose(
        entry,
        partial(entry, parallel=True),
        serial_ns(table.total * _COST_NS, table.total * np.dtype(dtype).itemsize),
        partial(entry, nogil=True),
    )
    return run(table.pointers, table.starts, factor)


@cache
def _entry(dtype: np.dtype, parallel: bool = False, nogil: bool = False) -> Callable[..., float]:
    of = type_name(dtype)
    lanes = range(LANES)
    element = f"float64(load({of}, start, {LANES} * j + {{}}, 0, 1)) * factor"
    lines = [
        "import numpy as np",
        "from numba import float32, float64, prange",
        "from numgrad.codegen.accumulation import last_start",
        "from numgrad.codegen.intrinsics import load",
        "",
        "",
        "def kernel(pointers, starts, factor):",
        "    total = starts[starts.size - 1]",
        f"    length = max({TASK}, -(-total // {MAX_TASKS}))",
        "    partial = np.zeros(-(-total // length))",
        f"    for task in {'prange' if parallel else 'range'}(partial.size):",
        "        low = task * length",
        "        high = min(total, low + length)",
        "        t = last_start(starts, low)",
        "        share = 0.0",
        "        while low < high:",
        "            end = min(high, starts[t + 1])",
        f"            start = pointers[0, t] + (low - starts[t]) * {dtype.itemsize}",
        f"            whole = (end - low) // {LANES}",
        *[f"            s{k} = 0.0" for k in lanes],
        "            for j in range(whole):",
        *[f"                x{k} = {element.format(k)}" for k in lanes],
        *[f"                s{k} += x{k} * x{k}" for k in lanes],
        f"            for j in range({LANES} * whole, end - low):",
        f"                x = float64(load({of}, start, j, 0, 1)) * factor",
        "                s0 += x * x",
        f"            share += {_pairwise([f's{k}' for k in lanes])}",
        "            low = end",
        "            t += 1",
        "        partial[task] = share",
        "    out = 0.0",
        "    for task in range(partial.size):",
        "        out += partial[task]",
        "    return out",
        "",
    ]
    return compile_kernel(
        f"sum_of_squares_{dtype.name}{'_p' if parallel else ''}",
        "\n".join(lines),
        "float64(int64[:,::1], int64[::1], float64)",
        parallel=parallel,
        nogil=nogil,
    ).entry


def _pairwise(terms: list[str]) -> str:
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_pairwise(terms[:half])} + {_pairwise(terms[half:])})"
