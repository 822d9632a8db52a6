"""List conversations, and store the summary of each conversation and owner, with the last message that it
covers. Other code writes the text. Private conversations of different people are separate, even with one id.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, case, exists, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, Place, user_key
from memory.process.spans import new_id
from memory.records import Conversation
from memory.sql.engine import Database
from memory.sql.messages.message_rows import is_visible
from memory.sql.messages.transcript import position_of
from memory.sql.readable import messages_readable
from memory.sql.tables import Utc, memories, messages, rests_on
from memory.sql.tables import active_conversations as table

CONSOLIDATE = "consolidate"
"""The kind of job that consolidates a conversation: it updates its summary and the speaker's context."""
TITLE = 200
"""Characters of the first message of a conversation that serve as its title."""


@dataclass(frozen=True, slots=True)
class ActiveConversation:
    """A conversation as one owner may read it."""

    id: str
    """The id of its summary in searches and in the index: a UUID."""
    conversation_id: str
    owner: str
    """The owner key of its readers: ``place:P``, or ``user:U`` in private."""
    mode: str | None
    """The purpose of the conversation, if set."""
    summary: str
    """Empty if not written yet, or withheld until it is rebuilt."""
    covered: int
    """The `seq` of the last message that the summary covers; 0 before the first."""
    updated_at: datetime
    """When the summary last changed."""
    revision: int
    """Grows when the summary changes."""
    withheld: bool = False
    """Whether the summary must be rewritten, because a source of it is no longer active."""


class Written(NamedTuple):
    """A summary that was stored."""

    id: str
    goes_on: bool
    """Whether there are messages after those it covers."""


def owner_of(user: str, place: Place) -> str:
    """Return the owner key of a conversation of `user` in `place`."""
    return user_key(user) if place.private else place.key


def consolidation_subject(conversation: str, owner: str) -> str:
    """Return the subject of a consolidation job. The queue runs jobs with the same subject as one."""
    return f"{owner} {conversation}"


class ConversationSummaries:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, conversation: str, owner: str, now: datetime) -> ActiveConversation | None:
        """Return the stored conversation, if any. A summary that rests on an expired fact is withheld."""
        given = {"conversation": conversation, "of": owner, "now": now}
        for row in await self._database.rows(_OF, given):
            return replace(_active(row), summary="", withheld=True) if row.outlived else _active(row)
        return None

    async def update_in(
        self,
        connection: AsyncConnection,
        conversation: str,
        owner: str,
        summary: str,
        *,
        after: int,
        revision: int,
        covered: int,
        now: datetime,
        rebuilt: bool = False,
        withheld: bool = False,
    ) -> Written | None:
        """Store a summary of the messages up to `covered`, in the caller's transaction. It extends the
        summary that covers messages up to `after` at this revision, or, if `rebuilt`, replaces it. A
        `withheld` summary is scheduled again. Returns None and changes nothing if the stored summary has
        changed since."""
        if covered < after or (covered == after and not rebuilt):
            return None
        if after == 0:
            await connection.execute(self._new(conversation, owner, now).on_conflict_do_nothing())
        summary = summary.strip()
        changes = or_(table.c.summary != summary, literal(rebuilt))
        moment = literal(now, table.c.updated_at.type)
        same = (table.c.conversation_id == conversation, table.c.owner == owner)
        moved = update(table).where(*same, table.c.covered == after, table.c.revision == revision)
        done = await connection.execute(
            moved.values(
                covered=covered,
                summary=summary,
                updated_at=case((changes, moment), else_=table.c.updated_at),
                revision=case((changes, table.c.revision + 1), else_=table.c.revision),
                withheld=int(withheld),
            ).returning(table.c.id, _GOES_ON.label("goes_on")),
            {"conversation": conversation, "of": owner, "upto": covered},
        )
        row = done.first()
        return None if row is None else Written(row.id, bool(row.goes_on))

    async def set_mode(self, conversation: str, owner: str, mode: str | None, now: datetime) -> None:
        """Set the purpose of a conversation, before or after its first message; None removes it."""
        row = self._new(conversation, owner, now, mode=mode)
        kept = row.on_conflict_do_update(
            index_elements=[table.c.conversation_id, table.c.owner], set_={"mode": mode}
        )
        await self._database.run(kept)

    def _new(self, conversation: str, owner: str, now: datetime, **given: Any) -> Insert:
        about = {"conversation_id": conversation, "owner": owner, "updated_at": now}
        return insert(table).values(id=new_id(), **about, **given)

    # For searches.

    async def by_ids(
        self, ids: Collection[str], audience: Audience, now: datetime
    ) -> dict[str, ActiveConversation]:
        """Return the conversations that have a summary and that the audience may read, keyed by id."""
        if not ids:
            return {}
        given = {"ids": list(ids), "owners": list(audience.keys), "now": now}
        return {row.id: _active(row) for row in await self._database.rows(_BY_IDS, given)}

    async def newest(
        self,
        audience: Audience,
        now: datetime,
        limit: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        exclude: Collection[str] = (),
    ) -> list[ActiveConversation]:
        """Return conversations with summaries changed at `since` or later and before `until`, newest
        first."""
        query = select(table).where(table.c.owner.in_(audience.keys), table.c.summary != "", ~outlived(now))
        query = query.where(table.c.updated_at >= since) if since else query
        query = query.where(table.c.updated_at < until) if until else query
        query = query.where(table.c.id.not_in(exclude)) if exclude else query
        query = query.order_by(table.c.updated_at.desc(), table.c.id).limit(limit)
        return [_active(row) for row in await self._database.rows(query)]

    async def conversations(
        self,
        audience: Audience,
        now: datetime,
        limit: int,
        *,
        before: str | None = None,
        id: str | None = None,
    ) -> list[Conversation]:
        """Return the conversations in which this audience may read a message, ordered by their newest
        message, newest first. `before`, the id of a message, selects those that ended before it, `id` a
        single one. Raises NotFound if the audience may not read the message `before`."""
        this = messages.c
        first, last = func.min(this.seq), func.max(this.seq)
        counted = select(
            this.conversation_id, func.count().label("many"), first.label("first"), last.label("last")
        )
        counted = counted.where(messages_readable(audience), is_visible()).group_by(this.conversation_id)
        counted = counted.where(this.conversation_id == id) if id is not None else counted
        if before is not None:
            counted = counted.having(last < await position_of(self._database, before, audience))
        of = counted.order_by(last.desc()).limit(limit).subquery()
        begin, end = messages.alias("begin").c, messages.alias("end").c
        title = func.substr(begin.text, 1, TITLE)
        query = select(of, begin.place, title, begin.sent_at, end.sent_at, end.id)
        query = query.where(begin.seq == of.c.first, end.seq == of.c.last).order_by(of.c.last.desc())
        rows = await self._database.rows(query)
        summaries = await self._texts([row[0] for row in rows], audience, now)
        return [
            Conversation(
                id, str(Place.of_key(place)), title, many, started_at, last_at, newest, summaries.get(id, "")
            )
            for id, many, _, _, place, title, started_at, last_at, newest in rows
        ]

    async def _texts(
        self, conversations: Collection[str], audience: Audience, now: datetime
    ) -> dict[str, str]:
        """Return the summaries that the audience may read, keyed by conversation."""
        readable = table.c.conversation_id.in_(conversations), table.c.owner.in_(audience.keys)
        query = select(table.c.conversation_id, table.c.summary).where(*readable, ~outlived(now))
        return {row.conversation_id: row.summary for row in await self._database.rows(query)}


