"""Modules, losses and their functions: ``torch.nn``."""

from importlib import import_module as _import_module
from typing import Any as _Any

from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn import functional, init, layers as _layers, utils
from numgrad.torch.nn.module import (
    REGISTRATIONS as _REGISTRATIONS,
    Buffer,
    Module,
    UninitializedBuffer,
    UninitializedParameter,
)
from numgrad.torch.paths import alias as _alias
from numgrad.torch.settings import OF_LAYERS as _OF_LAYERS, install as _install
from numgrad.torch.wrapping import Parameter

_CLASSES = _layers.classes(functional)
globals().update(_CLASSES | _REGISTRATIONS)
_HERE = {
    "Buffer": Buffer, "Module": Module, "Parameter": Parameter, "functional": functional,
    "init": init, "utils": utils, "UninitializedBuffer": UninitializedBuffer,
    "UninitializedParameter": UninitializedParameter,
}  # fmt: skip
__all__ = sorted(["parallel", *_HERE, *_CLASSES])
for _cls in _CLASSES.values():
    _cls.__module__ = __name__  # by which pickles find them


def _load(name: str) -> _Any:  # "parallel", which few programs need
    return _import_module(f"{__name__}.{name}")


__getattr__ = _refuse(globals(), _load)
_install(_OF_LAYERS)
_alias(
    __name__,
    "nn.parameter nn.modules nn.modules.activation nn.modules.adaptive nn.modules.batchnorm "
    "nn.modules.channelshuffle nn.modules.container nn.modules.conv nn.modules.distance "
    "nn.modules.dropout nn.modules.flatten nn.modules.fold nn.modules.instancenorm nn.modules.lazy "
    "nn.modules.linear nn.modules.loss nn.modules.module nn.modules.normalization "
    "nn.modules.padding nn.modules.pixelshuffle nn.modules.pooling nn.modules.rnn "
    "nn.modules.sparse nn.modules.transformer nn.modules.upsampling nn.modules.utils",
)
_alias(f"{__name__}.utils", "nn.utils.clip_grad nn.utils.convert_parameters nn.utils.fusion")
