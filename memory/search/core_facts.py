"""The few facts that go with every question: what matters most of what a person told, and bears on it.

No search: it asks the record alone, so it needs neither index nor embedder, and costs the same however much
is remembered. Whatever else bears on the question the model looks up.
"""

from datetime import datetime
from functools import lru_cache

from sqlalchemy import select

from memory.audience import Audience
from memory.index import bm25 as words
from memory.records import Memory
from memory.sql.memories import MemoryStore
from memory.sql.memory_rows import readable, unexpired
from memory.sql.tables import memories

IMPORTANT = 0.5
"""Facts of medium importance and more."""
POOL = 60
"""How many of what the person told, the most important first, are looked at."""
TELLING = 0.75
"""From here on a fact is shown whatever the question is …"""
UNASKED = 3
"""… but so many at most, where the question has nothing to do with them."""
LONGEST_QUESTION = 4_000
"""Characters of a question that are read for it, the last ones: after something pasted comes the question."""


async def core_facts(store: MemoryStore, user: str, audience: Audience, now: datetime) -> list[Memory]:
    """What the person told that matters and may be read here, the most important first, then the newest."""
    told = (
        select(memories.c.id)
        .where(
            memories.c.user_id == user,
            memories.c.importance >= IMPORTANT,
            readable(audience),
            unexpired(now),
        )
        .order_by(memories.c.importance.desc(), memories.c.created_at.desc(), memories.c.id)
        .limit(POOL)
    )
    found = await store.where(memories.c.id.in_(told))
    return sorted(found, key=lambda memory: (-memory.importance, -memory.created_at.timestamp(), memory.id))


def get_relevant_memories(facts: list[Memory], question: str, limit: int = 7) -> list[Memory]:
    """Of these facts, at most `limit` for this question: what shares most words with it first, then what is
    telling in itself."""
    asked = _words(question[-LONGEST_QUESTION:])
    shared = {memory.id: _share(asked, _said(memory.content, memory.subjects)) for memory in facts}
    bearing = [memory for memory in facts if shared[memory.id] > 0]
    bearing.sort(key=lambda memory: -shared[memory.id] * (0.5 + memory.importance))
    telling = [m for m in facts if not shared[m.id] and m.importance >= TELLING][:UNASKED]
    room = max(limit - len(telling), UNASKED)  # many share a small word with it; none crowds out an allergy
    return (bearing[:room] + telling)[:limit]


def _share(asked: frozenset[int], said: frozenset[int]) -> float:
    return len(asked & said) / len(said) ** 0.5 if said else 0.0


@lru_cache(maxsize=4096)  # the same facts come up turn after turn
def _said(content: str, subjects: tuple[str, ...]) -> frozenset[int]:
    return _words(f"{content} {' '.join(subjects)}")


def _words(text: str) -> frozenset[int]:
    """Its words as the index cuts them: without English stop words and endings, in any script."""
    vector = words.query(text)
    return frozenset(vector.indices) if vector is not None else frozenset()
