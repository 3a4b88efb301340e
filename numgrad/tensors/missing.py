"""What is said about an attribute that ndarrays or PyTorch's tensors have, and Tensors have not."""

from __future__ import annotations

from numgrad.core.absent import close_matches

_NUMPYS = "is about memory; x.numpy() is the ndarray"
_INSTEAD = {
    "view": "reshape(x, shape) shows the same memory, astype converts",
    "put": "np.put(x, places, values) writes to it, in C order",
    "resize": "a Tensor keeps its shape; np.resize(x, shape) makes another",
    "fill": "fill_(number) fills it, as PyTorch calls it",
    "tofile": "ng.save writes a file; x.numpy() is the ndarray",
    "dump": "ng.save writes a file, pickle.dump too",
    "dumps": "pickle.dumps(x) gives bytes",
    "creator": "what grad_fn was called in 2017; use grad_fn",
    "cpu": "all Tensors are in the memory of the CPU",
    "cuda": "there is no other device than the CPU",
    **dict.fromkeys(
        ("base", "byteswap", "ctypes", "flags", "getfield", "setfield", "setflags"), _NUMPYS
    ),
}  # fmt: skip


def said(name: str, names: list[str]) -> str:
    """The message for an attribute; ``names`` are those that there are."""
    told = _INSTEAD.get(name)
    if told is None:
        close = close_matches(name, names, 1, 0.75)
        told = f"the nearest is {close[0]}" if close else "nothing comes near it"
    return f"a Tensor has no attribute {name!r}: {told}"
