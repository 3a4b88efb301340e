"""Forward mode: tangents, and functions as linear maps."""
