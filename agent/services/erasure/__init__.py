"""Erases everything about a person permanently and returns a receipt."""

import asyncio
from collections.abc import Mapping
from weakref import WeakValueDictionary

from agent.services.arguments import user_named
from agent.services.erasure.outside_sql import ErasureOutsideSql
from agent.tracing.store import Traces
from memory.erasure.person.erasure import Erasure
from memory.erasure.person.receipt import Erased


class ErasureService:
    def __init__(self, erasure: Erasure, outside: ErasureOutsideSql, traces: Traces) -> None:
        self._erasure = erasure
        self._outside = outside
        self._traces = traces
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Held while a person is erased; the dictionary does not keep their name."""

    async def preview(self, *, user: str) -> Mapping[str, int]:
        """Return how many rows `erase` would delete from the database now, by kind."""
        return await self._erasure.preview(user_named(user))

    async def erase(self, *, user: str) -> Erased:
        """Erase the person. Returns the receipt: what was deleted and what is left. Messages that the person
        sends during the erasure are answered afterwards, as from a new person."""
        named = user_named(user)
        lock = self._locks.setdefault(named, asyncio.Lock())
        async with lock:
            places = await self._traces.places_of(named)
            return await self._erasure.erase(named, places, self._outside)

    async def finished(self, user: str | None) -> None:
        """Wait until no erasure of this person is running."""
        while user is not None and (lock := self._locks.get(user)) and lock.locked():
            async with lock:
                pass
