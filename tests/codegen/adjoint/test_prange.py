"""Loops written with ``prange``: values, derivatives, bits, what is parallel and what is not."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from numba import prange

import numgrad as ng
from numgrad.codegen.adjoint import parallel
from numgrad.errors import NumgradKernelError
from tests.codegen.adjoint import parallel_programs
from tests.codegen.adjoint.judge import judge, tuple_of
from tests.codegen.adjoint.programs import covering, features
from tests.codegen.adjoint.test_drawn_programs import truth_of
from tests.codegen.adjoint.test_traps import check

RNG = np.random.default_rng(11)
X, Y, Z = RNG.normal(size=23), RNG.normal(size=23), RNG.normal(size=(7, 5))
P = RNG.uniform(0.5, 1.5, 23)
Q = RNG.integers(0, 9, 23)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Have loops of few iterations cut into chunks of one or a few."""
    monkeypatch.setattr(parallel, "CHUNK", 60)
    monkeypatch.setattr(parallel, "COPY", 0)


def parallel_loops(kernel, *arguments):
    """The sweeps in which the first loop is parallel, and in which it is not, and why."""
    loops = kernel.report(*arguments).parallel
    return {loop.sweep: loop.obstacle for loop in loops}


def is_parallel(kernel, *arguments):
    obstacles = parallel_loops(kernel, *arguments)
    sweeps = {"function", "tangents", "forward sweep"}
    both = {*sweeps, "backward sweep"}  # of which fused sweeps make one
    assert set(obstacles) in (sweeps, both)
    return not any(obstacles.values())


def judged(function, *arguments, writes=(), second=False):
    """A kernel whose derivatives are right; second ones are sweeps of their own."""
    check(function, *arguments, writes=writes, second=second)
    kernel = ng.kernel(function, writes=writes)
    kernel(*arguments)
    return kernel


# ------------------------------------------------------------------------- what becomes parallel


def test_sums_and_numbers_from_outside():
    def f(x, a, b):
        s = 0.25
        t = 0.0
        for i in prange(len(x)):
            u = math.sin(a * x[i])
            s += u * b
            if u > 0.1:
                t -= u * u
        return s * t

    assert is_parallel(judged(f, X, 0.7, 1.3, second=True), X, 0.7, 1.3)


def test_a_sum_within_inner_loops_and_branches():
    def f(x, z):
        s = 0.0
        for i in prange(z.shape[0]):
            for j in range(z.shape[1]):
                v = z[i, j] * x[j]
                if v > 0.0:
                    s += v * v
                    for k in range(2):
                        s = s + v * k
                else:
                    s -= v
        return s

    assert is_parallel(judged(f, X, Z), X, Z)


def test_what_a_branch_computes_for_its_own_reversal():
    def f(x, z):
        s = 0.0
        for i in prange(z.shape[0]):
            a = x[i] * x[i]
            if a > 0.2:
                u = math.sin(a)
                v = u * math.exp(x[i])
                if v > 0.3:
                    w = v * u
                    s += w * w
                s += u * v
        return s

    assert is_parallel(judged(f, X[:7], Z, second=True), X[:7], Z)


def test_results_at_the_index_of_the_loop():
    def f(x, y, out):
        for i in prange(len(x)):
            out[i] = x[i] * math.exp(y[i])
            out[i] *= 0.5 + y[i]

    assert is_parallel(judged(f, X, Y, X.copy(), writes=("out",), second=True), X, Y, X)


def test_a_stencil_in_the_plane():
    def diffused(u, steps):
        n, m = u.shape
        v = u.copy()
        for _ in range(steps):
            w = v.copy()
            for i in prange(1, n - 1):
                for j in range(1, m - 1):
                    w[i, j] = v[i, j] + 0.1 * (v[i - 1, j] + v[i + 1, j] - 3 * v[i, j])
                    w[i, j] += 0.1 * (v[i, j - 1] + v[i, j + 1] * v[i, j])
            v = w
        return v

    judged(diffused, np.random.default_rng(0).normal(size=(5, 6)), 2)


def test_results_in_rows_and_at_products_of_indices():
    def f(z):
        n, m = z.shape
        flat = np.empty(n * m)
        out = np.zeros((n, m))
        for i in prange(n):
            for j in range(m):
                flat[i * m + j] = z[i, j] ** 2
                out[i, j] += z[i, j] * flat[i * m + j]
        return flat, out

    assert is_parallel(judged(f, Z), Z)


