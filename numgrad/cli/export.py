"""Write a compiled function to a shared library, an object and a header, in a build step."""

import argparse
import ast
import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import numgrad
from numgrad.errors import NumgradError

HELP = "write a compiled function to a library, an object and a header"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``export``."""
    parser.add_argument(
        "function",
        metavar="MODULE:FUNCTION",
        help="a function, compiled or not, or a dictionary of what .native(...) returned",
    )
    parser.add_argument(
        "--example",
        action="append",
        default=[],
        metavar="[NAME=]EXPRESSION",
        help="an argument such as np.zeros(3), one for each; may be repeated",
    )
    parser.add_argument(
        "-o", "--output", metavar="PATH", help="path without ending (default: the function's name)"
    )
    parser.add_argument("--cpu", default="native", help='such as "generic" (default: native)')
    parser.add_argument("--shapes", choices=("free", "fixed"), default="free")
    parser.add_argument("--threads", type=int, default=1, help="of large loops (default: 1)")
    parser.add_argument("--workspace", action="store_true", help="take memory from the caller")
    parser.add_argument("--module", action="store_true", help="write PATH_native.py as well")


def run(arguments: argparse.Namespace) -> int:
    """Export; 2 for a function or an example that there is not."""
    module_name, _, name = arguments.function.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
        function: Any = module
        for part in name.split("."):
            function = getattr(function, part)
        given = [_example(text, vars(module)) for text in arguments.example]
    except (ImportError, AttributeError, ValueError, SyntaxError, NameError) as error:
        print(f"export: {error}", file=sys.stderr)
        return 2
    if not isinstance(function, Mapping) and not hasattr(function, "native"):
        function = numgrad.jit(function)
    try:
        exported = numgrad.export(
            function,
            Path(arguments.output or name.rpartition(".")[2]),
            *[value for key, value in given if not key],
            cpu=arguments.cpu,
            shapes=arguments.shapes,
            threads=arguments.threads,
            workspace=arguments.workspace,
            module=arguments.module,
            **{key: value for key, value in given if key},
        )
    except NumgradError as error:
        text = str(error)
        print(text if text.startswith("export: ") else f"export: {text}", file=sys.stderr)
        return 2
    print(exported)
    return 0


def _example(text: str, names: Mapping[str, Any]) -> tuple[str, Any]:
    """Name, if any, and value of an argument."""
    tree = ast.parse(text.strip()).body
    if len(tree) == 1 and isinstance(tree[0], ast.Assign):
        key, _, text = text.partition("=")
        return key.strip(), _example(text, names)[1]
    return "", eval(text, {"np": np, "ng": numgrad, **names})
