"""Modules, losses and their functions: ``torch.nn``."""

from importlib import import_module as _import_module
from typing import Any as _Any

from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn import (
    functional as functional,
    init as init,
    layers as _layers,
    module as _module,
    utils as utils,
)
from numgrad.torch.paths import alias as _alias
from numgrad.torch.settings import OF_LAYERS as _OF_LAYERS, install as _install

_MEMBERS = ("Buffer", "Module", "Parameter", "UninitializedBuffer", "UninitializedParameter")
_CLASSES = _layers.classes()
globals().update({name: getattr(_module, name) for name in _MEMBERS})
globals().update(_CLASSES | _module.REGISTRATIONS)
consume_prefix_in_state_dict_if_present = utils.consume_prefix_in_state_dict_if_present
__all__ = sorted(["functional", "init", "parallel", "utils", *_MEMBERS, *_CLASSES])  # pyright: ignore
for _cls in _CLASSES.values():
    _cls.__module__ = __name__  # by which pickles find them


def _load(name: str) -> _Any:  # "parallel", which few programs need
    return _import_module(f"{__name__}.{name}")


__getattr__ = _refuse(globals(), _load)
_install(_OF_LAYERS)
_FILES = """
activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold
instancenorm lazy linear loss module normalization padding pixelshuffle pooling rnn sparse
transformer upsampling utils
"""
_alias(__name__, "nn.parameter nn.modules " + " nn.modules.".join(["", *_FILES.split()]))
_alias(f"{__name__}.utils", "nn.utils.clip_grad nn.utils.convert_parameters nn.utils.fusion")
