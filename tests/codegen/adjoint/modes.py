"""The programs that give a kernel's gradient, each compared with exact gradients.

``every_mode`` runs the joint sweep, split mode, joined sweeps, those of a function that keeps
arrays by step, and those of one that keeps checkpoints, for all inputs, for some, and for some
outputs; and the batch of a call and another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.codegen.adjoint.program import DerivativeProgram
from numgrad.codegen.adjoint.snapshots import take_snapshots
from numgrad.core.loop_kernels import KernelOperation, plain
from numgrad.errors import NumgradKernelError
from tests.codegen.adjoint import hyperdual
from tests.codegen.adjoint.judge import compare, tuple_of


def every_mode(
    function: Callable[..., Any],
    writes: Sequence[str],
    truth: hyperdual.Derivatives,
    arguments: Sequence[Any],
    others: Sequence[Any],
    tolerance: float = 1e-9,
) -> Counter[str]:
    """Compare the gradients of all modes; which of them the program has.

    ``others`` are arguments of the call that is in a batch with that of ``arguments``.
    """
    seen: Counter[str] = Counter()
    for save in ("all", "snapshots", "less"):
        kernel = ng.kernel(function, writes=writes, save="less" if save == "less" else "all")
        try:
            program = kernel.program(kernel.arrays(arguments))
        except NumgradKernelError:
            if save != "less":
                raise
            continue  # no loop that has segments
        if save == "snapshots" and not _with_snapshots(program):
            continue
        backward = program.backward(program.all_inputs) if program.all_inputs else None
        if backward is None or (save == "less" and not program.segments):
            continue
        seen[save] += 1
        for inputs in _choices(program.all_inputs):
            seen += _compare(program, inputs, truth, plain(kernel.arrays(arguments)), tolerance)
        if save == "all":
            seen["batch"] += 1
            _compare_batch(kernel, truth, arguments, others, tolerance)
    return seen


def _compare_batch(
    kernel: KernelOperation,
    truth: hyperdual.Derivatives,
    arguments: Sequence[Any],
    others: Sequence[Any],
    tolerance: float,
) -> None:
    """Compare outputs and gradients of the second of two examples."""
    axes = [None if isinstance(a, int) else 0 for a in arguments]
    stacks = [
        a if axis is None else np.stack([b, a])
        for a, b, axis in zip(arguments, others, axes, strict=True)
    ]
    places = [k for k, a in enumerate(arguments) if hyperdual.differentiable(a)]

    def weighted(*given: Any) -> tuple[Any, tuple[Any, ...]]:
        outputs = tuple_of(kernel(*given))
        terms = [
            (np.conj(_of_dtype(w, o.dtype)) * o).real.sum()
            for w, o in zip(truth.weights, outputs, strict=True)
            if o.dtype.kind in "fc"
        ]
        return sum(terms[1:], terms[0]), outputs

    gradient = ng.vmap(ng.grad(weighted, argnums=tuple(places), has_aux=True), in_axes=tuple(axes))
    gradients, outputs = gradient(*stacks)
    for k, (seen, wanted) in enumerate(zip(outputs, truth.outputs, strict=True)):
        compare(f"output {k} of a batch", seen[1], wanted, tolerance)
    wanted = [truth.gradients[k] for k in places]
    size = max(1.0, *(float(np.max(np.abs(w), initial=0.0)) for w in wanted))
    for k, seen, own in zip(places, gradients, wanted, strict=True):
        compare(f"gradient of argument {k} of a batch", seen[1], own, tolerance, size)


def _with_snapshots(program: DerivativeProgram) -> bool:
    """Let a program keep arrays by step, be it of use or not; whether it has any."""
    scope = program.definition.scope
    function = program._read(scope, program.kinds, program.definition.written)
    program.__dict__["swept"] = function
    return take_snapshots(function) > 0


def _choices(inputs: tuple[str, ...]) -> list[tuple[str, ...]]:
    """All inputs, the last, all but the last."""
    choices = [inputs]
    if len(inputs) > 1:
        choices += [inputs[-1:], inputs[:-1]]
    return choices


def _compare(
    program: DerivativeProgram,
    inputs: tuple[str, ...],
    truth: hyperdual.Derivatives,
    arguments: list[Any],
    tolerance: float,
) -> Counter[str]:
    seen: Counter[str] = Counter()
    seeds = [
        None if w is None or o.dtype.kind not in "fc" else _of_dtype(w, o.dtype)
        for w, o in zip(truth.weights, program.outputs, strict=True)
    ]
    wanted = [truth.gradients[k] if n in inputs else None for k, n in enumerate(program.names)]
    size = max(1.0, *(float(np.max(np.abs(w), initial=0.0)) for w in wanted if w is not None))

    def check(mode: str, gradients: Sequence[Any]) -> None:
        seen[mode] += 1
        for name, gradient, own in zip(program.names, gradients, wanted, strict=True):
            assert (gradient is None) == (own is None), f"{mode}: {name}"
            if own is not None:
                compare(f"{mode}, gradient of {name} for {inputs}", gradient, own, tolerance, size)

    def check_sweeps(mode: str, asked: bool = False) -> None:
        outputs, state = program.forward_sweep(arguments, inputs, asked=asked)
        if state is None:
            return
        for k, (one, other) in enumerate(zip(outputs, truth.outputs, strict=True)):
            compare(f"{mode}, output {k}", one, other, tolerance)
        given = outputs if program.reads_outputs(inputs, asked) else None
        for _ in range(2):  # the state stays as it is
            check(mode, program.backward_sweep(arguments, given, state, seeds))

    check("joint", program.vjp(arguments, seeds, inputs))
    if program.is_joined(inputs, asked=True):
        check_sweeps("joined", asked=True)
        program.is_joined = lambda *_: False
        check_sweeps("split of joined")
        del program.is_joined
    else:
        check_sweeps("split")
    if sum(seed is not None for seed in seeds) > 1:
        joint = program.vjp(arguments, seeds, inputs)
        one = [seed if k == 0 else None for k, seed in enumerate(seeds)]
        rest = [None if k == 0 else seed for k, seed in enumerate(seeds)]
        parts = [program.vjp(arguments, part, inputs) for part in (one, rest)]
        for name, whole, a, b in zip(program.names, joint, *parts, strict=True):
            if whole is not None:
                compare(f"gradient of {name} by outputs", a + b, whole, tolerance, size)
    return seen


def _of_dtype(weight: Any, dtype: np.dtype) -> np.ndarray:
    weight = np.asarray(weight)
    return (weight if dtype.kind == "c" else weight.real).astype(dtype)
