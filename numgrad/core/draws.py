"""Random numbers that are drawn together, although code asks for them one by one.

Note [Draws of a body]
----------------------
A compiled loop or branch draws no random numbers itself: those of all its steps are drawn before
it, in the order in which a Python loop would draw them, and it is given them. So a body stays
a function of what it gets: it may be computed again, derived and batched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Ready = tuple[list[tuple[tuple[int, ...], np.dtype]], Callable[[], list[np.ndarray]]]
"""Shapes and dtypes of what is drawn, and what draws it, each time it is called."""


@dataclass(frozen=True)
class Draw:
    """One call that draws: ``function(*operands, shape)``.

    ``apart`` says that elements do not depend on each other.
    """

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    shape: tuple[Any, ...]
    dtype: np.dtype
    apart: bool = True

    @property
    def results(self) -> list[tuple[tuple[Any, ...], np.dtype]]:
        """Shape and dtype of what is drawn."""
        return [(self.shape, self.dtype)]

    @property
    def leads(self) -> list[int]:
        """How many axes of a result are those of draws around it."""
        return [0]

    @property
    def values(self) -> list[Any]:
        """What is read when it is drawn."""
        return [*self.operands, *self.shape]

    def on(self, change: Callable[[Any, np.dtype], Any]) -> Draw:
        """The same with other operands, made of these and of the dtype of what is drawn."""
        return replace(self, operands=tuple([change(x, self.dtype) for x in self.operands]))

    def ready(self, values: Iterator[Any]) -> Ready:
        """Take what is read."""
        operands = [next(values) for _ in self.operands]
        shape = tuple([int(next(values)) for _ in self.shape])
        return [(shape, self.dtype)], lambda: [np.asarray(self.function(*operands, shape))]


@dataclass(frozen=True)
class Draws:
    """Draws of a body that runs many times, or not at all.

    Attributes
    ----------
    parts
        The draws, in order.
    order
        From the numbers ``extra`` and the lengths ``lead``: in which order to draw, pairs of a part
        and of the place of what it gives in a result.
    lead
        Lengths of the axes that results have in front, of the places.
    """

    parts: tuple[Draw | Draws, ...]
    order: Callable[[list[Any], list[int]], Iterator[tuple[int, Any]]]
    lead: tuple[Any, ...] = ()
    extra: tuple[Any, ...] = ()

    @property
    def results(self) -> list[tuple[tuple[Any, ...], np.dtype]]:
        """Shapes and dtypes of what is drawn."""
        return [((*self.lead, *shape), dtype) for p in self.parts for shape, dtype in p.results]

    @property
    def leads(self) -> list[int]:
        """How many axes of each result are those of draws around it."""
        return [len(self.lead) + n for part in self.parts for n in part.leads]

    @property
    def values(self) -> list[Any]:
        """What is read when it is drawn."""
        return [*self.extra, *self.lead, *(v for part in self.parts for v in part.values)]

    def on(self, change: Callable[[Any, np.dtype], Any]) -> Draws:
        """The same with other operands, made of these and of the dtype of what is drawn."""
        parts = tuple([part.on(change) for part in self.parts])
        extra = tuple([change(x, np.dtype(np.int64)) for x in self.extra])
        return replace(self, parts=parts, extra=extra)

    def ready(self, values: Iterator[Any]) -> Ready:
        """Take what is read."""
        extra = [next(values) for _ in self.extra]
        lead = [int(next(values)) for _ in self.lead]
        parts = [part.ready(values) for part in self.parts]
        metas = [[((*lead, *shape), dtype) for shape, dtype in found] for found, _ in parts]

        def draw() -> list[np.ndarray]:
            found = [[np.zeros(shape, dtype) for shape, dtype in each] for each in metas]
            for k, place in self.order(extra, lead):
                for whole, part in zip(found[k], parts[k][1](), strict=True):
                    whole[place] = part
            return [array for each in found for array in each]

        return [meta for each in metas for meta in each], draw


def drawing(draw: Draw | Draws) -> Callable[..., tuple]:
    """A function of the ``values`` that draws."""

    def function(*values: Any) -> tuple:
        metas, call = draw.ready(iter(values))
        made = zip(call(), metas, strict=True)
        return tuple([a.astype(dtype, copy=False) for a, (_, dtype) in made])

    return function


def of_steps(parts: Sequence[Draw | Draws], length: Any, reverse: bool) -> Draws:
    """What all steps of a loop draw."""

    def order(_: list[Any], lead: list[int]) -> Iterator[tuple[int, Any]]:
        for k in range(lead[0])[::-1] if reverse else range(lead[0]):
            for number in range(len(parts)):
                yield number, k

    return Draws(tuple(parts), order, (length,))


def of_branches(groups: Sequence[Sequence[Draw | Draws]], which: Any) -> Draws:
    """What the branches draw that are chosen by a number, or by those of all examples."""
    numbers = [k for k, group in enumerate(groups) for _ in group]

    def order(extra: list[Any], _: list[int]) -> Iterator[tuple[int, Any]]:
        chosen = set(np.clip(extra[0], 0, len(groups) - 1).ravel().tolist())
        for number, k in enumerate(numbers):
            if k in chosen:
                yield number, ...

    return Draws(tuple([part for group in groups for part in group]), order, (), (which,))
