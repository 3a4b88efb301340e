"""Native functions, as ``ng.jit(f).native(...)`` makes them, and how others call them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from numgrad.autograd.forward_ad import has_tangent
from numgrad.autograd.variable import Tensor
from numgrad.codegen.c_entry import STATUS, CArgument, c_type
from numgrad.compiler.call.signature import MISSING, STATIC, Arguments, Parameters
from numgrad.compiler.native.callbacks import low_level_function
from numgrad.compiler.native.program import NativeProgram, Port
from numgrad.core.interpreter import state
from numgrad.core.tree import align, unflatten
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError


class NativeFunction:
    """A compiled function as machine code that C, Numba and SciPy call.

    Calling it from Python computes the same, for trying it out. Results must not overlap in memory
    with each other or with arguments. It is reentrant, runs in the thread that calls it, and stays
    as long as the process.

    Attributes
    ----------
    address
        Where the function is.
    inputs, outputs
        Names, dtypes and shapes of what goes in and comes out, in the order of the leaves of
        arguments and results.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> @ng.jit
    ... def energy(x):
    ...     return ng.value_and_grad(lambda x: np.sum(x * x))(x)
    >>> native = energy.native(np.zeros(3))
    >>> print(native.declaration)
    int32_t energy(const double *x, int64_t x_length, double *result_0, double *result_1);
    >>> native(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """

    def __init__(
        self,
        program: NativeProgram,
        parameters: Parameters,
        examples: Arguments,
        whole: Callable[..., Any],
    ) -> None:
        self._program, self._parameters, self._whole = program, parameters, whole
        self._examples = examples
        self.address = program.address
        self.inputs: list[Port] = program.inputs
        self.outputs: list[Port] = program.outputs
        self.axes, self.fixed_lengths = program.axes, program.lengths

    # ---------------------------------------------------------------------------------- signature

    @property
    def arguments(self) -> list[CArgument]:
        """The arguments of the C function."""
        return self._program.arguments

    @property
    def declaration(self) -> str:
        """The declaration in C; the status that it returns is 0 or a key of ``messages``."""
        given = [text for argument in self.arguments for text in argument.declarations()]
        return f"int32_t {self._program.name}({', '.join(given)});"

    @property
    def messages(self) -> dict[int, str]:
        """Messages of statuses other than 0."""
        return dict(STATUS)

    @cached_property
    def ctypes(self) -> Any:
        """The function for `ctypes`; pointers are addresses, such as ``x.ctypes.data``."""
        kinds: list[Any] = []
        for argument in self.arguments:
            one = ctypes.c_void_p if argument.is_pointer else _ctype(argument.dtype)
            kinds += [one] * (1 if argument.is_pointer or argument.dtype.kind != "c" else 2)
        function = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(self.address)
        function.owner = self  # pyright: ignore
        return function

    @property
    def cffi(self) -> Any:
        """The function for `cffi`, as a pointer."""
        try:
            import cffi  # pyright: ignore
        except ImportError as error:
            raise NumgradRuntimeError("cffi: is not installed; pip install cffi") from error
        given = [text for argument in self.arguments for text in argument.declarations()]
        return cffi.FFI().cast(f"int32_t (*)({', '.join(given)})", self.address)

    def __reduce__(self) -> Any:
        raise NumgradTypeError(
            f"{self._program.name}: a native function is machine code of this process; make it "
            "again where it is needed, of the compiled function"
        )

    def __repr__(self) -> str:
        lines = [f"native {self._program.name}, {self.declaration}"]
        for word, ports in (("takes", self.inputs), ("gives", self.outputs)):
            lines += [f"  {word} {p.path}: {p.dtype} {self._extents(p)}" for p in ports]
        return "\n".join(lines)

    def _extents(self, port: Port) -> str:
        if port.shape is None:
            return "number"
        from numgrad.codegen.nests.polynomial import text_of

        names = {k: self.length_name(k) for k in self.axes}
        known = self.fixed_lengths
        parts = [text_of(n, lambda k: names.get(k, str(known.get(k)))) for n in port.shape]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def length_name(self, axis: int) -> str:
        """The name of the argument that is the length of an axis."""
        number, position = self.axes[axis]
        port = self.inputs[number]
        return f"{port.name}_length{position if len(port.shape or ()) > 1 else ''}"

    # --------------------------------------------------------------------------------------- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute as the compiled function does, with arrays of the dtypes of the examples."""
        arrays = self.checked(self._leaves(self._parameters.bind(args, kwargs)), self.inputs)
        lengths = dict(self.fixed_lengths)
        for symbol, (number, axis) in self.axes.items():
            lengths[symbol] = arrays[number].shape[axis]
        self._program.check(arrays, lengths)
        results = [np.empty(self._program.shape(o, lengths), o.dtype) for o in self.outputs]
        status = self.ctypes(*self._passed(arrays, lengths, results))
        if status == 3:
            return self._whole(*args, **kwargs)  # which raises the error of that operation
        if status:
            raise NumgradRuntimeError(f"{self._program.name}: {STATUS[status]}")
        return self._nested(results)

    def _leaves(self, values: Sequence[Any]) -> list[Any]:
        """Arrays and numbers among arguments that are nested as the examples."""
        name, examples, leaves = self._program.name, self._examples, []
        if state.interpreters or state.ground.deferred:
            raise NumgradTypeError(
                f"{name}: a native function computes with numbers, and this call is traced or "
                "mapped; call the compiled function"
            )
        for parameter, nesting, value in zip(
            self._parameters.names, examples.nestings, values, strict=True
        ):
            if (nesting is None) != (value is MISSING):
                was = "not given" if nesting is None else "given"
                raise NumgradTypeError(f"{name}: {parameter} was {was} in the examples")
            where = None if nesting is None else align(nesting[0], value, leaves, parameter)
            if where is not None:
                raise NumgradTypeError(f"{name}: {where} is nested otherwise than in the examples")
        numeric = []
        for leaf, example in zip(leaves, examples.leaves, strict=True):
            if example.kind == STATIC:
                if type(leaf) is not type(example.value) or leaf != example.value:
                    raise NumgradValueError(
                        f"{name}: {example.path} is the constant {example.value!r} of the "
                        f"examples, not {leaf!r}"
                    )
            elif isinstance(leaf, Tensor):
                if leaf.requires_grad or has_tangent(leaf):
                    raise NumgradTypeError(
                        f"{name}: {example.path} is differentiated, and a native function records "
                        "nothing; call the compiled function"
                    )
                numeric.append(leaf._array)
            else:
                numeric.append(leaf)
        return numeric

    def checked(self, leaves: Sequence[Any], ports: Sequence[Port]) -> list[Any]:
        """Arguments as contiguous arrays of the right dtypes."""
        if len(leaves) != len(ports):
            raise NumgradTypeError(
                f"{self._program.name}: {len(leaves)} arrays and numbers, of {len(ports)}"
            )
        arrays = []
        for port, leaf in zip(ports, leaves, strict=True):
            array, rank = np.asarray(leaf), len(port.shape or ())
            held = array.dtype == port.dtype
            if not held and not isinstance(leaf, np.ndarray) and array.dtype.kind in "biufc":
                held = np.can_cast(array.dtype, port.dtype, "same_kind")
                if held and array.dtype.kind in "biu" and port.dtype.kind in "iu":
                    limits = np.iinfo(port.dtype)
                    held = bool(np.all((array >= limits.min) & (array <= limits.max)))
            if array.ndim != rank or not held:
                seen = f"{leaf!r}" if array.ndim == 0 else f"of shape {array.shape}"
                raise NumgradTypeError(
                    f"{self._program.name}: {port.path} is {seen}, of dtype {array.dtype} with "
                    f"{array.ndim} axes, in the examples of {port.dtype} with {rank}"
                )
            arrays.append(np.array(array, port.dtype, order="C", copy=None))
        return arrays

    def _passed(
        self, arrays: Sequence[Any], lengths: dict[int, int], results: Sequence[Any]
    ) -> list[Any]:
        """The arguments of the C function."""
        given, made = iter(arrays), iter(results)
        symbols = iter(self.axes)
        passed: list[Any] = []
        for argument in self.arguments:
            if argument.role == "length":
                passed.append(lengths[next(symbols)])
            elif argument.role == "result":
                passed.append(next(made).ctypes.data)
            elif argument.role == "array":
                passed.append(next(given).ctypes.data)
            else:
                value = next(given)[()]
                parts = (value.real, value.imag) if argument.dtype.kind == "c" else (value,)
                passed += [part.item() for part in parts]
        return passed

    def _nested(self, results: Sequence[Any]) -> Any:
        program, made, leaves = self._program, iter(results), []
        for returned, result in zip(program.returned, program.layout.results, strict=True):
            if returned is None:
                leaves.append(result.constant)
            else:
                array = next(made)
                leaves.append(array.item() if returned.weak else array if array.ndim else array[()])
        return unflatten(program.layout.nesting, iter(leaves))

    # ------------------------------------------------------------------------------- other callers

    @cached_property
    def njit(self) -> Any:
        """The function for Numba's compiled code: arrays and numbers in, new arrays out.

        It takes the leaves of the arguments and returns the leaves of the results, a tuple where
        there are several. Arrays that are not contiguous are copied. It may be called in
        ``prange``; code that calls it cannot be kept on disk, as it has an address in it.

        Examples
        --------
        >>> import numba, numpy as np, numgrad as ng
        >>> slope = ng.jit(ng.grad(lambda x: np.sum(x**3))).native(np.zeros(2)).njit
        >>> @numba.njit
        ... def descend(x, steps):
        ...     for _ in range(steps):
        ...         x = x - 0.1 * slope(x)
        ...     return x
        >>> descend(np.array([1.0, 2.0]), 3).round(6)
        array([0.461257, 0.497101])
        """
        return self._for_numba(into=False)

    @cached_property
    def njit_into(self) -> Any:
        """The same, with the arrays to write results to as further arguments.

        They are contiguous, of the right lengths, and overlap with nothing. Returns results that
        are numbers.
        """
        return self._for_numba(into=True)

    def _for_numba(self, into: bool) -> Any:
        from numgrad.codegen.numba_entry import numba_function

        program = self._program
        pairs = zip(program.returned, program.layout.results, strict=True)
        return numba_function(
            program.name, self.address, self.arguments,
            [p.shape for p in self.inputs], [p.shape for p in self.outputs],
            self.axes, self.fixed_lengths, [(r is None, result.constant) for r, result in pairs],
            into=into,
        )  # fmt: skip

    def low_level_callable(self, signature: str, *rest: Any) -> Any:
        """The function as a ``scipy.LowLevelCallable``.

        Parameters
        ----------
        signature
            ``"double(double)"``, ``"double(double, void *)"``, ``"double(int, double *)"`` or
            ``"double(int, double *, void *)"``, for `scipy.integrate.quad` and `nquad`: the first
            inputs, which are numbers, get what is integrated over.
            ``"int(double *, intptr_t, double *, void *)"``, for `scipy.ndimage.generic_filter`: the
            first input is the array of a window.
        *rest
            Values for the inputs that the caller of the signature has nothing for; they are copied.

        Raises
        ------
        NumgradTypeError, NumgradValueError
            If inputs or the output do not fit the signature.

        Notes
        -----
        Where the status is not 0 the value is NaN.
        """
        return low_level_function(self, signature, rest)


def _ctype(dtype: np.dtype) -> Any:
    """The type of a number, or of one part of a complex one, for ctypes."""
    if dtype.kind == "c":
        dtype = np.dtype(f"f{dtype.itemsize // 2}")
    return ctypes.c_uint8 if c_type(dtype) == "uint8_t" else np.ctypeslib.as_ctypes_type(dtype)
