"""Data and checkpoints: ``torch.utils``."""

from numgrad.core.namespaces import absent as _absent
from numgrad.torch.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
__getattr__ = _absent(
    __name__,
    __all__,
    {
        "tensorboard": "numgrad.viz, or the package tensorboardX",
        "cpp_extension": "ng.kernel: loops in Python become machine code, with gradients",
        "benchmark": "ng.benchmark",
    },
)
