"""numgrad as a tool of GradBench: answers messages on standard input, one JSON object a line.

``--peer NAME --checkout PATH`` answers for GradBench's own ``jax`` or ``pytorch`` tool: its modules
as they are, timed by ours, which waits until a result is computed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import timing


def use_peer(name: str, checkout: Path) -> None:
    """Make the modules of another tool those that are imported, and have ``timing`` time them."""
    sys.path[0] = str(checkout / "python/gradbench/gradbench/tools" / name)
    sys.path.insert(1, str(checkout / "python/gradbench"))
    wrap: Any = import_module("gradbench.wrap")
    wrap.function = wrap.multiple_runs = timing.timed
    if name == "jax":
        timing.Timed.wait = staticmethod(import_module("jax").block_until_ready)


def answer(message: dict, name: str) -> dict:
    """The response to one message, but for its number."""
    if message["kind"] == "start":
        return {"tool": name}
    if message["kind"] not in ("define", "evaluate"):
        return {}
    try:
        module = import_module(message["module"])
        if message["kind"] == "define":
            return {"success": True}
        return getattr(module, message["function"]).wrapped(message["input"])
    except Exception as error:
        return {"success": False, "error": "".join(traceback.format_exception(error))}


def main() -> None:
    """Read messages until the end of input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--multithreaded", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="time the CPU, not the clock")
    parser.add_argument("--peer", choices=("jax", "pytorch"))
    parser.add_argument("--checkout", type=Path)
    args = parser.parse_args()
    if not args.multithreaded:  # one CPU is one thread, in every library
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
        os.environ.setdefault("NUMGRAD_NUM_THREADS", "1")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    if args.cpu:
        timing.clock = time.process_time_ns
    if args.peer:
        use_peer(args.peer, args.checkout)
    for line in sys.stdin:
        message = json.loads(line)
        response = answer(message, args.peer or "numgrad")
        print(json.dumps({"id": message["id"], **response}), flush=True)


if __name__ == "__main__":
    main()
