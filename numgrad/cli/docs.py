"""Build the documentation site, of the folder ``notebooks`` of a checkout or an unpacked sdist."""

import argparse
import subprocess
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path

import numgrad

HELP = "build the documentation site"
NEEDS = ("sphinx", "myst_nb", "pydata_sphinx_theme", "sphinx_copybutton", "sphinx_design")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``docs``."""
    parser.add_argument("--output", type=Path, default=Path("build", "site"), metavar="FOLDER")
    parser.add_argument(
        "--pages-only", action="store_true", help="leave notebooks as they are, without outputs"
    )
    parser.add_argument("--open", action="store_true", help="show the site in a browser")


def run(arguments: argparse.Namespace) -> int:
    """Build the site; status 2 if sources or Sphinx are missing."""
    beside = Path(numgrad.__file__).parent.parent
    folders = (Path("notebooks"), beside / "notebooks")
    source = next((folder for folder in folders if (folder / "conf.py").is_file()), None)
    if source is None:
        print(
            "docs: there is no folder notebooks with the pages here; run it in a checkout of "
            "https://github.com/numgrad/numgrad or in the unpacked source distribution",
            file=sys.stderr,
        )
        return 2
    missing = [name for name in NEEDS if find_spec(name) is None]
    if missing:
        print(
            f"docs: {', '.join(missing)} not installed; python -m pip install 'numgrad-jit[docs]'",
            file=sys.stderr,
        )
        return 2
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-j", "auto"]
    options += ["-D", "nb_execution_mode=off"] if arguments.pages_only else []
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(arguments.output)]
    status = subprocess.call(command)
    index = (arguments.output / "index.html").resolve()
    if status == 0:
        print(index)
        if arguments.open:
            webbrowser.open(index.as_uri())
    return status
