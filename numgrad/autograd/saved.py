"""Saved values of a node: checks that they are unchanged, and hooks that pack them.

Note [Guards]
-------------
A saved Tensor is checked by its version. A user's ndarray has none: up to 32 KiB it is copied;
above that a fingerprint of sampled elements is kept and compared when a backward reads it; in
anomaly mode every element counts. A Tensor over a user's memory (``ng.asarray``, a view of an
ndarray) is no more than that if it is a constant; one that must stay the same object, since
gradients go to it, always has a fingerprint.

Note [Layouts of saved values]
------------------------------
What was C-contiguous when it was saved is so when a backward reads it. Anything else may then lie
in memory in any way, as a copy, or what a hook or a checkpoint returned, does: a backward takes the
strides from the array it gets, or brings it into the layout that its kernel was chosen for.

Note [Packed values]
--------------------
Hooks see a saved array as a new Tensor over the same memory. What the pack hook returns replaces
it in the node, together with the place in the graph it came from, so that what the unpack hook
makes of it can be differentiated through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.autograd.versions import INFERENCE, version_of
from numgrad.core.interpreter import Changing, ThreadSettings, state
from numgrad.errors import NumgradAssertionError, NumgradRuntimeError, NumgradTypeError

COPY_BYTES = 32 * 1024
_SAMPLES = 509  # prime, so that a stride seldom meets a period of the data


class Guard:
    """A user's array with the fingerprint of its content at the time it was saved."""

    __slots__ = ("array", "fingerprint", "tensor", "whole")

    def __init__(self, array: np.ndarray, tensor: Tensor | None = None) -> None:
        # a view, since the user may give the array another shape or dtype
        self.array, self.tensor = array.view() if tensor is None else array, tensor
        self.whole = bool(state.anomaly)
        self.fingerprint = _fingerprint(array, self.whole)

    def check(self, name: Callable[[], str]) -> None:
        """Raise, in the name of who saved it, if the content is not what it was."""
        if _fingerprint(self.array, self.whole) != self.fingerprint:
            raise NumgradRuntimeError(
                f"{name()}: the backward needs the array of shape {self.array.shape} and dtype "
                f"{self.array.dtype} as it was when the operation ran, but its owner changed it "
                "since; pass a copy, or change it after backward()"
            )


def _fingerprint(array: np.ndarray, whole: bool) -> bytes:
    if whole:
        from hashlib import blake2b  # with OpenSSL, 3 ms that importing numgrad does not need

        return blake2b(np.ascontiguousarray(array).data).digest()
    if array.size <= _SAMPLES:
        return array.tobytes()
    step = array.size // _SAMPLES
    if array.flags.c_contiguous:
        return array.ravel()[::step].tobytes() + array.ravel()[-1:].tobytes()
    return array.flat[::step].tobytes()


def keep(operand: Any) -> Any:
    """An operand as a node saves it."""
    if isinstance(operand, Tensor):
        version = version_of(operand)
        if version is None:
            return operand
        if version is INFERENCE:
            raise NumgradRuntimeError(
                "saving for backward: an operand was made in inference mode, where no history is "
                "kept; clone() it outside, or make it under no_grad"
            )
        if not (version.foreign and isinstance(operand._array, np.ndarray)):
            return operand  # made of a user's array by a trace, it holds no numbers
        # a constant is nothing but its array, unless it has a tangent
        constant = not operand._requires_grad and operand._extra is None
        return _guarded(operand._array, None if constant else operand)
    if type(operand) is np.ndarray:
        return _guarded(operand, None)
    return operand


def _guarded(array: np.ndarray, tensor: Tensor | None) -> Any:
    """A user's ndarray, or a Tensor over one, as a node keeps it."""
    if not array.flags.writeable and array.base is None:
        return tensor if tensor is not None else array
    if tensor is None and array.nbytes <= COPY_BYTES:
        return array.copy(order="K")  # compact, and what is transposed remains so
    return Guard(array, tensor)


# ---------------------------------------------------------------------------------------- hooks


