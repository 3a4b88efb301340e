"""``save`` and ``load``: nested values with arrays in one file, without pickle."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any, BinaryIO

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.io import safetensors
from numgrad.io.files import write_atomically
from numgrad.io.structure import is_signed, pack, unpack


def save(obj: Any, file: str | PathLike[str] | BinaryIO) -> None:
    """Write ``obj`` to a file of the safetensors format.

    Any nesting of dict, OrderedDict, list and tuple with None, bool, int, float, complex, str,
    bytes, NumPy's scalars and arrays, Tensors and Parameters comes back from ``load`` bit by bit,
    with its types. Objects that occur several times, and Tensors that are the same memory with the
    same shape, are stored once and shared again; Tensors come back as leaves, without ``.grad``.

    Parameters
    ----------
    obj
        What to store; of modules and optimizers their ``state_dict()``.
    file : str, path or binary file
        A path gets the whole file or, if anything fails, keeps what was there.

    Raises
    ------
    NumgradTypeError
        If anything in ``obj`` is of another type; the message says where.
    NumgradValueError
        If a container contains itself, or there are too many values outside of arrays.

    Notes
    -----
    Arrays are named after the keys that lead to them, so other readers of the format find those of
    a state_dict under their names. Memory order is row-major and little-endian; complex128, which
    the format lacks, becomes pairs of float64. Everything else is JSON in the header.

    Examples
    --------
    >>> import os, tempfile
    >>> import numgrad as ng
    >>> path = os.path.join(tempfile.mkdtemp(), "state.safetensors")
    >>> ng.save({"weight": ng.ones(2, requires_grad=True), "epoch": 3}, path)
    >>> ng.load(path)
    {'weight': tensor([1., 1.], requires_grad=True), 'epoch': 3}
    """
    contents = pack(obj)
    chunks = safetensors.dump(contents.arrays, contents.metadata)
    if hasattr(file, "write"):
        for chunk in chunks:
            file.write(chunk)  # pyright: ignore
    else:
        write_atomically(_path("save", file), chunks)


def load(
    file: str | PathLike[str] | BinaryIO, map_location: Any = None, *, weights_only: bool = True
) -> Any:
    """Read what ``save`` wrote, or another file of the safetensors format, as a dictionary.

    Nothing in a file is ever executed.

    Parameters
    ----------
    file : str, path or binary file
        A binary file is read from where it stands to its end.
    map_location, weights_only
        Accepted for PyTorch's sake: None or ``"cpu"``, and either.

    Returns
    -------
    Any
        What was saved. Of a file that others wrote a dictionary of Tensors by name, without the
        texts under ``__metadata__``; float16, bfloat16 and the float8 of 4 or 5 bits for the
        exponent become float32, which has all their numbers.

    Raises
    ------
    NumgradValueError
        If the file is cut off, was changed, is of another format, or has a dtype that is not read;
        if the device is another.
    OSError
        If there is no such file.

    Examples
    --------
    >>> import io
    >>> import numgrad as ng
    >>> buffer = io.BytesIO()
    >>> ng.save([1, (2.5, None)], buffer)
    >>> _ = buffer.seek(0)
    >>> ng.load(buffer)
    [1, (2.5, None)]
    """
    if map_location is not None and str(map_location) != "cpu":
        raise NumgradValueError(f"load: numgrad computes on the CPU, got {map_location!r}")
    if hasattr(file, "read"):
        return _load(file, repr(file))
    path = _path("load", file)
    with open(path, "rb") as opened:
        return _load(opened, path)


def _load(file: Any, name: str) -> Any:
    try:
        return unpack(safetensors.load(file, is_signed))
    except safetensors.Damage as damage:
        raise NumgradValueError(f"load: cannot read {name}: {damage}") from None


def _path(operation: str, file: Any) -> str:
    try:
        path = fspath(file)
    except TypeError:
        raise NumgradTypeError(
            f"{operation}: the file is a path or a binary file, got {type(file).__name__}"
        ) from None
    return path if isinstance(path, str) else path.decode()
