"""Shared libraries in ELF of one relocatable object, without a linker.

Note [Link editing]
-------------------
Whoever calls exported code from Python may have no linker, and an object of LLVM whose symbols are
all its own needs little of one (Levine, Linkers and Loaders, 2000; System V ABI, chapters 4 and 5;
its supplements for x86-64 and AArch64): sections are laid out in three segments, read, executed and
written; references between them are relative and are resolved here; calls of the C library go
through a stub and an entry of the global offset table, which the loader fills. Addresses are
offsets in the file, so that the file as it stands is the image in memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from numgrad.errors import NumgradNotImplementedError

X86_64, AARCH64 = 62, 183
_READ, _WRITE, _RUN = 4, 2, 1
_ALLOC, _WRITABLE, _EXECUTED = 2, 1, 4  # flags of sections
_PROGBITS, _SYMTAB, _STRTAB, _RELA, _HASH, _DYNAMIC, _NOTE = 1, 2, 3, 4, 5, 6, 7
_NOBITS, _DYNSYM = 8, 11
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM, _SECTION = struct.Struct("<IIQQQQQQ"), struct.Struct("<IIQQQQIIQQ")
_SYMBOL, _RELOCATION = struct.Struct("<IBBHQQ"), struct.Struct("<QQq")
_PROGRAMS, _ID = 6, 20
_ID_AT = _HEADER.size + _PROGRAMS * _PROGRAM.size + 16
"""Where the build ID is, of so many bytes, behind the head of its note."""
_GLOB_DAT = {X86_64: 6, AARCH64: 1025}
_RELATIVE = {X86_64: 8, AARCH64: 1027}
_PAGE = {X86_64: 0x1000, AARCH64: 0x10000}


class ElfSection(NamedTuple):
    """A section of an object."""

    name: str
    kind: int
    flags: int
    content: bytes
    size: int
    link: int
    info: int
    align: int


class ElfSymbol(NamedTuple):
    """A symbol of an object; section 0 has what is defined elsewhere."""

    name: str
    is_global: bool
    section: int
    value: int


def _text(strings: bytes, start: int) -> str:
    return strings[start : strings.index(b"\0", start)].decode()


class ElfObject:
    """A relocatable object: sections, symbols, relocations."""

    def __init__(self, data: bytes) -> None:
        if data[:4] != b"\x7fELF":
            raise ValueError("no ELF object")
        self.digest = sha256(data).digest()[:_ID]
        fields = _HEADER.unpack_from(data)
        self.machine: int = fields[2]
        start, size, count, names = fields[6], fields[11], fields[12], fields[13]
        raw = [_SECTION.unpack_from(data, start + k * size) for k in range(count)]
        strings = data[raw[names][4] : raw[names][4] + raw[names][5]]
        self.sections = [
            ElfSection(
                _text(strings, r[0]), r[1], r[2],
                b"" if r[1] == _NOBITS else data[r[4] : r[4] + r[5]], r[5], r[6], r[7], r[8],
            )
            for r in raw
        ]  # fmt: skip
        self.symbols: list[ElfSymbol] = []
        for section in self.sections:
            if section.kind == _SYMTAB:
                texts = self.sections[section.link].content
                for name, info, _, home, value, _ in _SYMBOL.iter_unpack(section.content):
                    self.symbols.append(ElfSymbol(_text(texts, name), info >> 4 != 0, home, value))

    def relocations(self) -> Iterator[tuple[int, int, int, ElfSymbol, int]]:
        """Section, offset, kind, symbol and addend of each in a section that is loaded."""
        for section in self.sections:
            if section.kind == _RELA and self.sections[section.info].flags & _ALLOC:
                for offset, info, addend in _RELOCATION.iter_unpack(section.content):
                    yield section.info, offset, info & 0xFFFFFFFF, self.symbols[info >> 32], addend

    @property
    def imports(self) -> list[str]:
        """Symbols that others define."""
        return sorted(s.name for s in self.symbols if s.is_global and not s.section and s.name)


def shared_library(
    data: bytes, name: str, exports: Sequence[str], libraries: Sequence[str]
) -> bytes:
    """A shared library made of an object: Note [Link editing].

    Parameters
    ----------
    name
        Its name for the loader.
    exports
        The symbols that others may use.
    libraries
        Names of the libraries that have what the object needs.
    """
    return _Linker(ElfObject(data), name, exports, libraries).link()


def build_id(content: bytes) -> bytes:
    """The number of a library of ours, which stays when it is stripped; empty for others."""
    return content[_ID_AT : _ID_AT + _ID] if content[:4] == b"\x7fELF" else b""


class Image(NamedTuple):
    """A library that is copied to memory as it stands, for systems whose loader reads no ELF.

    Attributes
    ----------
    content
        The bytes.
    code
        Where instructions begin, and how many bytes they are.
    exports, imports
        Offsets of functions, and of the places where addresses of imported ones belong.
    addresses
        Offsets of places where the address of an offset belongs, and that offset.
    """

    content: bytes
    code: tuple[int, int]
    exports: dict[str, int]
    imports: dict[str, int]
    addresses: list[tuple[int, int]]


def memory_image(data: bytes, exports: Sequence[str]) -> Image:
    """The image of an object that is loaded by copying it."""
    linker = _Linker(ElfObject(data), "image", exports, ())
    content = linker.link()
    defined = {s.name: linker.address(s) for s in linker.obj.symbols if s.is_global and s.section}
    offsets = {name: defined[name] for name in exports}
    return Image(content, linker.code, offsets, linker.table, linker.relative)


class _Linker:
    def __init__(
        self, obj: ElfObject, name: str, exports: Sequence[str], libraries: Sequence[str]
    ) -> None:
        self.obj, self.machine = obj, obj.machine
        self.page = _PAGE[obj.machine]
        self.image = bytearray()
        self.imports = obj.imports
        self.exports = exports
        self.libraries, self.name = libraries, name
        self.places: dict[int, int] = {}
        """Addresses of the object's sections."""
        self.relative: list[tuple[int, int]] = []
        self.code = (0, 0)
        """Where instructions are, and their bytes."""
        self.headers: list[tuple[str, int, int, int, int, int, int, int, int]] = []

    # ------------------------------------------------------------------------------------ layout

    def _align(self, size: int) -> int:
        self.image += bytes(-len(self.image) % size)
        return len(self.image)

    def _put(self, content: bytes, align: int = 8) -> int:
        start = self._align(align)
        self.image += content
        return start

    def _record(
        self,
        name: str,
        kind: int,
        flags: int,
        start: int,
        link: int = 0,
        info: int = 0,
        size: int = 0,
    ) -> None:
        """Note the header of a section that ends here."""
        length = len(self.image) - start
        self.headers.append((name, kind, flags, start, start, length, link, info, size))

    def _put_sections(self, flags: int) -> None:
        """Sections of the object with these flags, other than what no program reads."""
        for number, section in enumerate(self.obj.sections):
            kinds = (_PROGBITS, _NOBITS)
            if section.flags & 7 == flags | _ALLOC and section.kind in kinds and section.size:
                content = section.content or bytes(section.size)
                self.places[number] = self._put(content, max(1, section.align))

    def link(self) -> bytes:
        """The library."""
        strings, offsets = self._strings()
        count = 1 + len(self.imports) + len(self.exports)
        self.image += bytes(_HEADER.size + _PROGRAMS * _PROGRAM.size)
        note = self._put(struct.pack("<III", 4, _ID, 3) + b"GNU\0" + self.obj.digest)
        self._record(".note.gnu.build-id", _NOTE, _ALLOC, note)
        noted = len(self.image) - note
        start = self._put(bytes(_SYMBOL.size * count))
        symbols = start
        self._record(".dynsym", _DYNSYM, _ALLOC, start, link=3, info=1, size=_SYMBOL.size)
        texts = self._put(strings)
        self._record(".dynstr", _STRTAB, _ALLOC, texts)
        table = self._put(self._hash())
        self._record(".hash", _HASH, _ALLOC, table, link=2, size=4)
        relative = sum(1 for _ in self._absolute())
        relocations = self._put(bytes(_RELOCATION.size * (len(self.imports) + relative)))
        self._record(".rela.dyn", _RELA, _ALLOC, relocations, link=2, size=_RELOCATION.size)
        start = self._align(64)
        self._put_sections(0)
        self._record(".rodata", _PROGBITS, _ALLOC, start)
        read_end = len(self.image)
        run = self._align(self.page)
        self._put_sections(_EXECUTED)
        stubs = self._put(bytes(16 * len(self.imports)), 16)
        self.stubs = {name: stubs + 16 * k for k, name in enumerate(self.imports)}
        self._record(".text", _PROGBITS, _ALLOC | _EXECUTED, run)
        text_header, run_end = len(self.headers), len(self.image)
        self.code = run, run_end - run
        written = self._align(self.page)
        dynamic = self._put(bytes(16 * (10 + len(self.libraries))))
        self._record(".dynamic", _DYNAMIC, _ALLOC | _WRITABLE, dynamic, link=3, size=16)
        offset_table = self._put(bytes(8 * len(self.imports)))
        self.table = {name: offset_table + 8 * k for k, name in enumerate(self.imports)}
        self._record(".got", _PROGBITS, _ALLOC | _WRITABLE, offset_table, size=8)
        start = self._align(64)
        self._put_sections(_WRITABLE)
        self._record(".data", _PROGBITS, _ALLOC | _WRITABLE, start)
        end = len(self.image)
        self._resolve()
        self._write_symbols(symbols, offsets, text_header)
        self._write_relocations(relocations)
        fixed = [(1, offsets[x]) for x in self.libraries] + [(14, offsets[self.name])]
        fixed += [(4, table), (5, texts), (6, symbols), (10, len(strings)), (11, _SYMBOL.size)]
        length = _RELOCATION.size * (len(self.imports) + relative)
        fixed += [(7, relocations), (8, length), (9, _RELOCATION.size), (0, 0)]
        for k, pair in enumerate(fixed):
            struct.pack_into("<QQ", self.image, dynamic + 16 * k, *pair)
        page, kept = self.page, 16 * len(fixed)
        programs = [
            (1, _READ, 0, read_end, page),
            (1, _READ | _RUN, run, run_end - run, page),
            (1, _READ | _WRITE, written, end - written, page),
            (2, _READ | _WRITE, dynamic, kept, 8),
            (4, _READ, note, noted, 4),
            (0x6474E551, _READ | _WRITE, 0, 0, 16),  # that no stack is executed
        ]
        for k, (kind, flags, place, size, align) in enumerate(programs):
            entry = _PROGRAM.pack(kind, flags, place, place, place, size, size, align)
            at = _HEADER.size + k * _PROGRAM.size
            self.image[at : at + _PROGRAM.size] = entry
        self._write_headers(len(programs))
        return bytes(self.image)

    # ------------------------------------------------------------------------------------- tables

    def _strings(self) -> tuple[bytes, dict[str, int]]:
        strings, offsets = bytearray(b"\0"), {}
        for name in (*self.imports, *self.exports, *self.libraries, self.name):
            offsets[name] = len(strings)
            strings += name.encode() + b"\0"
        return bytes(strings), offsets

    def _hash(self) -> bytes:
        """The table by which a loader finds symbols: buckets of chains."""
        names = [*self.imports, *self.exports]
        buckets, chains = [0] * len(names), [0] * (len(names) + 1)
        for number, name in enumerate(names, 1):
            value = 0
            for byte in name.encode():
                value = (value << 4) + byte
                high = value & 0xF0000000
                value = (value ^ (high >> 24)) & ~high
            bucket = value % len(names)
            chains[number], buckets[bucket] = buckets[bucket], number
        return struct.pack(
            f"<{2 + len(buckets) + len(chains)}I", len(buckets), len(chains), *buckets, *chains
        )

    def _write_symbols(self, start: int, offsets: dict[str, int], home: int) -> None:
        defined = {s.name: self.address(s) for s in self.obj.symbols if s.is_global and s.section}
        entries = [_SYMBOL.pack(0, 0, 0, 0, 0, 0)]
        entries += [_SYMBOL.pack(offsets[name], 0x12, 0, 0, 0, 0) for name in self.imports]
        for name in self.exports:
            entries.append(_SYMBOL.pack(offsets[name], 0x12, 0, home, defined[name], 0))
        whole = b"".join(entries)
        self.image[start : start + len(whole)] = whole

    def _write_relocations(self, start: int) -> None:
        entries = [
            _RELOCATION.pack(self.table[name], number << 32 | _GLOB_DAT[self.machine], 0)
            for number, name in enumerate(self.imports, 1)
        ]
        entries += [
            _RELOCATION.pack(place, _RELATIVE[self.machine], value)
            for place, value in self.relative
        ]
        whole = b"".join(entries)
        self.image[start : start + len(whole)] = whole

    def _write_headers(self, programs: int) -> None:
        names = bytearray(b"\0")
        entries = [bytes(_SECTION.size)]
        strings = len(self.image)
        for name, kind, flags, place, address, length, link, info, size in self.headers:
            align = 64 if kind == _PROGBITS and not size else 4 if kind == _NOTE else 8
            entries.append(
                _SECTION.pack(
                    len(names), kind, flags, address, place, length, link, info, align, size
                )
            )
            names += name.encode() + b"\0"
        own = len(names)
        names += b".shstrtab\0"
        self.image += names
        entries.append(_SECTION.pack(own, _STRTAB, 0, 0, strings, len(names), 0, 0, 1, 0))
        start = self._put(b"".join(entries))
        identity = b"\x7fELF\x02\x01\x01" + bytes(9)
        self.image[: _HEADER.size] = _HEADER.pack(
            identity, 3, self.machine, 1, 0, _HEADER.size, start, 0, _HEADER.size, _PROGRAM.size,
            programs, _SECTION.size, len(entries), len(entries) - 1,
        )  # fmt: skip

    # -------------------------------------------------------------------------------- relocations

    def address(self, symbol: ElfSymbol) -> int:
        """Where a symbol of the object is."""
        return self.places[symbol.section] + symbol.value

    def _absolute(self) -> Iterator[None]:
        """The addresses in memory of the object, which the loader completes."""
        for _, _, kind, _, _ in self.obj.relocations():
            if (self.machine, kind) in ((X86_64, 1), (AARCH64, 257)):
                yield None

    def _resolve(self) -> None:
        for number, offset, kind, symbol, addend in self.obj.relocations():
            if number not in self.places:
                continue
            here = self.places[number] + offset
            is_import = not symbol.section and symbol.is_global
            if (self.machine, kind) in ((X86_64, 1), (AARCH64, 257)):
                if is_import or not self.obj.sections[number].flags & _WRITABLE:
                    self._refuse(kind, symbol)
                self.relative.append((here, self.address(symbol) + addend))
                continue
            write = self._x86 if self.machine == X86_64 else self._arm
            write(here, kind, symbol, addend, is_import)
        for name, stub in self.stubs.items():
            self._write_stub(stub, self.table[name])

    def _refuse(self, kind: int, symbol: ElfSymbol) -> None:
        raise NumgradNotImplementedError(
            f"export: relocation {kind} of {symbol.name or 'a section'} has no form in a shared "
            "library; link the object by a linker"
        )

    def _x86(self, here: int, kind: int, symbol: ElfSymbol, addend: int, is_import: bool) -> None:
        if kind in (9, 41, 42) and is_import:  # by the global offset table
            target = self.table[symbol.name]
        elif kind in (2, 4):  # relative, calls
            target = self.stubs[symbol.name] if is_import else self.address(symbol)
        else:
            return self._refuse(kind, symbol)
        struct.pack_into("<i", self.image, here, target + addend - here)
        return None

    def _arm(self, here: int, kind: int, symbol: ElfSymbol, addend: int, is_import: bool) -> None:
        if kind in (311, 312):
            if not is_import:
                self._refuse(kind, symbol)
            target = self.table[symbol.name]
        else:
            target = self.stubs[symbol.name] if is_import else self.address(symbol)
        target += addend
        scales = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4, 312: 3}
        (word,) = struct.unpack_from("<I", self.image, here)
        if kind in (282, 283):  # a branch, a call
            word |= ((target - here) >> 2) & 0x3FFFFFF
        elif kind in (275, 311):
            word |= _page_distance(target, here)
        elif kind in scales:  # the offset in a page
            word |= ((target & 0xFFF) >> scales[kind]) << 10
        elif kind == 260:
            struct.pack_into("<q", self.image, here, target - here)
            return
        elif kind == 261:
            word = (target - here) & 0xFFFFFFFF
        else:
            self._refuse(kind, symbol)
        struct.pack_into("<I", self.image, here, word)

    def _write_stub(self, stub: int, entry: int) -> None:
        """A jump to the address in an entry of the table."""
        if self.machine == X86_64:
            code = b"\xff\x25" + struct.pack("<i", entry - stub - 6)
        else:  # adrp x16; ldr x17, [x16]; br x17
            first = 0x90000010 | _page_distance(entry, stub)
            second = 0xF9400211 | ((entry & 0xFFF) >> 3) << 10
            code = struct.pack("<III", first, second, 0xD61F0220)
        self.image[stub : stub + len(code)] = code


def _page_distance(target: int, here: int) -> int:
    """The bits of an ``adrp`` for the distance of pages."""
    distance = ((target >> 12) - (here >> 12)) & 0x1FFFFF
    return (distance & 3) << 29 | (distance >> 2) << 5
