"""Erases everything about a person permanently and returns a receipt."""

import asyncio
import logging
from collections.abc import Mapping
from weakref import WeakValueDictionary

from memory.forgetting.erasure import Erasure
from memory.records import Erased

log = logging.getLogger("hachi.erasure")


class ErasureService:
    def __init__(self, erasure: Erasure) -> None:
        self._erasure = erasure
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Held while a person is erased; the dictionary does not keep their name."""

    async def preview(self, *, user: str) -> Mapping[str, int]:
        """Return how many rows `erase` would delete from the database now, by kind."""
        return await self._erasure.preview(user)

    async def erase(self, *, user: str) -> Erased:
        """Erase the person. Returns the receipt: what was deleted and what is left. Messages that the person
        sends during the erasure are answered afterwards, as from a new person."""
        lock = self._locks.setdefault(user, asyncio.Lock())
        async with lock:
            return await self._erasure.erase(user)

    async def resume(self) -> list[Erased]:
        """Go on with erasures that were interrupted. One whose person has spoken since waits until somebody
        runs it again, because it would take what they said since, too."""
        receipts = []
        for user, spoken in await self._erasure.unfinished():
            if spoken:
                log.warning(
                    "the erasure of %s was interrupted, and they have spoken since; run it again", user
                )
            else:
                receipts.append(await self.erase(user=user))
        return receipts

    async def finished(self, user: str | None) -> None:
        """Wait until no erasure of this person is running. Raises NotOpen, before anything is waited for."""
        self._erasure.database.check_usable()
        while user is not None and (lock := self._locks.get(user)) and lock.locked():
            async with lock:
                pass
