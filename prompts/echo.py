"""Recognise echoes: text that a model copied out of its prompt, such as headings, rules, rendered parts."""

import re
from collections.abc import Collection
from functools import cache, lru_cache
from importlib.resources import files

_PARTS, _WORDS = re.compile(r"(?<=[.!?…])\s+|\n"), re.compile(r"\w+")


def is_echo(text: str, rendered: Collection[str] = ()) -> bool:
    """Return whether each sentence of a text is in one of our prompts, or in the `rendered` one."""
    parts = [part for part in map(_key, _PARTS.split(text)) if part]
    return bool(parts) and all(part in _sentences() or part in rendered for part in parts)


def may_become_echo(text: str, rendered: Collection[str] = ()) -> bool:
    """Return whether a text that is still being written begins like a sentence of a prompt."""
    key = _key(text)
    return bool(key) and any(one.startswith(key) for part in (_sentences(), rendered) for one in part)


@lru_cache(maxsize=128)
def rendered_sentences(text: str) -> frozenset[str]:
    """Return the lines and sentences of more than a word in a prompt, without what it quotes."""
    lines = (line for line in text.splitlines() if not line.startswith(">"))
    return frozenset(key for line in lines for key in map(_key, (line, *_PARTS.split(line))) if " " in key)


@cache
def _sentences() -> frozenset[str]:
    texts = (file.read_text("utf-8") for file in files("prompts").iterdir() if file.name.endswith(".md"))
    return frozenset(key for text in texts for key in rendered_sentences(text))


def _key(text: str) -> str:
    return " ".join(_WORDS.findall(text.casefold()))
