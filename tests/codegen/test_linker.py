"""Functions of SciPy's found by name and types, whatever its version calls them."""

import ctypes
import types

import numpy as np
import pytest
import scipy

import numgrad as ng
import numgrad.kernels.differences
import numgrad.kernels.scipy_functions
from numgrad.codegen import library, linker

SPECIAL = "scipy.special.cython_special:"
NAMED = sorted({external for externals in library.EXTERNALS.values() for external in externals})
_KEPT = []  # a capsule does not copy its name


def _capsule(declaration, address):
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    _KEPT.append(declaration.encode())
    return make(address, _KEPT[-1], None)


def _module(**exports):
    """A Cython module that exports addresses under names, each with its types."""
    capi = {name: _capsule(*given) for name, given in exports.items()}
    return types.SimpleNamespace(__name__="scipy.special.cython_special", __pyx_capi__=capi)


REAL = "double (double, double, int __pyx_skip_dispatch)"
SINGLE = "float (float, float, int __pyx_skip_dispatch)"
COMPLEX = "__pyx_t_double_complex (double, __pyx_t_double_complex, int __pyx_skip_dispatch)"


@pytest.mark.parametrize(
    "exports",
    [
        {"stdtr": (REAL, 7)},  # SciPy 1.16 and before
        {"__pyx_fuse_0stdtr": (REAL, 7), "__pyx_fuse_1stdtr": (SINGLE, 8)},  # 1.17
        {"__pyx_fuse_1stdtr": (REAL, 7), "__pyx_fuse_0stdtr": (COMPLEX, 8)},
        {"__pyx_fuse_0_1stdtr": (REAL, 7), "__pyx_fuse_0_0stdtr": (COMPLEX, 8)},
    ],
)
def test_a_function_is_found_by_its_types_whatever_its_number(exports):
    module = _module(stdtrit=(REAL, 1), astdtr=(REAL, 2), **exports)
    assert linker._exported(module, "stdtr(float64, float64)") == 7


def test_of_the_forms_for_integers_the_widest_is_called():
    tail = "double, int __pyx_skip_dispatch)"
    forms = {
        "__pyx_fuse_0kn": (f"double (double, {tail}", 1),
        "__pyx_fuse_1kn": (f"double (long, {tail}", 2),  # of 32 bits on Windows
        "__pyx_fuse_2kn": (f"double (Py_ssize_t, {tail}", 3),
    }
    assert linker._exported(_module(**forms), "kn(int64, float64)") == 3
    del forms["__pyx_fuse_2kn"]
    assert linker._exported(_module(**forms), "kn(int64, float64)") == 2


@pytest.mark.parametrize(
    "exports", [{}, {"__pyx_fuse_0stdtr": (SINGLE, 8)}, {"stdtr": (COMPLEX, 9)}]
)
def test_a_function_that_is_not_there_is_an_error_that_names_it(exports):
    with pytest.raises(ng.NumgradNotImplementedError) as caught:
        linker._exported(_module(**exports), "stdtr(float64, float64)")
    for part in ("stdtr", scipy.__version__, "float64, float64", "scipy>="):
        assert part in str(caught.value)


def test_it_alone_is_an_error(monkeypatch):
    """Others of the library go on, and it too once it is there."""
    import scipy.special
    import scipy.special.cython_special as compiled

    lacking = {k: v for k, v in compiled.__pyx_capi__.items() if "elliprf" not in k}
    other = types.SimpleNamespace(__name__=compiled.__name__, __pyx_capi__=lacking)
    x = np.array([0.5, 1.25])
    with_it = ng.jit(lambda x: ng.special.elliprf(x, x + 0.375, x + 2.0625) * 1.8125)
    without = ng.jit(lambda x: ng.special.elliprc(x, x + 0.375) * 1.8125)
    with monkeypatch.context() as patch:
        patch.setattr(linker, "_extension", lambda name: other)
        patch.setattr(linker, "_linked", set())
        with pytest.raises(NotImplementedError, match=r"elliprf.*SciPy"):
            with_it(x)
        np.testing.assert_allclose(without(x), scipy.special.elliprc(x, x + 0.375) * 1.8125)
    expected = scipy.special.elliprf(x, x + 0.375, x + 2.0625) * 1.8125
    np.testing.assert_allclose(with_it(x), expected)


def test_the_installed_scipy_has_them():
    module = linker._extension("scipy.special.cython_special")
    for external in [e for e in NAMED if e.startswith(SPECIAL)]:
        assert linker._exported(module, external.removeprefix(SPECIAL)), external


def test_the_table_is_large():
    assert len([e for e in NAMED if e.startswith(SPECIAL)]) > 190
