"""The array a user holds: its members, how it is made, what NumPy does with it."""
