"""List the conversations that an audience may read, with their summaries."""

from datetime import datetime

from sqlalchemy import func, select

from memory.audience import Audience, Place
from memory.records import Conversation
from memory.sql.engine import Database
from memory.sql.messages.message_rows import is_visible
from memory.sql.messages.summaries import ConversationSummaries
from memory.sql.messages.transcript import position_of
from memory.sql.readable import messages_readable
from memory.sql.tables import messages

TITLE = 200
"""Characters of the first message that serve as a title."""


async def conversations_of(
    database: Database,
    audience: Audience,
    now: datetime,
    limit: int,
    *,
    before: str | None = None,
    id: str | None = None,
) -> list[Conversation]:
    """Return the conversations in which this audience may read a message, ordered by their newest
    message, newest first. `before` is the id of a message: only conversations that ended before it are
    returned. `id` selects one conversation. Raises NotFound if the audience may not read the message
    `before`."""
    this = messages.c
    first, last = func.min(this.seq), func.max(this.seq)
    counted = select(
        this.conversation_id, func.count().label("many"), first.label("first"), last.label("last")
    )
    counted = counted.where(messages_readable(audience), is_visible()).group_by(this.conversation_id)
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
