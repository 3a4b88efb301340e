"""The table of functions: nothing of NumPy's or SciPy's is missing silently."""

import numpy as np
import pytest
import scipy.special

import numgrad as ng
from numgrad.cli import main, table
from numgrad.tensors import missing


@pytest.fixture(scope="module")
def rows():
    return {module: list(table.rows(module)) for module in table.MODULES}


def test_every_function_is_an_operation_or_has_a_reason(rows):
    missing = [
        f"{module}.{row.function}"
        for module in table.MODULES
        for row in rows[module]
        if row.gradient != "yes" and not row.reason
    ]
    assert not missing


def test_what_the_table_says_is_so(rows):
    found = {row.function: row for row in rows["numpy"]}
    assert found["exp"].cells[1:6] == ("yes", "yes", "yes", "yes", "in the loop")
    assert found["concatenate"].value == "yes"
    assert found["multiply"].gradient == "yes"
    assert found["argmax"].gradient == ""
    assert found["argmax"].reason == "has no derivative by its nature"
    assert found["put"].value == "in place"
    assert found["linspace"].jit == "its parts"
    assert "integers" in found["packbits"].reason
    for name in ("median", "einsum", "trapezoid"):  # composed of others, which have formulas
        assert found[name].cells[2:5] == ("yes", "yes", "yes")
    linalg = [row for row in rows["numpy.linalg"] if row.has_operation]
    assert [row.function for row in linalg if row.gradient != "yes"] == ["matrix_rank"]
    special = {row.function: row for row in rows["scipy.special"]}
    assert special["expit"].gradient == "yes"
    x = ng.tensor([0.5, 1.5], requires_grad=True)
    for row in rows["numpy"]:  # one operand will do for those of NumPy's ufuncs that have one
        ufunc = getattr(np, row.function)
        if isinstance(ufunc, np.ufunc) and (ufunc.nin, ufunc.nout) == (1, 1) and row.gradient:
            out = ufunc(np.tanh(x)) if row.function != "arccosh" else ufunc(x + 1)
            assert out.requires_grad or out.dtype.kind != "f", row


def test_what_the_table_has_of_scipy_has_a_face_of_ours(rows):
    lacking = [
        f"{name}.{row.function}"
        for name in ("special", "linalg", "fft", "signal", "ndimage")
        for row in rows[f"scipy.{name}"]
        if row.value.startswith("yes") and not hasattr(getattr(ng, name), row.function)
    ]
    assert not lacking


@pytest.mark.parametrize("name", table.BY_NUMBERS)
def test_what_the_table_says_is_refused_is(name):
    def call(x):
        function = getattr(np, name)
        return (
            function(x, x) if name.endswith("1d") or name in ("extract", "polydiv") else function(x)
        )

    x = np.array([1, 2, 2])
    call(ng.tensor(x))
    with pytest.raises(ng.NumgradTraceError):
        ng.jit(call)(x)


def test_what_has_derivatives_by_one_operand_alone():
    x = ng.tensor([1.0, 2.0, 2.5], requires_grad=True)
    assert not np.histogram(x)[0].requires_grad
    assert np.histogram(x.detach(), weights=x)[0].requires_grad
    assert not np.setdiff1d(x.detach(), x[:1]).requires_grad


def test_every_reason_is_about_something():
    import importlib

    not_everywhere = {  # in some versions of NumPy and SciPy
        *("row_stack", "trapz", "in1d", "clpmn", "lpmn", "lpn", "sph_harm"),
        *("whittaker_henderson", "closest_STFT_dual_window", "vectorized_filter"),
    }
    for module, found in missing._REASONS.items():
        names = dir(importlib.import_module(module))
        for patterns in found.values():
            for pattern in patterns.split():
                there = any(missing.fnmatchcase(name, pattern) for name in names)
                assert there or pattern in not_everywhere, pattern


def test_a_function_without_an_operation_says_so():
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(TypeError, match=r"smirnov: has no gradient.*nothing here gives the same"):
        scipy.special.smirnov(3.0, x)


def test_the_command_writes_the_table(tmp_path, capsys):
    target = tmp_path / "table.md"
    assert main(["table", "--module", "numpy.linalg", "--output", str(target)]) == 0
    assert "| matmul | yes | yes |" in target.read_text()
    assert main(["table", "--module", "numpy.lib.stride_tricks"]) == 0
    assert "| sliding_window_view | yes |" in capsys.readouterr().out


def test_without_options_modules_are_counted(capsys):
    assert main(["table"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(table.MODULES)
    assert head.split()[:2] == ["module", "functions"]
    counted = {line.split()[0]: [int(n) for n in line.split()[1:]] for line in lines}
    public = [n for n in dir(np.linalg) if n[0] != "_" and callable(getattr(np.linalg, n))]
    functions = [n for n in public if not isinstance(getattr(np.linalg, n), type)]
    assert counted["numpy.linalg"][0] == len(functions)
    for total, some, gradient, native, without in counted.values():
        assert some + without == total
        assert max(gradient, native) <= total


def test_what_is_missing_is_listed_also_as_html(tmp_path, capsys):
    assert main(["table", "--missing", "--module", "numpy"]) == 0
    text = capsys.readouterr().out
    assert "| packbits |" in text
    assert "| exp |" not in text
    target = tmp_path / "table.html"
    assert main(["table", "--html", "--module", "numpy", "--output", str(target)]) == 0
    text = target.read_text()
    assert "<td>exp</td><td>yes</td>" in text
    assert text.count("<tr>") == text.count("</tr>") > 300
