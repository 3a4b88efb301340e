"""Threads of a native function for its large loops: POSIX threads, by the C library alone.

Note [Teams]
------------
A function that is to run in up to N threads has the parallel variants of its kernels, whose tasks
do not depend on threads (``codegen.tasks``), so neither do its bits. A loop begins in the thread
that called. What its first tasks took, ``TRIAL_NS`` at least, tells what is left; each further
thread gets ``WORTH_NS`` of that or more, is created for this loop, and joined at its end: fork and
join, as OpenMP has it, without a pool. So there is nothing to start, to stop or to survive a fork,
and while nothing is called no thread waits. A thread takes 10 to 30 us, which loops of a
millisecond are to be worth.

One call at a time has threads: others, as from ``prange`` or from threads of the caller, find
the function busy and run their tasks by themselves. If the system has no thread for it, a loop does
with those it has.
"""

from __future__ import annotations

import re

from numgrad.codegen.native.ir import Unsupported

TRIAL_NS = 10_000
"""Nanoseconds of the tasks by which the others are judged."""
WORTH_NS = 200_000
"""Nanoseconds of work, in one thread, for which a further one is created."""
SYMBOLS = ("clock_gettime", "pthread_create", "pthread_join")

_TEXT = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @clock_gettime(i32, ptr)

@team_busy = private global i32 0

define private i64 @team_limit() #0 {{
  ret i64 {threads}
}}

define private i64 @team_now() #0 {{
  %time = alloca [2 x i64]
  %failed = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %seconds = load i64, ptr %time
  %fraction_at = getelementptr inbounds i64, ptr %time, i64 1
  %fraction = load i64, ptr %fraction_at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %fraction
  ret i64 %now
}}

; a job is the function, its context, the number of tasks and the next one
define private ptr @team_work(ptr %job) #0 {{
start:
  %function = load ptr, ptr %job
  %context_at = getelementptr inbounds i64, ptr %job, i64 1
  %context = load ptr, ptr %context_at
  %tasks_at = getelementptr inbounds i64, ptr %job, i64 2
  %tasks = load i64, ptr %tasks_at
  %next_at = getelementptr inbounds i64, ptr %job, i64 3
  br label %take
take:
  %task = atomicrmw add ptr %next_at, i64 1 monotonic
  %more = icmp slt i64 %task, %tasks
  br i1 %more, label %run, label %done
run:
  call void %function(i64 %task, ptr %context)
  br label %take
done:
  ret ptr null
}}

define private i32 @team_parallel_for(ptr %function, ptr %context, i64 %tasks) #0 {{
start:
  %job = alloca [4 x i64]
  %members = alloca [{threads} x i64]
  %several = icmp sgt i64 %tasks, 1
  br i1 %several, label %ask, label %alone
ask:
  %pair = cmpxchg ptr @team_busy, i32 0, i32 1 acq_rel monotonic
  %free = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %free, label %begin, label %alone
alone:
  %task = phi i64 [ 0, %start ], [ 0, %ask ], [ %following, %here ]
  %more = icmp slt i64 %task, %tasks
  br i1 %more, label %here, label %end
here:
  call void %function(i64 %task, ptr %context)
  %following = add i64 %task, 1
  br label %alone
begin:
  %first = call i64 @team_now()
  br label %trial
trial:
  %tried = phi i64 [ 0, %begin ], [ %done, %judge ], [ %done, %decide ]
  call void %function(i64 %tried, ptr %context)
  %done = add i64 %tried, 1
  %left = sub i64 %tasks, %done
  %others = icmp sgt i64 %left, 0
  br i1 %others, label %judge, label %leave
judge:
  %now = call i64 @team_now()
  %spent = sub i64 %now, %first
  %told = icmp sge i64 %spent, {trial}
  br i1 %told, label %decide, label %trial
decide:
  %product = mul i64 %spent, %left
  %rest = sdiv i64 %product, %done
  %pays = sdiv i64 %rest, {worth}
  %most = call i64 @llvm.smin.i64(i64 %left, i64 {threads})
  %further = add i64 %most, -1
  %wanted = call i64 @llvm.smin.i64(i64 %pays, i64 %further)
  %any = icmp sgt i64 %wanted, 0
  br i1 %any, label %fork, label %trial
fork:
  store ptr %function, ptr %job
  %context_at = getelementptr inbounds i64, ptr %job, i64 1
  store ptr %context, ptr %context_at
  %tasks_at = getelementptr inbounds i64, ptr %job, i64 2
  store i64 %tasks, ptr %tasks_at
  %next_at = getelementptr inbounds i64, ptr %job, i64 3
  store i64 %done, ptr %next_at
  br label %create
create:
  %member = phi i64 [ 0, %fork ], [ %created, %created_one ]
  %all = icmp eq i64 %member, %wanted
  br i1 %all, label %work, label %create_one
create_one:
  %place = getelementptr inbounds i64, ptr %members, i64 %member
  %refused = call i32 @pthread_create(ptr %place, ptr null, ptr @team_work, ptr %job)
  %granted = icmp eq i32 %refused, 0
  br i1 %granted, label %created_one, label %work
created_one:
  %created = add i64 %member, 1
  br label %create
work:
  %nothing = call ptr @team_work(ptr %job)
  br label %join
join:
  %joined = phi i64 [ 0, %work ], [ %joined_next, %join_one ]
  %gone = icmp eq i64 %joined, %member
  br i1 %gone, label %leave, label %join_one
join_one:
  %thread_at = getelementptr inbounds i64, ptr %members, i64 %joined
  %thread = load i64, ptr %thread_at
  %ignored = call i32 @pthread_join(i64 %thread, ptr null)
  %joined_next = add i64 %joined, 1
  br label %join
leave:
  store atomic i32 0, ptr @team_busy release, align 4
  br label %end
end:
  ret i32 0
}}

declare i64 @llvm.smin.i64(i64, i64)
"""
_POOL = re.compile(r"@numgrad_(?:parallel_for|thread_limit)\b")
_DECLARED = re.compile(r"(?m)^declare [^\n]*@numgrad_(?:parallel_for|thread_limit)\(.*\n")


def with_team(text: str, threads: int, triple: str) -> str:
    """A module of parallel kernels that have up to so many threads: Note [Teams]."""
    if "windows" in triple:
        raise Unsupported("several threads need those of POSIX, which Windows has not; threads=1")
    team = _TEXT.format(
        threads=threads, clock=6 if "apple" in triple else 1, trial=TRIAL_NS, worth=WORTH_NS
    )  # CLOCK_MONOTONIC
    text = _POOL.sub(lambda m: _OWN[m[0]], _DECLARED.sub("", text + "\n"))
    return text + team


_OWN = {"@numgrad_parallel_for": "@team_parallel_for", "@numgrad_thread_limit": "@team_limit"}
