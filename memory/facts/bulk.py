"""What is known of some owners, as words, so that many facts can be stored at once.

Without a model, words alone relate two facts: the same ones, in whatever order. A fact whose words nobody has
told is new. Of any other the usual decision is made, with a search.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.facts.candidate import CandidateFact, Provenance
from memory.index import bm25
from memory.sql.memories import MemoryStore
from memory.sql.memory_rows import is_active
from memory.sql.tables import memories, memory_owners
from memory.text.names import Aliases, fold

Words = frozenset[int]

_theirs = memory_owners.c.owner.in_(bindparam("owners", expanding=True))
_IDS = select(memory_owners.c.memory_id).where(_theirs, is_active())
_TEXTS = select(memories.c.id, memories.c.content).where(memories.c.id.in_(_IDS))
_KEYS = select(memory_owners.c.content_key).where(
    _theirs, memory_owners.c.content_key.in_(bindparam("keys", expanding=True))
)


@dataclass
class KnownWords:
    """The words of each fact that the owners of a statement know."""

    store: MemoryStore
    origin: Provenance
    _texts: dict[str, str] = field(default_factory=dict)
    """By id."""
    _told: set[Words] = field(default_factory=set)
    _aliases: Aliases = field(default_factory=Aliases)
    _names: frozenset[str] = frozenset()
    """The people's names that are aliases, folded."""

    async def read(self, now: datetime) -> None:
        """Read what is not known yet: facts, and other names of people."""
        async with self.store.database.read() as connection:
            aliases = await self.store.aliases(connection, self.origin.audience.keys, now)
            if aliases != self._aliases:
                self._aliases = aliases
                self._names = frozenset(fold(name) for pair in aliases.pairs for name in pair)
                self._told.update(self._words(text) for text in self._texts.values() if self._named(text))
            if await self.new_ids(connection):
                for id, content in await connection.execute(_TEXTS, self._owners):
                    if id not in self._texts:
                        self.add(id, content)

    async def new_ids(self, connection: AsyncConnection) -> set[str]:
        """What others have stored since."""
        return set(await connection.scalars(_IDS, self._owners)) - self._texts.keys()

    async def used(self, connection: AsyncConnection, keys: Collection[str]) -> set[str]:
        """Which of these content keys a fact of the owners has, or has had."""
        return set(await connection.scalars(_KEYS, self._owners | {"keys": list(keys)}))

    @property
    def _owners(self) -> dict[str, list[str]]:
        return {"owners": list(self.origin.owners)}

    def add(self, id: str, content: str) -> None:
        self._texts[id] = content
        self._told.add(self._words(content))

    def is_new(self, fact: CandidateFact) -> bool:
        """Whether its words show that nothing alike is known, and that it corrects nothing by name."""
        words = self._words(fact.draft.content)
        return bool(words) and words not in self._told and not fact.draft.replaces

    def _words(self, content: str) -> Words:
        """The words of a fact in no order, with one name for each person."""
        vector = bm25.query(self._aliases.canonical(content) if self._named(content) else content)
        return frozenset(vector.indices) if vector is not None else frozenset()

    def _named(self, content: str) -> bool:
        text = fold(content)
        return any(name in text for name in self._names)
