"""Runs the source of kernels as plain Python, and watches every access to memory.

Compiling a kernel takes seconds, running it here milliseconds: so many programs can be tried. What
machine code would do silently is an error here: reading or writing beyond an array, reading what
nobody wrote, storing another dtype than the array has, accesses that overlap though they are
declared not to (Note [Alias scopes] in ``kernels.intrinsics``). Tasks of parallel loops run in a
random order. Elementary functions are NumPy's and SciPy's, so results differ in the last bits.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import importlib
import operator
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import scipy.special

from numgrad.codegen import tasks
from numgrad.codegen.dtypes import KERNEL_DTYPES, type_name
from numgrad.codegen.library import LIBRARY, REAL_BESIDE
from numgrad.codegen.nests.kernel import Written, for_lengths
from numgrad.codegen.nests.loop import LoopKernel
from numgrad.compiler.graph.graph import Graph
from numgrad.compiler.run.program import KernelProgram, Options
from numgrad.compiler.run.steps import KernelStep
from numgrad.core.op import OPS
from tests.compiler.emulated_calls import library_calls

UNWRITTEN = {
    1: 0xA5,
    2: 0xA5A5,
    4: 0x7FC5A5A5,  # as a float NaN
    8: 0x7FF8A5A5A5A5A5A5,
}
"""What memory holds that nobody wrote, by size of a real number."""


CUTTING = ("lanes", "write", "nest", "kernel", "index_set_splitting", "block_products", "tasks")
"""Modules that cut what is computed into tasks and blocks."""
COMPILING = ("run.specialise", "loops.loop_program", "loops.body")
"""Modules that compile graphs."""


class EmulationError(AssertionError):
    """Something that machine code would have done without a word."""


def emulated(graph: Graph, options: Options | None = None) -> KernelProgram:
    """A program whose kernels run as Python."""
    program = KernelProgram(graph, options or Options())
    names = program._namespace
    kernels = [step for step in program.steps if isinstance(step, KernelStep)]
    for number, step in enumerate(kernels):
        names[f"k{number}"] = functools.partial(run_kernel, step.written, False)
        names[f"launch{number}"] = lambda work, moved, *given, step=step: run_kernel(
            step.written, True, *given
        )
    names["empty"] = unwritten
    return program


@contextlib.contextmanager
def emulating(
    *, task: int = 4096, lanes: int = 128, short: int = 24, unrolled: int = 12, piece: int = 500,
    shortest: int = 3, least: int = 16,
) -> Iterator[None]:  # fmt: skip
    """Let ``ng.jit`` emulate what it compiles, cut into tasks and blocks of these sizes.

    Small ones show with small arrays what otherwise takes large ones.
    """
    sizes = {"TASK": task, "LANES": lanes, "SHORT": short, "MOST_UNROLLED": unrolled}
    sizes |= {"PIECE": piece, "SHORTEST": shortest, "FEWEST_ELEMENTS": shortest**4}
    sizes["LEAST"] = least
    changes = [(_module(name), "compile_graph", emulated) for name in COMPILING]
    changes.append((_module("loops.loop_program").LoopProgram, "entry", _loop_entry))
    for name in CUTTING:
        module = importlib.import_module(f"numgrad.codegen.nests.{name}")
        changes += [(module, key, value) for key, value in sizes.items() if hasattr(module, key)]
    before = [getattr(module, key) for module, key, _ in changes]
    try:
        for module, key, value in changes:
            setattr(module, key, value)
        yield
    finally:
        for (module, key, _), value in zip(changes, before, strict=True):
            setattr(module, key, value)


def _module(name: str) -> Any:
    return importlib.import_module(f"numgrad.compiler.{name}")


def unwritten(shape: Any, dtype: Any) -> np.ndarray:
    """An array as ``np.empty`` gives it, recognisable."""
    array = np.empty(shape, dtype)
    if array.size:
        part = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
        array.view(f"u{part}").fill(UNWRITTEN[part])
    return array


def run_kernel(written: Written, parallel: bool, *given: Any) -> None:
    """Run one variant of a kernel."""
    terms = [*written.arrays, *written.results]
    numbers = given[len(terms) : len(given) - len(written.lengths)]
    if len(given) != len(terms) + len(written.scalars) + len(written.lengths):
        raise EmulationError(f"{len(given)} arguments")
    memory = Memory()
    for term, array in zip(terms, given, strict=False):
        expected = max(len(term.shape), 1)
        fits = isinstance(array, np.ndarray) and array.dtype == term.dtype
        if not (fits and array.ndim == expected and array.flags.c_contiguous):
            raise EmulationError(f"{term} is given {array!r}")
        memory.add(array)
    scalars = []
    for term, number in zip(written.scalars, numbers, strict=True):
        if type(number) not in (bool, int, float, complex):
            raise EmulationError(f"{term} is given {number!r}")
        scalars.append(term.dtype.type(number))
    lengths = given[len(given) - len(written.lengths) :]
    if not all(type(n) is int for n in lengths):
        raise EmulationError(f"lengths {lengths}")
    text = written.source(parallel=parallel)
    _run(memory, text, written.emitter.namespace, *given[: len(terms)], *scalars, *lengths)


def _loop_entry(self: Any, short: tuple[int, ...]) -> Any:
    """The emulated kernel of a loop for such lengths of its short axes."""
    known = {f"n{k}": n for k, n in zip(self._short, short, strict=True) if n}
    source = for_lengths(self.written.source, known)
    return functools.partial(run_loop, replace(self.written, source=source))


def run_loop(kernel: LoopKernel, *given: Any) -> None:
    """Run the kernel of a loop."""
    memory = Memory()
    for array in given:
        if isinstance(array, np.ndarray):
            memory.add(array)
    _run(memory, kernel.source, kernel.functions, *given)


def _run(memory: Memory, text: str, functions: dict[str, Any], *given: Any) -> None:
    namespace = memory.namespace()
    source = re.sub("^(import|from) .*$", "", text, flags=re.MULTILINE)
    for name in re.findall(r"^from numgrad\S* import \w+ as (\w+)", text, re.MULTILINE):
        if name not in namespace:
            namespace[name] = _function(name)
    namespace.update(functions)
    with np.errstate(all="ignore"):
        exec(_compiled(source), namespace)
        namespace["kernel"](*given)


@functools.lru_cache(64)
def _compiled(source: str) -> Any:
    return compile(source, "<emulated kernel>", "exec")


class _NumPy:
    """NumPy as generated source sees it, its new arrays watched."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        array = unwritten(shape, dtype)
        for part in array if array.ndim > 1 else (array,):  # rows are arrays of their own
            self._memory.add(part)
        return array


