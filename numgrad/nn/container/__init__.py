"""Modules that hold modules or parameters."""
