"""LLVM IR as text in, machine code out, without Numba: compiled for this CPU, kept, loaded.

Note [Object files]
-------------------
A compiled kernel is a list of symbols, those it defines and those it needs, and object files.
Objects are loaded into one engine of LLVM, 0.1 ms each, and stay there, or into one of their own:
Note [Lifetime of machine code] in ``codegen.compile``. Their symbols bear a suffix, since an engine
has one name space. LLVM ends the process when it cannot resolve a symbol, so each is looked up
before.

Objects name Python objects by symbols too, whose addresses change with every process.

Note [Parts of a module]
------------------------
LLVM takes most of the time of a first call, and no pass looks at more than one function. So a
module of some length becomes two of about the same, which call each other by names that are unique
in the process, and two threads compile them. Machine code is the same as of one module: calls are
absolute in either.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

import llvmlite
import numpy as np
from llvmlite import binding
from llvmlite.binding import ffi

from numgrad.codegen.cpython import c_api, offsets
from numgrad.codegen.locks import deferred
from numgrad.codegen.native import block_pool

EXPORTS = (
    "body", "packed", "numba_entry", "entry", "parallel_for", "thread_limit", "lost", "overhead",
    "idle", "cycles", "native", "take_block", "give_block", "trim_blocks", "block_counts",
    "allocate", "grow", "release",
)  # fmt: skip
"""Functions that modules may define for others.

See ``entry``, ``driver``, ``block_pool`` and ``c_entry``.
"""

_HEADER, _FORMAT = struct.Struct("<I"), 2
_RENAMED = rf"@({'|'.join(EXPORTS)})\b"
_DECLARED = r"(?m)^(?:declare\b[^\n@]*@([-\w.$]+)\(|@([-\w.$]+) = external\b)[^\n]*\n?"


class Unresolved(RuntimeError):
    """A symbol that a kernel needs is nowhere in the process."""


# -------------------------------------------------------------------------------------- the CPU


class Target(NamedTuple):
    """System and CPU that exported code is made for, in LLVM's words."""

    triple: str
    cpu: str
    features: str


_target: ContextVar[Target | None] = ContextVar("target", default=None)


@contextmanager
def targeting(target: Target) -> Iterator[None]:
    """Write code for another machine in the block; only ``objects`` compiles it."""
    token = _target.set(target)
    try:
        yield
    finally:
        _target.reset(token)


def is_exporting() -> bool:
    """Whether code is written that leaves the process."""
    return _target.get() is not None


def target() -> Target:
    """The target of exported code, or this machine."""
    return _target.get() or Target(binding.get_process_triple(), *cpu())


def triple() -> str:
    """System that code is made for."""
    target = _target.get()
    return binding.get_process_triple() if target is None else target.triple


def cpu() -> tuple[str, str]:
    """Name and features of the CPU that code is made for: the user's choice, or this one.

    The choice is Numba's, by the same variables of the environment.
    """
    target, get = _target.get(), os.environ.get
    if target is not None:
        return target.cpu, target.features
    return _cpu(get("NUMBA_CPU_NAME"), get("NUMBA_CPU_FEATURES"), get("NUMBA_ENABLE_AVX"))


@cache
def _cpu(name: str | None, features: str | None, avx: str | None) -> tuple[str, str]:
    if features is None:
        flags = {} if str(name).lower() == "generic" else binding.get_host_cpu_features()
        kept = {
            feature: has and not (avx == "0" and feature.startswith("avx"))
            for feature, has in flags.items()
        }
        features = ",".join(f"{'-+'[has]}{feature}" for feature, has in sorted(kept.items()))
    return name or binding.get_host_cpu_name(), features


def is_arm() -> bool:
    """Whether code is made for 64-bit Arm, whose vectors and FMA no feature has to name."""
    return triple().split("-")[0] in ("aarch64", "arm64")


def has_fma() -> bool:
    """Whether the CPU that code is made for multiplies and adds in one rounding."""
    return is_arm() or "+fma" in cpu()[1].split(",")


def vector_bits() -> int:
    """How many bits a vector has on this CPU."""
    features = cpu()[1].split(",")
    return 512 if "+avx512f" in features else 256 if "+avx" in features else 128


