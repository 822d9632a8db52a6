"""A text cut into words, with what its punctuation and capitals told."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from memory.compare.normalise import tidy
from memory.compare.vocabulary import Language, vocabulary

_PUNCTUATION = '.,;:!?()[]"…。！？，、؟¡¿'
_ELISION = re.compile(r"(l|d|n|s|c|j|m|t|qu|jusqu|lorsqu|puisqu)'(.+)$", re.IGNORECASE)
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_HEBREW_PREFIX = re.compile(r"([בלמהכוש])-(.+)$")


@dataclass(frozen=True, slots=True)
class Chunk:
    surface: str
    low: str
    capital: bool
    boundary: bool
    possessive: bool = False


def chunks_of(text: str) -> tuple[str, ...]:
    """The bare words, case-folded: what is left when neither punctuation, hyphens nor emoji count."""
    return tuple(part for chunk in cut(text) for part in _HYPHEN.sub(" ", chunk.low).split())


def emoji_of(text: str) -> tuple[str, ...]:
    return tuple(letter for letter in text if unicodedata.category(letter) == "So")


@lru_cache(maxsize=4096)
def cut(text: str) -> tuple[Chunk, ...]:
    found: list[Chunk] = []
    boundary = False
    for raw in tidy(text).split():
        core = raw.strip(_PUNCTUATION)
        if raw[0] in _PUNCTUATION:
            boundary = True
        if all(_says_nothing(letter) for letter in core):
            boundary = boundary or core == "-" or not core
            continue
        found.append(Chunk(core, core.casefold(), core[0].isupper(), boundary))
        boundary = raw[-1] in ",;:!?)" or (raw[-1] == "." and len(core) > 3)
    return tuple(found)


def _says_nothing(letter: str) -> bool:
    """Of emoji, dashes and marks alone; signs such as < and % are words."""
    category = unicodedata.category(letter)
    return category in ("So", "Sk", "Cf") or (category[0] in "PM" and letter not in "%&/#@*")


def parts_of(low: str) -> list[str]:
    elided = _ELISION.match(low)
    if elided:
        return [elided[1] + "'", elided[2]]
    return [low[:-3], "not"] if low.endswith("n't") else [low.removesuffix("'s")]


def split(chunk: Chunk, language: Language) -> Iterator[Chunk]:
    if language == "french" and (elided := _ELISION.match(chunk.surface)):
        first = elided[1].lower() + "'"
        yield replace(chunk, surface=first, low=first, capital=False)
        rest = elided[2]
        yield Chunk(rest, rest.casefold(), rest[0].isupper(), False)
    elif language == "hebrew" and (prefixed := _HEBREW_PREFIX.match(chunk.surface)):
        yield replace(chunk, surface=prefixed[1], low=prefixed[1])
        yield Chunk(prefixed[2], prefixed[2].casefold(), prefixed[2][0].isupper(), False)
    elif language == "english":
        yield from _split_english(chunk)
    else:
        yield chunk


def _split_english(chunk: Chunk) -> Iterator[Chunk]:
    low = chunk.low
    if low.endswith("n't"):
        stem = {"can't": "can", "won't": "will"}.get(low, low[:-3])
        yield replace(chunk, surface=stem, low=stem, capital=False)
        yield Chunk("not", "not", False, False)
    elif low == "cannot":
        yield replace(chunk, surface="can", low="can")
        yield Chunk("not", "not", False, False)
    elif low.endswith(("'s", "s'")) and len(low) > 2:
        cut = 2 if low.endswith("'s") else 1
        yield replace(chunk, surface=chunk.surface[:-cut], low=low[:-cut], possessive=True)
    elif "-" in low and low.islower() and not chunk.capital:
        parts = low.split("-")
        numbers = vocabulary("english").numbers
        first = (parts[0].isdigit() or parts[0] in numbers) and parts[1] not in numbers
        for place, part in enumerate(parts if first and all(parts) else [low]):
            yield replace(chunk, surface=part, low=part, boundary=chunk.boundary and not place)
    else:
        yield chunk
