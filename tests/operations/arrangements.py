"""The same elements in memory in every way, and given to an operation in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.autograd.saved import COPY_BYTES
from numgrad.testing.samples import LAYOUTS
from tests.operations.cases import Case

as_strided = np.lib.stride_tricks.as_strided


@dataclass(frozen=True)
class Layout:
    """``look(base)`` has a shape, and lies in the memory of ``base`` in some way.

    ``store`` makes the base of a contiguous array; of some layouts elements are repeated, so that
    the operand is another one. ``look`` takes Tensors as well if ``traceable``.
    """

    store: Callable[[np.ndarray], np.ndarray]
    look: Callable[[Any, tuple[int, ...]], Any]
    ndim: int = 1
    traceable: bool = True
    written: bool = True
    """Whether the elements lie apart, so that one may write to them."""


def _inside(x: np.ndarray) -> np.ndarray:
    """A block with something else around it."""
    whole = np.full([n + 3 for n in x.shape], 7, x.dtype)
    whole[(slice(1, -2),) * x.ndim] = x
    return whole


def _unaligned(x: np.ndarray) -> np.ndarray:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    out = np.ndarray(x.shape, x.dtype, memory, 1)
    out[...] = x
    return out


def _frozen(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def _odd(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Strides without a meaning along axes of length 1."""
    strides = [17 * 8 if n == 1 else s for n, s in zip(shape, x.strides, strict=True)]
    return as_strided(x, shape, strides)


def _overlapping(x: np.ndarray) -> np.ndarray:
    return np.resize(x, sum(x.shape))


ARRANGED: dict[str, Layout] = {
    "C": Layout(np.copy, lambda b, shape: b, ndim=0),
    "transposed": Layout(lambda x: x.T.copy(), lambda b, shape: b.T, ndim=2),
    "swapped": Layout(
        lambda x: x.swapaxes(-1, -2).copy(), lambda b, shape: np.swapaxes(b, -1, -2), ndim=3
    ),
    "rolled": Layout(
        lambda x: np.moveaxis(x, 0, -1).copy(), lambda b, shape: np.moveaxis(b, -1, 0), ndim=2
    ),
    "stepped": Layout(lambda x: np.repeat(x, 2, -1), lambda b, shape: b[..., ::2]),
    "far": Layout(lambda x: np.repeat(x, 3, 0), lambda b, shape: b[::3], ndim=2),
    "reversed": Layout(
        lambda x: np.flip(x).copy(), lambda b, shape: b[(slice(None, None, -1),) * len(shape)]
    ),
    "inside": Layout(_inside, lambda b, shape: b[(slice(1, -2),) * len(shape)]),
    "transposed inside": Layout(
        lambda x: _inside(x.T), lambda b, shape: b.T[(slice(1, -2),) * len(shape)], ndim=2
    ),
    "broadcast": Layout(
        lambda x: x[:1].copy(), lambda b, shape: np.broadcast_to(b, shape), written=False
    ),
    "broadcast last": Layout(
        lambda x: x[..., :1].copy(), lambda b, shape: np.broadcast_to(b, shape), written=False
    ),
    "frozen": Layout(_frozen, lambda b, shape: b, ndim=0, traceable=False, written=False),
    "odd": Layout(np.copy, _odd, traceable=False),
    "unaligned": Layout(_unaligned, lambda b, shape: b, ndim=0, traceable=False),
    "overlapping": Layout(
        _overlapping,
        lambda b, shape: as_strided(b, shape, (b.itemsize,) * len(shape)),
        ndim=2,
        traceable=False,
        written=False,
    ),
}
"""Layouts by name; the library's own samples have some, too."""
assert set(LAYOUTS) <= set(ARRANGED)

KINDS = ("ndarray", "leaf", "view", "result")
"""What an operand may be: a user's array, a leaf over one, a view of a leaf or of a result."""


def layouts_for(x: np.ndarray) -> list[str]:
    """The layouts that an operand may have."""
    return [name for name, lay in ARRANGED.items() if x.ndim >= lay.ndim and x.size] or ["C"]


@dataclass
class Given:
    """An operand as an operation gets it, and the contiguous array with the same elements."""

    operand: Any
    plain: np.ndarray
    overwrite: Callable[[], None] = lambda: None


def give(x: np.ndarray, layout: str, kind: str, differentiable: bool) -> Given | None:
    """An operand of a kind and layout; None where there is no such thing."""
    lay = ARRANGED[layout]
    base = lay.store(x)
    if kind in ("ndarray", "leaf"):
        array = lay.look(base, x.shape)
        plain = np.array(array, order="C")
        if kind == "leaf":
            return Given(ng.asarray(array).requires_grad_(differentiable), plain)
        copied = lay.written and array.nbytes <= COPY_BYTES and differentiable
        return Given(array, plain, lambda: array.fill(np.nan) if copied else None)
    if not lay.traceable or not differentiable:
        return None
    start = ng.tensor(base, requires_grad=True)
    if kind == "result":
        start = start * 1
    view = lay.look(start, x.shape)
    return Given(view, view.numpy(force=True).copy())