def test_blocks_of_a_constant_length():
    def f(x):
        out = np.zeros(3 * len(x))
        for i in prange(len(x)):
            out[3 * i] = x[i]
            out[3 * i + 1] = x[i] ** 2
            out[2 + 3 * i] = x[i] ** 3
        return out

    assert is_parallel(judged(f, X), X)


@pytest.mark.parametrize("bounds", [(23,), (2, 19), (1, 20, 3), (22, 3, -2), (5, 5), (3, 1)])
def test_any_range(bounds):
    low, high, step = [0, *bounds, 1][-3:] if len(bounds) == 1 else [*bounds, 1][:3]

    def f(x, y):
        s = 0.0
        out = np.zeros(23)
        for i in prange(low, high, step):
            out[i] = x[i] * y[i]
            s += out[i] * x[i]
        return s, out

    assert is_parallel(judged(f, X, Y), X, Y)


@pytest.mark.parametrize("length", [0, 1, 2])
def test_few_iterations(length):
    def f(x, a):
        s = a
        for i in prange(len(x)):
            s += a * x[i] * x[i]
        return s

    judged(f, X[:length], 0.3)


def test_places_that_coincide_have_sums_of_their_own():
    def f(x, at, mass):
        total = np.zeros(9)
        for i in prange(len(x)):
            k = at[i]
            w = x[i] * mass[k]
            total[k] += w * w
            total[(k + 1) % 9] -= w
        return total

    kernel = judged(f, X, Q, P[:9], second=True)
    assert is_parallel(kernel, X, Q, P[:9])
    copies = {loop.sweep: loop.copies for loop in kernel.report().parallel}
    assert copies["function"] == ("total",)
    assert [name for name in copies["backward sweep"]] == ["mass__b"]


def test_inner_loops_with_tapes_and_local_arrays():
    def f(x, z):
        s = 0.0
        for i in prange(z.shape[0]):
            part = np.zeros(z.shape[1])
            u = x[i]
            for j in range(z.shape[1]):
                u = math.sin(u * z[i, j])
                part[j] = u
            for j in range(1, z.shape[1]):
                part[j] *= part[j - 1]
            s += part[z.shape[1] - 1]
        return s

    kernel = judged(f, X, Z, second=True)
    assert is_parallel(kernel, X, Z)


def test_inner_loops_of_different_lengths_and_while():
    def f(x, counts):
        out = np.empty(len(x))
        for i in prange(len(x)):
            u = x[i]
            for _ in range(counts[i]):
                u = u * u + 0.1 * x[i]
            k = 0
            while k < 6 and abs(u) < 2.0:
                u = 1.5 * u + 0.01
                k += 1
            out[i] = u
        return out

    counts = Q % 4
    assert is_parallel(judged(f, 0.5 * X, counts), X, counts)


def test_a_loop_in_time_around_a_parallel_one():
    def f(x, a):
        u = x.copy()
        v = np.zeros(len(x))
        for _ in range(3):
            for i in prange(1, len(x) - 1):
                v[i] = u[i] + a * (u[i - 1] - 2.0 * u[i] + u[i + 1]) * u[i]
            for i in prange(1, len(x) - 1):
                u[i] = v[i]
        return u

    kernel = judged(f, X, 0.1)
    assert parallel_loops(kernel, X, 0.1)["function"] == ""


def test_nested_loops_are_parallel_outside():
    def f(z):
        s = 0.0
        for i in prange(z.shape[0]):
            for j in prange(z.shape[1]):
                s += z[i, j] ** 2
        return s

    kernel = judged(f, Z)
    assert [loop.sweep for loop in kernel.report().parallel].count("function") == 1


def test_the_largest_and_the_smallest():
    def f(x, a):
        top = -1e300
        low = a
        for i in prange(len(x)):
            top = max(top, x[i])
            low = min(low, x[i] * a)
        return top, low

    kernel = judged(f, X, 0.7)
    assert parallel_loops(kernel, X, 0.7)["function"] == ""


def test_nan_in_extremes_is_as_in_plain_python():
    def f(x):
        top, other = -1e300, -1e300
        for i in prange(len(x)):
            top = max(top, x[i])
            other = max(x[i], other)
        return top, other

    for place in (0, 7, 22):
        x = X.copy()
        x[place] = np.nan
        np.testing.assert_array_equal(ng.kernel(f)(x), f(x))
    kernel = ng.kernel(f)
    assert "other" in parallel_loops(kernel, X)["function"]


