"""What the face for PyTorch costs: ``python perf/torch_face.py``.

Times a chain of small operations, recorded and walked backwards, in CPU time, in turns in one
process: numgrad's own functions, ``numgrad.torch``, and ``numgrad`` with a subclass of Tensor in
the place of the wrapper (Note [Wrapper, subclass or flag] in ``numgrad/torch/wrapping.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import numgrad as ng
import numgrad.torch as torch
from numgrad.autograd.variable import Parameter
from numgrad.core.op import OPS
from numgrad.tensors.recorder import RECORDER, CallRecorder, MachineEntry

LENGTHS = (1, 100, 10_000)
ROUNDS = 15


class Sub(ng.Tensor):
    """A subclass whose operations are the recorder's, with results of the subclass."""

    __slots__ = ()


class SubParameter(Parameter):
    """Its parameter."""

    __slots__ = ()


def subclass_functions() -> dict[str, Callable[..., Any]]:
    """Functions of Subs in machine code."""
    recorder = CallRecorder("subclass_recorder", lambda: None)
    recorder.objects = type(recorder.objects)(
        **{**recorder.objects.objects, "TENSOR": Sub, "PARAMETER": SubParameter}
    )
    vars(recorder)["code"] = RECORDER.code  # the same text: classes are in its table

    def entry(name: str) -> Callable[..., Any]:
        op = OPS[name]

        def slow(*args: Any) -> Any:
            out = op(*args)
            out.__class__ = Sub
            return out

        return MachineEntry(op, slow, recorder).call

    names = {"sin": "sin", "cos": "cos", "exp": "exp", "sum": "sum", "__mul__": "multiply",
             "__add__": "add", "__sub__": "subtract"}  # fmt: skip
    calls = {name: entry(op) for name, op in names.items()}
    for name, call in calls.items():
        if name.startswith("__"):
            setattr(Sub, name, lambda self, other, call=call: call(self, other))
    Sub.sum = lambda self: calls["sum"](self)
    return calls


def chain(x: Any, sin: Any, cos: Any, exp: Any) -> Any:
    """The chain: 40 operations."""
    for _ in range(5):
        x = sin(x) * x + 0.5
        x = cos(x * 1.1) - x
    return exp(x * 0.1).sum()


def seconds(run: Callable[[], None], repeats: int) -> float:
    began = time.process_time()
    for _ in range(repeats):
        run()
    return (time.process_time() - began) / repeats


def ratios(runs: list[Callable[[], None]], repeats: int) -> tuple[float, list[float]]:
    """Microseconds of the first, and what the others take of that."""
    for run in runs:
        seconds(run, 100)
    rounds = [[seconds(run, repeats) for run in runs] for _ in range(ROUNDS)]
    best = [min(times) for times in zip(*rounds, strict=True)]
    return 1e6 * best[0], [each / best[0] for each in best[1:]]


def main() -> None:
    """Measure and print."""
    ng.set_num_threads(1)
    sub = subclass_functions()
    print(f"{'elements':>10} {'':>9} {'numgrad':>10} {'face':>8} {'subclass':>9}")
    for n in LENGTHS:
        values = np.random.default_rng(0).random(n)
        sides = [
            (ng.tensor(values, requires_grad=True), (ng.sin, ng.cos, ng.exp)),
            (torch.tensor(values, requires_grad=True), (torch.sin, torch.cos, torch.exp)),
            (Sub(values.copy(), True), (sub["sin"], sub["cos"], sub["exp"])),
        ]

        def gradient(x: Any, functions: Any) -> None:
            x.grad = None
            chain(x, *functions).backward()

        repeats = max(200 * 100 // max(n, 100), 10)
        for name, run in (("record", lambda x, fs: chain(x, *fs)), ("gradient", gradient)):
            own, (face, inherited) = ratios([partial(run, *side) for side in sides], repeats)
            print(f"{n:>10} {name:>9} {own:>8.1f}us {face:>8.3f} {inherited:>9.3f}")


if __name__ == "__main__":
    main()
