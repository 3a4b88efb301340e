"""A rank that ``torch.multiprocessing.spawn`` starts: it calls the function that a file has."""

import pickle
import sys
from multiprocessing import spawn
from typing import Any

from numgrad.distributed.launcher import world
from numgrad.torch.substitution import install


def main(path: str) -> None:
    """Call it with the number of this rank, after the main module was imported as spawned ones do.

    Parameters
    ----------
    path
        A file with what prepares the main module, whether ``torch`` is the face, and a pickle of
        the function and its arguments.
    """
    with open(path, "rb") as file:
        preparation, substituted, call = pickle.load(file)
    if substituted:
        install()
    spawn.prepare(preparation)
    function, args = pickle.loads(call)
    comm: Any = world()
    function(0 if comm is None else comm.rank, *args)


if __name__ == "__main__":
    main(sys.argv[1])
