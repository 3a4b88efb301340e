"""Referents of functions and containers: values, and expressions that read them again."""

from collections import deque
from functools import cached_property, partial
from types import MappingProxyType

import pytest

from numgrad.core.referents import referents

OUTER = [1.0]


def function():
    enclosed, unset = {"a": 1}, None
    del unset

    def inner(x, y=2, z=OUTER, *, w=3):
        return enclosed, unset, x, y, z, w  # noqa: F821

    return inner


class Owner:
    @property
    def read_only(self):
        return 1

    @cached_property
    def computed(self):
        return 2

    def method(self):
        return self


OWNER = Owner()
CASES = {
    "function": (function(), [{"a": 1}, 2, OUTER, 3]),
    "method": (OWNER.method, [Owner.method, OWNER]),
    "partial": (partial(max, 5, 6, key=abs), [max, 5, 6, abs]),
    "dict": ({"a": 1, 2: 3, (4,): 5}, [1, 3, 5]),
    "proxy": (MappingProxyType({"a": 1}), [1]),
    "list": ([1, [2]], [1, [2]]),
    "tuple": ((1, 2), [1, 2]),
    "deque": (deque([1]), [1]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_held_is_read_again_by_its_expression(name):
    holder, expected = CASES[name]
    parts = list(referents(holder))
    assert [x for x, *_ in parts] == expected
    for x, _, key, within, access in parts:
        names = {"_holder": within, "_key": key}
        again = eval(access.replace("{0}", "_holder").replace("{1}", "_key"), names)
        assert again is x or again == x


def test_functions_behind_descriptors_and_other_objects():
    assert [x for x, *_ in referents(vars(Owner)["read_only"])] == [Owner.read_only.fget]
    assert [x for x, *_ in referents(vars(Owner)["computed"])] == [Owner.computed.func]
    assert referents(OWNER) is None
    assert referents(1.0) is None


def test_the_methods_of_a_users_dict_do_not_run():
    class Refusing(dict):
        def items(self):
            raise AssertionError

    assert [x for x, *_ in referents(Refusing(a=1))] == [1]
