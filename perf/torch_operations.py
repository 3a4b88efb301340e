"""Operations of the face for PyTorch, one by one: ``python perf/torch_operations.py [PART...]``.

Times expressions and statements through ``numgrad.torch`` and through PyTorch, CPU time, in turns
in one process on one thread: on operands that require grad, and under ``no_grad``. Prints
microseconds and the ratio; ``--short`` prints only what is slower here. A ``PART`` selects.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

for name in ("NUMGRAD_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

LENGTHS = (1, 100, 10_000)
EXPRESSIONS = """
x + y; x - y; x * y; x / y; -x; x * 2; 2.0 * x; x + 1; 1 - x; x / 3.0; x @ x; x + s; x * s; x ** 2
x ** 3; x.pow(2); x.exp(); x.log(); x.sqrt(); x.sin(); x.tanh(); x.sigmoid(); x.abs()
torch.relu(x); F.relu(x); F.gelu(x); F.softplus(x); torch.clamp(x, min=0.2); x.clamp(max=1.0)
x < y; x > 0.5; x == y; torch.where(c, x, y); torch.maximum(x, y); x.masked_fill(c, 0.0); x.sum()
x.mean(); x.max(); x.norm(); x.var(); x.std(); x.argmax(); x.pow(2).sum(); x.dot(y); m.sum(0)
m.sum(1); m.mean(1); m.sum(1, keepdim=True); m.max(1); m.argmax(1); m.sum(dim=-1); m.softmax(1)
F.log_softmax(m, dim=1); m.cumsum(0); m.logsumexp(1); m.t(); m.T; m.transpose(0, 1)
x.unsqueeze(0); m.view(-1); m.reshape(-1); x.squeeze(); m.flatten(); x.expand(2, -1)
x.view(1, -1); m.permute(1, 0); m.contiguous(); m[0]; m[:, 0]; x[0]; x[::2]; x[-1]; m[0, 0]; x[i]
x[c]; x[None]; x[..., 0]; m @ w; m.mm(w); torch.matmul(m, w); m.mv(v); F.linear(m, w)
F.linear(m, w, v); m @ m.t(); torch.cat([x, y]); torch.stack([x, y]); x.chunk(2); x.split(50)
torch.outer(v, v); torch.addmm(v, m, w); torch.einsum("ij,jk->ik", m, w); F.mse_loss(x, y)
F.cross_entropy(m, k); F.nll_loss(m, k); F.binary_cross_entropy(p, p0); F.dropout(x, 0.5)
F.layer_norm(m, (10,)); F.embedding(k, w); x.clone(); x.detach(); x.float(); x.double()
x.to(torch.float32); x.type(torch.float64); torch.zeros_like(x); torch.ones_like(x)
torch.zeros(n); torch.ones(n); torch.randn(n); torch.rand(n); torch.tensor([1.0, 2.0])
torch.arange(n); torch.linspace(0, 1, n); torch.full((n,), 2.0); torch.empty(n)
torch.from_numpy(a); d.numpy(); s0.item(); float(s0); x.shape; x.size(0); x.dim(); x.dtype; len(x)
x.requires_grad; x.numel(); x.data; x.grad; x.is_leaf
"""
"""Expressions of ``x, y, p`` of n numbers, ``m`` of n / 10 rows of 10, ``w`` 10 x 10, ``v`` of 10,
a scalar ``s``, and, without gradients, masks ``c``, indices ``i``, labels ``k``, ``d`` as ``x``."""
WRITES = """
d += 1.0; d -= d2; d *= 0.999; d -= 1e-6 * d2; d.add_(d2, alpha=-0.1); d.mul_(0.9); d.zero_()
d.fill_(2.0); d.copy_(d2); d.sub_(d2); d.addcmul_(d2, d2, value=0.1)
d.addcdiv_(d2, d3, value=0.1); d.clamp_(0.0, 1.0); d.sqrt_(); d.exp_(); d[0] = 1.0; d[i] = 0.5
d[:] = d2; d.data.add_(d2); d.lerp_(d2, 0.1); d.div_(1.01); d.sigmoid_(); d.normal_()
d.uniform_(); s0 -= 1e-6 * s1; s0 += 1.0
"""
"""Statements that write, under ``no_grad``."""
PASSES = """
x.sum().backward(); (x * y).sum().backward(); F.mse_loss(x, y).backward()
(m @ w).sum().backward(); torch.autograd.grad((x * x).sum(), x); F.cross_entropy(m, k).backward()
m.softmax(1).sum().backward(); F.linear(m, w, v).relu().sum().backward(); x.grad = None
x[0].backward(); m[:, 0].sum().backward(); torch.cat([x, y]).sum().backward()
m.sum(0).sum().backward(); (x.sin() * 2 + x ** 2).mean().backward()
"""
"""Statements with a walk backwards."""


def scope(torch: Any, n: int) -> dict[str, Any]:
    """Make the operands of a length."""
    import numpy as np

    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return torch.tensor(rng.uniform(0.1, 0.9, shape), dtype=torch.float32)

    rows = max(n // 10, 1)
    names = {"x": draw(n), "y": draw(n), "p": draw(n), "m": draw(rows, 10), "w": draw(10, 10),
             "v": draw(10), "s": draw()}  # fmt: skip
    for value in names.values():
        value.requires_grad_(True)
    names |= {"d": draw(n), "d2": draw(n), "d3": draw(n), "p0": draw(n), "s0": draw(), "s1": draw()}
    names["c"] = names["d"] > 0.5
    names["i"] = torch.tensor([0, n - 1, n // 2])
    names["k"] = torch.arange(rows) % 10
    names["a"], names["n"] = rng.random(n).astype("float32"), n
    return names | {"torch": torch, "F": torch.nn.functional}


def loop(statement: str, names: dict[str, Any]) -> Callable[[int], float]:
    """Compile a function that runs a statement a number of times, and gives the CPU seconds."""
    own = [name for name in names if name not in ("torch", "F")]
    fetch = "; ".join(f"{name} = names[{name!r}]" for name in own)
    source = (
        f"def run(count):\n    {fetch}\n    begin = clock()\n    for _ in repeat(None, count):\n"
        f"        {statement}\n    return clock() - begin"
    )
    from itertools import repeat

    known = {"names": names, "clock": time.process_time, "repeat": repeat, **names}
    exec(source, known)
    return known["run"]


def best(runs: list[Callable[[int], float]], seconds: float, rounds: int) -> list[float]:
    """The smallest seconds of one execution, by library; what fails has NaN."""
    counts, times = [], []
    for run in runs:
        try:
            run(60)
            counts.append(max(1, int(seconds / max(run(5) / 5, 1e-7))))
            times.append(math.inf)
        except Exception as error:
            print(f"# {type(error).__name__}: {error!s:.60}", file=sys.stderr)
            counts.append(0)
            times.append(math.nan)
    for _ in range(rounds):
        for k, run in enumerate(runs):
            if counts[k]:
                times[k] = min(times[k], run(counts[k]) / counts[k])
    return times


def main() -> int:
    """Print a line an expression."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--short", type=float, nargs="?", const=1.0, default=0.0, metavar="RATIO")
    parser.add_argument("--seconds", type=float, default=0.0005, help="of a slice")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    libraries: list[Any] = [import_module("numgrad.torch"), import_module("torch")]
    rows: dict[str, Any] = {}
    for library in libraries:
        library.set_num_threads(1)
        import_module(library.__name__ + ".nn.functional")
    for n in options.lengths:
        names = [scope(library, n) for library in libraries]
        for kind, text in (("grad", EXPRESSIONS), ("no_grad", EXPRESSIONS), ("writes", WRITES),
                           ("passes", PASSES)):  # fmt: skip
            for statement in text.replace("\n", ";").split(";"):
                statement = statement.strip()
                if not statement or (
                    options.parts and not any(p in statement for p in options.parts)
                ):
                    continue
                grad = kind in ("grad", "passes")
                for library in libraries:
                    library.set_grad_enabled(grad)
                runs = [loop(statement, each) for each in names]
                own, other = best(runs, options.seconds, options.rounds)
                rows[f"{n} {kind} {statement}"] = [1e6 * own, 1e6 * other]
                if not own / other < options.short:
                    shown = f"{1e6 * own:9.2f}{1e6 * other:9.2f}{own / other:7.2f}"
                    print(f"{n:>6} {kind:8}{statement:44}{shown}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
