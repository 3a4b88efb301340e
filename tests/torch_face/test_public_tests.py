"""PyTorch's public tests pass but for named exceptions: ``public_tests`` runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torch_face.exceptions import EXCEPTIONS, FILES
from tests.torch_face.public_tests import reason_for

SHORT = ("optim/test_optim.py", "nn/test_init.py", "autograd/test_complex.py")
"""Files that take some seconds."""
CHECKOUT = os.environ.get("NUMGRAD_PYTORCH_TESTS", "")


@pytest.mark.skipif(not CHECKOUT, reason="NUMGRAD_PYTORCH_TESTS names no copy of PyTorch's test/")
@pytest.mark.slow(cases=len(SHORT))
@pytest.mark.parametrize("file", [*SHORT, *(f for f in FILES if f not in SHORT)])
def test_of_pytorch(file):
    driver = Path(__file__).with_name("public_tests.py")
    command = [sys.executable, str(driver), "--checkout", CHECKOUT, "--list", file]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_exceptions_are_found_by_the_name_of_a_test():
    assert len(EXCEPTIONS) > 100
    assert "quantisation" in reason_for("TestTorchDeviceTypeCPU.test_is_signed_cpu_int8")
    assert not reason_for("TestAutograd.test_accumulate_grad")
