"""Convert rows of `messages` to records, and define conditions that several modules use."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, exists, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.records import Message
from memory.sql.hidden import MESSAGE_IS_HIDDEN, WITHDRAWN
from memory.sql.readable import MESSAGES_READABLE
from memory.sql.tables import Utc, active_conversations, forgettings, messages, rests_on

REACH = 2
"""A message's window in the index: this many messages on either side."""


@dataclass(frozen=True, slots=True)
class Line:
    """A message with its owners and its position in the transcript."""

    message: Message
    owners: frozenset[str]
    seq: int
    """Increases with every message, over all conversations."""
    user: str
    """The user who wrote the message or got the reply."""


@dataclass(frozen=True, slots=True)
class Condition:
    """An SQL condition that is built once, with the values of its parameters."""

    holds: ColumnElement[bool]
    values: Mapping[str, Any]


MESSAGE = tuple(messages.c[name] for name in Message.__dataclass_fields__ if name in messages.c)
LINES = select(messages, WITHDRAWN.label("withdrawn"))
"""The columns that `to_line` needs."""


def is_visible() -> ColumnElement[bool]:
    """Match messages that are not hidden."""
    return ~MESSAGE_IS_HIDDEN


BY_IDS = select(*MESSAGE).where(
    messages.c.id.in_(bindparam("ids", expanding=True)), is_visible(), MESSAGES_READABLE
)
OF_SEARCH = BY_IDS.with_only_columns(
    *(messages.c[name] for name in ("id", "seq", "conversation_id", "role", "author", "text", "sent_at"))
)
_reply = messages.alias("reply")
_answer = select(_reply.c.id).where(
    _reply.c.conversation_id == bindparam("conversation"),
    _reply.c.role == "assistant",
    exists().where(rests_on.c.derived_id == _reply.c.id, rests_on.c.how == "answered"),
)
_newest_answer = _answer.order_by(_reply.c.seq.desc()).limit(1).scalar_subquery()
IN_PROMPT = exists().where(rests_on.c.derived_id == _newest_answer, rests_on.c.source_id == messages.c.id)
"""True for messages that were in the prompt of the conversation's newest reply, or in its search results."""
LAST = (
    select(messages, IN_PROMPT.label("in_prompt"))
    .where(messages.c.conversation_id == bindparam("conversation"), is_visible(), MESSAGES_READABLE)
    .order_by(messages.c.seq.desc())
    .limit(bindparam("most"))
)

_hit, _edge = messages.alias("hit"), messages.alias("edge")
_beside = select(_edge.c.seq).where(
    _edge.c.conversation_id == _hit.c.conversation_id, func.coalesce(_edge.c.place, "") == _hit.c.place
)
_first = _beside.where(_edge.c.seq < _hit.c.seq).order_by(_edge.c.seq.desc()).offset(REACH - 1).limit(1)
_last = _beside.where(_edge.c.seq > _hit.c.seq).order_by(_edge.c.seq).offset(REACH - 1).limit(1)
AROUND = (
    select(_hit.c.id.label("hit"), messages, WITHDRAWN.label("withdrawn"))
    .where(
        _hit.c.id.in_(bindparam("hits", expanding=True)),
        messages.c.conversation_id == _hit.c.conversation_id,
        _hit.c.place == func.coalesce(messages.c.place, ""),
        messages.c.seq >= func.coalesce(_first.scalar_subquery(), 0),
        messages.c.seq <= func.coalesce(_last.scalar_subquery(), 2**62),
        is_visible(),
        MESSAGES_READABLE,
    )
    .order_by(_hit.c.seq, messages.c.seq)
)
"""Each message of `hits` with up to `REACH` messages on either side of it in its conversation."""


_FORGOTTEN_SINCE = exists().where(
    forgettings.c.person == bindparam("forgetful"),
    forgettings.c.at >= bindparam("since", type_=Utc()),
    forgettings.c.why != "edited",
)


def forgotten_since(user: str, moment: datetime) -> Condition:
    """Match if anything of the user's was forgotten since `moment`. Edits do not count."""
    return Condition(_FORGOTTEN_SINCE, {"forgetful": user, "since": moment})


async def missing(connection: AsyncConnection, ids: Collection[str], owner: str | None = None) -> set[str]:
    """Return which of these messages are deleted, hidden or not the `owner`'s, and lock the others until
    the transaction ends. A job calls this before it writes, so that it writes nothing from forgotten
    messages."""
    if not ids:
        return set()
    there = select(messages.c.id).where(messages.c.id.in_(ids), is_visible())
    there = there if owner is None else there.where(heard_by(owner))
    rows = await connection.execute(there.with_for_update(read=True, key_share=True))
    return set(ids) - set(rows.scalars())


def name_in(user: ColumnElement[str], places: Any = None) -> Any:
    """Select the name on a user's newest message in one of these places. None means anywhere."""
    said = messages.alias("said")
    here = [said.c.user_id == user, said.c.role == "user"]
    here += [] if places is None else [said.c.place.in_(places)]
    return select(said.c.author).where(*here).order_by(said.c.seq.desc()).limit(1).scalar_subquery()


def heard_by(owner: str) -> ColumnElement[bool]:
    return heard(owner.removeprefix("user:"), private=not owner.startswith("place:"))


def heard(by: Any, *, private: bool) -> ColumnElement[bool]:
    """Match the private messages of a person, whose id is `by`, or those of a place, whose key it is."""
    if not private:
        return and_(messages.c.place == by, ~WITHDRAWN)
    own = or_(messages.c.place == "", and_(WITHDRAWN, messages.c.role == "user"))
    return and_(own, messages.c.user_id == by)


_summed_up = select(active_conversations.c.covered).where(
    active_conversations.c.conversation_id == bindparam("conversation"),
    active_conversations.c.owner == bindparam("of"),
)
_since = func.coalesce(bindparam("after", type_=messages.c.seq.type), _summed_up.scalar_subquery(), 0)
FOLLOWING = {
    private: LINES.where(messages.c.conversation_id == bindparam("conversation"), messages.c.seq > _since)
    .where(heard(bindparam("by"), private=private), is_visible())
    .order_by(messages.c.seq.desc())
    .limit(bindparam("most"))
    for private in (True, False)
}
"""The messages after `after`, or after those that the summary covers. Keyed by whether they are private."""


_fields = attrgetter(*(column.name for column in MESSAGE))


def to_message(row: Any) -> Message:
    return Message(*_fields(row))


def to_line(row: Any) -> Line:
    return Line(to_message(row), message_owners(row), row.seq, row.user_id)


def message_owners(row: Any) -> frozenset[str]:
    """Return the owner keys of a message, from a row with `LINES`' columns."""
    if not row.place or row.withdrawn:
        return frozenset((user_key(row.user_id),))
    return frozenset((row.place,) if row.role == "assistant" else (row.place, user_key(row.user_id)))