def least_masked() -> int:
    """Bytes of the smallest elements of which this CPU reads and writes those that a mask names."""
    features = cpu()[1].split(",")
    return 1 if "+avx512bw" in features else 4 if "+avx" in features else 16


def attributes() -> str:
    """The attributes of all functions, a line of LLVM IR.

    LLVM splits vectors of 512 bits in two on Intel's CPUs unless told not to.
    """
    bits = vector_bits()
    width = f' "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
    return f"attributes #0 = {{ nounwind{width if bits > 128 else ''} }}\n"


def is_linux() -> bool:
    """Whether kernels run on Linux."""
    return "linux" in triple()


def versions() -> dict[str, str]:
    """Versions of the compilers."""
    llvm = ".".join(map(str, binding.llvm_version_info))
    return {"llvmlite": llvmlite.__version__, "llvm": llvm, "numpy": np.__version__}


def stamp() -> str:
    """Name the versions and the CPU, which besides its text decide on a kernel's machine code."""
    return _stamp(cpu())


@cache
def _stamp(cpu: tuple[str, str]) -> str:
    parts = (
        f"{__name__} {_FORMAT}",
        sys.version_info[:3],
        getattr(sys, "abiflags", ""),
        offsets.HEAD,
        sys.platform,
        platform.machine(),
        llvmlite.__version__,
        np.__version__,
        *cpu,
    )
    return " ".join(map(str, parts))


@cache
def _initialize() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for symbol, address in c_api.object_addresses().items():
        binding.add_symbol(symbol, address)
    if sys.platform == "win32":  # which LLVM calls where a function has pages of variables
        probe = ctypes.WinDLL("ntdll").__chkstk
        binding.add_symbol("__chkstk", ctypes.cast(probe, ctypes.c_void_p).value or 0)


def _new_machine(effort: int, name: str, features: str) -> Any:
    _initialize()
    target = binding.Target.from_default_triple()
    # the models of Numba's: addresses may lie anywhere, so calls and constants are absolute
    reloc = "static" if target.name.startswith("x86") else "default"
    return target.create_target_machine(
        cpu=name, features=features, opt=effort, reloc=reloc, codemodel="jitdefault", jit=True
    )


_machines = threading.local()


def _machine(effort: int) -> Any:
    machines = vars(_machines)
    key = f"{effort} {cpu()}"
    machine = machines.get(key)
    if machine is None:
        machine = machines[key] = _new_machine(effort, *cpu())
    return machine


# ------------------------------------------------------------------------------------ compiling


def prepared(text: str) -> str:
    """A module of which parts declared the same, with the attributes of its functions."""
    seen = set()

    def once(match: re.Match) -> str:
        symbol = match[1] or match[2]
        if symbol in seen:
            return ""
        seen.add(symbol)
        return match[0]

    text = re.sub(_DECLARED, once, text + "\n")
    if "\nattributes #0" not in text and not text.startswith("attributes #0"):
        text += attributes()
    return text


def optimise(module: Any, builder: Any) -> None:
    """Run the passes that generated text needs, function by function."""
    run = at_once(ffi.lib.LLVMPY_RunNewFunctionPassManager)
    with _few_passes() as passes:
        for function in module.functions:
            if not function.is_declaration:
                run(passes, function, builder)


@contextmanager
def _module(
    text: str, unique: str, speed: int, effort: int, *, unroll: bool = False, verify: bool = False
) -> Iterator[Any]:
    """The optimised module of a text, for the block."""
    machine = _machine(effort)
    # alignments that the text does not name depend on the layout, so it comes first
    layout = f'target datalayout = "{machine.target_data}"\ntarget triple = "{machine.triple}"\n'
    with ExitStack() as owned:  # by the block: Note [Ctrl-C] in ``codegen.locks``
        own = owned.enter_context
        text = re.sub(_RENAMED, rf"@\1_{unique}", prepared(text))
        module = own(parsed(layout + text))
        if verify:
            module.verify()
        options = own(binding.create_pipeline_tuning_options(speed_level=speed))
        options.loop_vectorization = options.slp_vectorization = False
        options.loop_unrolling = unroll
        builder = own(binding.create_pass_builder(machine, options))
        if speed > 1:
            own(builder.getModulePassManager()).run(module, builder)
        elif speed == 1:
            optimise(module, builder)
        yield module


