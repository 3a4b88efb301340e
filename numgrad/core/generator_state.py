"""What a generator of random numbers draws next, as an array: its state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from numgrad.codegen.locks import DRAWS

WORD = np.dtype(np.uint64)
_BITS, _WORDS = 64, 2
"""Of a word, and the words of a Python integer."""


def words_of(source: np.random.BitGenerator) -> np.ndarray:
    """The state of a generator.

    Examples
    --------
    >>> import numpy as np
    >>> from numgrad.core.generator_state import words_of
    >>> words_of(np.random.PCG64(0)).shape
    (8,)
    """
    found: list[Any] = []
    _collect(source.state, found)
    return np.array(found, WORD)


def _collect(part: Any, found: list[Any]) -> None:
    if isinstance(part, dict):
        for each in part.values():
            _collect(each, found)
    elif isinstance(part, np.ndarray):
        found.extend(part.ravel().tolist())
    elif not isinstance(part, str):
        number = int(part)
        found += [number & (1 << _BITS) - 1, number >> _BITS]


def _state(like: Any, words: Iterator[int]) -> Any:
    """The state that words stand for, like that of a generator of the same kind."""
    if isinstance(like, dict):
        return {name: _state(part, words) for name, part in like.items()}
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
