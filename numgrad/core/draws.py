"""Random numbers that are drawn together, and states of generators as arrays.

Note [Draws of a body]
----------------------
A compiled loop or branch draws no random numbers itself: those of all its steps are drawn before
it, in the order in which a Python loop would draw them, and it is given them. So a body stays
a function of what it gets: it may be computed again, derived and batched.

Where that cannot be, since the loop itself decides how often it draws, or computes with what
parameters, the state of the generator is part of its carry, and an operation draws from a state
(``draw_from``): Note [Generators that are carried].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from numgrad.codegen.locks import DRAWS
from numgrad.dataclass import dataclass


@dataclass(frozen=True)
class Draw:
    """One call that draws: ``function(*operands, shape)``.

    ``source`` is what it draws from. Elements of one that is ``independent`` do not depend on
    each other.
    """

    function: Callable[..., Any]
    source: np.random.BitGenerator
    operands: tuple[Any, ...]
    shape: tuple[Any, ...]
    dtype: np.dtype
    independent: bool = True

    @property
    def sources(self) -> list[np.random.BitGenerator]:
        """The generator it draws from."""
        return [self.source]

    @property
    def results(self) -> list[tuple[tuple[Any, ...], np.dtype]]:
        """Shape and dtype of what is drawn."""
        return [(self.shape, self.dtype)]

    @property
    def leads(self) -> list[int]:
        """How many axes of a result are those of draws around it."""
        return [0]

    @property
    def data(self) -> list[Any]:
        """The arrays and numbers that are read when it is drawn."""
        return list(self.operands)

    @property
    def lengths(self) -> list[Any]:
        """The lengths that are read when it is drawn."""
        return list(self.shape)

    def on(self, change: Callable[[Any, np.dtype], Any]) -> Draw:
        """The same with other operands, made of these and of the dtype of what is drawn."""
        return replace(self, operands=tuple([change(x, self.dtype) for x in self.operands]))

    def of(self, data: Iterator[Any], lengths: Iterator[Any]) -> Draw:
        """The same of other data and lengths, which are taken from iterators."""
        operands = tuple([next(data) for _ in self.operands])
        return replace(self, operands=operands, shape=tuple([next(lengths) for _ in self.shape]))

    def __call__(self) -> list[np.ndarray]:
        """Draw."""
        return [
            np.asarray(self.function(*self.operands, self.shape)).astype(self.dtype, copy=False)
        ]


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
    order: Callable[[tuple[Any, ...], tuple[int, ...]], Iterator[tuple[int, Any]]]
    lead: tuple[Any, ...] = ()
    extra: tuple[Any, ...] = ()

    @property
    def sources(self) -> list[np.random.BitGenerator]:
        """The generators they draw from, each once."""
        return list({id(s): s for member in self.parts for s in member.sources}.values())

    @property
    def results(self) -> list[tuple[tuple[Any, ...], np.dtype]]:
        """Shapes and dtypes of what is drawn."""
        return [((*self.lead, *shape), dtype) for p in self.parts for shape, dtype in p.results]

    @property
    def leads(self) -> list[int]:
        """How many axes of each result are those of draws around it."""
        return [len(self.lead) + n for member in self.parts for n in member.leads]

    @property
    def data(self) -> list[Any]:
        """The arrays and numbers that are read when they are drawn."""
        return [*self.extra, *(x for member in self.parts for x in member.data)]

    @property
    def lengths(self) -> list[Any]:
        """The lengths that are read when they are drawn."""
        return [*self.lead, *(n for member in self.parts for n in member.lengths)]

    def on(self, change: Callable[[Any, np.dtype], Any]) -> Draws:
        """The same with other operands, made of these and of the dtype of what is drawn."""
        members = tuple([member.on(change) for member in self.parts])
        extra = tuple([change(x, np.dtype(np.int64)) for x in self.extra])
        return replace(self, parts=members, extra=extra)

    def of(self, data: Iterator[Any], lengths: Iterator[Any]) -> Draws:
        """The same of other data and lengths, which are taken from iterators."""
        extra = tuple([next(data) for _ in self.extra])
        lead = tuple([next(lengths) for _ in self.lead])
        members = tuple([member.of(data, lengths) for member in self.parts])
        return replace(self, parts=members, lead=lead, extra=extra)

    def __call__(self) -> list[np.ndarray]:
        """Draw."""
        arrays = [
            [np.zeros((*self.lead, *shape), dtype) for shape, dtype in member.results]
            for member in self.parts
        ]
        for k, index in self.order(self.extra, self.lead):
            for whole, member in zip(arrays[k], self.parts[k](), strict=True):
                whole[index] = member
        return [array for each in arrays for array in each]


def drawing(draws: Draw | Draws) -> Callable[..., tuple]:
    """A function of the data, then the lengths, that draws."""
    count = len(draws.data)

    def function(*values: Any) -> tuple:
        return tuple(draws.of(iter(values[:count]), map(int, values[count:]))())

    return function


def without_operands(draws: Draw | Draws) -> Draw | Draws:
    """The same without its data and lengths, which ``of`` gives it again."""
    return draws.of(iter([None] * len(draws.data)), iter([0] * len(draws.lengths)))


def of_steps(members: Sequence[Draw | Draws], length: Any, reverse: bool) -> Draws:
    """Draws of all steps of a loop."""

    def order(_: tuple[Any, ...], lead: tuple[int, ...]) -> Iterator[tuple[int, Any]]:
        for k in range(lead[0])[::-1] if reverse else range(lead[0]):
            for number in range(len(members)):
                yield number, k

    return Draws(tuple(members), order, (length,))


def of_branches(groups: Sequence[Sequence[Draw | Draws]], which: Any) -> Draws:
    """Draws of branches that are chosen by a number, or by those of all examples."""
    numbers = [k for k, group in enumerate(groups) for _ in group]

    def order(extra: tuple[Any, ...], _: tuple[int, ...]) -> Iterator[tuple[int, Any]]:
        indices = set(np.clip(extra[0], 0, len(groups) - 1).ravel().tolist())
        for number, k in enumerate(numbers):
            if k in indices:
                yield number, ...

    return Draws(tuple([member for group in groups for member in group]), order, (), (which,))


WORD = np.dtype(np.uint64)
_BITS, _WORDS = 64, 2
"""Bits of a word, and the words of a Python integer."""


def words_of(source: np.random.BitGenerator) -> np.ndarray:
    """The state of a generator.

    Examples
    --------
    >>> import numpy as np
    >>> from numgrad.core.draws import words_of
    >>> words_of(np.random.PCG64(0)).shape
    (8,)
    """
    words: list[Any] = []
    _collect(source.state, words)
    return np.array(words, WORD)


def _collect(node: Any, words: list[Any]) -> None:
    if isinstance(node, dict):
        for each in node.values():
            _collect(each, words)
    elif isinstance(node, np.ndarray):
        words.extend(node.ravel().tolist())
    elif not isinstance(node, str):
        number = int(node)
        words += [number & (1 << _BITS) - 1, number >> _BITS]


def _state(like: Any, words: Iterator[int]) -> Any:
    """The state that words stand for, like that of a generator of the same kind."""
    if isinstance(like, dict):
        return {name: _state(value, words) for name, value in like.items()}
    if isinstance(like, np.ndarray):
        return np.array([next(words) for _ in range(like.size)], like.dtype).reshape(like.shape)
    if isinstance(like, str):
        return like
    return next(words) | next(words) << _BITS


def put_words(source: np.random.BitGenerator, words: np.ndarray) -> None:
    """Let a generator go on from a state of ``words_of``."""
    source.state = _state(source.state, iter(words.tolist()))


@contextmanager
def going_on(
    sources: Sequence[np.random.BitGenerator], states: Sequence[np.ndarray]
) -> Iterator[list[np.ndarray]]:
    """Inside, generators draw from other states; the list holds what these are in the end.

    Nobody else draws meanwhile, and the generators themselves stay as they were. Where NumPy's lock
    cannot be taken twice (before 2.4), which drawing would do, that holds of compiled loops only.
    """
    after: list[np.ndarray] = []
    with ExitStack() as stack:
        stack.enter_context(DRAWS)
        for source in sources:
            if isinstance(source.lock, type(DRAWS)):
                stack.enter_context(source.lock)
        before = [source.state for source in sources]
        try:
            for source, words in zip(sources, states, strict=True):
                put_words(source, words)
            yield after
            after += [words_of(source) for source in sources]
        finally:
            for source, old in zip(sources, before, strict=True):
                source.state = old
