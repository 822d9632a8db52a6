"""Names of people, as they go into a conversation."""

LONGEST_NAME = 60


def display_name(name: str | None, fallback: str) -> str:
    """On one line, readable and of a decent length: people choose it themselves, and it stands before all
    they say. The fallback where nothing is left of it."""
    plain = "".join(letter if letter.isprintable() else " " for letter in name or "")
    return " ".join(plain.replace(":", " ").split())[:LONGEST_NAME].strip() or fallback
