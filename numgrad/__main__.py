"""``python -m numgrad``."""

import os
import sys

from numgrad.cli import main


def run() -> int:
    """Run the command line; a reader that closed the pipe (``| head``) ends it quietly."""
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return 141  # what a shell reports for a process that SIGPIPE ended
    return status


if __name__ == "__main__":
    sys.exit(run())
