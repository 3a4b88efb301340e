"""``torch.save`` and ``torch.load``: files that PyTorch reads, and PyTorch's.

The format is that of Note [Format of torch.save] in ``numgrad.io.torch_files``, which reads it.
``load`` finds only the functions and classes that files of states need; with
``weights_only=False``, for files that one trusts, all.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor as Base
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.io import torch_files
from numgrad.io.safetensors import Damage
from numgrad.torch import dtypes
from numgrad.torch.wrapping import Parameter, Tensor, wrapped

_NAMES = {np.dtype(d): name for name, d in torch_files.STORAGES.items() if d != "bfloat16"}


class _Global:
    """A name of PyTorch's in a pickle."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> None:
        raise NotImplementedError  # pickle asks whether what it reduces to can be called


_TENSOR = _Global("torch._utils", "_rebuild_tensor_v2")
_PARAMETER = _Global("torch._utils", "_rebuild_parameter")
_SIZE = _Global("torch", "Size")
_DEVICE = _Global("torch", "device")


class _Storage:
    """Memory of Tensors in a file."""

    def __init__(self, key: str, array: np.ndarray) -> None:
        self.key, self.array = key, array


_InPython: Any = pickle._Pickler  # pyright: ignore[reportAttributeAccessIssue]


class _Pickler(_InPython):
    """Writes Tensors as calls of PyTorch's functions, and collects their memory."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, 2)
        self.storages: dict[int, _Storage] = {}

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, _Storage):
            return None
        name = _NAMES.get(obj.array.dtype)
        if name is None:
            raise NumgradTypeError(
                f"save: these files have no Tensors of {obj.array.dtype}; write x.to(torch.int64)"
            )
        kind = _Global("torch", name)
        return "storage", kind, obj.key, "cpu", obj.array.size

    def reducer_override(self, obj: Any) -> Any:
        """How Tensors, sizes and dtypes are written."""
        kind = type(obj)
        if kind is Tensor:
            return _TENSOR, (*self._memory(obj), obj._tensor.requires_grad, OrderedDict())
        if kind is Parameter:
            data = wrapped(obj._tensor.detach())
            return _PARAMETER, (data, obj._tensor.requires_grad, OrderedDict())
        if kind is dtypes.Size:
            return _SIZE, (tuple(obj),)
        if kind is dtypes.device:
            return _DEVICE, (str(obj),)
        return NotImplemented

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write an object; names of PyTorch's as such."""
        if isinstance(obj, dtypes.dtype):
            obj = _Global("torch", str(obj).removeprefix("torch."))
        if isinstance(obj, _Global):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        else:
            super().save(obj, save_persistent_id)

    def _memory(self, tensor: Tensor) -> tuple[_Storage, int, tuple, tuple]:
        """Storage, offset, size and strides of a Tensor."""
        array: Any = tensor._tensor.detach().numpy()
        root = array
        while isinstance(root.base, np.ndarray) and root.base.dtype == array.dtype:
            root = root.base
        step = array.itemsize
        inside = root.flags.c_contiguous and all(s >= 0 and s % step == 0 for s in array.strides)
        if not inside:
            root = array = array.copy()
        start = root.__array_interface__["data"][0]
        storage = self.storages.get(start)
        if storage is None or storage.array.size < root.size:
            key = str(len(self.storages)) if storage is None else storage.key
            storage = self.storages[start] = _Storage(key, root.reshape(-1))
        offset = (array.__array_interface__["data"][0] - start) // step if array.size else 0
        return storage, offset, array.shape, wrapped(Base(array)).stride()  # pyright: ignore


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write an object to a file or a path: Note [Format of torch.save].

    Raises
    ------
    pickle.PicklingError
        If a part of it cannot be pickled.
    """
    if not (hasattr(f, "write") or isinstance(f, str | os.PathLike)):
        raise NumgradTypeError(f"save: takes a path or a file to write to, got {type(f).__name__}")
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(obj)
    target = io.BytesIO()  # a file is written whole or not at all
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", buffer.getvalue())
        archive.writestr("archive/byteorder", sys.byteorder)
        for storage in pickler.storages.values():
            archive.writestr(f"archive/data/{storage.key}", storage.array.tobytes())
        archive.writestr("archive/version", "3\n")
    if isinstance(f, str | os.PathLike):
        with open(f, "wb") as file:
            file.write(target.getvalue())
    else:
        f.write(target.getvalue())


def _tensor(*given: Any) -> Tensor:
    return wrapped(torch_files.tensor(*given))


def _parameter(data: Tensor, requires_grad: bool, hooks: Any = None) -> Parameter:
    return Parameter(data, requires_grad)


_SAFE: dict[tuple[str, str], Any] = {
    **torch_files.NAMES,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch", "Size"): dtypes.Size,
    ("torch", "device"): dtypes.device,
    **{("torch", name): d for name, d in dtypes.DTYPES.items()},
}
"""Functions, classes and constants that a pickle of states may name."""
_ALLOWED: dict[tuple[str, str], Any] = {}


def _find(only: bool, module: str, name: str) -> Any:
    """What a name in a pickle means."""
    known = {**_SAFE, **_ALLOWED}.get((module, name))
    if known is not None:
        return known
    if only:
        raise pickle.UnpicklingError(
            f"Weights only load failed: the file names {module}.{name}, which may run code; if "
            "you trust it, give weights_only=False, or allow that with "
            "torch.serialization.add_safe_globals"
        )
    if module.partition(".")[0] == "torch":  # PyTorch's class of that name
        module = f"numgrad.{module}"
    return attrgetter(name)(import_module(module))


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what ``save``, or PyTorch's, wrote: Note [Format of torch.save].

    Raises
    ------
    NumgradRuntimeError
        If it is no such file.
    pickle.UnpicklingError
        If it needs more than Tensors, containers and numbers, and ``weights_only`` is not False.
    """
    if not (map_location is None or callable(map_location) or isinstance(map_location, dict)):
        dtypes.device(map_location)
    if hasattr(f, "read"):
        data = f.read()
    else:
        with open(f, "rb") as file:
            data = file.read()
    try:
        return torch_files.read(data, partial(_find, weights_only is not False))
    except Damage as damage:
        raise NumgradRuntimeError(f"load: {damage}") from None


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow functions and classes in files that are loaded with ``weights_only``."""
    for value in safe_globals:
        value, name = value if isinstance(value, tuple) else (value, None)
        module, qualified = (name or f"{value.__module__}.{value.__qualname__}").rsplit(".", 1)
        _ALLOWED[module, qualified] = value


def clear_safe_globals() -> None:
    """Allow nothing but what states need."""
    _ALLOWED.clear()


def get_safe_globals() -> list[Any]:
    """What ``add_safe_globals`` has allowed."""
    return list(_ALLOWED.values())


@contextmanager
def safe_globals(allowed: list[Any]) -> Iterator[None]:
    """Allow functions and classes inside of a ``with`` block."""
    before = dict(_ALLOWED)
    add_safe_globals(allowed)
    try:
        yield
    finally:
        _ALLOWED.clear()
        _ALLOWED.update(before)
