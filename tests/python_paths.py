"""The Python form of what ordinarily runs in machine code: Note [Hot paths] in ``codegen.hot``."""

from collections.abc import Iterator
from contextlib import contextmanager

import numgrad as ng
from numgrad.autograd.engine import advance as walking
from numgrad.codegen import hot
from numgrad.tensors import recorder


def machine_code() -> None:
    """Have machine code in use from here on, where it can be."""
    if hot.waiting:
        ng.exp(ng.tensor(1.0))  # the first kernel
        hot.install()


@contextmanager
def python_paths() -> Iterator[None]:
    """Inside, calls of operations and walks of backwards run in Python."""
    advance, watched = walking.advance, recorder.is_watched()
    walking.advance = None
    recorder.stand_aside(True)
    try:
        yield
    finally:
        walking.advance = advance
        recorder.stand_aside(watched)
