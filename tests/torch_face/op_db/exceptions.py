"""Names of the database that differ, by check, each with a reason."""

REASONS: dict[str, str] = {}
"""Why names differ -> ``check: name name ...``, a line a check."""


def _exceptions() -> dict[str, dict[str, str]]:
    known: dict[str, dict[str, str]] = {}
    for reason, text in REASONS.items():
        check = ""
        for word in text.split():
            if word.endswith(":"):
                check = word[:-1]
            else:
                known.setdefault(word, {})[check] = reason
    return known


EXCEPTIONS = _exceptions()
"""Name -> check -> reason."""
