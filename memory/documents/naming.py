"""What a document may be called, and what it is called before a model: enough to tell it from the others,
and no more."""

from collections.abc import Iterable
from pathlib import PurePath

LONGEST = 200
"""Characters of the name of a document that is handed over."""


def document_name(text: str) -> str:
    """The name of a document that is handed over: that of a file, without a folder. Raises ValueError."""
    name = text.strip()
    if (
        not name.isprintable()
        or not name.strip(".")
        or len(name) > LONGEST
        or not {"/", "\\"}.isdisjoint(name)
    ):
        raise ValueError(
            f"name: a document needs the name of a file, such as notes.md: one line of at most {LONGEST} "
            "characters, without a folder"
        )
    return name


def names_of(paths: Iterable[str]) -> dict[str, str]:
    """Each file's name with its folder, and as much more of its path as tells it from the others: enough to
    say where something stands. How the rest of the operator's disk is laid out is not for a model."""
    parts = {path: _parts(path) for path in paths}
    return {path: " ".join("/".join(_telling(path, parts)).split()) for path in parts}


def _telling(path: str, parts: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    own, depth = parts[path], 2
    others = [other for name, other in parts.items() if name != path]
    while depth < len(own) and any(other[-depth:] == own[-depth:] for other in others):
        depth += 1
    return own[-depth:]


def _parts(path: str) -> tuple[str, ...]:
    whole = PurePath(path)
    return whole.parts[1:] if whole.anchor else whole.parts
