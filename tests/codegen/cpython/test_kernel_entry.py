"""Entries of native kernels: the fast and the slow one take and refuse the same."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from numgrad.codegen.cpython import offsets
from numgrad.codegen.cpython.kernel_entry import SlowEntry
from numgrad.codegen.native import kernel, machine
from numgrad.codegen.native.signature import Argument, llvm_type, parse

ECHO = """\
define i32 @body({parameters}) #0 {{
{stores}
  ret i32 {code}
}}
"""


def bound(body: str, signature: str, unique: str, nogil: bool = False) -> list[Callable[..., Any]]:
    """The fast and the slow entry of a body."""
    payload = kernel.assemble(body, signature, unique, verify=True)
    fast = kernel.bind(payload, unique, signature, nogil=nogil)
    slow = SlowEntry(unique, parse(signature), machine.load(payload)["packed"], nogil)
    return [fast.entry, slow]


def parameters(signature: str) -> str:
    return ", ".join(
        f"{kind} %p{k}" for k, (kind, _, _) in enumerate(parse(signature).parameters())
    )


def echo(signature: str, code: int = 0) -> str:
    """A body that writes its last scalar, widened to memory's form, to its result."""
    stores = []
    flat = parse(signature).parameters()
    last = [k for k, (_, _, role) in enumerate(flat) if role in ("value", "real", "imag")]
    result = len(flat) - 1
    halves = last[-2:] if flat[last[-1]][2] == "imag" else last[-1:]
    for half, k in enumerate(halves):
        kind = flat[k][0]
        stores += [
            f"  %q{half} = getelementptr {kind}, ptr %p{result}, i64 {half}",
            f"  store {kind} %p{k}, ptr %q{half}",
        ]
    return ECHO.format(parameters=parameters(signature), stores="\n".join(stores), code=code)


def test_a_signature_is_read() -> None:
    found = parse("complex64(float64[::1], boolean, int32[:, ::1], uint8[:,:])")
    assert found.result == np.complex64
    assert found.arguments == (
        Argument(np.dtype("f8"), 1, True),
        Argument(np.dtype("?"), None, True),
        Argument(np.dtype("i4"), 2, True),
        Argument(np.dtype("u1"), 2, False),
    )
    roles = [role for _, number, role in found.parameters() if number == 3]
    assert roles == ["data", "length0", "length1", "stride0", "stride1"]
    assert parse("void()").arguments == ()


@pytest.mark.parametrize(
    "text", ["void", "float16()", "void(f8)", "void(float64[::2])", "x(int64)"]
)
def test_a_signature_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(TypeError, match="not understood"):
        parse(text)


@pytest.mark.skipif(not offsets.is_readable(), reason=offsets.obstacle())
def test_this_python_has_the_fast_entry() -> None:
    assert offsets.is_readable()


def test_the_slow_entry_serves_where_the_fast_one_is_not_possible(monkeypatch) -> None:
    monkeypatch.setattr(offsets, "obstacle", lambda: "a reason")
    payload = kernel.assemble(echo("float64(float64)"), "float64(float64)", "only_slow")
    call = kernel.bind(payload, "only_slow", "float64(float64)").entry
    assert type(call) is SlowEntry
    assert call(2.5) == 2.5


