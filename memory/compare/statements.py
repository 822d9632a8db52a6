"""A statement read into tokens that can be laid beside those of another.

Spellings of one value get one key: ``fourteen`` and ``14``; ``6 a.m.``, ``six in the morning`` and ``6:00``;
``March 14th`` and ``14 March``; ``is afraid of`` and ``fears``. Names, and all words of a language without a
vocabulary, are their own keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from memory.compare.chunks import Chunk, cut, parts_of, split
from memory.compare.values import value_at
from memory.compare.vocabulary import Language, Vocabulary, base_of, cue_counts, language_of, vocabulary

Kind = Literal["word", "weak", "preposition", "number", "name", "negation", "change"]

_RELATIVE = {"who", "which", "that", "qui", "que", "qu'"}
_OPENING = {
    "in",
    "on",
    "whenever",
    "daily",
    "weekly",
    "every",
    "everymorning",
    "everyevening",
    "atnight",
    "often",
}
_AND = {"and", "et", "&"}


@dataclass(frozen=True, slots=True)
class Token:
    """A value that a statement gives, or a word that joins values."""

    key: str
    kind: Kind
    surface: str
    possessive: bool = False
    boundary: bool = False
    """A clause may begin here: after a comma, an *and*, a *who*."""
    loose: frozenset[str] = frozenset()
    """Other keys it may stand for, when the other token is no name."""

    def matches(self, other: "Token") -> bool:
        if self.key == other.key:
            return True
        if self.kind == other.kind == "name":
            return False
        return other.key in self.loose or self.key in other.loose

    @property
    def carries(self) -> bool:
        """Whether it gives a value of its own."""
        return self.kind != "weak"


def shared_language(old: str, new: str) -> Language:
    """The language both are in, found from them together since one alone may be too short to tell."""
    return language_of(_cues_in(old), _cues_in(new))


@lru_cache(maxsize=4096)
def _cues_in(text: str) -> tuple[int, ...]:
    return cue_counts(part for chunk in cut(text) if not chunk.capital for part in parts_of(chunk.low))


@lru_cache(maxsize=4096)
def read(text: str, language: Language, names: frozenset[str] = frozenset()) -> tuple[Token, ...]:
    """The tokens of `text`. `names` are words known to be names, for scripts without capitals."""
    words = vocabulary(language)
    chunks = [part for chunk in cut(text) for part in split(chunk, language)]
    shouted = all(chunk.surface.isupper() or not chunk.surface.isalpha() for chunk in chunks)
    tokens: list[Token] = []
    place, boundary = 0, False
    while place < len(chunks):
        chunk = chunks[place]
        boundary = boundary or chunk.boundary
        a_name = chunk.capital and place > 0 and not shouted
        if chunk.low in _AND or (chunk.low in words.articles and not a_name):
            boundary = boundary or chunk.low in _AND or chunk.low in _RELATIVE
            place += 1
            continue
        token, length = _token_at(chunks, place, words, language, shouted, names)
        tokens.append(replace(token, boundary=boundary or token.key in words.starts_clause))
        place, boundary = place + length, False
    return _in_order(_active(_in_tense(tokens, language)), words)


def _in_tense(tokens: list[Token], language: Language) -> list[Token]:
    """*Has played since* as *plays*, and the two halves of *ne … plus* as one."""
    kept: list[Token] = []
    lasting = any(token.key in ("since", "for") for token in tokens)
    for token in tokens:
        before = kept[-1] if kept else None
        past = token.key.endswith("ed") and token.kind == "word"
        if language == "english" and lasting and past and before is not None and before.key == "have":
            stem = token.key[:-2]
            kept[-1] = replace(token, loose=frozenset({stem, stem + "e"}))
        elif language == "french" and token.key == "plus" and any(t.key in _NE for t in kept[-3:]):
            kept = [t for t in kept if t.key not in _NE]
            kept.append(replace(token, key="!ended", kind="change"))
        else:
            kept.append(token)
    return kept


_NE = {"ne", "n'"}


def _in_order(tokens: Sequence[Token], words: Vocabulary) -> tuple[Token, ...]:
    """*On Mondays, Ben runs* as *Ben runs on Mondays*."""
    if not tokens or not _opens(tokens[0], words):
        return tuple(tokens)
    named = [place for place in range(1, len(tokens)) if tokens[place].kind == "name"]
    apart = [place for place in range(1, len(tokens)) if tokens[place].boundary]
    start = next(iter([place for place in named if place in apart] + named + apart), 0)
    return (replace(tokens[start], boundary=False), *tokens[start + 1 :], *tokens[:start])


def _opens(token: Token, words: Vocabulary) -> bool:
    return (
        token.kind in ("preposition", "number") or token.key in _OPENING or token.key in words.starts_clause
    )


def _active(tokens: list[Token]) -> tuple[Token, ...]:
    """*Thunder scares Ben* as *Ben fears thunder*."""
    for place, token in enumerate(tokens):
        if token.key == "!scare":
            fear = replace(token, key="fear", kind="word")
            return (*tokens[place + 1 :], fear, *tokens[:place])
    return tuple(tokens)


def _token_at(
    chunks: list[Chunk],
    place: int,
    words: Vocabulary,
    language: Language,
    shouted: bool,
    names: frozenset[str],
) -> tuple[Token, int]:
    chunk = chunks[place]
    if value := value_at(chunks, place, words):
        surface = " ".join(part.surface for part in chunks[place : place + value[1]])
        return Token(value[0], "number", surface), value[1]
    named = chunk.capital and not shouted
    if not named or place == 0:
        phrase = _phrase_at(chunks, place, words, language)
        if phrase:
            return phrase
    if (named and place) or chunk.low in names:
        return Token(chunk.low, "name", chunk.surface, chunk.possessive), 1
    kind: Kind = "word"
    if chunk.low in words.negations:
        kind = "negation"
    elif chunk.low in words.prepositions:
        kind = "preposition"
    base = base_of(chunk.low, language) if place else chunk.low
    if named and kind == "word" and chunk.low not in words.cues:
        loose = _loose(chunk.low, language) | {base_of(chunk.low, language)}
        return Token(chunk.low, "name", chunk.surface, chunk.possessive, loose=loose - {chunk.low}), 1
    loose = _loose(chunk.low, language) if kind == "word" and place else frozenset()
    return Token(base, kind, chunk.surface, chunk.possessive, loose=loose), 1


def _phrase_at(
    chunks: list[Chunk], place: int, words: Vocabulary, language: Language
) -> tuple[Token, int] | None:
    longest = words.longest.get(base_of(chunks[place].low, language), 0)
    used: list[str] = []
    ends: list[int] = []
    for end in range(place, len(chunks)):
        chunk = chunks[end]
        if len(used) == longest or (end > place and chunk.boundary):
            break
        if chunk.low not in words.articles:
            used.append(base_of(chunk.low, language))
            ends.append(end + 1)
    for length in range(len(used), 0, -1):
        if key := words.phrases.get(tuple(used[:length])):
            return _phrase_token(key, chunks[place : ends[length - 1]], words), ends[length - 1] - place
    return None


def _phrase_token(key: str, chunks: list[Chunk], words: Vocabulary) -> Token:
    kind: Kind = "change" if key.startswith("!") else "weak" if key in words.weak else "word"
    if key in words.prepositions:
        kind = "preposition"
    surface = " ".join(chunk.surface for chunk in chunks)
    return Token(key, kind, surface, chunks[-1].possessive)


def _loose(low: str, language: Language) -> frozenset[str]:
    """What an inflected word may be a form of; each is only ever held against a word that is written so."""
    if language == "english" and low.endswith("ing") and len(low) > 5:
        stem = low[:-3]
        return frozenset({stem, stem + "e"} | ({stem[:-1]} if stem[-1] == stem[-2] else set()))
    if language == "french" and low.endswith("er") and len(low) > 4:
        return frozenset({low[:-1]})
    if language == "hebrew" and len(low) > 3:
        # ל and י together begin many a name (לירון, ירון), and מ and ש more than they join on
        joined = low[0] in "בהוכ" or (low[0] == "ל" and low[1] != "י" and len(low) > 4)
        return frozenset({low[1:]}) if joined else frozenset()
    return frozenset()
