"""Checks of derivatives: first, second, and those of forward mode."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

import numgrad as ng
import numgrad.torch as face
from numgrad.torch.wrapping import unwrap, wrap
from tests.torch_face.op_db.cases import Case, NotCompared
from tests.torch_face.op_db.comparing import Differs, agree, as_array, leaves
from tests.torch_face.op_db.translation import of_face


def outputs(result: Any) -> list[Any]:
    """Results that require grad."""
    return [
        y for y in leaves(result)
        if hasattr(y, "requires_grad") and y.requires_grad and str(y.dtype).split(".")[1][0] in "fc"
    ]  # fmt: skip


def inputs(args: Any) -> list[Any]:
    """Arguments that require grad."""
    return [x for x in leaves(args) if hasattr(x, "requires_grad") and x.requires_grad]


def weights(tensors: list[Any]) -> list[np.ndarray]:
    """Cotangents or tangents of Tensors, the same for both libraries."""
    rng = np.random.default_rng(0)
    made = []
    for y in tensors:
        shape = tuple(y.shape)
        w = rng.uniform(0.5, 1.5, shape)
        if "complex" in str(y.dtype):
            w = w + 1j * rng.uniform(0.5, 1.5, shape)
        made.append(w.astype(as_array(y).dtype))
    return made


def torch_grad(outs: list[Any], ins: list[Any], create: bool) -> list[Any]:
    """Gradients by PyTorch."""
    import torch

    given = [torch.from_numpy(w) for w in weights(outs)]
    return list(torch.autograd.grad(outs, ins, given, create_graph=create, allow_unused=True))


def face_grad(
    outs: list[Any], given: list[np.ndarray], ins: list[Any], create: bool = False
) -> list[Any]:
    """Gradients by the face."""
    found = ng.autograd.grad(
        unwrap(outs), unwrap(ins), [ng.from_numpy(w) for w in given], create_graph=create,
        allow_unused=True,
    )  # fmt: skip
    return list(wrap(found))


def agree_but_for_none(theirs: list[Any], ours: list[Any], what: str) -> None:
    """Raise where derivatives differ; one that is None is one of zeros."""
    pairs = []
    for a, b in zip(theirs, ours, strict=True):
        other = b if a is None else a if b is None else None
        pairs.append((a, b) if other is None or as_array(other).any() else (None, None))
    agree([a for a, _ in pairs], [b for _, b in pairs], what)


def check_first(case: Case) -> None:
    """Compare first derivatives, and leave them for the second ones."""
    case.shared["first"] = None
    if not case.differentiable or case.random:
        raise NotCompared
    second = case.op.supports_gradgrad
    try:
        theirs = case.process(case.theirs)
        outs, ins = outputs(theirs), inputs((case.args, list(case.kwargs.values())))
        first = torch_grad(outs, ins, second) if outs and ins else []
    except Exception as error:
        raise NotCompared from error
    if not first:
        raise NotCompared
    our_outs = outputs(case.our_process(case.ours))
    our_ins = inputs((case.our_args, list(case.our_kwargs.values())))
    if len(our_outs) != len(outs):
        raise Differs(f"{len(our_outs)} results require grad, {len(outs)} of PyTorch's")
    our_first = face_grad(our_outs, weights(our_outs), our_ins, second)
    agree_but_for_none(first, our_first, "first")
    case.shared["first"] = first, our_first, ins, our_ins


def check_second(case: Case) -> None:
    """Compare second derivatives."""
    if not case.op.supports_gradgrad or not case.differentiable or case.random:
        raise NotCompared
    if "first" not in case.shared:
        check_first(case)
    if case.shared["first"] is None:
        raise NotCompared
    first, our_first, ins, our_ins = case.shared["first"]
    try:
        outs = outputs([g for g in first if g is not None])
        expected = torch_grad(outs, ins, False) if outs else []
    except Exception as error:
        raise NotCompared from error
    if not expected:
        raise NotCompared
    mine = [g for h, g in zip(first, our_first, strict=True) if outputs([h])]
    chosen = [
        (g, w)
        for g, w in zip(mine, weights(outs), strict=True)
        if g is not None and g.requires_grad
    ]
    got: list[Any] = [None] * len(expected)
    if chosen:
        got = face_grad([g for g, _ in chosen], [w for _, w in chosen], our_ins)
    agree_but_for_none(expected, got, "second")


def _dual(value: Any, library: Any, forward_ad: Any) -> Any:
    """Arguments whose leaves that require grad have tangents."""
    if isinstance(value, library.Tensor):
        if not value.requires_grad:
            return value
        (tangent,) = weights([value])
        return forward_ad.make_dual(value.detach(), library.from_numpy(tangent))
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)([_dual(each, library, forward_ad) for each in value])
    if isinstance(value, dict):
        return {key: _dual(each, library, forward_ad) for key, each in value.items()}
    return value


def _tangents(
    library: Any, wrapper: Any, call: Any, process: Any, args: Any, kwargs: Any
) -> list[Any]:
    """Tangents of results; ``wrapper`` makes operands what they must be, such as hermitian."""
    forward_ad = import_module(f"{library.__name__}.autograd.forward_ad")
    with forward_ad.dual_level():
        duals = _dual([args, kwargs], library, forward_ad)
        result = wrapper(call, *duals[0], **duals[1])
        found = [y for y in leaves(process(result)) if isinstance(y, library.Tensor)]
        return [forward_ad.unpack_dual(y).tangent for y in found]


def _called(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def check_forward(case: Case) -> None:
    """Compare tangents of forward mode."""
    import torch

    if not case.op.supports_forward_ad or not case.differentiable or case.random:
        raise NotCompared
    wrapper = case.op.gradcheck_wrapper
    if "masked" in getattr(wrapper, "__name__", ""):  # which sets numbers that do not count
        wrapper = _called
    try:
        expected = _tangents(torch, wrapper, case.op.op, case.process, case.args, case.kwargs)
    except Exception as error:
        raise NotCompared from error
    ours = wrapper if wrapper is _called else of_face(wrapper)
    got = _tangents(face, ours, case.call, case.our_process, case.our_args, case.our_kwargs)
    agree_but_for_none(expected, got, "forward")
