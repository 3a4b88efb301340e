import pytest


@pytest.fixture
def torch():
    """PyTorch with float64 as the default dtype, as here."""
    module = pytest.importorskip("torch")
    before = module.get_default_dtype()
    module.set_default_dtype(module.float64)
    yield module
    module.set_default_dtype(before)
