"""Pick the few facts that every prompt contains: a person's most important ones, and those that share words
with the message; in a shared place also what others told of them there, attributed.

They come from SQL alone, and cost the same however large the memory is. The model searches for all else.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sqlalchemy import bindparam, or_, select

from memory.audience import Audience
from memory.index.bm25 import stems
from memory.records import Memory
from memory.sql.memories.memory_rows import UNEXPIRED, WITH_OWNERS, with_owners
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.message_rows import kept, name_in
from memory.sql.readable import MEMORIES_READABLE
from memory.sql.tables import memories, memory_tags, messages
from memory.text import tag

IMPORTANT = 0.5
"""The lowest importance of a core fact."""
POOL = 60
"""How many of the person's facts are considered, the most important first."""
TOLD_BY_OTHERS = 10
"""How many of the facts that others told of the person in this place, the most important first."""
WEIGHTY = 0.8
"""A fact of this importance is shown whatever the question …"""
BEARING = 2
"""… but for so many that share words with it, and are less important."""
LONGEST_QUESTION = 4_000
"""How many characters at the end of a question are read: the question follows pasted text."""

_BEST_FIRST = (memories.c.importance.desc(), memories.c.created_at.desc(), memories.c.id)
_TOLD = select(memories.c.id).where(
    memories.c.user_id == bindparam("user"), memories.c.importance >= IMPORTANT, MEMORIES_READABLE, UNEXPIRED
)
_CORE_FACTS = (
    WITH_OWNERS.where(memories.c.id.in_(_TOLD.order_by(*_BEST_FIRST).limit(bindparam("most"))))
    .order_by(None)
    .order_by(*_BEST_FIRST)
)
"""Built once: building it takes longer than running it."""
_TOLD_BY_OTHERS = (
    select(memories.c.id)
    .outerjoin(messages, messages.c.id == memories.c.message_id)
    .where(
        memories.c.id.in_(select(memory_tags.c.memory_id).where(memory_tags.c.tag == bindparam("tag"))),
        memories.c.user_id != bindparam("user"),
        memories.c.importance >= IMPORTANT,
        MEMORIES_READABLE,
        UNEXPIRED,
        or_(memories.c.message_id.is_(None), kept()),
    )
)
_CORE_FACTS_HERE = (
    WITH_OWNERS.add_columns(name_in(memories.c.user_id, bindparam("owners", expanding=True)).label("author"))
    .where(
        or_(
            memories.c.id.in_(_TOLD.order_by(*_BEST_FIRST).limit(bindparam("most"))),
            memories.c.id.in_(_TOLD_BY_OTHERS.order_by(*_BEST_FIRST).limit(TOLD_BY_OTHERS)),
        )
    )
    .order_by(None)
    .order_by(*_BEST_FIRST)
)


async def core_facts(
    store: MemoryStore, user: str, audience: Audience, now: datetime, *, named: str = ""
) -> list[Memory]:
    """Return the person's important facts that this audience may read, the most important and newest first;
    where a shared place knows them as `named`, and nobody else, also what others told of them."""
    given = {"user": user, "owners": list(audience.keys), "now": now, "most": POOL}
    if not named:
        return with_owners(await store.database.rows(_CORE_FACTS, given))
    rows = await store.database.rows(_CORE_FACTS_HERE, given | {"tag": tag(named)})
    authors = {row.id: row.author or row.user_id for row in rows}
    found = with_owners(rows)
    own = [memory for memory in found if memory.user_id == user]
    return own + [_attributed(memory, authors[memory.id]) for memory in found if memory.user_id != user]


def _attributed(memory: Memory, author: str) -> Memory:
    """Return the fact as said by its author: ``Ben said: “Ana loves climbing”``."""
    said = f"{author} said: “"
    whole = memory.content if memory.content.startswith(said) else f"{said}{memory.content}”"
    return replace(memory, content=whole)


def get_relevant_memories(facts: list[Memory], question: str, limit: int = 7) -> list[Memory]:
    """Pick at most `limit` core facts for this question: the weighty ones, then those that share words with
    it."""
    shared = {memory.id: shared_words(question, memory.content, memory.subjects) for memory in facts}
    facts = sorted(facts, key=lambda memory: -shared[memory.id] * (0.5 + memory.importance))
    weighty = [memory for memory in facts if memory.importance >= WEIGHTY]
    bearing = [memory for memory in facts if memory.importance < WEIGHTY and shared[memory.id] > 0]
    room = max(limit - len(bearing[:BEARING]), 0)
    return (weighty[:room] + bearing)[:limit]


def shared_words(question: str, content: str, subjects: Collection[str]) -> float:
    """Return how much of the question's words a fact has."""
    asked, said = stems(question[-LONGEST_QUESTION:]), stems(" ".join((content, *subjects)))
    return len(asked & said) / len(said) ** 0.5 if said else 0.0
