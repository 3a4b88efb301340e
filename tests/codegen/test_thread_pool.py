"""Parallel loops of native kernels run on Numba's threads, whether Numba is there or not."""

import os
import subprocess
import sys

import pytest

PROGRAM = '''
import os, sys
import numpy as np
from numgrad.codegen import threads
from numgrad.codegen.native import thread_pool, kernel

BODY = """
declare i32 @numgrad_parallel_for(ptr, ptr, i64)
declare i64 @numgrad_thread_limit()
define private void @task(i64 %k, ptr %a) {
  %p = getelementptr inbounds i64, ptr %a, i64 %k
  %v = load i64, ptr %p
  %s = add i64 %v, %k
  store i64 %s, ptr %p
  ret void
}
define i32 @body(ptr %a, i64 %n, ptr %r) {
  %limit = call i64 @numgrad_thread_limit()
  store i64 %limit, ptr %r
  %failed = call i32 @numgrad_parallel_for(ptr @task, ptr %a, i64 %n)
  ret i32 %failed
}
"""
SIGNATURE = "int64(int64[::1])"


def prepared():
    threads.prepare_pool()
    payload = kernel.assemble(BODY, SIGNATURE, "indices", verify=True)
    return kernel.bind(payload, "indices", SIGNATURE, nogil=True).entry


def native(kernel, count):
    for n in (0, 1, 2, 3, 7, 1001):
        x = np.zeros(n, "i8")
        assert threads.launch(kernel, count, x) == count
        assert (x == np.arange(n)).all()


def numbas():
    import numba

    @numba.njit(parallel=True)
    def add(a):
        for i in numba.prange(a.size):
            a[i] += i

    x = np.zeros(1001, "i8")
    add(x)
    assert (x == np.arange(1001)).all()
    return numba.threading_layer()


def same_pool():
    name = {"omp": "omppool"}.get(thread_pool.layer(), "workqueue")
    other, own = sys.modules[f"numba.np.ufunc.{name}"], thread_pool._layer.library
    return other.parallel_for == own.parallel_for
'''

BEFORE_NUMBA = """
kernel = prepared()
native(kernel, 2)
native(kernel, 1)
assert "numba" not in sys.modules
assert numbas() == thread_pool.layer() == os.environ["NUMBA_THREADING_LAYER"]
assert same_pool()
native(kernel, 2)
"""

AFTER_NUMBA = """
assert numbas() == os.environ["NUMBA_THREADING_LAYER"]
kernel = prepared()
native(kernel, 2)
assert same_pool()
numbas()
"""

AFTER_FORK = """
kernel = prepared()
native(kernel, 2)
child = os.fork()
if not child:
    # omp cannot launch there: numgrad asks for one thread, and the loop runs where it is
    native(kernel, threads.worth(1e9) if thread_pool.layer() == "omp" else 2)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
native(kernel, 2)
"""


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("layer", ["omp", "workqueue"])
@pytest.mark.parametrize("part", [AFTER_FORK, BEFORE_NUMBA, AFTER_NUMBA])
def test_one_pool_for_native_kernels_and_numbas(layer: str, part: str) -> None:
    if part is AFTER_FORK and not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    environment = {**os.environ, "NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM + part],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    if layer == "omp" and "No threading layer could be loaded" in done.stderr:
        pytest.skip("there is no OpenMP")
    assert done.returncode == 0, done.stderr


WAITS = '''
import ctypes
import numpy as np
from numgrad.codegen import threads
from numgrad.codegen.native import thread_pool, kernel

# task 0 waits until all others have run: whoever has time must take those of its share
BODY = """
declare i32 @numgrad_parallel_for(ptr, ptr, i64)
define private void @task(i64 %k, ptr %a) {
  %p = getelementptr inbounds i64, ptr %a, i64 %k
  %others = icmp ne i64 %k, 0
  br i1 %others, label %count, label %wait
count:
  store i64 1, ptr %p
  %older = atomicrmw add ptr %a, i64 1 seq_cst
  ret void
wait:
  %seen = load atomic i64, ptr %a seq_cst, align 8
  %more = icmp slt i64 %seen, 99
  br i1 %more, label %wait, label %done
done:
  ret void
}
define i32 @body(ptr %a, i64 %n, ptr %r) {
  store i64 0, ptr %r
  %failed = call i32 @numgrad_parallel_for(ptr @task, ptr %a, i64 %n)
  ret i32 %failed
}
"""
threads.prepare_pool()
kernel = kernel.bind(kernel.assemble(BODY, "int64(int64[::1])", "waits", verify=True),
                    "waits", "int64(int64[::1])", nogil=True).entry
x = np.zeros(100, "i8")
thread_pool.set_num_threads(2)
kernel(x)
assert x[0] == 99 and (x[1:] == 1).all()
lost, overhead = thread_pool.losses()
assert (lost == 0.0 and overhead == 0.0) or overhead >= lost > 0.0
assert thread_pool.losses() == (0.0, 0.0)
'''


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_a_thread_takes_tasks_of_one_that_is_held_up(layer: str) -> None:
    environment = {**os.environ, "NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "ignore", "-c", WAITS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    if layer == "omp" and "No threading layer could be loaded" in done.stderr:
        pytest.skip("there is no OpenMP")
    assert done.returncode == 0, done.stderr
