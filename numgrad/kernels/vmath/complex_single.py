"""complex64 forms of functions of complex128: float64 is wide enough to round only once."""

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.codegen.device import device


def single(double: Any) -> Callable:
    """The function for complex64, whose name ends in ``c64`` instead of ``c128``."""

    def narrow(z):
        return np.complex64(double(np.complex128(z)))

    # linker symbols come from the name
    narrow.__name__ = narrow.__qualname__ = double.__name__.replace("c128", "c64")
    return device(narrow)
