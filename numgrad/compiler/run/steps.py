"""Steps of a program: kernels in their variants, and other code between them.

Note [Threads on demand]
------------------------
The first call compiles one variant, for one thread. That for several is compiled when what it would
have saved by then is a quarter of what compiling the first took: what has been called so often will
be called again, and a function that is called a few times does not wait for it. Where the estimate
leaves it open whether threads save anything, it is compiled when that would be all of it.
``parallel=True`` compiles it at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import Kernel, compile_kernel
from numgrad.codegen.memory import collection_later
from numgrad.codegen.nests.kernel import Written
from numgrad.codegen.nests.terms import Term
from numgrad.codegen.threads import serial_ns
from numgrad.codegen.trials import VariantTrial
from numgrad.compiler.graph.evaluate import compute
from numgrad.compiler.graph.graph import BodyOperation, TracedNode
from numgrad.compiler.graph.sizes import Sizes
from numgrad.compiler.messages import announced, name_line, no_internal_error
from numgrad.errors import NumgradError

SIZES = 256
"""How many different works of a kernel have trials."""


class KernelStep:
    """A kernel of a program in its serial and parallel variants, each compiled when needed.

    Attributes
    ----------
    kernels
        The variants so far, by ``(parallel, nogil)``.
    seconds
        What compiling them, or loading them from disk, took.
    missed
        Seconds that several threads would have saved: Note [Threads on demand].
    trials
        By work, where no estimate decides: Note [Trials] in ``codegen.trials``.
    """

    def __init__(self, name: str, written: Written, keep: bool = True) -> None:
        self.name, self.written, self.keep = name, written, keep
        self.kernels: dict[tuple[bool, bool], Kernel] = {}
        self.seconds = self.missed = 0.0
        self.trials: dict[float, VariantTrial] = {}

    def kernel(self, parallel: bool = False, nogil: bool = False) -> Kernel:
        """A variant."""
        cached = self.kernels.get((parallel, nogil))
        if cached is None:
            written = self.written
            begin = time.perf_counter()
            with (
                announced(f"compiling {self.name}"),
                no_internal_error(f"it compiled the kernel {self.name}", KernelStep),
                collection_later(),
            ):
                cached = self.kernels[parallel, nogil] = compile_kernel(
                    self.name,
                    written.source(parallel=parallel),
                    written.signature(),
                    parallel=parallel,
                    nogil=nogil,
                    externals=written.emitter.externals,
                    functions=written.emitter.namespace,
                    keep=self.keep,
                    lasting=False,
                )
            self.seconds += time.perf_counter() - begin
        return cached

    def launch(self, computing_ns: float, moved: float, *arguments: Any) -> None:
        """Run with as many threads as are worth while."""
        trial = self.trials.get(computing_ns)
        if trial is not None and trial.alone > 0:
            trial.alone -= 1
            self._run(1, *arguments)
            return
        work_ns = serial_ns(computing_ns, moved)
        tried = threads.on_trial(work_ns)
        used = threads.worth(work_ns) if trial is None or tried < 2 else 1
        several = max(used, tried)
        if several > 1 and (True, True) not in self.kernels:
            self.missed += 1e-9 * (work_ns - work_ns / several)
            patience = 0.25 if used > 1 else 1.0
            if not self.kernels or self.missed < patience * self.seconds:
                used = tried = 1
        if tried < 2:
            self._run(used, *arguments)
            return
        if trial is None:
            if len(self.trials) >= SIZES:
                self.trials.clear()
            trial = self.trials.setdefault(computing_ns, VariantTrial(used > 1))
        trial.run(self._run, tried, *arguments)

    def share(self, work_ns: float, moved: float, *arguments: Any) -> None:
        """Run with all threads."""
        self._run(threads.worth(work_ns), *arguments)

    def _run(self, used: int, *arguments: Any) -> None:
        if used < 2:
            self.kernel(nogil=True).entry(*arguments)
        else:
            threads.launch(self.kernel(True, True).entry, used, *arguments)


def first_call(step: KernelStep, namespace: dict[str, Any], name: str, *arguments: Any) -> None:
    """Compile the serial variant and replace this function by its entry point."""
    entry = namespace[name] = step.kernel(nogil=step.written.long).entry
    entry(*arguments)


# ----------------------------------------------------------------------------------------- segment


Run = Callable[[Sequence[Any], dict[int, int]], Sequence[Any]]
"""Computes a node: of operands and lengths of axes."""


class Segment:
    """Other code that runs between kernels: a node computed by its operation.

    Attributes
    ----------
    run, general
        Its function, and the same by the operation's own, which profiles look into.
    flat
        Whether numbers are arrays of one element, as those of kernels, for these functions and
        among their results.
    """

    def __init__(self, node: TracedNode, sizes: Sizes, results: list[Term]) -> None:
        self.node, self.results = node, results
        op = node.op
        function = _run_body if isinstance(op, BodyOperation) else _run_operation
        self.general: Run = partial(function, node, sizes)
        self.run, self.flat = self.general, False
        if isinstance(op, BodyOperation):
            flat = partial(_run_flat, node, self.general)
            direct = op.rules.direct(node, sizes, flat)
            if direct is not None:
                self.run, self.general, self.flat = direct, flat, True


def _run_flat(
    node: TracedNode, run: Run, operands: Sequence[Any], lengths: dict[int, int]
) -> Sequence[Any]:
    """The results of ``run`` where numbers are arrays of one element."""
    pairs = zip(operands, node.inputs, strict=True)
    results = run([a if v.shape else a.reshape(()) for a, v in pairs], lengths)
    made = zip(results, node.outputs, strict=True)
    return [x if v.shape else np.asarray(x).reshape(1) for x, v in made]


def _run_body(
    node: TracedNode, sizes: Sizes, operands: Sequence[Any], lengths: dict[int, int]
) -> Sequence[Any]:
    """The results of a graph within the graph, which are new arrays."""
    params = dict(node.params)
    if "lengths" in params:
        params["lengths"] = [sizes.evaluate(n, lengths) for n in params["lengths"]]
    if "length" in params:
        params["length"] = sizes.evaluate(params["length"], lengths)
    try:
        results = node.op.function(*operands, **params)  # pyright: ignore
    except NumgradError as error:
        name_line(error, node.line)
        raise
    return results if type(results) is tuple else (results,)


def _run_operation(
    node: TracedNode, sizes: Sizes, operands: Sequence[Any], lengths: dict[int, int]
) -> Sequence[Any]:
    """The results of a node, contiguous."""
    outputs = compute(node, list(operands), lambda n: sizes.evaluate(n, lengths))
    results = [np.asarray(f, order="C") for f in outputs]
    if node.params.get("writes"):
        return tuple(results)
    others = [a for a in operands if isinstance(a, np.ndarray)]
    owners = {*map(id, others), *(id(a.base) for a in others)}
    for k, result in enumerate(results):  # it may have given back an operand, or a view of one
        if result.base is None and id(result) not in owners:
            owners.add(id(result))
        elif any(np.may_share_memory(result, a) for a in (*others, *results[:k])):
            results[k] = result.copy()
    return tuple(results)