@pytest.mark.parametrize("nogil", [False, True])
def test_arrays(nogil: bool) -> None:
    signature = "int64(float64[::1], float32[:,:], uint8[:,:,::1])"
    kinds = parse(signature).parameters()
    numbers = [k for k, (kind, _, _) in enumerate(kinds) if kind == "i64"]
    lines, total = [], "0"
    for weight, k in enumerate(numbers, 1):
        lines += [f"  %m{k} = mul i64 %p{k}, {weight * weight}"]
        lines += [f"  %t{k} = add i64 {total}, %m{k}"]
        total = f"%t{k}"
    body = (
        f"define i32 @body({parameters(signature)}) #0 {{\n"
        + "\n".join(lines)
        + f"\n  store i64 {total}, ptr %p{len(kinds) - 1}\n"
        "  store double 7.0, ptr %p0\n  ret i32 0\n}\n"
    )
    x, y = np.zeros(11), np.zeros((6, 10), "f4")[::2, ::-3]
    z = np.zeros((2, 5, 4), "u1")
    words = [*x.shape, *y.shape, *y.strides, *z.shape]
    expected = sum(word * weight * weight for weight, word in enumerate(words, 1))

    class Sub(np.ndarray):
        pass

    for call in bound(body, signature, f"arrays{nogil:d}", nogil):
        x[0] = 0
        assert call(x, y, z) == expected
        assert x[0] == 7
        assert call(x.view(Sub), y, z) == expected
        for bad in (
            (x, y),
            (x, y, z, z),
            (x, y, z.reshape(10, 4)),
            (x[::2], y, z),
            (x, y.astype("f8"), z),
            (x, y, None),
            (x, [[1.0]], z),
            (x, np.float32(1), z),
        ):
            with pytest.raises(TypeError, match="kernel arrays"):
                call(*bad)


SCALARS = {
    "float64": [0.5, -1.0, 3, np.float64(2.5), np.float32(0.25), np.nan, True, -1],
    "float32": [0.5, -1.0, 1 / 3, np.int64(7)],
    "int64": [5, -1, 2**63 - 1, np.int64(-1), np.int8(3), True, 2.75, np.array(4)],
    "int8": [-1, 100, np.int8(-128)],
    "int16": [-1, 3],
    "int32": [-(2**31)],
    "uint8": [255, np.uint8(3)],
    "uint16": [65535],
    "uint32": [2**32 - 1],
    "uint64": [2**64 - 1, 0, np.uint64(2**64 - 1), np.int64(4)],
    "boolean": [True, False, np.True_, 3, 0.0, None],
    "complex128": [1 + 2j, -1 - 1j, 2.5, 3, np.complex128(1 - 2j), np.complex64(1j)],
    "complex64": [1 + 2j, 1 / 3 + 0.1j],
}


@pytest.mark.parametrize("name", SCALARS)
def test_scalars_and_results(name: str) -> None:
    signature = f"{name}(boolean, {name})"
    dtype = parse(signature).arguments[1].dtype
    for call in bound(echo(signature), signature, f"scalar_{name}"):
        for value in SCALARS[name]:
            with np.errstate(all="ignore"):
                expected = dtype.type(value).item()
            found = call(False, value)
            assert type(found) is type(expected)
            assert found == expected or (found != found and expected != expected)
        for bad in ["x", object(), *([] if name == "boolean" else [None])]:
            if name != "boolean":
                with pytest.raises(TypeError, match=r"argument 2 must be .* number"):
                    call(True, bad)
        if dtype.kind in "iu":
            with pytest.raises(TypeError, match="argument 2"):
                call(True, 2**70)
            with pytest.raises(TypeError, match="argument 2"):
                call(True, -1 if dtype.kind == "u" else -(2**70))


@pytest.mark.parametrize("nogil", [False, True])
def test_memory_that_ran_out_is_said(nogil: bool) -> None:
    signature = "float64(float64)"
    for call in bound(echo(signature, 1), signature, f"memory{nogil:d}", nogil):
        with pytest.raises(MemoryError):
            call(1.0)


def test_other_machine_code_calls_a_kernel_by_numbas_convention() -> None:
    from llvmlite import binding

    signature = "complex64(int64, boolean, complex64)"
    payload = kernel.assemble(echo(signature), signature, "callee", verify=True)
    address = kernel.bind(payload, "callee", signature).address
    assert address
    binding.add_symbol("callee_for_a_test", address)
    caller = """\
declare i32 @callee_for_a_test(ptr, ptr, i64, i8, float, float)
define i32 @body(float %a, float %b, ptr %result) #0 {
  %failed = call i32 @callee_for_a_test(ptr %result, ptr null, i64 1, i8 0, float %a, float %b)
  ret i32 %failed
}
"""
    for call in bound(caller, "complex64(complex64)", "caller"):
        assert call(1.5 - 2.25j) == 1.5 - 2.25j
    arrays = kernel.assemble(
        "define i32 @body(ptr %a, i64 %n) { ret i32 0 }", "void(int64[::1])", "n"
    )
    assert kernel.bind(arrays, "n", "void(int64[::1])").address is None


