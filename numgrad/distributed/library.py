"""mpi4py, and what the launcher of this process said about its ranks."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from numgrad.errors import NumgradRuntimeError

_SIZES = (
    "NUMGRAD_WORLD_SIZE",
    "PMI_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "SLURM_STEP_NUM_TASKS",
    "WORLD_SIZE",
)
"""Variables in which launchers give the number of ranks: our own, those of MPIs, of torchrun."""

INSTALL = "python -m pip install 'numgrad-jit[mpi]' (on a cluster: mpi4py for the cluster's MPI)"


def is_mpi_available() -> bool:
    """Whether mpi4py is installed.

    Examples
    --------
    >>> import numgrad as ng
    >>> isinstance(ng.distributed.is_mpi_available(), bool)
    True
    """
    return find_spec("mpi4py") is not None


def announced() -> tuple[str, int]:
    """The variable in which the launcher gave the number of ranks, and that; ("", 1) if none."""
    for name in _SIZES:
        text = os.environ.get(name, "")
        if text.isdigit() and int(text) > 1:
            return name, int(text)
    return "", 1


def world() -> Any:
    """MPI's communicator of all ranks; None for a process that is by itself.

    Raises
    ------
    NumgradRuntimeError
        If a launcher started several ranks and MPI is not there or does not see them.
    """
    variable, count = announced()
    if not is_mpi_available():
        if count > 1:
            raise NumgradRuntimeError(
                f"init_process_group: the launcher started {count} ranks ({variable}), and mpi4py "
                f"is not installed for {sys.executable}; {INSTALL}"
            )
        return None
    try:
        mpi = import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        if count > 1:
            raise NumgradRuntimeError(
                f"init_process_group: the launcher started {count} ranks ({variable}), and mpi4py "
                f"finds no MPI ({str(error).splitlines()[0]}); {INSTALL}"
            ) from error
        return None
    comm = mpi.COMM_WORLD
    if comm.size == 1 and count > 1:
        name, version = mpi.get_vendor()
        raise NumgradRuntimeError(
            f"init_process_group: the launcher started {count} ranks ({variable}={count}), and "
            f"MPI sees one: mpi4py uses {name} {'.'.join(map(str, version))}, the launcher belongs "
            "to another MPI or to none. Start with the mpiexec of that MPI, or with "
            "'python -m numgrad launch', or build mpi4py for the launcher's MPI"
        )
    return comm if comm.size > 1 else None
