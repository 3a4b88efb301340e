"""Checks of results: values, strides, ``out=``, forms in place, batches, errors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

import numgrad.torch as face
from numgrad.torch.wrapping import Tensor
from tests.torch_face.op_db.cases import UP_TO_FACTORS, Case, NotCompared
from tests.torch_face.op_db.comparing import Differs, agree, leaves
from tests.torch_face.op_db.derivatives import check_first, check_forward, check_second
from tests.torch_face.op_db.translation import call_of, of_face, translated


def check_value(case: Case) -> None:
    """Compare structure, dtypes, shapes and numbers."""
    agree(*_determined(case, case.theirs, case.ours), "value", not case.random)


def _determined(case: Case, theirs: Any, ours: Any) -> tuple[Any, Any]:
    """What is determined of results."""
    if case.op.name not in UP_TO_FACTORS:
        return theirs, ours
    return [abs(x) for x in theirs], [abs(x) for x in ours]


# ------------------------------------------------------------------------------------- memory


def _overlaps(x: Any) -> bool:
    return any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape, strict=True))


def _memory(x: Any) -> int:
    return x.untyped_storage().data_ptr()


def check_strides(case: Case) -> None:
    """Compare strides of results, and whether they share memory with an argument."""
    import torch

    theirs = [y for y in leaves(case.theirs) if isinstance(y, torch.Tensor)]
    ours = [y for y in leaves(case.ours) if isinstance(y, Tensor)]
    given = [x for x in leaves((case.args, case.kwargs)) if isinstance(x, torch.Tensor)]
    our_given = [x for x in leaves((case.our_args, case.our_kwargs)) if isinstance(x, Tensor)]
    for a, b in zip(theirs, ours, strict=True):
        if a.numel() < 2:
            continue
        for x, y in zip(given, our_given, strict=True):
            shared = x.numel() > 0 and _memory(a) == _memory(x)
            if shared != np.may_share_memory(_array(b), _array(y)):
                raise Differs(f"strides: {'a copy' if shared else 'a view'} for {_words(shared)}")
        if not _overlaps(a):
            expected, got = (
                [s for s, n in zip(z.stride(), z.shape, strict=True) if n > 1] for z in (a, b)
            )
            if expected != got:
                raise Differs(f"strides: {b.stride()} for {a.stride()}, shape {tuple(a.shape)}")


def _array(x: Tensor) -> Any:
    return x._tensor._array


def _words(shared: bool) -> str:
    return "a view" if shared else "a copy"


def check_out(case: Case) -> None:
    """Compare what is written to ``out=``."""
    import torch

    several = isinstance(case.theirs, tuple)
    parts = list(leaves(case.theirs))
    if case.random or not case.op.supports_out:
        raise NotCompared
    if not all(isinstance(y, torch.Tensor) for y in parts):
        raise NotCompared
    made = [torch.zeros_like(y.detach()) for y in parts]
    ours_made = [translated(y) for y in made]
    with torch.no_grad():
        try:
            case.op.op(*case.args, **case.kwargs, out=tuple(made) if several else made[0])
        except Exception as error:
            raise NotCompared from error
        ours_out = tuple(ours_made) if several else ours_made[0]
        with face.no_grad():
            returned = case.call(*case.our_args, **case.our_kwargs, out=ours_out)
    if any(a is not b for a, b in zip(leaves(returned), ours_made, strict=True)):
        raise Differs("out: another Tensor is returned")
    agree(*_determined(case, made, ours_made), "out")


def check_inplace(case: Case) -> None:
    """Compare what the form in place leaves in its object."""
    import torch

    inplace = case.op.inplace_variant
    if case.random or inplace is None:
        raise NotCompared
    name = getattr(inplace, "__name__", "<lambda>")
    with torch.no_grad():
        try:
            target = case.args[0].detach().clone()
            inplace(target, *case.args[1:], **case.kwargs)
        except Exception as error:
            raise NotCompared from error
        ours = translated(case.args[0].detach().clone())
        with face.no_grad():
            ours_inplace = of_face(inplace) if name == "<lambda>" else getattr(Tensor, name)
            ours_inplace(ours, *case.our_args[1:], **case.our_kwargs)
    agree(target, ours, "inplace")


# ------------------------------------------------------------------------------------- batches

_EXAMPLE = object()
"""Stands in arguments for a Tensor of which there are examples."""


def _each(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)([_each(part, function) for part in value])
    return function(value)


def _mapped(library: Any, call: Any, case_args: Any, kwargs: Any, at: int, every: bool) -> Any:
    """The operation over examples along an axis, of its first Tensor or of each one of floats."""
    batches: list[Any] = []

    def example_of(x: Any) -> Any:
        if not isinstance(x, library.Tensor) or (not every and batches):
            return x
        floats = x.is_floating_point() or x.is_complex()
        if every and not floats:
            return x
        x = x.detach()
        other = (x * 0.75).to(x.dtype) if floats else x
        batches.append(library.stack([x, other], at))
        return _EXAMPLE

    rest = _each(case_args, example_of)
    if not batches:
        raise NotCompared

    def example(*examples: Any) -> Any:
        given = iter(examples)
        return call(*_each(rest, lambda x: next(given) if x is _EXAMPLE else x), **kwargs)

    return library.vmap(example, in_dims=at, randomness="same")(*batches)


def check_vmap(case: Case) -> None:
    """Compare what ``vmap`` makes of the operation."""
    import torch

    if case.random:
        raise NotCompared
    compared = False
    for at, every in ((0, False), (-1, False), (0, True)):
        try:
            expected = _mapped(torch, case.op.op, case.args, case.kwargs, at, every)
        except Exception:
            continue
        compared = True
        got = _mapped(face, case.call, case.our_args, case.our_kwargs, at, every)
        what = f"vmap of {'each' if every else 'the first'} at {at}"
        agree(*_determined(case, expected, got), what)
    if not compared:
        raise NotCompared


# ------------------------------------------------------------------------------------- errors


def our_class(kind: type[BaseException]) -> type[BaseException]:
    """The class of the face for one of PyTorch's."""
    if kind.__module__.startswith("torch"):
        return face.linalg.LinAlgError if kind.__name__ == "LinAlgError" else RuntimeError
    return kind


def errors(op: Any, count: int) -> Any:
    """Differences of errors, of each sample that PyTorch refuses."""
    for k, case in enumerate(islice(op.error_inputs("cpu"), count)):
        sample = case.sample_input
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        try:
            our_args, our_kwargs = translated(args), translated(kwargs)
        except Exception:
            continue
        try:
            op.op(*args, **kwargs)
        except Exception as error:
            expected = our_class(type(error))
        else:
            continue
        try:
            call_of(op)(*our_args, **our_kwargs)
        except Exception as error:
            if not isinstance(error, expected):
                yield f"error {k}: {type(error).__name__} for {expected.__name__}: {error}"
        else:
            yield f"error {k}: none for {expected.__name__}: {case.error_regex:.60}"


CHECKS = {
    "value": check_value,
    "strides": check_strides,
    "first": check_first,
    "second": check_second,
    "forward": check_forward,
    "out": check_out,
    "inplace": check_inplace,
    "vmap": check_vmap,
}
"""Checks of a sample by name; ``error`` and ``dtypes`` have samples of their own."""
