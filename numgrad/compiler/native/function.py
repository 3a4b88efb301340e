"""Native functions, as ``ng.jit(f).native(...)`` makes them, and how others call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from numgrad.autograd.forward_ad import has_tangent
from numgrad.autograd.variable import Tensor
from numgrad.codegen.c_entry import NativeModule, adapter, load_entry
from numgrad.codegen.c_library import ExportedFunction
from numgrad.compiler.call.signature import MISSING, STATIC, Arguments, Parameters
from numgrad.compiler.native.callbacks import low_level_function
from numgrad.compiler.native.program import NativeProgram
from numgrad.core.interpreter import state
from numgrad.core.tree import align, unflatten
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError


class NativeFunction(ExportedFunction):
    """A compiled function as machine code that C, Numba and SciPy call.

    Calling it from Python computes the same, for trying it out. Results must not overlap in memory
    with each other or with arguments, which only donated ones are overwritten for. It is reentrant,
    runs in the thread that calls it, and stays as long as the process. Ctrl-C waits until a call
    returns, so loops that may not end need a limit of their steps.

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

    type_error, value_error = NumgradTypeError, NumgradValueError
    run_time_error = NumgradRuntimeError

    def __init__(
        self,
        program: NativeProgram,
        parameters: Parameters,
        examples: Arguments,
        whole: Callable[..., Any],
    ) -> None:
        super().__init__(program.about, program.address)
        self.program, self._parameters, self._whole = program, parameters, whole
        self.examples = examples

    def __reduce__(self) -> Any:
        raise NumgradTypeError(
            f"{self.name}: a native function is machine code of this process; make it "
            "again where it is needed, of the compiled function, or export it to a file"
        )

    @cached_property
    def workspace_size(self) -> int | None:
        """Bytes that a call with the examples needs; None without a workspace."""
        if not self.program.module.workspace:
            return None
        given = [leaf.array for leaf in self.examples.leaves if leaf.kind != STATIC]
        return self._bytes_for(given)[1]

    # --------------------------------------------------------------------------------------- calls

    def _failed(self, status: int, args: Any, kwargs: Any) -> Any:
        if status == 3:
            return self._whole(*args, **kwargs)  # which raises the error of that operation
        return super()._failed(status, args, kwargs)

    def _leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        name, examples, leaves = self.name, self.examples, []
        values = self._parameters.bind(args, kwargs)
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

    def _nested(self, results: Sequence[Any]) -> Any:
        layout, made = self.program.layout, iter(self._numbers(results))
        leaves = [
            result.constant if returned is None else next(made)
            for returned, result in zip(self.program.returned, layout.results, strict=True)
        ]
        return unflatten(layout.nesting, iter(leaves))

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
        are numbers. A function of ``workspace=True`` takes last an array of one axis, whose memory
        it uses, or None.
        """
        return self._for_numba(into=True)

    def _for_numba(self, into: bool) -> Any:
        from numgrad.codegen.numba_entry import numba_function

        program = self.program
        pairs = zip(program.returned, program.layout.results, strict=True)
        return numba_function(
            self, [(r is None, result.constant) for r, result in pairs], into=into
        )

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
        Where the status is not 0 the value is NaN, also for other numbers of variables than the
        function has inputs left.
        """
        return low_level_function(self, signature, rest, self._adapter)

    def _adapter(self, form: str) -> int:
        """The address of a callback."""
        module, called = NativeModule(), "called_function"
        module.texts = [adapter(form, self.program.arguments, "native", f"@{called}")]
        return load_entry(module, {called: self.address})
