"""Turn a text into weighted words: BM25 without the rarity of words, because that depends on the reader.

Accents and vowel points are removed, scripts without spaces are cut into overlapping pairs of characters (and
single ideographs), each emoji is a word, and English words are stemmed. English function words of a question
are left out, unless they are names ("where does Will live?").
"""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

from memory.text import storable

Words = Mapping[int, float]
"""The weight of each word, by its hash."""

AVERAGE_WORDS = 100
"""BM25's average number of words of a text. On LoCoMo, 20 to 200 change recall@10 by 0.001."""
AVERAGE_WINDOW = 50
"""The same for windows. A lower number favours short exchanges: 100 loses 0.006, 30 gains nothing."""
LONGEST = 1_000_000
"""The most characters of one text that are processed."""
_K, _B = 1.2, 0.75
"""BM25's constants: how fast repetition saturates, and how much the length of a text counts."""

FUNCTION_WORDS = frozenset(
    # articles, pronouns, question words
    "a an the i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she "
    "her hers herself it its itself they them their theirs themselves this that these those who whom which "
    "what when where why how here there "
    # be, have, do, and other auxiliaries with what is left of their short forms
    "am is are was were be been being have has had having do does did doing can will should "
    "don doesn didn isn aren wasn weren hasn haven hadn won wouldn shouldn couldn mustn needn shan ain "
    "s t d ll m re ve y o ma "
    # conjunctions, prepositions, particles
    "and but if or nor because as until while of at by for with about against between into through during "
    "before after above below to from up down in out on off over under again further then once so than too "
    "very not no only own same such both each few more most other some any all just now".split()
)

_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA_AND_HANGUL = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\uac00-\ud7a3"
_SOUTH_EAST_ASIAN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
_UNSPACED = re.compile(f"[{_HAN}{_KANA_AND_HANGUL}{_SOUTH_EAST_ASIAN}]+")
_IDEOGRAPH = re.compile(f"[{_HAN}]")
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670]+")
_ACCENTED = re.compile("[^\\x01-\\x7f\u2010-\u201f\u2026\u2022\U0001f300-\U0001faff]")
"""Matches what may be an accented letter: neither ASCII, nor typographic punctuation, nor an emoji."""
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'"})
_WORD = re.compile("(?:[^\\W_]|[\u0900-\u0963\u0966-\u0dff])+")
"""Letters and digits, and the signs of Indic scripts, which Python counts as neither."""
_ASCII_WORD = re.compile("[a-z0-9]+")
_OPENING = re.compile(r"(?:^|[.!?…:\n])[^\w.!?…:\n]*$")
"""Matches before the first word of a sentence."""


def document(text: str, average: int = AVERAGE_WORDS) -> dict[int, float]:
    """Return the weighted words of a text to index; empty if it has none."""
    words, length = tokens(text)
    return {word: weight(n, length, average) for word, n in Counter(words).items()}


def tokens(text: str) -> tuple[list[int], int]:
    """Return the words of a text to index, in order, and how many are content words."""
    words = _words(prepare(text).lower())
    length = len(words) - sum(map(FUNCTION_WORDS.__contains__, words))
    return [*map(_STEMS.__getitem__, words)], length


def tokens_of(texts: Iterable[str | None]) -> list[tuple[list[int], int]]:
    """Return the `tokens` of each text; None has none. A line that several texts share is parsed once."""
    lines = dict[str, tuple[list[int], int]]()
    found = []
    for text in texts:
        words, length = list[int](), 0
        for line in text.split("\n") if text else ():
            if line not in lines:
                lines[line] = tokens(line)
            words += lines[line][0]
            length += lines[line][1]
        found.append((words, length))
    return found


def weight(n: Any, length: Any, average: int) -> Any:
    """Return the weight of a word that occurs `n` times in a text of this length. Takes numbers or arrays."""
    return n * (_K + 1) / (n + _K * (1 - _B + _B * length / average))


def query(text: str) -> frozenset[int]:
    """Return the content words of a question, as hashes; empty if it has none."""
    return frozenset(map(_STEMS.__getitem__, _content_words(text)))


@lru_cache(maxsize=8192)  # the same facts, tasks and headings recur every turn
def stems(text: str) -> frozenset[int]:
    """Return the content words of a text, as hashes."""
    return query(text)


def beginnings(text: str) -> dict[int, str]:
    """Return the first letters of each content word, by its hash. The folded form of every text with that
    word contains them, because stemming changes at most the last two letters of what it leaves."""
    stems_of = {_STEMS[word]: _stemmer().stemWord(word) for word in _content_words(text)}
    return {
        word: "" if stem.startswith("emoji") else stem if _UNSPACED.fullmatch(stem) else stem[:-2]
        for word, stem in stems_of.items()
    }


def folded(text: str) -> str:
    """Return the text in lower case, without accents and vowel points."""
    return (_without_marks(text) if _ACCENTED.search(text) else text[:LONGEST]).lower()


def prepare(text: str) -> str:
    """Return the text as words separated by spaces, in the same form for documents and questions."""
    if text.isascii():
        return text[:LONGEST]
    return _UNSPACED.sub(_pairs, "".join(map(_symbol, _without_marks(text))))


def _without_marks(text: str) -> str:
    plain = unicodedata.normalize("NFKD", storable(text[:LONGEST]).translate(_APOSTROPHES))
    return unicodedata.normalize("NFC", _MARKS.sub("", plain))


def _content_words(text: str) -> list[str]:
    words, prepared = [], prepare(text)
    for match in _WORD.finditer(prepared):
        word = match.group()
        if word.lower() not in FUNCTION_WORDS or _is_name(word, prepared, match.start()):
            words.append(word.lower())
    return words


def _words(text: str) -> list[str]:
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


def _is_name(word: str, text: str, at: int) -> bool:
    """Return whether a function word is written as a name: capitalised, but not first in its sentence."""
    return len(word) > 1 and word.istitle() and not _OPENING.search(text, max(0, at - 20), at)


def _pairs(run: re.Match[str]) -> str:
    characters = run.group()
    if len(characters) == 1:
        return f" {characters} "
    words = [characters[at : at + 2] for at in range(len(characters) - 1)]
    return f" {' '.join(words + _IDEOGRAPH.findall(characters))} "


def _symbol(character: str) -> str:
    # The code point, because the names of emoji are long and share words such as "face".
    if character > "\u2000" and unicodedata.category(character) == "So":
        return f" emoji{ord(character)} "
    return character


class _Stems(dict[str, int]):
    """A cache of the hash of each word's stem, because stemming takes ten times as long."""

    def __missing__(self, word: str) -> int:
        if len(self) >= 20_000:
            self.clear()
        self[word] = zlib.crc32(_stemmer().stemWord(word).encode())
        return self[word]


_STEMS = _Stems()


@cache
def _stemmer() -> Any:
    from Stemmer import Stemmer  # loaded with the first text

    return Stemmer("english", 0)
