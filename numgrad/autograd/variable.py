"""``Tensor`` as the engine sees it: an array and its place in the graph.

Methods, operators and the NumPy protocols are attached by ``numgrad.tensor``.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Version:
    """Counts the writes to memory that a tensor, its views and its detached copies share.

    ``last`` is the sequence number of the latest write: a node that saved the tensor compares it
    with its own, so saving needs no look at the version (see ``Node``). ``foreign`` memory belongs
    to an ndarray of the user's, who can write to it unseen: see Note [Guards] in ``saved``.
    """

    __slots__ = ("count", "foreign", "last")

    def __init__(self, *, foreign: bool = False) -> None:
        self.count = 0
        self.last = -1
        self.foreign = foreign


class Tensor:
    """An n-dimensional array that can record the operations applied to it."""

    # ``_slot`` is 0 for the one output of a node and k + 1 for output k of several;
    # ``_version`` is None until something must share it; ``_hooks`` until a hook exists
    __slots__ = (
        "__weakref__",
        "_array",
        "_grad",
        "_hooks",
        "_requires_grad",
        "_slot",
        "_version",
        "grad_fn",
    )

    def __init__(
        self,
        array: np.ndarray,
        requires_grad: bool = False,
        grad_fn: Any = None,
        slot: int = 0,
        version: Version | None = None,
    ) -> None:
        self._array = array
        self._requires_grad = requires_grad
        self.grad_fn = grad_fn
        self._slot = slot
        self._version = version
        self._grad = None
        self._hooks = None


def shared_version(tensor: Tensor) -> Version:
    """The version counter of a tensor, for a view or detached copy to share."""
    version = tensor._version
    if version is None:
        version = tensor._version = Version()
        if tensor.grad_fn is not None:
            tensor.grad_fn.watch_output(tensor._slot, version)
    return version
