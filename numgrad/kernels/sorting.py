"""Kernels that sort rows of numbers, order them stably, and search in sorted ones.

Note [Binary search of blocks]
------------------------------
Numbers are searched for a block at a time, the least and the greatest first; all others lie
between, so numbers in order take few steps. A step is the same for the whole block: no branch is
guessed wrong, and reads do not wait for each other.

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

Note [Halves]
-------------
The copy of a long row that is sorted is made in two halves, numbers below a pivot from its front on
and the others from its end; the pivot is the median of some. Halves are sorted at the same time,
and for more threads halved again by NumPy's partition. The numbers are those of one sort, but two
kinds have several bit patterns: which zeros have a sign and which bits a NaN has would depend on
the halves (NumPy's own sort takes or gives signs of equal zeros). Negative zeros are therefore put
before the others, as many as there were, and NaNs are the usual one.
"""

from collections.abc import Callable
from functools import cache, partial
from threading import Thread

import numpy as np

from numgrad import config
from numgrad.codegen import threads
from numgrad.codegen.accumulation import larger, maximum, minimum, smaller
from numgrad.codegen.compile import Kernel, compile_kernel
from numgrad.codegen.device import device, outlined
from numgrad.codegen.dtypes import short, type_name
from numgrad.codegen.intrinsics import select

BLOCK = 64
"""Numbers searched for together."""


@device
def is_before(a, v, right):
    """Whether an element stands before the place of a number, NaN being last."""
    below = (a < v) | ((v != v) & (a == a))
    return below | (right & ((a == v) | (v != v)))


@outlined
def place_of(a, v, right):
    """How many elements of a sorted row stand before the place of a number."""
    first = 0
    last = a.size
    while first < last:
        middle = (first + last) // 2
        if is_before(a[middle], v, right):
            first = middle + 1
        else:
            last = middle
    return first


@outlined
def bisect(a, v, positions, first, last, right):
    """Places of numbers, all of them between two known places."""
    for i in range(v.size):
        positions[i] = first
    count = last - first
    while count > 0:
        half = (count + 1) // 2
        for i in range(v.size):
            p = positions[i]
            positions[i] = select(is_before(a[p + half - 1], v[i], right), p + half, p)
        count -= half
    return 0


@outlined
def places_of_floats(a, v, positions, right):
    """Places of a row of floats in a sorted one: Note [Binary search of blocks]."""
    for lo in range(0, v.size, BLOCK):
        hi = min(lo + BLOCK, v.size)
        some = v[lo:hi]
        least, most = some[0], some[0]
        for i in range(some.size):
            least = minimum(least, some[i])
        for i in range(some.size):
            most = maximum(most, some[i])
        first, last = 0, a.size
        if least == least:  # without NaN
            first, last = place_of(a, least, right), place_of(a, most, right)
        bisect(a, some, positions[lo:hi], first, last, right)
    return 0


@outlined
def places_of_integers(a, v, positions, right):
    """The same of integers."""
    for lo in range(0, v.size, BLOCK):
        hi = min(lo + BLOCK, v.size)
        some = v[lo:hi]
        least, most = some[0], some[0]
        for i in range(some.size):
            least = smaller(least, some[i])
        for i in range(some.size):
            most = larger(most, some[i])
        first, last = place_of(a, least, right), place_of(a, most, right)
        bisect(a, some, positions[lo:hi], first, last, right)
    return 0


LEAST_KEYS = 1024
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
"""The key of a number, as a signed integer."""

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
        mask = 0
        for k in range(t * length, min(n, t * length + length)):
            mask = mask | (key(x[k]) ^ first)
        differ[t] = mask
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
    return dtype.isnative and dtype.name in _KEYS and LEAST_KEYS <= count <= 1 << 32


