"""Driver that shares the tasks of a parallel loop out to threads: LLVM IR for ``thread_pool``.

Note [Shares]
-------------
Each thread has a share of the tasks, always the same, so that a part of an array stays in the cache
of one core from kernel to kernel. Who is done with his own takes tasks of the others: a thread that
wakes late, or whose core another process uses, holds nobody up for longer than a task. Which thread
runs a task changes no bits.

Each thread counts its tasks and the cycles they took. From the quickest follows what all tasks
would have taken in one thread. What launches took beyond that since last asked ``lost`` returns; it
is negative where threads have paid. ``overhead`` returns what they took beyond an even share of it.
``idle`` launches two tasks that do nothing, for a launch to be timed.

A job is ``{function, context, threads}`` and then, for each share, ``{next task, end, cycles of its
thread, tasks of its thread}``, each on a line of the cache.
"""

DRIVER = """\
declare i32 @numgrad_layer_get_num_threads()
declare void @numgrad_layer_parallel_for(ptr, ptr, ptr, ptr, ptr, i64, i64, i64)
declare i64 @llvm.readcyclecounter()

@balance = private global i64 0
@beyond = private global i64 0

define i64 @thread_limit() #0 {
  %threads = call i32 @numgrad_layer_get_num_threads()
  %wide = sext i32 %threads to i64
  ret i64 %wide
}

define i64 @cycles() #0 {
  %now = call i64 @llvm.readcyclecounter()
  ret i64 %now
}

define i64 @lost() #0 {
  %cycles = atomicrmw xchg ptr @balance, i64 0 monotonic
  ret i64 %cycles
}

define i64 @overhead() #0 {
  %cycles = atomicrmw xchg ptr @beyond, i64 0 monotonic
  ret i64 %cycles
}

define private void @work(i64 %own, ptr %job) #0 {
start:
  %begin = call i64 @llvm.readcyclecounter()
  %function = load ptr, ptr %job
  %context_at = getelementptr inbounds i64, ptr %job, i64 1
  %context = load ptr, ptr %context_at
  %threads_at = getelementptr inbounds i64, ptr %job, i64 2
  %threads = load i64, ptr %threads_at
  br label %open
open:
  %turn = phi i64 [ 0, %start ], [ %turned, %exhausted ]
  %before = phi i64 [ 0, %start ], [ %count, %exhausted ]
  %sum = add i64 %own, %turn
  %number = urem i64 %sum, %threads
  %line = add i64 %number, 1
  %offset = shl i64 %line, 3
  %share = getelementptr inbounds i64, ptr %job, i64 %offset
  %end_at = getelementptr inbounds i64, ptr %share, i64 1
  %end = load i64, ptr %end_at
  br label %take
take:
  %count = phi i64 [ %before, %open ], [ %counted, %run ]
  %task = atomicrmw add ptr %share, i64 1 monotonic
  %more = icmp slt i64 %task, %end
  br i1 %more, label %run, label %exhausted
run:
  call void %function(i64 %task, ptr %context)
  %counted = add i64 %count, 1
  br label %take
exhausted:
  %turned = add i64 %turn, 1
  %left = icmp slt i64 %turned, %threads
  br i1 %left, label %open, label %done
done:
  %finish = call i64 @llvm.readcyclecounter()
  %spent = sub i64 %finish, %begin
  %own_line = add i64 %own, 1
  %own_offset = shl i64 %own_line, 3
  %own_share = getelementptr inbounds i64, ptr %job, i64 %own_offset
  %spent_at = getelementptr inbounds i64, ptr %own_share, i64 2
  %count_at = getelementptr inbounds i64, ptr %own_share, i64 3
  store i64 %spent, ptr %spent_at
  store i64 %count, ptr %count_at
  ret void
}

; the layer's: as many shares as it likes, of which the first is an address moved a byte a share
define private void @piece(ptr %args, ptr %lengths, ptr %steps, ptr %job) #0 {
start:
  %first_at = load ptr, ptr %args
  %first = ptrtoint ptr %first_at to i64
  %length = load i64, ptr %lengths
  %end = add i64 %first, %length
  br label %check
check:
  %share = phi i64 [ %first, %start ], [ %next, %loop ]
  %more = icmp slt i64 %share, %end
  br i1 %more, label %loop, label %done
loop:
  call void @work(i64 %share, ptr %job)
  %next = add i64 %share, 1
  br label %check
done:
  ret void
}

define i32 @parallel_for(ptr %function, ptr %context, i64 %tasks) #0 {
start:
  %threads = call i64 @thread_limit()
  %one = icmp slt i64 %threads, 2
  %few = icmp slt i64 %tasks, 2
  %alone = or i1 %one, %few
  br i1 %alone, label %check, label %prepare
check:
  %task = phi i64 [ 0, %start ], [ %next, %here ]
  %more = icmp slt i64 %task, %tasks
  br i1 %more, label %here, label %done
here:
  call void %function(i64 %task, ptr %context)
  %next = add i64 %task, 1
  br label %check

prepare:
  %begin = call i64 @llvm.readcyclecounter()
  %args = alloca ptr
  %lengths = alloca i64
  %steps = alloca i64
  store ptr null, ptr %args
  store i64 %threads, ptr %lengths
  store i64 1, ptr %steps
  %lines = add i64 %threads, 1
  %size = shl i64 %lines, 3
  %job = alloca i64, i64 %size, align 64
  store ptr %function, ptr %job
  %context_at = getelementptr inbounds i64, ptr %job, i64 1
  store ptr %context, ptr %context_at
  %threads_at = getelementptr inbounds i64, ptr %job, i64 2
  store i64 %threads, ptr %threads_at
  br label %cut
cut:
  %part = phi i64 [ 0, %prepare ], [ %following, %cut ]
  %following = add i64 %part, 1
  %low_times = mul i64 %part, %tasks
  %low = udiv i64 %low_times, %threads
  %high_times = mul i64 %following, %tasks
  %high = udiv i64 %high_times, %threads
  %cut_offset = shl i64 %following, 3
  %slot = getelementptr inbounds i64, ptr %job, i64 %cut_offset
  %high_at = getelementptr inbounds i64, ptr %slot, i64 1
  %none_at = getelementptr inbounds i64, ptr %slot, i64 3
  store i64 %low, ptr %slot
  store i64 %high, ptr %high_at
  store i64 0, ptr %none_at
  %again = icmp slt i64 %following, %threads
  br i1 %again, label %cut, label %launch
launch:
  call void @numgrad_layer_parallel_for(ptr @piece, ptr %args, ptr %lengths, ptr %steps, ptr %job,
                                        i64 0, i64 1, i64 %threads)
  %finish = call i64 @llvm.readcyclecounter()
  %elapsed = sub i64 %finish, %begin
  %all = sitofp i64 %tasks to double
  br label %compare
compare:
  %place = phi i64 [ 1, %launch ], [ %place_next, %known ]
  %least = phi double [ 0x7FF0000000000000, %launch ], [ %least_next, %known ]
  %place_offset = shl i64 %place, 3
  %result = getelementptr inbounds i64, ptr %job, i64 %place_offset
  %count_at = getelementptr inbounds i64, ptr %result, i64 3
  %count = load i64, ptr %count_at
  %worked = icmp sgt i64 %count, 0
  br i1 %worked, label %rate, label %known
rate:
  %spent_at = getelementptr inbounds i64, ptr %result, i64 2
  %spent = load i64, ptr %spent_at
  %spent_real = sitofp i64 %spent to double
  %count_real = sitofp i64 %count to double
  %each = fdiv double %spent_real, %count_real
  %less = fcmp olt double %each, %least
  %smaller = select i1 %less, double %each, double %least
  br label %known
known:
  %least_next = phi double [ %least, %compare ], [ %smaller, %rate ]
  %place_next = add i64 %place, 1
  %others = icmp sle i64 %place_next, %threads
  br i1 %others, label %compare, label %judge
judge:
  %serial_real = fmul double %least_next, %all
  %serial = fptosi double %serial_real to i64
  %lost = sub i64 %elapsed, %serial
  %old = atomicrmw add ptr @balance, i64 %lost monotonic
  %even = sdiv i64 %serial, %threads
  %overhead = sub i64 %elapsed, %even
  %older = atomicrmw add ptr @beyond, i64 %overhead monotonic
  br label %done
done:
  ret i32 0
}

define private void @nothing(i64 %task, ptr %context) #0 {
  ret void
}

define i64 @idle() #0 {
  %failed = call i32 @parallel_for(ptr @nothing, ptr null, i64 2)
  ret i64 0
}
"""
