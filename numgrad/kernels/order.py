"""The stable order of a row of numbers.

Note [Windows of keys]
----------------------
A number has a key, an integer of 64 bits that orders as it does: of floats the bit pattern, turned
round where negative, that of zero for both zeros and the largest for every NaN. Keys are shifted
until the first bit in which any two differ is in front, and a place takes the bits at the end that
places need. These pairs are sorted by the four bytes in front, the last first, each time into 256
heaps that keep the order. Mostly these bytes tell the numbers apart. Where they do not, a run of
pairs is left whose keys differ in at most 32 lower bits: a short one is sorted by insertion, for
which the bits that a pair has mostly do, a long one by bytes as before.

Threads share the row in pieces, whose heaps follow each other: the stable order of keys is one, so
it does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from numgrad import config
from numgrad.codegen import threads
from numgrad.codegen.compile import Kernel, compile_kernel
from numgrad.codegen.dtypes import short, type_name

LEAST = 1024
"""Numbers from which on this is faster than sorting by comparisons."""
SHORT = 32
"""The longest run that is sorted by insertion."""
_ELEMENT_NS = 15.0

_KEYS = {
    "float64": """
    v = bits(x + 0.0)
    return select(x != x, int64(LARGEST), v ^ ((v >> 63) & LARGEST))
""",
    "float32": """
    v = int64(bits(x + float32(0.0)))
    return select(x != x, int64(LARGEST), (v ^ ((v >> 63) & 0x7FFFFFFF)) << 32)
""",
    "int64": """
    return x
""",
    "int32": """
    return int64(x) << 32
""",
    "uint64": """
    return int64(x) ^ SMALLEST
""",
    "uint32": """
    return (int64(x) << 32) ^ SMALLEST
""",
}
"""What a number's key is, as a signed integer."""

_SOURCE = """
import numpy as np
from numba import float32, int64, prange
from numgrad.codegen.device import outlined, device
from numgrad.codegen.intrinsics import bits, select

LARGEST = 0x7FFFFFFFFFFFFFFF
SMALLEST = -0x8000000000000000

@device
def key(x):{key}

@outlined
def is_after(x, a, b, places):
    if (a ^ b) & ~places != 0:
        return a > b
    return key(x[a & places]) > key(x[b & places])

@outlined
def insert(x, pairs, places):
    for k in range(1, pairs.size):
        pair = pairs[k]
        j = k
        while j > 0 and is_after(x, pairs[j - 1], pair, places):
            pairs[j] = pairs[j - 1]
            j -= 1
        pairs[j] = pair

@outlined
def sort_by_bytes(x, pairs, spare, shifted, places):
    ends = np.zeros(256, np.int64)
    for k in range(pairs.size):
        place = pairs[k] & places
        pairs[k] = (key(x[place]) << (shifted + 32)) | place
    for byte in range(4):
        shift = 32 + 8 * byte
        for d in range(256):
            ends[d] = 0
        for k in range(pairs.size):
            ends[(pairs[k] >> shift) & 255] += 1
        total = 0
        for d in range(256):
            count = ends[d]
            ends[d] = total
            total += count
        for k in range(pairs.size):
            pair = pairs[k]
            d = (pair >> shift) & 255
            at = ends[d]
            ends[d] = at + 1
            spare[at] = pair
        for k in range(pairs.size):
            pairs[k] = spare[k]

def kernel(x, out, memory, heaps, differ):
    n, pieces = x.size, differ.size
    length = -(-n // pieces)
    first = key(x[0])
    for task in {range}(pieces):
        t = int64(task)
        found = 0
        for k in range(t * length, min(n, t * length + length)):
            found = found | (key(x[k]) ^ first)
        differ[t] = found
    unlike = 0
    for t in range(pieces):
        unlike = unlike | differ[t]
    top = 63
    while top > 0 and (unlike >> top) & 1 == 0:
        top -= 1
    shifted = 63 - top
    unlike = unlike << shifted
    places = 1
    while places < n - 1:
        places = 2 * places + 1
    for task in {range}(pieces):
        t = int64(task)
        for k in range(t * length, min(n, t * length + length)):
            memory[k] = (((key(x[k]) ^ SMALLEST) << shifted) & ~places) | k
    start = 0
    for byte in range(4):
        shift = 32 + 8 * byte
        if (unlike >> shift) & 255 != 0:
            for task in {range}(pieces):
                t = int64(task)
                heap = heaps[t * 256 : t * 256 + 256]
                pairs = memory[start : start + n]
                for d in range(256):
                    heap[d] = 0
                for k in range(t * length, min(n, t * length + length)):
                    heap[(pairs[k] >> shift) & 255] += 1
            total = 0
            for d in range(256):
                for t in range(pieces):
                    count = heaps[t * 256 + d]
                    heaps[t * 256 + d] = total
                    total += count
            for task in {range}(pieces):
                t = int64(task)
                heap = heaps[t * 256 : t * 256 + 256]
                pairs = memory[start : start + n]
                sorted_pairs = memory[n - start : n - start + n]
                for k in range(t * length, min(n, t * length + length)):
                    pair = pairs[k]
                    d = (pair >> shift) & 255
                    at = heap[d]
                    heap[d] = at + 1
                    sorted_pairs[at] = pair
            start = n - start
    rest = unlike & 0xFFFFFFFF
    for task in {range}(pieces):
        t = int64(task)
        pairs = memory[start : start + n]
        k = t * length
        stop = min(n, k + length)
        if rest == 0:
            for j in range(k, stop):
                out[j] = pairs[j] & places
            k = stop
        while k > 0 and k < stop and pairs[k] >> 32 == pairs[k - 1] >> 32:
            k += 1  # of a run that the piece before sees to
        while k < stop:
            window = pairs[k] >> 32
            end = k + 1
            while end < n and pairs[end] >> 32 == window:
                end += 1
            if end - k > {short}:
                spare = memory[n - start + k : n - start + end]
                sort_by_bytes(x, pairs[k:end], spare, shifted, places)
            elif end - k > 1:
                insert(x, pairs[k:end], places)
            for j in range(k, end):
                out[j] = pairs[j] & places
            k = end
"""


@cache
def _kernel(dtype: np.dtype, parallel: bool) -> Kernel:
    return compile_kernel(
        f"stable_order_{short(dtype)}{'_p' if parallel else ''}",
        _SOURCE.format(range="prange" if parallel else "range", key=_KEYS[dtype.name], short=SHORT),
        f"void({type_name(dtype)}[::1], int64[::1], int64[::1], int64[::1], int64[::1])",
        parallel=parallel,
    )


def can_order(dtype: np.dtype, count: int) -> bool:
    """Whether ``stable_order`` takes a row, and is the fastest way."""
    return dtype.isnative and dtype.name in _KEYS and LEAST <= count <= 1 << 32


def stable_order(x: np.ndarray, out: np.ndarray) -> None:
    """Places of the elements of a contiguous row in order, NaN last, equal ones as they stand."""

    def entry(parallel: bool) -> Callable[..., None]:
        return _kernel(x.dtype, parallel).entry

    n = x.size
    pieces = max(1, min(config.get_num_threads(), n // LEAST))
    run = threads.choose(partial(entry, False), partial(entry, True), n * _ELEMENT_NS)
    memory, heaps = np.empty(2 * n, np.int64), np.empty(256 * pieces, np.int64)
    run(x, out, memory, heaps, np.empty(pieces, np.int64))
