"""Every operation, those that are declared when asked for included."""

from numgrad.operations.lazy_operations import declare_all

declare_all()
