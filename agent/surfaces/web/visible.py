"""Text that anybody may have written, fit to be put on a page: what does not show is made to show, and what
is too long is cut."""

import json
import re
from dataclasses import dataclass
from typing import Any

LONG = 4_000
"""Characters of one text that the page shows at once; the rest is behind a link."""

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, the escape that begins ANSI sequences among them
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # which turn the order of the text around them
    "\ud800-\udfff"  # halves of characters
    "\U000e0000-\U000e007f]"  # letters that nobody sees and a model reads
)


def visible(text: str) -> str:
    """With a sign for every character that has none: ``␛`` for an escape, ``⟨U+202E⟩`` for what reverses."""
    return _UNSEEN.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if 0xD800 <= code <= 0xDFFF:
        return "\N{REPLACEMENT CHARACTER}"
    return f"⟨U+{code:04X}⟩"


@dataclass(frozen=True, slots=True)
class Cut:
    """A text as far as it is shown."""

    text: str
    length: int
    """Characters of the whole."""
    at: str = ""
    """Where in the span the whole is, as a JSON pointer; empty where nothing more can be shown."""

    @property
    def more(self) -> int:
        return self.length - len(self.text)


def cut(value: Any, at: str = "", most: int = LONG) -> Cut:
    text = written(value)
    return Cut(text[:most], len(text), at)


def written(value: Any) -> str:
    """As text: a string as it is, anything else as JSON over several lines."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def in_json(value: Any) -> bytes:
    """Exactly, in ASCII, so that nothing in it can do anything where it is shown."""
    return json.dumps(value, ensure_ascii=True, indent=2, default=str).encode()


def tidied(text: str) -> str:
    """JSON that was written in one line, over several; anything else as it is."""
    if text[:1] in ("{", "[") and len(text) <= 20 * LONG:
        try:
            return written(json.loads(text))
        except (ValueError, RecursionError):
            return text
    return text


def pointed(value: Any, pointer: str) -> Any:
    """What a JSON pointer leads to. Raises LookupError."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            if not (name.isascii() and name.isdigit() and len(name) < 9):
                raise LookupError(pointer)
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value[name]
        else:
            raise LookupError(pointer)
    return value


def step(name: object) -> str:
    """One name as a step of a JSON pointer."""
    return "/" + str(name).replace("~", "~0").replace("/", "~1")
