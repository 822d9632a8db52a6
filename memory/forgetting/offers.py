"""Look up rows that a person may forget: one that they name by id, and those from the same messages."""

from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, and_, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, Place
from memory.errors import NotFound
from memory.forgetting.cascade import Cascade, stated_only_by
from memory.records import ForgetCandidate, ForgetKind
from memory.sql.hidden import ENTRY_IS_HIDDEN, ENTRY_IS_WITHDRAWN, TASK_IS_HIDDEN
from memory.sql.memories.memory_rows import begins
from memory.sql.messages.message_rows import is_visible
from memory.sql.readable import messages_readable
from memory.sql.tables import context_entries, memories, messages, tasks

ITEMS: tuple[Literal["entry", "task"], ...] = ("entry", "task")
BY_ITSELF: tuple[Literal["message", "entry", "task"], ...] = ("message", *ITEMS)
"""The kinds of rows that are hidden under their own id."""


async def find_named(
    connection: AsyncConnection, kind: ForgetKind, id: str, user: str, place: Place, asked_in: str = ""
) -> ForgetCandidate:
    """Return the row that the person names by this id, or by a prefix of eight or more characters, with their
    message that asks for it. A conversation needs its whole id. An entry or a task must be readable in the
    place. Raises NotFound."""
    theirs = _theirs(kind, user, place)
    column = theirs.selected_columns[0]
    if kind == "conversation":
        theirs = theirs.where(column == id).order_by(messages.c.seq).limit(1)
    else:
        theirs = theirs.where(begins(column, id))
    rows = (await connection.execute(theirs)).all()
    if len(rows) != 1:
        raise NotFound(f"{user} has no {kind} {id!r} to forget; list what there is for its id")
    asks = select(messages.c.id).where(messages.c.user_id == user, messages.c.role == "user", is_visible())
    asking = await connection.scalar(asks.where(begins(messages.c.id, asked_in)))
    return _candidate(kind, rows[0], asking or "")


async def offered_with(
    connection: AsyncConnection, cascade: Cascade, place: Place
) -> tuple[ForgetCandidate, ...]:
    """Return the entries and tasks, visible in the place, that rest on the messages of the cascade alone."""
    found: list[ForgetCandidate] = []
    for kind in ITEMS:
        alone = stated_only_by(cascade.messages, cascade.person, _theirs(kind, cascade.person, place))
        found += [_candidate(kind, row, "") for row in await connection.execute(alone)]
    return tuple(found)


def _theirs(kind: ForgetKind, user: str, place: Place) -> Select[Any]:
    """Select the id, text and time of the person's rows of this kind. Memories are those of everybody."""
    around = [where.key for where in place.containing()]
    columns: tuple[Any, ...]
    theirs: ColumnElement[bool]
    match kind:
        case "memory":
            columns, theirs = (memories.c.id, memories.c.content, memories.c.created_at), true()
        case "message":
            columns = (messages.c.id, messages.c.text, messages.c.sent_at)
            theirs = and_(messages.c.user_id == user, is_visible())
        case "conversation":
            columns = (messages.c.conversation_id, messages.c.text, messages.c.sent_at)
            theirs = and_(messages_readable(Audience.of(user)), is_visible())
        case "task":
            columns = (tasks.c.id, tasks.c.description, tasks.c.created_at)
            here = true() if place.private else tasks.c.place == place.stored
            theirs = and_(tasks.c.user_id == user, ~TASK_IS_HIDDEN, here)
        case "entry":
            entry = context_entries.c
            columns = (entry.id, entry.value, entry.said_at, entry.field)
            here = true() if place.private else and_(entry.place.in_(around), ~ENTRY_IS_WITHDRAWN)
            theirs = and_(entry.user_id == user, entry.value != "", ~ENTRY_IS_HIDDEN, here)
    return select(*columns).where(theirs)


def _candidate(kind: ForgetKind, row: Any, asked_in: str) -> ForgetCandidate:
    """Return the candidate; a profile entry's text begins with its field's name: ``location: Lyon``."""
    id, text, at, *field = row
    text = f"{field[0].rpartition('.')[2]}: {text}" if field else text
    return ForgetCandidate(id, kind, text, at, asked_in)
