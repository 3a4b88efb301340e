"""One rank of ``python -m numgrad launch``: runs a script so that its errors end all ranks."""

import atexit
import os
import runpy
import sys
from pathlib import Path

from numgrad.distributed.launcher import watch, world


def main() -> None:
    """Run the script, or with ``-m`` the module, that the arguments name."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=False)  # pyright: ignore
    comm = world()
    notes, note, watched = os.environ.get("NUMGRAD_LAUNCH_NOTES"), None, None
    if comm is not None:
        if notes:
            note = Path(notes, str(os.getpid()))
            note.write_text(str(comm.rank), encoding="utf-8")
            atexit.register(note.unlink, missing_ok=True)  # the last of all, after the farewell
        watched = watch(comm)
        watched.note = note
    arguments = sys.argv[1:]
    module = arguments[0] == "-m"
    sys.argv = arguments[1:] if module else arguments
    try:
        if module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as leaving:
        if leaving.code not in (None, 0) and watched is not None:
            watched.abort(SystemExit, leaving, leaving.__traceback__)
        raise


if __name__ == "__main__":
    main()
