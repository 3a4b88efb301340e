"""Executors: functions of pieces of data evaluated here, by ``concurrent.futures``, or by Dask.

Pieces are cut along the first axis.

Note [Once a worker]
--------------------
A function travels as bytes with a key of its own. A worker that meets the key first unpickles it,
differentiates it, and compiles it if that is wanted; it keeps the result by the key, so later calls
only look it up. Functions are pickled by ``pickle``, which sends the name of what a module has;
those that have no name that others find, such as lambdas, by ``cloudpickle`` where that is
installed, as it is with Dask.
"""

import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate, pairwise
from typing import Any
from uuid import uuid4

import numpy as np

from numgrad.codegen.locks import FUNCTIONS
from numgrad.compiler.api import jit as compiled
from numgrad.core.tree import flatten, unflatten
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.derivatives import value_and_grad

PIECES = 8
"""How many there are if nobody says: a number of its own, so that sums do not depend on workers."""


class Partition:
    """Arguments whose arrays are cut at the same rows; those of Dask where Dask has cut them.

    Attributes
    ----------
    bounds
        The row at which each piece begins, and the end.
    """

    def __init__(self, name: str, args: Sequence[Any], chunks: Any) -> None:
        self.leaves: list[Any] = []
        self.nesting = flatten(tuple(args), self.leaves)
        if not self.leaves:
            raise NumgradTypeError(f"{name}: there are no data to cut into pieces")
        self.leaves = [_array(name, leaf) for leaf in self.leaves]
        lengths = {leaf.shape[0] for leaf in self.leaves}
        if len(lengths) > 1:
            raise NumgradValueError(
                f"{name}: data have {', '.join(str(n) for n in sorted(lengths))} rows; all are cut "
                "along their first axis, which must be of one length (pass others by keyword)"
            )
        (rows,) = lengths
        cuts = {leaf.chunks[0] for leaf in self.leaves if is_dask_array(leaf)}
        if len(cuts) > 1:
            raise NumgradValueError(
                f"{name}: Dask arrays are cut into rows {' and '.join(map(str, cuts))}; rechunk "
                "them alike"
            )
        if cuts:
            if chunks is not None:
                raise NumgradValueError(f"{name}: a Dask array has chunks, leave chunks= out")
            sizes: Sequence[int] = next(iter(cuts))
        else:
            sizes = _sizes(name, rows, chunks)
        self.bounds = [0, *accumulate(sizes)]
        self.leaves = [_whole_rows(leaf) for leaf in self.leaves]

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.bounds[-1]

    @property
    def on_dask(self) -> bool:
        """Whether some of the data are Dask's."""
        return any(map(is_dask_array, self.leaves))

    def pieces(self) -> list[list[Any]]:
        """The leaves of each piece: views, or delayed blocks of Dask."""
        columns = []
        for leaf in self.leaves:
            if is_dask_array(leaf):
                columns.append(leaf.to_delayed().reshape(-1).tolist())
            else:
                columns.append([leaf[a:b] for a, b in pairwise(self.bounds)])
        return [list(row) for row in zip(*columns, strict=True)]

    def arguments(self, piece: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments with the leaves of a piece."""
        return unflatten(self.nesting, iter(piece))

    def said(self, number: int) -> str:
        """A piece by its number and rows, for errors."""
        a, b = self.bounds[number : number + 2]
        return f"piece {number} (rows {a} to {b - 1})"


def is_dask_array(x: Any) -> bool:
    """Whether an argument is a Dask array; Dask is not loaded for this."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(x, module.Array)


def _whole_rows(x: Any) -> Any:
    """An array whose pieces are cut along the first axis only."""
    return x.rechunk({axis: -1 for axis in range(1, x.ndim)}) if is_dask_array(x) else x


def _array(name: str, x: Any) -> Any:
    if is_dask_array(x):
        if any(np.isnan(size) for size in x.chunks[0]):
            raise NumgradValueError(
                f"{name}: a Dask array has chunks of unknown length; call compute_chunk_sizes()"
            )
        array = x
    else:
        array = x.detach().numpy() if isinstance(x, Tensor) else np.asarray(x)
    if array.ndim == 0 or array.dtype == object:
        raise NumgradTypeError(
            f"{name}: data are arrays that are cut along their first axis, got "
            f"{type(x).__name__} {x!r:.40}; pass what is not to be cut by keyword"
        )
    return array


def _sizes(name: str, rows: int, chunks: Any) -> list[int]:
    if rows == 0:
        raise NumgradValueError(f"{name}: data have no rows")
    if chunks is None or (isinstance(chunks, int | np.integer) and not isinstance(chunks, bool)):
        limit = PIECES if chunks is None else int(chunks)
        if limit < 1:
            raise NumgradValueError(f"{name}: chunks is a number from 1, got {chunks}")
        count = min(limit, rows)
        return [rows * (k + 1) // count - rows * k // count for k in range(count)]
    if not isinstance(chunks, list | tuple):
        raise NumgradTypeError(
            f"{name}: chunks is the number of pieces, or a list of their rows, got {chunks!r}"
        )
    if sum(chunks) != rows or min(chunks) < 1:
        raise NumgradValueError(
            f"{name}: chunks {list(chunks)} do not cut {rows} rows into pieces of at least one"
        )
    return list(chunks)


KEPT = 64
"""Functions that a worker keeps."""

_functions: OrderedDict[str, Callable[..., Any]] = OrderedDict()


class Remote:
    """A function of pieces of data, evaluated wherever this is unpickled: Note [Once a worker]."""

    def __init__(self, name: str, function: Callable[..., Any], make: Callable[..., Any]) -> None:
        self.name, self.key, self.make = name, uuid4().hex, make
        self._function: Callable[..., Any] | None = function
        self._bytes: dict[bool, bytes] = {}
        self.by_value = False

    def __getstate__(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "key": self.key,
            "make": self.make,
            "data": self.pickled(self.by_value),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.name, self.key, self.make = state["name"], state["key"], state["make"]
        self._function, self._bytes, self.by_value = None, {False: state["data"]}, False

    def pickled(self, by_value: bool) -> bytes:
        """The function as bytes; ``by_value`` sends functions of ``__main__`` by what they are.

        Raises
        ------
        NumgradTypeError
            If it cannot be pickled.
        """
        if by_value not in self._bytes:
            self._bytes[by_value] = _pickled(self.name, self._function, by_value)
        return self._bytes[by_value]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, as ``make`` made it ready, with one piece."""
        with FUNCTIONS:
            built = _functions.get(self.key)
            if built is None:
                function = self._function
                if function is None:
                    function = pickle.loads(self._bytes[False])
                built = _functions[self.key] = self.make(function)
                while len(_functions) > KEPT:
                    _functions.popitem(last=False)
            _functions.move_to_end(self.key)
        return built(*args, **kwargs)


def _pickled(name: str, function: Any, by_value: bool) -> bytes:
    has_cloudpickle = find_spec("cloudpickle") is not None
    try:
        if by_value and has_cloudpickle:
            return import_module("cloudpickle").dumps(function)
        return pickle.dumps(function)
    except Exception as error:
        if has_cloudpickle and not by_value:
            return _pickled(name, function, True)
        raise NumgradTypeError(
            f"{name}: the function {function!r} cannot be sent to another process ({error}); "
            "define it in a module, install cloudpickle, or use a ThreadPoolExecutor"
        ) from error


class Gradients:
    """Function in a worker that returns value and gradients of one piece of the data."""

    def __init__(self, argnums: tuple[int, ...], jit: bool) -> None:
        self.argnums, self.jit = argnums, jit

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of one piece that returns the value and the list of gradients."""
        both = value_and_grad(function, self.argnums)
        if self.jit:
            both = compiled(both)

        def evaluate(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
            value, gradients = both(*args, **kwargs)
            leaves: list[Any] = []
            flatten(gradients, leaves)
            return as_array(value), [as_array(g) for g in leaves]

        return evaluate


class EachRow:
    """Function in a worker that returns its results for the rows of one piece."""

    def __init__(self, jit: bool) -> None:
        self.jit = jit

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of one piece that returns the stacked results and their structure."""
        each = compiled(function) if self.jit else function

        def evaluate(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
            leaves: list[Any] = []
            structure = flatten(args, leaves)
            results = []
            for row in range(len(leaves[0])):
                result = each(*unflatten(structure, iter([leaf[row] for leaf in leaves])), **kwargs)
                values: list[Any] = []
                shape = flatten(result, values)
                results.append((shape, [_result(x) for x in values]))
            first = results[0][0]
            if any(shape != first for shape, _ in results):
                raise NumgradValueError("map: the function returns different structures for rows")
            return [stacked(column) for column in zip(*(r for _, r in results), strict=True)], first

        return evaluate


def _result(x: Any) -> np.ndarray:
    array = as_array(x)
    if array.dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"map: the function returns arrays and numbers, got {type(x).__name__} {x!r:.40}"
        )
    return array


def as_array(x: Any) -> np.ndarray:
    """A number, array or Tensor as an ndarray."""
    return x.detach().numpy() if isinstance(x, Tensor) else np.asarray(x)


def stacked(arrays: Any) -> np.ndarray:
    """Results of rows as one array.

    Raises
    ------
    NumgradValueError
        If their shapes differ.
    """
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise NumgradValueError(
            f"map: the function returns shapes {' and '.join(map(str, sorted(shapes)))} for "
            "different rows; they must be equal"
        )
    return np.stack(arrays)


LARGE = 1 << 20
"""Bytes above which what all pieces share is sent to Dask's workers once."""


def _here(remote: Remote, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return remote(args, kwargs)


def is_dask_client(x: Any) -> bool:
    """Whether an executor is a client of Dask, which is not loaded for this."""
    client = getattr(sys.modules.get("distributed"), "Client", None)
    return isinstance(client, type) and isinstance(x, client)


def check_executor(name: str, executor: Any) -> None:
    """Raise unless pieces can be computed there.

    Raises
    ------
    NumgradTypeError
        If it is neither None, an executor, nor a client of Dask.
    """
    if executor is None or isinstance(executor, Executor) or is_dask_client(executor):
        return
    raise NumgradTypeError(
        f"{name}: executor is None, an executor of concurrent.futures or a client of Dask, got "
        f"{type(executor).__name__}"
    )


def evaluate(
    executor: Any,
    remote: Remote,
    cut: Partition,
    position_arguments: Callable[[tuple[Any, ...]], tuple[Any, ...]],
    kwargs: dict[str, Any],
) -> list[Any]:
    """Results of all pieces in their order.

    Parameters
    ----------
    place
        Makes all arguments of those that were cut.

    Raises
    ------
    NumgradRuntimeError
        If a process ended; the piece is named.
    Exception
        What the function raised, with a note that names the piece.
    """
    if is_dask_client(executor):
        return _on_dask(executor, remote, cut, position_arguments, kwargs)
    if cut.on_dask:
        raise NumgradTypeError(
            f"{remote.name}: Dask arrays need a client of Dask as the executor, got "
            f"{type(executor).__name__}; or give x.compute()"
        )
    calls = [position_arguments(cut.arguments(piece)) for piece in cut.pieces()]
    if executor is None:
        here = (partial(remote, args, kwargs) for args in calls)
        return [_noted(cut, k, call) for k, call in enumerate(here)]
    if not isinstance(executor, ThreadPoolExecutor):
        remote.pickled(False)  # raises here rather than in a thread of the executor
    futures = []
    try:
        for args in calls:
            futures.append(_submitted(executor, remote, args, kwargs))
        return [_noted(cut, k, future.result) for k, future in enumerate(futures)]
    except BrokenExecutor as error:
        lost = [k for k, future in enumerate(futures) if not future.done() or future.exception()]
        named = ", ".join(cut.said(k) for k in lost[:4]) or "all pieces"
        raise NumgradRuntimeError(
            f"{remote.name}: a process of the executor ended while it had work ({error}); not "
            f"computed: {named}{', ...' if len(lost) > 4 else ''}. Was it out of memory? An "
            "executor that lost a process is to be made anew"
        ) from error
    finally:
        for future in futures:
            future.cancel()


def _submitted(
    executor: Executor, remote: Remote, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    try:
        return executor.submit(_here, remote, args, kwargs)
    except BrokenExecutor:
        raise
    except RuntimeError as error:
        raise NumgradRuntimeError(
            f"{remote.name}: the executor takes no work ({error}); call this inside its with "
            "block, before shutdown()"
        ) from error


def _noted(cut: Partition, number: int, result: Callable[[], Any]) -> Any:
    try:
        return result()
    except BrokenExecutor:
        raise
    except Exception as error:
        error.add_note(f"raised for {cut.said(number)} of the data")
        raise


def _on_dask(
    client: Any,
    remote: Remote,
    cut: Partition,
    position_arguments: Callable[[tuple[Any, ...]], tuple[Any, ...]],
    kwargs: dict[str, Any],
) -> list[Any]:
    """Tasks of Dask, where the blocks of its arrays are; it repeats those of lost workers."""
    if client.status in ("closing", "closed"):
        raise NumgradRuntimeError(
            f"{remote.name}: the client of Dask is {client.status}; call this inside its with "
            "block, before close()"
        )
    delayed = import_module("dask").delayed
    remote.by_value = True
    call = delayed(_here, pure=False)
    sent = client.scatter(remote, hash=False) if len(remote.pickled(True)) > LARGE else remote
    tasks = [call(sent, position_arguments(cut.arguments(piece)), kwargs) for piece in cut.pieces()]
    futures = client.compute(tasks)
    try:
        return [_noted(cut, k, future.result) for k, future in enumerate(futures)]
    finally:
        client.cancel([future for future in futures if not future.done()])
