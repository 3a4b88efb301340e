"""Convolutions, recursive filters and spectra of signals."""
