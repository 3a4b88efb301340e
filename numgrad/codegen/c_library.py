"""Functions of C entries, called and loaded by NumPy and ctypes alone.

Note [Standing alone]
---------------------
This file imports nothing of numgrad, so that its text, written beside a library as a module, loads
that library where numgrad is not installed, in milliseconds. A function is described by what
``NAME.json`` has of it. Lengths in it are expressions of ``+ * // %``, numbers and names of C
arguments.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # importing it takes as long as the rest
    from collections.abc import Mapping, Sequence

FORMAT = 2
"""Version of ``NAME.json``."""
MESSAGES = {
    1: "lengths do not go together as in the examples (lengths 0 and 1 are examples of their own)",
    2: "memory ran out",
    3: "an operation refuses its operands",
}
"""Messages of statuses other than 0."""
_C_TYPES = {"float64": "double", "float32": "float", "complex128": "double", "complex64": "float"}
_SIGNS = {
    "+": int.__add__, "-": int.__sub__, "*": int.__mul__, "//": int.__floordiv__,
    "%": int.__mod__, "==": int.__eq__, "!=": int.__ne__, "<": int.__lt__, ">=": int.__ge__,
}  # fmt: skip


def c_type(dtype: np.dtype) -> str:
    """C's name of a number in memory; of one part of a complex number."""
    known = _C_TYPES.get(dtype.name)
    return known or ("uint8_t" if dtype.kind == "b" else f"{dtype.name}_t")


def length_of(text: str, lengths: Mapping[str, int]) -> int:
    """The number that an expression is: Note [Standing alone]."""
    if text.isdigit():
        return int(text)
    if text in lengths:
        return lengths[text]
    import re  # few lengths are no names

    tokens = [*re.findall(r"\s*(//|[-+*%()]|\d+|\w+)", text), ""]
    place = 0

    def take() -> str:
        nonlocal place
        place += 1
        return tokens[place - 1]

    def factor() -> int:
        token = take()
        if token == "-":
            return -factor()
        if token == "(":
            value = total()
            take()
            return value
        return int(token) if token.isdigit() else lengths[token]

    def product() -> int:
        value = factor()
        while tokens[place] in ("*", "//", "%"):
            value = _SIGNS[take()](value, factor())
        return value

    def total() -> int:
        value = product()
        while tokens[place] in ("+", "-"):
            value = _SIGNS[take()](value, product())
        return value

    return total()


