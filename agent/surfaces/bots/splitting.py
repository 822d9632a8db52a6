"""A long text in parts that a platform takes, cut where a reader would pause, in any script.

A part is never cut off inside a code block: the block is closed at its end and opened again in the next one.
Where a text grows at its end, the parts before the last stay as they are, so that a text can be shown in
parts while it is written.
"""

import re
import unicodedata
from dataclasses import dataclass

SHORTEST = 100
"""The least limit: a block's fences must fit with some text between them."""
FULL = 0.4
"""A part is not cut at a paragraph, line or sentence that would leave it emptier than this."""

_FENCE = re.compile(r"(?<!`)(`{3,12})(?!`)(?:([\w+#.-]{0,30})(?=[^\S\n]*\n))?")
_BREAKS = (
    re.compile(r"\n[^\S\n]*\n+"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?…؟۔।])[\"'”’»)\]]*\s+|(?<=[。！？।])[」』”’）】]*"),
)
_SPACE = re.compile(r"\s+|[\u200b\u3001\uff0c]")
_ZWJ = "\u200d"


def units(text: str) -> int:
    """The length as platforms count it, in UTF-16 code units: letters beyond the first 65,536 are two. None
    counts more than that."""
    return len(text) + sum(letter > "\uffff" for letter in text)


def split(text: str, limit: int) -> list[str]:
    """The text in parts of at most `limit` UTF-16 code units (`SHORTEST` or more, else ValueError), none of
    them blank. Put together they are the text, but for what closes and opens a code block, and for parts
    that would be blank."""
    if limit < SHORTEST:
        raise ValueError(f"a part has {SHORTEST} characters or more, not {limit}")
    parts: list[str] = []
    fence: _Fence | None = None
    position = 0
    while position < len(text):
        head = fence.opening if fence else ""
        end = _end(text, position, limit - units(head), fence)
        piece = text[position:end]
        after = _fence_after(piece, fence)
        tail = _closing(piece, after) if after and end < len(text) else ""
        if piece.strip():
            parts.append(head + piece + tail)
        fence, position = after, end
    return parts


def closed(text: str) -> str:
    """The text with its last code block closed, where it is open: so is one that is still being written."""
    fence = _fence_after(text, None)
    return text + _closing(text, fence) if fence else text


@dataclass(frozen=True, slots=True)
class _Fence:
    """A code block that is open."""

    marks: str
    language: str

    @property
    def opening(self) -> str:
        return f"{self.marks}{self.language}\n"


def _fence_after(piece: str, fence: _Fence | None) -> _Fence | None:
    for found in _FENCE.finditer(piece):
        if fence is None:
            fence = _Fence(found[1], found[2] or "")
        elif len(found[1]) >= len(fence.marks):
            fence = None
    return fence


def _closing(piece: str, fence: _Fence) -> str:
    return fence.marks if piece.endswith("\n") else f"\n{fence.marks}"


def _end(text: str, start: int, room: int, fence: _Fence | None) -> int:
    """Where the part that begins at `start` ends. It fits, with what closes a block that is open there."""
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
    if closes and units(text[start : closes.end()]) <= room:
        return closes.end()  # else the next part would open a block only to close it
    return _before_empty_block(text, start, end)


def _before_empty_block(text: str, start: int, end: int) -> int:
    """Not after a line that opens a block: before it, where there is something before it."""
    opened = list(_FENCE.finditer(text, start, end))
    last = opened[-1] if opened else None
    if last and not text[last.end() : end].strip() and text[start : last.start()].strip():
        return last.start()
    return end


def _fitting(text: str, start: int, room: int) -> int:
    """The furthest end so that no more than `room` units lie between, and no letter is cut in two."""
    end, left = start, room
    while end < len(text):
        left -= 2 if text[end] > "\uffff" else 1
        if left < 0:
            break
        end += 1
    return end


def _cut(text: str, start: int, end: int, fence: _Fence | None) -> int:
    """The best place to cut between `start` and `end`."""
    least = start + int((end - start) * FULL)
    in_code = _fence_after(text[start:end], fence) is not None
    for kind in _BREAKS[1:2] if in_code else _BREAKS:
        if (found := _last(kind, text, start, end)) > least:
            return found
    found = _last(_SPACE, text, start, end)
    return found if found > start else _between_letters(text, start, end)


def _last(kind: re.Pattern[str], text: str, start: int, end: int) -> int:
    """The end of the last such break in there; `start` where there is none."""
    found = start
    for match in kind.finditer(text, start, end):
        if match.end() > start and not _inside_marks(text, match.end()):
            found = match.end()
    return found


def _between_letters(text: str, start: int, end: int) -> int:
    """Not within what a reader sees as one: a letter with its accents, an emoji, a flag, a fence."""
    for place in range(end, max(start, end - 64), -1):
        if not (_joined(text, start, place) or _inside_marks(text, place)):
            return place
    return end


def _joined(text: str, start: int, place: int) -> bool:
    before, after = text[place - 1], text[place]
    if _ZWJ in (before, after) or unicodedata.category(after).startswith("M"):
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True  # a skin tone; the tags of a flag such as Scotland's
    flags = 0
    while place - 1 - flags >= start and _half_a_flag(text[place - 1 - flags]):
        flags += 1
    return _half_a_flag(after) and flags % 2 == 1


def _half_a_flag(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"


def _inside_marks(text: str, place: int) -> bool:
    return 0 < place < len(text) and text[place - 1] == text[place] == "`"