def run(function: Callable[..., Any], given: Sequence[Given], seeds: str = "C") -> list[Any]:
    """Results, then the gradient of each operand (None where it has none)."""
    operands = [g.operand for g in given]
    found = function(*operands)
    outputs = [found] if isinstance(found, ng.Tensor) else list(found)
    values = [y.numpy(force=True).copy() for y in outputs]
    for g in given:
        g.overwrite()
    wanted = [x for x in operands if isinstance(x, ng.Tensor) and x.requires_grad]
    differentiable = [y for y in outputs if y.requires_grad]
    cotangents = [cotangent(y, k, seeds) for k, y in enumerate(outputs) if y.requires_grad]
    gradients: dict[int, Any] = {}
    if wanted and differentiable:
        seeds_of = [c.operand for c in cotangents]
        all_of_them = ng.autograd.grad(differentiable, wanted, seeds_of, materialize_grads=True)
        for x, g in zip(wanted, all_of_them, strict=True):
            gradients[id(x)] = g.numpy()
    return [*values, *[gradients.get(id(x)) for x in operands]]


def cotangent(y: Any, number: int, layout: str) -> Given:
    """A gradient for a result."""
    k = np.arange(y.size, dtype=float).reshape(y.shape)
    values = np.cos(1 + number + k) + (1j * np.sin(k) if y.dtype.kind == "c" else 0)
    values = np.asarray(values, y.dtype)
    found = give(values, layout if layout in layouts_for(values) else "C", "ndarray", False)
    assert found is not None
    return found


def recorded(
    function: Callable[..., Any], plain: Sequence[np.ndarray], smooth: Sequence[bool], seeds: str
) -> list[Any]:
    """What ``run`` gives, from contiguous leaves and with gradients by formulas alone."""
    leaves = [ng.tensor(x, requires_grad=d) for x, d in zip(plain, smooth, strict=True)]
    found = function(*leaves)
    outputs = [found] if isinstance(found, ng.Tensor) else list(found)
    wanted = [x for x in leaves if x.requires_grad]
    differentiable = [y for y in outputs if y.requires_grad]
    gradients: dict[int, Any] = {}
    if wanted and differentiable:
        values = [cotangent(y, k, seeds).plain for k, y in enumerate(outputs) if y.requires_grad]
        found = ng.autograd.grad(
            differentiable, wanted, values, create_graph=True, materialize_grads=True
        )
        for x, g in zip(wanted, found, strict=True):
            gradients[id(x)] = g.numpy(force=True)
    return [*[y.numpy(force=True) for y in outputs], *[gradients.get(id(x)) for x in leaves]]


Arrangement = tuple[tuple[tuple[str, str], ...], str]
"""Layout and kind of each operand, and the layout of the cotangents."""


def arrangements(case: Case, layouts: Sequence[str] = tuple(ARRANGED)) -> Iterator[Arrangement]:
    """Every operand in turn in every layout and kind, the others contiguous leaves; then pairs."""
    count = len(case.operands)
    plain = (("C", "leaf"),) * count
    names = [[n for n in layouts_for(x) if n in layouts] or ["C"] for x in case.operands]
    for k, found in enumerate(names):
        for layout in found:
            for kind in KINDS:
                yield (*plain[:k], (layout, kind), *plain[k + 1 :]), "C"
    for layout in layouts:
        yield plain, layout
    if count > 1:
        for shift in range(max(map(len, names))):
            chosen = tuple(
                (n[(k * 5 + shift) % len(n)], KINDS[(k + shift) % 2]) for k, n in enumerate(names)
            )
            yield chosen, ("C", "transposed", "reversed")[shift % 3]


def check(case: Case, chosen: Arrangement, known: dict[Any, Any]) -> None:
    """Compare an arrangement with the contiguous leaves that have the same elements."""
    operands, seeds = chosen
    given = [
        give(x, layout, kind, d)
        for x, (layout, kind), d in zip(case.operands, operands, case.differentiable, strict=True)
    ]
    if any(g is None for g in given):
        return
    plain = [g.plain for g in given if g is not None]
    key = (seeds, *(x.tobytes() for x in plain))
    try:
        if key not in known:
            known[key] = recorded(case.function, plain, case.differentiable, seeds)
        actual = run(case.function, [g for g in given if g is not None], seeds)
    except Exception as error:
        error.add_note(f"{chosen} of {[x.shape for x in plain]}")
        raise
    for number, (found, expected) in enumerate(zip(actual, known[key], strict=True)):
        if found is not None:
            assert found.dtype == expected.dtype, (chosen, number)
            np.testing.assert_allclose(
                found, expected, rtol=1e-10, atol=1e-12, err_msg=f"{chosen}, {number}"
            )
