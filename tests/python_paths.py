"""Python's form of the hot paths, and machine code's: Note [Hot paths] in ``codegen.cpython``."""

from collections.abc import Iterator
from contextlib import contextmanager

import numgrad as ng
from numgrad.autograd.engine import walk
from numgrad.codegen.cpython import hot_paths
from numgrad.tensors import recorder


def machine_code() -> None:
    """Have machine code in use from here on, where it can be."""
    if hot_paths.waiting:
        ng.exp(ng.tensor(1.0))  # the first kernel
        hot_paths.install()


@contextmanager
def python_paths() -> Iterator[None]:
    """Inside, calls of operations and walks of backwards run in Python."""
    advance, watched = walk._advance, recorder.is_watched()
    walk._advance = None
    recorder.stand_aside(True)
    try:
        yield
    finally:
        walk._advance = advance
        recorder.stand_aside(watched)
