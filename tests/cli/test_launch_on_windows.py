"""Ending ranks where there is no SIGINT to send: Windows, simulated."""

import signal
import subprocess

import pytest

from numgrad.cli import launch

BREAK = 1


class Launcher:
    """A process of Windows, which ends by what Windows can send."""

    stdout = None

    def __init__(self, deaf=()):
        self.deaf, self.received, self.status = deaf, [], None

    def poll(self):
        return self.status

    def send_signal(self, number):
        if number not in (BREAK, signal.SIGTERM):
            raise ValueError(f"Unsupported signal: {number}")
        self.received.append(number)
        if number not in self.deaf:
            self.status = 1

    def wait(self, timeout=None):
        if self.status is None:
            raise subprocess.TimeoutExpired("launcher", timeout or 0)
        return self.status


@pytest.mark.parametrize(("deaf", "sent"), [((), [BREAK]), ((BREAK,), [BREAK, signal.SIGTERM])])
def test_ranks_are_ended_by_a_break(deaf, sent, monkeypatch):
    monkeypatch.setattr(signal, "CTRL_BREAK_EVENT", BREAK, raising=False)
    monkeypatch.delattr(signal, "SIGKILL")
    launcher = Launcher(deaf)
    launch._end(launcher)
    assert launcher.received == sent
