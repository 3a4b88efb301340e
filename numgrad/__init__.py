"""NumPy code gets gradients at compiled speed on a CPU."""

import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import Any as _Any

from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import e as e
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import inf as inf
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import nan as nan
from numpy import newaxis as newaxis
from numpy import pi as pi
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64

from numgrad import autograd as autograd
from numgrad import config as config
from numgrad import errors as errors
from numgrad.autograd.modes import enable_grad as enable_grad
from numgrad.autograd.modes import inference_mode as inference_mode
from numgrad.autograd.modes import is_grad_enabled as is_grad_enabled
from numgrad.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from numgrad.autograd.modes import no_grad as no_grad
from numgrad.autograd.modes import set_grad_enabled as set_grad_enabled
from numgrad.autograd.row_sparse import RowSparseTensor as RowSparseTensor
from numgrad.config import get_num_threads as get_num_threads
from numgrad.config import set_num_threads as set_num_threads
from numgrad.errors import GradcheckError as GradcheckError
from numgrad.errors import NumgradAssertionError as NumgradAssertionError
from numgrad.errors import NumgradAttributeError as NumgradAttributeError
from numgrad.errors import NumgradError as NumgradError
from numgrad.errors import NumgradIndexError as NumgradIndexError
from numgrad.errors import NumgradKeyError as NumgradKeyError
from numgrad.errors import NumgradNotImplementedError as NumgradNotImplementedError
from numgrad.errors import NumgradRuntimeError as NumgradRuntimeError
from numgrad.errors import NumgradTraceError as NumgradTraceError
from numgrad.errors import NumgradTypeError as NumgradTypeError
from numgrad.errors import NumgradValueError as NumgradValueError
from numgrad.tensors.checkpoint import checkpoint as checkpoint
from numgrad.tensors.checkpoint import checkpoint_sequential as checkpoint_sequential
from numgrad.tensors.checkpoint import set_checkpoint_early_stop as set_checkpoint_early_stop
from numgrad.tensors.creation import arange as arange
from numgrad.tensors.creation import asarray as asarray
from numgrad.tensors.creation import empty as empty
from numgrad.tensors.creation import empty_like as empty_like
from numgrad.tensors.creation import eye as eye
from numgrad.tensors.creation import from_numpy as from_numpy
from numgrad.tensors.creation import full as full
from numgrad.tensors.creation import full_like as full_like
from numgrad.tensors.creation import linspace as linspace
from numgrad.tensors.creation import ones as ones
from numgrad.tensors.creation import ones_like as ones_like
from numgrad.tensors.creation import tensor as tensor
from numgrad.tensors.creation import zeros as zeros
from numgrad.tensors.creation import zeros_like as zeros_like
from numgrad.tensors.tensor import Tensor as Tensor
from numgrad.transforms import grad as grad
from numgrad.transforms import hessian as hessian
from numgrad.transforms import jacobian as jacobian
from numgrad.transforms import value_and_grad as value_and_grad

# isort: split
from numgrad.core.op import OPS as _OPS
from numgrad.errors import NumgradAttributeError as _NumgradAttributeError
from numgrad.tensors import numpy_protocol as _numpy_protocol  # noqa: F401 (for what it attaches)

__version__ = "0.1.0"

_SUBPACKAGES = ("data", "func", "io", "nn", "optim", "random", "testing", "viz")
_ON_FIRST_USE = {
    **{name: f"numgrad.{name}" for name in _SUBPACKAGES},
    "jit": "numgrad.compiler.run.api",
    "jit_stats": "numgrad.compiler.inspect.stats",
    "load": "numgrad.io",
    **dict.fromkeys(("elementwise", "ops", "primitive"), "numgrad.nn.operations"),
    "save": "numgrad.io",
}
"""Where to find what is loaded when it is first asked for: most programs need a part of it."""


def __getattr__(name: str) -> _Any:
    if name not in _ON_FIRST_USE:
        raise _NumgradAttributeError(
            f"module 'numgrad' has no attribute {name!r}; dir(numgrad) lists all names, layers and "
            "their functions are in ng.nn and ng.nn.functional",
            name=name,
            obj=_sys.modules[__name__],
        )
    module = _import_module(_ON_FIRST_USE[name])
    value = globals()[name] = module if name in _SUBPACKAGES else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


for _op in _OPS.values():
    if not _op.internal:
        globals().update({_name: _op for _name in _op.names})
__all__ = sorted(  # pyright: ignore[reportUnsupportedDunderAll]
    {"autograd", "config", "errors", *_ON_FIRST_USE}
    | {_n for _n, _v in globals().items() if _n[0] != "_" and not isinstance(_v, _ModuleType)}
)
