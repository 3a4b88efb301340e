"""Arguments and functions of PyTorch's as those of the face."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import numgrad.torch as face
from numgrad.torch.wrapping import Tensor


def translated(value: Any) -> Any:
    """A value of PyTorch's as one of the face's: Tensors with copies of their memory."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise NotImplementedError(f"layout {value.layout}")
        with torch.no_grad():
            array = value.detach().resolve_conj().resolve_neg().numpy()
        array = array.copy() if array.flags.c_contiguous else _copy_as_it_lies(array)
        x = face.from_numpy(array)
        return x.requires_grad_() if value.requires_grad else x
    if isinstance(value, torch.dtype):
        return getattr(face, str(value).partition(".")[2])
    if isinstance(value, torch.device):
        return face.device("cpu")
    if isinstance(value, torch.layout | torch.memory_format):
        return getattr(face, str(value).partition(".")[2])
    if isinstance(value, torch.Size):
        return face.Size(value)
    if isinstance(value, torch.Generator):
        return face.Generator()
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)([translated(each) for each in value])
    if isinstance(value, dict):
        return {key: translated(each) for key, each in value.items()}
    if callable(value) and getattr(value, "__module__", "").startswith("torch"):
        return of_face(value)
    return value


def _copy_as_it_lies(array: np.ndarray) -> np.ndarray:
    if any(
        step < 0 or (step == 0 and n > 1)
        for step, n in zip(array.strides, array.shape, strict=True)
    ):
        return array.copy()
    if not array.size:
        return array.copy()
    order = np.argsort([-step for step in array.strides], kind="stable")
    return array.transpose(order).copy().transpose(np.argsort(order))


def resolve(path: str) -> Any:
    """What the face has under a dotted name."""
    found: Any = face
    for part in path.split("."):
        found = getattr(found, part)
    return found


def of_face(function: Any) -> Callable[..., Any]:
    """A function of the test library's or of PyTorch's, with the face in PyTorch's place."""
    if isinstance(function, partial):
        return partial(of_face(function.func), *function.args, **function.keywords)
    if isinstance(function, types.FunctionType):
        scope = dict(function.__globals__)
        if "torch" in scope:
            scope.update(torch=face)
            if "F" in scope:
                scope["F"] = face.nn.functional
            cells = function.__closure__
            if cells:
                cells = tuple(types.CellType(_inner(cell.cell_contents)) for cell in cells)
            twin = types.FunctionType(
                function.__code__, scope, function.__name__, function.__defaults__, cells
            )
            twin.__kwdefaults__ = function.__kwdefaults__
            return twin
    if "torch.nn.modules" in type(function).__module__:
        return getattr(face.nn, type(function).__name__)()
    if not hasattr(function, "__name__"):
        raise NotImplementedError(f"{type(function).__name__} as an argument")
    name = function.__name__
    home = getattr(function, "__module__", "") or ""
    if home.startswith("torch._C."):
        part = {"_nn": "nn.functional", "_linalg": "linalg", "_fft": "fft", "_special": "special"}
        group = part.get(home.rpartition(".")[2], "")
        for prefix in ("fft_", "linalg_", "special_"):
            name = name.removeprefix(prefix)
        return resolve(f"{group}.{name}" if group else name)
    owner = getattr(function, "__objclass__", None)
    if owner is not None or "Tensor" in getattr(function, "__qualname__", ""):
        return getattr(Tensor, name)
    return resolve(name)


def _inner(value: Any) -> Any:
    if callable(value) and not isinstance(value, type):
        try:
            return of_face(value)
        except (AttributeError, NotImplementedError):
            return value
    return value


def call_of(op: Any) -> Callable[..., Any]:
    """The operation as the face has it."""
    if (isinstance(op.op, types.FunctionType) and "common_methods" in op.op.__module__) or (
        getattr(op.op, "__name__", "") == "<lambda>"
    ):
        return of_face(op.op)
    try:
        found = resolve(op.name)
        return found if callable(found) else getattr(Tensor, op.name)
    except AttributeError:
        if hasattr(Tensor, op.name):
            return getattr(Tensor, op.name)
        try:
            return of_face(op.op)
        except AttributeError:
            pass
        raise
