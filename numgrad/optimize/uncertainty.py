"""What the data leave open: covariances of fitted parameters."""

from __future__ import annotations

import numpy as np


def covariance(jacobian: np.ndarray, variance: float) -> np.ndarray:
    """Covariance of the parameters, ``variance * inv(J.T @ J)``, of a Jacobian (n, p).

    From the singular values of the Jacobian with its columns scaled to one length: that brings
    condition numbers of up to 1e9 (NIST's Hahn1) under 1e4, where ``pinv(J.T @ J)`` squares them
    and has no digit right on Hahn1, Nelson and Roszman1. Infinite where the data do not determine a
    parameter.
    """
    count = jacobian.shape[1]
    if not (np.isfinite(jacobian).all() and np.isfinite(variance)):
        return np.full((count, count), np.inf)
    scale = np.linalg.norm(jacobian, axis=0)
    scale[scale == 0] = 1.0
    _, singular, vt = np.linalg.svd(jacobian / scale, full_matrices=False)
    known = singular > singular[0] * np.finfo(np.float64).eps * max(jacobian.shape)
    half = vt[known].T / singular[known] / scale[:, None]
    found = variance * (half @ half.T)
    left_open = (np.abs(vt[~known]) > 1e-6).any(axis=0)
    found[left_open] = found[:, left_open] = np.inf
    return found


def standard_errors(covariance: np.ndarray) -> np.ndarray:
    """Square roots of the variances."""
    return np.sqrt(covariance.diagonal())
