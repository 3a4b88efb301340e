"""How Python calls kernels: an entry in machine code, and one in Python for what that leaves.

Note [Entries]
--------------
All kernels have the same entry: a function of CPython's (``METH_FASTCALL``) in machine code,
compiled once and kept on disk. The description of its kernel is its ``self``. It reads the fields
of arrays where NumPy's public structure has them, and puts them into slots of eight bytes;
``@packed`` of the kernel (``native.kernel``) takes these, and gives them to the body where that has
other callers or a result. What is not plain, such as a subclass of ``numpy.ndarray``, an array of
another rank or a float for an integer, it leaves to the slow entry, written in Python, which
converts it or says what is wrong. The slow entry serves alone where objects are not to be read
(``offsets.is_readable``).

Dtypes of the same size are not told apart: callers pass those of the signature.

The entry is the one function over objects that is written in LLVM's language, not in that of
kernels (``builtin``), where it would have half the lines: every first call in a new cache compiles
it. In the language of kernels a call of a kernel takes 62 ns in place of 55 and a program's first
gradient 1.09 of the CPU time; without LLVM's passes 70 ns and 1.06.
"""

import ctypes
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.cpython import c_api, offsets
from numgrad.codegen.cpython.c_api import Words
from numgrad.codegen.native import machine
from numgrad.codegen.native.signature import Argument, Signature
from numgrad.errors import NumgradTypeError

_ARRAY, _FLOAT, _INT, _UNSIGNED, _BOOL, _COMPLEX = range(6)
_KINDS = {"f": _FLOAT, "i": _INT, "u": _UNSIGNED, "b": _BOOL, "c": _COMPLEX}
_NO_RESULT = -1


class _Description(Words):
    """The words that describe a kernel to its entry, which hold on to the slow entry."""


def _description(
    signature: Signature, packed: int, slow: Callable[..., Any], nogil: bool
) -> _Description:
    words = []
    for argument in signature.arguments:
        kind = _KINDS[argument.dtype.kind] if argument.rank is None else _ARRAY
        rank, size = argument.rank or 0, argument.dtype.itemsize
        words.append(kind | rank << 8 | size << 16 | argument.contiguous << 24)
    result = _NO_RESULT if signature.result is None else _KINDS[signature.result.kind]
    slots = len(signature.parameters()) + 1
    return _Description.of(packed, slow, len(words), slots, nogil, result, *words)


