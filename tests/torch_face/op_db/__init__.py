"""PyTorch's own database of operations, run with PyTorch and with the face.

Note [Checks of the database]
-----------------------------
Samples come from the database itself (``torch.testing._internal``), one after the other, of the
dtype that is asked for or what comes nearest to it. A sample that PyTorch refuses is left out; a
derivative, form or batch that PyTorch lacks is not compared. ``value`` compares structure, dtypes,
shapes and numbers; ``strides`` how results lie in memory, and whether it is that of an argument;
``first``, ``second`` and ``forward`` derivatives; ``out`` and ``inplace`` what is written; ``vmap``
batches of the first operand, along the first and along the last axis, and of all operands;
``dtypes`` values in every other dtype; ``error`` whether what PyTorch refuses is refused, with an
error of the same class.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from itertools import islice
from typing import Any

from tests.torch_face.op_db.cases import Case, NotCompared, database as database, name_of as name_of
from tests.torch_face.op_db.checks import CHECKS, errors
from tests.torch_face.op_db.comparing import Differs
from tests.torch_face.op_db.translation import call_of, translated

ALL = (*CHECKS, "dtypes", "error")
"""Names of all checks."""
_ABSENT = {"float16", "bfloat16", "complex32"}
"""Dtypes that the face refuses."""


def _cases(op: Any, call: Any, dtype: Any, count: int, derivatives: bool) -> Iterable[Any]:
    """Samples as cases; an exception where the face has no result, None where PyTorch has none."""
    import torch

    torch.manual_seed(0)
    differentiable = bool(
        derivatives
        and op.supports_autograd
        and (dtype.is_floating_point or dtype.is_complex)
        and dtype in op.supported_backward_dtypes("cpu")
    )
    for sample in islice(op.sample_inputs("cpu", dtype, requires_grad=differentiable), count):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        process = sample.output_process_fn_grad
        try:
            our_args, our_kwargs = translated(args), translated(kwargs)
            our_process = translated(process) if differentiable else process
        except (NotImplementedError, TypeError) as error:  # dtypes and layouts
            yield error
            continue
        try:
            theirs = op.op(*args, **kwargs)
        except Exception:
            yield None
            continue
        try:
            ours = call(*our_args, **our_kwargs)
        except Exception as error:
            yield error
            continue
        yield Case(
            op, call, args, kwargs, our_args, our_kwargs, theirs, ours, process, our_process,
            differentiable,
        )  # fmt: skip


def run(op: Any, dtype: Any, count: int, checks: Iterable[str]) -> dict[str, str]:
    """The first difference by check; nothing where all is equal."""
    found: dict[str, str] = {}
    chosen = {check: CHECKS[check] for check in CHECKS if check in checks}
    try:
        call = call_of(op)
    except (AttributeError, NotImplementedError, RecursionError) as error:
        return {"value": f"missing: {str(error).partition(':')[0]:.90}"}
    derivatives = any(check in chosen for check in ("first", "second", "forward"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k, case in enumerate(_cases(op, call, dtype, count, derivatives)):
            if isinstance(case, Exception):
                _note(found, "value", k, case)
            if not isinstance(case, Case):
                continue
            for check, function in chosen.items():
                try:
                    function(case)
                except NotCompared:
                    continue
                except Exception as error:
                    _note(found, check, k, error)
                    if check == "value":
                        break
        if "dtypes" in checks:
            _run_dtypes(found, op, call, dtype)
        if "error" in checks and op.error_inputs_func is not None:
            for text in errors(op, 40):
                found.setdefault("error", text)
    return found


def _run_dtypes(found: dict[str, str], op: Any, call: Any, dtype: Any) -> None:
    """Compare values in the other dtypes, of four samples each."""
    for other in sorted(op.supported_dtypes("cpu"), key=str):
        name = str(other).partition(".")[2]
        if other is dtype or name in _ABSENT or "float8" in name:
            continue
        for k, case in enumerate(_cases(op, call, other, 4, False)):
            try:
                if isinstance(case, Exception):
                    raise case
                if isinstance(case, Case):
                    CHECKS["value"](case)
            except Exception as error:
                _note(found, "dtypes", k, error, f"{name} ")


def _note(found: dict[str, str], check: str, k: int, error: Exception, prefix: str = "") -> None:
    text = str(error) if isinstance(error, Differs) else f"{type(error).__name__}: {error}"
    found.setdefault(check, f"{prefix}sample {k}: {text.splitlines()[0] if text else text:.140}")


def dtype_for(op: Any, name: str = "float64") -> Any:
    """A dtype that an operation takes: the one asked for, or for float64 what comes nearest."""
    import torch

    supported = op.supported_dtypes("cpu")
    nearest = ("float32", "complex128", "complex64", "int64", "int32", "uint8", "bool")
    for each in (name, *(nearest if name == "float64" else ())):
        if getattr(torch, each) in supported:
            return getattr(torch, each)
    return None
