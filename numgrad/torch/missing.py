"""Names of PyTorch's that the face lacks: whether they are planned, and what to use."""

from __future__ import annotations

from typing import Final

from numgrad.core.namespaces import close_matches

OUT_OF_SCOPE: Final = {
    "mps": "Metal is a GPU; numgrad computes on the CPU",
    "xpu": "there is no GPU; numgrad computes on the CPU",
    "sparse_*": "Tensors are strided; ng.sparse has products with matrices of SciPy",
    "quantize*": "quantised types are out of scope; use float32",
    "dequantize": "quantised types are out of scope; use float32",
    "q_*": "quantised types are out of scope; use float32",
    "jit": "TorchScript is out of scope; use torch.compile, which is ng.jit",
    "onnx": "ONNX is out of scope; a compiled function is exported by ng.jit(f).native",
    "hub": "models are not downloaded; import them, torch.load reads their state_dict",
    "profiler": "planned; ng.profiler.profile has its names",
    "distributed": "planned; ng.distributed has its names",
    "testing": "planned; numpy.testing.assert_allclose takes Tensors",
    "fx": "graphs are those of numgrad: ng.jit(f).report()",
    "_dynamo": "torch.compile is ng.jit, which has no other stages",
    "_C": "internals of PyTorch's C++ library do not exist here",
    "_refs": "internals of PyTorch do not exist here",
    "ops": "internals of PyTorch's C++ library do not exist here; ng.ops has the operations",
    "nested": "nested Tensors are out of scope; use masks, or lists of Tensors",
    "vulkan": "there is no GPU; numgrad computes on the CPU",
    "cudnn*": "there is no GPU; numgrad computes on the CPU",
    "storage": "memory is that of an ndarray: x.numpy()",
    "untyped_storage": "memory is that of an ndarray: x.numpy()",
}
"""Names, or patterns of names, and what to do without them."""


def said(name: str) -> str:
    """Text about a name that is absent."""
    from fnmatch import fnmatchcase

    for pattern, text in OUT_OF_SCOPE.items():
        if fnmatchcase(name, pattern):
            return f"out of scope: {text}"
    from numgrad.torch.calls import ROWS

    close = close_matches(name, [n for rows in ROWS.values() for n in rows], 1, 0.75)
    near = f"; the nearest is {close[0]}" if close else ""
    return f"it is not there yet, if it is PyTorch's{near}; numgrad's own names are in ng.ops"
