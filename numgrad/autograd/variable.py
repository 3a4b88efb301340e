"""``Tensor`` as the engine sees it: an array and its place in the graph.

Methods, operators and the NumPy protocols are attached by ``numgrad.tensors.tensor``.

Note [Views]
------------
A view holds its *root* strongly, the tensor that owns the memory (a view of a view has the same
root). How a view lies in its root is read from the two arrays (``region.Region``), so nothing is
noted when a view is made. Writing to any tensor of the family rewrites the history of the root;
``Version.rebased`` says when, and a view whose ``_grad_fn`` is older gets a new one the next time
somebody looks (``refresh``). So families without an in-place operation pay one comparison with
None per use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.versions import Version, shared_version
from numgrad.core.foreign import refuse_mask
from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError

NO_GRAD_VIEW = -1
"""``_slot`` of a view that was made where nothing was recorded."""


class Extra:
    """The side object of a tensor that has hooks, a retained gradient or tangents."""

    hooks: Any = None
    """Hooks of a leaf and of its accumulator (``hooks.LeafHooks``)."""
    retains_grad: bool = False
    """Whether a result keeps its gradient as a leaf does."""
    tangents: Any = None
    """Forward mode: tangent by dual level."""


class Tensor:
    """An n-dimensional array that can record the operations applied to it."""

    # ``_slot`` is 0 for the one output of a node and k + 1 for output k of several;
    # ``_memory`` is the root of a view, else None until something must share the Version;
    # ``_extra`` is None until there is something extra
    __slots__ = (
        "__weakref__",
        "_array",
        "_extra",
        "_grad",
        "_grad_fn",
        "_memory",
        "_requires_grad",
        "_slot",
    )
    _array: np.ndarray
    _extra: Extra | None
    _grad: Any  # Tensor | RowSparseTensor | None
    _grad_fn: Any
    _memory: Version | Tensor | None
    _requires_grad: bool
    _slot: int
    _applies = False
    """Whether it says itself what operations on it mean: ``bind`` of ``core.interpreter``."""

    def __init__(
        self,
        array: np.ndarray,
        requires_grad: bool = False,
        grad_fn: Any = None,
        slot: int = 0,
        memory: Version | Tensor | None = None,
    ) -> None:
        self._array = array
        self._requires_grad = requires_grad
        self._grad_fn = grad_fn
        self._slot = slot
        self._memory = memory
        self._grad = None
        self._extra = None


class Parameter(Tensor):
    """A tensor that is to be fitted: modules register it, optimizers change it.

    Parameters
    ----------
    data
        A floating or complex Tensor, whose memory is shared, or anything ``ng.tensor`` takes,
        which is copied; nothing for an empty tensor.
    requires_grad
        Whether gradients are wanted.

    Raises
    ------
    NumgradRuntimeError
        If gradients are wanted for a dtype that has none.

    Notes
    -----
    A parameter is always a leaf, whatever ``data`` was computed from. It takes attributes of your
    own, as in ``p.no_decay = True``, which go with copies and pickles of it; other Tensors do not,
    since there are so many of them.

    Examples
    --------
    >>> from numgrad.autograd.variable import Parameter
    >>> Parameter([1.0, 2.0])
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    __slots__ = ("__dict__",)

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        if isinstance(data, Tensor):
            array, memory = data._array, shared_version(data)
        else:
            refuse_mask("Parameter", data)
            array, memory = np.array([] if data is None else data), None
        if requires_grad and array.dtype.kind not in "fc":
            raise NumgradRuntimeError(
                f"Parameter: tensors of dtype {array.dtype} have no gradients; use a floating or "
                "complex dtype, or requires_grad=False"
            )
        super().__init__(array, bool(requires_grad), memory=memory)


TENSORS: tuple[type[Tensor], ...] = (Tensor, Parameter)
"""The classes that the hot paths know; other subclasses of Tensor take the general ones."""


def root(tensor: Tensor) -> Tensor:
    """The tensor whose memory this is: itself unless it is a view."""
    memory = tensor._memory
    return memory if isinstance(memory, Tensor) else tensor


def extra(tensor: Tensor) -> Extra:
    """The side object of a tensor, made now if there is none."""
    side = tensor._extra
    if side is None:
        side = tensor._extra = Extra()
    return side


def constant(value: Any) -> Tensor:
    """A number or array as a Tensor without a history."""
    shared = isinstance(value, np.ndarray) and not state.ground.deferred
    return Tensor(state.ground.lift(value), memory=Version(foreign=True) if shared else None)


def gradient_of(tensor: Tensor) -> Any:
    """The accumulated gradient."""
    return state.ground.gradient(tensor)


def set_gradient(tensor: Tensor, value: Any) -> None:
    """Replace the accumulated gradient."""
    state.ground.set_gradient(tensor, value)


_replay: Callable[[Tensor, Tensor], None]


def install_replay(function: Callable[[Tensor, Tensor], None]) -> None:
    """Set what gives a view its history after its root's was rewritten."""
    global _replay
    _replay = function


def refresh(view: Tensor) -> None:
    """Bring the history of a view up to date: Note [Views]. Others are left alone."""
    owner = view._memory
    if not isinstance(owner, Tensor):
        return
    version = owner._memory
    if version is None or version.rebased < 0:  # pyright: ignore
        return
    node = view._grad_fn
    if node is None:
        if owner._requires_grad and view._slot != NO_GRAD_VIEW:
            _replay(view, owner)
    elif node.sequence < version.rebased:  # pyright: ignore
        _replay(view, owner)
