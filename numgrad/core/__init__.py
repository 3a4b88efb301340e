"""Operations, and the interpreters that say what a call of one means."""
