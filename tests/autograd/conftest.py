"""A library as an argument of tests, so that one test states what holds in two of them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import numgrad as ng
from tests.python_paths import machine_code, python_paths


@pytest.fixture(params=["numgrad", "python", "torch"])
def lib(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Numgrad, its Python form, PyTorch: what passes in all of them is not made up by us."""
    if request.param == "numgrad":
        machine_code()
        yield ng
        return
    if request.param == "python":
        with python_paths():
            yield ng
        return
    torch = pytest.importorskip("torch")
    dtype, always = torch.get_default_dtype(), torch.is_warn_always_enabled()
    torch.set_default_dtype(torch.float64)
    torch.set_warn_always(True)
    yield torch
    torch.set_default_dtype(dtype)
    torch.set_warn_always(always)


@pytest.fixture
def raises(lib: Any) -> Callable[..., Any]:
    """``raises(error, words)``: in numgrad the message has the words, in PyTorch its own."""
    return lambda error, words: pytest.raises(error, match=words if lib is ng else None)
