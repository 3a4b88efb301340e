"""A profile records what was done, by lines, and leaves no trace of itself."""

import gc
import operator
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import threads
from numgrad.compiler.run.program import PROGRAMS
from numgrad.core.op import OPS
from numgrad.profiler import instruments, profile, record_collective, record_function
from numgrad.profiler.notes import RANGE
from numgrad.tensors import recorder

N = 100


def leaves():
    draw = np.random.default_rng(0)
    return [ng.tensor(draw.uniform(-1, 1, N), requires_grad=True) for _ in range(2)]


def chain(a, b):
    return ng.sum(ng.exp(np.tanh(a * b) + a))


def line_of(function, offset):
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


def rows(p, by_line=False):
    return {(row.kind, row.name): row for row in p.averages(by_line)}


def calls(events, kind="operation"):
    return [event.name for event in events if event.kind == kind]


# --------------------------------------------------------------------------------- what is recorded


def test_operations_and_nodes_with_bytes_and_lines():
    a, b = leaves()
    chain(a, b).backward()  # kernels are there
    a.grad = b.grad = None
    with profile() as p:
        loss = chain(a, b)
        loss.backward()
    found, here = p.events(), test_operations_and_nodes_with_bytes_and_lines
    assert calls(found) == ["multiply", "tanh", "add", "exp", "sum"]
    nodes = [event for event in found if event.kind == "backward node"]
    names = ["SumBackward", "ExpBackward", "AddBackward", "TanhBackward", "MultiplyBackward"]
    assert [event.name for event in nodes] == names
    assert {event.line for event in found if event.kind != "backward"} == {line_of(chain, 1)}
    sizes = {event.name: (event.read, event.written) for event in found}
    n = 8 * N
    assert sizes == {
        "multiply": (2 * n, n), "tanh": (n, n), "add": (2 * n, n), "exp": (n, n), "sum": (n, 8),
        "backward": (0, 0), "SumBackward": (8, n), "ExpBackward": (2 * n, n),
        # the gradient of a sum is handed on; what is added to a buffer is written all the same
        "AddBackward": (n, 0), "TanhBackward": (2 * n, n), "MultiplyBackward": (3 * n, 2 * n),
    }  # fmt: skip
    (walk,) = (event for event in found if event.kind == "backward")
    assert walk.children == nodes
    assert walk.line == line_of(here, 6)
    assert all(event.parent is walk for event in nodes)
    assert walk.self_ns == walk.total_ns - sum(event.total_ns for event in nodes) > 0


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.exp(),
        lambda x: np.exp(x),
        lambda x: ng.exp(x, dtype=np.float32),  # by way of the interpreter
        lambda x: ng.exp([x, x]),
        lambda x: x + 1.0,
        lambda x: 1.0 + x,
        lambda x: x[2:].reshape(-1, 2).T,
        lambda x: ng.einsum("i,j->ij", x, x),
        lambda x: ng.concatenate([x, x]),
        lambda x: x.sum(axis=0, keepdims=True),
        lambda x: ng.nn.functional.softmax(x, 0),
        lambda x: x[[0, 2]],
        lambda x: x.clone().mul_(2.0),
        lambda x: operator.iadd(x.clone(), x),
        lambda x: operator.setitem(x.clone(), slice(2), 0.0),
        lambda x: operator.setitem(x.clone(), [0, 1], 0.0),
        lambda x: np.copyto(ng.zeros(N), x),
    ],
)
def test_each_way_of_calling_leads_to_the_line(call):
    x = leaves()[0]
    with profile() as p:
        call(x)
    found = [event for event in p.events() if event.kind == "operation"]
    assert {event.line for event in found} == {line_of(call, 0)}


def test_the_same_gradients_bit_by_bit():
    def gradients():
        a, b = leaves()
        chain(a, b).backward()
        return np.stack([a.grad.numpy(), b.grad.numpy()])

    plain = gradients()
    with profile():
        found = gradients()
    np.testing.assert_array_equal(plain, found)


def test_what_raises_is_recorded_and_raised():
    a = ng.tensor(np.ones(3))
    with profile() as p, pytest.raises(ng.NumgradValueError):
        ng.add(a, ng.ones(4))
    assert calls(p.events()) == ["add"]


