"""The figures numgrad promises against other libraries, as cases to time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LIBRARIES = ("numgrad", "numpy", "torch", "autograd", "jax")

Contestant = tuple[str, str, dict[str, Any]]
"""Library, the method of ``peers`` that builds the statement, and its parameters."""


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes
    ----------
    contestants
        By label; the label ``numgrad`` is the one judged.
    against
        Labels whose smallest time the judged one is divided by; with ``add``, whose sum.
    target
        Largest ratio that is good, or None where none is promised.
    threads
        Threads to use, or None for what the command line says.
    """

    name: str
    contestants: Mapping[str, Contestant]
    against: tuple[str, ...]
    target: float | None
    threads: int | None = None
    recording: bool = True
    add: bool = False
    rounds: float = 1.0
    """Factor on the number of rounds."""


def _same(
    kind: str, libraries: tuple[str, ...] = LIBRARIES, **params: Any
) -> dict[str, Contestant]:
    return {library: (library, kind, params) for library in libraries}


def cases() -> list[Case]:
    """Every case that is timed in worker processes, in the order of the table."""
    found = [
        Case(f"chain/{n}", _same("chain", n=n), ("torch",), target)
        for n, target in ((100, 1 / 3), (1_000, 1 / 3), (100_000, 1.0), (10_000_000, 1.0))
    ]
    # torch hands even 100 numbers to two threads, which costs it milliseconds on a busy machine
    found += [
        Case(f"chain/{n}/one thread", _same("chain", n=n), ("torch",), None, threads=1)
        for n in (100, 1_000, 100_000)
    ]
    eager = ("numgrad", "numpy", "torch")
    vector = {"a": [100], "b": [100]}
    operations = (
        ("a*b", "a * b", vector),
        ("a*2.0", "a * 2.0", {"a": [100]}),
        ("(32,64)+(64,)", "a + b", {"a": [32, 64], "b": [64]}),
        ("a[2:50]", "a[2:50]", {"a": [100]}),
        ("16x16@16x16", "a @ b", {"a": [16, 16], "b": [16, 16]}),
    )
    for name, code, shapes in operations:
        contestants = _same("operation", eager, code=code, shapes=shapes)
        found.append(Case(f"record/{name}", contestants, ("torch",), 0.85))
    contestants = _same("operation", eager, code="a * b", shapes=vector)
    found.append(Case("no_grad/a*b", contestants, ("torch",), None, recording=False))
    elementary = ("sqrt", "exp", "log", "tanh", "sin", "cos", "erf", "pow", "sigmoid")
    for kind, target in (("kernel", 1.10), ("elementary", None)):
        for dtype in ("float64", "float32"):
            for function in elementary:
                params = {"function": function, "n": 100_000, "dtype": dtype}
                found.append(
                    Case(
                        f"{kind}/{function}/{dtype}",
                        _same(kind, eager, **params),
                        ("numpy", "torch"),
                        target,
                        threads=1,
                    )
                )
    for threads, note, target in ((None, "", 1.0), (1, "/one thread", None)):
        for function in ("sum", "mean", "max", "logsumexp"):
            for axis in (0, 1, None):
                contestants = _same("reduction", eager, function=function, axis=axis)
                name = f"reduce/{function}/axis={axis}{note}"
                found.append(Case(name, contestants, ("numpy",), target, threads=threads))
    for parallel in ("kernel", "operation"):
        labels = {"numgrad": "both", "kernel": "kernel", "product": "product"}
        contestants = {
            label: ("numgrad", "alternation", {"part": part, "parallel": parallel})
            for label, part in labels.items()
        }
        name = f"alternate/{parallel} with 500x500 matmul"
        found.append(Case(name, contestants, ("kernel", "product"), 1.2, add=True, rounds=2.0))
    return found
