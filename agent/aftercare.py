"""Step 5 of a turn: what is done after the reply, from the durable queue.

Each kind of work has a handler that is safe to run twice. A crash leaves the work in the queue; the next
start, or another replica, does it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from agent.messages import Incoming
from memory.audience import Place
from memory.case import Origin
from memory.errors import MemoryFault
from memory.index import Index
from memory.indexing import Indexing
from memory.recall import Recall
from memory.records import Decision, Draft, Hit
from memory.remember import Remembering
from memory.removal import UNINDEX
from memory.work import Work, WorkQueue

log = logging.getLogger("hachi.aftercare")

STORE_MEMORIES = "store_memories"
"""The kind of work that stores an answer's memories[]."""


GRACE = 5.0
"""Seconds that what is being done may still take when the companion closes."""


class Aftercare:
    def __init__(
        self,
        queue: WorkQueue,
        remembering: Remembering,
        indexing: Indexing,
        recall: Recall,
        index: Index,
        clock: Callable[[], datetime],
    ) -> None:
        self._queue = queue
        self._remembering = remembering
        self._indexing = indexing
        self._recall = recall
        self._index = index
        self._clock = clock
        self._running: asyncio.Task[None] | None = None
        self._again = False
        self._stopped = False

    def wake(self) -> None:
        """There is something to do: do it in the background."""
        if self._stopped:
            return
        self._again = True
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run(), name="hachi aftercare")

    async def settle(self) -> None:
        """Until everything that is due has been done. What failed and waits for another try is left."""
        self.wake()
        while self._running is not None and not self._running.done():
            await asyncio.shield(self._running)

    async def do(self, id: str) -> list[Decision]:
        """One piece of work now; what it decided. Empty when somebody else has taken it, or when it has to
        wait: the reply that it belongs to is out already, and is not to fail for it."""
        try:
            piece = await self._queue.claim(self._clock(), id)
            return await self._handle(piece) if piece else []
        except MemoryFault as error:
            log.warning("aftercare waits: %s", error)
            return []

    async def stop(self) -> None:
        """Finish what is being done, and no more; what takes longer than `GRACE` is broken off. It is in the
        queue, and so is the rest."""
        self._stopped, self._again = True, False
        if self._running is not None:
            await asyncio.wait([self._running], timeout=GRACE)
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        while self._again:
            self._again = False
            try:
                while not self._stopped and (piece := await self._queue.claim(self._clock())):
                    await self._handle(piece)
                if self._stopped:
                    return
                await self._indexing.try_to_catch_up()
                await self._recall.note_uses()
            except MemoryFault as error:
                log.warning("aftercare waits: %s", error)

    async def _handle(self, piece: Work) -> list[Decision]:
        try:
            decisions = await self._dispatch(piece)
        except Exception as error:
            log.warning("work %s (%s) failed, attempt %d: %s", piece.id, piece.kind, piece.attempts, error)
            await self._queue.failed(piece, f"{type(error).__name__}: {error}", self._clock())
            return []
        await self._queue.done(piece.id)
        return decisions

    async def _dispatch(self, piece: Work) -> list[Decision]:
        if piece.kind == STORE_MEMORIES:
            drafts, origin = from_stored(piece)
            decisions = await self._remembering.remember(drafts, origin)
            return decisions + await self._remembering.note_names(origin, piece.payload["speaker"])
        if piece.kind == UNINDEX:
            await self._index.remove(piece.payload["ids"])
            return []
        raise ValueError(f"no handler for work of the kind {piece.kind!r}")


def to_store(
    drafts: Sequence[Draft], incoming: Incoming, message_id: str | None, recalled: Sequence[Hit]
) -> dict[str, Any]:
    """The payload of STORE_MEMORIES: an answer's memories[], and where they come from."""
    return {
        "drafts": [asdict(draft) for draft in drafts],
        "place": list(incoming.place.path),
        "said_at": incoming.sent_at.isoformat(),
        "said": incoming.text,
        "speaker": incoming.speaker,
        "message_id": message_id,
        "recalled": [{"id": hit.id, "kind": hit.kind, "content": hit.content} for hit in recalled],
    }


def from_stored(piece: Work) -> tuple[list[Draft], Origin]:
    payload = piece.payload
    said_at = datetime.fromisoformat(payload["said_at"])
    recalled = (
        Hit(hit["id"], hit["kind"], hit["content"], score=0.0, created_at=said_at)
        for hit in payload["recalled"]
    )
    origin = Origin(
        user=piece.user_id,
        said_at=said_at,
        place=Place(tuple(payload["place"])),
        message_id=payload["message_id"],
        said=payload["said"],
        recalled=tuple(recalled),
    )
    drafts = [Draft(**draft | {"subjects": tuple(draft["subjects"])}) for draft in payload["drafts"]]
    return drafts, origin
