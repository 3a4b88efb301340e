"""Whether a saved value is current: one answer of Python's and of machine code's, over all cases.

Each case is the memory of a Tensor: what it may hold, and what may be wrong with it. Expected
answers are written down; Python's form is compared with them, machine code's with both.
"""

import struct

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.node import Node
from numgrad.autograd.saved import keep
from numgrad.autograd.variable import Parameter, Tensor, refresh
from numgrad.autograd.versions import (
    INFERENCE,
    Version,
    check_current,
    check_result_current,
    is_current,
    mark_written,
    shared_version,
    version_of,
    write_count,
)
from numgrad.codegen.cpython import c_api, memory_versions, offsets
from numgrad.errors import NumgradRuntimeError
from numgrad.tensors import recorder

SAVED_AT = 1000
"""The sequence number of the node that saved the value."""
ARRAY = np.ones(3)


def version(last=-1, rebased=-1, foreign=False):
    made = Version(foreign=foreign)
    made.last, made.rebased = last, rebased
    return made


def view_of(cls, memory):
    root = cls(ARRAY)
    root._memory = memory
    return root


LAST = {-1: True, 5: True, SAVED_AT: True, SAVED_AT + 1: False, 2**40: False}
"""Numbers of the latest write, and whether what was saved is current."""
MEMORIES = {
    "none": (lambda: None, True),
    "inference": (lambda: INFERENCE, True),
    **{f"last {k}": (lambda k=k: version(k), current) for k, current in LAST.items()},
    **{
        f"last {k}, {kind.__name__}, rebased {r}, foreign {f}": (
            lambda k=k, kind=kind, r=r, f=f: view_of(kind, version(k, r, f)), current
        )
        for k, current in LAST.items()
        for kind in (Tensor, Parameter)
        for r in (-1, 3)
        for f in (False, True)
    },
    "foreign": (lambda: version(foreign=True), True),
    "view of what has no version": (lambda: view_of(Tensor, None), True),
    "view of inference": (lambda: view_of(Tensor, INFERENCE), True),
    "view of a parameter without version": (lambda: view_of(Parameter, None), True),
}  # fmt: skip


class OtherTensor(Tensor):
    """A class that the hot paths do not know."""

    __slots__ = ()


def broken_memories():
    """What lies nowhere but where somebody has put it by force: Python is to say."""
    empty = Version.__new__(Version)
    uninitialised = Tensor.__new__(Tensor)
    return [7, (), object(), empty, uninitialised, view_of(Tensor, 7), view_of(Tensor, empty),
            view_of(OtherTensor, version(5))]  # fmt: skip


def node():
    made = Node.__new__(Node)
    made.sequence = SAVED_AT
    return made


@pytest.fixture(scope="module")
def in_machine_code():
    """``current(node, memory)`` and ``saved_as_it_is(memory)`` of machine code."""
    if not offsets.is_readable():
        pytest.skip(offsets.obstacle())
    from numgrad.codegen.cpython.builtin import Builtin

    table = recorder.RECORDER.objects
    head = """\
from numba import int64
from numgrad.codegen.intrinsics import peek
from numgrad.codegen.cpython.objects import as_int, new_int

"""
    calls = {
        "is_current": "is_current(context, peek(int64, args), peek(int64, args + 8))",
        "may_be_saved": "may_be_saved(context, peek(int64, args))",
    }
    made = []
    for name, call in calls.items():
        text = f"""{head}{getattr(memory_versions, name)(table)}
def kernel(me, args, count, names):
    context = peek(int64, me + {offsets.BYTES})
    return new_int({call})
"""
        made.append(Builtin(name, text).function(name, c_api.Words.of(table)))
    return made


@pytest.mark.parametrize("case", MEMORIES)
def test_whether_a_saved_value_is_current(case, in_machine_code):
    make, expected = MEMORIES[case]
    tensor = Tensor(ARRAY)
    tensor._memory = make()
    assert is_current(version_of(tensor), SAVED_AT) is expected
    assert in_machine_code[0](node(), tensor._memory) == expected
    if expected:
        check_current(lambda: "op", tensor, SAVED_AT)
        check_result_current(lambda: "op", version_of(tensor), SAVED_AT)
        return
    with pytest.raises(NumgradRuntimeError, match="op: the backward needs the tensor of shape"):
        check_current(lambda: "op", tensor, SAVED_AT)
    with pytest.raises(NumgradRuntimeError, match="op: the backward needs its own result"):
        check_result_current(lambda: "op", version_of(tensor), SAVED_AT)


def saved_as_it_is(tensor):
    """Whether a node keeps the tensor itself, and its history needs no replay."""
    before = tensor._grad_fn
    try:
        refresh(tensor)
        return keep(tensor) is tensor and tensor._grad_fn is before
    except NumgradRuntimeError:
        return False


@pytest.mark.parametrize("case", MEMORIES)
def test_whether_a_value_is_saved_as_it_is(case, in_machine_code):
    """Machine code says so only where Python does the same; it may leave more to Python."""
    tensor = Tensor(ARRAY)
    tensor._memory = MEMORIES[case][0]()
    answer, usual = in_machine_code[1](tensor._memory), saved_as_it_is(tensor)
    if answer == memory_versions.GUARDED:  # it is saved by ``keep``
        assert not usual
        assert keep(tensor) is not tensor
        assert version_of(tensor).foreign
        return
    assert answer <= usual
    left_to_python = "rebased 3" in case  # a view whose root's history was rewritten
    assert answer == (usual and not left_to_python)


@pytest.mark.parametrize("number", range(len(broken_memories())))
def test_memory_of_another_kind_is_left_to_python(number, in_machine_code):
    memory = broken_memories()[number]
    assert in_machine_code[0](node(), memory) == 0
    assert in_machine_code[1](memory) == 0


def test_slots_are_where_python_puts_values():
    """The offsets that machine code reads, compared with what ``struct`` sees of an object."""
    import ctypes

    marked = version(last=123456789)
    at = id(marked) + offsets.slots(Version)["last"]
    (address,) = struct.unpack("q", ctypes.string_at(at, 8))
    assert address == id(marked.last)


def test_versions_of_families():
    x = ng.tensor([1.0, 2.0, 3.0])
    first, second = x[:2], x[1:]
    assert version_of(x) is version_of(first) is None
    mark_written(second)
    assert version_of(x) is version_of(first) is version_of(second) is shared_version(second)
    assert [write_count(t) for t in (x, first, second)] == [1, 1, 1]
    assert not is_current(version_of(x), version_of(x).last - 1)
    assert is_current(version_of(x), version_of(x).last)


def test_a_result_is_watched_from_its_first_version_on():
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    y = ng.exp(x)
    with ng.no_grad():
        y[:1] = 5.0  # through a view
    with pytest.raises(NumgradRuntimeError, match="needs its own result"):
        y.sum().backward()
