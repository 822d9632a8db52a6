"""Step 4 of a turn: what it leaves in the transcript, the reply or the calls that a client is to run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.types import ReceivedMessage, TurnRequest
from agent.types.client import Called, items_as_json
from memory.process.spans import new_id
from memory.records import Message
from memory.sql.messages import Transcript
from memory.sql.reply_sources import ReplySources


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


@dataclass(frozen=True)
class AnswerStore:
    """Stores what answers one message, in the caller's transaction."""

    transcript: Transcript
    connection: AsyncConnection
    received: ReceivedMessage
    sources: ReplySources
    """What the answer was written from."""

    async def store_reply(self, text: str, now: datetime) -> Message | None:
        """Store the reply, instead of the calls that led to it. Returns None if the message that it answers,
        or something that it was written from, is gone."""
        request, question = self.received.request, str(self.received.id)
        reply = Message(
            id=new_id(),
            conversation_id=request.conversation_id,
            role="assistant",
            author="hachi",
            text=text,
            sent_at=now,
            follows=question if self.received.history is not None else None,
        )
        stored = await self.transcript.append(
            self.connection,
            reply,
            user=str(request.user),
            place=request.place,
            now=now,
            answering=question,
            lost=self.sources.lost(),
        )
        if stored:
            await self.sources.record(self.connection, reply.id, question)
        if stored and request.client and request.client.after:
            await self.transcript.keep_items(self.connection, question, None)
        return stored

    async def store_calls(self, calls: Sequence[Called]) -> None:
        """Store the calls that the client is to run, and those before them, unless something that they may
        repeat was forgotten."""
        client = self.received.request.client
        items = items_as_json().dump_python((*(client.after if client else ()), *calls))
        lost = self.sources.lost()
        if not await self.connection.scalar(select(lost.holds), lost.values):
            question = str(self.received.id)
            await self.transcript.keep_items(self.connection, question, items, self.sources.ids)
