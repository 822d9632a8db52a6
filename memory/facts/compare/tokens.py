"""Splits a text into words that can be compared with those of another text."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from memory.facts.compare.normalise import tidy

_PUNCTUATION = '.,;:!?()[]"…。！？，、؟¡¿'
_JOINTS = re.compile(
    r"(?<=[^\W\d_])-(?=[^\W\d_])"  # e-mail, e mail
    r"|(?<=^[בלמהכוש])-"  # Hebrew writes a preposition onto what follows: ב-10
    r"|(?<=\d)(?=[^\W\d_])"  # 10km, 10 km
)


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    key: str
    """The case-folded word, for comparison."""
    after_mark: bool
    """Whether punctuation precedes it."""

    @property
    def capital(self) -> bool:
        return self.text[0].isupper()

    @property
    def number(self) -> bool:
        return any(letter.isdecimal() for letter in self.key)


@lru_cache(maxsize=1024)
def words_of(text: str) -> tuple[Word, ...]:
    """The words without punctuation, emoji and dashes; signs such as < and % are words."""
    return tuple(_cut(text))


def _cut(text: str) -> Iterator[Word]:
    mark = False
    for raw in tidy(text).split():
        core = raw.strip(_PUNCTUATION)
        mark = mark or raw[0] in _PUNCTUATION
        if all(_decorates(letter) for letter in core):
            mark = mark or core in ("", "-")
            continue
        for part in filter(None, _JOINTS.split(core)):
            yield Word(part, part.casefold(), mark)
            mark = False
        mark = raw[-1] in ",;:!?)" or (raw[-1] == "." and len(core) > 3)


def _decorates(letter: str) -> bool:
    category = unicodedata.category(letter)
    return category in ("So", "Sk", "Cf") or (category[0] in "PM" and letter not in "%&/#@*")


def emoji_of(text: str) -> tuple[str, ...]:
    return tuple(letter for letter in text if unicodedata.category(letter) == "So")