def test_compiled_programs_their_kernels_and_nests():
    @ng.jit
    def f(x, w):
        y = np.tanh(x @ w)
        return np.sum(y * y)

    x, w = np.ones((20, 10)), np.ones((10, 30))
    with profile() as p:
        f(x, w)
    found = rows(p)
    assert found["trace", "f"].calls == found["program", "f"].calls == 1
    made = {name for kind, name in found if kind in ("compile", "cache hit")}
    assert "jit_f_0" in made
    assert not [name for kind, name in found if kind == "operation"]  # traced, and not computed

    x = ng.tensor(x, requires_grad=True)
    f(x, w).backward()
    with profile() as p:  # of programs that are there
        for _ in range(3):
            f(x, w).backward()
    found = rows(p)
    assert not {"trace", "compile", "cache hit"} & {kind for kind, _ in found}
    assert found["operation", "f"].calls == found["backward node", "FBackward"].calls == 3
    kernel = found["kernel", "jit_f_0"]
    assert (kernel.calls, found["program", "f_backward"].calls) == (3, 3)
    assert kernel.read == 3 * 8 * (20 * 10 + 10 * 30)
    nests = [event for event in p.events() if event.kind == "nest"]
    assert all(event.estimated and event.parent.kind == "kernel" for event in nests)
    (product, loop) = [event for event in nests if event.parent.name == "jit_f_0"][:2]
    assert product.name == "jit_f_0: matrix product (matmul)"
    assert loop.name == "jit_f_0: nest 0 (tanh, multiply, sum)"
    assert product.line.endswith(line_of(f.__wrapped__, 2).rpartition("/")[2])
    parts = sum(event.total_ns for event in product.parent.children)
    assert parts == product.parent.total_ns


def test_a_compiled_step_by_step_program():
    @ng.jit
    def f(x):
        return ng.sort(ng.exp(x)) * 2.0

    x = np.arange(5.0)
    with profile() as p:
        first = f(x)
        second = f(x)
    np.testing.assert_array_equal(first, second)
    found = rows(p)
    assert found["operation", "sort"].calls == 2
    assert found["kernel", "jit_f_0"].calls == found["kernel", "jit_f_1"].calls == 2


def test_loops_of_compiled_functions():
    f = ng.jit(lambda x: ng.fori_loop(0, 5, lambda k, s: s * 0.5, x))
    with profile() as p:
        f(np.ones(3))
    assert rows(p)["kernel", "loop"].calls == 1


def test_steps_of_optimizers():
    x = leaves()[0]
    optimizer = ng.optim.SGD([x], lr=0.1)
    x.sum().backward()
    with profile() as p:
        optimizer.step()
        optimizer.step(lambda: (x * x).sum())
    found = [event for event in p.events() if event.kind == "optimizer step"]
    assert [event.name for event in found] == ["SGD.step"] * 2
    assert "multiply" in calls(found[1].children)
    optimizer.step()  # no hook is left


def test_ranges_nest_and_recur():
    @record_function("fib", args="int")
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    with profile() as p, record_function("outer"):
        fib(4)
        with record_collective("all_reduce", 80, 80):
            ng.ones(2) + 1.0
    found = rows(p)
    assert found["range", "fib (int)"].calls == 9
    assert found["range", "fib (int)"].total_ns <= found["range", "outer"].total_ns
    assert found["range", "outer"].calls == 1
    row = found["collective", "all_reduce"]
    assert (row.read, row.written) == (80, 80)
    (add,) = [event for event in p.events() if event.name == "add"]
    assert add.parent.name == "all_reduce"
    with record_function("off"), record_collective("off"):  # nothing happens
        pass


def test_a_range_that_outlives_its_profile_belongs_to_none():
    block = record_function("late")
    with profile() as p:
        block.__enter__()
    with profile() as q:
        block.__exit__()
    assert not p.events()
    assert not q.events()