def test_the_entry_keeps_references() -> None:
    body = "define i32 @body(ptr %a, i64 %n, double %x) { ret i32 0 }"
    x, number = np.zeros(3), 1234567.0
    for call in bound(body, "void(float64[::1], float64)", "references"):
        before = sys.getrefcount(x), sys.getrefcount(number)
        for _ in range(1000):
            assert call(x, number) is None
        assert (sys.getrefcount(x), sys.getrefcount(number)) == before


NOTHING = "define i32 @body() { ret i32 0 }"


def test_a_symbol_that_is_nowhere_is_an_error() -> None:
    call = "call void @no_such_thing() ret"
    body = f"declare void @no_such_thing()\n{NOTHING.replace('ret', call)}"
    payload = kernel.assemble(body, "void()", "lost")
    with pytest.raises(machine.Unresolved, match="no_such_thing"):
        kernel.bind(payload, "lost", "void()")


def test_text_that_is_not_llvms_is_an_error() -> None:
    with pytest.raises(RuntimeError):
        kernel.assemble("define i32 @body() { ret i64 0 }", "void()", "wrong")


def test_the_same_object_may_be_loaded_twice_and_names_be_alike() -> None:
    text = """\
@table = private constant [2 x double] [double {0}, double 0.0]
define private double @helper(double %x) noinline {{
  %t = load double, ptr @table
  %y = fmul double %x, %t
  ret double %y
}}
define i32 @body(double %x, ptr %r) {{
  %y = call double @helper(double %x)
  store double %y, ptr %r
  ret i32 0
}}
"""
    signature = "float64(float64)"
    payloads = [kernel.assemble(text.format(f"{k}.0"), signature, f"alike{k}") for k in (2, 3)]
    calls = [kernel.bind(payloads[k], "alike", signature).entry for k in (0, 1, 0, 1)]
    assert [call(5.0) for call in calls] == [10.0, 15.0, 10.0, 15.0]


def run(program: str, given: bytes = b"", **environment: str) -> str:
    """What a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=given,
        capture_output=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr.decode()
    assert not done.stderr
    return done.stdout.decode()


WITHOUT_NUMBA = """\
import sys
import numpy as np
from numgrad.codegen.native import machine, kernel
signature = "void(float64[::1])"
x, y = np.zeros(2), np.zeros(2)
kernel.bind(sys.stdin.buffer.read(), "three", signature).entry(x)
body = "define i32 @body(ptr %a, i64 %n) { store double 4.0, ptr %a ret i32 0 }"
kernel.bind(kernel.assemble(body, signature, "four"), "four", signature).entry(y)
print(x[0], y[0], "numba" in sys.modules)
"""


def test_another_process_without_numba_loads_what_one_compiled() -> None:
    body = "define i32 @body(ptr %a, i64 %n) { store double 3.0, ptr %a ret i32 0 }"
    payload = kernel.assemble(body, "void(float64[::1])", "three")
    assert run(WITHOUT_NUMBA, payload) == "3.0 4.0 False\n"


def test_the_stamp_knows_the_cpu_that_the_user_chose() -> None:
    program = "from numgrad.codegen.native import machine as m; print(m.stamp(), m.vector_bits())"
    generic = run(program, NUMBA_CPU_NAME="generic")
    assert generic.split()[-2:] == ["generic", "128"]
    wide = run(program, NUMBA_CPU_FEATURES="+avx512f,+avx2")
    assert wide.split()[-2:] == ["+avx512f,+avx2", "512"]
    assert machine.stamp() == machine.stamp()
    assert machine.stamp() not in (generic, wide)


def test_llvms_name_of_a_number() -> None:
    names = [llvm_type(np.dtype(code)) for code in ("?", "i2", "u8", "f4", "f8", "c8", "c16")]
    assert names == ["i8", "i16", "i64", "float", "double", "float", "double"]
