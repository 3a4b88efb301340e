"""``python -m numgrad torch``: scripts that import torch, unchanged."""

import sys

from numgrad.cli import main

SCRIPT = """
import sys
import torch
from torch import nn, optim
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.nn.modules.loss import MSELoss
from torch.autograd.gradcheck import gradcheck

assert torch.nn is nn and torch.nn.functional is F and torch.nn.MSELoss is MSELoss
assert gradcheck is torch.autograd.gradcheck and __name__ == "__main__"
model = nn.Linear(2, 1)
data = TensorDataset(torch.ones(4, 2), torch.zeros(4, 1))
for x, y in DataLoader(data, batch_size=2):
    MSELoss()(model(x), y).backward()
optim.SGD(model.parameters(), lr=0.1).step()
print(sys.argv[1:], torch.__name__, tuple(model.weight.shape))
if "fail" in sys.argv:
    model(torch.ones(3, 5))  # the line that fails
sys.exit(3)
"""


def _run(tmp_path, *arguments):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return main(["torch", str(script), *arguments])


def test_a_script_runs_unchanged(tmp_path, capsys):
    import numgrad.torch.nn

    names = {name: m for name, m in sys.modules.items() if name.partition(".")[0] == "torch"}
    argv, path, finders = list(sys.argv), list(sys.path), list(sys.meta_path)
    assert _run(tmp_path, "--epochs", "3") == 3
    assert capsys.readouterr().out == "['--epochs', '3'] numgrad.torch (1, 2)\n"
    after = {name: m for name, m in sys.modules.items() if name.partition(".")[0] == "torch"}
    assert after == names
    assert (sys.argv, sys.path, sys.meta_path) == (argv, path, finders)
    assert numgrad.torch.nn.__spec__.name == "numgrad.torch.nn"


def test_a_traceback_begins_in_the_script(tmp_path, capsys):
    assert _run(tmp_path, "fail") == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback")
    assert "script.py" in lines[1]
    assert "the line that fails" in lines[2]
    assert "linear: x of shape (3, 5)" in lines[-1]


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert main(["torch", str(tmp_path / "none.py")]) == 2
    assert "there is no file" in capsys.readouterr().err
