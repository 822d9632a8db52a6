"""Looking into the documents the companion was given."""

from typing import Annotated, Any

from pydantic import Field

from memory.documents.quote import display_names
from memory.records import Chunk
from memory.text import one_line
from tools.context import TurnContext
from tools.found import SEEN, cut
from tools.memories import without_default

LONGEST_LINE = 300
"""Characters of a title, or of the headings a passage stands under."""
ROOM_FOR_MARK = 30
"""Characters of the mark at the end of a cut passage."""
SHORTEST = 200
"""Characters of the best passage that are shown however small the budget: a name alone answers nothing."""


async def search_knowledge(
    turn: TurnContext,
    query: Annotated[str, Field(min_length=1, max_length=2000)],
    limit: Annotated[int, Field(ge=1, le=20, json_schema_extra=without_default)] = 5,
) -> dict[str, Any]:
    """Search documents, for all but people."""
    if turn.user is None:
        return {"chunks": [], "note": "this person is anonymous: no documents are read for them"}
    best = await turn.knowledge.search(query, turn.audience, limit)
    found = [chunk for chunk in best if chunk.id not in turn.shown]
    if not found:
        note = "nothing beyond what is before you already" if best else await _why_nothing(turn)
        return {"chunks": [], "note": note}
    names = display_names(chunk.source for chunk in found)
    shown = _that_fit([_shown(chunk, names[chunk.source]) for chunk in found], turn.knowledge_characters)
    notes = [SEEN] if len(found) < len(best) else []
    if left := len(found) - len(shown):
        notes.append(f"{left} more did not fit; a narrower question may bring them")
    return {"chunks": shown} | ({"note": "; ".join(notes)} if notes else {})


async def _why_nothing(turn: TurnContext) -> str:
    """Documents that may not be read here are as none: that there are any is nobody's business."""
    if await turn.knowledge.documents(turn.audience):
        return "nothing in the documents bears on this"
    return "no documents have been added that may be read here"


def _shown(chunk: Chunk, name: str) -> dict[str, Any]:
    return {"source": name, "title": _line(chunk.title), "heading": _line(chunk.heading), "text": chunk.text}


def _that_fit(passages: list[dict[str, Any]], characters: int) -> list[dict[str, Any]]:
    """The whole ones that fit together, best first; the first is there always, cut if need be."""
    first, *others = passages
    about = len(first["source"]) + len(first["title"]) + len(first["heading"])
    first["text"] = cut(first["text"], max(SHORTEST, characters - about) - ROOM_FOR_MARK)
    kept, left = [first], characters - _size(first)
    for passage in others:
        if _size(passage) <= left:
            kept.append(passage)
            left -= _size(passage)
    return kept


def _size(passage: dict[str, Any]) -> int:
    return sum(len(passage[part]) for part in ("source", "title", "heading", "text"))


def _line(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …"
