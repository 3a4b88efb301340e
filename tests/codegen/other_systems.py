"""Code generation for another system: ``python -m tests.codegen.other_systems TARGET [NAME...]``.

With ``translated`` for the target, and dtypes for names, kernels are translated and not compiled.

Everything that this process compiles is compiled for the target and looked at, nothing is run. It
prints, as JSON, how many modules were compiled, how many of them let LLVM choose the order of a
sum, which kernels the compiler refused, and which symbols their objects need from outside.
"""

import json
import os
import struct
import sys
import tempfile
from typing import Any, NamedTuple

from llvmlite import binding


class Target(NamedTuple):
    triple: str
    cpu: str
    features: str


TARGETS = {
    "win64": Target("x86_64-pc-windows-msvc", "haswell", "+avx,+avx2,+fma,+sse4.2"),
    "arm64-linux": Target("aarch64-unknown-linux-gnu", "neoverse-n1", ""),
    "arm64-macos": Target("arm64-apple-darwin", "apple-m1", ""),
    "x86-64-plain": Target("x86_64-unknown-linux-gnu", "nehalem", "+sse4.2,-avx,-fma"),
}
"""What the sweep compiles for; LLVM's names, as in NUMBA_CPU_NAME and NUMBA_CPU_FEATURES."""


def undefined(code: bytes) -> set[str]:
    """The symbols that an object file of ELF, COFF or Mach-O needs from outside."""
    if code[:4] == b"\x7fELF":
        return _undefined_elf(code)
    if code[:4] == b"\xcf\xfa\xed\xfe":
        return {name.removeprefix("_") for name in _undefined_macho(code)}
    return _undefined_coff(code)


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()


def _undefined_elf(code: bytes) -> set[str]:
    (sections,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections + k * size) for k in range(count)]
    names = set()
    for header in headers:
        if header[1] == 2:  # SHT_SYMTAB
            strings = headers[header[6]][4]
            for at in range(header[4] + 24, header[4] + header[5], 24):
                name, _, _, section = struct.unpack_from("<IBBH", code, at)
                if section == 0:
                    names.add(_text(code, strings + name))
    return names


def _undefined_coff(code: bytes) -> set[str]:
    first, sections, _, table, count = struct.unpack_from("<HHIII", code)
    size, section_at = 18, 12
    if (first, sections) == (0, 0xFFFF):  # many sections
        table, count = struct.unpack_from("<II", code, 48)
        size, section_at = 20, 12
    names, at, strings = set(), table, table + count * size
    while at < strings:
        kind = "<ihBB" if size == 18 else "<iiHB"
        section = struct.unpack_from(kind, code, at + section_at - 4)[1]
        storage, auxiliary = code[at + size - 2], code[at + size - 1]
        if section == 0 and storage == 2:  # undefined, external
            zeros, offset = struct.unpack_from("<II", code, at)
            short = code[at : at + 8].rstrip(b"\0")
            names.add(short.decode() if zeros else _text(code, strings + offset))
        at += size * (1 + auxiliary)
    return names


def _undefined_macho(code: bytes) -> set[str]:
    names, at = set(), 32
    for _ in range(struct.unpack_from("<I", code, 16)[0]):
        command, size = struct.unpack_from("<II", code, at)
        if command == 2:  # LC_SYMTAB
            table, count, strings, _ = struct.unpack_from("<IIII", code, at + 8)
            for k in range(count):
                name, kind, section, _, _ = struct.unpack_from("<IBBHQ", code, table + 16 * k)
                if kind & 0x0F == 1 and section == 0:  # undefined, external
                    names.add(_text(code, strings + name))
        at += size
    return names


def _pretend(target: Target | None) -> dict[str, Any]:
    """Compile for ``target`` from now on, load nothing; where it is written what came up.

    Without a target kernels are only translated.
    """
    report: dict[str, Any] = {"modules": 0, "any_order": 0, "refused": {}, "symbols": set()}
    if target is not None:
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        binding.get_process_triple = lambda: target.triple

    from numgrad.codegen import compile as compiling
    from numgrad.codegen.native import machine
    from numgrad.codegen.native.kernel import NativeCode

    def new_machine(effort: int, name: str, features: str) -> Any:
        made = binding.Target.from_triple(target.triple)
        reloc = "static" if made.name.startswith("x86") else "default"
        return made.create_target_machine(
            cpu=name, features=features, opt=effort, reloc=reloc, codemodel="jitdefault", jit=True
        )

    def count(text: str, unique: str, **options: Any) -> bytes:
        report["modules"] += 1
        return b""

    def look(text: str, unique: str, **options: Any) -> bytes:
        payload = compile_ir(text, unique, **options)
        size = machine._HEADER.size + machine._HEADER.unpack_from(payload)[0]
        *_, sizes = payload[machine._HEADER.size : size].decode().split("\n")
        for length in map(int, sizes.split()):
            names = undefined(payload[size : size + length])
            report["symbols"] |= {name for name in names if not name.endswith(unique)}
            size += length
        report["modules"] += 1
        report["any_order"] += "reassoc" in text
        return payload

    def refuse(kernel: Any, *_: Any) -> Any:
        report["refused"][kernel.name] = kernel.numba_reason
        kernel.entry = kernel.code = lambda *_: None
        return kernel

    compile_ir, machine.compile_ir = machine.compile_ir, count if target is None else look
    if target is not None:
        machine._new_machine = new_machine
    machine.load = lambda payload: dict.fromkeys(machine.EXPORTS, 0)
    NativeCode.load = lambda self, payload: lambda *_: None
    NativeCode.address = property(lambda self: 0)  # pyright: ignore
    compiling._hosted = refuse
    return report


def main(name: str, *operations: str) -> None:
    if name == "translated":
        with tempfile.TemporaryDirectory() as os.environ["NUMGRAD_CACHE_DIR"]:
            print(json.dumps(_compile(None, (), operations)))
        return
    target = TARGETS[name]
    os.environ.update(NUMBA_CPU_NAME=target.cpu, NUMBA_CPU_FEATURES=target.features)
    with tempfile.TemporaryDirectory() as os.environ["NUMGRAD_CACHE_DIR"]:
        print(json.dumps(_compile(target, operations)))


DTYPES = ("float64", "float32", "complex128", "complex64")


def _compile(
    target: Target | None, operations: tuple[str, ...], dtypes: tuple[str, ...] = DTYPES
) -> dict[str, Any]:
    report = _pretend(target)

    from numgrad.core.op import OPS
    from numgrad.nn import operations as _  # noqa: F401 (completes the table)
    from numgrad.operations.lazy_operations import declare_all

    declare_all()
    for operation in operations or OPS:
        for dtype in dtypes:
            list(OPS[operation].warm(dtype))
    return {**report, "symbols": sorted(report["symbols"])}


if __name__ == "__main__":
    main(*sys.argv[1:])