def test_threads_have_events_of_their_own():
    a = ng.tensor(np.ones(N))
    ng.exp(a)  # a kernel that is loaded is an event too
    inside = threading.Barrier(2)

    def work(k):
        inside.wait()
        for _ in range(200):
            ng.exp(a)

    with profile() as p, ThreadPoolExecutor(2, "worker") as pool:
        list(pool.map(work, range(2)))
    found = p.events()
    assert len(found) == 400
    assert sorted({event.thread[1] for event in found}) == ["worker_0", "worker_1"]
    assert all(event.parent is None for event in found)


def test_launches_count_as_threads_of_what_is_around_them():
    threads.prepare_pool()
    with profile() as p, record_function("block"):
        threads.launch(lambda: None, 3)
    assert [(event.name, event.threads) for event in p.events()] == [("block", 3)]


def test_memory_of_operations():
    x = ng.tensor(np.ones(1_000_000))  # beside which what the profile itself takes is little
    ng.negative(x)
    with profile(profile_memory=True) as p:
        y = ng.negative(x)
        for _ in range(3):
            ng.negative(x)  # is gone
    found = [event for event in p.events() if event.kind == "operation"]
    size = y.nbytes
    assert [round(event.allocated / size) for event in found] == [1, 1, 1, 1]
    assert [round(event.peak / size) for event in found] == [1, 2, 2, 2]
    assert "stayed" in p.table()
    import tracemalloc

    assert not tracemalloc.is_tracing()


def test_without_lines():
    with profile(with_stack=False) as p:
        ng.exp(ng.ones(3))
    assert [event.line for event in p.events()] == [""]


# ------------------------------------------------------------------------------------ off is off


def codes():
    return {name: op.in_python.__code__ for name, op in OPS.items() if op.entered}


def held():
    """What a profile replaces."""
    wrapped = [vars(owner)[name] for owner, name, _ in instruments._WRAPPED]
    recoded = [function.__code__ for function, _ in instruments._RECODED]
    of_programs = {
        id(program): [
            program.run.__code__,
            *[id(value) for name, value in program._namespace.items() if name != "watched"],
        ]
        for program in PROGRAMS
    }
    return codes(), wrapped, recoded, of_programs, recorder.is_watched()


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_left_of_a_profile(fails):
    a, b = leaves()
    f = ng.jit(lambda x: np.exp(x) * 3.0)
    f(np.ones(3))
    chain(a, b).backward()
    gc.collect()
    before = held()
    try:
        with profile():
            assert codes()["tanh"] is not before[0]["tanh"]
            chain(a, b).backward()
            f(np.ones(3))
            if fails:
                raise KeyError
    except KeyError:
        assert fails
    assert held() == before


def test_a_kernel_that_is_compiled_meanwhile_is_called_directly_afterwards():
    f = ng.jit(lambda x: np.exp(x) * 3.25)
    with profile() as p:
        f(np.ones(3))
        f(np.ones(3))
    assert sum(event.kind == "kernel" for event in p.events()) == 2
    counted = []
    sys.setprofile(lambda frame, what, arg: counted.append(frame.f_code.co_name))
    f(np.ones(3))
    sys.setprofile(None)
    assert "run" in counted
    assert not {"call", "watched", "__call__"} & set(counted)


def test_an_installation_that_fails_is_undone(monkeypatch):
    before = held()
    monkeypatch.setattr(instruments, "_around_steps", lambda recording: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        profile().start()
    monkeypatch.undo()
    assert held() == before
    with profile() as p:
        ng.exp(ng.ones(1))
    assert len(p.events()) == 1


def test_operations_declared_meanwhile_are_recorded():
    with profile() as p:

        @ng.elementwise(ref=lambda x: x * 3, register=False)
        def tripled(x):
            """Three times a number."""
            return x * 3.0

        tripled(ng.ones(2))
    assert calls(p.events()) == ["tripled"]
    assert "clock" not in tripled.in_python.__code__.co_names


def test_one_profile_at_a_time():
    with profile() as p:
        with pytest.raises(ng.NumgradRuntimeError, match="another profile"):
            profile().start()
        with record_function("still on"):
            pass
    assert calls(p.events(), RANGE) == ["still on"]
    for method in (p.step, p.stop):
        with pytest.raises(ng.NumgradRuntimeError, match="not running"):
            method()
