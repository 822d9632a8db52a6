"""Tells what a person stated from what others did, where the model wrote it down in that person's turn.

A model sees what others said in the prompt and in search results, and may note it in the turn of somebody who
only answered. Words decide. An echo is refused where they prove it. Where they do not, the fact is kept, with
the ids of the others' messages and memories that it may rest on.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.facts.candidate import Provenance
from memory.index import bm25
from memory.sql.message_rows import has_text
from memory.sql.tables import memories, memory_owners, messages, rests_on
from memory.text import sentences
from memory.text.names import fold

ECHO = "the message states nothing of it, and somebody else has said it"
LOST = "the message states nothing of it, and what it may come from was forgotten"

_WORD = re.compile(r"[^\W\d_]+")
_PLAIN = 4
"""A message in English has one function word among so many words, or more. Of others nobody can tell by words
that they do not state a fact that is written in English."""
_FUNCTION_WORDS = frozenset(
    "a an and are as at be been but by can could do does for from had has have i if in is it its me my no"
    " not of on or our so that the their there this to was we were will with would you your".split()
)
_OF_SOMEBODY = frozenset("she he they her his him them hers theirs that this it yes no true right".split())
"""Words by which a message may speak of what others said: whether it states it, words cannot tell."""


@dataclass(frozen=True, slots=True)
class InView:
    """What stood in the prompt of a turn or was found in it, as words."""

    own: frozenset[int]
    """Of the person's own messages, and of what Hachi asked."""
    others: dict[str, frozenset[int]]
    """Of what others told, by the id of the message or memory."""
    names: frozenset[int]
    """Of the names of these others."""
    gone: bool
    """Whether something of it has been forgotten or erased since."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose statement a fact is."""

    refused: str | None = None
    rests_on: frozenset[str] = field(default_factory=frozenset)
    """The others' messages and memories that it may rest on."""


async def origin_of(connection: AsyncConnection, content: str, origin: Provenance) -> Origin:
    """Whose statement it is that a model has written down. In private nobody else's is in view."""
    if origin.place.private:
        return Origin()
    ids = {*origin.shown, *(hit.id for hit in origin.recalled if hit.kind != "summary")}
    person = _words(f"{origin.user} {origin.speaker}")
    fact = _words(content) - person
    if not (origin.live and origin.said and ids) or fact <= _words(origin.said):
        return Origin()
    view = await _in_view(connection, origin, ids)
    core = fact - view.names
    supported = core & view.own
    near = {id: core & said for id, said in view.others.items() if len(core & said) > len(supported)}
    rests_on = frozenset(id for id, shared in near.items() if shared - view.own)
    if supported or not person.isdisjoint(_words(content)) or not _tells_nothing_of_it(origin.said):
        return Origin(rests_on=rests_on)
    if any(2 * len(shared) >= len(core) for shared in near.values()):
        return Origin(ECHO)
    return Origin(LOST) if view.gone else Origin(rests_on=rests_on)


async def echoes_of(connection: AsyncConnection, ids: Any, user: str) -> list[tuple[str, str]]:
    """The ids and texts of the memories of other people that may rest on these messages and memories: their
    ids, or a query for them."""
    query = (
        select(memories.c.id, memories.c.content)
        .join(rests_on, rests_on.c.derived_id == memories.c.id)
        .where(rests_on.c.source_id.in_(ids), rests_on.c.how == "found", memories.c.user_id != user)
    )
    rows = await connection.execute(query.distinct().order_by(memories.c.id))
    return [(row.id, row.content) for row in rows]


async def _in_view(connection: AsyncConnection, origin: Provenance, ids: set[str]) -> InView:
    own, others, names, known = _words(origin.said), {}, frozenset[int](), set[str]()
    said = select(messages).where(messages.c.id.in_(ids), has_text())
    for row in await connection.execute(said):
        known.add(row.id)
        if row.role == "user" and row.user_id != origin.user:
            names |= _words(f"{row.user_id} {row.author}")
            others[row.id] = _words(" ".join(part for part in sentences(row.text) if not _asks(part)))
        elif row.role == "user" or _asks(row.text):
            own |= _words(row.text)
    mine = select(memory_owners.c.memory_id).where(memory_owners.c.owner == user_key(origin.user))
    told = select(memories, memories.c.id.in_(mine).label("mine")).where(memories.c.id.in_(ids))
    for row in await connection.execute(told):
        known.add(row.id)
        if row.user_id == origin.user or row.mine:
            own |= _words(row.content)
        else:
            names |= _words(row.user_id)
            others[row.id] = _words(row.content)
    forgotten = select(func.count()).where(messages.c.id.in_(ids), messages.c.forgotten_at.is_not(None))
    gone = bool(ids - known) and bool(await connection.scalar(forgotten))
    return InView(own, others, names, gone)


def _tells_nothing_of_it(said: str) -> bool:
    """Whether the message is in English and speaks of nobody and nothing that others spoke of."""
    found = _WORD.findall(fold(said))
    plain = sum(word in _FUNCTION_WORDS for word in found)
    return bool(found) and _PLAIN * plain >= len(found) and _OF_SOMEBODY.isdisjoint(found) and not _asks(said)


def _asks(text: str) -> bool:
    return any(mark in text for mark in ("?", "？", "؟"))


def _words(text: str) -> frozenset[int]:
    vector = bm25.query(text)
    return frozenset(vector.indices) if vector is not None else frozenset()
