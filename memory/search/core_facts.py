"""Select the few facts that every prompt contains: a person's most important ones, and those that share words
with the message.

They come from SQL alone, and cost the same however large the memory is. The model searches for all else.
"""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import bindparam, select

from memory.audience import Audience
from memory.index.bm25 import stems
from memory.records import Memory
from memory.sql.memories.memory_rows import UNEXPIRED, WITH_OWNERS, with_owners
from memory.sql.memories.store import MemoryStore
from memory.sql.readable import MEMORIES_READABLE, people_and_places
from memory.sql.tables import memories

IMPORTANT = 0.5
"""The lowest importance of a core fact."""
POOL = 60
"""How many of the person's facts are considered, the most important first."""
WEIGHTY = 0.8
"""A fact of this importance is always shown …"""
BEARING = 2
"""… but this many places are reserved for less important facts that share words with the question."""
LONGEST_QUESTION = 4_000
"""Only this many characters at the end of a message are read, because a question follows pasted text."""

_BEST_FIRST = (memories.c.importance.desc(), memories.c.created_at.desc(), memories.c.id)
_STATED = select(memories.c.id).where(
    memories.c.user_id.in_(bindparam("users", expanding=True)),
    memories.c.importance >= IMPORTANT,
    MEMORIES_READABLE,
    UNEXPIRED,
)
_CORE_FACTS = (
    WITH_OWNERS.where(memories.c.id.in_(_STATED.order_by(*_BEST_FIRST).limit(POOL)))
    .order_by(None)
    .order_by(*_BEST_FIRST)
)
"""Built once: building it takes longer than running it."""


async def core_facts(store: MemoryStore, user: str, audience: Audience, now: datetime) -> list[Memory]:
    """Return the person's important facts that this audience may read, in private also those of linked
    accounts. The most important and newest come first."""
    users = sorted({user, *people_and_places(audience)[0]})
    given = {"users": users, "owners": list(audience.keys), "now": now}
    return with_owners(await store.database.rows(_CORE_FACTS, given))


def get_relevant_memories(facts: list[Memory], question: str, limit: int = 7) -> list[Memory]:
    """Select at most `limit` core facts for this question: weighty ones, then those that share words with
    it."""
    shared = {memory.id: shared_words(question, memory.content, memory.subjects) for memory in facts}
    facts = sorted(facts, key=lambda memory: -shared[memory.id] * (0.5 + memory.importance))
    weighty = [memory for memory in facts if memory.importance >= WEIGHTY]
    bearing = [memory for memory in facts if memory.importance < WEIGHTY and shared[memory.id] > 0]
    room = max(limit - len(bearing[:BEARING]), 0)
    return (weighty[:room] + bearing)[:limit]


def shared_words(question: str, content: str, subjects: Collection[str]) -> float:
    """Return the share of the question's words that a fact has."""
    asked, said = stems(question[-LONGEST_QUESTION:]), stems(" ".join((content, *subjects)))
    return len(asked & said) / len(said) ** 0.5 if said else 0.0
