"""The safetensors format: named arrays behind a JSON header.

Eight bytes say how long the header is, little-endian; the header gives for each name dtype, shape
and place of its data, and strings under ``__metadata__``; the data follow without gaps:
https://huggingface.co/docs/safetensors. A reader need not trust a file, since every number in the
header is checked before it is used.
"""

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from typing import Any, BinaryIO

import numpy as np

from numgrad.errors import NumgradValueError

DTYPES = {
    "BOOL": np.dtype("?"),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "C64": np.dtype("<c8"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def _brain(bits: np.ndarray) -> np.ndarray:
    """Numbers as float32 whose upper halves (bfloat16) are given."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _small(exponent: int, mantissa: int, bias: int, infinite: bool) -> np.ndarray:
    """The float32 of each of the 256 numbers that a sign, an exponent and a mantissa make."""
    code = np.arange(256)
    fraction = code & ((1 << mantissa) - 1)
    power = code >> mantissa & ((1 << exponent) - 1)
    value = np.where(
        power == 0,
        np.ldexp(fraction.astype(float), 1 - bias - mantissa),
        np.ldexp(fraction + 2.0**mantissa, power - bias - mantissa),
    )
    last = (1 << exponent) - 1
    if infinite:
        value[power == last] = np.where(fraction[power == last] == 0, np.inf, np.nan)
    else:  # one NaN of each sign, and no infinity
        value[(power == last) & (fraction == (1 << mantissa) - 1)] = np.nan
    return np.where(code < 128, value, -value).astype(np.float32)


WIDENED: dict[str, tuple[np.dtype, Callable[[np.ndarray], np.ndarray]]] = {
    "BF16": (np.dtype("<u2"), _brain),
    "F8_E4M3": (np.dtype("u1"), lambda codes: _small(4, 3, 7, False)[codes]),
    "F8_E5M2": (np.dtype("u1"), lambda codes: _small(5, 2, 15, True)[codes]),
}
"""Formats of numbers that NumPy lacks, as what they are read and what that means in float32."""

LONGEST_HEADER = 100_000_000
"""Bytes of a header, at most; the reference implementation reads no longer ones."""

_METADATA = "__metadata__"
_DIGEST = "digest"


class Damage(Exception):
    """Error that says which file is wrong, and how."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Arrays and strings by name, and whether they are those that ``dump`` wrote."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, str]
    signed: bool = True


def dump(
    arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]
) -> Iterator[bytes | memoryview]:
    """The bytes of a file, in pieces; dtypes are those of ``NAMES`` in any byte order.

    A digest of everything is put beside the metadata, which ``load`` compares.

    Raises
    ------
    NumgradValueError
        If the header is longer than readers of the format accept.
    """
    # Large items first, so that all data are aligned to their items.
    order = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    entries: dict[str, Any] = {}
    offset = 0
    for name in order:
        array = arrays[name]
        entries[name] = {
            "dtype": NAMES[array.dtype.newbyteorder("<")],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    hashed = _hash(entries, metadata)
    for name in order:
        hashed.update(_data(arrays[name]))
    header = {_METADATA: {**metadata, _DIGEST: hashed.hexdigest()}, **entries}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise NumgradValueError(
            f"save: names, structure and numbers take {len(text)} bytes, and the header of the "
            f"format holds {LONGEST_HEADER}; put numbers into arrays"
        )
    yield len(text).to_bytes(8, "little")
    yield text
    for name in order:
        yield _data(arrays[name])


def _data(array: np.ndarray) -> memoryview:
    """The elements in row-major, little-endian order."""
    flat = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
    return (_bools(flat) if array.dtype.kind == "b" else flat).data


def _bools(data: np.ndarray) -> np.ndarray:
    """Bytes of bools with 1 for all that are not 0, such as a view of others may have."""
    return np.minimum(data, 1) if data.size and data.max() > 1 else data


def _hash(entries: dict[str, Any], metadata: Mapping[str, str]) -> Any:
    """A digest in the making, of the header so far."""
    try:
        text = json.dumps([entries, dict(metadata)], sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise Damage("its header is not laid out as the format says") from None
    return blake2b(text.encode(), digest_size=32)


def load(file: BinaryIO, signed: Callable[[Mapping[str, str]], bool]) -> Contents:
    """Read a file of the format, from where ``file`` stands to its end.

    Parameters
    ----------
    signed
        Whether metadata are of what ``dump`` wrote, so that there is a digest to compare.

    Raises
    ------
    Damage
        If anything is not as it was written, or not as the format says.
    """
    file, size = measured(file)
    if size < 8:
        raise Damage(f"it has {size} bytes, and the length of the header alone takes 8")
    length = int.from_bytes(_read(file, 8), "little")
    if not 2 <= length <= LONGEST_HEADER:
        raise Damage(f"the length of its header would be {length} bytes: it is of another format")
    if length > size - 8:
        raise Damage(f"its header of {length} bytes is cut off after {size - 8}")
    entries, metadata = _parse(_read(file, length))
    extents = _extents(entries, size - 8 - length)
    ours = signed(metadata)
    digest = metadata.pop(_DIGEST, None) if ours else None
    if ours and digest is None:
        raise Damage("it has no digest of its content, as a file that ng.save wrote has")
    hashed = _hash(entries, metadata) if ours else None
    arrays = {}
    for name, extent in extents.items():
        data = np.empty(extent.count, np.uint8)
        _read_into(file, data.data)
        if hashed is not None:
            hashed.update(data)
        arrays[name] = extent.array(data)
    if hashed is not None and hashed.hexdigest() != digest:
        raise Damage("its content does not have the digest that was written with it")
    return Contents(arrays, metadata, ours)


def measured(file: BinaryIO) -> tuple[BinaryIO, int]:
    """A file and how many bytes are left in it; one that cannot tell is read into memory."""
    try:
        here = file.tell()
        size = file.seek(0, os.SEEK_END) - here
        file.seek(here)
    except (AttributeError, OSError):
        content = file.read()
        return io.BytesIO(content), len(content)
    return file, size


@dataclass(frozen=True, slots=True)
class _Extent:
    """Dtype, shape and place of an array: ``count`` bytes from ``start`` on."""

    kind: str
    shape: tuple[int, ...]
    start: int
    count: int

    def array(self, data: np.ndarray) -> np.ndarray:
        """The array that its bytes mean."""
        if self.kind in WIDENED:
            dtype, widened = WIDENED[self.kind]
            return widened(data.view(dtype)).reshape(self.shape)
        dtype = DTYPES[self.kind]
        data = _bools(data) if dtype.kind == "b" else data
        array = data.view(dtype).reshape(self.shape)
        return array.astype(dtype.newbyteorder("="), copy=False)


def _parse(text: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        header = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise Damage(f"its header is no JSON ({error})") from None
    metadata = header.pop(_METADATA, {}) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise Damage("its header is not laid out as the format says")
    return header, metadata


def _extents(entries: dict[str, Any], size: int) -> dict[str, _Extent]:
    """Where the arrays are, by name, in the order of the data, which they must fill."""
    extents = {name: _extent(name, entry) for name, entry in entries.items()}
    ordered = sorted(extents.items(), key=lambda item: (item[1].start, item[1].count))
    expected = 0
    for name, extent in ordered:
        if extent.start != expected:
            raise Damage(f"the data of {name!r} begin at {extent.start}, not at {expected}")
        expected += extent.count
    if expected != size:
        state = "is cut off" if expected > size else "goes on"
        raise Damage(f"its data take {expected} bytes, but the file {state} after {size}")
    return dict(ordered)


def _extent(name: str, entry: Any) -> _Extent:
    try:
        kind = entry["dtype"]
        shape = tuple(entry["shape"])
        start, stop = entry["data_offsets"]
        dtype = WIDENED[kind][0] if kind in WIDENED else DTYPES.get(kind)
    except (KeyError, TypeError, ValueError):
        raise Damage(f"the header does not describe the array {name!r} as it should") from None
    if dtype is None:
        raise Damage(
            f"the array {name!r} has dtype {str(kind)[:20]}, which is not read here; known are "
            f"{', '.join([*DTYPES, *WIDENED])}"
        )
    possible = all(type(n) is int and 0 <= n < 2**63 for n in (*shape, start, stop))
    # NumPy also counts the bytes of an array without elements, as if it had one along such axes
    if not possible or len(shape) > 64 or prod(n or 1 for n in shape) * 4 * dtype.itemsize >= 2**63:
        raise Damage(f"the array {name!r} has no possible shape or place in its header")
    if stop - start != prod(shape) * dtype.itemsize:
        raise Damage(f"the array {name!r} of shape {shape} does not take {stop - start} bytes")
    return _Extent(kind, shape, start, stop - start)


def _read(file: BinaryIO, count: int) -> bytes:
    data = bytearray(count)
    _read_into(file, memoryview(data))
    return bytes(data)


def _read_into(file: BinaryIO, buffer: memoryview) -> None:
    """Fill ``buffer``, in as many steps as the file needs."""
    filled = 0
    while filled < len(buffer):
        chunk = file.read(min(len(buffer) - filled, 1 << 24))
        if not chunk:
            raise Damage("it became shorter while it was read")
        buffer[filled : filled + len(chunk)] = chunk
        filled += len(chunk)
