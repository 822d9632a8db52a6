"""The key of exact match: two texts with one key are the same statement, in any script.

Case, Unicode form, white space, the shape of quotes and dashes, Hebrew vowel points, Arabic short vowels and
closing punctuation are removed. Whatever may carry a value stays: accents, signs, decimal marks, question
marks, emoji, and the Hebrew final letters (אף is a nose, אפ an app). The keys are stored in the database, so
the output for a given text must never change.
"""

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b

CLOSING = " .!…,;:'\"。！，、；：،؛।·"
OPENING = " ¡'\""

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


def tidy(text: str) -> str:
    """The text with one form of quotes, dashes, digits, points and spaces; case and marks stay."""
    text = _RAISED.sub(lambda raised: "^" + raised[0], text)
    text = unicodedata.normalize("NFKC", text.translate(_TABLE)).translate(_TABLE)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _POINTS.sub("", text))
        text = "".join(_plain_digit(letter) for letter in text)
    return " ".join(text.split())


@lru_cache(maxsize=4096)
def normalise(text: str) -> str:
    """The spelling that all texts with the same key share. Normalising twice changes nothing more."""
    plain = tidy(unicodedata.normalize("NFKC", tidy(text).casefold()))
    bare = " ".join(_LISTING.sub(" ", plain).split())
    return bare.rstrip(CLOSING).lstrip(OPENING) or plain


def content_key(text: str) -> str:
    """The hash of `normalise(text)`, 32 hexadecimal digits, for a unique column."""
    return blake2b(normalise(text).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _plain_digit(letter: str) -> str:
    if letter.isascii() or not letter.isdecimal():
        return letter
    return str(unicodedata.decimal(letter))