def _few_passes() -> Any:
    """Passes for text that has vectors, equal instructions once and none in loops needlessly.

    They keep variables in registers, tidy up branches, test loops at their ends, and simplify
    what the text says in two instructions for one.
    """
    passes = binding.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_loop_simplify_pass()
    passes.add_loop_rotate_pass()
    passes.add_instruction_combine_pass()
    return passes


@deferred()
def compile_ir(
    text: str,
    unique: str,
    *,
    speed: int = 1,
    effort: int = 2,
    unroll: bool = False,
    verify: bool = False,
) -> bytes:
    """Compile a module for this CPU.

    Parameters
    ----------
    text
        LLVM IR without target. Parts of it may declare the same functions; it exports
        what it defines of ``EXPORTS``.
    unique
        What to add to exported names: differs between kernels.
    speed
        Level of the optimising passes: 0, none; 1, the few that generated text needs, function by
        function; 2 and 3, all of LLVM's. Of 14 programs and kernels level 1 makes code as fast as
        LLVM's own lowest level does for functions, whose passes take three times as long.
    effort
        Level of code generation, 0 to 3.
    unroll
        Whether LLVM may unroll loops at levels 2 and 3.
    verify
        Whether LLVM is to check the module first.

    Returns
    -------
    bytes
        What ``load`` loads, here or in another process: Note [Object files].
    """

    def part(text: str, effort: int) -> _Object:
        with _module(text, unique, speed, effort, unroll=unroll, verify=verify) as module:
            functions = [*module.functions, *module.global_variables]
            defined = {item.name for item in functions if not item.is_declaration}
            needed = {item.name for item in functions if item.is_declaration}
            return _Object(emitted(_machine(effort), module), defined, needed)

    # passes of higher levels look at several functions
    texts = divided(text, unique) if speed <= 1 else [text]
    efforts = [min(effort, 0 if is_glue(text) else 3) for text in texts]
    objects = side_by_side(list(map(partial(partial, part), texts, efforts)))
    names = set[str]().union(*[each.defined for each in objects])
    defined = [name for name in EXPORTS if f"{name}_{unique}" in names]
    needed = set[str]().union(*[each.needed for each in objects]) - names
    needed = sorted(name for name in needed if not name.startswith("llvm."))
    sizes = [str(len(each.code)) for each in objects]
    header = "\n".join((unique, *map(" ".join, (defined, needed, sizes)))).encode()
    return b"".join((_HEADER.pack(len(header)), header, *[each.code for each in objects]))


class _Object(NamedTuple):
    code: bytes
    defined: set[str]
    needed: set[str]


@deferred()
def optimised(
    text: str, unique: str, *, speed: int = 1, effort: int = 2, unroll: bool = False
) -> str:
    """LLVM IR after optimisation."""
    with _module(text, unique, speed, effort, unroll=unroll) as module:
        return str(module)


@deferred()
def assembly(
    text: str, unique: str, *, speed: int = 1, effort: int = 2, unroll: bool = False
) -> str:
    """Assembly for this CPU."""
    with _module(text, unique, speed, effort, unroll=unroll) as module:
        return _machine(effort).emit_assembly(module)


# -------------------------------------------------------------------------------------- loading


@deferred()
def new_engine() -> Any:
    """An engine that machine code is loaded into; no feature of the CPU matters for that."""
    return binding.create_mcjit_compiler(binding.parse_assembly(""), _new_machine(2, "", ""))


_engine = cache(new_engine)


@deferred()
def load(payload: bytes, engine: Any = None) -> dict[str, int]:
    """Make compiled code ready to be called; return where that is which it defines.

    It stays, or is gone with the engine that is given.
    """
    size = _HEADER.size + _HEADER.unpack_from(payload)[0]
    unique, defined, needed, sizes = payload[_HEADER.size : size].decode().split("\n")
    engine = engine or _engine()
    missing = [symbol for symbol in needed.split() if not _resolve(symbol)]
    if missing:
        raise Unresolved(f"kernel {unique} needs {', '.join(missing)}: not known to the linker")
    for length in map(int, sizes.split()):
        object_code = payload[size : size + length]
        with binding.ObjectFileRef.from_data(object_code) as code:
            engine.add_object_file(code)
        size += length
    return {name: engine.get_function_address(f"{name}_{unique}") for name in defined.split()}


