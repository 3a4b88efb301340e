"""Fixtures for tests that state what holds in two libraries."""

from tests.autograd.conftest import lib as lib, raises as raises
