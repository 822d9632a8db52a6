"""The jobs that follow a turn, in the form that the queue stores, and when a conversation is consolidated."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Literal, Protocol

from sqlalchemy import BindParameter, bindparam, case, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.types import TurnRequest
from agent.types.budget import Budget
from memory.audience import Place
from memory.facts.candidate import Provenance
from memory.process.breaker import NotNow
from memory.records import Decision, Draft, Hit
from memory.sql.hidden import hidden_among, undoable_until
from memory.sql.jobs.job import Job
from memory.sql.jobs.queue import JobQueue
from memory.sql.jobs.statements import When, when
from memory.sql.messages.message_rows import kept
from memory.sql.messages.summaries import LOOK_BACK, consolidation_subject, heard_by, owner_of
from memory.sql.tables import Utc, active_conversations, memories, messages

STORE_MEMORIES = "store_memories"
"""The kind of job that stores the memories[] of an answer."""
EXCHANGE = 2
"""Messages that the next exchange adds."""


@dataclass(frozen=True)
class ConsolidationDue:
    """When a conversation is consolidated: once it has been quiet for a while, or before messages that no
    summary covers leave the prompt's window. The due time of its one waiting job says so, for all processes;
    each exchange moves it in the transaction that stores the reply."""

    quiet: timedelta
    """How long nobody has written before a conversation counts as quiet."""
    window: int
    """How many recent messages a prompt holds …"""
    window_budget: Budget
    """… and how much of them."""

    async def expect(
        self, connection: AsyncConnection, request: TurnRequest, now: datetime, **payload: Any
    ) -> datetime:
        """Move the waiting consolidation of the conversation, or add one. Returns when it is due."""
        conversation, owner = request.conversation_id, owner_of(str(request.user), request.place)
        payload |= {"conversation": conversation, "place": list(request.place.path)}
        return await self._expect(connection, conversation, owner, payload, now)

    async def go_on(self, connection: AsyncConnection, job: Job, now: datetime) -> None:
        """Add a consolidation for the messages that follow those of this one."""
        conversation, place = job.payload["conversation"], Place(tuple(job.payload["place"]))
        await self._expect(connection, conversation, owner_of(job.user_id, place), job.payload, now)

    async def _expect(
        self,
        connection: AsyncConnection,
        conversation: str,
        owner: str,
        payload: Mapping[str, Any],
        now: datetime,
    ) -> datetime:
        about, payer = consolidation_subject(conversation, owner), owner.removeprefix("user:")
        given = {"conversation": conversation, "owner": owner, "later": now + self.quiet}
        return await JobQueue.expect(
            connection, LOOK_BACK, payer, payload, now, about=about, due=self._when, given=given
        )

    @cached_property
    def _when(self) -> When:
        """Now where the next exchange pushes a message out of the window that no summary covers, or later."""
        active = active_conversations.c
        covered = select(active.covered).where(
            active.conversation_id == _CONVERSATION, active.owner == _OWNER
        )
        later = messages.c.seq > func.coalesce(covered.scalar_subquery(), 0)
        uncovered = select(func.count() + EXCHANGE > self.window).where(*_HEARD, later)
        length = func.sum(func.length(messages.c.text))
        full = uncovered.with_only_columns(2 * length > self.window_budget.characters)
        leaving = or_(uncovered.scalar_subquery(), full.scalar_subquery())
        now, quiet = (bindparam(name, type_=Utc()) for name in ("now", "later"))
        return when(case((leaving, now), else_=quiet))


_CONVERSATION: BindParameter[str] = bindparam("conversation")
_OWNER: BindParameter[str] = bindparam("owner")
_HEARD = messages.c.conversation_id == _CONVERSATION, heard_by() == _OWNER, kept()


def store_memories_payload(
    drafts: Sequence[Draft],
    incoming: TurnRequest,
    message_id: str | None,
    found: Sequence[Hit],
    sources: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the payload: an answer's memories[], which no row has yet, and the ids of what they rest on:
    the message, what the tools brought (`found`), and what the prompt was written from (`sources`)."""
    return {
        "drafts": [asdict(draft) for draft in drafts],
        "place": list(incoming.place.path),
        "said_at": incoming.sent_at.isoformat(),
        "message_id": message_id,
        "found": {kind: sorted(hit.id for hit in found if hit.kind == kind) for kind in FOUND},
        "shown": sorted(sources),
    }


async def read_store_memories(
    job: Job, connection: AsyncConnection, now: datetime
) -> tuple[list[Draft], Provenance] | None:
    """Read the payload of `store_memories_payload`, with what it names. None where something that the model
    was shown is hidden, or was said and is gone: what it wrote may repeat that. A memory that is gone has
    expired; with a forgotten one the job goes. Raises NotNow while that can be undone."""
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
    found = [(id, kind) for kind in FOUND for id in payload["found"][kind] if id in rows]
    origin = Provenance(
        user=job.user_id,
        said_at=said_at,
        place=Place(tuple(payload["place"])),
        message_id=payload["message_id"],
        said=rows[payload["message_id"]].text if payload["message_id"] else "",
        live=True,
        found=tuple(Hit(id, kind, rows[id].text, score=0.0, created_at=said_at) for id, kind in found),
        shown=frozenset(payload["shown"]),
    )
    drafts = [Draft(**draft | {"subjects": tuple(draft["subjects"])}) for draft in payload["drafts"]]
    return drafts, origin


FOUND: dict[Literal["message", "memory"], Any] = {
    "message": (messages.c.id, messages.c.text),
    "memory": (memories.c.id, memories.c.content),
}
"""What tools bring of what people said: its kind, with the columns of its id and text."""


class Worker(Protocol):
    """Runs the jobs that a turn adds."""

    def hand_over(self, job: Job) -> Awaitable[list[Decision]]: ...

    def follow_up(self, job: Job | None, consolidated_at: datetime | None) -> None: ...