def outlived(now: Any) -> ColumnElement[bool]:
    """Match a summary that repeats a fact which has expired since: a covered message states the fact, or
    the model read it when it wrote the summary."""
    lately = and_(memories.c.expires_at <= now, memories.c.expires_at > table.c.updated_at)
    expired = select(memories.c.id).where(lately).correlate(table)
    covered = exists().where(
        messages.c.id == rests_on.c.source_id,
        messages.c.conversation_id == table.c.conversation_id,
        heard_by() == table.c.owner,
        messages.c.seq <= table.c.covered,
    )
    # The query starts from the few facts that expired lately, and so does not read the whole conversation.
    told = exists().where(rests_on.c.derived_id.in_(expired), rests_on.c.how == "stated", covered)
    given = exists().where(rests_on.c.derived_id == table.c.id, rests_on.c.source_id.in_(expired))
    return or_(told, given)


def heard_by() -> ColumnElement[str]:
    """Return the owner key of a message's place, or in private of its user. A withdrawn message still
    counts to its place, so that the summaries written from it are found."""
    return func.coalesce(func.nullif(messages.c.place, ""), literal("user:") + messages.c.user_id)


# Built once, since every turn or search needs them: building takes longer than running.
_NOW = bindparam("now", type_=Utc())
_OF = select(table, outlived(_NOW).label("outlived")).where(
    table.c.conversation_id == bindparam("conversation"), table.c.owner == bindparam("of")
)
_GOES_ON = exists().where(
    messages.c.conversation_id == bindparam("conversation"),
    heard_by() == bindparam("of"),
    messages.c.seq > bindparam("upto"),
    is_visible(),
)
_BY_IDS = select(table).where(
    table.c.id.in_(bindparam("ids", expanding=True)),
    table.c.owner.in_(bindparam("owners", expanding=True)),
    table.c.summary != "",
    ~outlived(_NOW),
)


def _active(row: Any) -> ActiveConversation:
    *fields, withheld = row[: len(table.c)]  # in the order of the record's fields
    values: Any = (*fields, bool(withheld))
    return ActiveConversation(*values)
