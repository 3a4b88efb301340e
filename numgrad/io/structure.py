"""Nested Python values as arrays by name and one JSON text, and back.

Note [Table of containers]
--------------------------
Lists, tuples and dictionaries are listed one by one, those inside before those around them, and
refer to each other by number. So nesting may be of any depth, a container or tensor that occurs in
several places is one again when it is read, and reading is a loop that makes values of a dozen
known kinds and calls nothing that a file could name.
"""

import json
import math
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from numgrad.errors import NumgradError, NumgradTypeError, NumgradValueError
from numgrad.io.safetensors import NAMES, Contents, Damage
from numgrad.nn.module.members import Buffer, Parameter
from numgrad.tensors.tensor import Tensor

FORMAT = 1
KEY = "numgrad"
"""Where the metadata have the JSON text."""

Path: TypeAlias = "tuple[Path, Any] | None"
"""Where a value is: where its container is, and its key there."""

CONTAINERS: dict[type, str] = {
    list: "list",
    tuple: "tuple",
    dict: "dict",
    OrderedDict: "OrderedDict",
}
TENSORS: dict[type, str] = {Tensor: "Tensor", Parameter: "Parameter", Buffer: "Buffer"}

NOTES = "_metadata"
"""Attribute of the OrderedDict that a module's state_dict is, with versions of its parts."""

LONGEST_KEYS = 10_000_000
"""Tuples and their parts in all keys of dictionaries, counted as often as a hash visits them."""
DEEPEST_KEY = 200

_EXACT_IN_JSON = 2**53
"""Other readers of JSON take numbers as float64."""

_PAIRS = np.dtype(np.complex128)
_NOTE = (
    "arrays named under complex128 hold pairs (real, imaginary) of float64 along their last axis"
)


class _Keys:
    """Counts what hashing the keys of a file takes.

    A tuple has no hash of its own: it is computed from its parts each time. Where tuples hold the
    same tuple twice, over and over, that takes exponential time, and a deep one the stack.
    """

    def __init__(self) -> None:
        self.total = 0
        self._known: dict[int, tuple[int, int, Any]] = {}

    def count(self, key: Any) -> None:
        """Add a key; a ValueError says that it is too much."""
        if type(key) is not tuple:
            return
        size, depth = self._measured(key)
        self.total += size
        if self.total > LONGEST_KEYS or depth > DEEPEST_KEY:
            raise ValueError(
                f"keys that are tuples of tuples: {self.total} parts in all, nested {depth} times, "
                f"and at most {LONGEST_KEYS} and {DEEPEST_KEY} are read"
            )

    def _measured(self, root: tuple[Any, ...]) -> tuple[int, int]:
        """Parts of a tuple, and how deep they are nested; each object is looked at once."""
        stack = [root]
        while stack:
            value = stack[-1]
            new = [v for v in value if type(v) is tuple and id(v) not in self._known]
            if new and id(value) not in self._known:
                stack += new
                continue
            stack.pop()
            inside = [self._known[id(v)] for v in value if type(v) is tuple]
            size = 1 + len(value) + sum([measure[0] for measure in inside])
            depth = 1 + max([measure[1] for measure in inside], default=0)
            self._known[id(value)] = size, depth, value  # which keeps its id
        return self._known[id(root)][:2]


# ------------------------------------------------------------------------------------- writing


def pack(value: Any) -> Contents:
    """Arrays and metadata that say all of ``value``.

    Raises
    ------
    NumgradTypeError
        If an object is of no kind that can be stored; the message says where it is.
    NumgradValueError
        If a container contains itself.
    """
    packer = _Packer()
    root = packer.pack(value)
    structure: dict[str, Any] = {
        "format": FORMAT,
        "root": root,
        "containers": packer.containers,
        "tensors": packer.tensors,
    }
    metadata = {}
    if packer.pairs:
        structure["complex128"] = packer.pairs
        metadata["note"] = _NOTE
    metadata[KEY] = json.dumps(structure, separators=(",", ":"))
    return Contents(packer.arrays, metadata)


