"""Show or clear the compiled kernels kept on disk."""

import argparse
import json

from numgrad.codegen import cache

HELP = "show or clear the compiled kernels kept on disk"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``cache``."""
    parser.add_argument(
        "action", nargs="?", choices=("info", "clear"), default="info", help="default: info"
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print where the cache is and what it holds, or empty it."""
    if arguments.action == "clear":
        removed = cache.clear()
        print(json.dumps({"removed": removed}) if arguments.json else f"removed {removed} kernels")
        return 0
    info = cache.info()
    if arguments.json:
        print(json.dumps(info))
    else:
        print(describe(info))
        print("NUMGRAD_CACHE_DIR chooses another directory.")
    return 0


def describe(info: dict) -> str:
    """One line about the cache, for people."""
    count = info["entries"]
    kernels = "1 kernel" if count == 1 else f"{count} kernels"
    refused = f"; not used: {info['refused']}" if info["refused"] else ""
    return f"{kernels}, {info['bytes'] / 1e6:.1f} MB in {info['path']}{refused}"
