"""Files of ``torch.save`` read without PyTorch, and without running what they name.

Note [Format of torch.save]
---------------------------
The format is PyTorch's since 1.6: a zip archive, uncompressed, with a pickle ``data.pkl`` in which
Tensors are calls of ``torch._utils._rebuild_tensor_v2`` on storages, and the bytes of each storage
in a file of its own, ``data/0``, ``data/1``, ... Tensors over one memory share a storage. A pickle
can run any code, so names in it mean what a table says, and others raise.
"""

from __future__ import annotations

import io
import pickle
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.io.safetensors import WIDENED, Damage
from numgrad.nn.module.members import Parameter
from numgrad.tensors.tensor import Tensor

SIGNATURE = b"PK\x03\x04"
"""The first bytes of a zip archive."""
STORAGES = {
    "FloatStorage": np.float32, "DoubleStorage": np.float64, "LongStorage": np.int64,
    "IntStorage": np.int32, "ShortStorage": np.int16, "CharStorage": np.int8,
    "ByteStorage": np.uint8, "BoolStorage": np.bool_, "ComplexFloatStorage": np.complex64,
    "ComplexDoubleStorage": np.complex128, "HalfStorage": np.float16, "BFloat16Storage": "bfloat16",
}  # fmt: skip
"""Classes of storages, and the dtypes of their elements."""


def tensor(
    storage: np.ndarray, offset: int, size: Any, stride: Any, requires_grad: bool = False,
    hooks: Any = None, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A Tensor over the memory of its storage, but for conjugates and negatives."""
    sizes, steps = tuple(size), tuple(stride)
    last = offset + sum((n - 1) * s for n, s in zip(sizes, steps, strict=True))
    if offset < 0 or min(steps, default=0) < 0 or (0 not in sizes and last >= storage.size):
        raise Damage(
            f"a Tensor of size {sizes} and strides {steps} from {offset} on reaches beyond its "
            f"storage of {storage.size} elements; the file is damaged"
        )
    strides = [s * storage.itemsize for s in steps]
    array = np.lib.stride_tricks.as_strided(storage[offset:], sizes, strides)
    marks = metadata or {}  # of a view that PyTorch has not computed
    if marks.get("conj"):
        array = np.conj(array)
    return Tensor(-array if marks.get("neg") else array, requires_grad)


def _parameter(data: Tensor, requires_grad: bool, hooks: Any = None) -> Parameter:
    return Parameter(data, requires_grad)


_DTYPES = "bool uint8 int8 int16 int32 int64 float32 float64 complex64 complex128"
NAMES: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch", "Size"): tuple,
    ("torch", "device"): str,
    ("collections", "OrderedDict"): OrderedDict,
    ("builtins", "set"): set,
    ("_codecs", "encode"): str.encode,  # bytes
    ("__builtin__", "set"): set,
    **{("torch", name): kind for name, kind in STORAGES.items()},
    **{("torch", name): np.dtype(name) for name in _DTYPES.split()},
}
"""Functions, classes and constants that a pickle of states may name."""


def refuse(module: str, name: str) -> Any:
    """Raise for a name that is not in the table."""
    raise pickle.UnpicklingError(f"the file names {module}.{name}, which may run code")


class _Unpickler(pickle.Unpickler):
    def __init__(
        self, file: Any, archive: zipfile.ZipFile, folder: str, find: Callable[[str, str], Any]
    ) -> None:
        super().__init__(file)
        self.archive, self.folder, self.find_class = archive, folder, find
        self.storages: dict[str, np.ndarray] = {}

    def persistent_load(self, pid: Any) -> np.ndarray:
        """The memory of a storage."""
        _, kind, key, _, count = pid
        array = self.storages.get(key)
        if array is None:
            data = bytearray(self.archive.read(f"{self.folder}/data/{key}"))
            own, widened = WIDENED["BF16"] if kind == "bfloat16" else (kind, np.asarray)
            array = widened(np.frombuffer(data, own, count))
            array = array.astype(np.float32) if kind == np.float16 else array
            self.storages[key] = array
        return array


def read(data: bytes, find: Callable[[str, str], Any]) -> Any:
    """Read what is in a file, whose pickle names what ``find`` says.

    Raises
    ------
    Damage
        If it is none of torch.save.
    pickle.UnpicklingError
        Where ``find`` does.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile:
        raise Damage(
            "it is cut off, or no zip archive as torch.save has written since PyTorch 1.6, but of "
            "another format; load it with PyTorch and save it again"
        ) from None
    entry = next((n for n in archive.namelist() if n.endswith("data.pkl")), None)
    if entry is None:
        raise Damage("the archive has no data.pkl; it is not of torch.save")
    folder = entry.rpartition("/")[0]
    if f"{folder}/byteorder" in archive.namelist():
        order = archive.read(f"{folder}/byteorder").decode()
        if order != sys.byteorder:
            raise Damage(f"the file's numbers are in {order} endian order")
    unpickler = _Unpickler(io.BytesIO(archive.read(entry)), archive, folder, find)
    try:
        return unpickler.load()
    except (KeyError, ValueError, TypeError, IndexError, EOFError) as error:
        raise Damage(f"the file is damaged: {error}") from error


def load(data: bytes) -> Any:
    """Read a file of states: Tensors, Parameters, containers and numbers."""
    return read(data, lambda module, name: NAMES.get((module, name)) or refuse(module, name))
