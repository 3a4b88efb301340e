"""Where pieces are computed: here, on an executor of ``concurrent.futures``, or by Dask."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any

from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.parallel.pieces import Partition
from numgrad.parallel.remote import Remote

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
    place: Callable[[tuple[Any, ...]], tuple[Any, ...]],
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
        return _on_dask(executor, remote, cut, place, kwargs)
    if cut.on_dask:
        raise NumgradTypeError(
            f"{remote.name}: Dask arrays need a client of Dask as the executor, got "
            f"{type(executor).__name__}; or give x.compute()"
        )
    calls = [place(cut.arguments(piece)) for piece in cut.pieces()]
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
    place: Callable[[tuple[Any, ...]], tuple[Any, ...]],
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
    tasks = [call(sent, place(cut.arguments(piece)), kwargs) for piece in cut.pieces()]
    futures = client.compute(tasks)
    try:
        return [_noted(cut, k, future.result) for k, future in enumerate(futures)]
    finally:
        client.cancel([future for future in futures if not future.done()])
