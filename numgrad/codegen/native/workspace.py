"""Memory that a caller gives to a native function, from which its kernels take theirs.

Note [Workspaces]
-----------------
A function with a workspace takes the address of ``{address, bytes, needed}``, or null. Memory comes
from there in the order of a stack: a function notes how much is in use when it begins, and puts
that back when it returns, as region allocators do (Hanson, 1990). What goes beyond the bytes comes
from ``malloc``, so calls with any workspace, or none, compute the same; ``needed`` grows to the
most that a call had in use, whatever it was given. So a first call tells the size, as LAPACK's
queries do, and while ``needed`` is at most ``bytes`` nothing has been allocated.

Kernels get a context, ``{failed, start, bytes, in use, most in use}``, as the address at which they
report failure, in the slot before their first one. A block has ``{bytes, malloc's address or
null}`` before it, and a slot of the kernel holds its address; behind the slots of a function lies
what was in use when it began. Blocks begin with lines of the cache.
"""

from __future__ import annotations

OF_WORKSPACE = {
    "allocate": "workspace.reserve",
    "grow": "workspace.regrow",
    "release": "workspace.give_back",
}
"""Functions that kernels call in place of those of the pool (``block_pool``)."""
WITH_WORKSPACE = "_with_workspace"
"""End of the symbols of kernels that others call, where they take the context."""
CONTEXT_OF_SLOTS = """\
  %workspace_at = getelementptr i64, ptr %slots, i64 -1
  %workspace = load ptr, ptr %workspace_at"""

WORKSPACE = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define private void @workspace.begin(ptr %context, ptr %workspace) #0 {
  store [5 x i64] zeroinitializer, ptr %context
  %none = icmp eq ptr %workspace, null
  br i1 %none, label %end, label %given
given:
  %address = load i64, ptr %workspace
  %above = add i64 %address, 63
  %start = and i64 %above, -64
  %bytes_at = getelementptr i64, ptr %workspace, i64 1
  %bytes = load i64, ptr %bytes_at
  %skipped = sub i64 %start, %address
  %left = sub i64 %bytes, %skipped
  %start_at = getelementptr i64, ptr %context, i64 1
  store i64 %start, ptr %start_at
  %left_at = getelementptr i64, ptr %context, i64 2
  store i64 %left, ptr %left_at
  br label %end
end:
  ret void
}

define private void @workspace.end(ptr %context, ptr %workspace) #0 {
  %none = icmp eq ptr %workspace, null
  br i1 %none, label %end, label %given
given:
  %most_at = getelementptr i64, ptr %context, i64 4
  %most = load i64, ptr %most_at
  %any = icmp ne i64 %most, 0
  %aligned = add i64 %most, 63
  %own = select i1 %any, i64 %aligned, i64 0
  %needed_at = getelementptr i64, ptr %workspace, i64 2
  %before = load i64, ptr %needed_at
  %more = icmp sgt i64 %own, %before
  %needed = select i1 %more, i64 %own, i64 %before
  store i64 %needed, ptr %needed_at
  br label %end
end:
  ret void
}

; what is in use goes behind so many slots, which are null
define private void @workspace.mark(ptr %slots, i64 %count, ptr %context) #0 {
  %used_at = getelementptr i64, ptr %context, i64 3
  %used = load i64, ptr %used_at
  %mark_at = getelementptr i64, ptr %slots, i64 %count
  store i64 %used, ptr %mark_at
  ret void
}

define private ptr @workspace.reserve(ptr %slot, i64 %size, i64 %zero, ptr %context) #0 {
entry:
  %old = load ptr, ptr %slot
  %vacant = icmp eq ptr %old, null
  br i1 %vacant, label %take, label %look
look:
  %has_at = getelementptr i64, ptr %old, i64 -2
  %has = load i64, ptr %has_at
  %enough = icmp sge i64 %has, %size
  br i1 %enough, label %fill, label %drop
drop:
  %old_raw_at = getelementptr i64, ptr %old, i64 -1
  %old_raw = load ptr, ptr %old_raw_at
  call void @free(ptr %old_raw)
  store ptr null, ptr %slot
  br label %take
