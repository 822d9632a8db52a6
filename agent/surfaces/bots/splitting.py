"""Splits a long text into parts that a platform accepts, where a reader would pause, in any script.

A code block that does not fit into a part is closed at its end and opened again in the next one. When the
text grows, all parts but the last two stay the same, so it can be shown in parts while it is generated.
"""

import re
import unicodedata
from dataclasses import dataclass

MIN_LIMIT = 100
"""Leaves room for text between the fences of a code block."""
MIN_FULL = 0.4
"""A part is cut at a paragraph, line or sentence only if at least this share of it is used."""

_FENCE = re.compile(r"(?<!`)(`{3,12})(?!`)(?:([\w+#.-]{0,30})(?=[^\S\n]*\n))?")
_LINE = re.compile(r"\n")
_BREAKS = (
    re.compile(r"\n[^\S\n]*\n+"),
    _LINE,
    re.compile(r"(?<=[.!?…؟۔।])[\"'”’»)\]]*\s+|(?<=[。！？।])[」』”’）】]*"),
)
_SPACE = re.compile(r"\s+|[\u200b\u3001\uff0c]")
_ZWJ = "\u200d"


def utf16_length(text: str) -> int:
    """Return the length in UTF-16 code units, the largest count that any platform uses."""
    return len(text) + sum(letter > "\uffff" for letter in text)


def split(text: str, limit: int) -> list[str]:
    """Return parts of at most `limit` UTF-16 code units, none of them blank. Joined they are the text, apart
    from the fences that close and reopen code blocks. Raises ValueError if the limit is below `MIN_LIMIT`."""
    if limit < MIN_LIMIT:
        raise ValueError(f"a part has {MIN_LIMIT} characters or more, not {limit}")
    parts: list[str] = []
    fence: _Fence | None = None
    position = 0
    while position < len(text):
        head = f"{fence.marks}{fence.language}\n" if fence else ""
        end = _end(text, position, limit - utf16_length(head), fence)
        piece = text[position:end]
        after = _fence_after(piece, fence)
        tail = _closing(piece, after) if after and end < len(text) else ""
        if piece.strip():
            parts.append(head + piece + tail)
        fence, position = after, end
    return parts


def close_code_block(text: str) -> str:
    """Close the text's last code block, for example one that is still being generated."""
    fence = _fence_after(text, None)
    return text + _closing(text, fence) if fence else text


@dataclass(frozen=True, slots=True)
class _Fence:
    """The fence that opens a code block."""

    marks: str
    language: str


def _fence_after(piece: str, fence: _Fence | None) -> _Fence | None:
    """Return the code block that is open at the end of the piece, if `fence` is open at its start."""
    for found in _FENCE.finditer(piece):
        if fence is None:
            fence = _Fence(found[1], found[2] or "")
        elif len(found[1]) >= len(fence.marks):
            fence = None
    return fence


def _closing(piece: str, fence: _Fence) -> str:
    return fence.marks if piece.endswith("\n") else f"\n{fence.marks}"


def _end(text: str, start: int, room: int, fence: _Fence | None) -> int:
    """Return the end of the part that begins at `start`, with room to close a code block that is open
    there."""
    whole = _fitting(text, start, room)
    if whole == len(text):
        return whole
    end = _cut(text, start, whole, fence)
    after = _fence_after(text[start:end], fence)
    if after is None:
        return end
    end = _cut(text, start, _fitting(text, start, room - len(after.marks) - 1), fence)
    after = _fence_after(text[start:end], fence)
    if after is None:
        return end
    closes = re.compile(rf"\s*`{{{len(after.marks)},12}}(?!`)[^\S\n]*\n?").match(text, end)
    if closes and utf16_length(text[start : closes.end()]) <= room:
        return closes.end()  # otherwise the next part would be an empty block
    return _before_empty_block(text, start, end)


def _before_empty_block(text: str, start: int, end: int) -> int:
    """Move the cut before a line that opens a block, if that is the last line."""
    opened = list(_FENCE.finditer(text, start, end))
    last = opened[-1] if opened else None
    if last and not text[last.end() : end].strip() and text[start : last.start()].strip():
        return last.start()
    return end


def _fitting(text: str, start: int, room: int) -> int:
    """Return the furthest end with at most `room` UTF-16 code units from `start`."""
    end, left = start, room
    while end < len(text):
        left -= 2 if text[end] > "\uffff" else 1
        if left < 0:
            break
        end += 1
    return end


def _cut(text: str, start: int, end: int, fence: _Fence | None) -> int:
    """Return the best place to cut between `start` and `end`."""
    least = start + int((end - start) * MIN_FULL)
    in_code = _fence_after(text[start:end], fence) is not None
    for kind in (_LINE,) if in_code else _BREAKS:
        if (found := _last(kind, text, start, end)) > least:
            return found
    found = _last(_SPACE, text, start, end)
    return found if found > start else _between_letters(text, start, end)


def _last(kind: re.Pattern[str], text: str, start: int, end: int) -> int:
    """Return the end of the last match; `start` if nothing matches."""
    found = start
    for match in kind.finditer(text, start, end):
        if match.end() > start and not _inside_marks(text, match.end()):
            found = match.end()
    return found


def _between_letters(text: str, start: int, end: int) -> int:
    """Move the cut out of what a reader sees as one character or mark: a letter with accents, an emoji, a
    flag, a fence."""
    for place in range(end, max(start, end - 64), -1):
        if not (_joined(text, start, place) or _inside_marks(text, place)):
            return place
    return end


def _joined(text: str, start: int, place: int) -> bool:
    before, after = text[place - 1], text[place]
    if _ZWJ in (before, after) or unicodedata.category(after).startswith("M"):
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True  # skin tones; tags of flags such as Scotland's
    halves = re.search("[\U0001f1e6-\U0001f1ff]*$", text[start:place])
    return "\U0001f1e6" <= after <= "\U0001f1ff" and halves is not None and len(halves[0]) % 2 == 1


def _inside_marks(text: str, place: int) -> bool:
    return 0 < place < len(text) and text[place - 1] == text[place] == "`"