class Memory:
    """The arrays that a kernel may touch."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.arrays: list[np.ndarray] = []
        self.scopes: list[dict[int, list[set[tuple[int, int]]]]] = [{}]

    def add(self, array: np.ndarray) -> None:
        """Allow accesses to an array."""
        start = array.ctypes.data
        if array.nbytes == 0:
            return
        place = bisect.bisect(self.starts, start)
        if place and self.starts[place - 1] == start:
            return
        self.starts.insert(place, start)
        self.arrays.insert(place, array.reshape(-1))

    def _find(self, dtype: np.dtype, address: int, index: int) -> tuple[np.ndarray, int]:
        place = bisect.bisect(self.starts, int(address)) - 1
        if place < 0:
            raise EmulationError(f"no array at {address}")
        array = self.arrays[place]
        at, rest = divmod(int(address) - self.starts[place], array.itemsize)
        at += int(index)
        if array.dtype != dtype:
            raise EmulationError(f"{dtype} accessed in an array of {array.dtype}")
        if rest or int(index) < 0 or not 0 <= at < array.size:
            raise EmulationError(f"element {at} of an array of {array.size}")
        return array, at

    def _note(self, address: int, at: int, scope: int, scopes: int, wrote: bool) -> None:
        if not 0 <= scope < scopes:
            raise EmulationError(f"alias scope {scope} of {scopes}")
        key = (self.starts[bisect.bisect(self.starts, int(address)) - 1], at)
        here = self.scopes[-1]
        here.setdefault(scope, [set(), set()])[wrote].add(key)
        for other, (read, written) in here.items():
            if other != scope and (key in written or (wrote and key in read)):
                raise EmulationError(f"alias scopes {scope} and {other} overlap")

    def load(self, like: Any, address: int, index: int, scope: int, scopes: int) -> Any:
        """See ``kernels.intrinsics.load``."""
        array, at = self._find(np.dtype(like), address, index)
        self._note(address, at, scope, scopes, False)
        value = array[at]
        part = array.itemsize // (2 if array.dtype.kind == "c" else 1)
        if part > 2 and array[at : at + 1].view(f"u{part}")[0] == UNWRITTEN[part]:
            raise EmulationError(f"element {at} is read before it is written")
        return value

    def load_if(self, like: Any, flag: Any, *place: int) -> Any:
        """See ``kernels.intrinsics.load_if``."""
        if not isinstance(flag, bool | np.bool_):
            raise EmulationError(f"a read is guarded by {flag!r}")
        return self.load(like, *place) if flag else like(0)

    def store(self, value: Any, address: int, index: int, scope: int, scopes: int) -> None:
        """See ``kernels.intrinsics.store``."""
        if isinstance(value, bool):
            value = np.bool_(value)
        if not isinstance(value, np.generic):
            raise EmulationError(f"{value!r} is stored")
        array, at = self._find(value.dtype, address, index)
        self._note(address, at, scope, scopes, True)
        array[at] = value

    def gemm(
        self,
        like: Any,
        trans_a: int,
        trans_b: int,
        m: int,
        n: int,
        k: int,
        *places: int,
    ) -> None:
        """See ``kernels.blas.gemm``."""
        a, lda, b, ldb, c, ldc, add, _ = places
        left = self._matrix(like, a, lda, (k, m) if trans_a else (m, k))
        right = self._matrix(like, b, ldb, (n, k) if trans_b else (k, n))
        out = self._matrix(like, c, ldc, (m, n))
        for matrix in (left, right):
            if any(x.tobytes() == unwritten((), like).tobytes() for x in matrix.flat):
                raise EmulationError("a factor is read before it is written")
        left, right = (
            x.conj().T if flag == 2 else x.T if flag else x
            for x, flag in ((left, trans_a), (right, trans_b))
        )
        out[:] = left @ right + (out if add else 0)

    def _matrix(self, like: Any, address: int, row: int, shape: tuple[int, int]) -> np.ndarray:
        dtype = np.dtype(like)
        if 0 in shape:
            return np.zeros(shape, dtype)
        array, at = self._find(dtype, address, 0)
        last = at + (shape[0] - 1) * row + shape[1] - 1
        if row < shape[1] or last >= array.size:
            raise EmulationError(f"a matrix of shape {shape} at {at} of {array.size} elements")
        strides = (row * dtype.itemsize, dtype.itemsize)
        return np.lib.stride_tricks.as_strided(array[at:], shape, strides)

    def elements(self, like: Any, address: int, shape: Any, *, out: bool = False) -> np.ndarray:
        """The elements of an array in order, which a kernel that is called reads or writes."""
        dtype = np.dtype(like)
        if 0 in shape:
            return np.zeros(shape, dtype)
        array, at = self._find(dtype, address, 0)
        size = int(np.prod(shape))
        if at + size > array.size:
            raise EmulationError(f"{size} elements at {at} of {array.size}")
        view = array[at : at + size].reshape(shape)
        nobody = unwritten((1,), dtype).tobytes()
        if not out and any(x.tobytes() == nobody for x in view.flat):
            raise EmulationError("an operand is read before it is written")
        return view

    def block_product(
        self, like: Any, size: int, a: int, row_a: int, step_a: int, b: int, row_b: int,
        count: int, c: int, row_c: int, rows: int, columns: int, add: int,
    ) -> None:  # fmt: skip
        """See ``kernels.products.blocks.block_product``."""
        if size != np.dtype(like).itemsize or not all(n > 0 for n in (rows, columns, count)):
            raise EmulationError(f"{rows} x {count} x {columns} elements of {size} bytes")
        left = self._strided(like, a, (rows, count), (row_a, step_a))
        right = self._strided(like, b, (count, columns), (row_b, size))
        out = self._strided(like, c, (rows, columns), (row_c, size))
        for matrix in (left, right, *([out] if add else [])):
            if any(x.tobytes() == unwritten((), like).tobytes() for x in matrix.flat):
                raise EmulationError("a factor is read before it is written")
        if np.shares_memory(left, out) or np.shares_memory(right, out):
            raise EmulationError("a product is stored where its factors are")
        out[:] = left @ right + (out if add else 0)

    def _strided(
        self, like: Any, address: int, shape: tuple[int, int], steps: tuple[int, int]
    ) -> np.ndarray:
        dtype = np.dtype(like)
        array, at = self._find(dtype, address, 0)
        last = at + sum(
            (n - 1) * step // dtype.itemsize for n, step in zip(shape, steps, strict=True)
        )
        if min(steps) < 0 or any(step % dtype.itemsize for step in steps) or last >= array.size:
            raise EmulationError(f"a matrix of shape {shape} at {at} of {array.size} elements")
        return np.lib.stride_tricks.as_strided(array[at:], shape, steps)

    def outlined(self, function: Callable) -> Callable:
        """A function has alias scopes of its own."""

        def call(*given: Any) -> Any:
            self.scopes.append({})
            try:
                return function(*given)
            finally:
                self.scopes.pop()

        return call

    def namespace(self) -> dict[str, Any]:
        """What the source of a kernel imports."""
        types = {type_name(d): d.type for d in KERNEL_DTYPES}
        return types | {
            "np": _NumPy(self),
            "prange": shuffled,
            "load": self.load,
            "load_if": self.load_if,
            "store": self.store,
            **library_calls(self.elements),
            "gemm": self.gemm,
            "block_product": self.block_product,
            "thread_limit": lambda: 2,
            "outlined": self.outlined,
            "contracted": self.outlined,
            "no_inline": _nothing,
            "touch": _nothing,
        }


def shuffled(n: int) -> Iterator[int]:
    """The tasks of a parallel loop in some order."""
    tasks = list(range(n))
    random.shuffle(tasks)
    return iter(tasks)


def _nothing(*given: Any) -> None:
    pass


def _select(condition: Any, a: Any, b: Any) -> Any:
    if not isinstance(condition, bool | np.bool_) or type(a) is not type(b):
        raise EmulationError(f"select({condition!r}, {a!r}, {b!r})")
    return a if condition else b


def _same(function: Callable) -> Callable:
    def step(a: Any, b: Any) -> Any:
        if type(a) is not type(b) and not isinstance(a, bool | np.bool_):
            raise EmulationError(f"a step of {a!r} with {b!r}")
        return function(a, b)

    return step


def _before(a: Any, b: Any) -> bool:
    return a.real < b.real or (a.real == b.real and a.imag < b.imag)


_STEPS: dict[str, Callable] = {
    "add": operator.add,
    "multiply": operator.mul,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "larger": max,
    "smaller": min,
    "either": np.logical_or,
    "both": np.logical_and,
    "larger_complex": lambda a, b: b if (_before(a, b) or np.isnan(b)) and not np.isnan(a) else a,
    "smaller_complex": lambda a, b: b if (_before(b, a) or np.isnan(b)) and not np.isnan(a) else a,
}


def _finish(step: Callable, part: np.ndarray, chunks: int, columns: int, fold: int) -> None:
    for c in range(1, chunks):
        for j in range(columns * fold):
            part[0, j] = step(part[0, j], part[c, j])
    for q in range(1, fold):
        for j in range(columns):
            part[0, j] = step(part[0, j], part[0, q * columns + j])


def _join_rows(step: Callable, part: np.ndarray, chunks: int, columns: int, whole: Any) -> None:
    _finish(step, part, chunks, columns, 1)
    for j in range(columns):
        whole[j] = part[0, j]


def _join_few(step: Callable, part: np.ndarray, chunks: int, columns: int) -> None:
    _finish(step, part, chunks, columns, 1)


def _plainly(function: Any) -> Callable:
    """A function of the library that computes with integers."""

    def call(*given: Any) -> Any:
        return function.py_func(*map(int, given))

    return call


_JOINED = {"sum": operator.add, **_STEPS}
_FUNCTIONS: dict[str, Callable] = {
    "add_any_order": _same(operator.add),
    "multiply_any_order": _same(operator.mul),
    "add_product": lambda total, a, b: _same(operator.add)(total, _same(operator.mul)(a, b)),
    "i_select": _select,
    "select": _select,
    "finish_sum": functools.partial(_finish, operator.add),
    **{name: _same(step) for name, step in _STEPS.items()},
    **{f"finish_{name}": functools.partial(_finish, step) for name, step in _STEPS.items()},
    **{name: _plainly(getattr(tasks, name)) for name in ("least_step", "cut", "cut_in_lanes")},
    **{f"join_rows_{name}": functools.partial(_join_rows, step) for name, step in _JOINED.items()},
    **{f"join_few_{name}": functools.partial(_join_few, step) for name, step in _JOINED.items()},
}
_INTEGERS = ("to_int32", "to_int64", "to_uint32", "to_uint64")


def _as_integer(kind: str, x: Any) -> int:
    """What is left of a float in an integer's bits, as ``vmath.scalar`` says."""
    half = 2 ** (np.iinfo(kind).bits - 1)
    if kind.startswith("u") and x >= half:
        return half + _as_integer(kind[1:], x - half)
    return int(x) if -half - 1 < x < half else -half


