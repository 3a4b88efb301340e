"""A conversation of an eval and a tool, by GradBench's protocol: JSON, one object a line."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any


@dataclass
class Figure:
    """One function of one eval, as a tool computed it.

    Attributes
    ----------
    seconds
        CPU time of the fastest run; 0 if there was none.
    first
        CPU time of the first run, which compiles.
    verdict
        ``valid``, ``INVALID``, ``error``, ``timeout``; ``unknown`` where nothing could be compared.
    """

    eval: str
    size: str
    function: str
    tool: str
    seconds: float = 0.0
    first: float = 0.0
    verdict: str = "unknown"
    error: str = ""


def converse(
    name: str,
    options: list[str],
    tool: str,
    command: list[str],
    environment: dict[str, str],
    patience: float,
) -> list[Figure]:
    """Run an eval with a tool: pass on what each says, and read timings and verdicts on the way."""
    checkout = Path(environment["GRADBENCH"])
    script = checkout / "python/gradbench/gradbench/evals" / name / "run.py"
    figures: dict[int, Figure] = {}
    with tempfile.TemporaryFile("w+") as errors:

        def start(arguments: list[str]) -> Any:
            return subprocess.Popen(
                arguments,
                cwd=checkout,
                env=environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

        asking = start([sys.executable, str(script), *options])
        answering = start(command)
        try:
            for sent in asking.stdout:
                message = json.loads(sent)
                if message["kind"] == "evaluate":
                    size = message.get("description", "")
                    figure = Figure(name, size, message["function"], tool)
                    figures[message["id"]] = figure
                elif message["kind"] == "analysis" and _is_validated(environment, name):
                    figures[message["of"]].verdict = "valid" if message["valid"] else "INVALID"
                    figures[message["of"]].error = message.get("error", "")
                alarm = Timer(patience, answering.kill)
                alarm.start()
                answering.stdin.write(sent)
                answering.stdin.flush()
                reply = answering.stdout.readline()
                alarm.cancel()
                if not reply:
                    break
                _read(json.loads(reply), figures, patience)
                asking.stdin.write(reply)
                asking.stdin.flush()
        except BrokenPipeError:
            pass
        finally:
            for process in (asking, answering):
                process.kill()
                process.communicate()
        errors.seek(0)
        said = errors.read().strip()
    if figures and not list(figures.values())[-1].seconds:
        last = list(figures.values())[-1]
        last.verdict = last.verdict if last.error else "timeout"
    if not figures:
        print(f"{tool} did not begin {name}: {said[-2000:]}")
    return list(figures.values())


def _is_validated(environment: dict[str, str], name: str) -> bool:
    """Whether the eval can judge: most run the manual tool for that."""
    manual = Path(environment["GRADBENCH"]) / "tools/manual/bin" / name
    return name in ("hello", "particle", "saddle") or manual.exists()


def _read(response: dict, figures: dict[int, Figure], patience: float) -> None:
    """Put the timings of a response, or its error, into its figure."""
    figure = figures.get(response["id"])
    if figure is None:
        if not response.get("success", True):
            print(response.get("error", "")[-2000:])
        return
    if not response.get("success", False):
        figure.verdict, figure.error = "error", response.get("error", "")
        return
    times = [t["nanoseconds"] / 1e9 for t in response["timings"] if t["name"] == "evaluate"]
    # a clock of coarse steps may show nothing for a short run
    figure.first, figure.seconds = times[0], min([t for t in times if t], default=0.0)
