"""Layers that learn the length of their input from the first one."""
