"""Step 4 of a turn: one transaction stores the reply, or the calls that a client is to run, and the jobs that
follow from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.turn.consolidation_due import ConsolidationDue
from agent.turn.context.gather import BuiltContext
from agent.turn.output.answer import Answer
from agent.turn.store_memories_job import STORE_MEMORIES, store_memories_payload
from agent.types import ReceivedMessage, TurnRequest
from agent.types.client import ITEMS, Item, with_description
from memory.process.spans import new_id
from memory.records import ForgetCandidate, Hit, Message
from memory.sql.jobs.job import Job
from memory.sql.messages.client_calls import store_calls
from memory.sql.messages.message_rows import missing
from memory.sql.messages.reply_sources import ReplySources
from memory.sql.rests_on import How
from memory.sql.tables import messages

if TYPE_CHECKING:
    from agent.wiring.components import Components


@dataclass(frozen=True, slots=True)
class Stored:
    """What a turn has stored."""

    message_id: str | None = None
    """The id of the reply in the transcript."""
    job: Job | None = None
    """The job that stores the answer's memories; this process has claimed it."""
    consolidated_at: datetime | None = None
    """When the conversation is to be consolidated."""


@dataclass(frozen=True)
class AnswerStore:
    """Stores the answer to a message.

    If the message was erased or forgotten while the model was thinking, nothing is stored. If anything else
    that the model was shown was, then neither calls, reply nor memories of the model are stored.
    """

    parts: "Components"
    consolidation: ConsolidationDue | None
    """Decides when a conversation is consolidated; None if none is."""

    async def store(
        self,
        received: ReceivedMessage,
        built: BuiltContext,
        hits: Sequence[Hit],
        answer: Answer | Sequence[Item],
        trace: str,
        forget: Sequence[ForgetCandidate] | None = None,
    ) -> Stored:
        """Store the answer with its jobs. If the model called the client's tools, there is no answer yet:
        store the calls, ours included, with the message. Of an anonymous turn nothing is stored."""
        request = received.request
        if request.user is None:
            return Stored()
        profile_ids, ids = built.prompt.known.message_ids, frozenset(hit.id for hit in hits)
        facts = [*built.facts, *(hit.memory for hit in hits if hit.memory)]
        # Forgetting takes these locks exclusively: either it sees our rows, or we see its deletions.
        async with self.parts.database.write(lock=request.reader.keys, shared=True) as connection:
            now = self.parts.clock()
            over = [one for one in facts if one.expires_at and one.expires_at <= now]
            expired = {one.id: one.message_id for one in over if one.message_id}
            sources = ReplySources(built.sources, profile_ids, request.reader, ids, expired)
            if not isinstance(answer, Answer):
                await self._store_calls(connection, received, sources, answer)
                return Stored()
            asks = None if forget is None else [[one.kind, one.id] for one in forget]
            reply = await self._store_reply(connection, received, sources, answer.message, now, asks)
            if reply is None and await missing(connection, [str(received.id)]):
                return Stored()
            if reply and answer.seen:
                await _describe_pictures(connection, str(received.id), answer.seen)
            traced: dict[str, Any] = {"trace": trace} if reply else {}
            job, due = None, None
            if reply and answer.memories:
                payload = store_memories_payload(answer.memories, request, received.id, hits, built.sources)
                job = await self.parts.queue.add(
                    connection, STORE_MEMORIES, request.user, payload | traced, now, ours=True
                )
            if self.consolidation and not request.occasion:  # without a reply too, for the person's message
                shown = None if received.history is not None else len(built.prompt.history)
                noted = not (built.prompt.narrow or built.prompt.client.form)
                due = await self.consolidation.expect(connection, request, now, shown, noted=noted, **traced)
        return Stored(reply.id if reply else None, job, due)

    async def _store_reply(
        self,
        connection: AsyncConnection,
        received: ReceivedMessage,
        sources: ReplySources,
        text: str,
        now: datetime,
        asks: Sequence[Sequence[str]] | None,
    ) -> Message | None:
        """Store the reply, in place of the calls that led to it. Returns None if any of its sources is
        deleted."""
        request, question = received.request, str(received.id)
        follows = question if received.history is not None else None
        talk = request.conversation_id
        reply = Message(new_id(), talk, "assistant", "hachi", text, now, follows=follows, asks=asks)
        stored = await self.parts.transcript.append(
            connection,
            reply,
            user=str(request.user),
            place=request.place,
            now=now,
            answering=question,
            unless=sources.any_missing(),
        )
        if stored:
            how: How = "followed" if request.occasion else "answered"
            await sources.record(connection, reply.id, question, how)
        if stored and request.client and request.client.after:
            await store_calls(connection, question, None)
        return stored

    async def _store_calls(
        self,
        connection: AsyncConnection,
        received: ReceivedMessage,
        sources: ReplySources,
        calls: Sequence[Item],
    ) -> None:
        """Store the calls that the client has to run and all calls before them, ours included, unless
        anything that they may repeat was forgotten."""
        client, lost = received.request.client, sources.any_missing()
        items = ITEMS.dump_python((*(client.after if client else ()), *calls))
        if not await connection.scalar(select(lost.holds), lost.values):
            await store_calls(connection, str(received.id), items, sources.ids)


async def _describe_pictures(connection: AsyncConnection, id: str, description: str) -> None:
    """Add the description of its pictures to a message, in the caller's transaction."""
    this = messages.c.id == id
    text = await connection.scalar(select(messages.c.text).where(this))
    # Setting `seq` to its own value logs the change for the index.
    noted = {"text": with_description(text or "", description), "seq": messages.c.seq}
    await connection.execute(update(messages).where(this).values(noted))


def message_of(request: TurnRequest, follows: str | None) -> Message:
    """Return the request's message, as the transcript has it."""
    return Message(
        id=new_id(),
        conversation_id=request.conversation_id,
        role="user",
        author=request.speaker,
        text=request.text,
        sent_at=request.sent_at,
        follows=follows,
    )