def _resolve(symbol: str) -> bool:
    """Whether the linker finds a symbol, if need be of the pool of memory or among Python's."""
    if symbol in block_pool.SYMBOLS:
        load_pool()
    if binding.address_of_symbol(symbol):
        return True
    address = c_api.function_address(symbol)
    if address:
        binding.add_symbol(symbol, address)
    return bool(address)


@cache
def load_pool() -> None:
    """Load the pool of large blocks once; the caller holds ``locks.KERNELS``."""
    addresses = load_shared("pool", block_pool.pool_text(is_linux()))
    for symbol, name in block_pool.SYMBOLS.items():
        binding.add_symbol(symbol, addresses[name])
    for watch in block_pool.on_load:
        watch(addresses)


def load_shared(name: str, text: str) -> dict[str, int]:
    """Load a module that many kernels use; it is compiled once and kept on disk."""
    shared = SharedModule(name, text)
    shared.finish()
    return load(shared.payload)


class SharedModule:
    """A module that many kernels use, from disk, or compiled in a thread of its own.

    Parameters
    ----------
    name, text, speed
        Its name, LLVM IR, and the level of the optimising passes.
    translate
        What makes LLVM IR of the text, if that is in another language; then it is compiled when it
        is needed, by the thread that needs it.
    depends
        What else decides the machine code.

    Attributes
    ----------
    payload
        What ``load`` loads, when ``finish`` has returned.
    cached
        Whether it was on disk.
    """

    def __init__(
        self,
        name: str,
        text: str,
        speed: int = 0,
        translate: Callable[[str], str] | None = None,
        depends: str = "",
    ) -> None:
        from hashlib import sha256

        from numgrad.codegen import cache as disk

        told = f"{stamp()}{speed}{depends}{text}"
        self._unique = f"{name}_{sha256(told.encode()).hexdigest()[:24]}"
        self._file = f"{self._unique.replace('_', '-')}.common"  # no kernel, and not counted as one
        payload = disk.load(self._file)
        self.payload: bytes = payload or b""
        self.cached = payload is not None
        self._text, self._speed, self._translate = text, speed, translate
        self._thread: threading.Thread | None = None
        if payload is None and translate is None:
            self._thread = threading.Thread(target=self._compile)
            self._thread.start()

    def _compile(self) -> None:
        with suppress(RuntimeError):  # ``finish`` tries again
            self.payload = compile_ir(self._text, self._unique, speed=self._speed, effort=1)

    def finish(self) -> None:
        """Wait until it is there, and keep it on disk."""
        from numgrad.codegen import cache as disk

        if self._thread is not None:
            self._thread.join()
        elif self.payload:
            return
        if not self.payload:  # such as in a fork, which has no threads of its parent
            text = self._text if self._translate is None else self._translate(self._text)
            self.payload = compile_ir(text, self._unique, speed=self._speed, effort=1)
        disk.save(self._file, self.payload)
        self._thread = None


_Result = TypeVar("_Result")


def side_by_side(tasks: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """Results of tasks, each but the last of which runs in a thread of its own."""
    results: dict[int, _Result] = {}
    errors: list[BaseException] = []

    def run(k: int) -> None:
        try:
            results[k] = tasks[k]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(tasks) - 1)]
    for thread in threads:
        thread.start()
    run(len(tasks) - 1)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[k] for k in range(len(tasks))]


def at_once(function: Any) -> Any:
    """A function of LLVM's library without llvmlite's lock, which lets one thread compile.

    That is safe where each thread has its own context and machine, and whatever is made of them.
    """
    return getattr(function, "_cfn", function)


@contextmanager
def parsed(text: str) -> Iterator[Any]:
    """A module, in a context of its own, for the block.

    They are given up in this order at its end. An error's frames hold on to what they have, as
    garbage in cycles, which would be given up in any order: a context takes its modules with it.
    """
    with binding.create_context() as context, ffi.OutputString() as errors:
        parse = at_once(ffi.lib.LLVMPY_ParseAssembly)
        module = binding.ModuleRef(parse(context, text.encode(), errors), context)
        with module:
            if errors:
                raise RuntimeError(f"LLVM IR parsing error\n{errors}")
            yield module


