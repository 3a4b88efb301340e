"""A module in parts that LLVM compiles side by side.

Note [Parts of a module]
------------------------
LLVM takes most of the time of a first call, and no pass looks at more than one function. So a
module of some length becomes two of about the same, which call each other by names that are unique
in the process, and two threads compile them. Machine code is the same as of one module: calls are
absolute in either.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from llvmlite import binding
from llvmlite.binding import ffi

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
    for f in sorted(functions, key=lambda f: -f.lines):
        smaller = sizes.index(min(sizes))
        parts[smaller].append(f)
        sizes[smaller] += f.lines
    return _written(rest, parts, unique)


def _written(rest: str, parts: list[list[_Function]], unique: str) -> list[str]:
    constants = {match[1]: match[0] for match in _CONSTANT.finditer(rest)}
    rest = _CONSTANT.sub("", rest)
    bodies = ["".join([f.text for f in part]) for part in parts]
    reads = [set(_NAME.findall(body)) for body in bodies]
    known = {f.name: f for part in parts for f in part}
    shared: set[str] = set()
    pieces = []
    for part, read in zip(parts, reads, strict=True):
        missing = sorted((read & known.keys()) - {f.name for f in part})
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
    return [own.sub(rf"@\1.{unique}", opened.sub(r"define \1", part)) for part in texts]
