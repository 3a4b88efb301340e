"""Every public name says in one sentence what it is; functions have an example.

Examples are run by ``pytest --doctest-modules numgrad``.
"""

import inspect
import re
from types import ModuleType

import pytest

import numgrad as ng
from numgrad.core.op import Op

MODULES = (ng, ng.autograd, ng.data, ng.io, ng.nn, ng.optim, ng.random, ng.testing, ng.viz)


def public():
    """The public names of ``numgrad`` and of its public modules, apart from operations."""
    return {
        f"{module.__name__}.{name}": value
        for module in MODULES
        for name, value in [(name, getattr(module, name)) for name in dir(module)]
        if not name.startswith("_")
        and not isinstance(value, Op | ModuleType)
        and getattr(value, "__module__", "").startswith("numgrad")
    }


def operations():
    """What the authors of ``numgrad``'s own operations wrote; a test may have registered others."""
    return {
        name: op.function
        for name, op in vars(ng).items()
        if isinstance(op, Op) and op.function.__module__.startswith("numgrad.")
    }


def members(kind):
    """The public methods and properties of a class."""
    return {
        f"{kind.__name__}.{name}": value
        for name, value in vars(kind).items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    }


def is_a_sentence(doc):
    """Whether the first line of ``doc`` begins like a sentence and ends with its only full stop."""
    line = (doc or "").strip().partition("\n")[0]
    unquoted = re.sub(r"``.*?``", "name", line)
    begins = line[:2] == "``" or line[:1].isupper() or line.lstrip("-")[:1].isdigit()
    return begins and unquoted.endswith(".") and not re.search(r"[^.]\.\s", unquoted)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(public(), id="names"),
        pytest.param(operations(), id="operations"),
        pytest.param(members(ng.Tensor), id="Tensor"),
        pytest.param(members(ng.random.Generator), id="Generator"),
        pytest.param(members(type(ng.ops["tanh"])), id="OpView"),
    ],
)
def test_first_lines_are_sentences(found):
    assert found
    unlike = {name for name, value in found.items() if not is_a_sentence(inspect.getdoc(value))}
    assert not unlike


def test_functions_that_are_no_operation_have_an_example():
    functions = {name: f for name, f in public().items() if inspect.isfunction(f)}
    without = {name for name, f in functions.items() if ">>>" not in (inspect.getdoc(f) or "")}
    assert not without