_SPECIAL: dict[str, Callable] = {
    "sigmoid": scipy.special.expit,
    "softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    **{name: getattr(scipy.special, name) for name in ("erfinv", "erfcinv", "ndtri", "i0e")},
    "gamma": scipy.special.gamma,
    "gammaln": scipy.special.gammaln,
    "digamma": scipy.special.digamma,
    "zeta": scipy.special.zeta,
    "logit": scipy.special.logit,
    "ndtr": scipy.special.ndtr,
    "gelu": lambda x: x * scipy.special.ndtr(x),
    "gelu_gate": lambda x: scipy.special.expit(np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)),
    "exp_product": lambda a, b: np.exp(a * b),
    **{name: functools.partial(_as_integer, name[3:]) for name in _INTEGERS},
}
_COMPLEX: dict[str, Callable] = {
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "softplus": lambda z: np.log1p(np.exp(z)),
    "logit": lambda z: np.log(z) - np.log1p(-z),
    "zeta": lambda s, z: complex(mpmath.zeta(float(s), complex(z))),
}
_DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
_NUMPY_NAMES = {function: name for name, (_, function) in LIBRARY.items() if name != "float_power"}


OURS = ("differences", "carlson", "von_mises")
"""Modules of kernels whose functions SciPy has not."""


