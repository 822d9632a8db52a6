"""Splits a text into words that can be compared with those of another text."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from memory.facts.compare.normalise import tidy
from memory.text.names import fold

NEGATIONS = frozenset(
    """no not never without nor cannot pas non jamais sans nicht kein nie ohne sin nunca nao mai senza
    niet geen нет не без לא אין בלי ليس لا ei""".split()
)
"""Words that negate, without accents: one that only one of two texts has keeps the two apart, and so does one
that may belong to either of two clauses."""

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

    @property
    def capital(self) -> bool:
        return self.text[0].isupper()

    @property
    def number(self) -> bool:
        return any(letter.isdecimal() for letter in self.key)

    @property
    def negates(self) -> bool:
        return fold(self.key) in NEGATIONS or self.key.endswith("n't")


@lru_cache(maxsize=1024)
def words_of(text: str) -> tuple[Word, ...]:
    """The words without punctuation, emoji and dashes; signs such as < and % are words."""
    return tuple(_cut(text))


def _cut(text: str) -> Iterator[Word]:
    for raw in tidy(text).split():
        core = raw.strip(_PUNCTUATION)
        if not all(_decorates(letter) for letter in core):
            yield from (Word(part, part.casefold()) for part in _JOINTS.split(core) if part)


def _decorates(letter: str) -> bool:
    category = unicodedata.category(letter)
    return category in ("So", "Sk", "Cf") or (category[0] in "PM" and letter not in "%&/#@*")


def emoji_of(text: str) -> tuple[str, ...]:
    return tuple(letter for letter in text if unicodedata.category(letter) == "So")
