"""Names of PyTorch's that the face lacks: whether they are planned, and what to use.

Note [Names that are absent]
----------------------------
Every module of the face has ``__getattr__ = refuse(globals())``: a name that it lacks raises an
error with the text of ``said``. A finder behind all others does the same for modules, so that
``import torch.jit``, ``from torch import jit`` and ``torch.jit`` say one thing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from importlib.abc import MetaPathFinder
from typing import Any, Final

from numgrad.core.namespaces import close_matches
from numgrad.errors import NumgradAttributeError, NumgradImportError

_GPU = "there is no GPU; numgrad computes on the CPU"
_QUANTISED = "there are no quantised types; use float32"
_SPARSE = "Tensors are strided; ng.sparse has products with matrices of SciPy"
_INTERNAL = "internals of PyTorch do not exist here"
_MEMORY = "memory is that of an ndarray: x.numpy()"
_SCRIPT = "instead of TorchScript use torch.compile, which is ng.jit"
OUT_OF_SCOPE: Final = {
    "cuda.*": f"{_GPU}. Scripts that ask torch.cuda.is_available() take that way",
    "mps.*": f"Metal is a GPU: {_GPU}",
    "xpu.*": _GPU, "mtia.*": _GPU, "accelerator.*": _GPU, "*cudnn*": _GPU, "*miopen_*": _GPU,
    "*vulkan*": _GPU, "*autocast_*": "there is no arithmetic of 16 bits; use float32",
    "Event": _GPU, "Stream": _GPU, "OutOfMemoryError": _GPU, "record_stream": _GPU,
    "float8_*": "there is no arithmetic of 8 bits; use float32",
    "float4_*": "there is no arithmetic of 4 bits; use float32",
    "bits*": _QUANTISED, "int[1-7]": _QUANTISED, "uint[1-7]": _QUANTISED, "quint*": _QUANTISED,
    "Q*Storage": _QUANTISED, "*quant*": _QUANTISED, "q_*": _QUANTISED, "qscheme": _QUANTISED,
    "ao": _QUANTISED, "int_repr": _QUANTISED, "per_*_*": _QUANTISED, "nn.qat": _QUANTISED,
    "nn.intrinsic": _QUANTISED, "fbgemm_*": _QUANTISED,
    "*sparse*": _SPARSE, "*col_indices": _SPARSE, "*row_indices": _SPARSE, "coalesce": _SPARSE,
    "indices": _SPARSE, "values": _SPARSE, "*smm": _SPARSE, "dense_dim": _SPARSE,
    "saddmm": _SPARSE, "spmm": _SPARSE, "sspaddmm": _SPARSE,
    "jit": _SCRIPT, "Script*": _SCRIPT, "*.fx": _SCRIPT,
    "onnx": "there is no ONNX; a compiled function is exported by ng.jit(f).native",
    "hub": "models are not downloaded; import them, torch.load reads their state_dict",
    "export": "a compiled function is exported by ng.export",
    "fx": "graphs are those of numgrad: ng.jit(f).report()",
    "_dynamo": "torch.compile is ng.jit, which has no other stages",
    "_C": _INTERNAL, "_refs": _INTERNAL, "_prims": _INTERNAL, "_inductor": _INTERNAL,
    "library": "operations of users are autograd.Function, or ng.kernel: loops in Python",
    "ops": "internals of PyTorch's C++ library do not exist here; ng.ops has the operations",
    "overrides": "classes with __torch_function__ are asked, without a further table",
    "sym_*": "lengths are Python's integers", "Sym*": "lengths are Python's integers",
    "mkldnn_*": _INTERNAL, "*handle_torch_function": _INTERNAL, "has_torch_function*": _INTERNAL,
    "*Type": "annotations are those of Python",
    "*functionalize": "functions that write in place are compiled and differentiated as they are",
    "nested": "use masks, or lists of Tensors",
    "jagged": "use masks, or lists of Tensors",
    "*torage*": _MEMORY, "from_file": "np.memmap, and torch.from_numpy of it",
    "futures": "concurrent.futures of Python", "fork": _SCRIPT, "wait": _SCRIPT,
    "package": "torch.save has files of state_dicts", "monitor": "torch.profiler",
    "eig": "torch.linalg.eig", "lstsq": "torch.linalg.lstsq",
    "matrix_rank": "torch.linalg.matrix_rank",
    "solve": "torch.linalg.solve", "symeig": "torch.linalg.eigh", "lobpcg": "torch.linalg.eigh",
    "frobenius_norm": "torch.linalg.norm", "nuclear_norm": "torch.linalg.norm",
    "native_*": "the function without 'native_'",
    "rnn_*": "torch.nn.RNN", "lstm*": "torch.nn.LSTM", "gru*": "torch.nn.GRU",
    "*_copy": "the function without '_copy', and .clone()",
    "cond": "ng.cond, which ng.jit compiles", "while_loop": "ng.while_loop, which ng.jit compiles",
    "reinforce": "torch.distributions: -log_prob(action) * reward",
    "volatile": "torch.no_grad()", "Container": "nn.Module",
    "nn.DataParallel": "there are no GPUs; nn.parallel.DistributedDataParallel has processes",
    "nn.CrossMapLRN2d": "LocalResponseNorm, which is right at the first channels too",
    "nn.NLLLoss2d": "nn.NLLLoss, which takes images", "nn.grad": "torch.autograd.grad",
    "*linear_cross_entropy": "linear and cross_entropy",
    "*multi_head_attention_forward": "nn.MultiheadAttention",
    "*grouped_mm": "matmul of stacks",
    "*scaled_mm": "there are no kernels of such dtypes; use matmul",
    "*conv_tbc": "conv1d, whose first axis is that of examples",
    "utils.tensorboard": "numgrad.viz, or the package tensorboardX",
    "utils.cpp_extension": "ng.kernel: loops in Python become machine code, with gradients",
    "utils.benchmark": "ng.benchmark", "utils.bottleneck": "torch.profiler",
    "utils.*data*pipe*": "datasets by IterableDataset",
    "distributed.*": "ranks are those of MPI: numgrad.distributed, optim.ZeroRedundancyOptimizer",
    "distributions.*": "there is no such distribution; ng.stats has logpdf, cdf, rvs of others",
    "profiler.*": "numgrad.profiler",
}  # fmt: skip
"""Names below ``torch``, or patterns of them, and what to do without."""


def said(name: str, space: str = "") -> str:
    """Text about a name that is absent from a module of PyTorch's (empty for its topmost)."""
    path = f"{space}.{name}".lstrip(".")
    for pattern, text in OUT_OF_SCOPE.items():
        if fnmatchcase(path, pattern) or ("." not in pattern and fnmatchcase(name, pattern)):
            return f"out of scope; {text}"
    known = vars(sys.modules.get(f"numgrad.torch.{space}", sys.modules["numgrad.torch"]))
    close = close_matches(name, known.get("__all__", known), 1, 0.75)
    near = f"; the nearest is {close[0]}" if close else ""
    return f"planned, if it is PyTorch's{near}; numgrad's own names are in ng.ops"


