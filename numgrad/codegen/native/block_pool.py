"""Pool of large blocks of memory that kernels and large arrays share: LLVM IR for ``machine``.

Note [Pool of large blocks]
---------------------------
glibc asks the system for each block above 32 MB anew (Note [Freed memory] in ``codegen.memory``),
and the system fetches its pages when they are first written: for 80 MB 65 ms of CPU time in pages
of 4 kB and 13 in pages of 2 MB, where writing takes 3 to 5. So blocks from ``LARGE`` bytes on, of
kernels and of arrays (Note [Leases] there), are kept when they are freed, up to
``config.pool_bytes`` in all, and taken again for sizes that are at most a fifth less. On Linux they
have large pages, for which NumPy asks too. Blocks that nobody took between two sweeps go back to
the system (Note [Sweeps] there). PyTorch's caching allocator for CUDA does the same, jemalloc too
with pages that decay.

A slot of the pool holds a block or null and changes by one atomic exchange, so neither threads nor
forks wait for a lock. Who takes a block owns it while it looks at its size; another thread that
finds the slot empty meanwhile takes memory of its own. Before its data a block has ``{malloc's
address, sweep before which it was given, bytes}``.

Note [Memory of kernels]
------------------------
A kernel has a slot for each array of its own, null at first. ``allocate(slot, bytes, zero)`` frees
what the slot holds and returns memory that begins with a line of the cache, ``grow(slot, bytes,
used)`` moves what a growing vector holds; both return null where there is no memory.
``release(slots, count)`` frees all. A slot holds malloc's address, or, with its lowest bit set,
that of a block.

Tried in its place: glibc without ``mmap`` (``M_MMAP_MAX``) gives nothing back that lies below a
block in use; ``MADV_FREE`` instead of sweeps takes 4 of the 9 ms in pages of 4 kB.
"""

import re
from collections.abc import Callable
from typing import Any

LARGE = 1 << 25
"""Bytes from which on blocks come from the pool; glibc keeps smaller ones itself."""
on_load: list[Callable[[dict[str, int]], None]] = []
"""Called with the addresses of the pool's functions when it has been loaded."""
_OWNED = {
    "allocate": ("ptr", ["ptr", "i64", "i64"]),
    "grow": ("ptr", ["ptr", "i64", "i64"]),
    "release": ("void", ["ptr", "i64"]),
}
SYMBOLS = {f"numgrad_{name}": name for name in _OWNED}
"""The linker's names of what kernels call, and the pool's."""


def declare_memory(module: Any, name: str) -> str:
    """A function for memory that a kernel owns: Note [Memory of kernels]."""
    return module.declare(f"numgrad_{name}", *_OWNED[name])


_SLOTS = 16
_ROUNDED = 1 << 21  # a large page
_LARGE_PAGES = """\
  %number = ptrtoint ptr %data to i64
  %above = add i64 %number, 4095
  %first = and i64 %above, -4096
  %end = add i64 %number, %bytes
  %length = sub i64 %end, %first
  %page = inttoptr i64 %first to ptr
  %ignored = call i32 @madvise(ptr %page, i64 %length, i32 14)
"""