class _Packer:
    """Objects and data seen so far; objects are known by identity, array data by their memory."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.containers: list[Any] = []
        self.tensors: list[Any] = []
        self.pairs: list[str] = []
        self._numbers: dict[int, int] = {}
        self._keys = _Keys()
        self._names: dict[Any, str] = {}

    def pack(self, root: Any) -> Any:
        """The root's reference, after everything in it was listed."""
        open_: set[int] = set()
        stack: list[tuple[Any, Path, bool]] = [(root, None, False)]
        while stack:
            value, path, left = stack.pop()
            if type(value) not in CONTAINERS or id(value) in self._numbers:
                continue
            if left:
                open_.discard(id(value))
                self._numbers[id(value)] = len(self.containers)
                self.containers.append(self._container(value, path))
                continue
            if id(value) in open_:
                raise NumgradValueError(f"save: the container at {_spell(path)} contains itself")
            open_.add(id(value))
            stack.append((value, path, True))
            if isinstance(value, dict):
                if notes := _notes(value, path):
                    stack.append((notes[NOTES], (path, NOTES), False))
                stack += [(v, (path, k), False) for k, v in reversed(value.items())]
                stack += [(k, path, False) for k in value if self._is_tuple(k, path)]
            else:
                stack += [(v, (path, k), False) for k, v in reversed(list(enumerate(value)))]
        return self._reference(root, None)

    def _is_tuple(self, key: Any, path: Path) -> bool:
        """Whether a key is a container to be listed, after a look at what it is."""
        try:
            self._keys.count(key)
        except ValueError as error:
            raise NumgradValueError(f"save: the dictionary at {_spell(path)} has {error}") from None
        items = [key]
        for item in items:  # grows while we go through it
            if type(item) is tuple:
                items += item
            elif item is not None and type(item) not in (bool, int, float, complex, str, bytes):
                raise NumgradTypeError(
                    f"save: the dictionary at {_spell(path)} has a key of type "
                    f"{type(item).__name__}; keys are strings, numbers, bytes, None and tuples of "
                    "these"
                )
        return type(key) is tuple

    def _container(self, value: Any, path: Path) -> list[Any]:
        """Kind, references of the parts, and that of the notes of a state_dict."""
        kind = CONTAINERS[type(value)]
        if not isinstance(value, dict):
            return [kind, [self._reference(v, (path, k)) for k, v in enumerate(value)]]
        items = [
            [self._reference(k, path), self._reference(v, (path, k))] for k, v in value.items()
        ]
        notes = [self._reference(v, (path, k)) for k, v in _notes(value, path).items()]
        return [kind, items, *notes]

    def _reference(self, value: Any, path: Path) -> Any:
        """A value as JSON: itself if that has it, else an object with what it is."""
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if abs(value) < _EXACT_IN_JSON else {"int": hex(value)}
        if kind is float:
            return _float(value)
        if kind is complex:
            return {"complex": [_float(value.real), _float(value.imag)]}
        if kind in CONTAINERS:
            return {"at": self._numbers[id(value)]}
        if kind is bytes:
            return {"bytes": self._store(np.frombuffer(value, np.uint8), path)}
        if kind in TENSORS:
            return {"tensor": self._tensor(value, path)}
        if kind is np.ndarray:
            return {"array": self._store(value, path, kind)}
        if isinstance(value, np.generic):
            return {"scalar": self._store(np.asarray(value), path)}
        raise NumgradTypeError(f"save: {_spell(path)} is {_refusal(value)}")

    def _tensor(self, tensor: Tensor, path: Path) -> int:
        if id(tensor) not in self._numbers:
            self._numbers[id(tensor)] = len(self.tensors)
            name = self._store(tensor._array, path, Tensor)
            entry = [TENSORS[type(tensor)], name, tensor.requires_grad]
            self.tensors.append([*entry, tensor.persistent] if type(tensor) is Buffer else entry)
        return self._numbers[id(tensor)]

    def _store(self, array: np.ndarray, path: Path, owner: type | None = None) -> str:
        """The name under which an array is kept; for one owner the same memory has one name."""
        pairs = array.dtype.newbyteorder("<") == _PAIRS.newbyteorder("<")
        if not pairs and array.dtype.newbyteorder("<") not in NAMES:
            raise NumgradTypeError(
                f"save: {_spell(path)} has dtype {array.dtype}, which the format does not know; "
                "convert it to one of bool, integers up to 64 bits, float16 to float64, complex64 "
                "and complex128"
            )
        address = array.__array_interface__["data"][0]
        key: Any = (owner, address, array.shape, array.strides, array.dtype.str)
        if owner is not None and array.size and key in self._names:
            return self._names[key]
        name = self._new_name(path)
        if owner is not None:  # else the memory may be gone before the next is looked at
            self._names[key] = name
        if pairs:
            array = np.ascontiguousarray(array, np.complex128)  # of one dimension at least
            array = array.view(np.float64).reshape(*key[2], 2)
            self.pairs.append(name)
        self.arrays[name] = array
        return name

    def _new_name(self, path: Path) -> str:
        """The keys on the way, joined by points, as in a state_dict; a number keeps it unique."""
        stem = (
            ".".join(_word(key, str) for key in _keys(path)).encode(errors="replace").decode()
            or "value"
        )
        name, number = stem, 2
        while name in self.arrays or name.startswith("__"):
            name, number = f"{stem.lstrip('_')}#{number}", number + 1
        return name


def _float(value: float) -> Any:
    """A float; those that JSON lacks by their bits, since there are many NaNs."""
    return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}


def _notes(value: dict[Any, Any], path: Path) -> dict[str, Any]:
    """The attributes of a dictionary, of which there is one at most."""
    attributes = getattr(value, "__dict__", {})
    if set(attributes) <= {NOTES}:
        return attributes
    raise NumgradTypeError(
        f"save: the dictionary at {_spell(path)} has attributes ({', '.join(attributes)}), "
        "which would be lost; store them under keys"
    )


def _keys(path: Path) -> list[Any]:
    """The keys from the outermost container on."""
    keys = []
    while path is not None:
        path, key = path
        keys.append(key)
    return keys[::-1]


