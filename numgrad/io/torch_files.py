"""Files of ``torch.save`` written and read without PyTorch, and without running what they name.

Note [Format of torch.save]
---------------------------
The format is PyTorch's since 1.6: a zip archive, uncompressed, with a pickle ``data.pkl`` in which
Tensors are calls of ``torch._utils._rebuild_tensor_v2`` on storages, and the bytes of each storage
in a file of its own, ``data/0``, ``data/1``, ... Tensors over one memory share a storage.
Before 1.6 a file was five pickles (two numbers, the system, the object, keys of storages) and then
the bytes of each storage after their number. A pickle can run any code, so names in it mean what a
table says, and others raise.
"""

from __future__ import annotations

import io
import pickle
import sys
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numgrad.errors import NumgradTypeError
from numgrad.io.safetensors import WIDENED, Damage
from numgrad.nn.module.members import Parameter
from numgrad.tensors.tensor import Tensor

_LEGACY = (0x1950A86A20F9469CFC6C, 1001)
"""The numbers that files before 1.6 begin with."""
SIGNATURES = b"PK\x03\x04", pickle.dumps(_LEGACY[0], 2)
"""The first bytes of a zip archive, and of a file before 1.6."""
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
_BUILTINS = "builtins", "__builtin__"
NAMES: dict[tuple[str, str], Any] = {
    **dict.fromkeys([("torch._utils", f"_rebuild_tensor{v}") for v in ("", "_v2")], tensor),
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch", "Size"): tuple,
    ("torch", "device"): str,
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "Counter"): Counter,
    ("_codecs", "encode"): str.encode,  # bytes
    **{(home, kind.__name__): kind for home in _BUILTINS for kind in (set, complex, bytearray)},
    **{("torch", name): kind for name, kind in STORAGES.items()},
    **{("torch", name): np.dtype(name) for name in _DTYPES.split()},
}
"""Functions, classes and constants that a pickle of states may name."""


class Global:
    """A name of PyTorch's in a pickle."""

    def __init__(self, name: str, module: str = "torch") -> None:
        self.name, self.module = name, module

    def __call__(self, *args: Any) -> None:
        """Raise: pickle asks whether what it reduces to can be called, and does not call it."""
        raise NotImplementedError


class _Storage(NamedTuple):
    """Memory of Tensors in a file."""

    key: str
    array: np.ndarray


_STORAGE_NAMES = {np.dtype(d): name for name, d in STORAGES.items() if d != "bfloat16"}
_InPython: Any = pickle._Pickler  # pyright: ignore[reportAttributeAccessIssue]