def emitted(machine: Any, module: Any) -> bytes:
    """The object of a module."""
    with ffi.OutputString() as errors:
        emit = at_once(ffi.lib.LLVMPY_TargetMachineEmitToMemory)
        buffer = emit(machine, module, 1, errors)
        if not buffer:
            raise RuntimeError(str(errors))
    try:
        start = ffi.lib.LLVMPY_GetBufferStart(buffer)
        return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


LEAST = 400
"""Lines of functions from which on a module is divided."""
GLUE = 3000
"""Lines of a function from which on it is compiled in haste if it does little but call others.

Allocating registers takes more than linear time: 1.9 s for the 30,000 lines that call 800 nests and
products, 0.3 s without effort.
"""
_ARITHMETIC = re.compile(r" (?:f(?:add|sub|mul|div|rem|neg|ma)|fcmp|load <)\b")
_FUSED = re.compile(r" f(?:add|sub|mul) (?:contract|reassoc|fast)\b")

_FUNCTION = re.compile(r"^define .*?^}\n", re.MULTILINE | re.DOTALL)
_HEAD = re.compile(r"define (private )?(.*?)@([\w.]+)(\(.*\)) (#0 .*)?{")
_PARAMETER = re.compile(r" %[\w.]+(?=[,)])")
_CONSTANT = re.compile(r"^(@[\w.]+) = private .*\n", re.MULTILINE)
_NAME = re.compile(r"@([\w.]+)")


class _Function(NamedTuple):
    name: str
    text: str
    lines: int
    declaration: str
    private: bool


def divided(text: str, unique: str) -> list[str]:
    """The modules that a module becomes; what they call of each other ends in ``unique``."""
    functions: list[_Function] = []
    for match in _FUNCTION.finditer(text):
        symbol = match[0]
        head = _HEAD.match(symbol)
        if head is None:
            return [text]
        private, result, name, parameters, _ = head.groups()
        declaration = f"declare {result}@{name}{_PARAMETER.sub('', parameters)} #0\n"
        functions.append(_Function(name, symbol, symbol.count("\n"), declaration, bool(private)))
    if sum(f.lines for f in functions) < LEAST or len(functions) < 2:
        return [text]
    rest = _FUNCTION.sub("", text)
    parts: list[list[_Function]] = [[], []]
    sizes = [0, 0]
    alone = [f for f in functions if is_glue(f.text)]
    functions = [f for f in functions if f not in alone]
    for f in sorted(functions, key=lambda f: -f.lines):
        smaller = sizes.index(min(sizes))
        parts[smaller].append(f)
        sizes[smaller] += f.lines
    return _written(rest, [*([f] for f in alone), *filter(None, parts)], unique)


def is_glue(text: str) -> bool:
    """Whether a module is one long function that does little but call others.

    What arithmetic it has is not to be fused, which would depend on the effort.
    """
    lines = text.count("\n")
    if lines < GLUE or text.count("\ndefine ") + text.startswith("define ") > 1:
        return False
    return len(_ARITHMETIC.findall(text)) < lines // 50 and _FUSED.search(text) is None


def _written(rest: str, parts: list[list[_Function]], unique: str) -> list[str]:
    constants = {match[1]: match[0] for match in _CONSTANT.finditer(rest)}
    rest = _CONSTANT.sub("", rest)
    bodies = ["".join([f.text for f in section]) for section in parts]
    reads = [set(_NAME.findall(body)) for body in bodies]
    known = {f.name: f for section in parts for f in section}
    shared: set[str] = set()
    pieces = []
    for section, read in zip(parts, reads, strict=True):
        missing = sorted((read & known.keys()) - {f.name for f in section})
        shared.update(name for name in missing if known[name].private)
        declared = "".join([known[name].declaration for name in missing])
        used = "".join([line for name, line in constants.items() if name[1:] in read])
        pieces.append(used + declared)
    texts = [f"{head}{body}{rest}" for head, body in zip(pieces, bodies, strict=True)]
    if not shared:
        return texts
    names = "|".join(map(re.escape, sorted(shared, key=len, reverse=True)))
    own = re.compile(rf"@({names})(?![\w.])")
    opened = re.compile(rf"^define private (.*?@(?:{names})\()", re.MULTILINE)
    return [own.sub(rf"@\1.{unique}", opened.sub(r"define \1", section)) for section in texts]
