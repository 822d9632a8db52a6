"""Quotes in JSON that a model wrote badly: which one ends a string, which ones belong to the sentence."""

import re

SPACE = r"[\s\u200b\u200c\u200d\u200e\u200f\u2060\ufeff]"
# Comments are bounded where the pattern is tried at many places, so that no text makes it quadratic.
GAP = rf"(?:{SPACE}|//[^\n]{{0,80}}\n|/\*[^*]{{0,80}}\*/)*+"
_KEY = (
    r"""(?:"[^"\n]{1,60}+"|'[^'\n]{1,60}+'|`[^`\n]{1,60}+`"""
    r"""|[“”„][^“”"\n]{1,60}+[”“"]|[‘’][^‘’'\n]{1,60}+[’‘'])"""
)
_BARE_KEY = r"[A-Za-z_]\w{0,40}+"
READ_KEY = re.compile(rf"(?:({_KEY})|({_BARE_KEY})){SPACE}*+(?::|=>|=)")
OBJECT = re.compile(rf"\{{{GAP}(?:{_KEY}|{_BARE_KEY}){SPACE}*+:")

_KNOWN = r"(?:message|memories|content|subjects|ttl|type|importance|replaces)"
_KNOWN_KEY = rf"""["'“”]{_KNOWN}["'”“]{SPACE}*+:"""
NEXT_KEY = re.compile(_KNOWN_KEY, re.IGNORECASE)

# What may follow the quote that closes a string. A bare key counts only before a value that shows itself.
_ANY_KEY = rf"""(?:{_KEY}{SPACE}*+:|{_BARE_KEY}{SPACE}*+:{SPACE}*+(?:["'“\[{{\d]|null|None|true|false))"""
_CUT_KEY = rf"""["'“‘]?\w{{0,40}}+["'”’]?{SPACE}*+\Z"""
_NEXT_FIELD = (
    rf"{GAP}\Z",
    rf"{GAP},{GAP}(?:[}}\]]|{_CUT_KEY}|{_ANY_KEY}|\{{{GAP}{_KEY}{SPACE}*+:)",
    rf"{GAP}(?i:{_KNOWN_KEY})",
    rf"[^\S\n]*+\n{SPACE}*+{_KEY}{SPACE}*+:",
    rf"{GAP}\]{GAP}(?:[,}}\]]|\Z)",
    rf"{GAP}\}}{GAP}(?:[,}}\])<{{`]|\Z)",
    r"\s*+\}[^\S\n]*+\n",
)
_NEXT_ITEM = (
    rf"{GAP}(?:\Z|[\])])",
    rf"""{GAP},{GAP}(?:["'“‘`{{\[\])]|\Z|(?:null|None|-?\d+){GAP}[,\])])""",
    rf"{GAP}\}}{GAP}(?:[,}}\]]|\Z)",
    rf"""[^\S\n]*+\n{SPACE}*+["'“]""",
)
# After the outermost object prose may follow, but not on a line where more quotes say otherwise.
AFTER_FIELD = re.compile("|".join(_NEXT_FIELD))
AFTER_TOP = re.compile("|".join((*_NEXT_FIELD, rf'{GAP}\}}(?![^"\n]{{0,80}}")')))
AFTER_ANY = re.compile("|".join((*_NEXT_FIELD, rf"{GAP}\}}")))
AFTER_ITEM = re.compile("|".join(_NEXT_ITEM))

CLOSERS = {'"': '"', "'": "'", "`": "`"}
CLOSERS |= dict.fromkeys("“”„", '”“"') | dict.fromkeys("‘’‚", "’'")
STOPS = {
    opener: re.compile(rf"\\.|[{closers}]|\{{\s*+(?=[\"'])|\}}", re.DOTALL)
    for opener, closers in CLOSERS.items()
}

_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|u[0-9a-fA-F]{0,3}\Z|\Z|(.))", re.DOTALL
)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "", "\n": ""}
_PLAIN_ESCAPES |= {mark: mark for mark in "\"'`\\/“”‘’"}


def unescape(raw: str) -> str:
    """The text of a string's inside. Unknown escapes stay as they are; half of one at the end is dropped."""
    if "\\" not in raw:
        return raw
    return joined_surrogates(_ESCAPE.sub(_unescaped, raw))


def joined_surrogates(text: str) -> str:
    """Pairs of surrogates become the character they stand for; lone ones go."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def _unescaped(match: re.Match[str]) -> str:
    short, long, byte, mark = match.groups()
    if digits := short or long or byte:
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else match[0]
    return "" if mark is None else _PLAIN_ESCAPES.get(mark, match[0])


def closes_field(text: str, at: int) -> bool:
    """Whether the unescaped quote at `at` ends a string of the outermost object, judged by what follows it.

    A quote inside a sentence is followed by more sentence; a closing one by the end, by a closer, or by a
    comma and another key.
    """
    return AFTER_TOP.match(text, at + 1) is not None


def end_before_key(text: str, start: int, at: int) -> int | None:
    """Where a string ended whose closing quote was forgotten, if one of our keys opens at `at`."""
    if NEXT_KEY.match(text, at) is None:
        return None
    before = text[max(start, at - 20) : at]
    kept = before.rstrip().removesuffix(",").rstrip()
    return at - len(before) + len(kept) if "," in before[len(kept) :] else None