class Port:
    """An input or output of a native function.

    Attributes
    ----------
    name
        That of its argument in C.
    path
        How a reader of the Python function would write it.
    shape
        Lengths of its axes, as expressions; None for a number.
    """

    def __init__(self, name: str, path: str, dtype: np.dtype, shape: Sequence[str] | None) -> None:
        self.name, self.path, self.dtype, self.shape = name, path, dtype, shape

    @property
    def extents(self) -> str:
        """Its shape as text."""
        if self.shape is None:
            return "number"
        return f"({', '.join(self.shape)}{',' if len(self.shape) == 1 else ''})"

    def shape_for(self, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """Its shape where arguments that are lengths have these values."""
        return tuple([length_of(text, lengths) for text in self.shape or ()])


class CParameter:
    """An argument of a C function.

    Attributes
    ----------
    role
        ``"number"``; ``"array"``, whose elements are read; ``"inout"``, a donated array that is
        overwritten; ``"length"``; ``"result"``, where elements are written; ``"workspace"``, the
        last one.
    rank
        Axes of the array behind the pointer; 0 for a number.
    """

    def __init__(self, name: str, dtype: np.dtype, role: str, rank: int = 0) -> None:
        self.name, self.dtype, self.role, self.rank = name, dtype, role, rank

    @property
    def is_pointer(self) -> bool:
        """Whether it is an address."""
        return self.role in ("array", "inout", "result", "workspace")

    def declarations(self) -> list[str]:
        """The parameters in C."""
        kind = c_type(self.dtype)
        if self.role == "workspace":
            return ["struct numgrad_workspace *workspace"]
        if self.role == "array":
            return [f"const {kind} *{self.name}"]
        if self.is_pointer:
            return [f"{kind} *{self.name}"]
        if self.dtype.kind == "c":
            return [f"{kind} {self.name}_real", f"{kind} {self.name}_imag"]
        return [f"{kind} {self.name}"]


class Workspace(ctypes.Structure):
    """Memory for calls of one thread at a time: ``struct numgrad_workspace`` of the header.

    Attributes
    ----------
    memory, size
        Address and bytes.
    needed
        The most bytes that a call had in use so far; calls with more than ``size`` call ``malloc``.
    """

    _fields_ = (
        ("memory", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("needed", ctypes.c_int64),
    )
    memory: int
    size: int
    needed: int

    def __init__(self, size: int) -> None:
        self.buffer = np.empty(size, np.uint8)
        super().__init__(self.buffer.ctypes.data, size, 0)

    def __repr__(self) -> str:
        return f"Workspace(size={self.size}, needed={self.needed})"


class ExportedFunction:
    """A function of an exported library, which is called as the Python function was.

    Results must not overlap in memory with each other or with arguments. It is reentrant, runs in
    the thread that calls it, and stays as long as the process.

    Attributes
    ----------
    name
        Its name in C.
    address
        Where it is.
    inputs, outputs
        Names, dtypes and shapes of what goes in and comes out, in the order of the leaves of
        arguments and results.
    arguments
        The arguments of the C function.
    overwritten
        Names of those arrays that it overwrites, as the Python function does with donated ones.
    threads
        In how many threads its large loops run at most.
    """

    type_error: type[Exception] = TypeError
    value_error: type[Exception] = ValueError
    run_time_error: type[Exception] = RuntimeError

    def __init__(self, about: Mapping[str, Any], address: int, owner: Any = None) -> None:
        self.about, self.address, self.owner = about, address, owner
        self.name: str = about["name"]
        self.arguments = [
            CParameter(a["name"], np.dtype(a["dtype"]), a["role"], a["rank"])
            for a in about["arguments"]
        ]
        self.inputs, self.outputs = (
            [Port(p["name"], p["path"], np.dtype(p["dtype"]), p["shape"]) for p in about[word]]
            for word in ("inputs", "outputs")
        )
        self.threads: int = about["threads"]
        self.overwritten = frozenset([a.name for a in self.arguments if a.role == "inout"])

    # ---------------------------------------------------------------------------------- signature

    @property
    def declaration(self) -> str:
        """The declaration in C; the status that it returns is 0 or a key of ``messages``."""
        return f"int32_t {self.name}({self._c_parameters()});"

    def _c_parameters(self) -> str:
        given = [text for argument in self.arguments for text in argument.declarations()]
        return ", ".join(given) or "void"

    @property
    def messages(self) -> dict[int, str]:
        """Messages of statuses other than 0."""
        return dict(MESSAGES)

    @property
    def ctypes(self) -> Any:
        """The function for `ctypes`; pointers are addresses, such as ``x.ctypes.data``."""
        function = self.__dict__.get("_ctypes")
        if function is None:
            kinds: list[Any] = []
            for argument in self.arguments:
                one = ctypes.c_void_p if argument.is_pointer else _ctype(argument.dtype)
                several = argument.dtype.kind == "c" and not argument.is_pointer
                kinds += [one] * (2 if several else 1)
            function = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(self.address)
            function.owner = self  # pyright: ignore
            self._ctypes = function
        return function

    @property
    def cffi(self) -> Any:
        """The function for `cffi`, as a pointer."""
        try:
            import cffi  # pyright: ignore
        except ImportError as error:
            raise self.run_time_error("cffi: is not installed; pip install cffi") from error
        return cffi.FFI().cast(f"int32_t (*)({self._c_parameters()})", self.address)

    def __repr__(self) -> str:
        lines = [f"native {self.name}, {self.declaration}"]
        if self.threads > 1:
            lines.append(f"  large loops run in up to {self.threads} threads")
        if self.workspace_size is not None:
            lines.append(f"  needs {self.workspace_size} bytes of workspace for the examples")
        for word, ports in (("takes", self.inputs), ("gives", self.outputs)):
            for p in ports:
                does = "overwrites" if p.name in self.overwritten else word
                lines.append(f"  {does} {p.path}: {p.dtype} {p.extents}")
        fixed = [p.path for p in self.inputs if self._fixes(p)]
        if fixed:
            lines.append(f"  it was traced for these lengths of {', '.join(fixed)}, no others")
        return "\n".join(lines)

    def _fixes(self, port: Port) -> bool:
        """Whether lengths of an input that were to be free are numbers."""
        return self.about["free"] and any(n.isdigit() and int(n) > 1 for n in port.shape or ())

    # --------------------------------------------------------------------------------------- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute as the Python function does, with arrays of the dtypes of the examples."""
        arrays = self.checked(self._leaves(args, kwargs), self.inputs)
        status, results = self._computed(arrays)
        return self._failed(status, args, kwargs) if status else self._nested(results)

    def _computed(self, arrays: Sequence[Any], workspace: Any = None) -> tuple[int, list[Any]]:
        """The status of a call and its results."""
        lengths = self.lengths_of(arrays)
        results = [np.empty(o.shape_for(lengths), o.dtype) for o in self.outputs]
        return self.ctypes(*self._passed(arrays, lengths, results, workspace)), results

    def workspace(self, *args: Any, **kwargs: Any) -> Workspace:
        """A workspace of the size that a call with these arguments needs.

        Raises a TypeError unless the function was made with ``workspace=True``.
        """
        if all(a.role != "workspace" for a in self.arguments):
            raise self.type_error(f"{self.name}: has no workspace; make it with workspace=True")
        status, needed = self._bytes_for(self._leaves(args, kwargs))
        if status:
            self._failed(status, args, kwargs)
        return Workspace(needed)

    def _bytes_for(self, leaves: Sequence[Any]) -> tuple[int, int]:
        """The status of a call with copies of these, and how much memory it had in use."""
        arrays = [np.array(a) for a in self.checked(leaves, self.inputs)]
        query = Workspace(0)
        status, _ = self._computed(arrays, ctypes.addressof(query))
        return status, query.needed

    @cached_property
    def workspace_size(self) -> int | None:
        """Bytes that a call with the examples needs; None without a workspace."""
        return self.about.get("workspace")

    def _failed(self, status: int, args: Any, kwargs: Any) -> Any:
        raise self.run_time_error(f"{self.name}: {MESSAGES[status]}")

    def _leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Arrays and numbers among arguments that are nested as the examples."""
        names, star, more = (self.about[word] for word in ("positional", "star", "double_star"))
        expected, leaves = self.about["parameters"], []
        values = {k: v for k, v in kwargs.items() if not more or k in expected}
        twice = {*names[: len(args)]} & {*kwargs}
        values.update(zip(names, args, strict=False))
        if star:
            values[star] = tuple(args[len(names) :])
        if more:
            values[more] = {k: v for k, v in kwargs.items() if k not in expected}
        if twice or {*values} != {*expected} or (len(args) > len(names) and not star):
            raise self.type_error(
                f"{self.name}: takes {', '.join(expected) or 'nothing'}, got {len(args)} by "
                f"position and {', '.join(kwargs) or 'none'} by name"
            )
        for name, nesting in expected.items():
            self._align(nesting, values[name], leaves, name)
        return leaves

    def _align(self, nesting: Any, value: Any, leaves: list[Any], path: str) -> None:
        """Add the leaves of a value that is nested so."""
        if isinstance(nesting, str):  # a constant of the examples
            if nesting != "*" and repr(value) != nesting:
                raise self.value_error(
                    f"{self.name}: {path} is the constant {nesting} of the examples, not {value!r}"
                )
            if nesting == "*":
                leaves.append(value)
            return
        kind, keys, items = nesting["kind"], nesting.get("keys"), nesting["items"]
        if kind == "fields" and not isinstance(value, dict):
            value = {key: getattr(value, key) for key in keys if hasattr(value, key)}
        suits = isinstance(value, {"list": list, "tuple": tuple}.get(kind, dict))
        if not suits or {*(keys or range(len(items)))} != {*(value if keys else range(len(value)))}:
            raise self.type_error(f"{self.name}: {path} is nested otherwise than in the examples")
        for key, inner in zip(keys or range(len(items)), items, strict=True):
            self._align(inner, value[key], leaves, f"{path}[{key!r}]")

    def checked(self, leaves: Sequence[Any], ports: Sequence[Port]) -> list[Any]:
        """Arguments as contiguous arrays of the right dtypes."""
        if len(leaves) != len(ports):
            raise self.type_error(f"{self.name}: {len(leaves)} arrays and numbers, of {len(ports)}")
        arrays = []
        for port, leaf in zip(ports, leaves, strict=True):
            array, rank = np.asarray(leaf), len(port.shape or ())
            held = array.dtype == port.dtype
            if not held and not isinstance(leaf, np.ndarray) and array.dtype.kind in "biufc":
                held = np.can_cast(array.dtype, port.dtype, "same_kind")
                if held and array.dtype.kind in "biu" and port.dtype.kind in "iu":
                    limits = np.iinfo(port.dtype)
                    held = bool(np.all((array >= limits.min) & (array <= limits.max)))
            if array.ndim != rank or not held:
                seen = f"{leaf!r}" if array.ndim == 0 else f"of shape {array.shape}"
                raise self.type_error(
                    f"{self.name}: {port.path} is {seen}, of dtype {array.dtype} with "
                    f"{array.ndim} axes, in the examples of {port.dtype} with {rank}"
                )
            contiguous = np.array(array, port.dtype, order="C", copy=None)
            if port.name in self.overwritten and not (
                contiguous is leaf and contiguous.flags.writeable
            ):
                raise self.type_error(
                    f"{self.name}: {port.path} is overwritten; give a contiguous array that may be"
                )
            arrays.append(contiguous)
        return arrays

    def lengths_of(self, arrays: Sequence[Any]) -> dict[str, int]:
        """The arguments that are lengths; raises if shapes do not suit."""
        places = self.about["lengths"]
        lengths = {name: arrays[number].shape[axis] for name, (number, axis) in places.items()}
        for port, array in zip(self.inputs, arrays, strict=True):
            expected = port.shape_for(lengths)
            if array.shape != expected:
                hint = ", for which it was traced; make one for others" * self._fixes(port)
                raise self.value_error(
                    f"{self.name}: {port.path} has shape {array.shape}, expected {expected}{hint}"
                )
        for left, sign, right in self.about["relations"]:
            a, b = length_of(left, lengths), length_of(right, lengths)
            if not _SIGNS[sign](a, b):
                raise self.value_error(
                    f"{self.name}: {MESSAGES[1]}: {left} {sign} {right} does not hold for "
                    + ", ".join([f"{name} = {n}" for name, n in lengths.items()])
                )
        return lengths

    def _passed(
        self,
        arrays: Sequence[Any],
        lengths: Mapping[str, int],
        results: Sequence[Any],
        workspace: Any = None,
    ) -> list[Any]:
        """The arguments of the C function."""
        given, made = iter(arrays), iter(results)
        passed: list[Any] = []
        for argument in self.arguments:
            if argument.role == "length":
                passed.append(lengths[argument.name])
            elif argument.role == "result":
                passed.append(next(made).ctypes.data)
            elif argument.role == "workspace":
                passed.append(workspace)
            elif argument.is_pointer:
                passed.append(next(given).ctypes.data)
            else:
                value = next(given)[()]
                parts = (value.real, value.imag) if argument.dtype.kind == "c" else (value,)
                passed += [part.item() for part in parts]
        return passed

    def _numbers(self, results: Sequence[Any]) -> list[Any]:
        """Results as Python gets them: numbers of Python, of NumPy, arrays."""
        pairs = zip(self.about["outputs"], results, strict=True)
        return [a.item() if o["python"] else a if a.ndim else a[()] for o, a in pairs]

    def _nested(self, results: Sequence[Any]) -> Any:
        return _rebuilt(self.about["results"], iter(self._numbers(results)))


def _rebuilt(nesting: Any, leaves: Any) -> Any:
    if nesting == "*":
        return next(leaves)
    if "value" in nesting:
        return nesting["value"]
    items = [_rebuilt(item, leaves) for item in nesting["items"]]
    if nesting["kind"] in ("dict", "fields"):
        return dict(zip(nesting["keys"], items, strict=True))
    return items if nesting["kind"] == "list" else tuple(items)


def _ctype(dtype: np.dtype) -> Any:
    """The type of a number, or of one part of a complex one, for ctypes."""
    name = {"double": "double", "float": "float"}.get(c_type(dtype)) or c_type(dtype)[:-2]
    return getattr(ctypes, f"c_{name}")


class SharedLibrary:
    """A library that the system loads.

    The system takes a library of the same path for the one that it has loaded before, also where
    another file replaced it. So the number of the file is in the path, as ``/`` and ``/./``.
    """

    def __init__(self, path: str) -> None:
        if os.name == "posix":
            folder, name = os.path.split(path)
            bits = f"{os.stat(path).st_ino:b}".replace("1", "/./").replace("0", "/")
            path = f"{folder or '.'}{bits}{name}"
        self._handle = ctypes.CDLL(path)

    def address(self, symbol: str) -> int:
        """Where a function is."""
        return ctypes.cast(getattr(self._handle, symbol), ctypes.c_void_p).value or 0


class MappedImage:
    """A library that is copied to memory: Note [Images].

    Note [Images]
    -------------
    Where nothing links a library for the system, its code is in ELF all the same, with the system's
    calling convention (LLVM's own loader does the same on Windows). Addresses are offsets in
    the file: its bytes are copied to fresh memory, addresses of the C library's functions are
    entered, and instructions are made executable, when they are no longer written to.
    """

    def __init__(self, path: str, about: Mapping[str, Any]) -> None:
        with open(path, "rb") as file:
            content = file.read()
        self._exports, (code, size) = about["exports"], about["code"]
        is_windows = os.name == "nt"
        system = _windows() if is_windows else ctypes.CDLL(None)
        self._start = _windows_pages(len(content)) if is_windows else _pages(system, len(content))
        ctypes.memmove(self._start, content, len(content))
        for symbol, place in about["imports"].items():
            self._enter(place, _function(system, symbol))
        for place, offset in about["addresses"]:
            self._enter(place, self._start + offset)
        if is_windows:
            _windows_protect(self._start + code, size)
        else:
            _protect(system, self._start + code, size)

    def _enter(self, place: int, address: int) -> None:
        ctypes.c_uint64.from_address(self._start + place).value = address

    def address(self, symbol: str) -> int:
        """Where a function is."""
        return self._start + self._exports[symbol]


def _function(system: Any, symbol: str) -> int:
    """The address of a function of the C library or its mathematics."""
    for library in system if isinstance(system, list) else [system]:
        function = getattr(library, symbol, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise OSError(f"load_native: this system has no function {symbol}")


def _pages(system: Any, size: int) -> int:
    """Memory that may be read and written."""
    import mmap

    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start = system.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if start in (None, ctypes.c_void_p(-1).value):
        raise MemoryError("load_native: no memory")
    return start


def _protect(system: Any, start: int, size: int) -> None:
    """Make instructions executable, and no longer written."""
    import mmap

    system.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if system.mprotect(start, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError("load_native: this system lets no memory become executable")
    if hasattr(system, "sys_icache_invalidate"):  # on macOS
        system.sys_icache_invalidate(ctypes.c_void_p(start), ctypes.c_size_t(size))


def _windows() -> list[Any]:
    return [ctypes.cdll[name] for name in ("ucrtbase", "ntdll")]


def _windows_pages(size: int) -> int:
    allocate = ctypes.windll.kernel32.VirtualAlloc  # pyright: ignore
    allocate.restype = ctypes.c_void_p
    allocate.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint32]
    start = allocate(None, size, 0x3000, 4)  # MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE
    if not start:
        raise MemoryError("load_native: no memory")
    return start


def _windows_protect(start: int, size: int) -> None:
    protect = ctypes.windll.kernel32.VirtualProtect  # pyright: ignore
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_void_p]
    if not protect(start, size, 0x20, ctypes.byref(ctypes.c_uint32())):  # PAGE_EXECUTE_READ
        raise OSError("load_native: this system lets no memory become executable")


def _is_here(triple: str) -> bool:
    """Whether code of a system, in LLVM's words, runs here."""
    import platform

    system = {"darwin": "apple", "win32": "windows"}.get(sys.platform)
    system = system or sys.platform.rstrip("0123456789")
    arms = ("arm64", "aarch64")
    is_arm = platform.machine().lower() in arms
    return system in triple and is_arm == triple.startswith(arms)


def loaded(
    about: Mapping[str, Any], folder: str, kind: type[ExportedFunction] = ExportedFunction
) -> dict[str, Any]:
    """The functions of a library with that description, which lies in a folder."""
    name, image = about["library"], about.get("image", {})
    if not _is_here(about["target"]["triple"]):
        raise kind.value_error(
            f"load_native: {about['name']} was exported for {about['target']['triple']}, and this "
            "system is another one"
        )
    path = os.path.join(folder, name or image["file"])
    with open(path, "rb") as file:
        content = file.read()
    is_whole = content[:4] != b"\x7fELF" or len(content) > int.from_bytes(content[40:48], "little")
    if not is_whole or bytes.fromhex(about["build"]) not in content[:4096]:
        raise kind.value_error(
            f"load_native: {path} is not the file that its description was written with; export "
            "both again"
        )
    library = SharedLibrary(path) if name else MappedImage(path, image)
    return {
        name: kind(described, library.address(name), library)
        for name, described in about["functions"].items()
    }
