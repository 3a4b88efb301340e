"""Peak memory of a forward and a backward, or of a training step: ``python perf/memory.py``.

The unit is one array of a million elements; the leaf, which exists before, is not counted, its
gradient is. Every figure is the growth of the peak of resident memory in a fresh process, in which
each array is a mapping of its own, so that what is released leaves the process. For numgrad the
peak that tracemalloc sees is given, too; it counts arrays of NumPy and Python's own objects.

numgrad may hold 5 % more than PyTorch. With saved tensors on disk it may hold three arrays beyond
the gradient, however long the chain is.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import training
from harness import environment

SIZE = 1_000_000
ARRAY = 8 * SIZE
MAPPED = {"MALLOC_MMAP_THRESHOLD_": "65536"}
"""glibc then gives every large array back at once, and does not move the threshold."""


@dataclass(frozen=True)
class Case:
    """A chain: ``step`` is applied ``length`` times, then the elements are summed.

    ``manner`` says what becomes of the saved tensors: they are kept, written to disk, or computed
    again, in segments of ten steps. ``training`` is a step of training a perceptron instead, on
    batches of ``length``.
    """

    step: str
    length: int
    manner: str = "kept"
    limit: float | None = None
    """Arrays numgrad may hold; None for what PyTorch holds and 5 % more."""


CASES = {
    "sin": Case("sin(x)", 100),
    "product": Case("x * x", 100),
    "exp": Case("exp(-x)", 50),
    "mixed": Case("tanh(sin(x) * 1.25 + x)", 25),
    "checkpoint": Case("sin(x)", 100, "checkpoint"),
    "training": Case("256-2048-2048-10, float32", 4096, "training"),
    "disk": Case("sin(x)", 20, "disk", limit=4.0),
}
"""Chains of a hundred operations, but for the last, which would fill 800 MB of disk, and a
perceptron with Adam."""

# ---------------------------------------------------------------------------------- the worker


class NumgradChain:
    """Names of numgrad that a case needs."""

    def __init__(self) -> None:
        import numgrad as ng
        from numgrad.tensors.checkpoint import checkpoint

        self.module, self.checkpoint = ng, checkpoint

    def leaf(self, size: int) -> Any:
        """Where a chain begins."""
        return self.module.linspace(0.1, 1.0, size).requires_grad_()

    @contextmanager
    def on_disk(self) -> Iterator[None]:
        """Inside, saved tensors are files."""
        import numpy as np

        with tempfile.TemporaryDirectory() as directory:
            count = 0

            def pack(tensor: Any) -> Path:
                nonlocal count
                count += 1
                path = Path(directory, f"{count}.npy")
                np.save(path, tensor.numpy())
                return path

            def unpack(path: Path) -> Any:
                return self.module.from_numpy(np.load(path))

            with self.module.autograd.graph.saved_tensors_hooks(pack, unpack):
                yield


class TorchChain:
    """Names of PyTorch that a case needs."""

    def __init__(self) -> None:
        import torch
        from torch.utils.checkpoint import checkpoint

        self.module = torch
        self.checkpoint = lambda f, x: checkpoint(f, x, use_reentrant=False)

    def leaf(self, size: int) -> Any:
        """Where a chain begins."""
        return self.module.linspace(0.1, 1.0, size, dtype=self.module.float64).requires_grad_()


def run(library: Any, case: Case, x: Any, length: int) -> None:
    """Forward and backward of one chain."""
    code = f"lambda x: {case.step}"
    step: Callable[[Any], Any] = eval(code, vars(library.module).copy())

    def steps(x: Any, count: int = 10) -> Any:
        for _ in range(count):
            x = step(x)
        return x

    def chain(x: Any) -> Any:
        if case.manner != "checkpoint":
            return steps(x, length)
        for _ in range(length // 10):
            x = library.checkpoint(steps, x)
        return x

    with library.on_disk() if case.manner == "disk" else nullcontext():
        chain(x).sum().backward()


def trained(library: Any) -> Callable[[int], None]:
    """A step of training on a batch of the given length; its gradients are gone afterwards."""
    module = library.module
    model = training.perceptron(module, [256, 2048, 2048, 10], "float32")
    optimizer = module.optim.Adam(model.parameters())

    def step(batch: int) -> None:
        x = module.ones((batch, 256), dtype=module.float32)
        target = module.zeros((batch,), dtype=module.int64)
        module.nn.functional.cross_entropy(model(x), target).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def resident(field: str) -> int:
    """A figure of this process in bytes: ``VmRSS``, or its peak ``VmHWM``."""
    text = Path("/proc/self/status").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def measure(name: str, case: Case) -> tuple[float, float | None]:
    """Peaks in arrays: of resident memory, and of what tracemalloc sees."""
    library = NumgradChain() if name == "numgrad" else TorchChain()
    if case.manner == "training":
        go = trained(library)
    else:
        x = library.leaf(SIZE)

        def go(length: int) -> None:
            run(library, case, x, length)
            x.grad = None

    go(10)  # compiles
    go(10)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    go(case.length)
    peak = (resident("VmHWM") - before) / ARRAY
    if name != "numgrad":
        return peak, None
    tracemalloc.start()
    go(case.length)
    return peak, tracemalloc.get_traced_memory()[1] / ARRAY


# ---------------------------------------------------------------------------------- the parent


def ask(library: str, case: str) -> tuple[float, float | None]:
    """The figures of one case in a fresh process."""
    command = [sys.executable, __file__, library, case]
    done = subprocess.run(
        command, env=environment(1, MAPPED), capture_output=True, text=True, timeout=600
    )
    if done.returncode:
        raise RuntimeError(f"{case}: status {done.returncode}: {done.stderr[-800:]}")
    return json.loads(done.stdout)


def has_torch() -> bool:
    """Whether there is a PyTorch to compare with."""
    return not subprocess.run(
        [sys.executable, "-c", "import torch"], capture_output=True
    ).returncode


def main() -> None:
    """Measure one case for the parent, or all of them."""
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], CASES[sys.argv[2]])))
        return
    compare = has_torch()
    print(f"{'arrays held':<14}{'numgrad':>10}{'traced':>10}{'torch':>10}{'limit':>10}  met")
    for name, case in CASES.items():
        ours, traced = ask("numgrad", name)
        torch = ask("torch", name)[0] if compare and case.limit is None else None
        limit = case.limit if torch is None else torch * 1.05
        # a tenth of an array for files' buffers and the allocator
        met = "" if limit is None else "yes" if ours <= limit + 0.1 else "NO"
        figures = (ours, traced, torch, limit)
        print(
            f"{name:<14}" + "".join("-".rjust(10) if f is None else f"{f:10.2f}" for f in figures)
            + f"  {met}",
            flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
