"""What is said about names that ndarrays or PyTorch have, and Tensors or ``numgrad`` have not."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from numgrad.core.absent import close_matches

_NUMPYS = "is about memory; x.numpy() is the ndarray"
_CPU = "there is no other device than the CPU"

TENSOR_EXPRESSIONS = {
    "H": "ng.conj(x.mT)",
    "bmm": "x @ y",
    "bool": "x.astype(bool)",
    "chunk": "ng.array_split(x, n)",
    "div": "x / y",
    "double": "x.astype(ng.float64)",
    "element_size": "x.itemsize",
    "eq": "x == y",
    "float": "x.astype(ng.float32)",
    "ge": "x >= y",
    "gt": "x > y",
    "index_select": "ng.take(x, places, axis=0)",
    "int": "x.astype(ng.int32)",
    "inverse": "ng.linalg.inv(x)",
    "det": "ng.linalg.det(x)",
    "le": "x <= y",
    "long": "x.astype(ng.int64)",
    "lt": "x < y",
    "mm": "x @ y",
    "movedim": "ng.moveaxis(x, 0, 1)",
    "mul": "x * y",
    "mv": "x @ v",
    "ne": "x != y",
    "neg": "-x",
    "nelement": "x.size",
    "new_ones": "ng.ones(shape)",
    "new_zeros": "ng.zeros(shape)",
    "numel": "x.size",
    "dim": "x.ndim",
    "pow": "x ** y",
    "rsqrt": "1 / ng.sqrt(x)",
    "sub": "x - y",
    "t": "x.T",
    "to_numpy": "x.detach().numpy()",
    "values": "x.detach().numpy()",
    "view_as": "ng.reshape(x, y.shape)",
}
"""Attributes of PyTorch's tensors and of others, and expressions that give the same."""
_OF_TENSOR = {
    "apply_": "write it with operations, or ng.vmap",
    "at": "x[i] = value writes, and ng.index_put gives another Tensor",
    "contiguous": "operations take Tensors however they lie in memory; copy() lies in order",
    "cpu": "all Tensors are in the memory of the CPU",
    "creator": "what grad_fn was called in 2017; use grad_fn",
    "cuda": _CPU,
    "data_ptr": _NUMPYS,
    "dump": "ng.save writes a file, pickle.dump too",
    "dumps": "pickle.dumps(x) gives bytes",
    "fill": "fill_(number) fills it, as PyTorch calls it",
    "gather": "ng.take_along_axis(x, indices, axis) is PyTorch's",
    "half": "float16 has no kernels; use astype(ng.float32)",
    "is_cuda": _CPU,
    "layout": "all Tensors are dense",
    "narrow": "brackets do it: x[start : start + length]",
    "normal_": "ng.nn.init.normal_(x) fills it, ng.random.default_rng().normal draws another",
    "pin_memory": _CPU,
    "put": "np.put(x, places, values) writes to it, in C order",
    "resize": "a Tensor keeps its shape; np.resize(x, shape) makes another",
    "share_memory_": "processes share what ng.parallel sends them",
    "storage": _NUMPYS,
    "stride": "strides gives bytes, as NumPy's",
    "to": f"astype(dtype) converts, and {_CPU}",
    "tofile": "ng.save writes a file; x.numpy() is the ndarray",
    "type": "dtype is its kind, astype(dtype) converts",
    "uniform_": "ng.nn.init.uniform_(x) fills it, ng.random.default_rng().uniform draws another",
    "view": "reshape(x, shape) shows the same memory, astype converts",
    "zero_grad": "set x.grad = None, and of parameters call zero_grad() of the optimizer",
    **dict.fromkeys(
        ("base", "byteswap", "ctypes", "flags", "getfield", "setfield", "setflags"), _NUMPYS
    ),
    **{name: f"{text} is the same" for name, text in TENSOR_EXPRESSIONS.items()},
}

