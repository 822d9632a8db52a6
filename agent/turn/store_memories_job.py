"""Write and read the payload of the job that stores the memories of an answer."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.types import TurnRequest
from memory.audience import Place
from memory.facts.candidate import Provenance
from memory.process.breaker import NotNow
from memory.records import Hit, NewMemory
from memory.sql.hidden import hidden_among, undoable_until
from memory.sql.jobs.job import Job
from memory.sql.tables import memories, messages

STORE_MEMORIES = "store_memories"
"""The kind of the job."""


def store_memories_payload(
    drafts: Sequence[NewMemory],
    incoming: TurnRequest,
    message_id: str | None,
    hits: Sequence[Hit],
    sources: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the payload: an answer's memories, which are not stored yet, and the ids of what they rest on:
    the message, the tools' `hits` (`elsewhere` names those of another place or account), and the `sources` of
    the prompt."""
    return {
        "drafts": [asdict(draft) for draft in drafts],
        "place": list(incoming.place.path),
        "said_at": incoming.sent_at.isoformat(),
        "message_id": message_id,
        "found": {kind: sorted(hit.id for hit in hits if hit.kind == kind) for kind in FOUND},
        "shown": sorted(sources),
        "elsewhere": sorted(hit.id for hit in hits if hit.origin),
    }


async def read_store_memories(
    job: Job, connection: AsyncConnection, now: datetime
) -> tuple[list[NewMemory], Provenance] | None:
    """Read the payload of `store_memories_payload` and the rows that it names. None if anything that the
    model was shown is hidden, or if a message is deleted: the new memories may repeat it. A deleted memory
    does not matter: it has expired, since forgetting one deletes the job. Raises NotNow while the forgetting
    can be undone."""
    payload, rows = job.payload, dict[str, Any]()
    ids = {kind: set(payload["found"][kind]) for kind in FOUND}
    ids["message"] |= {payload["message_id"]} - {None}
    for kind, (id, text) in FOUND.items():
        query = select(id.label("id"), text.label("text")).where(id.in_(ids[kind]))
        rows |= {row.id: row for row in await connection.execute(query)}
    said = ids["message"] | ids["memory"]
    if not rows.keys() >= ids["message"]:
        return None
    if not_shown := await hidden_among(connection, said.union(payload["shown"])):
        if until := await undoable_until(connection, not_shown, now):
            raise NotNow("it rests on what is forgotten and may come back", until)
        return None
    said_at = datetime.fromisoformat(payload["said_at"])
    origins = dict.fromkeys(payload.get("elsewhere", ()), "elsewhere")  # a job of an earlier version has none
    found = [(id, kind) for kind in FOUND for id in payload["found"][kind] if id in rows]
    origin = Provenance(
        user=job.user_id,
        said_at=said_at,
        place=Place(tuple(payload["place"])),
        message_id=payload["message_id"],
        said=rows[payload["message_id"]].text if payload["message_id"] else "",
        live=True,
        found=tuple(
            Hit(id, kind, rows[id].text, 0.0, said_at, origin=origins.get(id, "")) for id, kind in found
        ),
        shown=frozenset(payload["shown"]),
    )
    drafts = [NewMemory(**draft | {"subjects": tuple(draft["subjects"])}) for draft in payload["drafts"]]
    return drafts, origin


FOUND: dict[Literal["message", "memory"], Any] = {
    "message": (messages.c.id, messages.c.text),
    "memory": (memories.c.id, memories.c.content),
}
"""The kinds of hits that people stated, with the columns of their id and text."""
