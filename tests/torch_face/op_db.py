"""PyTorch's own database of operations, run with PyTorch and with the face.

``python -m tests.torch_face.op_db [NAME ...] [--samples N] [--dtypes float64,int64]`` prints, for
each name, in what the two differ first: values (with dtypes and shapes), first and second
derivatives, ``out=``, the form in place, forward mode; then how many names agree in each.
"""

from __future__ import annotations

import argparse
import sys
import time
import types
import unittest
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np

import numgrad as ng
import numgrad.torch as face
from numgrad.torch.wrapping import Tensor, unwrap, wrap

RANDOM = {
    "cauchy", "exponential", "geometric", "log_normal", "normal", "uniform", "bernoulli",
    "multinomial", "rand_like", "randn", "randn_like", "randint", "randint_like", "empty",
    "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout", "nn.functional.rrelu",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
    "resize_", "resize_as_",
}  # fmt: skip
"""Names whose numbers are random, or not set: shapes and dtypes are compared."""
UP_TO_FACTORS = {"linalg.eig", "linalg.eigh", "svd_lowrank", "pca_lowrank"}
"""Names of results that are determined but for factors of modulus 1: moduli are compared."""
CHECKS = ("value", "first", "second", "out", "inplace", "forward")


class Differs(AssertionError):
    """The face gives something else."""


def database() -> list[Any]:
    """The operations; what their module imports only for its own tests is stood in for."""
    if "expecttest" not in sys.modules:
        try:
            import expecttest  # noqa: F401
        except ImportError:
            stand_in = types.ModuleType("expecttest")
            stand_in.TestCase = unittest.TestCase
            sys.modules["expecttest"] = stand_in
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return list(op_db)


def name_of(op: Any) -> str:
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


# --------------------------------------------------------------------------- from one to the other


def translated(value: Any) -> Any:
    """A value of PyTorch's as one of the face's: Tensors with copies of their memory."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise NotImplementedError(f"layout {value.layout}")
        with torch.no_grad():
            array = value.detach().resolve_conj().resolve_neg().numpy()
        array = array.copy() if array.flags.c_contiguous else _copy_as_it_lies(array)
        x = face.from_numpy(array)
        return x.requires_grad_() if value.requires_grad else x
    if isinstance(value, torch.dtype):
        return getattr(face, str(value).partition(".")[2])
    if isinstance(value, torch.device):
        return face.device("cpu")
    if isinstance(value, torch.layout | torch.memory_format):
        return getattr(face, str(value).partition(".")[2])
    if isinstance(value, torch.Size):
        return face.Size(value)
    if isinstance(value, torch.Generator):
        return face.Generator()
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)([translated(each) for each in value])
    if isinstance(value, dict):
        return {key: translated(each) for key, each in value.items()}
    if callable(value) and getattr(value, "__module__", "").startswith("torch"):
        return of_face(value)
    return value


def _copy_as_it_lies(array: np.ndarray) -> np.ndarray:
    if any(
        step < 0 or (step == 0 and n > 1)
        for step, n in zip(array.strides, array.shape, strict=True)
    ):
        return array.copy()
    if not array.size:
        return array.copy()
    order = np.argsort([-step for step in array.strides], kind="stable")
    return array.transpose(order).copy().transpose(np.argsort(order))


def resolve(path: str) -> Any:
    """What the face has under a dotted name."""
    found: Any = face
    for part in path.split("."):
        found = getattr(found, part)
    return found


def of_face(function: Any) -> Callable[..., Any]:
    """A function of the test library's or of PyTorch's, with the face in PyTorch's place."""
    if isinstance(function, partial):
        return partial(of_face(function.func), *function.args, **function.keywords)
    if isinstance(function, types.FunctionType):
        scope = dict(function.__globals__)
        if "torch" in scope:
            scope.update(torch=face)
            if "F" in scope:
                scope["F"] = face.nn.functional
            cells = function.__closure__
            if cells:
                cells = tuple(types.CellType(_inner(cell.cell_contents)) for cell in cells)
            twin = types.FunctionType(
                function.__code__, scope, function.__name__, function.__defaults__, cells
            )
            twin.__kwdefaults__ = function.__kwdefaults__
            return twin
    if not hasattr(function, "__name__"):
        raise NotImplementedError(f"{type(function).__name__} as an argument")
    name = function.__name__
    home = getattr(function, "__module__", "") or ""
    if home.startswith("torch._C."):
        part = {"_nn": "nn.functional", "_linalg": "linalg", "_fft": "fft", "_special": "special"}
        group = part.get(home.rpartition(".")[2], "")
        for prefix in ("fft_", "linalg_", "special_"):
            name = name.removeprefix(prefix)
        return resolve(f"{group}.{name}" if group else name)
    owner = getattr(function, "__objclass__", None)
    if owner is not None or "Tensor" in getattr(function, "__qualname__", ""):
        return getattr(Tensor, name)
    return resolve(name)


