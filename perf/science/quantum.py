"""Energy of an Ising chain in a field, in the state that a variational quantum circuit prepares."""

from itertools import pairwise

import numpy

SIZES = {"tiny": [2, 2], "small": [4, 4], "middle": [8, 6], "large": [12, 8]}
ARGNUMS = (0,)


def arguments(qubits, layers):
    """Angles of the rotations about y and z: of each layer, of each qubit."""
    return (numpy.random.default_rng(0).normal(size=(layers, qubits, 2)),)


def program(library):
    np = library.np

    def energy(angles):
        qubits = angles.shape[1]
        spins = 1.0 - 2.0 * numpy.indices((2,) * qubits)
        entangled = numpy.ones((2,) * qubits)  # controlled-Z between neighbours
        for a, b in pairwise(spins):
            entangled = entangled * numpy.where((a < 0) & (b < 0), -1.0, 1.0)
        bonds = numpy.sum(spins[:-1] * spins[1:], axis=0)

        def layer(state, turns):
            for qubit in range(qubits):
                y, z = 0.5 * turns[qubit, 0], 0.5 * turns[qubit, 1]
                c, s, phase = np.cos(y), np.sin(y), np.exp(1j * z)
                gate = np.stack(
                    [np.stack([c / phase, -s / phase]), np.stack([s * phase, c * phase])]
                )
                state = np.moveaxis(np.tensordot(gate, state, (1, qubit)), 0, qubit)
            return state * entangled, None

        start = numpy.zeros((2,) * qubits, complex)
        start[(0,) * qubits] = 1.0
        state, _ = library.scan(layer, np.asarray(start), angles)
        flips = sum(np.sum(np.conj(state) * np.flip(state, q)) for q in range(qubits))
        return -np.sum(bonds * np.abs(state) ** 2) - np.real(flips)

    return energy
