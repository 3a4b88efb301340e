"""Every operation, those that are declared when asked for included."""

from numgrad.operations.late import declare_all

declare_all()
