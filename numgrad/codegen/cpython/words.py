"""Words in memory for machine code: numbers, and addresses of objects that are held meanwhile."""

from __future__ import annotations

import struct
from typing import Any, Self

import numpy as np

_INTEGERS = (int, np.integer)


class Words(bytes):
    """Words for machine code; ``referenced`` are the objects whose addresses are among them."""

    referenced: Any

    @classmethod
    def of(cls, *values: Any) -> Self:
        """The words: integers as they are, the places of tables, addresses of other objects."""
        made = cls(struct.pack(f"{len(values)}q", *map(_word, values)))
        made.referenced = [value for value in values if not isinstance(value, _INTEGERS)]
        return made


def _word(value: Any) -> int:
    if isinstance(value, _INTEGERS):
        return int(value)
    return value.address if type(value) is ObjectTable else id(value)


class ObjectTable:
    """The objects that a text names, in memory where its machine code finds their addresses.

    The text has the address of the table in the variable ``context``; ``table["NAME"]`` is how it
    writes an object. The first word is a number that machine code looks at, 0 in the beginning.
    """

    def __init__(self, **objects: Any) -> None:
        self.objects = objects
        self.words = np.array([0, *map(id, objects.values())])
        self._positions = {name: k for k, name in enumerate(objects, 1)}

    def __getitem__(self, name: str) -> str:
        return f"peek(int64, context + {8 * self._positions[name]})"

    @property
    def address(self) -> int:
        """Where it lies; who calls machine code with it keeps the table."""
        return self.words.ctypes.data
