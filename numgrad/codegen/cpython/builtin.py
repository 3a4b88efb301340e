"""Builtin functions of CPython's in the language of kernels, and when they come into use.

Note [Functions for Python]
---------------------------
A text defines ``kernel(me, args, count, names)``, which is called as CPython calls what takes
``METH_FASTCALL | METH_KEYWORDS``: ``me`` is the function's ``self``, ``args`` the address of
``count`` arguments, behind which come those by keyword whose ``names`` are a tuple, or 0. All are
int64, and so is what it returns, a reference to the result, or 0 with an error set: Note [Objects
in machine code] in ``objects``. One text serves many functions, whose ``self`` differ.

``self`` is a bytes object, whose contents lie ``offsets.BYTES`` behind its address.

Note [Hot paths]
----------------
Every small operation and every node of a backward goes through one of two forms of the same code:
in Python, and in machine code (``builtin``) that does the most common case of it three to four
times as fast. To load that takes two milliseconds; to make it, which is done once for all programs,
a quarter of a second, and short programs are not to wait for it. So it is loaded when the first
kernel has been, and made after ``ENOUGH`` times that Python did what it could have done. Where
machine code cannot read objects (Note [Known versions] in ``offsets``), or the user's setting
forbids it (``ng.config.machine_code``), all stays with Python, which gives the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from numgrad import config
from numgrad.codegen import compile as compiler
from numgrad.codegen.compile import tell
from numgrad.codegen.cpython import c_api
from numgrad.codegen.intrinsics import HAS_FMA
from numgrad.codegen.locks import KERNELS, deferred, give_way
from numgrad.codegen.native import machine
from numgrad.codegen.native.signature import parse

_SIGNATURE = "int64(int64, int64, int64, int64)"
_ENTRY = """
define ptr @entry(ptr %self, ptr %args, i64 %count, ptr %names) #0 {
  %result = alloca i64
  store i64 0, ptr %result
  %a0 = ptrtoint ptr %self to i64
  %a1 = ptrtoint ptr %args to i64
  %a3 = ptrtoint ptr %names to i64
  %failed = call i32 @body(i64 %a0, i64 %a1, i64 %count, i64 %a3, ptr %result)
  %answer = load i64, ptr %result
  %object = inttoptr i64 %answer to ptr
  ret ptr %object
}
"""


class Builtin:
    """A text whose machine code many builtin functions have."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self._address = 0

    @cached_property
    def _module(self) -> machine.SharedModule:
        from numgrad.codegen.native.kernel import native_stamp

        depends = f"{native_stamp()}{HAS_FMA}{_instructions_digest()}"
        return machine.SharedModule(self.name, self.text, 1, translated, depends)

    @property
    def cached(self) -> bool:
        """Whether its machine code was on disk, when this was first asked for."""
        return self._module.cached

    def load(self) -> None:
        """Have the machine code ready to be called; it is compiled if it is not on disk."""
        if not self._address:
            _link_numpy()
            self._module.finish()
            self._address = machine.load(self._module.payload)["entry"]

    def function(self, name: str, own: bytes) -> Callable[..., Any]:
        """A function of Python's whose ``self`` is ``own``."""
        self.load()
        return c_api.builtin(name, self._address, own, keywords=True)


def translated(text: str) -> str:
    """A text in LLVM's language."""
    from numgrad.codegen.native.kernel import translate

    return translate(text, parse(_SIGNATURE), has_fma=HAS_FMA) + _ENTRY


def _link_numpy() -> None:
    """Make NumPy's function that makes arrays known to the linker."""
    from llvmlite import binding

    binding.add_symbol("numgrad_new_array", c_api.new_array_address())


def _instructions_digest() -> str:
    """Hash of what the compiler knows of ``objects``, which is in no text."""
    folder = Path(__file__).parent
    files = (folder / "objects.py", folder / "objects_native.py")
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


ENOUGH = 50
"""Calls that Python has done when machine code is made for further ones."""
_calls = 0


class HotPath(NamedTuple):
    """Machine code that is not in use yet: whether it is on disk, and what puts it to use."""

    cached: Callable[[], bool]
    install: Callable[[], None]


waiting: list[HotPath] = []
"""Those not in use yet; Python's forms count the calls that they could do: ``count_call``."""


def enabled() -> bool:
    """Whether the user lets machine code do calls: ``ng.config.machine_code``."""
    return config.machine_code


def on_switch(function: Callable[[], None]) -> None:
    """Call a function whenever the user's setting changes, and now."""
    config.on_machine_code.append(function)
    function()


def count_call() -> None:
    """Count a call that Python did and machine code could do, were it in use."""
    global _calls
    if not (config.machine_code and compiler.has_loaded()):
        return
    _calls += 1
    if _calls == 1:
        install(only_cached=True)
    elif _calls >= ENOUGH:
        install()


def install(*, only_cached: bool = False) -> None:
    """Put machine code to use; what is not on disk is made now, or left where it is."""
    from numgrad.codegen.cpython import offsets

    give_way()
    with KERNELS, deferred():
        if offsets.unknown():
            waiting.clear()
        if not offsets.is_readable():
            return
        for path in list(waiting):
            waiting.remove(path)
            try:
                if only_cached and not path.cached():
                    waiting.append(path)
                else:
                    path.install()
            except Exception as error:  # whatever it is: Python does without
                tell(f"a hot path stays in Python, machine code of it cannot be made: {error}")