class Pickler(_InPython):
    """Writes Tensors as calls of PyTorch's functions, and collects their memory."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, 2)
        self.storages: dict[int, _Storage] = {}

    def persistent_id(self, obj: Any) -> Any:
        """How the memory of Tensors is written."""
        if type(obj) is not _Storage:
            return None
        name = _STORAGE_NAMES.get(obj.array.dtype)
        if name is None:
            raise NumgradTypeError(
                f"save: these files have no Tensors of {obj.array.dtype}; write x.to(torch.int64)"
            )
        return "storage", Global(name), obj.key, "cpu", obj.array.size

    def reducer_override(self, obj: Any) -> Any:
        """How Tensors and Parameters are written."""
        if isinstance(obj, Parameter):
            parts = obj.detach(), obj.requires_grad, OrderedDict()
            return Global("_rebuild_parameter", "torch._utils"), parts
        if isinstance(obj, Tensor):
            parts = *self._memory(obj.detach().numpy()), obj.requires_grad, OrderedDict()
            return Global("_rebuild_tensor_v2", "torch._utils"), parts
        return NotImplemented

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write an object; names of PyTorch's as such."""
        if isinstance(obj, Global):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        else:
            super().save(obj, save_persistent_id)

    def _memory(self, array: Any) -> tuple[_Storage, int, tuple[int, ...], tuple[int, ...]]:
        """Storage, offset, size and strides of a Tensor."""
        root, step = array, array.itemsize
        while isinstance(root.base, np.ndarray) and root.base.dtype == array.dtype:
            root = root.base
        inside = root.flags.c_contiguous and all(s >= 0 and s % step == 0 for s in array.strides)
        if not inside:
            root = array = array.copy()
        start = root.__array_interface__["data"][0]
        storage = self.storages.get(start)
        if storage is None or storage.array.size < root.size:
            key = str(len(self.storages)) if storage is None else storage.key
            storage = self.storages[start] = _Storage(key, root.reshape(-1))
        offset = (array.__array_interface__["data"][0] - start) // step if array.size else 0
        full = array if array.size else np.empty([max(n, 1) for n in array.shape], array.dtype)
        return storage, offset, array.shape, tuple([s // step for s in full.strides])


_PLAIN = (type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, OrderedDict)


class _StatePickler(Pickler):
    """Writes what ``load`` reads, and refuses the rest."""

    def reducer_override(self, obj: Any) -> Any:
        """How Tensors and Parameters are written."""
        name = getattr(obj, "__module__", ""), getattr(obj, "__qualname__", "")
        if type(obj) not in _PLAIN and name not in NAMES and not isinstance(obj, Tensor):
            raise NumgradTypeError(
                f"save: files of PyTorch have Tensors, containers, numbers and dtypes, got "
                f"{type(obj).__name__}; of modules and optimizers save their state_dict()"
            )
        return super().reducer_override(obj)

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write an object; dtypes as PyTorch's."""
        super().save(Global(obj.name) if isinstance(obj, np.dtype) else obj, save_persistent_id)


def dump(obj: Any, pickler: type[Pickler] = _StatePickler) -> bytes:
    """The content of a file with an object: Note [Format of torch.save]."""
    pickled, file = io.BytesIO(), io.BytesIO()
    writer = pickler(pickled)
    writer.dump(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickled.getvalue())
        archive.writestr("archive/byteorder", sys.byteorder)
        for storage in writer.storages.values():
            archive.writestr(f"archive/data/{storage.key}", storage.array.tobytes())
        archive.writestr("archive/version", "3\n")
    return file.getvalue()


def refuse(module: str, name: str) -> Any:
    """Raise for a name that is not in the table."""
    raise pickle.UnpicklingError(f"the file names {module}.{name}, which may run code")


Kind = Any
"""The dtype of a storage's elements, or ``"bfloat16"``."""


class _Unpickler(pickle.Unpickler):
    def __init__(
        self,
        file: Any,
        find: Callable[[str, str], Any],
        storage: Callable[[str, Kind, int], np.ndarray],
    ) -> None:
        super().__init__(file)
        self.find_class, self.storage = find, storage
        self.storages: dict[str, tuple[np.ndarray, Kind]] = {}

    def persistent_load(self, pid: Any) -> np.ndarray:
        """The memory of a storage."""
        _, kind, key, _, count, *view = pid
        if key not in self.storages:
            self.storages[key] = self.storage(key, kind, count), kind
        array = self.storages[key][0]
        if view and view[0] is not None:  # a part, with its offset and length
            array = array[view[0][1] :][: view[0][2]]
        return array


def _elements(data: bytes | bytearray, kind: Kind, count: int) -> np.ndarray:
    """Decode the bytes of a storage; as float32 where kernels have no such dtype."""
    own, widened = WIDENED["BF16"] if kind == "bfloat16" else (kind, np.asarray)
    array = widened(np.frombuffer(data, own, count))
    return array.astype(np.float32) if kind == np.float16 else array


def _read_legacy(data: bytes, find: Callable[[str, str], Any]) -> Any:
    """Read a file of before 1.6."""
    file = io.BytesIO(data)

    def load(unpickler: pickle.Unpickler | None = None) -> Any:
        return (unpickler or _Unpickler(file, refuse, lambda *_: np.empty(0))).load()

    if (load(), load()) != _LEGACY:
        raise Damage("it is of no known version of torch.save")
    _check_order("little" if load()["little_endian"] else "big")
    start = file.tell()
    first = _Unpickler(file, find, lambda key, kind, n: _elements(bytes(16 * n), kind, n))
    load(first)  # storages follow it, and tensors may be computed of them
    second = _Unpickler(io.BytesIO(data[start:]), find, lambda *_: np.empty(0))
    for key in load():
        array, kind = first.storages[key]
        if int.from_bytes(file.read(8), sys.byteorder) != array.size:
            raise Damage("the lengths of its storages are others than in its pickle")
        size = 2 if kind == "bfloat16" else np.dtype(kind).itemsize
        content = bytearray(file.read(array.size * size))
        second.storages[key] = _elements(content, kind, array.size), kind
    return load(second)


def _check_order(order: str) -> None:
    if order != sys.byteorder:
        raise Damage(f"the file's numbers are in {order} endian order")


def _read_archive(archive: zipfile.ZipFile, find: Callable[[str, str], Any]) -> Any:
    entry = next((n for n in archive.namelist() if n.endswith("data.pkl")), None)
    if entry is None:
        raise Damage("the archive has no data.pkl; it is not of torch.save")
    folder = entry.rpartition("/")[0]
    if f"{folder}/byteorder" in archive.namelist():
        _check_order(archive.read(f"{folder}/byteorder").decode())

    def storage(key: str, kind: Kind, count: int) -> np.ndarray:
        return _elements(bytearray(archive.read(f"{folder}/data/{key}")), kind, count)

    return _Unpickler(io.BytesIO(archive.read(entry)), find, storage).load()


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
        if data.startswith(SIGNATURES[1]):
            return _read_legacy(data, find)
        return _read_archive(zipfile.ZipFile(io.BytesIO(data)), find)
    except zipfile.BadZipFile:
        raise Damage(
            "it is cut off, or of another format: no zip archive as torch.save writes, nor what it "
            "wrote before PyTorch 1.6"
        ) from None
    except (KeyError, ValueError, TypeError, IndexError, EOFError) as error:
        if isinstance(error, Damage):
            raise
        raise Damage(f"the file is damaged: {error}") from error


def load(data: bytes) -> Any:
    """Read a file of states: Tensors, Parameters, containers and numbers."""
    return read(data, lambda module, name: NAMES.get((module, name)) or refuse(module, name))
