"""First calls: what tracing and compiling cost, in a fresh process with an empty kernel cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from processes import Measured, Runs, scratch, seconds, summary, texts

LIBRARIES = ("numgrad", "jax")


@dataclass(frozen=True)
class FirstCall:
    """A statement of ``peers`` whose first execution is timed.

    Attributes
    ----------
    kind, params
        The method of ``peers`` that builds the statement, and its parameters.
    ratio
        Largest share of JAX's time that is good, or None.
    limit
        Otherwise the largest number of seconds.
    """

    kind: str
    params: Mapping[str, Any]
    ratio: float | None = None
    limit: float | None = None


def _gradient(problem: str, sizes: Mapping[str, Any], **goal: float) -> FirstCall:
    return FirstCall("gradient", {"problem": problem, **sizes}, **goal)


_LAYERS = [64, 256, 256, 10]
_STEP = {"sizes": _LAYERS, "batch": 128, "dtype": "float32"}
_HESSIAN = {"problem": "likelihood", "derivative": "hessian", "samples": 1000, "parameters": 30}
FIRST_CALLS = {
    "chain": _gradient("chain", {"n": 1000}, ratio=1.0),
    "mixture d=10 K=25": _gradient("mixture", {"n": 1000, "d": 10, "components": 25}, ratio=1.0),
    "MLP 64-256-256-10": _gradient("mlp", {"batch": 128, "layers": _LAYERS}, ratio=1.5),
    "MLP 64-256-256-10 step": FirstCall("mlp_step", _STEP, ratio=1.5),
    "Lorenz, 50 steps": _gradient("lorenz", {"steps": 50}, limit=2.0),
    "Lorenz, 10000 steps of scan": FirstCall(
        "loop", {"problem": "lorenz", "steps": 10_000}, limit=0.6
    ),
    "Lorenz, 1000000 steps of scan": FirstCall(
        "loop", {"problem": "lorenz", "steps": 1_000_000}, limit=0.6
    ),
    "Hessian, 30 parameters": FirstCall("loop", _HESSIAN, limit=1.0),
    "2000 operations": _gradient("long chain", {"n": 1000, "operations": 2000}, limit=3.0),
    "LSTM, 32 steps": _gradient("lstm", {"steps": 32, "letters": 14}, limit=5.0),
    "bundle adjustment": _gradient(
        "bundle", {"cameras": 49, "points": 7776, "observations": 31843}, limit=3.0
    ),
}
JAX_SECONDS = 20.0
"""What JAX may take where no ratio is promised: unrolled loops keep it busy for minutes."""


def first_call(case: FirstCall, library: str, threads: int, patience: float) -> tuple[float, float]:
    """Seconds of wall clock and of CPU; imports and arguments are ready before the clock starts.

    Raises
    ------
    TimeoutError
        If the process takes longer than ``patience`` seconds.
    """
    setup = (
        "from peers import LIBRARIES\n"
        f"library = LIBRARIES[{library!r}]()\n"
        f"library.configure({threads}, True)\n"
        f"statement = library.{case.kind}(**{dict(case.params)!r})\n"
        "code = compile(statement.code, 'statement', 'exec')"
    )
    with scratch() as cache:
        extra = {"NUMGRAD_CACHE_DIR": str(cache)}
        return seconds("exec(code, statement.names)", extra, threads, setup, patience)


def measure(name: str, threads: int, rounds: int) -> list[Measured]:
    """The first call of one case, by numgrad and by JAX in turns."""
    case = FIRST_CALLS[name]
    runs: dict[str, Runs] = {}
    missing: set[str] = set()
    notes = ""
    for _ in range(max(1, rounds // 3)):
        for library in LIBRARIES:
            if library in missing:
                continue
            bounded = library == "jax" and case.ratio is None
            try:
                used = first_call(case, library, threads, JAX_SECONDS if bounded else 300.0)
            except TimeoutError:
                if not bounded:
                    raise
                notes = f", {library} over {JAX_SECONDS:.0f} s"
            except RuntimeError as error:
                if library == "numgrad" or "ModuleNotFoundError" not in str(error):
                    raise
            else:
                runs.setdefault(library, Runs()).add(*used)
                continue
            missing.add(library)
    label, text = f"first call/{name}", texts(runs) + notes
    own, jax = runs["numgrad"], runs.get("jax")
    if jax is not None:
        text += f", ratio {own.wall.min / jax.wall.min:.2f} ({own.cpu.min / jax.cpu.min:.2f})"
    if case.ratio is None:
        value, limit = own.wall.min, case.limit
    elif jax is not None:
        value, limit = own.wall.min / jax.wall.min, case.ratio
    else:
        value, limit = own.wall.min, None
    return [Measured(label, text + ":", value, limit, summary(runs))]


MEASURES: dict[str, Callable[[int, int], list[Measured]]] = {
    f"first call/{name}": partial(measure, name) for name in FIRST_CALLS
}
