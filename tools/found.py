"""What the model is shown of the things that a search found."""

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from memory.records import Hit
from memory.search.excerpts import Excerpt
from memory.sql.message_rows import Line
from memory.text.short_ids import short_ids
from tools.context import TurnContext

LONGEST_HIT = 1_500
"""Characters of one found thing that the model is shown."""
LONGEST_CONTEXT = 120
"""Characters of a line around a found message."""
LONGEST_RESULT = 4_000
"""Characters of one result."""


NOTHING_YET = "nothing is remembered yet"
SEEN = "what you see already, in the prompt or in an earlier result, is left out"


async def result(turn: TurnContext, hits: Sequence[Hit], limit: int) -> dict[str, Any]:
    """The first hits that the turn has not recalled yet, as far as they fit. They count as recalled from now
    on."""
    recalled = {hit.id for hit in turn.recalled}
    known = turn.shown | recalled
    new = [hit for hit in hits if hit.id not in recalled][:limit]
    parts = await turn.recall.excerpts(new, turn.audience, known)
    ids = short_ids([hit.id for hit in new if hit.memory])
    entries: list[dict[str, Any]] = []
    room = LONGEST_RESULT
    for one in parts:
        entry = _excerpt(one, turn.zone) if isinstance(one, Excerpt) else _hit(one, ids, turn.zone)
        room -= _size(entry)
        if entries and room < 0:
            break
        entries.append(entry)
        turn.recalled.extend(_texts(one))
    if known - {turn.message_id}:
        return {"memories": entries, "note": SEEN}
    if entries:
        return {"memories": entries}
    there = await turn.recall.anything(turn.audience, turn.shown)
    return {"memories": [], "note": "nothing was found" if there else NOTHING_YET}


def _hit(hit: Hit, ids: dict[str, str], zone: tzinfo) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": ids[hit.id]} if hit.memory else {}
    shown |= {"kind": hit.kind, "content": cut(hit.content, LONGEST_HIT), "at": moment(hit.created_at, zone)}
    if hit.memory:
        shown["subjects"] = list(hit.memory.subjects)
        if hit.memory.expires_at:
            shown["expires"] = moment(hit.memory.expires_at, zone)
    return shown


def _excerpt(excerpt: Excerpt, zone: tzinfo) -> dict[str, Any]:
    first = next(line for line in excerpt.lines if line.message.id in excerpt.found)
    lines = [text for line in excerpt.lines for text in _lines(line, excerpt)]
    return {"kind": "messages", "at": moment(first.message.sent_at, zone), "lines": lines}


def _lines(line: Line, excerpt: Excerpt) -> list[str]:
    message = line.message
    gap = ["…"] if message.id in excerpt.gaps else []
    if message.id in excerpt.found:
        return [*gap, f"{message.author}: {cut(message.text, LONGEST_HIT)}"]
    text = message.text
    short = text if len(text) <= LONGEST_CONTEXT else f"{text[: LONGEST_CONTEXT - 1].rstrip()}…"
    return [*gap, f"~ {message.author}: {short}"]


def _texts(one: Hit | Excerpt) -> list[Hit]:
    """What the model has read: an answer may rest on the lines around a found message too."""
    if isinstance(one, Hit):
        return [one]
    messages = (line.message for line in one.lines)
    return [Hit(m.id, "message", m.text, 0.0, m.sent_at, m.id, m.author) for m in messages]


def _size(entry: dict[str, Any]) -> int:
    return sum(len(str(value)) for value in entry.values())


def moment(at: datetime, zone: tzinfo) -> str:
    """``Sat 12 Aug 2023 14:05`` by the person's clock, as the prompt writes "Now"."""
    return f"{at.astimezone(zone):%a %d %b %Y %H:%M}"


def cut(text: str, longest: int) -> str:
    """A pasted page that a search brings back is not to fill the prompt."""
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text) - longest:,} more characters)"
