"""Instructions and C functions of Python's for machine code that works with objects.

Note [Objects in machine code]
------------------------------
A text of the native compiler may handle objects: an object is its address, an int64, and what it
has lies at offsets behind that, where ``peek`` reads it and ``poke`` writes it. Such code holds the
interpreter's lock and counts references as C does: the functions below return a reference of the
caller's own, or 0 with an error set, unless they say otherwise.
"""

from __future__ import annotations

from numgrad.codegen.device import ExternalFunction, instruction


@instruction
def poke(value, address):
    """Write a number to memory."""


@instruction
def scratch(words):
    """The address of so many int64, a literal number, that last until the function returns."""


@instruction
def call_packed(function, slots):
    """Call the packed form of a kernel: Note [Entries] in ``kernel_entry``; it returns 0 or 1."""


keep = ExternalFunction("Py_IncRef", "int64(int64)")
"""Take a further reference; what it returns means nothing."""
release = ExternalFunction("Py_DecRef", "int64(int64)")
"""Give up a reference, of 0 as well; what it returns means nothing."""
attribute = ExternalFunction("PyObject_GetAttr", "int64(int64, int64)")
call_python = ExternalFunction("PyObject_Vectorcall", "int64(int64, int64, int64, int64)")
new_object = ExternalFunction("PyType_GenericAlloc", "int64(int64, int64)")
"""An object of a class with slots, all of them empty."""
size_of_list = ExternalFunction("PyList_Size", "int64(int64)")
size_of = ExternalFunction("PySequence_Size", "int64(int64)")
item_of = ExternalFunction("PySequence_GetItem", "int64(int64, int64)")
listed = ExternalFunction("PyList_GetItem", "int64(int64, int64)")
"""An element of a list; no reference of the caller's."""
set_listed = ExternalFunction("PyList_SetItem", "int32(int64, int64, int64)")
"""Set an element of a list; the reference to it is taken over."""
new_list = ExternalFunction("PyList_New", "int64(int64)")
looked_up = ExternalFunction("PyDict_GetItemWithError", "int64(int64, int64)")
"""A value of a dictionary, or 0 and perhaps an error; no reference of the caller's."""
put_in = ExternalFunction("PyDict_SetItem", "int32(int64, int64, int64)")
take_out = ExternalFunction("PyDict_DelItem", "int32(int64, int64)")
contains = ExternalFunction("PySet_Contains", "int32(int64, int64)")
negative = ExternalFunction("PyNumber_Negative", "int64(int64)")
as_int = ExternalFunction("PyLong_AsLongLong", "int64(int64)")
low_bits = ExternalFunction("PyLong_AsUnsignedLongLongMask", "int64(int64)")
"""The last 64 bits of an integer of any size."""
new_tuple = ExternalFunction("PyTuple_New", "int64(int64)")
new_int = ExternalFunction("PyLong_FromLongLong", "int64(int64)")
next_of = ExternalFunction("PyIter_Next", "int64(int64)")
as_float = ExternalFunction("PyFloat_AsDouble", "float64(int64)")
hash_of = ExternalFunction("PyObject_Hash", "int64(int64)")
"""The hash of an object, or -1 with an error."""
equals = ExternalFunction("PyObject_RichCompareBool", "int32(int64, int64, int32)")
"""Whether two objects compare as said, -1 with an error; identical ones are equal."""
is_error = ExternalFunction("PyErr_ExceptionMatches", "int32(int64)")
"""Whether the error that is set is of a class."""
error_set = ExternalFunction("PyErr_Occurred", "int64()")
"""The class of the error that is set, or 0; no reference of the caller's."""
forget_error = ExternalFunction("PyErr_Clear", "int64()")
no_memory = ExternalFunction("PyErr_NoMemory", "int64()")
new_array = ExternalFunction(
    "numgrad_new_array", "int64(int64, int64, int32, int64, int64, int64, int32, int64)"
)
"""NumPy's ``PyArray_NewFromDescr``, which takes over the reference to the dtype."""
