"""Gradients of what was recorded: PyTorch's ``torch.autograd``.

``backward`` adds to ``.grad`` of the leaves, ``grad`` returns gradients and touches nothing;
``no_grad`` and its like say what is recorded; ``detect_anomaly`` finds where a NaN came from. A
``Function`` is an operation with a backward of yours. ``functional`` has Jacobians, Hessians and
their products with vectors, ``forward_ad`` forward mode, ``graph`` nodes, edges and hooks.

>>> import numgrad as ng
>>> x = ng.tensor(3.0, requires_grad=True)
>>> (slope,) = ng.autograd.grad(x**3, x, create_graph=True)
>>> ng.autograd.grad(slope, x)
(tensor(18.),)
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from numgrad.autograd import forward_ad as forward_ad
from numgrad.autograd import function as function
from numgrad.autograd import graph as graph
from numgrad.autograd.anomaly import detect_anomaly as detect_anomaly
from numgrad.autograd.anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from numgrad.autograd.anomaly import is_anomaly_enabled as is_anomaly_enabled
from numgrad.autograd.anomaly import set_detect_anomaly as set_detect_anomaly
from numgrad.autograd.engine.backward import backward as backward
from numgrad.autograd.engine.backward import grad as grad
from numgrad.autograd.function import Function as Function
from numgrad.autograd.modes import Variable as Variable
from numgrad.autograd.modes import enable_grad as enable_grad
from numgrad.autograd.modes import inference_mode as inference_mode
from numgrad.autograd.modes import is_grad_enabled as is_grad_enabled
from numgrad.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from numgrad.autograd.modes import no_grad as no_grad
from numgrad.autograd.modes import set_grad_enabled as set_grad_enabled
from numgrad.core.namespaces import absent as _absent

if TYPE_CHECKING:
    from numgrad.autograd import functional as functional

__all__ = [
    "Function", "Variable", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
    "functional", "grad", "graph", "inference_mode", "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled", "is_grad_enabled", "is_inference_mode_enabled", "no_grad",
    "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


_missing = _absent(
    __name__,
    __all__,
    {
        "gradcheck": "ng.testing.gradcheck",
        "gradgradcheck": "ng.testing.gradgradcheck",
        "profiler": "ng.profiler",
        "anomaly_mode": "its names are in ng.autograd itself",
        "grad_mode": "its names are in ng.autograd itself",
        "set_multithreading_enabled": "a backward runs in the thread that calls it; how many "
        "threads compute is said by ng.set_num_threads",
        "enforce_grad_layout_policy": "a .grad lies as its gradient came; store a new one in it",
        "NestedIOFunction": "ng.autograd.Function with ng.tree.leaves of nested arguments",
    },
)


def __getattr__(name: str) -> _Any:
    """Load ``functional``, a wrapper of what stands on a higher floor."""
    if name == "functional":
        return _import_module("numgrad.autograd.functional")
    return _missing(name)
