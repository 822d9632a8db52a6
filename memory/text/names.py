"""Find people's names in a text, and the names that belong to one person.

Every message carries its author's name, so a name in a question selects an author, not a topic. Names come
from the data, in any script, and are compared without case and accents.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from memory.text import tag

MIN_LETTERS = 2
"""Shorter parts of a name ("J." in "J. Doe") are ignored."""
LONGEST_QUESTION = 40
"""How many words of a question are compared with tags."""
_SIGNS = (
    "\u0900-\u0963\u0966-\u0df3\u0e31-\u0e4e\u0eb1-\u0ece\u0f71-\u0fbc\u102b-\u1049\u1050-\u109d\u17b4-\u17d3"
)
"""The ranges of vowel signs from Devanagari to Khmer, which `re` does not count as part of a word."""
_WORD = rf"[\w{_SIGNS}]"
_PART = re.compile(rf"(?:[^\W_]|[{_SIGNS}])+")
_QUESTION_WORD = re.compile(rf"{_WORD}+(?:['’]s(?!{_WORD}))?")


_STROKES = str.maketrans(dict(zip("łøđħŧı", "lodhti", strict=True)) | {"æ": "ae", "œ": "oe"})
"""Letters that people type in a plain form, but that Unicode does not decompose: Łukasz, Søren, Işıl."""


def fold(text: str) -> str:
    """Return the text without case and accents. Its length may change."""
    if text.isascii():  # most texts
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text).casefold().translate(_STROKES)
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def spelled(name: str) -> str:
    """Return the letters and digits of a name, without case and accents."""
    return "".join(_PART.findall(fold(name))) or name


@lru_cache(maxsize=32_768)  # the table of a place is made anew with each new name in it
def _words_of(name: str) -> tuple[str, ...]:
    return tuple(_PART.findall(fold(name)))


def parts_of(name: str) -> list[str]:
    """Return the words of a name, without case and accents, and without words that are too short."""
    return [word for word in _words_of(name) if len(word) >= MIN_LETTERS]


def named(text: str, names: Iterable[str]) -> frozenset[str]:
    """Return the `names` that occur in the text, whole or with one part."""
    table = _table(frozenset(names))
    return frozenset(name for part in table.words_in(fold(text)) for name in table.bearers[part])


def called(question: str, names: Iterable[str]) -> frozenset[str]:
    """Return the `names` that the question contains as names: its first word, or a later word with a capital,
    an 's or no case ("which coffee?" does not name Captain Coffee)."""
    table, found = _table(frozenset(names)), set[str]()
    for word in {*_QUESTION_WORD.findall(question)}:
        means = not word.islower() or word.endswith(("'s", "’s"))
        for part in table.words_in(fold(word)):
            found |= {name for name in table.bearers[part] if means or _words_of(name)[0] == part}
    return frozenset(found)


def tags_in(question: str) -> frozenset[str]:
    """Return possible tags in the question: its words, and runs of up to three words."""
    words = _PART.findall(question)[:LONGEST_QUESTION]
    runs = (words[at : at + length] for length in (1, 2, 3) for at in range(len(words) - length + 1))
    joined = {sign.join(run) for run in runs for sign in (" ", "-")}
    return frozenset(form(run) for run in joined for form in (tag, fold))


def spoken_of(text: str, names: Iterable[str]) -> bool:
    """Return whether the text is about one of the `names` ("Evan sails") and does not only address them
    ("Thanks, Evan!")."""
    folded = fold(text)
    return any(
        folded.endswith(("'s", "’s"), start, end) or _GOES_ON.match(folded, end)
        for start, end in _table(frozenset(names)).found_in(folded)
    )