class Packed:
    """A saved array that a pair of hooks holds: Note [Packed values].

    ``origin`` is the edge to the operand it was, None for a constant or the node's own result;
    ``tangents`` are the operand's in forward mode.
    """

    __slots__ = ("content", "contiguous", "dtype", "origin", "shape", "tangents", "unpack_hook")

    def __init__(
        self, value: Tensor | np.ndarray, pack: Callable[..., Any], unpack: Callable[..., Any]
    ) -> None:
        tensor = Tensor(value._array if isinstance(value, Tensor) else value)
        array = tensor._array
        self.shape, self.dtype = array.shape, array.dtype
        self.contiguous = array.flags.c_contiguous
        self.origin = self.tangents = None
        if isinstance(value, Tensor):
            self.origin = _origin(value)
            self.tangents = None if value._extra is None else value._extra.tangents
        self.unpack_hook = unpack
        with _quiet():
            self.content = pack(tensor)
        version = version_of(tensor)
        if version is not None and version.count:
            raise NumgradRuntimeError(
                "saved_tensors_hooks: the pack hook changed its argument in place, which the "
                "forward still uses; return a changed copy"
            )

    def unpack(self) -> np.ndarray:
        """The array as it was saved."""
        with _quiet():
            value = self.unpack_hook(self.content)
        if not isinstance(value, Tensor):
            raise NumgradTypeError(
                f"saved_tensors_hooks: the unpack hook returned {type(value).__name__}; it must "
                "return a Tensor"
            )
        array = value._array
        if array.shape != self.shape or array.dtype != self.dtype:
            raise NumgradRuntimeError(
                f"saved_tensors_hooks: the unpack hook returned shape {array.shape} and dtype "
                f"{array.dtype} for a tensor saved with shape {self.shape} and dtype {self.dtype}"
            )
        if self.contiguous and not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)  # Note [Layouts of saved values]
        return array


def _quiet() -> ThreadSettings:
    """Run a hook without hooks and without recording; modes that it enters end with it."""
    return ThreadSettings(**(state.modes() | {"saved_hooks": (), "grad_enabled": False}))


def pack(value: Any, pair: tuple[Callable[..., Any], Callable[..., Any]] | None) -> Any:
    """Pack ``value`` by a pair of hooks, if there is one; numbers stay."""
    if pair is None:
        return value
    if type(value) is tuple:
        return tuple(pack(item, pair) for item in value)
    if type(value) is Guard:
        return pack(value.array if value.tensor is None else value.tensor, pair)
    return Packed(value, *pair) if isinstance(value, Tensor | np.ndarray) else value


def _origin(tensor: Tensor) -> Any:
    if not tensor._requires_grad:
        return None
    if tensor._grad_fn is None:
        return tensor
    return (tensor._grad_fn, tensor._slot - 1) if tensor._slot else tensor._grad_fn