def test_a_product():
    def f(x):
        p = 1.0
        for i in prange(len(x)):
            p *= 1.0 + 0.1 * x[i]
        return p

    obstacles = parallel_loops(judged(f, X), X)
    assert obstacles["function"] == obstacles["tangents"] or obstacles["function"] == ""
    assert obstacles["backward sweep"] != ""


def test_integers_complex_numbers_and_single_precision():
    def f(x, z, c):
        count = 0
        s = 0.0 * x[0]
        w = 0j
        for i in prange(len(x)):
            if x[i] > 0:
                count += 1
            s += x[i] * x[i]
            w += z[i] * c
        return s * count, w

    z = RNG.normal(size=23) + 1j * RNG.normal(size=23)
    assert is_parallel(judged(f, X, z, 0.5 + 1j, second=True), X, z, 0.5 + 1j)
    kernel = ng.kernel(f)
    single = X.astype(np.float32)
    seen = kernel(single, z.astype(np.complex64), 1j)
    np.testing.assert_allclose(
        seen[0], np.sum(single.astype(float) ** 2) * np.sum(X > 0), rtol=1e-5
    )
    assert parallel_loops(kernel, single, z.astype(np.complex64), 1j)["function"] == ""


# ------------------------------------------------------------------------------- what stays serial


def test_a_recurrence_is_serial():
    def f(x):
        out = np.zeros(len(x))
        for i in prange(1, len(x)):
            out[i] = 0.5 * out[i - 1] + x[i]
        return out

    kernel = judged(f, X)
    assert "same elements of out" in parallel_loops(kernel, X)["function"]


def test_a_carried_number_is_serial():
    def f(x):
        s = 0.0
        t = 1.0
        for i in prange(len(x)):
            s += x[i] * t
            t = x[i]
        return s

    kernel = judged(f, X)
    assert "t_" in parallel_loops(kernel, X)["function"]


def test_places_at_different_multiples_are_serial():
    def f(x):
        out = np.zeros(2 * len(x))
        for i in prange(len(x)):
            out[2 * i] = x[i]
            out[i] = out[i] * x[i] + 0.1
        return out

    kernel = judged(f, X)
    assert "same elements of out" in parallel_loops(kernel, X)["function"]


def test_a_number_of_the_last_iteration_is_serial():
    def f(x):
        t = 0.5
        for i in prange(len(x)):
            t = x[i] * x[i]
        return t + x[0]

    kernel = judged(f, X)
    assert "is read after it" in parallel_loops(kernel, X)["function"]


def test_a_sum_that_is_read_is_serial():
    def f(x):
        s = 0.0
        out = np.zeros(len(x))
        for i in prange(len(x)):
            s += x[i]
            out[i] = s
        return out

    kernel = judged(f, X)
    assert parallel_loops(kernel, X)["function"]


def test_indirect_writes_are_serial():
    def f(x, at):
        out = np.zeros(9)
        for i in prange(len(x)):
            out[at[i]] = x[i]
        return out

    kernel = judged(f, X, Q)
    assert "same elements of out" in parallel_loops(kernel, X, Q)["function"]


def test_an_array_used_by_all_iterations_is_serial():
    def f(x, y):
        work = np.zeros(3)
        s = 0.0
        for i in prange(len(x)):
            for j in range(3):
                work[j] = x[i] * (j + y[i])
            s += work[0] * work[1] * work[2]
        return s

    kernel = judged(f, X, Y)
    assert "work" in parallel_loops(kernel, X, Y)["function"]


def test_leaving_a_parallel_loop_is_refused():
    def broken(x):
        s = 0.0
        for i in prange(len(x)):
            if x[i] > 1.0:
                break
            s += x[i]
        return s

    def returned(x):
        for i in prange(len(x)):
            if x[i] > 1.0:
                return x[i]
        return 0.0

    for function in (broken, returned):
        with pytest.raises(NumgradKernelError, match="break or return in prange"):
            ng.kernel(function)(X)


# -------------------------------------------------------------------------------------------- bits