def without_names(question: str, names: Iterable[str]) -> str:
    """Return the question without the names; unchanged if it has none of them."""
    parts = [*question.lower()] if question.isascii() else [fold(char) for char in question]
    found = [*_table(frozenset(names)).found_in("".join(parts))]
    if not found:
        return question
    at, left = [at for at, part in enumerate(parts) for _ in part], [*question]
    for start, end in found:
        first, last = at[start], at[end - 1]
        left[first : last + 1] = " " * (last + 1 - first)
    return " ".join("".join(left).split())


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Replace each key of `names`, in any case, with its value. Affixes stay: "Dev's" becomes "Mickael's"."""
    there = named(text, names)
    for name, new in names.items():
        if name in there or not parts_of(name):
            text = _whole(name).sub(lambda match, new=new: match[1] + new, text)  # type: ignore[misc]
    return text


@lru_cache(maxsize=1024)
def _whole(name: str) -> re.Pattern[str]:
    written_on = r"\w{0,2}" if _script(name).startswith(_PREFIXING) else ""
    unspaced = _script(name).startswith(_UNSPACED)
    starts, ends = ("", "") if unspaced else (rf"(?<!{_WORD})", rf"(?!{_WORD})")
    return re.compile(rf"{starts}({written_on}){re.escape(name)}{ends}", re.IGNORECASE)


_TOKEN, _POSSESSIVE, _GOES_ON = (
    re.compile(f"{_WORD}+"),
    re.compile(f"['’]s(?!{_WORD})"),
    re.compile(r" *[^\W_]"),
)
_PREFIXING = ("HEBREW", "ARABIC")
"""Scripts that attach prepositions and conjunctions to the name as prefixes, of two letters at most."""
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "MYANMAR", "KHMER")
"""Scripts without spaces between words, or with endings attached to the name."""


def _script(name: str) -> str:
    return unicodedata.name(name[0], "")


class _Table:
    """An index of names by their words, so that a text is searched once for all names."""

    def __init__(self, names: Iterable[str]) -> None:
        self.bearers: dict[str, list[str]] = {}
        """The names that contain each word."""
        self._prefixed: set[str] = set()
        self._inside: dict[str, set[int]] = {}
        """The lengths of words in unspaced scripts, by first letters."""
        for name in names:
            for part in parts_of(name):
                self.bearers.setdefault(part, []).append(name)
                if _script(part).startswith(_PREFIXING):
                    self._prefixed.add(part)
                if _script(part).startswith(_UNSPACED):
                    self._inside.setdefault(part[:MIN_LETTERS], set()).add(len(part))

    def words_in(self, folded: str) -> set[str]:
        """Return the words of names that occur in a text."""
        return {part for word in {*_TOKEN.findall(folded)} for _, _, part in self._within(word)}

    def found_in(self, folded: str) -> Iterator[tuple[int, int]]:
        """Return where names begin and end in a text, with prefix and possessive."""
        if self.words_in(folded):
            for token in _TOKEN.finditer(folded):
                for start, end, part in self._within(token[0]):
                    possessive = _POSSESSIVE.match(folded, token.start() + end) if part == token[0] else None
                    yield token.start() + start, possessive.end() if possessive else token.start() + end

    def _within(self, word: str) -> Iterator[tuple[int, int, str]]:
        """Return the words of names that a word is or contains, with their positions."""
        if word in self.bearers:
            yield 0, len(word), word
        if word.isascii():
            return
        if self._prefixed:
            yield from ((0, len(word), part) for part in (word[1:], word[2:]) if part in self._prefixed)
        for at in range(len(word) if self._inside else 0):
            for length in self._inside.get(word[at : at + MIN_LETTERS], ()):
                if (part := word[at : at + length]) in self.bearers:
                    yield at, at + len(part), part


@lru_cache(maxsize=32)
def _table(names: frozenset[str]) -> _Table:
    return _Table(names)


@dataclass(frozen=True)
class Aliases:
    """The links between names that one audience may know."""

    pairs: tuple[tuple[str, str], ...] = ()

    @cached_property
    def _groups(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of each person, in the order in which they were learned."""
        groups: dict[int, dict[str, str]] = {}
        where: dict[str, int] = {}
        for number, pair in enumerate(self.pairs):
            mine = {fold(name): name for name in pair}
            for touching in sorted({where[key] for key in mine if key in where}):
                mine |= groups.pop(touching)
            groups[number] = mine
            where |= dict.fromkeys(mine, number)
        return tuple(tuple(group.values()) for group in groups.values())

    @cached_property
    def _group_of(self) -> Mapping[str, int]:
        return {name: at for at, group in enumerate(self._groups) for name in group}

    @cached_property
    def _first(self) -> Mapping[str, str]:
        return {name: group[0] for group in self._groups for name in group[1:]}

    def other_names(self, text: str) -> tuple[str, ...]:
        """Return the other names of each person whom the text names."""
        found = named(text, self._group_of)
        groups = sorted({self._group_of[name] for name in found})
        return tuple(name for at in groups for name in self._groups[at] if name not in found)

    def widened(self, question: str) -> str:
        """Return the question, extended by the other names of the people it names."""
        return " ".join([question, *self.other_names(question)])

    def of(self, tags: Iterable[str]) -> frozenset[str]:
        """Return the tags, extended by the other names of the people they name."""
        given = frozenset(tags)
        return given | {
            form(name) for known in given for name in self.other_names(known) for form in (fold, tag)
        }

    def canonical(self, text: str) -> str:
        """Return the text with each person's names replaced by the first one, to compare statements."""
        return renamed(text, self._first) if self._first else text
