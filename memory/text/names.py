"""People's names in a text, and the names that belong to one person.

Every message carries its author's name, so a name in a question selects an author and not a topic. Names come
from the data, in any script; they are compared without case and accents.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from memory.text import tag

MIN_LETTERS = 2
"""Shorter parts of a name ("J." in "J. Doe") are ignored."""
_SIGNS = (
    "\u0900-\u0963\u0966-\u0df3\u0e31-\u0e4e\u0eb1-\u0ece\u0f71-\u0fbc\u102b-\u1049\u1050-\u109d\u17b4-\u17d3"
)
"""Where the vowel signs from Devanagari to Khmer are, which `re` takes for no part of a word."""
_WORD = rf"[\w{_SIGNS}]"
_PART = re.compile(rf"(?:[^\W_]|[{_SIGNS}])+")
_QUESTION_WORD = re.compile(rf"{_WORD}+(?:['’]s(?!{_WORD}))?")


_STROKES = str.maketrans(dict(zip("łøđħŧı", "lodhti", strict=True)) | {"æ": "ae", "œ": "oe"})
"""Letters that people type without what Unicode does not take off them: Łukasz, Søren, Işıl."""


def fold(text: str) -> str:
    """The text without case and accents. Its length may change."""
    if text.isascii():  # most texts
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text).casefold().translate(_STROKES)
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def spelled(name: str) -> str:
    """The letters and digits of a name, without case and accents."""
    return "".join(_PART.findall(fold(name))) or name


def parts_of(name: str) -> list[str]:
    """The words of a name, without case and accents, and without what is too short for one."""
    return [part for part in _PART.findall(fold(name)) if len(part) >= MIN_LETTERS]


def named(text: str, names: Iterable[str]) -> frozenset[str]:
    """The `names` that occur in the text, whole or with one part."""
    folded = fold(text)
    return frozenset(name for name in names if (found := _pattern((name,))) and found.search(folded))


def called(question: str, names: Iterable[str]) -> frozenset[str]:
    """The `names` that the question means. The first word of a name means it. A further word alone is a
    common word ("which coffee?" for Captain Coffee), unless it has a capital letter, an 's or no case."""
    return frozenset(name for name in named(question, names) if _is_called(question, name))


def _is_called(question: str, name: str) -> bool:
    first = _PART.findall(fold(name))[:1]
    said = [word for word in _QUESTION_WORD.findall(question) if named(word, [name])]
    return any(not word.islower() or word.endswith(("'s", "’s")) or bool(named(word, first)) for word in said)


def spoken_of(text: str, names: Iterable[str]) -> bool:
    """Whether the text says something of one of them ("Evan's boat", "Evan sails") and does not only address
    them ("Thanks, Evan!"): a word follows the name."""
    pattern, folded = _pattern(tuple(sorted(names))), fold(text)
    if pattern is None:
        return False
    ends = ((match.group(), folded[match.end() :].lstrip(" ")) for match in pattern.finditer(folded))
    return any(name.endswith(("'s", "’s")) or after[:1].isalnum() for name, after in ends)


def without_names(question: str, names: Iterable[str]) -> str:
    """The question without the names; unchanged if it has none of them."""
    pattern = _pattern(tuple(sorted(set(names))))
    if pattern is None:
        return question
    folded = [(c, at) for at, char in enumerate(question) for c in fold(char)]
    kept = list(question)
    for match in pattern.finditer("".join(c for c, _ in folded)):
        first, last = folded[match.start()][1], folded[match.end() - 1][1]
        kept[first : last + 1] = " " * (last + 1 - first)
    return " ".join("".join(kept).split())


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Replace each key of `names`, in any case, with its value. Affixes stay: "Dev's" becomes "Mickael's"."""
    for name, new in names.items():
        text = _whole(name).sub(lambda match, new=new: match[1] + new, text)  # type: ignore[misc]
    return text


@lru_cache(maxsize=1024)
def _whole(name: str) -> re.Pattern[str]:
    written_on = r"\w{0,2}" if _script(name).startswith(_PREFIXING) else ""
    unspaced = _script(name).startswith(_UNSPACED)
    starts, ends = ("", "") if unspaced else (rf"(?<!{_WORD})", rf"(?!{_WORD})")
    return re.compile(rf"{starts}({written_on}){re.escape(name)}{ends}", re.IGNORECASE)


@lru_cache(maxsize=1024)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    parts = {part for name in names for part in parts_of(name)}
    if not parts:
        return None
    # Longest first: of two names with the same beginning the whole one matches.
    return re.compile("|".join(_form(part) for part in sorted(parts, key=lambda p: (-len(p), p))))


def _form(part: str) -> str:
    """The pattern that finds the name in a sentence of its script."""
    word = re.escape(part)
    if _script(part).startswith(_PREFIXING):
        return rf"(?<!\w)\w{{0,2}}{word}(?!\w)"
    if _script(part).startswith(_UNSPACED):
        return word
    return rf"(?<!{_WORD}){word}(?!{_WORD})(?:['’]s(?!{_WORD}))?"


_PREFIXING = ("HEBREW", "ARABIC")
"""Scripts that attach prepositions and conjunctions to the name as prefixes."""
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "MYANMAR", "KHMER")
"""Scripts without spaces between words, or with endings attached to the name."""


def _script(name: str) -> str:
    return unicodedata.name(name[0], "")


@dataclass(frozen=True)
class Aliases:
    """The links between names that one audience may know."""

    pairs: tuple[tuple[str, str], ...] = ()

    @cached_property
    def _groups(self) -> tuple[tuple[str, ...], ...]:
        """The names of each person, in the order in which they were learned."""
        groups: list[dict[str, str]] = []
        for pair in self.pairs:
            mine = {fold(name): name for name in pair}
            touching = [group for group in groups if group.keys() & mine.keys()]
            merged = {key: name for group in touching for key, name in group.items()}
            groups = [group for group in groups if group not in touching] + [mine | merged]
        return tuple(tuple(group.values()) for group in groups)

    @cached_property
    def _first(self) -> Mapping[str, str]:
        return {name: group[0] for group in self._groups for name in group[1:]}

    def others(self, text: str) -> tuple[str, ...]:
        """The other names of each person whom the text names."""
        said = [(group, named(text, group)) for group in self._groups]
        return tuple(name for group, found in said if found for name in group if name not in found)

    def widened(self, question: str) -> str:
        """The question, extended by the other names of the people it names."""
        return " ".join([question, *self.others(question)])

    def of(self, tags: Iterable[str]) -> frozenset[str]:
        """The tags, extended by the other names of the people they name."""
        given = frozenset(tags)
        return given | {form(name) for known in given for name in self.others(known) for form in (fold, tag)}

    def canonical(self, text: str) -> str:
        """The text with each person under their first name in the group, to compare statements."""
        return renamed(text, self._first) if self._first else text
