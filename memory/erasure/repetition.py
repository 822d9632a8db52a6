"""Decides whether a text states a fact, by its words alone.

Words are compared as the index stores them: without case, accents, function words and, in English, endings.
Its values are numbers and capitalised names; a text that lacks one speaks of something else.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from memory.facts.compare.tokens import words_of
from memory.index import bm25
from memory.text import sentences

IDENTIFYING = 3
"""Digits of a number that identifies a fact by itself, such as a PIN. Years do not, since many facts share
them."""
_YEAR = re.compile(r"(?:19|20)\d\d")
ALONE = 4
"""Digits of a number that shows a fact wherever the person writes it."""
_AMOUNT = re.compile(
    r"[$€£¥₪%]|(?:k?m|cm|mm|miles?|k?g|ml|min|hours?|days?|steps|pages|people|euros?|eur|dollars?|usd|pounds?|gbp)\b",
    re.IGNORECASE,
)
"""What makes the number that it follows or begins an amount."""
_ASKS_TO_FORGET = re.compile(
    r"\b(?:forget|unlearn|erase|delete|remove|wipe|vergiss|vergessen|lösch\w*|oubli\w+|supprim\w+|effac\w+|olvid\w+"
    r"|borra\w*|elimina\w*|dimentica\w*|cancella\w*|esque[cç]\w+|apaga\w*|vergeet|verwijder|zapomnij|usuń"
    r"|забудь\w*|удали\w*|ת?שכחי?|ת?מחקי?|انس|احذف)\b|忘了|忘记|忘掉|删除|删掉|忘れて|消して",
    re.IGNORECASE,
)
_QUESTION = ("?", "？", "؟")
TELLING = 3
"""So many words are recognised without a value."""

Words = frozenset[int]
NO_WORDS: Words = frozenset()


@dataclass(frozen=True, slots=True)
class FactWords:
    """The words of a fact without the names of the person who told it: they said "I"."""

    all: Words
    numbers: Words
    names: Words
    identifying: bool
    """Whether one of the numbers, years aside, has `IDENTIFYING` or more digits."""
    identifiers: frozenset[str] = frozenset()
    """What identifies it wherever the person writes it; see `identifiers`."""

    @classmethod
    def of(cls, content: str, teller: Words = frozenset()) -> "FactWords":
        found = words_of(content)
        numbers = [word for word in found if word.number and not words(word.text) <= teller]
        names = [word for at, word in enumerate(found) if at and word.capital and not word.number]
        telling = (word.key for word in numbers if not _YEAR.fullmatch(word.key))
        digits = (sum(letter.isdecimal() for letter in key) for key in telling)
        return cls(
            words(content) - teller,
            words(" ".join(word.text for word in numbers)) - teller,
            words(" ".join(word.text for word in names)) - teller,
            any(count >= IDENTIFYING for count in digits),
            frozenset(one for one in identifiers(content) if not words(one) <= teller),
        )

    @property
    def telling(self) -> Words:
        """The words that tell two topics apart: neither numbers nor words that are everywhere."""
        return self.all - self.numbers - _weak()

    def stated_by(self, text: str) -> bool:
        """Whether one sentence of the text, or two in a row, contain every word of the fact. A fact of few
        words and no value is stated only where it is at least half of what is said; one of a single word,
        where it is all."""
        if not self.all or not self.all <= words(text):
            return False
        parts = [words(sentence) for sentence in sentences(text)]
        if len(self.all) == 1 and not self.identifying:
            return self.all in parts
        telling = bool(self.numbers or self.names) or len(self.all) >= TELLING
        return any(self.all <= part and (telling or 2 * len(self.all) >= len(part)) for part in _runs(parts))

    def shown_by_own(self, text: str) -> bool:
        """Whether a message of the person who told the fact shows it: it states the fact, contains one of its
        `identifiers`, or asks to forget it. A number of `IDENTIFYING` digits that is no identifier counts in
        a sentence with all names and numbers and half of the other words."""
        if self.stated_by(text) or not self.identifiers.isdisjoint(identifiers(text)):
            return True
        for sentence in sentences(text):
            said = words(sentence)
            shared = self.all & said
            values = self.numbers | self.names
            others = self.all - values
            if self.identifying and values <= said and 2 * len(others & said) >= max(len(others), 1):
                return True
            if shared and asks_to_forget(sentence) and 2 * len(shared) >= len(said) - 1:  # "forget" aside
                return True
        return False

    def same_as(self, other: "FactWords") -> bool:
        """Whether the other fact says the same in other words, or shows a number that identifies this."""
        if self.all == other.all or not self.identifiers.isdisjoint(other.identifiers):
            return True
        return self.identifying and self.all <= other.all


def identifiers(text: str) -> frozenset[str]:
    """The numbers and addresses of a text that stand for one thing, such as a PIN, a phone number, or an
    e-mail address. A number has `ALONE` digits or more without a point, comma or colon between them, and is
    neither a year, nor a multiple of 50, nor an amount: those are said of many things."""
    found = words_of(text)
    after = [word.text for word in found[1:]] + [""]
    addresses = {word.key for word in found if re.fullmatch(r"[^@]+@[^@]+", word.key)}
    numbers = {
        part
        for word, following in zip(found, after, strict=False)
        if not _AMOUNT.match(word.text) and not _AMOUNT.match(following)
        for part in re.split(r"[-+/]", word.key)
        if part.isdecimal() and len(part) >= ALONE and not _YEAR.fullmatch(part) and int(part) % 50
    }
    return frozenset(addresses | numbers)


def asks_to_forget(sentence: str) -> bool:
    """Whether the sentence has a word that asks to forget, in one of some fifteen languages."""
    return bool(_ASKS_TO_FORGET.search(sentence))


def asks(sentence: str) -> bool:
    """Whether the sentence is a question."""
    return sentence.rstrip("\"'”’») ").endswith(_QUESTION)


@cache
def _weak() -> Words:
    return words(
        "like love want need know think feel plan go goes come get make take give do does have has live work"
        " use say said tell told see look find help good great new day time today year week people thing"
        " hi hello hey ok okay yes no sure please thank thanks welcome all morning evening night bye right"
    )


def telling_sentences(message: str, teller: Words) -> list[str]:
    """The sentences of a message that say enough to be recognised: with a value, or `TELLING` words."""
    found = [(sentence, FactWords.of(sentence, teller)) for sentence in sentences(message)]
    return [text for text, fact in found if fact.numbers or fact.names or len(fact.all) >= TELLING]


@lru_cache(maxsize=1024)
def words(text: str) -> Words:
    vector = bm25.query(text)
    return frozenset(vector.indices) if vector is not None else frozenset()


def _runs(parts: list[Words]) -> Iterable[Words]:
    yield from parts
    yield from (first | second for first, second in pairwise(parts))
