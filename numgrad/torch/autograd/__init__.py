"""Gradients of what was recorded: ``torch.autograd``."""

from numgrad.core.namespaces import namespace as _namespace
from numgrad.torch.paths import alias as _alias

_namespace(
    globals(),
    {
        "numgrad.autograd.anomaly": "detect_anomaly set_detect_anomaly",
        "numgrad.autograd.modes": "enable_grad inference_mode no_grad set_grad_enabled",
        "numgrad.torch.autograd": "forward_ad function functional graph variable",
        "numgrad.torch.autograd.function": "Function NestedIOFunction",
        "numgrad.torch.autograd.numerical": "gradcheck gradgradcheck",
        "numgrad.torch.autograd.variable": "Variable backward grad",
    },
    {"profiler": "torch.profiler", "set_multithreading_enabled": "torch.set_num_threads"},
)
_alias("numgrad.torch.autograd.numerical", "autograd.gradcheck")
_alias(__name__, "autograd.anomaly_mode autograd.grad_mode")
