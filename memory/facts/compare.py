"""Compare two facts by their words, without a model.

Words can only prove that two facts are the same: they have the same words in the same order, in any script.
Case, Unicode form, white space, the shape of quotes and dashes, vowel points and closing punctuation are
ignored. Anything that may carry a value counts: accents, signs, decimal marks, question marks, emoji, ß, and
the Hebrew final letters (אף is a nose, אפ an app).

If a model rules that a fact is known, its words are not stored. So the stored fact must have each of them,
because any word may be the value, and neither may deny the other (`missing_value`). There are two exceptions.
Function words are ignored, unless one replaces another ("9 am", "9 pm"). Words may replace a longer run with
a number ("in her thirties" for "30 years old").
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Literal

from rapidfuzz.distance import Levenshtein

from memory.index.bm25 import stems
from memory.index.embedders import Thresholds
from memory.text import sentences
from memory.text.names import fold, without_names

Relation = Literal["same", "subsumed", "contradiction", "outdated", "different"]

NEAR = 1 / 3
"""The position of the threshold for a shared topic between `recall`, which any two facts of a person reach,
and `dedupe`."""
NEARLY_THE_SAME_SPELLING = 0.8
"""Normalised Levenshtein similarity above which two texts count as similar, whatever their vectors say."""

_CLOSING = " .!…,;:'\"。！，、；：،؛।·۔։።။។"
_OPENING = " ¡'\""

_SHAPES = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u0060\u00b4\u05f3\uff07", "'"),
    **dict.fromkeys('\u201c\u201d\u201e\u201f\u2033\u05f4\u00ab\u00bb\u300c\u300d\uff02', '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u05be\ufe58\uff0d", "-"),
}  # fmt: skip
_UNSEEN = (
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069"
    "\ufeff\ufe0e\ufe0f"
)
_TABLE = str.maketrans({**_SHAPES, **dict.fromkeys(_UNSEEN, None), "\u0640": None})
_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670]")
_RAISED = re.compile("[⁰¹²³⁴-⁹]+")  # NFKC would turn 10² into 102
_LISTING = re.compile(r"[,;](?=\s)")
_SILENT = frozenset(
    """a an the is are be been being of at by for with about as to from in on up down into and that this these
    those which who whom it its he she they them their his her him i me my we us our you your there here very
    too also so then just s""".split()
)
"""Function words, which carry no value."""
_DENYING = frozenset(
    map(
        fold,
        """no not never none nobody nothing neither nor without cannot stop stops stopped quit quits ceased
        former formerly ex only but except hardly barely rarely almost ago longer anymore used gave given non
        ne n pas jamais sans plus aucun aucune ni arrete arreter cesse ancien ancienne
        nicht kein keine keinen keiner keinem nie niemals ohne kaum nur aufgehort ehemalig ehemalige
        nunca sin dejo dejado tampoco nao sem parou deixou nem mai senza smesso niet geen nooit zonder gestopt
        inte aldrig utan ikke aldri slutade nigdy bez nu degil ei
        не нет никогда без бросил бросила перестал перестала δεν οχι ποτε χωρις
        לא אין אינו אינה בלי מעולם הפסיק הפסיקה لا ليس ليست لم لن بدون नहीं
        不 没 沒 無 无 未 非 안 못 않 없""".split(),
    )
)
"""Words, without accents, that deny or limit neighbouring words, or say that something has ended."""
_ASKING = ("?", "？", "؟", "՞", "\u037e")
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "MYANMAR", "KHMER")
_TOKEN = re.compile(
    r"(?:(?<=\s)|^)[-+]?\d+(?:[.,:/]\d+)*|\d+(?:[.,:/]\d+)*"
    r"|[^\W\d_](?:[^\W\d_]|[\u0900-\u0963\u0966-\u1cff])*|[^\w\s.,;!'\"()\[\]…-]|(?<=\w)-(?!\w)"
)
_NOT = re.compile(r"n't\b")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The relation of the new fact to the old one: same; different (both stay); contradiction (the new one
    supersedes the old one); subsumed (already stored); outdated (stated before its replacement). Words alone
    prove only the first two."""

    relation: Relation
    reason: str


DIFFERENT, SAME = Verdict("different", "other words"), Verdict("same", "the same words")


def _tidy(text: str) -> str:
    """Unify quotes, dashes, digits, points and spaces; keep case and punctuation."""
    text = _RAISED.sub(lambda raised: "^" + raised[0], text)
    text = unicodedata.normalize("NFKC", text.translate(_TABLE)).translate(_TABLE)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _POINTS.sub("", text))
        text = "".join(_ascii_digit(letter) for letter in text)
    return " ".join(text.split())


