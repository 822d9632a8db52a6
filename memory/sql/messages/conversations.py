"""List conversations: each as far as an audience may read it, with its summary."""

from datetime import datetime

from sqlalchemy import func, select

from memory.audience import Audience, Place
from memory.records import Conversation
from memory.sql.engine import Database
from memory.sql.messages.message_rows import kept
from memory.sql.messages.summaries import ConversationSummaries
from memory.sql.messages.transcript import position_of
from memory.sql.readable import messages_readable
from memory.sql.tables import messages

TITLE = 200
"""Characters of a first message that are read as a title."""


async def conversations_of(
    database: Database,
    audience: Audience,
    now: datetime,
    limit: int,
    *,
    before: str | None = None,
    id: str | None = None,
) -> list[Conversation]:
    """Return the conversations of which this audience may read something, the newest message first: with
    `before`, those whose newest message is older than the one with this id; with `id`, that one. Raises
    NotFound for a message that may not be read."""
    this = messages.c
    first, last = func.min(this.seq), func.max(this.seq)
    counted = select(
        this.conversation_id, func.count().label("many"), first.label("first"), last.label("last")
    )
    counted = counted.where(messages_readable(audience), kept()).group_by(this.conversation_id)
    counted = counted.where(this.conversation_id == id) if id is not None else counted
    if before is not None:
        counted = counted.having(last < await position_of(database, before, audience))
    of = counted.order_by(last.desc()).limit(limit).subquery()
    begin, end = messages.alias("begin").c, messages.alias("end").c
    title = func.substr(begin.text, 1, TITLE)
    query = select(of, begin.place, title, begin.sent_at, end.sent_at, end.id)
    query = query.where(begin.seq == of.c.first, end.seq == of.c.last).order_by(of.c.last.desc())
    rows = await database.rows(query)
    summaries = await ConversationSummaries(database).texts([row[0] for row in rows], audience, now)
    return [
        Conversation(
            id, str(Place.of_key(place)), title, many, started_at, last_at, newest, summaries.get(id, "")
        )
        for id, many, _, _, place, title, started_at, last_at, newest in rows
    ]
