"""Builtin functions of CPython's whose machine code is written in the language of kernels.

Note [Functions for Python]
---------------------------
A text defines ``kernel(me, args, count, names)``, which is called as CPython calls what takes
``METH_FASTCALL | METH_KEYWORDS``: ``me`` is the function's ``self``, ``args`` the address of
``count`` arguments, behind which come those by keyword whose ``names`` are a tuple, or 0. All are
int64, and so is what it returns, a reference to the result, or 0 with an error set: Note [Objects
in machine code] in ``objects``. One text serves many functions, whose ``self`` differ.

``self`` is a bytes object, whose contents lie ``offsets.BYTES`` behind its address.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from numgrad.codegen.cpython import c_api
from numgrad.codegen.intrinsics import HAS_FMA
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
        """Load the machine code; it is compiled if it is not on disk."""
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
    from numgrad.codegen.native.translation import translate

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