def _text() -> str:
    """LLVM IR of the function of CPython's that all kernels have, each with its description."""
    return f"""\
@numgrad_py_ndarray = external global i8
@numgrad_py_complex = external global i8
@numgrad_py_none = external global i8
declare ptr @PyBytes_AsString(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare i32 @PyObject_IsTrue(ptr)
declare double @PyComplex_RealAsDouble(ptr)
declare double @PyComplex_ImagAsDouble(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare ptr @PyErr_NoMemory()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyComplex_FromDoubles(double, double)

define ptr @entry(ptr %self, ptr %args, i64 %count) #0 {{
start:
  %described = call ptr @PyBytes_AsString(ptr %self)
  %slow_at = getelementptr inbounds i64, ptr %described, i64 1
  %count_at = getelementptr inbounds i64, ptr %described, i64 2
  %slots_at = getelementptr inbounds i64, ptr %described, i64 3
  %nogil_at = getelementptr inbounds i64, ptr %described, i64 4
  %result_at = getelementptr inbounds i64, ptr %described, i64 5
  %words = getelementptr inbounds i64, ptr %described, i64 6
  %expected = load i64, ptr %count_at
  %as_many = icmp eq i64 %count, %expected
  br i1 %as_many, label %room, label %unusual
room:
  %slots_count = load i64, ptr %slots_at
  %slots = alloca i64, i64 %slots_count, align 16
  br label %argument
argument:
  %k = phi i64 [ 0, %room ], [ %next_k, %next ]
  %slot = phi ptr [ %slots, %room ], [ %next_slot, %next ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %call, label %take
take:
  %object_at = getelementptr inbounds ptr, ptr %args, i64 %k
  %object = load ptr, ptr %object_at
  %type_at = getelementptr inbounds i8, ptr %object, i64 {offsets.TYPE}
  %type = load ptr, ptr %type_at
  %word_at = getelementptr inbounds i64, ptr %words, i64 %k
  %word = load i64, ptr %word_at
  %kind = and i64 %word, 255
  %second = getelementptr inbounds i64, ptr %slot, i64 1
  switch i64 %kind, label %unusual [
    i64 {_ARRAY}, label %array
    i64 {_FLOAT}, label %float
    i64 {_INT}, label %int
    i64 {_UNSIGNED}, label %unsigned
    i64 {_BOOL}, label %bool
    i64 {_COMPLEX}, label %complex
  ]
next:
  %next_slot = phi ptr [ %second, %taken ], [ %second, %float_taken ], [ %third, %complex_taken ],
                       [ %behind_lengths, %lengths ], [ %behind_strides, %strides ]
  %next_k = add nuw nsw i64 %k, 1
  br label %argument

array:
  %is_array = icmp eq ptr %type, @numgrad_py_ndarray
  br i1 %is_array, label %fields, label %unusual
fields:
  %rank_at = getelementptr inbounds i8, ptr %object, i64 {offsets.RANK}
  %rank32 = load i32, ptr %rank_at
  %rank = zext i32 %rank32 to i64
  %dtype_at = getelementptr inbounds i8, ptr %object, i64 {offsets.DTYPE}
  %dtype = load ptr, ptr %dtype_at
  %size_at = getelementptr inbounds i8, ptr %dtype, i64 {offsets.ITEMSIZE}
  %size = load i64, ptr %size_at
  %flags_at = getelementptr inbounds i8, ptr %object, i64 {offsets.FLAGS}
  %flags32 = load i32, ptr %flags_at
  %flags = zext i32 %flags32 to i64
  %word8 = lshr i64 %word, 8
  %word16 = lshr i64 %word, 16
  %contiguous = lshr i64 %word, 24
  %right_rank = and i64 %word8, 255
  %right_size = and i64 %word16, 255
  %other_rank = xor i64 %rank, %right_rank
  %other_size = xor i64 %size, %right_size
  %lacking = xor i64 %flags, -1
  %scattered = and i64 %lacking, %contiguous
  %either = or i64 %other_rank, %other_size
  %wrong = or i64 %either, %scattered
  %fits = icmp eq i64 %wrong, 0
  br i1 %fits, label %read, label %unusual
read:
  %data_at = getelementptr inbounds i8, ptr %object, i64 {offsets.DATA}
  %data = load ptr, ptr %data_at
  store ptr %data, ptr %slot
  %lengths_at = getelementptr inbounds i8, ptr %object, i64 {offsets.LENGTHS}
  %lengths_from = load ptr, ptr %lengths_at
  %behind_lengths = getelementptr inbounds i64, ptr %second, i64 %rank
  br label %length
length:
  %a = phi i64 [ 0, %read ], [ %next_a, %length ]
  %length_at = getelementptr inbounds i64, ptr %lengths_from, i64 %a
  %length_value = load i64, ptr %length_at
  %length_slot = getelementptr inbounds i64, ptr %second, i64 %a
  store i64 %length_value, ptr %length_slot
  %next_a = add nuw nsw i64 %a, 1
  %more_lengths = icmp ult i64 %next_a, %rank
  br i1 %more_lengths, label %length, label %lengths
lengths:
  %without_strides = icmp ne i64 %contiguous, 0
  br i1 %without_strides, label %next, label %with_strides
with_strides:
  %strides_at = getelementptr inbounds i8, ptr %object, i64 {offsets.STRIDES}
  %strides_from = load ptr, ptr %strides_at
  %behind_strides = getelementptr inbounds i64, ptr %behind_lengths, i64 %rank
  br label %stride
stride:
  %b = phi i64 [ 0, %with_strides ], [ %next_b, %stride ]
  %stride_at = getelementptr inbounds i64, ptr %strides_from, i64 %b
  %stride_value = load i64, ptr %stride_at
  %stride_slot = getelementptr inbounds i64, ptr %behind_lengths, i64 %b
  store i64 %stride_value, ptr %stride_slot
  %next_b = add nuw nsw i64 %b, 1
  %more_strides = icmp ult i64 %next_b, %rank
  br i1 %more_strides, label %stride, label %strides
strides:
  br label %next

float:
  %float_value = call double @PyFloat_AsDouble(ptr %object)
  store double %float_value, ptr %slot
  %float_fine = fcmp une double %float_value, -1.0
  br i1 %float_fine, label %float_taken, label %raised
float_taken:
  br label %next
int:
  %int_value = call i64 @PyLong_AsLongLong(ptr %object)
  br label %integer
unsigned:
  %unsigned_value = call i64 @PyLong_AsUnsignedLongLong(ptr %object)
  br label %integer
integer:
  %integer_value = phi i64 [ %int_value, %int ], [ %unsigned_value, %unsigned ]
  store i64 %integer_value, ptr %slot
  %integer_fine = icmp ne i64 %integer_value, -1
  br i1 %integer_fine, label %taken, label %raised
bool:
  %truth = call i32 @PyObject_IsTrue(ptr %object)
  %truth_value = sext i32 %truth to i64
  store i64 %truth_value, ptr %slot
  %truth_fine = icmp sge i32 %truth, 0
  br i1 %truth_fine, label %taken, label %raised
taken:
  br label %next
complex:
  %is_complex = call i32 @PyType_IsSubtype(ptr %type, ptr @numgrad_py_complex)
  %complex_fine = icmp ne i32 %is_complex, 0
  br i1 %complex_fine, label %complex_taken, label %unusual
complex_taken:
  %real = call double @PyComplex_RealAsDouble(ptr %object)
  %imag = call double @PyComplex_ImagAsDouble(ptr %object)
  store double %real, ptr %slot
  store double %imag, ptr %second
  %third = getelementptr inbounds i64, ptr %slot, i64 2
  br label %next
raised:
  %error = call ptr @PyErr_Occurred()
  %no_error = icmp eq ptr %error, null
  br i1 %no_error, label %taken, label %forget
forget:
  call void @PyErr_Clear()
  br label %unusual
unusual:
  %slow = load ptr, ptr %slow_at
  %slow_result = call ptr @PyObject_Vectorcall(ptr %slow, ptr %args, i64 %count, ptr null)
  ret ptr %slow_result

call:
  %packed = load ptr, ptr %described
  %nogil = load i64, ptr %nogil_at
  %result_kind = load i64, ptr %result_at
  %with_gil = icmp eq i64 %nogil, 0
  br i1 %with_gil, label %holding, label %released
holding:
  %failed_holding = call i32 %packed(ptr %slots)
  br label %called
released:
  %thread = call ptr @PyEval_SaveThread()
  %failed_released = call i32 %packed(ptr %slots)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %called
called:
  %failed = phi i32 [ %failed_holding, %holding ], [ %failed_released, %released ]
  %done = icmp eq i32 %failed, 0
  br i1 %done, label %result, label %memory
memory:
  %null = call ptr @PyErr_NoMemory()
  ret ptr null
result:
  %result_float = load double, ptr %slot
  %result_integer = load i64, ptr %slot
  switch i64 %result_kind, label %none [
    i64 {_FLOAT}, label %return_float
    i64 {_INT}, label %return_int
    i64 {_UNSIGNED}, label %return_unsigned
    i64 {_BOOL}, label %return_bool
    i64 {_COMPLEX}, label %return_complex
  ]
none:
  call void @Py_IncRef(ptr @numgrad_py_none)
  ret ptr @numgrad_py_none
return_float:
  %new_float = call ptr @PyFloat_FromDouble(double %result_float)
  ret ptr %new_float
return_int:
  %new_int = call ptr @PyLong_FromLongLong(i64 %result_integer)
  ret ptr %new_int
return_unsigned:
  %new_unsigned = call ptr @PyLong_FromUnsignedLongLong(i64 %result_integer)
  ret ptr %new_unsigned
return_bool:
  %new_bool = call ptr @PyBool_FromLong(i64 %result_integer)
  ret ptr %new_bool
return_complex:
  %imag_at = getelementptr inbounds i64, ptr %slot, i64 1
  %result_imag = load double, ptr %imag_at
  %new_complex = call ptr @PyComplex_FromDoubles(double %result_float, double %result_imag)
  ret ptr %new_complex
}}
"""


