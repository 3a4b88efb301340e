"""Files: nested values with arrays, saved and loaded without pickle."""

from numgrad.io.files import write_atomically as write_atomically
from numgrad.io.storage import load as load
from numgrad.io.storage import save as save

__all__ = ["load", "save", "write_atomically"]


def __dir__() -> list[str]:
    return __all__