PROGRAM = """
import hashlib, math, os, sys, threading
import numpy as np
import numgrad as ng
from numba import prange

@ng.kernel
def f(x, at, z, a):
    s = 0.0
    total = np.zeros(50)
    rows = np.empty(len(x))
    for i in prange(len(x)):
        u = math.sin(a * x[i])
        for j in range(z.shape[1]):
            u = math.sin(u + z[at[i], j])
        s += u * u
        total[at[i]] += u * a
        rows[i] = u
    return s, total, rows

rng = np.random.default_rng(1)
x, at, z = rng.normal(size=4001), rng.integers(0, 50, 4001), rng.normal(size=(50, 7))

def bits():
    values, pullback = ng.vjp(lambda *g: f(g[0], at, *g[1:]), x, z, 0.7)
    grads = pullback(tuple(np.ones_like(v) for v in values))
    _, moved = ng.jvp(lambda *g: f(g[0], at, *g[1:]), (x, z, 0.7), (x, z, 1.0))
    arrays = [np.asarray(v).tobytes() for v in (*values, *grads, *moved)]
    return hashlib.sha256(b"".join(arrays)).hexdigest()

digests = set()
for count in (1, 2, 3, 5, 2):
    ng.set_num_threads(count)
    digests.add(bits())
ng.set_num_threads(3)
more = []
threads = [threading.Thread(target=lambda: more.append(bits())) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
assert len(more) == 4
digests.update(more)
if hasattr(os, "fork"):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os._exit(0 if bits() in digests else 1)
    assert os.waitpid(child, 0)[1] == 0
assert len(digests) == 1, digests
assert all(not loop.obstacle for loop in f.report().parallel), f.report()
print(digests.pop())
"""


def test_bits_do_not_depend_on_threads(tmp_path):
    """1, 2, 3, 5 threads, repetition, several Python threads, a forked child, another process."""
    digests = set()
    (tmp_path / "program.py").write_text(PROGRAM)
    for threads in ("5", "1"):
        environment = {**os.environ, "NUMBA_NUM_THREADS": threads}
        run = subprocess.run(
            [sys.executable, "-W", "ignore", str(tmp_path / "program.py")],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr[-2000:]
        digests.add(run.stdout.split()[-1])
    assert len(digests) == 1


# ----------------------------------------------------------------------------- where it is called


def test_inside_of_compiled_functions_and_scans():
    @ng.kernel
    def f(x, a):
        s = 0.0
        for i in prange(len(x)):
            s += a * x[i] ** 2
        return s

    def plain(x, a):
        return a * (x * x).sum()

    def repeated(g):
        def h(x):
            carry, _ = ng.scan(lambda c, _: (0.1 * g(x, c), None), ng.tensor(0.5), None, length=3)
            return carry

        return h

    x = ng.tensor(X)
    for fast, slow in (
        (ng.jit(lambda x: f(x, 0.3)), lambda x: plain(x, 0.3)),
        (repeated(f), repeated(plain)),
    ):
        np.testing.assert_allclose(fast(x), slow(x), rtol=1e-12)
        np.testing.assert_allclose(ng.grad(fast)(x), ng.grad(slow)(x), rtol=1e-12)


# ------------------------------------------------------------------------------- drawn programs


def check_drawn(seed, small):
    """A drawn program is right, and has the same bits for one thread and for several."""
    program = parallel_programs.write(seed, small)
    drawn = truth_of(program)
    if drawn is None:
        return
    function, arguments, truth, directions = drawn
    kernel = ng.kernel(function, writes=program.writes)
    judge(kernel, truth, directions, arguments, tolerance=2e-3 if program.single else 1e-9)
    before = ng.get_num_threads()
    try:
        bits = []
        for count in (1, before, before):
            ng.set_num_threads(count)
            bits.append([np.asarray(out).tobytes() for out in tuple_of(kernel(*arguments))])
    finally:
        ng.set_num_threads(before)
    assert bits[0] == bits[1] == bits[2]


def constructs(seed):
    return features(parallel_programs.write(seed, small=True).text)


@pytest.mark.slow(cases=8)
@pytest.mark.parametrize("seed", covering(range(20), constructs))
def test_small_drawn_programs(seed):
    check_drawn(seed, small=True)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("first", range(20_000, 20_600, 20))
def test_drawn_programs(first):
    for seed in range(first, first + 20):
        try:
            check_drawn(seed, small=False)
        except Exception as error:
            error.add_note(f"seed {seed}\n{parallel_programs.write(seed).text}")
            raise
