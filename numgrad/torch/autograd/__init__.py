"""Gradients of what was recorded: ``torch.autograd``."""

from numgrad.core.namespaces import namespace as _namespace
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.paths import alias as _alias

_namespace(
    globals(),
    {
        "numgrad.autograd.modes": "enable_grad inference_mode no_grad set_grad_enabled",
        "numgrad.torch.autograd": "forward_ad function functional graph variable",
        "numgrad.torch.autograd.graph": "SavedTensor",
        "numgrad.torch.autograd.function": "Function NestedIOFunction",
        "numgrad.torch.autograd.anomaly": "detect_anomaly set_detect_anomaly",
        "numgrad.torch.autograd.numerical": "gradcheck gradgradcheck",
        "numgrad.torch.autograd.variable": "Variable backward grad is_multithreading_enabled "
        "set_multithreading_enabled",
    },
)
_alias("numgrad.torch.autograd.numerical", "autograd.gradcheck")
_alias("numgrad.torch.profiler", "autograd.profiler")
_alias(__name__, "autograd.anomaly_mode autograd.grad_mode")
__getattr__ = _refuse(globals(), globals()["__getattr__"])
