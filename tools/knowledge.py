"""The tool that searches documents."""

from typing import Annotated, Any

from pydantic import Field

from memory.documents.quote import display_names
from memory.records import Chunk
from memory.text import one_line
from tools.context import TurnContext
from tools.lookup import SEEN, cut
from tools.memories import without_default

LONGEST_LINE = 300
"""Maximum characters of a title, or of the headings above a passage."""
ROOM_FOR_MARK = 30
"""Characters reserved for the mark at the end of a cut passage."""
SHORTEST = 200
"""Minimum characters of the best passage, however small the budget is: a name alone answers nothing."""
IRRELEVANT = "nothing in the documents bears on this"
NONE_ADDED = "no documents have been added that may be read here"


async def search_knowledge(
    turn: TurnContext,
    query: Annotated[str, Field(min_length=1, max_length=2000)],
    limit: Annotated[int, Field(ge=1, le=20, json_schema_extra=without_default)] = 5,
) -> dict[str, Any]:
    """Search documents, for all but people."""
    if turn.user is None:
        return {"chunks": [], "note": "this person is anonymous: no documents are read for them"}
    best = await turn.knowledge.search(query, turn.audience, limit)
    new = [chunk for chunk in best if chunk.id not in turn.shown]
    if best and not new:
        return {"chunks": [], "note": "nothing beyond what you see already"}
    if not new:  # documents that may not be read count as absent: their existence must not leak
        some = await turn.knowledge.documents(turn.audience)
        return {"chunks": [], "note": IRRELEVANT if some else NONE_ADDED}
    names = display_names(chunk.source for chunk in new)
    shown = _that_fit([_passage(chunk, names[chunk.source]) for chunk in new], turn.knowledge_characters)
    notes = [SEEN] if len(new) < len(best) else []
    if more := len(new) - len(shown):
        notes.append(f"{more} more did not fit; a narrower question may bring them")
    return {"chunks": shown} | ({"note": "; ".join(notes)} if notes else {})


def _passage(chunk: Chunk, name: str) -> dict[str, Any]:
    return {"source": name, "title": _line(chunk.title), "heading": _line(chunk.heading), "text": chunk.text}


def _that_fit(passages: list[dict[str, Any]], characters: int) -> list[dict[str, Any]]:
    """Return the best passages that fit whole. The first is always included, cut if necessary."""
    first, *others = passages
    about = len(first["source"]) + len(first["title"]) + len(first["heading"])
    first["text"] = cut(first["text"], max(SHORTEST, characters - about) - ROOM_FOR_MARK)
    fitting, room = [first], characters - _size(first)
    for passage in others:
        if _size(passage) <= room:
            fitting.append(passage)
            room -= _size(passage)
    return fitting


def _size(passage: dict[str, Any]) -> int:
    return sum(len(passage[part]) for part in ("source", "title", "heading", "text"))


def _line(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …"
