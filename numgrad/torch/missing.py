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

_INSTEAD: Final = {
    "there is no GPU; numgrad computes on the CPU, as torch.cuda.is_available() says": "cuda.*",
    "there is no GPU; numgrad computes on the CPU":
        "mps.* xpu.* mtia.* accelerator.* *cudnn* *miopen_* *vulkan* Event Stream OutOfMemoryError "
        "record_stream",
    "there is no arithmetic of 4, 8 or 16 bits; use float32": "float4_* float8_* *autocast_*",
    "there are no quantised types; use float32":
        "bits* int[1-7] uint[1-7] quint* Q*Storage *quant* q_* qscheme ao int_repr per_*_* nn.qat "
        "nn.intrinsic fbgemm_*",
    "Tensors are strided; ng.sparse has products with matrices of SciPy":
        "*sparse* *col_indices *row_indices coalesce indices values *smm dense_dim saddmm spmm "
        "sspaddmm",
    "instead of TorchScript use torch.compile, which is ng.jit": "jit Script* *.fx fork wait",
    "there is no ONNX; a compiled function is exported by ng.jit(f).native": "onnx",
    "models are not downloaded; import them, torch.load reads their state_dict": "hub",
    "a compiled function is exported by ng.export": "export",
    "graphs are those of numgrad: ng.jit(f).report()": "fx",
    "torch.compile is ng.jit, which has no other stages": "_dynamo",
    "internals of PyTorch do not exist here":
        "_C _refs _prims _inductor mkldnn_* *handle_torch_function has_torch_function*",
    "operations of users are autograd.Function, or ng.kernel: loops in Python": "library",
    "internals of PyTorch's C++ library do not exist here; ng.ops has the operations": "ops",
    "classes with __torch_function__ are asked, without a further table": "overrides",
    "lengths are Python's integers": "sym_* Sym*", "annotations are those of Python": "*Type",
    "functions that write in place are compiled and differentiated as they are": "*functionalize",
    "use masks, or lists of Tensors": "nested jagged",
    "memory is that of an ndarray: x.numpy()": "*torage*",
    "np.memmap, and torch.from_numpy of it": "from_file", "concurrent.futures of Python": "futures",
    "torch.save has files of state_dicts": "package", "torch.profiler": "monitor utils.bottleneck",
    "torch.linalg.@": "eig lstsq matrix_rank solve", "torch.linalg.eigh": "symeig lobpcg",
    "torch.linalg.norm": "frobenius_norm nuclear_norm",
    "ng.@, which ng.jit compiles": "cond while_loop",
    "the function without 'native_'": "native_*", "torch.nn.RNN": "rnn_*", "torch.nn.LSTM": "lstm*",
    "torch.nn.GRU": "gru*", "the function without '_copy', and .clone()": "*_copy",
    "torch.distributions: -log_prob(action) * reward": "reinforce", "torch.no_grad()": "volatile",
    "nn.Module": "Container",
    "there are no GPUs; nn.parallel.DistributedDataParallel has processes": "nn.DataParallel",
    "LocalResponseNorm, which is right at the first channels too": "nn.CrossMapLRN2d",
    "nn.NLLLoss, which takes images": "nn.NLLLoss2d", "torch.autograd.grad": "nn.grad",
    "linear and cross_entropy": "*linear_cross_entropy",
    "nn.MultiheadAttention": "*multi_head_attention_forward", "matmul of stacks": "*grouped_mm",
    "there are no kernels of such dtypes; use matmul": "*scaled_mm",
    "conv1d, whose first axis is that of examples": "*conv_tbc",
    "numgrad.viz, or the package tensorboardX": "utils.tensorboard",
    "ng.kernel: loops in Python become machine code, with gradients": "utils.cpp_extension",
    "ng.benchmark": "utils.benchmark", "datasets by IterableDataset": "utils.*data*pipe*",
    "ranks are those of MPI: numgrad.distributed, optim.ZeroRedundancyOptimizer": "distributed.*",
    "there is no such distribution; ng.stats has logpdf, cdf, rvs of others": "distributions.*",
    "numgrad.profiler": "profiler.*",
}  # fmt: skip
OUT_OF_SCOPE: Final = {
    name: text.replace("@", name) for text, names in _INSTEAD.items() for name in names.split()
}
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
