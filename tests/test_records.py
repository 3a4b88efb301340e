"""Records are what Python's dataclasses are."""

import copy
import dataclasses
import pickle
from dataclasses import field

import pytest

from numgrad.records import record

OPTIONS = [
    {}, {"frozen": True}, {"slots": True}, {"eq": False}, {"frozen": True, "eq": False},
    {"frozen": True, "slots": True}, {"slots": True, "unsafe_hash": True},
]  # fmt: skip


def defined(make, options):
    class Base:
        """What both have."""

        __qualname__ = "Base"
        a: int
        b: tuple = (1, 2.5)
        c: list = field(default_factory=list, compare=False)
        e: int = field(init=False, default=7, repr=False)

        def __len__(self):
            return self.a

    return make(**options)(Base)


def outcome(run):
    try:
        return run()
    except Exception as error:
        return type(error)


def observed(make, options):
    kind, nan = defined(make, options), float("nan")
    x, y, z = kind(1, (nan,)), kind(1, (nan,), [5]), kind(a=2, c=[3])
    found = [f.name for f in dataclasses.fields(kind)]
    found += [len(x), x.e, z.b[0], x.c, z.c, x == y, x == x, x != z, x == 3]
    found += [kind.__dataclass_params__.frozen, kind.__match_args__, hasattr(x, "__dict__")]
    runs = [
        lambda: repr(x), lambda: hash(x) == hash(y), lambda: hash(z) == hash(kind(2)),
        lambda: kind(), lambda: kind(1, 2, 3, 4), lambda: dataclasses.replace(z, a=9).a,
        lambda: copy.copy(z).c, lambda: setattr(x, "a", 3), lambda: delattr(y, "a"),
    ]  # fmt: skip
    if not options.get("slots"):
        runs.append(lambda: setattr(x, "other", 3))
    return found + [outcome(run) for run in runs]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_record_does_what_a_dataclass_does(options):
    expected = observed(dataclasses.dataclass, options)
    assert all(x is y or x == y for x, y in zip(observed(record, options), expected, strict=True))


@record(frozen=True, slots=True)
class Kept:
    """One that is pickled, and has a default that a factory makes."""

    a: int
    b: list = field(default_factory=list)

    def __post_init__(self):
        self.b.append(self.a)


def test_frozen_records_with_slots_are_pickled():
    kept = Kept(3)
    assert kept.b == [3]
    assert pickle.loads(pickle.dumps(kept)) == kept == copy.deepcopy(kept)


def test_methods_of_a_class_of_its_own_stay():
    @record(frozen=True)
    class Own:
        """Compares by one field."""

        a: int
        b: int

        def __eq__(self, other):
            return self.a == other.a

        def __repr__(self):
            return "own"

    assert (repr(Own(1, 2)), Own(1, 2) == Own(1, 3)) == ("own", True)
    assert hash(Own(1, 2)) == hash(Own(1, 2)) != hash(Own(1, 3))
