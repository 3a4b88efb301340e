"""``torch.save`` and ``torch.load``: files that PyTorch reads, and PyTorch's.

The format is that of Note [Format of torch.save] in ``numgrad.io.torch_files``.
``load`` finds only the functions and classes that files of states need; with
``weights_only=False``, for files that one trusts, all.
"""

from __future__ import annotations

import os
import pickle
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.io import torch_files
from numgrad.io.files import write_atomically
from numgrad.io.safetensors import Damage
from numgrad.torch import dtypes
from numgrad.torch.wrapping import Parameter, Tensor, face_function


class _Pickler(torch_files.Pickler):
    """Writes Tensors, sizes, devices and dtypes of the face as PyTorch's."""

    def reducer_override(self, obj: Any) -> Any:
        """How Tensors, sizes and devices are written."""
        kind = type(obj)
        if kind is dtypes.Size or kind is dtypes.device:
            value = tuple(obj) if kind is dtypes.Size else str(obj)
            return torch_files.Global(kind.__name__), (value,)
        return super().reducer_override(obj._tensor if kind in (Tensor, Parameter) else obj)

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write an object."""
        name = str(obj).removeprefix("torch.") if type(obj) is dtypes.dtype else ""
        super().save(torch_files.Global(name) if name else obj, save_persistent_id)


def save(
    obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:  # fmt: skip
    """Write an object to a file or a path: Note [Format of torch.save].

    Raises
    ------
    pickle.PicklingError
        If a part of it cannot be pickled.
    """
    if not (hasattr(f, "write") or isinstance(f, str | os.PathLike)):
        raise NumgradTypeError(f"save: takes a path or a file to write to, got {type(f).__name__}")
    content = torch_files.dump(obj, _Pickler)
    if isinstance(f, str | os.PathLike):
        write_atomically(f, [content])
    else:
        f.write(content)


_SAFE: dict[tuple[str, str], Any] = {
    **torch_files.NAMES,
    **{k: face_function(f) for k, f in torch_files.NAMES.items() if k[0] == "torch._utils"},
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
    # PyTorch writes pickles of protocol 2, where the names are those of Python 2
    here = IMPORT_MAPPING.get(module, module), name
    module, name = NAME_MAPPING.get((module, name), here)
    if module.partition(".")[0] == "torch":  # PyTorch's class of that name
        module = f"numgrad.{module}"
    return attrgetter(name)(import_module(module))


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *,
    weights_only: bool | None = None, mmap: bool | None = None, **pickle_load_args: Any,
) -> Any:  # fmt: skip
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
    data = f.read() if hasattr(f, "read") else Path(f).read_bytes()
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