def _inner(value: Any) -> Any:
    if callable(value) and not isinstance(value, type):
        try:
            return of_face(value)
        except (AttributeError, NotImplementedError):
            return value
    return value


def call_of(op: Any) -> Callable[..., Any]:
    """The operation as the face has it."""
    if (isinstance(op.op, types.FunctionType) and "common_methods" in op.op.__module__) or (
        getattr(op.op, "__name__", "") == "<lambda>"
    ):
        return of_face(op.op)
    try:
        found = resolve(op.name)
        return found if callable(found) else getattr(Tensor, op.name)
    except AttributeError:
        if hasattr(Tensor, op.name):
            return getattr(Tensor, op.name)
        try:
            return of_face(op.op)
        except AttributeError:
            pass
        raise


# ------------------------------------------------------------------------------------- comparing


def leaves(value: Any) -> Iterator[Any]:
    """Tensors and numbers of a result, in order."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from leaves(each)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from leaves(value[key])
    else:
        yield value


def as_array(x: Any) -> np.ndarray:
    if isinstance(x, Tensor):
        return x._tensor.numpy(force=True)
    return x.detach().resolve_conj().resolve_neg().numpy(force=True)


def agree(theirs: Any, ours: Any, what: str, values: bool = True) -> None:
    """Raise where a result differs in structure, dtype, shape or values."""
    import torch

    expected, got = list(leaves(theirs)), list(leaves(ours))
    if len(expected) != len(got):
        raise Differs(f"{what}: {len(got)} results, {len(expected)} of PyTorch's")
    if getattr(theirs, "_fields", None) is not None or hasattr(theirs, "n_fields"):
        fields = [
            n
            for n in dir(theirs)
            if n[0] != "_"
            and n not in ("count", "index", "n_fields", "n_sequence_fields", "n_unnamed_fields")
        ]
        for field in fields:
            if not hasattr(ours, field):
                raise Differs(f"{what}: no field {field}")
    for a, b in zip(expected, got, strict=True):
        if not isinstance(a, torch.Tensor):
            same = (
                str(a) == str(b) if not isinstance(a, float) else np.allclose(a, b, equal_nan=True)
            )
            if not same and isinstance(b, Tensor):
                raise Differs(f"{what}: a Tensor for {type(a).__name__}")
            if not same:
                raise Differs(f"{what}: {b!r:.60} for {a!r:.60}")
            continue
        if not isinstance(b, Tensor):
            raise Differs(f"{what}: {type(b).__name__} for a Tensor")
        if str(a.dtype) != str(b.dtype):
            raise Differs(f"{what}: dtype {b.dtype} for {a.dtype}")
        if tuple(a.shape) != tuple(b.shape):
            raise Differs(f"{what}: shape {tuple(b.shape)} for {tuple(a.shape)}")
        if values and a.numel():
            close(as_array(a), as_array(b), what)


def close(a: np.ndarray, b: np.ndarray, what: str) -> None:
    if a.dtype.kind in "fc":
        precise = a.dtype.itemsize == (8 if a.dtype.kind == "f" else 16)
        rtol, atol = (1e-7, 1e-7) if precise else (2e-5, 1e-5)
        equal = np.isclose(a, b, rtol, atol, equal_nan=True)
    else:
        equal = a == b
    if not equal.all():
        at = np.unravel_index(np.argmin(equal), equal.shape) if equal.ndim else ()
        raise Differs(f"{what}: {b[at]!r:.30} for {a[at]!r:.30}")


# ---------------------------------------------------------------------------------------- checks


class Samples:
    """Samples of an operation in one dtype."""

    def __init__(self, op: Any, dtype: Any, count: int, requires_grad: bool) -> None:
        import torch

        torch.manual_seed(0)
        self.samples = list(
            islice(op.sample_inputs("cpu", dtype, requires_grad=requires_grad), count)
        )


def outputs(result: Any) -> list[Any]:
    return [
        y for y in leaves(result)
        if hasattr(y, "requires_grad") and y.requires_grad and str(y.dtype).split(".")[1][0] in "fc"
    ]  # fmt: skip


def inputs(args: Any) -> list[Any]:
    return [x for x in leaves(args) if hasattr(x, "requires_grad") and x.requires_grad]


def weights(tensors: list[Any]) -> list[np.ndarray]:
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
    import torch

    given = [torch.from_numpy(w) for w in weights(outs)]
    return list(torch.autograd.grad(outs, ins, given, create_graph=create, allow_unused=True))


def face_grad(
    outs: list[Any], given: list[np.ndarray], ins: list[Any], create: bool = False
) -> list[Any]:
    found = ng.autograd.grad(
        unwrap(outs), unwrap(ins), [ng.from_numpy(w) for w in given], create_graph=create,
        allow_unused=True,
    )  # fmt: skip
    return list(wrap(found))


def _zero(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    """A gradient that is None is one of zeros."""
    a, b = pair
    if a is None and b is not None and not as_array(b).any():
        return None, None
    if b is None and a is not None and not as_array(a).any():
        return None, None
    return a, b


def run(op: Any, dtype: Any, count: int, checks: tuple[str, ...]) -> dict[str, str]:
    """The first difference by kind of check; nothing where all is equal."""
    import torch

    found: dict[str, str] = {}
    differentiable = bool(op.supports_autograd and (dtype.is_floating_point or dtype.is_complex))
    differentiable = differentiable and dtype in op.supported_backward_dtypes("cpu")
    differentiable = differentiable and any(
        check in checks for check in ("first", "second", "forward")
    )
    try:
        call = call_of(op)
    except (AttributeError, NotImplementedError, RecursionError) as error:
        return {check: f"missing: {str(error).partition(':')[0]:.90}" for check in checks}
    process = None
    for k, sample in enumerate(Samples(op, dtype, count, differentiable).samples):
        where = f"sample {k}"
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        try:
            ours_args, ours_kwargs = translated(args), translated(kwargs)
            process = translated(sample.output_process_fn_grad) if differentiable else None
        except NotImplementedError as error:
            found.setdefault("value", f"{where}: {error}")
            continue
        try:
            theirs = op.op(*args, **kwargs)
        except Exception:
            continue
        try:
            ours = call(*ours_args, **ours_kwargs)
            agree(*_comparable(op, theirs, ours), "value", op.name not in RANDOM)
        except Exception as error:
            _note(found, "value", where, error)
            continue
        if differentiable and op.name not in RANDOM:
            _derivatives(found, where, op, sample, process, theirs, ours, args, kwargs,
                         ours_args, ours_kwargs, checks)  # fmt: skip
            if "forward" in checks and op.supports_forward_ad:
                _forward(found, where, op, call, args, kwargs, ours_args, ours_kwargs)
        with torch.no_grad():
            _writes(found, where, op, call, args, kwargs, ours_args, ours_kwargs, theirs, checks)
    return found


def _comparable(op: Any, theirs: Any, ours: Any) -> tuple[Any, Any]:
    if op.name not in UP_TO_FACTORS:
        return theirs, ours
    return [abs(x) for x in theirs], [abs(x) for x in ours]


def _note(found: dict[str, str], check: str, where: str, error: Exception) -> None:
    text = str(error) if isinstance(error, Differs) else f"{type(error).__name__}: {error}"
    found.setdefault(check, f"{where}: {text.splitlines()[0] if text else text:.140}")


def _derivatives(
    found: dict[str, str], where: str, op: Any, sample: Any, process: Any, theirs: Any, ours: Any,
    args: Any, kwargs: Any, ours_args: Any, ours_kwargs: Any, checks: tuple[str, ...],
) -> None:  # fmt: skip
    try:
        theirs = sample.output_process_fn_grad(theirs)
        outs, ins = outputs(theirs), inputs((args, list(kwargs.values())))
        if not outs or not ins:
            return
        second = "second" in checks and op.supports_gradgrad
        first = torch_grad(outs, ins, second)
    except Exception:
        return  # PyTorch has none
    try:
        mine = process(ours) if process is not None else ours
        our_outs, our_ins = outputs(mine), inputs((ours_args, list(ours_kwargs.values())))
        if len(our_outs) != len(outs):
            raise Differs(f"{len(our_outs)} results require grad, {len(outs)} of PyTorch's")
        our_first = face_grad(our_outs, weights(our_outs), our_ins, second)
        pairs = [_zero(pair) for pair in zip(first, our_first, strict=True)]
        agree([a for a, _ in pairs], [b for _, b in pairs], "first")
    except Exception as error:
        _note(found, "first", where, error)
        if second:
            _note(found, "second", where, error)
        return
    if not second:
        return
    try:
        outs = outputs([g for g in first if g is not None])
        if not outs:
            return
        expected = torch_grad(outs, ins, False)
    except Exception:
        return
    try:
        given = weights(outs)
        mine = [g for h, g in zip(first, our_first, strict=True) if outputs([h])]
        chosen = [
            (g, w) for g, w in zip(mine, given, strict=True) if g is not None and g.requires_grad
        ]
        got = (
            face_grad(*map(list, zip(*chosen, strict=True)), our_ins)
            if chosen
            else [None] * len(expected)
        )
        pairs = [_zero(pair) for pair in zip(expected, got, strict=True)]
        agree([a for a, _ in pairs], [b for _, b in pairs], "second")
    except Exception as error:
        _note(found, "second", where, error)


def _dual(value: Any, library: Any, forward_ad: Any) -> Any:
    """Arguments whose leaves that require grad have tangents."""
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)([_dual(each, library, forward_ad) for each in value])
    if isinstance(value, dict):
        return {key: _dual(each, library, forward_ad) for key, each in value.items()}
    if not isinstance(value, library.Tensor) or not value.requires_grad:
        return value
    (tangent,) = weights([value])
    return forward_ad.make_dual(value.detach(), library.from_numpy(tangent))


def _tangents(library: Any, call: Any, args: Any, kwargs: Any) -> list[Any]:
    forward_ad = import_module(f"{library.__name__}.autograd.forward_ad")
    with forward_ad.dual_level():
        result = call(*_dual(args, library, forward_ad), **_dual(kwargs, library, forward_ad))
        found = [y for y in leaves(result) if isinstance(y, library.Tensor)]
        return [forward_ad.unpack_dual(y).tangent for y in found]


def _forward(
    found: dict[str, str], where: str, op: Any, call: Any, args: Any, kwargs: Any, ours_args: Any,
    ours_kwargs: Any,
) -> None:  # fmt: skip
    import torch

    try:
        expected = _tangents(torch, op.op, args, kwargs)
    except Exception:
        return
    try:
        got = _tangents(face, call, ours_args, ours_kwargs)
        pairs = [_zero(pair) for pair in zip(expected, got, strict=True)]
        agree([a for a, _ in pairs], [b for _, b in pairs], "forward")
    except Exception as error:
        _note(found, "forward", where, error)


def _writes(
    found: dict[str, str], where: str, op: Any, call: Any, args: Any, kwargs: Any, ours_args: Any,
    ours_kwargs: Any, theirs: Any, checks: tuple[str, ...],
) -> None:  # fmt: skip
    """``out=`` and the form in place."""
    import torch

    if op.name in RANDOM:
        return
    if "out" in checks and op.supports_out and isinstance(theirs, torch.Tensor):
        try:
            out = torch.zeros_like(theirs)
            op.op(*args, **kwargs, out=out)
        except Exception:
            out = None
        if out is not None:
            try:
                ours_out = translated(torch.zeros_like(theirs.detach()))
                with face.no_grad():
                    returned = call(*ours_args, **ours_kwargs, out=ours_out)
                if returned is not ours_out:
                    raise Differs("out: another Tensor is returned")
                agree(out, ours_out, "out")
            except Exception as error:
                _note(found, "out", where, error)
    if "inplace" in checks and op.inplace_variant is not None:
        name = getattr(op.inplace_variant, "__name__", "<lambda>")
        try:
            target = args[0].detach().clone()
            op.inplace_variant(target, *args[1:], **kwargs)
        except Exception:
            return
        try:
            ours_target = translated(args[0].detach().clone())
            inplace = of_face(op.inplace_variant) if name == "<lambda>" else getattr(Tensor, name)
            inplace(ours_target, *ours_args[1:], **ours_kwargs)
            agree(target, ours_target, "inplace")
        except Exception as error:
            _note(found, "inplace", where, error)


# ------------------------------------------------------------------------------------------ report


def dtype_for(op: Any, name: str) -> Any:
    """A dtype that an operation takes: the one asked for, or for float64 what comes nearest."""
    import torch

    supported = op.supported_dtypes("cpu")
    wanted = getattr(torch, name)
    if wanted in supported:
        return wanted
    if name != "float64":
        return None
    for other in ("float32", "complex128", "complex64", "int64", "int32", "uint8", "bool"):
        if getattr(torch, other) in supported:
            return getattr(torch, other)
    return None


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--dtypes", default="float64")
    parser.add_argument("--without", default="", help="leave out names that begin so")
    parser.add_argument("--checks", default="value,first,second")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    checks = tuple(options.checks.split(","))
    good: Counter[str] = Counter()
    total = 0
    for op in database():
        name = name_of(op)
        if options.without and name.startswith(options.without):
            continue
        if options.names and not any(name == n or op.name == n for n in options.names):
            continue
        began, found = time.perf_counter(), {}
        for wanted in options.dtypes.split(","):
            dtype = dtype_for(op, wanted)
            if dtype is not None:
                for check, text in run(op, dtype, options.samples, checks).items():
                    found.setdefault(check, f"[{wanted}] {text}")
        total += 1
        for check in checks:
            good[check] += check not in found and "value" not in found
        shown = {text: check for check, text in reversed(found.items())}
        for text, check in reversed(shown.items()):
            print(f"{name:45} {check:7} {text}  ({time.perf_counter() - began:.1f} s)", flush=True)
    print({check: good[check] for check in checks}, "of", total)


if __name__ == "__main__":
    main()
