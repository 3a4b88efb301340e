"""Modules, losses and their functions: ``torch.nn``."""

from numgrad.core.namespaces import absent as _absent
from numgrad.torch.nn import functional, init, layers as _layers, utils
from numgrad.torch.nn.module import REGISTRATIONS as _REGISTRATIONS, Buffer, Module
from numgrad.torch.paths import alias as _alias
from numgrad.torch.wrapping import Parameter

_CLASSES = _layers.classes()
globals().update(_CLASSES | _REGISTRATIONS)
__all__ = sorted(["Buffer", "Module", "Parameter", "functional", "init", "utils", *_CLASSES])
_HERE = Buffer, Module, Parameter, functional, init, utils
for _cls in _CLASSES.values():
    _cls.__module__ = __name__  # by which pickles find them
__getattr__ = _absent(
    __name__,
    __all__,
    {
        "DataParallel": "there are no GPUs; nn.parallel.DistributedDataParallel has processes",
        "CrossMapLRN2d": "LocalResponseNorm, which is right at the first channels too",
        "quant*": "there are no quantized kernels",
    },
)
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
