"""Machine code's form of two questions about versions, which ``autograd.versions`` defines.

Both answer 1 for yes, and 0 for no or where Python is to say; ``may_be_saved`` has a third answer,
``GUARDED``. ``tests/autograd/test_versions.py``
compares them with Python's form over all cases.
"""

from __future__ import annotations

from numgrad.codegen.cpython import offsets
from numgrad.codegen.cpython.c_api import ObjectTable

GUARDED = 2
"""A node saves what ``saved.keep`` makes of a Tensor: users can write to its memory unseen."""


def version_of(table: ObjectTable) -> str:
    """The text of ``version_of(context, memory)``, which both questions begin with."""
    memory, kind = offsets.slots(table.objects["TENSOR"])["_memory"], offsets.TYPE
    return f"""\
def version_of(context, memory):
    # the version of a Tensor's memory; 1 if there is none, 0 where Python is to say
    if memory == 0:
        return 0
    kind, version = peek(int64, memory + {kind}), memory
    if kind == {table["TENSOR"]} or kind == {table["PARAMETER"]}:
        version = peek(int64, memory + {memory})
        if version == 0:
            return 0
    if version == {table["NONE"]}:
        return 1
    if peek(int64, version + {kind}) != {table["VERSION"]}:
        return 0
    return version
"""


def is_current(table: ObjectTable) -> str:
    """The text of ``is_current(context, node, memory)``: that of ``versions.is_current``."""
    last = offsets.slots(table.objects["VERSION"])["last"]
    sequence = offsets.slots(table.objects["NODE"])["sequence"]
    return f"""{version_of(table)}
def is_current(context, node, memory):
    # whether what a node saved of a Tensor with that memory is as it was then
    version = version_of(context, memory)
    if version < 2:
        return version
    last = peek(int64, version + {last})
    if last == 0:
        return 0
    if as_int(last) > as_int(peek(int64, node + {sequence})):
        return 0
    return 1
"""


def may_be_saved(table: ObjectTable) -> str:
    """The text of ``may_be_saved(context, memory)``: ``keep`` and ``refresh`` do nothing."""
    slots = offsets.slots(table.objects["VERSION"])
    return f"""{version_of(table)}
def may_be_saved(context, memory):
    # whether a node may save a Tensor with that memory as it is, and its history is up to date
    version = version_of(context, memory)
    if version < 2:
        return version
    if version != memory:  # a view
        rebased = peek(int64, version + {slots["rebased"]})
        if rebased == 0:
            return 0
        if as_int(rebased) >= 0:
            return 0
    if version == {table["INFERENCE"]}:
        return 0
    foreign = peek(int64, version + {slots["foreign"]})
    if foreign == {table["TRUE"]}:
        return {GUARDED}
    if foreign != {table["FALSE"]}:
        return 0
    return 1
"""