@lru_cache(maxsize=4096)
def normalise(text: str) -> str:
    """Return the normalised text; equal facts have the same. Idempotent."""
    # "ß" is no "ss": in Maßen is moderately, in Massen in crowds.
    folded = "ß".join(part.casefold() for part in _tidy(text).replace("ẞ", "ß").split("ß"))
    tidied = _tidy(unicodedata.normalize("NFKC", folded))
    bare = " ".join(_LISTING.sub(" ", tidied).split())
    return bare.rstrip(_CLOSING).lstrip(_OPENING) or tidied


def content_key(text: str) -> str:
    """Hash `normalise(text)` to 32 hexadecimal digits. The database stores it, so after a change of
    `normalise` earlier facts in the same words are not recognised."""
    return blake2b(normalise(text).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def same_words(text: str, other: str) -> bool:
    """Return whether both texts have the same words in the same order."""
    return normalise(text) == normalise(other)


def within(words: str, text: str) -> bool:
    """Return whether a text contains these words in sequence. Both must be normalised."""
    unspaced = words and _is_unspaced(words)
    return words in text if unspaced else f" {words} " in f" {text} "


def alike(text: str, other: str, similarity: float, thresholds: Thresholds) -> bool:
    """Return whether two facts share a topic, by the cosine of their vectors or by their spelling."""
    spelling = Levenshtein.normalized_similarity(normalise(text), normalise(other))
    return near(similarity, thresholds) or spelling > NEARLY_THE_SAME_SPELLING


def near(similarity: float, thresholds: Thresholds) -> bool:
    """Return whether a cosine means a shared topic."""
    return similarity >= thresholds.recall + NEAR * (thresholds.dedupe - thresholds.recall)


def _ascii_digit(letter: str) -> str:
    if letter.isascii() or not letter.isdecimal():
        return letter
    return str(unicodedata.decimal(letter))


def missing_value(new: str, stored: str) -> str | None:
    """Return a word of the new fact whose value the stored one lacks; None if no value would be lost."""
    every, every_before = _words(new), _words(stored)
    written, before = ([word for word in words if _tells(word)] for words in (every, every_before))
    new_words, stored_words = ([word.casefold() for word in words] for words in (written, before))
    if len(_denials(stored_words)) != len(_denials(new_words)):
        return max(_denials(stored_words), _denials(new_words), key=len)[-1]
    extra = Counter(new_words) - Counter(stored_words)
    if capital := [word for word in written if word.casefold() in extra and not word.islower()]:
        return capital[0]  # also a number, a sign, or a word in a script without capitals
    if signs := [word for word in Counter(stored_words) - Counter(new_words) if _is_sign(word)]:
        return signs[0]
    if extra:
        return None if _stand_for_numbers(extra, new_words, stored_words) else next(iter(extra))
    if swapped := _in_place(every, every_before):
        return swapped
    bound = {pair for pair in pairwise(new_words) if _is_number(pair[0]) or fold(pair[0]) in _DENYING}
    if apart := bound.difference(pairwise(stored_words)):
        return apart.pop()[1]
    names = {word for word in (*written[1:], *before[1:]) if word[0].isupper()}
    free = len(names) < 2 and not bound and all(word.islower() for word in new_words)
    return None if free or _in_order(new_words, stored_words) else new_words[-1]


def mentions(text: str, fact: str, aside: Collection[str] = ()) -> bool:
    """Return whether a text has a content word of a fact. The names `aside` do not count."""
    return not _telling(text).isdisjoint(_telling(without_names(fact, aside)))


def tells(text: str, fact: str, aside: Collection[str] = ()) -> bool:
    """Return whether a text has two, or a third, of a fact's content words besides the names `aside`."""
    stated = _telling(without_names(fact, aside))
    return len(stated & _telling(text)) >= min(2, max(1, len(stated) / 3))


def only_recalled(
    new: str, stored: Mapping[str, str], message: str, aside: Collection[str] = ()
) -> frozenset[str]:
    """Return the ids of similar stored facts that a new fact only repeats, taking nothing from the `message`.
    A sentence of the message states the fact if they share a content word; a question, only if nothing had to
    be recalled. A different denial, value or script counts as taken from the message."""
    bare, spoken = without_names(new, aside), spoken_sentences(message)
    stated, denials = _telling(bare), len(_denials(_words(new)))
    if _scripts(new).isdisjoint(_scripts(message)) or not stated.isdisjoint(_telling(" ".join(spoken))):
        return frozenset()
    values = {word.casefold() for word in _words(bare)[1:] if _is_value(word)}
    question = _telling(" ".join(one for one in sentences(message) if one not in spoken))
    recalled = set[str]()
    for id, text in stored.items():
        words = _words(text)
        if denials != len(_denials(words)) or not values <= {word.casefold() for word in words}:
            continue
        before = _telling(without_names(text, aside))
        if not (stated & question - before and stated & before <= question):
            recalled.add(id)
    return frozenset(recalled)


def takes_from(stored: str, new: str, message: str) -> bool:
    """Return whether the new fact has a content word of the stored one that the message lacks."""
    return not (_telling(new) - _telling(message)).isdisjoint(_telling(stored))


def spoken_sentences(message: str) -> list[str]:
    """Return the sentences that are not questions."""
    return [one for one in sentences(message) if not one.rstrip(_CLOSING).endswith(_ASKING)]


def _scripts(text: str) -> set[str]:
    return {unicodedata.name(letter, " ").split()[0] for letter in text if letter.isalpha()}


@lru_cache(maxsize=4096)
def _telling(text: str) -> frozenset[int]:
    return stems(" ".join(word for word in _words(text) if _tells(word)))


def differs_in_value(new: str, stored: str) -> bool:
    """Return whether the new fact has a different number, name, sign or denial, or different words in the
    same positions. In scripts without capitals any word may be a name."""
    every, every_before = _words(new), _words(stored)
    new_words, stored_words = ([word.casefold() for word in words] for words in (every, every_before))
    if len(_denials(new_words)) != len(_denials(stored_words)):
        return True
    marks = {word.casefold() for at, word in enumerate(every) if _is_mark(word, first=at == 0)}
    runs = SequenceMatcher(None, stored_words, new_words, autojunk=False).get_opcodes()
    swaps = [j - i == m - k and how == "replace" for how, i, j, k, m in runs if how != "equal"]
    return not marks <= {*stored_words} or (bool(swaps) and all(swaps))


def coarser(new: str, stored: str) -> bool:
    """Return whether the new fact has at most half as many content words, of which at most two are new."""
    new_words, stored_words = ({w.casefold() for w in _words(text) if _tells(w)} for text in (new, stored))
    return 2 * len(new_words) <= len(stored_words) and len(new_words - stored_words) <= 2


def _is_mark(word: str, first: bool) -> bool:
    cased = word.lower() != word.upper()
    return _is_number(word) or _is_sign(word) or not (word.islower() or (cased and first) or not _tells(word))


@lru_cache(maxsize=4096)  # the same facts recur
def _words(text: str) -> tuple[str, ...]:
    """Return the words; in scripts without spaces each character is a word."""
    tokens = _TOKEN.findall(_NOT.sub(" not", _tidy(text)))
    return tuple(part for word in tokens for part in (word if _is_unspaced(word) else [word]))


def _is_unspaced(word: str) -> bool:
    return unicodedata.name(word[0], "").startswith(_UNSPACED)


def _tells(word: str) -> bool:
    return not (word.isascii() and word.islower()) or word not in _SILENT


def _is_value(word: str) -> bool:
    """Return whether a word is a number, a sign, or a capitalised name."""
    return _is_number(word) or _is_sign(word) or word != word.lower()


def _is_number(word: str) -> bool:
    return any(letter.isnumeric() for letter in word)


def _is_sign(word: str) -> bool:
    return word in "%#-" or unicodedata.category(word[0])[0] == "S"


def _in_place(new: Sequence[str], stored: Sequence[str]) -> str | None:
    """Return the first new word that replaces another one in the same position."""
    stored_words, new_words = ([word.casefold() for word in words] for words in (stored, new))
    runs = SequenceMatcher(None, stored_words, new_words, autojunk=False).get_opcodes()
    return next((new[k] for how, i, j, k, m in runs if how == "replace" and j - i == m - k), None)


def _denials(words: Sequence[str]) -> list[str]:
    return [word for word in words if fold(word) in _DENYING]


def _stand_for_numbers(extra: Collection[str], new_words: Sequence[str], stored_words: Sequence[str]) -> bool:
    """Return whether each run with extra words replaces a longer run with a number."""
    for _, i, j, k, m in SequenceMatcher(None, stored_words, new_words, autojunk=False).get_opcodes():
        old, new = stored_words[i:j], new_words[k:m]
        if not set(extra).isdisjoint(new) and not (len(old) > len(new) and any(map(_is_number, old))):
            return False
    return True


def _in_order(new_words: Sequence[str], stored_words: Sequence[str]) -> bool:
    remaining = iter(stored_words)
    return all(word in remaining for word in new_words)
