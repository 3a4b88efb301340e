"""Every public operation is documented, and ``help`` shows what its declaration says.

The examples are run by ``pytest --doctest-modules numgrad``.
"""

import doctest
import inspect
import pydoc
import subprocess
import sys

import numpy as np

import numgrad as ng
from numgrad.core import documentation
from numgrad.core.declare import composite, elementwise
from numgrad.core.documentation import expression
from numgrad.core.op import OPS
from numgrad.nn import operations as _operations  # noqa: F401 (whose examples count too)

PUBLIC = [
    op for op in OPS.values() if not op.internal and op.function.__module__.startswith("numgrad.")
]


def test_authors_wrote_what_cannot_be_derived():
    lacking = {op.name: missing for op in PUBLIC if (missing := documentation.missing(op))}
    assert not lacking, f"write into their docstrings: {lacking}"


def test_what_an_author_left_out_is_found():
    @composite(register=False)
    def careless(x, strength=1.0):
        """Does something"""

    assert documentation.missing(careless) == [
        "a summary sentence",
        "an example",
        "a description of the result",
        "a description of strength",
    ]


def test_pages():
    for op in PUBLIC:
        page = inspect.getdoc(op)
        assert page is not None, op.name
        assert page.startswith(f"{op.name}{inspect.signature(op)}\n\n{documentation.summary(op)}")
        places = [
            page.index(f"\n\n{title}\n{'-' * len(title)}\n")
            for title in ("Parameters", "Returns", "Gradient", "Notes", "Examples")
        ]
        assert places == sorted(places), op.name
        assert "is not available" not in page, op.name
        gradient = page[places[2] : places[3]]
        if op.composed:  # "asking for it raises" would be untrue
            assert "raises" not in gradient or op.declared, op.name
            continue
        for formula in op.formulas:
            assert formula in gradient.replace(" :", "").replace(",", "").split(), op.name


def test_examples_are_found_by_doctest():
    modules = {op.function.__module__ for op in PUBLIC}
    tests = [t for name in modules for t in doctest.DocTestFinder().find(sys.modules[name])]
    found = {test.name for test in tests if test.examples}
    for op in PUBLIC:
        home = sys.modules[op.function.__module__]
        names = {f"{home.__name__}.{name}" for name, value in vars(home).items() if value is op}
        assert names & found


def test_help():
    text = pydoc.plain(pydoc.render_doc(ng.softmax))
    assert [line.rstrip() for line in text.splitlines()[2:7]] == [
        "softmax = <numgrad operation softmax(x, axis)>",
        "    softmax(x, axis=-1)",
        "",
        "    Exponentials divided by their sum over axes.",
        "",
    ]
    assert "axis : int or tuple of ints, default -1" in text
    assert "x : ``np.conj(y) * (g - np.sum(g * np.conj(y), axis=axis, keepdims=True))``" in text
    assert "Means what ``scipy.special.softmax`` does." in text
    assert "- x = [-inf, 0]: [0, 0]" in text
    assert "Under ``ng.jit``: loops along its axes" in text


def test_a_method_has_the_page_of_its_operation():
    page = inspect.getdoc(ng.tanh) or ""
    assert page == f"tanh(x)\n\n{inspect.getdoc(ng.Tensor.tanh)}"
    assert "In place: ``Tensor.tanh_``." in page
    assert str(inspect.signature(ng.Tensor.sum)) == str(inspect.signature(ng.sum))
    assert str(inspect.signature(ng.ones(2).sum)) == "(axis=None, dtype=None, *, keepdims=False)"


def test_dtypes():
    def said(op):
        return " ".join((inspect.getdoc(op) or "").split())

    assert "float64 for integer; the same for floating and complex" in said(ng.tanh)
    assert "Of dtype bool." in said(ng.isnan)
    assert "Floating and complex operands are refused." in said(ng.bitwise_and)


def test_formulas_side_by_side_on_a_line():
    first, second = (lambda g: g), (lambda g: g + 1)
    assert expression(first) == "g"
    assert expression(second) == "g + 1"


def test_a_users_operation_needs_nothing():
    @elementwise(register=False)
    def lorentzian(x):
        return 1 / (1 + x * x)

    lorentzian.vjp(x=lambda g, x, y: -2 * g * x * y * y)
    assert "x : ``-2 * g * x * y * y``" in (inspect.getdoc(lorentzian) or "")
    lorentzian.kink(x=([np.inf], [0]))
    assert "- x = inf: 0" in (inspect.getdoc(lorentzian) or "")


def test_an_import_writes_no_page():
    program = (
        "import numgrad\n"
        "from numgrad.core import documentation\n"
        "assert not documentation._functions.cache_info().misses"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
