"""What tests of jitted functions share."""

import pytest

from numgrad.compiler.graph import evaluate
from numgrad.compiler.run import specialise


@pytest.fixture
def reference_backend(monkeypatch):
    """Graphs are evaluated operation by operation: nothing is compiled for them."""
    monkeypatch.setattr(specialise, "compile_graph", evaluate.compile_graph)
