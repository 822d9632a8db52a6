"""Messages as the index reads them: with their owners, whoever may read them, and with those around them."""

from collections.abc import Collection, Iterable
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, bindparam, case, func, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience
from memory.process.pace import unhurried
from memory.sql.changes import windows_changed
from memory.sql.engine import Database
from memory.sql.hidden import WITHDRAWN, is_hidden
from memory.sql.messages.message_rows import LINES, REACH, Line, kept, to_line
from memory.sql.readable import messages_readable
from memory.sql.tables import messages

_READ_BY_SOMEBODY = or_(messages.c.role == "user", ~WITHDRAWN)
"""False for replies that their place has no longer."""
_LINES_OF = LINES.where(messages.c.id.in_(bindparam("ids", expanding=True)), kept(), _READ_BY_SOMEBODY)


async def lines_of(database: Database, ids: Collection[str]) -> list[Line]:
    """These messages."""
    rows = await database.rows(_LINES_OF, {"ids": list(ids)}) if ids else ()
    return [to_line(row) for row in rows]


async def newest_lines(database: Database, audience: Audience, limit: int) -> list[Line]:
    """Messages and replies that the audience may read, newest first."""
    query = LINES.where(messages_readable(audience), kept()).order_by(messages.c.seq.desc())
    return [to_line(row) for row in await database.rows(query.limit(limit))]


async def lines_around(database: Database, ids: Collection[str]) -> list[list[Line]]:
    """For each conversation of these messages: all from the first to the last of them and twice `REACH` on
    either side, in order. The windows of all their neighbours need no others. If several people use a
    conversation id in private, each has their own conversation."""
    found: dict[tuple[str, str], list[Line]] = {}
    for row in await database.rows(_TALKS, {"ids": list(ids)}):
        found.setdefault((row.conversation_id, row.heard), []).append(to_line(row))
    return list(found.values())


async def index_windows_again(connection: AsyncConnection, rows: Iterable[Any]) -> None:
    """Tell every index of the messages whose windows contain one of these, which are hidden or shown
    again."""
    for (conversation, place), said in groupby(sorted(rows, key=_talk_of), key=_talk_of):
        await windows_changed(connection, await _near(connection, conversation, place, said))


def _talk_of(row: Any) -> tuple[str, str]:
    return row.conversation_id, row.place


async def _near(connection: AsyncConnection, conversation: str, place: str, said: Iterable[Any]) -> set[str]:
    """The other messages of the conversation whose windows contain one of these."""
    seqs = {row.seq for row in said}
    heard = select(messages.c.id, messages.c.seq, kept().label("kept"))
    heard = heard.where(messages.c.conversation_id == conversation, messages.c.place == place)
    before = heard.where(kept(), messages.c.seq < min(seqs)).order_by(messages.c.seq.desc()).limit(REACH)
    within = heard.where(messages.c.seq.between(min(seqs), max(seqs)))
    after = heard.where(kept(), messages.c.seq > max(seqs)).order_by(messages.c.seq).limit(REACH)
    found = [
        row
        for query in (before, within, after)
        async for row in unhurried(await connection.execute(query))
        if row.kept or row.seq in seqs
    ]
    lines = sorted(found, key=attrgetter("seq"))
    return {
        neighbour.id
        async for at, line in unhurried(enumerate(lines))
        if line.seq in seqs
        for neighbour in lines[max(0, at - REACH) : at + REACH + 1]
        if neighbour.seq not in seqs
    }


_hit, _edge = messages.alias("hit"), messages.alias("edge")


def _heard(said: Any) -> ColumnElement[str]:
    """The owner key of those who may read the whole conversation: its place, or in private its user."""
    own = or_(said.c.place == "", is_hidden("told", said.c.id))
    return case((own, literal("user:") + said.c.user_id), else_=said.c.place)


_told = select(_hit.c.conversation_id, _hit.c.seq, _heard(_hit).label("heard"))
_told_in = _told.where(_hit.c.id.in_(bindparam("ids", expanding=True))).subquery("told_in")


_talk = (
    select(
        _told_in.c.conversation_id,
        _told_in.c.heard,
        func.min(_told_in.c.seq).label("first"),
        func.max(_told_in.c.seq).label("last"),
    )
    .group_by(_told_in.c.conversation_id, _told_in.c.heard)
    .subquery("talk")
)


def _of_talk(said: Any) -> list[ColumnElement[bool]]:
    return [
        said.c.conversation_id == _talk.c.conversation_id,
        _heard(said) == _talk.c.heard,
        ~is_hidden("message", said.c.id),
        or_(said.c.role == "user", ~is_hidden("told", said.c.id)),
    ]


_nearby = select(_edge.c.seq).where(*_of_talk(_edge)).offset(2 * REACH - 1).limit(1)
_begin = _nearby.where(_edge.c.seq < _talk.c.first).order_by(_edge.c.seq.desc())
_end = _nearby.where(_edge.c.seq > _talk.c.last).order_by(_edge.c.seq)
_TALKS = (
    select(messages, WITHDRAWN.label("withdrawn"), _talk.c.heard)
    .where(
        *_of_talk(messages),
        messages.c.seq >= func.coalesce(_begin.scalar_subquery(), 0),
        messages.c.seq <= func.coalesce(_end.scalar_subquery(), 2**62),
    )
    .order_by(messages.c.seq)
)
"""All from the first to the last of these messages in each conversation, and twice `REACH` on either side."""