@cache
def _module() -> machine.SharedModule:
    return machine.SharedModule("entry", _text())


def prepare() -> None:
    """Compile the entry, if it is not on disk, while a kernel is compiled."""
    if offsets.is_readable():
        _module()


@cache
def _address() -> int:
    """Where the entry of all kernels is."""
    _module().finish()
    return machine.load(_module().payload)["entry"]


def python_function(
    name: str, signature: Signature, packed: int, slow: Callable[..., Any], nogil: bool
) -> Callable[..., Any]:
    """A built-in function of Python that calls a kernel, or ``slow`` with unusual arguments."""
    return c_api.builtin(name, _address(), _description(signature, packed, slow, nogil))


class Launched(NamedTuple):
    """A kernel as its Python function knows it.

    Attributes
    ----------
    packed
        Where its packed form is: Note [Entries].
    arguments
        For each its kind, as the dtype's or ``a`` for an array, with rank, bytes of an element, and
        whether an array must be contiguous.
    """

    packed: int
    arguments: tuple[tuple[str, int, int, bool], ...]


def launched(function: Any) -> Launched | None:
    """Describe what a kernel's Python function calls, if it returns nothing and holds the lock."""
    own = getattr(function, "__self__", None)
    if type(own) is not _Description or not offsets.is_readable():
        return None
    packed, _, count, _, nogil, result, *words = struct.unpack(f"{len(own) // 8}q", own)
    if nogil or result != _NO_RESULT or len(words) != count:
        return None
    letters = dict(zip(_KINDS.values(), _KINDS, strict=True)) | {_ARRAY: "a"}
    return Launched(
        packed,
        tuple([(letters[w & 255], w >> 8 & 255, w >> 16 & 255, bool(w >> 24)) for w in words]),
    )