def refuse(
    public: dict[str, Any], load: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """Return ``__getattr__`` of a module, which says what there is instead of absent names.

    Parameters
    ----------
    public
        The globals of the module.
    load
        A function that loads those names of ``__all__`` that are not there yet.
    """
    space = public["__name__"].removeprefix("numgrad.torch").lstrip(".")
    public.setdefault("__path__", [])  # or ``from`` would not ask the finder

    def __getattr__(name: str) -> Any:
        if load is not None and name in public["__all__"]:
            return load(name)
        if name[:2] == "__":
            raise AttributeError(name)
        raise _error(NumgradAttributeError, name, space)

    return __getattr__


def _error(kind: type[Exception], name: str, space: str) -> Exception:
    module = f"torch.{space}".rstrip(".")
    return kind(f"module {module!r} has no attribute {name!r}: {said(name, space)}")


class _Finder(MetaPathFinder):
    """Raises for modules of the face that do not exist."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        first, _, rest = fullname.removeprefix("numgrad.").partition(".")
        where = fullname.removesuffix(f".{rest}")
        if rest and first == "torch" and sys.modules.get(where) is sys.modules["numgrad.torch"]:
            space, _, name = rest.rpartition(".")
            raise _error(NumgradImportError, name, space)


sys.meta_path.append(_Finder())
