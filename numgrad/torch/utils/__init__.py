"""Data and checkpoints: ``torch.utils``."""

from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
__getattr__ = _refuse(globals())
