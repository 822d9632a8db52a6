"""Convert rows of `messages` to `Message` and `Line` records; with conditions that several modules share."""

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
"""How many messages on either side are indexed with a message, as its window."""


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
    """A condition that is built once, and the values of its parameters."""

    holds: ColumnElement[bool]
    values: Mapping[str, Any]


MESSAGE = tuple(messages.c[name] for name in Message.__dataclass_fields__ if name in messages.c)
LINES = select(messages, WITHDRAWN.label("withdrawn"))
"""What `to_line` reads."""


def kept() -> ColumnElement[bool]:
    """Match messages that are not hidden."""
    return ~MESSAGE_IS_HIDDEN


BY_IDS = select(*MESSAGE, messages.c.seq).where(
    messages.c.id.in_(bindparam("ids", expanding=True)), kept(), MESSAGES_READABLE
)
_reply = messages.alias("reply")
_answer = select(_reply.c.id).where(
    _reply.c.conversation_id == bindparam("conversation"),
    _reply.c.role == "assistant",
    exists().where(rests_on.c.derived_id == _reply.c.id, rests_on.c.how == "answered"),
)
_newest_answer = _answer.order_by(_reply.c.seq.desc()).limit(1).scalar_subquery()
IN_PROMPT = exists().where(rests_on.c.derived_id == _newest_answer, rests_on.c.source_id == messages.c.id)
"""True for messages that the prompt of the conversation's newest reply held, or its searches brought."""
LAST = (
    select(messages, IN_PROMPT.label("in_prompt"))
    .where(messages.c.conversation_id == bindparam("conversation"), kept(), MESSAGES_READABLE)
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
        kept(),
        MESSAGES_READABLE,
    )
    .order_by(_hit.c.seq, messages.c.seq)
)
"""Each of these messages with up to `REACH` on either side of it in its conversation."""


_FORGOTTEN_SINCE = exists().where(
    forgettings.c.person == bindparam("forgetful"),
    forgettings.c.at >= bindparam("since", type_=Utc()),
    forgettings.c.why != "edited",
)


def forgotten_since(user: str, moment: datetime) -> Condition:
    """Return whether anything of the user's was forgotten since then, as long as that is on record."""
    return Condition(_FORGOTTEN_SINCE, {"forgetful": user, "since": moment})


async def missing(connection: AsyncConnection, ids: Collection[str], owner: str | None = None) -> set[str]:
    """Return which of these messages are deleted, hidden or not the `owner`'s; the others stay until the
    transaction ends. A job asks this before it writes, so that nothing forgotten is written again."""
    if not ids:
        return set()
    there = select(messages.c.id).where(messages.c.id.in_(ids), kept())
    there = there if owner is None else there.where(heard_by(owner))
    rows = await connection.execute(there.with_for_update(read=True, key_share=True))
    return set(ids) - set(rows.scalars())


def name_in(user: ColumnElement[str], places: Any = None) -> Any:
    """Select the name under which a user has last written in one of these places, or anywhere."""
    said = messages.alias("said")
    here = [said.c.user_id == user, said.c.role == "user"]
    here += [] if places is None else [said.c.place.in_(places)]
    return select(said.c.author).where(*here).order_by(said.c.seq.desc()).limit(1).scalar_subquery()


def heard_by(owner: str) -> ColumnElement[bool]:
    return heard(owner.removeprefix("user:"), private=not owner.startswith("place:"))


def heard(by: Any, *, private: bool) -> ColumnElement[bool]:
    """Match the messages that a person may read in private, or all in a place: `by` is an id or a key."""
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
    .where(heard(bindparam("by"), private=private), kept())
    .order_by(messages.c.seq.desc())
    .limit(bindparam("most"))
    for private in (True, False)
}
"""What follows a message in a conversation, or what its summary covers, in private and in a place."""


_fields = attrgetter(*(column.name for column in MESSAGE))


def to_message(row: Any) -> Message:
    return Message(*_fields(row))


def to_line(row: Any) -> Line:
    owners = [] if row.place and row.role == "assistant" else [user_key(row.user_id)]
    owners += [row.place] if row.place and not row.withdrawn else []
    return Line(to_message(row), frozenset(owners), row.seq, row.user_id)
