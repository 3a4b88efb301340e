"""Data and checkpoints: ``torch.utils``."""

from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.settings import install as _install
from numgrad.torch.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
_install("utils.deterministic: fill_uninitialized_memory=True")
__getattr__ = _refuse(globals())