_POOL = """\
declare noalias ptr @malloc(i64)
declare noalias ptr @calloc(i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare ptr @realloc(ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

@slots = private global [{slots} x ptr] zeroinitializer, align 64
; bytes in the pool, the most of them, sweeps so far
@counts = private global [3 x i64] zeroinitializer, align 64

define ptr @block_counts() #0 {{
  ret ptr @counts
}}

define private void @drop(ptr %data) #0 {{
  %bytes_at = getelementptr i64, ptr %data, i64 -1
  %bytes = load i64, ptr %bytes_at
  %less = atomicrmw sub ptr @counts, i64 %bytes monotonic
  %raw_at = getelementptr i64, ptr %data, i64 -3
  %raw = load ptr, ptr %raw_at
  call void @free(ptr %raw)
  ret void
}}

define private void @put_back(ptr %slot, ptr %data) #0 {{
  %pair = cmpxchg ptr %slot, ptr null, ptr %data acq_rel monotonic
  %done = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %done, label %end, label %full
full:
  call void @drop(ptr %data)
  br label %end
end:
  ret void
}}

; frees blocks given before a sweep while more than so many bytes are kept
define void @trim_blocks(i64 %before, i64 %most) #0 {{
entry:
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %next, %further ]
  %kept = load atomic i64, ptr @counts monotonic, align 8
  %over = icmp sgt i64 %kept, %most
  br i1 %over, label %open, label %end
open:
  %slot = getelementptr ptr, ptr @slots, i64 %k
  %data = atomicrmw xchg ptr %slot, ptr null acq_rel
  %none = icmp eq ptr %data, null
  br i1 %none, label %further, label %judge
judge:
  %sweep_at = getelementptr i64, ptr %data, i64 -2
  %sweep = load i64, ptr %sweep_at
  %old = icmp slt i64 %sweep, %before
  br i1 %old, label %away, label %stay
away:
  call void @drop(ptr %data)
  br label %further
stay:
  call void @put_back(ptr %slot, ptr %data)
  br label %further
further:
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, {slots}
  br i1 %more, label %look, label %end
end:
  ret void
}}

define ptr @take_block(i64 %size, i64 %zero) #0 {{
entry:
  %sum = add i64 %size, {round_up}
  %bytes = and i64 %sum, -{rounded}
  %quarter = lshr i64 %bytes, 2
  %longest = add i64 %bytes, %quarter
  %zeros = icmp ne i64 %zero, 0
  %kept = load atomic i64, ptr @counts monotonic, align 8
  %some = icmp sge i64 %kept, %bytes
  br i1 %some, label %look, label %fresh
look:
  %k = phi i64 [ 0, %entry ], [ %next, %further ]
  %slot = getelementptr ptr, ptr @slots, i64 %k
  %seen = load atomic ptr, ptr %slot monotonic, align 8
  %vacant = icmp eq ptr %seen, null
  br i1 %vacant, label %further, label %open
open:
  %block = atomicrmw xchg ptr %slot, ptr null acq_rel
  %none = icmp eq ptr %block, null
  br i1 %none, label %further, label %judge
judge:
  %has_at = getelementptr i64, ptr %block, i64 -1
  %has = load i64, ptr %has_at
  %enough = icmp sge i64 %has, %bytes
  %near = icmp sle i64 %has, %longest
  %fits = and i1 %enough, %near
  br i1 %fits, label %taken, label %other
other:
  call void @put_back(ptr %slot, ptr %block)
  br label %further
further:
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, {slots}
  br i1 %more, label %look, label %fresh
taken:
  %less = atomicrmw sub ptr @counts, i64 %has monotonic
  br i1 %zeros, label %clear, label %given
clear:
  call void @llvm.memset.p0.i64(ptr %block, i8 0, i64 %size, i1 false)
  br label %given
given:
  ret ptr %block
fresh:
  %room = add i64 %bytes, 128
  br label %ask
ask:
  %again = phi i1 [ false, %fresh ], [ true, %lacking ]
  br i1 %zeros, label %ask_zeros, label %ask_any
ask_zeros:
  %raw_zeros = call ptr @calloc(i64 %room, i64 1)
  br label %asked
ask_any:
  %raw_any = call ptr @malloc(i64 %room)
  br label %asked
asked:
  %raw = phi ptr [ %raw_zeros, %ask_zeros ], [ %raw_any, %ask_any ]
  %lacks = icmp eq ptr %raw, null
  br i1 %lacks, label %lack, label %lay
lack:
  br i1 %again, label %fail, label %lacking
lacking:
  call void @trim_blocks(i64 {ever}, i64 0)
  br label %ask
fail:
  ret ptr null
lay:
  %place = ptrtoint ptr %raw to i64
  %beyond = add i64 %place, {head}
  %aligned = and i64 %beyond, -64
  %data = inttoptr i64 %aligned to ptr
  %raw_at = getelementptr i64, ptr %data, i64 -3
  store ptr %raw, ptr %raw_at
  %bytes_at = getelementptr i64, ptr %data, i64 -1
  store i64 %bytes, ptr %bytes_at
{advise}  ret ptr %data
}}

define void @give_block(ptr %data) #0 {{
entry:
  %bytes_at = getelementptr i64, ptr %data, i64 -1
  %bytes = load i64, ptr %bytes_at
  %before = atomicrmw add ptr @counts, i64 %bytes monotonic
  %kept = add i64 %before, %bytes
  %most = load atomic i64, ptr getelementptr (i64, ptr @counts, i64 1) monotonic, align 8
  %huge = icmp sgt i64 %bytes, %most
  br i1 %huge, label %drop, label %stamp
stamp:
  %sweep = load atomic i64, ptr getelementptr (i64, ptr @counts, i64 2) monotonic, align 8
  %sweep_at = getelementptr i64, ptr %data, i64 -2
  store i64 %sweep, ptr %sweep_at
  %over = icmp sgt i64 %kept, %most
  br i1 %over, label %trim, label %look
trim:
  call void @trim_blocks(i64 {ever}, i64 %most)
  br label %look
look:
  %k = phi i64 [ 0, %stamp ], [ 0, %trim ], [ %next, %further ]
  %slot = getelementptr ptr, ptr @slots, i64 %k
  %pair = cmpxchg ptr %slot, ptr null, ptr %data acq_rel monotonic
  %done = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %done, label %end, label %further
further:
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, {slots}
  br i1 %more, label %look, label %drop
drop:
  call void @drop(ptr %data)
  br label %end
end:
  ret void
}}

define ptr @allocate(ptr %slot, i64 %size, i64 %zero) #0 {{
entry:
  call void @release(ptr %slot, i64 1)
  %large = icmp uge i64 %size, {large}
  br i1 %large, label %block, label %small
block:
  %data = call ptr @take_block(i64 %size, i64 %zero)
  %lacks = icmp eq ptr %data, null
  %marked = getelementptr i8, ptr %data, i64 1
  %held = select i1 %lacks, ptr null, ptr %marked
  store ptr %held, ptr %slot
  ret ptr %data
small:
  %room = add i64 %size, 64
  %zeros = icmp ne i64 %zero, 0
  br i1 %zeros, label %clear, label %any
clear:
  %cleared = call ptr @calloc(i64 %room, i64 1)
  br label %align
any:
  %memory = call ptr @malloc(i64 %room)
  br label %align
align:
  %raw = phi ptr [ %cleared, %clear ], [ %memory, %any ]
  store ptr %raw, ptr %slot
  %none = icmp eq ptr %raw, null
  %number = ptrtoint ptr %raw to i64
  %beyond = and i64 %number, 63
  %skip = sub i64 64, %beyond
  %first = getelementptr i8, ptr %raw, i64 %skip
  %start = select i1 %none, ptr null, ptr %first
  ret ptr %start
}}

define ptr @grow(ptr %slot, i64 %size, i64 %used) #0 {{
entry:
  %large = icmp uge i64 %size, {large}
  %old = load ptr, ptr %slot
  br i1 %large, label %block, label %small
block:
  %data = call ptr @take_block(i64 %size, i64 0)
  %lacks = icmp eq ptr %data, null
  br i1 %lacks, label %fail, label %move
fail:
  ret ptr null
move:
  %number = ptrtoint ptr %old to i64
  %even = and i64 %number, -2
  %from = inttoptr i64 %even to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %data, ptr %from, i64 %used, i1 false)
  call void @release(ptr %slot, i64 1)
  %marked = getelementptr i8, ptr %data, i64 1
  store ptr %marked, ptr %slot
  ret ptr %data
small:
  %new = call ptr @realloc(ptr %old, i64 %size)
  %none = icmp eq ptr %new, null
  br i1 %none, label %fail, label %hold
hold:
  store ptr %new, ptr %slot
  ret ptr %new
}}

define void @release(ptr %slots, i64 %count) #0 {{
entry:
  br label %each
each:
  %k = phi i64 [ 0, %entry ], [ %next, %done ]
  %slot = getelementptr ptr, ptr %slots, i64 %k
  %memory = load ptr, ptr %slot
  store ptr null, ptr %slot
  %number = ptrtoint ptr %memory to i64
  %odd = and i64 %number, 1
  %pooled = icmp ne i64 %odd, 0
  br i1 %pooled, label %give, label %free
give:
  %data = getelementptr i8, ptr %memory, i64 -1
  call void @give_block(ptr %data)
  br label %done
free:
  call void @free(ptr %memory)
  br label %done
done:
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %each, label %end
end:
  ret void
}}
"""


def exported_pool(linux: bool) -> str:
    """The pool of an exported library, which keeps nothing, since nobody sweeps it."""
    return re.sub(
        r"@(\w+_blocks?|block_counts|allocate|grow|release)\b", r"@numgrad_\1", pool_text(linux)
    )


def pool_text(linux: bool) -> str:
    """The pool's LLVM IR."""
    text = _POOL.format(
        slots=_SLOTS, rounded=_ROUNDED, round_up=_ROUNDED - 1, ever=(1 << 63) - 1, head=24 + 63,
        large=LARGE, advise=_LARGE_PAGES if linux else "",
    )  # fmt: skip
    return text if linux else text.replace("declare i32 @madvise(ptr, i64, i32)\n", "")