def _late(name: str) -> Callable | None:
    """SciPy's special function; differences and integrals of ours are had from nowhere else."""
    module = LIBRARY[name][0].rpartition(".")[2] if name in LIBRARY else ""
    if name in ("expn", "yn", "kn", "eval_hermite", "eval_hermitenorm"):
        return lambda n, x: getattr(scipy.special, name)(int(n), x)
    if module == "scipy_functions":
        return getattr(scipy.special, name)
    return (lambda *given: OPS[name](*given).item()) if module in OURS else None


def _function(name: str) -> Callable:
    """What an imported function computes."""
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name.startswith("i_"):
        return {"fabs": np.fabs}.get(name[2:]) or getattr(np, name[2:])
    stem, _, kind = name.rpartition("_")
    if kind not in _DTYPES:
        raise EmulationError(f"what is {name}?")
    if stem.endswith("_rare"):
        return lambda *given: False
    stem = stem.removesuffix("_slow")
    dtype = out = _DTYPES[kind]
    if kind.startswith("c"):
        function = _COMPLEX.get(stem) or getattr(np, stem, None)
        function = function or getattr(scipy.special, stem, None) or _late(stem)
        out = dtype(0).real.dtype.type if stem == "absolute" else dtype
    else:
        function = _SPECIAL.get(stem) or _late(stem) or getattr(np, _NUMPY_NAMES[stem])

    def call(*given: Any) -> Any:
        if any(type(x) is not dtype for x in given[REAL_BESIDE.get(stem, 0) * (kind == "c128") :]):
            raise EmulationError(f"{name}{given}")
        found = function(*given)
        if stem in _INTEGERS:  # its bits
            return np.int64((found + 2**63) % 2**64 - 2**63)
        return out(found)

    return call
