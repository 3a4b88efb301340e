"""What an operation is, and who says what a call of one means."""