class saved_tensors_hooks(Changing):
    """Let a pair of functions keep what operations save for backward: on disk, compressed, ...

    Parameters
    ----------
    pack_hook
        Called once with each tensor an operation saves; what it returns is kept instead.
    unpack_hook
        Called with that whenever a backward needs the tensor, which it returns: a Tensor of the
        same shape, dtype and values.

    Notes
    -----
    Hooks belong to the thread that enters the context, and the innermost pair is used. What other
    threads record is not packed: enter the context in them. What a pack hook returns is not
    checked for later changes.

    Examples
    --------
    On disk; the files go with the graph:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np, numgrad as ng
    >>> folder = tempfile.TemporaryDirectory()
    >>> class OnDisk:
    ...     def __init__(self, tensor):
    ...         self.path = Path(folder.name, f"{id(self)}.npy")
    ...         np.save(self.path, tensor.numpy())
    ...     def __del__(self):
    ...         self.path.unlink(missing_ok=True)
    ...     def load(self):
    ...         return ng.from_numpy(np.load(self.path))
    >>> x = ng.tensor([0.0, 1.0], requires_grad=True)
    >>> with ng.autograd.graph.saved_tensors_hooks(OnDisk, OnDisk.load):
    ...     y = ng.sum(x * x)
    >>> len(list(Path(folder.name).iterdir()))
    2
    >>> y.backward()
    >>> len(list(Path(folder.name).iterdir()))
    0
    >>> folder.cleanup()

    In worker threads, which enter the context themselves:

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> def work(x):
    ...     show = lambda t: print("packing") or t
    ...     with ng.autograd.graph.saved_tensors_hooks(show, lambda t: t):
    ...         return ng.exp(x)
    >>> with ThreadPoolExecutor() as pool:
    ...     y = pool.submit(work, x).result()
    packing
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        for name, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            if not callable(hook):
                raise NumgradTypeError(
                    f"saved_tensors_hooks: {name} is a function, got {type(hook).__name__}"
                )
        self._pair: Any = (pack_hook, unpack_hook)

    def _changes(self) -> dict[str, Any]:
        if state.saved_hooks_disabled is not None:
            raise NumgradRuntimeError(state.saved_hooks_disabled)
        state.ground.saved_hooks()
        return {"saved_hooks": (*state.saved_hooks, self._pair)}


class save_on_cpu(saved_tensors_hooks):
    """Keep what operations save for backward in the memory of the CPU, where it is already.

    Programs written for several devices run as they are; nothing is copied. As with other hooks
    for saved tensors the innermost count: those around the block are not asked for what is saved
    inside.

    Parameters
    ----------
    pin_memory, device_type
        Of no effect: there is no device to copy to.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> with ng.autograd.graph.save_on_cpu(pin_memory=True):
    ...     y = ng.sum(x * x)
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        self._pair = None


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Raise ``NumgradRuntimeError(error_message)`` where hooks for saved tensors are set inside.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
    ...     pass
    """
    if state.saved_hooks:
        raise NumgradRuntimeError(error_message)
    with ThreadSettings(saved_hooks_disabled=error_message):
        yield


# --------------------------------------------------------------------- writes to saved tensors


class Mutations:
    """Old values of saved tensors that are written to inside ``allow_mutation_on_saved_tensors``.

    What the pack hook returns for a tensor, the handle, holds its array, and a copy of that as
    soon as somebody is about to write to the memory.

    Attributes
    ----------
    saved, copied
        Handles that live, by the ``id`` of their arrays: of what may still be copied, and copies.
    """

    def __init__(self) -> None:
        self.saved: WeakValueDictionary[int, _Handle] = WeakValueDictionary()
        self.copied: WeakValueDictionary[int, _Handle] = WeakValueDictionary()

    def pack(self, tensor: Tensor) -> _Handle:
        """Keep an array that may be written to, once however often it is saved."""
        array = tensor._array
        handle = self.saved.get(id(array))  # a handle that lives has its array
        if handle is None:
            handle = self.saved[id(array)] = _Handle(array)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        """The values when it was saved."""
        if state.mutation is not self:
            raise NumgradAssertionError(
                "allow_mutation_on_saved_tensors: a backward of what was recorded inside runs "
                "outside, where writes to saved tensors are not seen; call it inside the context"
            )
        return Tensor(handle.array)

    def before_write(self, array: np.ndarray) -> None:
        """Copy whatever was saved and shares memory with ``array``."""
        for key, handle in list(self.saved.items()):
            if np.may_share_memory(handle.array, array):
                del self.saved[key]
                handle.array = handle.array.copy()
                self.copied[id(handle.array)] = handle


class _Handle:
    __slots__ = ("__weakref__", "array")

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Mutations]:
    """Inside, a saved tensor may be changed in place: its old value is copied first.

    Backwards run inside the context, too.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.autograd.graph.allow_mutation_on_saved_tensors():
    ...     a = ng.ones(2, requires_grad=True)
    ...     b = a.clone()
    ...     out = (b**2).sum()
    ...     _ = b.mul_(10)
    ...     out.backward()
    >>> a.grad
    tensor([2., 2.])
    """
    if state.mutation is not None:
        raise NumgradRuntimeError(
            "allow_mutation_on_saved_tensors: is active already; one context is enough"
        )
    mutations = Mutations()
    with saved_tensors_hooks(mutations.pack, mutations.unpack), ThreadSettings(mutation=mutations):
        yield mutations
    mutations.saved.clear()
    mutations.copied.clear()
