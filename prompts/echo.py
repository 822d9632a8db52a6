"""Recognise text that a model copied out of its prompt: headings, rules, descriptions."""

import re
from functools import cache
from importlib.resources import files

SHORTEST_ECHO = 2
"""Words. One word alone may be anybody's."""
_PARTS = re.compile(r"(?<=[.!?…])\s+|\n")
_WORDS = re.compile(r"\w+")


def is_echo(text: str) -> bool:
    """Whether each sentence of a text stands in a prompt, word for word."""
    parts = [part for part in map(_key, _PARTS.split(text)) if part]
    return bool(parts) and all(part in _sentences() for part in parts)


def may_become_echo(text: str) -> bool:
    """Whether a text that is still being written is the beginning of a sentence of a prompt."""
    key = _key(text)
    return bool(key) and any(sentence.startswith(key) for sentence in _sentences())


@cache
def _sentences() -> frozenset[str]:
    """The lines and sentences of all prompts, as they are compared."""
    prompts = (file.read_text("utf-8") for file in files("prompts").iterdir() if file.name.endswith(".md"))
    parts = (part for text in prompts for line in text.splitlines() for part in (line, *_PARTS.split(line)))
    return frozenset(key for key in map(_key, parts) if key.count(" ") >= SHORTEST_ECHO - 1)


def _key(text: str) -> str:
    return " ".join(_WORDS.findall(text.casefold()))
