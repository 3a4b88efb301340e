"""``save`` and ``load``: nested values with arrays in one file that is there whole or not at all.

Note [Files of writers that died]
---------------------------------
A process that is killed while it writes cannot remove its temporary file. A writer therefore holds
a lock on it, which the system releases with the process, and every writer begins by removing the
temporary files beside its own whose lock it can take. Between the creation of a file and its lock
another writer may do so: then the name is gone, and a new one is tried.
"""

from __future__ import annotations

import os
import pickle
import secrets
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, Literal

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.io import safetensors, torch_files
from numgrad.io.structure import is_signed, pack, unpack

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_MARK, _END = ".numgrad-", ".tmp"


def write_atomically(path: str | PathLike[str], chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file under another name beside its own, then move it there.

    A reader, or a process that dies in between, finds the old file or the new one. Links are
    followed, permissions of an old file kept; what is no regular file is written to as it is.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with open(target, "wb") as device:
            device.writelines(chunks)
        return
    _remove_left_over(target.parent)
    temporary, file = _new_beside(target)
    try:
        with file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            if os.name == "posix":  # while it is locked
                os.replace(temporary, target)
        if os.name != "posix":  # where an open file cannot be moved
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # only some systems can make the new name last as well
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _new_beside(target: Path) -> tuple[Path, BinaryIO]:
    """A new file in the folder of ``target``, locked: Note [Files of writers that died]."""
    while True:
        # no longer than other names: systems limit them, and Windows whole paths
        path = target.with_name(f"{_MARK}{secrets.token_hex(6)}{_END}")
        try:
            file = open(path, "xb")  # noqa: SIM115 (the caller closes it)
        except OSError as error:  # of the file that was asked for, not of the temporary one
            raise type(error)(error.errno, error.strerror, str(target)) from None
        if not _locked(file.fileno()) or path.exists():
            return path, file
        file.close()


def _locked(file: int) -> bool:
    """Whether a file is locked for us now; never where the system has no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_left_over(folder: Path) -> None:
    """Remove temporary files whose writer is gone: Note [Files of writers that died]."""
    with suppress(OSError):
        for path in folder.glob(f"{_MARK}*{_END}"):
            with suppress(OSError), open(path, "rb") as file:
                if _locked(file.fileno()):
                    path.unlink(missing_ok=True)


def save(
    obj: Any, file: str | PathLike[str] | BinaryIO, *,
    format: Literal["safetensors", "torch"] = "safetensors",
) -> None:  # fmt: skip
    """Write ``obj`` to a file of the safetensors format, or to one that ``torch.load`` reads.

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
    format : {'safetensors', 'torch'}
        ``"torch"`` is that of ``torch.save``, for states that modules of PyTorch are to load: with
        Tensors, Parameters, containers, numbers, dtypes, and Tensors over one memory.

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
    if format not in ("safetensors", "torch"):
        raise NumgradValueError(f"save: the format is 'safetensors' or 'torch', got {format!r}")
    chunks: Iterable[bytes | memoryview]
    if format == "torch":
        chunks = [torch_files.dump(obj)]
    else:
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
    """Read what ``save`` or ``torch.save`` wrote, or a file of the safetensors format.

    Nothing in a file is ever executed. Files of ``torch.save`` may have Tensors, Parameters,
    containers, numbers and dtypes, as those of a ``state_dict``; a module of numgrad with the same
    names takes them by ``load_state_dict``.

    Parameters
    ----------
    file : str, path or binary file
        A binary file is read from where it stands to its end.
    map_location, weights_only
        Accepted for PyTorch's sake: None or ``"cpu"``, and either.

    Returns
    -------
    Any
        What was saved. Of a safetensors file that others wrote a dictionary of Tensors by name,
        without the texts under ``__metadata__``; float16, bfloat16 and the float8 of 4 or 5 bits
        for the exponent become float32, which has all their numbers.

    Raises
    ------
    NumgradValueError
        If the file is cut off, was changed, is of another format, or has a dtype that is not read;
        if it is of ``torch.save`` and names a class or function; if the device is another.
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
        file, _ = safetensors.measured(file)
        start = file.read(len(torch_files.SIGNATURES[1]))
        file.seek(-len(start), os.SEEK_CUR)
        if start.startswith(torch_files.SIGNATURES):
            return torch_files.load(file.read())
        return unpack(safetensors.load(file, is_signed))
    except (safetensors.Damage, pickle.UnpicklingError, zipfile.BadZipFile) as damage:
        raise NumgradValueError(f"load: cannot read {name}: {damage}") from None


def _path(operation: str, file: Any) -> str:
    try:
        path = fspath(file)
    except TypeError:
        raise NumgradTypeError(
            f"{operation}: the file is a path or a binary file, got {type(file).__name__}"
        ) from None
    return path if isinstance(path, str) else path.decode()
