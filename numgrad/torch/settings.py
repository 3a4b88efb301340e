"""Devices, backends and settings that scripts ask for: ``torch.cuda``, ``torch.backends``, ...

Note [Settings]
---------------
``TABLE`` has modules a line, with what they have: ``name=value``, which users may set to anything,
``name()=value``, a function of any arguments, or ``get_name/set_name=value``, two functions, of
which one gives what the other was called with. There is one device, and sums have the same bits for
any number of threads, so that nothing follows from what is set. What is not in the table raises
(Note [Names that are absent] in ``missing``), above all what would need a GPU.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final

from numgrad import __version__
from numgrad.torch import dtypes
from numgrad.torch.paths import module_of
from numgrad.torch.wrapping import Tensor

_GPU: Final = (
    "is_available()=False is_initialized()=False device_count()=0 manual_seed()=None "
    "manual_seed_all()=None empty_cache()=None"
)
TABLE: Final = f"""
: set_num_interop_threads()=None get_num_interop_threads()=1 set_flush_denormal()=False
  set_warn_always()=None is_warn_always_enabled()=False is_distributed()=False
  is_vulkan_available()=False has_mkl=False has_lapack=True has_openmp=False
  get_default_device()=CPU get_float32_matmul_precision/set_float32_matmul_precision='highest'
  are_deterministic_algorithms_enabled/use_deterministic_algorithms=False
  is_deterministic_algorithms_warn_only_enabled()=False
__future__:
  get_swap_module_params_on_conversion/set_swap_module_params_on_conversion=False
  get_overwrite_module_params_on_conversion/set_overwrite_module_params_on_conversion=False
cuda: {_GPU} is_bf16_supported()=False is_current_stream_capturing()=False
  memory_allocated()=0 memory_reserved()=0 max_memory_allocated()=0 max_memory_reserved()=0
mps,xpu,mtia,accelerator: {_GPU} current_accelerator()=None
cpu: is_available()=True device_count()=1 current_device()='cpu' synchronize()=None
backends: disable_global_flags()=None
backends.cudnn: enabled=True benchmark=False deterministic=False allow_tf32=True
  benchmark_limit=10 is_available()=False version()=None flags()=nullcontext()
backends.cuda: is_built()=False enable_flash_sdp()=None enable_mem_efficient_sdp()=None
  enable_math_sdp()=None enable_cudnn_sdp()=None sdp_kernel()=nullcontext()
  flash_sdp_enabled()=False mem_efficient_sdp_enabled()=False math_sdp_enabled()=True
backends.cuda.matmul: allow_tf32=False allow_fp16_reduced_precision_reduction=True
backends.mps,backends.mkl,backends.openmp: is_available()=False is_built()=False
backends.cpu: get_cpu_capability()='DEFAULT'
backends.mkldnn: enabled=False allow_tf32=True is_available()=False flags()=nullcontext()
backends.opt_einsum: enabled=False strategy=None is_available()=False
backends.quantized: engine='none' supported_engines=['none']
version: __version__='2.13.0+numgrad{__version__}' cuda=None hip=None xpu=None debug=False
__config__: show()='numgrad_{__version__}' parallel_info()='numgrad.config'
"""
OF_LAYERS: Final = "nn.attention: sdpa_kernel()=nullcontext() SDPBackend=Backend"


class Backend:
    """Ways to compute attention, which PyTorch can be told to take."""

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION = -1, 0, 1, 2, 3


def install(table: str = TABLE) -> None:
    """Make the modules of a table: Note [Settings]."""
    for line in table.strip().replace("\n  ", " ").split("\n"):
        paths, *entries = line.split()
        members: dict[str, Any] = {}
        for entry in entries:
            name, _, written = entry.partition("=")
            value = _NAMES[written] if written in _NAMES else ast.literal_eval(written)
            get, _, set_ = name.partition("/")
            if set_:
                members[get], members[set_] = _remembering(value)
            else:
                members[name.removesuffix("()")] = _answer(value) if name[-1] == ")" else value
        for path in paths.rstrip(":").split(","):
            module_of(path, f"Settings of PyTorch's: ``torch.{path}``.", members)


_NAMES: Final = {
    "nullcontext()": nullcontext(), "Backend": Backend, "CPU": dtypes.device("cpu")
}  # fmt: skip


def _answer(value: Any) -> Callable[..., Any]:
    return lambda *args, **params: value


def _remembering(value: Any) -> tuple[Callable[..., Any], Callable[..., None]]:
    chosen = [value]
    return lambda: chosen[0], lambda mode, **options: chosen.__setitem__(0, mode)


def set_default_device(device: Any) -> None:
    """Set the device of new Tensors: the CPU, or NumgradRuntimeError is raised."""
    dtypes.device("cpu" if device is None else device)


def set_default_tensor_type(kind: Any) -> None:
    """Set the default dtype by a class of Tensors or its name, ``torch.DoubleTensor``."""
    name = kind if isinstance(kind, str) else kind.__name__
    d: Any = dtypes.PREFIXES.get(name.rpartition(".")[2].removesuffix("Tensor"))
    dtypes.set_default_dtype(d)


def typename(obj: Any) -> str:
    """The name of a class of Tensors, or of any other object's."""
    kind = type(obj)
    return obj.type() if isinstance(obj, Tensor) else f"{kind.__module__}.{kind.__qualname__}"
