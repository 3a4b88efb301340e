"""LLVM in several threads."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

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