# -------------------------------------------------------------------------------- the slow entry


class SlowEntry:
    """Call a kernel with whatever can be converted; say what cannot."""

    __slots__ = ("_owned", "_packed", "name", "nogil", "signature")

    def __init__(
        self, name: str, signature: Signature, packed: int, nogil: bool, owned: Any = None
    ) -> None:
        self.name, self.signature, self.nogil = name, signature, nogil
        self._owned = owned  # the machine code: Note [Lifetime of machine code]
        make = ctypes.CFUNCTYPE if nogil else ctypes.PYFUNCTYPE
        self._packed = make(ctypes.c_int32, ctypes.c_char_p)(packed)

    def __call__(self, *arguments: Any) -> Any:
        expected = self.signature.arguments
        if len(arguments) != len(expected):
            raise NumgradTypeError(
                f"kernel {self.name} takes {len(expected)} arguments, got {len(arguments)}"
            )
        slots = bytearray()
        for number, (argument, value) in enumerate(zip(expected, arguments, strict=True)):
            if argument.rank is None:
                slots += self._scalar(number, argument.dtype, value)
            else:
                slots += self._array(number, argument, value)
        buffer = ctypes.create_string_buffer(bytes(slots), len(slots) + 16)
        if self._packed(buffer):
            raise MemoryError
        return _unpacked(self.signature.result, buffer.raw[-16:])

    def _array(self, number: int, argument: Argument, array: Any) -> bytes:
        if (
            not isinstance(array, np.ndarray)
            or array.ndim != argument.rank
            or array.itemsize != argument.dtype.itemsize
            or (argument.contiguous and not array.flags.c_contiguous)
        ):
            description = (
                f"shape {array.shape}, strides {array.strides} and dtype {array.dtype}"
                if isinstance(array, np.ndarray)
                else type(array).__name__
            )
            raise NumgradTypeError(
                f"kernel {self.name}: argument {number + 1} must be {argument}, got {description}"
            )
        strides = () if argument.contiguous else array.strides
        words = (array.__array_interface__["data"][0], *array.shape, *strides)
        return struct.pack(f"{len(words)}q", *words)

    def _scalar(self, number: int, dtype: np.dtype, value: Any) -> bytes:
        try:
            if dtype.kind == "c":
                element = complex(value)
                return struct.pack("2d", element.real, element.imag)
            if dtype.kind == "f":
                return struct.pack("d", float(value))
            if dtype.kind == "b":
                return struct.pack("q", bool(value))
            return struct.pack("Q" if dtype.kind == "u" else "q", int(value))
        except (TypeError, ValueError, OverflowError, struct.error) as error:
            raise NumgradTypeError(
                f"kernel {self.name}: argument {number + 1} must be a {dtype} number, got "
                f"{type(value).__name__} {value!r:.40}"
            ) from error


def _unpacked(dtype: np.dtype | None, slots: bytes) -> Any:
    """The result as a Python number, from the two slots that it may take."""
    if dtype is None:
        return None
    if dtype.kind == "c":
        return complex(*struct.unpack("2d", slots))
    (value,) = struct.unpack_from({"f": "d", "u": "Q"}.get(dtype.kind, "q"), slots)
    return bool(value) if dtype.kind == "b" else value