EXPRESSIONS = {
    "addmm": "c + x @ y",
    "as_tensor": "ng.asarray(x)",
    "bmm": "x @ y",
    "cdist": "ng.linalg.norm(x[:, None] - y, axis=-1)",
    "chunk": "ng.array_split(x, n)",
    "div": "x / y",
    "eq": "x == y",
    "ge": "x >= y",
    "gt": "x > y",
    "identity": "ng.eye(n)",
    "index_select": "ng.take(x, places, axis=0)",
    "inverse": "ng.linalg.inv(x)",
    "is_tensor": "isinstance(x, ng.Tensor)",
    "le": "x <= y",
    "lt": "x < y",
    "masked_select": "x[x > 0]",
    "matrix_exp": "ng.linalg.expm(x)",
    "mm": "x @ y",
    "movedim": "ng.moveaxis(x, 0, 1)",
    "mul": "x * y",
    "mv": "x @ v",
    "ne": "x != y",
    "neg": "-x",
    "numel": "x.size",
    "pow": "x ** y",
    "rsqrt": "1 / ng.sqrt(x)",
    "sub": "x - y",
    "t": "x.T",
}
"""Functions of PyTorch's and NumPy's, and expressions that give the same."""
_OF_MODULE = {
    **{name: f"{text} is the same" for name, text in EXPRESSIONS.items()},
    "Parameter": "it is ng.nn.Parameter",
    "array": "ng.tensor copies data, ng.asarray takes what is there",
    "backends": _CPU,
    "compile": "ng.jit compiles functions",
    "cuda": _CPU,
    "device": _CPU,
    "double": "it is ng.float64",
    "float": "PyTorch's is ng.float32, Python's is ng.float64",
    "float16": "it has no kernels; use ng.float32",
    "float128": "it has no kernels; use ng.float64",
    "half": "float16 has no kernels; use ng.float32",
    "gather": "ng.take_along_axis(x, indices, axis) is PyTorch's",
    "int": "PyTorch's is ng.int32, Python's is ng.int64",
    "long": "it is ng.int64",
    "object": "Tensors hold numbers",
    "matrix": "a Tensor of two axes, and @ for products",
    "seed": "ng.random.manual_seed is PyTorch's, np.random.seed NumPy's",
    "set_default_dtype": "the default is float64; give dtype= where a Tensor is made",
    "set_default_device": _CPU,
    "set_printoptions": "np.set_printoptions is for Tensors too",
    "utils": "ng.nn.utils and ng.data have what torch.utils has",
    **dict.fromkeys(
        ("bisect", "brentq", "brenth", "fsolve", "newton", "ridder", "root_scalar", "toms748"),
        "solutions with gradients are ng.implicit.root, solvers with exact Jacobians ng.root",
    ),
    **dict.fromkeys(
        ("brent", "fmin_bfgs", "fmin_cg", "golden", "minimize_scalar"),
        "solutions with gradients are ng.implicit.argmin, solvers with exact ones ng.minimize",
    ),
    **dict.fromkeys(("dblquad", "nquad", "tplquad"), "ng.quad may be called in ng.quad"),
    **dict.fromkeys(
        ("normal", "rand", "randint", "randn", "randperm", "random_sample", "uniform", "rand_like",
         "randn_like", "permutation", "shuffle"),
        "generators draw, as ng.random.default_rng().normal(size=3), which may have gradients",
    ),
}  # fmt: skip
_ROOMS = ("linalg", "random", "fft", "special", "signal", "ndimage", "implicit", "nn",
          "nn.functional", "optim", "autograd", "stats", "data")  # fmt: skip
"""Where names may be that are looked for at the top, in this order."""


def said(name: str, names: list[str]) -> str:
    """The message for an attribute of a Tensor; ``names`` are those that there are."""
    told = _OF_TENSOR.get(name)
    if told is None:
        told = _nearest(name, names)
    return f"a Tensor has no attribute {name!r}: {told}"


def said_of_module(name: str, names: list[str]) -> str:
    """The same for a name of ``numgrad`` itself."""
    told = _OF_MODULE.get(name) or _elsewhere(name) or _nearest(name, names)
    return f"module 'numgrad' has no attribute {name!r}: {told}"


def _elsewhere(name: str) -> str | None:
    for room in _ROOMS:
        if name in getattr(import_module(f"numgrad.{room}"), "__all__", ()):
            return f"it is in ng.{room}: ng.{room}.{name}"
    return None


def _nearest(name: str, names: Iterable[str]) -> str:
    """What is spelled alike; forms that write in place are for names that say so."""
    own = [n for n in names if n[0] != "_" and (n[-1] != "_" or name[-1] == "_")]
    close = close_matches(name, own, 1, 0.75)
    return f"the nearest is {close[0]}" if close else "nothing comes near it"