take:
  %sum = add i64 %size, 63
  %bytes = and i64 %sum, -64
  %whole = add i64 %bytes, 64
  %used_at = getelementptr i64, ptr %context, i64 3
  %used = load i64, ptr %used_at
  %after = add i64 %used, %whole
  store i64 %after, ptr %used_at
  %most_at = getelementptr i64, ptr %context, i64 4
  %most = load i64, ptr %most_at
  %more = icmp sgt i64 %after, %most
  %peak = select i1 %more, i64 %after, i64 %most
  store i64 %peak, ptr %most_at
  %start_at = getelementptr i64, ptr %context, i64 1
  %start = load i64, ptr %start_at
  %limit_at = getelementptr i64, ptr %context, i64 2
  %limit = load i64, ptr %limit_at
  %fits = icmp sle i64 %after, %limit
  br i1 %fits, label %inside, label %beyond
inside:
  %own = add i64 %start, %used
  br label %lay
beyond:
  %room = add i64 %whole, 64
  %raw = call ptr @malloc(i64 %room)
  %lacks = icmp eq ptr %raw, null
  br i1 %lacks, label %fail, label %align
fail:
  ret ptr null
align:
  %number = ptrtoint ptr %raw to i64
  %above = add i64 %number, 63
  %even = and i64 %above, -64
  br label %lay
lay:
  %first = phi i64 [ %own, %inside ], [ %even, %align ]
  %owner = phi ptr [ null, %inside ], [ %raw, %align ]
  %data_number = add i64 %first, 64
  %data = inttoptr i64 %data_number to ptr
  %bytes_at = getelementptr i64, ptr %data, i64 -2
  store i64 %bytes, ptr %bytes_at
  %raw_at = getelementptr i64, ptr %data, i64 -1
  store ptr %owner, ptr %raw_at
  store ptr %data, ptr %slot
  br label %fill
fill:
  %block = phi ptr [ %old, %look ], [ %data, %lay ]
  %zeros = icmp ne i64 %zero, 0
  br i1 %zeros, label %clear, label %end
clear:
  call void @llvm.memset.p0.i64(ptr %block, i8 0, i64 %size, i1 false)
  br label %end
end:
  ret ptr %block
}

define private ptr @workspace.regrow(ptr %slot, i64 %size, i64 %used, ptr %context) #0 {
entry:
  %old = load ptr, ptr %slot
  store ptr null, ptr %slot
  %new = call ptr @workspace.reserve(ptr %slot, i64 %size, i64 0, ptr %context)
  %lacks = icmp eq ptr %new, null
  br i1 %lacks, label %fail, label %move
fail:
  store ptr %old, ptr %slot
  ret ptr null
move:
  %vacant = icmp eq ptr %old, null
  br i1 %vacant, label %end, label %copy
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %used, i1 false)
  %raw_at = getelementptr i64, ptr %old, i64 -1
  %raw = load ptr, ptr %raw_at
  call void @free(ptr %raw)
  br label %end
end:
  ret ptr %new
}

define private void @workspace.give_back(ptr %slots, i64 %count, ptr %context) #0 {
entry:
  br label %each
each:
  %k = phi i64 [ 0, %entry ], [ %next, %done ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %look, label %end
look:
  %slot = getelementptr ptr, ptr %slots, i64 %k
  %data = load ptr, ptr %slot
  %vacant = icmp eq ptr %data, null
  br i1 %vacant, label %done, label %release
release:
  %raw_at = getelementptr i64, ptr %data, i64 -1
  %raw = load ptr, ptr %raw_at
  call void @free(ptr %raw)
  br label %done
done:
  %next = add i64 %k, 1
  br label %each
end:
  %mark_at = getelementptr i64, ptr %slots, i64 %count
  %mark = load i64, ptr %mark_at
  %used_at = getelementptr i64, ptr %context, i64 3
  store i64 %mark, ptr %used_at
  ret void
}
"""
