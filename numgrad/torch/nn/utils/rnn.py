"""Sequences of different lengths: ``torch.nn.utils.rnn``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor as Base
from numgrad.nn import packed_sequence as base
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.wrapping import face_function, wrapped


def _with_integers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numgrad's whose ndarrays, lengths and orders, become Tensors."""
    inner = face_function(function)
    return wraps(inner)(lambda *args, **kwargs: _as_tensors(inner(*args, **kwargs)))


def _as_tensors(value: Any) -> Any:
    if isinstance(value, base.PackedSequence):
        return PackedSequence(*map(_as_tensors, value))
    return wrapped(Base(value)) if isinstance(value, np.ndarray) else value


class PackedSequence(base.PackedSequence):
    """Sequences without padding, whose data are converted as a Tensor is."""

    __slots__ = ()
    is_cuda = False


def _conversion(name: str) -> Callable[..., Any]:
    def convert(self: Any, *args: Any, **kwargs: Any) -> Any:
        data = getattr(self.data, name)(*args, **kwargs)
        return self if data is self.data else self._replace(data=data)

    return convert


_CONVERSIONS = "to cpu cuda double float half int long short char byte pin_memory"
for _name in _CONVERSIONS.split():
    setattr(PackedSequence, _name, _conversion(_name))
for _name in (
    "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
):  # fmt: skip
    globals()[_name] = _with_integers(getattr(base, _name))
__getattr__ = _refuse(globals())