def _spell(path: Path) -> str:
    return "obj" + "".join(f"[{_word(key, repr)}]" for key in _keys(path))


def _word(key: Any, spell: Callable[[Any], str]) -> str:
    try:
        return spell(key)
    except ValueError:  # Python does not print integers of more than 4300 digits
        return "..."


def _refusal(value: Any) -> str:
    """Describe an object that cannot be stored, and the remedy."""
    kind = f"a {type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{kind}; a class is not stored with its values: use tuple(value) or value._asdict()"
    if isinstance(value, Tensor | np.ndarray):
        return f"{kind}; a subclass is not stored with its values: store a plain array"
    if hasattr(value, "state_dict"):
        return f"{kind}; save its state_dict()"
    return (
        f"{kind}; stored are dict, list, tuple, OrderedDict, None, bool, int, float, complex, str, "
        "bytes, NumPy's scalars and arrays, and Tensors"
    )


# ------------------------------------------------------------------------------------- reading


def is_signed(metadata: Mapping[str, str]) -> bool:
    """Whether ``pack`` made the metadata of a file, even if a name in them was changed."""
    return KEY in metadata or any(
        text.startswith('{"format":') and '"containers":' in text for text in metadata.values()
    )


def unpack(contents: Contents) -> Any:
    """The value that ``pack`` took apart; of a file by others a dictionary of Tensors.

    Raises
    ------
    Damage
        If the structure is not one that ``pack`` makes.
    """
    if not contents.signed:
        # there are no kernels for float16
        widened = {np.dtype(np.float16): np.dtype(np.float32)}
        return {
            name: Tensor(array.astype(widened.get(array.dtype, array.dtype), copy=False))
            for name, array in contents.arrays.items()
        }
    if KEY not in contents.metadata:
        raise Damage("its structure of values is not where ng.save writes it")
    try:
        structure = json.loads(contents.metadata[KEY])
        if structure["format"] != FORMAT:
            raise Damage(
                f"it has format {structure['format']} and this version of numgrad reads {FORMAT}"
            )
        return _Unpacker(contents.arrays, structure).value(structure["root"])
    except (
        NumgradError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
        RecursionError, struct.error,
    ) as error:  # fmt: skip
        raise Damage(f"its structure is not one that ng.save writes ({error})") from None


class _Unpacker:
    """Values by the numbers and names they have in a file."""

    def __init__(self, arrays: dict[str, np.ndarray], structure: dict[str, Any]) -> None:
        self.arrays = dict(arrays)
        for name in structure.get("complex128", ()):
            pairs = arrays[name]
            self.arrays[name] = pairs.view(np.complex128).reshape(pairs.shape[:-1])
        self._bases: dict[str, Tensor] = {}
        self._bytes: dict[str, bytes] = {}  # one object each, however often it is referred to
        self._keys = _Keys()
        self.tensors = [self._tensor(*entry) for entry in structure["tensors"]]
        self.containers: list[Any] = []
        for entry in structure["containers"]:
            self.containers.append(self._container(*entry))

    def _tensor(self, kind: str, name: str, requires_grad: bool, *persistent: bool) -> Tensor:
        first = name not in self._bases
        base = self._bases.setdefault(name, Tensor(self.arrays[name]))
        if kind == "Parameter":
            return Parameter(base, requires_grad)
        if kind == "Buffer":
            return Buffer(base, persistent=persistent[0]).requires_grad_(requires_grad)  # pyright: ignore
        if kind != "Tensor":
            raise ValueError(f"no tensor is a {kind}")
        return (base if first else base.detach()).requires_grad_(requires_grad)

    def _container(self, kind: str, items: Iterable[Any], *notes: Any) -> Any:
        if kind == "OrderedDict":
            mapping = OrderedDict((self._key(k), self.value(v)) for k, v in items)
            for note in notes:
                setattr(mapping, NOTES, self.value(note))
            return mapping
        if notes:
            raise ValueError(f"no {kind} has notes")
        if kind == "dict":
            return {self._key(k): self.value(v) for k, v in items}
        if kind == "tuple":
            return tuple(map(self.value, items))
        if kind == "list":
            return list(map(self.value, items))
        raise ValueError(f"no container is a {kind}")

    def _key(self, reference: Any) -> Any:
        key = self.value(reference)
        self._keys.count(key)
        return key

    def value(self, reference: Any) -> Any:
        """The value that a reference means."""
        if not isinstance(reference, dict):
            return reference
        ((kind, content),) = reference.items()
        match kind:
            case "at":
                return _numbered(self.containers, content)
            case "tensor":
                return _numbered(self.tensors, content)
            case "array":
                return self.arrays[content]
            case "scalar":
                return self.arrays[content][()]
            case "bytes":
                if content not in self._bytes:
                    self._bytes[content] = self.arrays[content].tobytes()
                return self._bytes[content]
            case "int":
                return int(content, 16)
            case "float":
                return struct.unpack(">d", bytes.fromhex(content))[0]
            case "complex":
                return complex(*map(self.value, content))
        raise ValueError(f"no value is a {kind}")


def _numbered(listed: list[Any], number: Any) -> Any:
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is no number of a container or tensor")
    return listed[number]
