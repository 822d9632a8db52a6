"""Splits a long text into parts that a platform accepts, where a reader would pause.

A code block that is cut is closed at the end of its part and opened again in the next one. When the text
grows, all parts but the last stay the same, so it can be shown in parts while it is generated.
"""

import re
import unicodedata
from itertools import accumulate

MIN_FULL = 0.4
"""A part is cut at a paragraph, line or sentence only if at least this share of it is used."""
CLOSING = 9
"""The characters that are kept free in a part to close a code block."""

_FENCE = re.compile(r"^ {0,3}(`{3,8})(?!`)([^`\n]*)$", re.MULTILINE)
"""A fence stands at the start of a line, with nothing but the language behind it."""
_LINE = re.compile(r"\n")
_BREAKS = (
    re.compile(r"\n[^\S\n]*\n+"),
    _LINE,
    re.compile(r"(?<=[.!?…؟۔।])[\"'”’»)\]]*\s+|(?<=[。！？।])[」』”’）】]*"),
)
_SPACE = re.compile(r"\s+|[\u200b\u3001\uff0c]")
_JOINERS = re.compile("[\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
"""Parts of emoji: a joiner, skin tones, and the tags of flags."""
_HALVES = "".join(map(chr, range(0x1F1E6, 0x1F200)))
"""The letters of which two are a flag."""


def utf16_length(text: str) -> int:
    """Return the length in UTF-16 code units, the largest count that any platform uses."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(text: str, limit: int) -> list[str]:
    """Return parts of at most `limit` UTF-16 code units, none of them blank. Joined they are the text, apart
    from the fences that close and reopen code blocks. The limit is 100 or more, which leaves room for text
    between the fences."""
    parts: list[str] = []
    head = fence = ""
    while text:
        end = _end(text, limit - utf16_length(head), fence)
        piece, text = text[:end], text[end:]
        fence = _open_fence(piece, fence)
        if piece.strip():
            parts.append(head + (_closed(piece, fence) if text else piece))
        head = f"{fence}\n" if fence else ""
    return parts


def close_code_block(text: str) -> str:
    """Close the text's last code block, for example one that is still being generated."""
    return _closed(text, _open_fence(text, ""))


def _closed(piece: str, fence: str) -> str:
    return piece + ("\n" if fence and not piece.endswith("\n") else "") + _marks(fence)


def _marks(fence: str) -> str:
    return fence[: len(fence) - len(fence.lstrip("`"))]


def _open_fence(piece: str, fence: str) -> str:
    """Return the fence, such as "```python", of the code block that is open at the end of the piece; empty
    if there is none. `fence` is the one that is open at its start."""
    for marks, language in _FENCE.findall(piece):
        if not fence:
            fence = marks + "".join(language.split()[:1])[:30]
        elif not fence.startswith(marks + "`") and not language.strip():
            fence = ""
    return fence


def _end(text: str, room: int, fence: str) -> int:
    """Return where the part ends that begins the text."""
    if utf16_length(text) <= room:
        return len(text)
    full = _fitting(text, room - CLOSING)
    end = _cut(text[:full], text, fence)
    if opened := _open_fence(text[:end], fence):
        closing = re.compile(rf"\s*{_marks(opened)}`*[^\S\n]*\n?").match(text, end)
        if closing and utf16_length(text[: closing.end()]) <= room:
            return closing.end()  # otherwise the next part would begin with an empty block
        for last in list(_FENCE.finditer(text, 0, end))[-1:]:
            if not text[last.end() : end].strip():  # this part would end with an empty block
                return last.start() if text[: last.start()].strip() else full
    return end


def _fitting(text: str, room: int) -> int:
    """Return how many letters of the text have at most `room` UTF-16 code units."""
    used = accumulate(utf16_length(letter) for letter in text[:room])
    return sum(length <= room for length in used)


def _cut(window: str, text: str, fence: str) -> int:
    """Return the best place to cut in the window, with which the text begins."""
    in_code = bool(_open_fence(window, fence))
    for kind in (_LINE,) if in_code else _BREAKS:
        if (end := _last(kind, window, text)) > len(window) * MIN_FULL:
            return end
    between = range(len(window), max(1, len(window) - 64), -1)
    letter = next((at for at in between if not _joined(text, at)), len(window))
    return _last(_SPACE, window, text) or letter


def _last(kind: re.Pattern[str], window: str, text: str) -> int:
    """Return the last end of such a break in the window; 0 if there is none."""
    ends = [match.end() for match in kind.finditer(window)]
    return next((end for end in reversed(ends) if not _joined(text, end)), 0)


def _joined(text: str, at: int) -> bool:
    """Return whether a reader sees the letters around the place as one, such as an accent or an emoji; or
    whether it is in a fence."""
    before, after = text[at - 1 : at], text[at : at + 1]
    if _JOINERS.match(after) or before == "\u200d" or before == after == "`":
        return True
    if text.startswith("```", at) and before != "\n":  # it would begin a line in the next part
        return True
    if unicodedata.category(after or " ").startswith("M"):
        return True
    halves = at - len(text[:at].rstrip(_HALVES)) if after and after in _HALVES else 0
    return halves % 2 == 1