def stable_order(x: np.ndarray, out: np.ndarray) -> None:
    """Places of the elements of a contiguous row in order, NaN last, equal ones as they stand."""

    def entry(parallel: bool) -> Callable[..., None]:
        return _kernel(x.dtype, parallel).entry

    n = x.size
    pieces = max(1, min(config.get_num_threads(), n // LEAST_KEYS))
    run = threads.choose(partial(entry, False), partial(entry, True), n * _ELEMENT_NS)
    memory, heaps = np.empty(2 * n, np.int64), np.empty(256 * pieces, np.int64)
    run(x, out, memory, heaps, np.empty(pieces, np.int64))


LEAST = 1 << 17
"""Numbers, at least, that a thread sorts: to start it takes as long as sorting some thousands."""
_SAMPLE = 1024

_HALVES = """
from numgrad.codegen.intrinsics import select

def kernel(x, out, pivot):
    front, end, middle = 0, x.size - 1, pivot[0]
    for k in range(x.size):
        v = x[k]
        out[front] = v  # to both, one of which is written over
        out[end] = v
        below = v < middle
        front += select(below, 1, 0)
        end -= select(below, 0, 1)
    return front
"""


@cache
def _halves(dtype: np.dtype) -> Callable[..., int]:
    row = f"{type_name(dtype)}[::1]"
    name = f"halves_{short(dtype)}"
    return compile_kernel(name, _HALVES, f"int64({row}, {row}, {row})").entry


def sorted_rows(x: np.ndarray) -> np.ndarray:
    """A contiguous copy of real numbers, ``2 * LEAST`` at least, in order along the last axis."""
    pieces = min(config.get_num_threads(), x.size // LEAST)
    length = x.shape[-1]
    if length < x.size:
        out = np.array(x, order="C")
        _sort_rows(out.reshape(-1, length), pieces)
        return out
    row = np.ascontiguousarray(x).reshape(-1)
    out = _sorted_row(row, pieces)
    if out.dtype.kind == "f":
        _settle(out, row)
    return out.reshape(x.shape)


def _sorted_row(row: np.ndarray, pieces: int) -> np.ndarray:
    """Note [Halves]."""
    if pieces < 2 or row.dtype.itemsize < 4 or not row.dtype.isnative:
        return np.sort(row)
    some = np.sort(row[:: row.size // _SAMPLE])
    lower = pieces // 2
    pivot = some.size * lower // pieces
    out = np.empty_like(row)
    middle = _halves(row.dtype)(row, out, some[pivot : pivot + 1])
    _at_once(
        lambda: _sort_parts(out[:middle], lower), lambda: _sort_parts(out[middle:], pieces - lower)
    )
    return out


def _sort_parts(row: np.ndarray, pieces: int) -> None:
    """Sort a row in place."""
    pieces = min(pieces, row.size // LEAST)
    if pieces < 2:
        row.sort()
        return
    lower = pieces // 2
    middle = row.size * lower // pieces
    row.partition(middle)
    _at_once(
        lambda: _sort_parts(row[:middle], lower), lambda: _sort_parts(row[middle:], pieces - lower)
    )


def _sort_rows(rows: np.ndarray, pieces: int) -> None:
    """Sort each of several rows in place."""
    if pieces < 2 or len(rows) < 2:
        rows.sort(axis=-1)
        return
    lower = pieces // 2
    middle = len(rows) * lower // pieces
    _at_once(
        lambda: _sort_rows(rows[:middle], lower), lambda: _sort_rows(rows[middle:], pieces - lower)
    )


def _at_once(one: Callable[[], None], other: Callable[[], None]) -> None:
    """Do two things that let go of the interpreter's lock, the first in a thread of its own.

    If that has not begun when the second is done, since other processes use the cores, the first
    is done here too.
    """
    waiting = [one]

    def take() -> None:
        try:
            work = waiting.pop()
        except IndexError:
            return
        work()

    thread = Thread(target=take)
    thread.start()
    try:
        other()
        take()
    finally:
        thread.join()


def _settle(row: np.ndarray, x: np.ndarray) -> None:
    """Give the zeros and NaNs of a sorted row bits that depend on the unsorted one alone."""
    first, end = np.searchsorted(row, 0.0, "left"), np.searchsorted(row, 0.0, "right")
    if end - first > 1:
        negative = np.count_nonzero(np.signbit(x) & (x == 0))
        row[first : first + negative] = -0.0
        row[first + negative : end] = 0.0
    if row[-1] != row[-1]:
        row[np.searchsorted(row, np.nan) :] = np.nan


PIECE = 4096
"""Numbers that a thread takes at a time."""
_STEP_NS = 1.0

_SEARCH = """
from numba import int64, prange
from numgrad.kernels.sorting import {function}

def kernel(a, v, places, right):
    for task in {range}(-(-v.size // {piece})):
        lo = int64(task) * {piece}
        hi = min(lo + {piece}, v.size)
        {function}(a, v[lo:hi], places[lo:hi], right)
"""


@cache
def _search_kernel(dtype: np.dtype, parallel: bool) -> Callable[..., None]:
    row = f"{type_name(dtype)}[::1]"
    function = "places_of_floats" if dtype.kind == "f" else "places_of_integers"
    return compile_kernel(
        f"search_{short(dtype)}{'_p' if parallel else ''}",
        _SEARCH.format(range="prange" if parallel else "range", piece=PIECE, function=function),
        f"void({row}, {row}, int64[::1], boolean)",
        parallel=parallel,
    ).entry


def places(a: np.ndarray, v: np.ndarray, right: bool) -> np.ndarray:
    """How many elements of a sorted row stand before each number, both of one real dtype."""
    kernel = partial(_search_kernel, a.dtype)
    result = np.empty(v.shape, np.int64)
    steps = a.size.bit_length() + 2
    run = threads.choose(partial(kernel, False), partial(kernel, True), v.size * steps * _STEP_NS)
    run(np.ascontiguousarray(a), np.ascontiguousarray(v).ravel(), result.ravel(), right)
    return result
