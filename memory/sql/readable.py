"""Express `Audience.may_read` as SQL conditions for memories and messages. Those for memories have the
parameter `now`."""

from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, exists, false, func, or_

from memory.audience import Audience
from memory.sql.hidden import WITHDRAWN
from memory.sql.memories.replacements import is_active
from memory.sql.tables import memories, memory_owners, messages


def memories_readable(audience: Audience) -> ColumnElement[bool]:
    """Match memories that the audience may read. For conditions that leave few rows: it tests each one."""
    return _owned_by(audience.keys)


def _owned_by(owners: Any) -> ColumnElement[bool]:
    mine = (memory_owners.c.memory_id == memories.c.id, memory_owners.c.owner.in_(owners))
    return exists().where(*mine, is_active())


MEMORIES_READABLE = _owned_by(bindparam("owners", expanding=True))
"""The same as `memories_readable`, built once."""


def messages_readable(audience: Audience) -> ColumnElement[bool]:
    """Match messages that the audience may read. A reply in a place belongs to the place alone, because it
    may repeat what other people said."""
    people, places = people_and_places(audience)
    own = and_(messages.c.user_id.in_(people), _OWN)
    said = [own] if people else []  # an empty IN would prevent the use of an index
    heard = [and_(messages.c.place.in_(places), ~WITHDRAWN)] if places else []
    return or_(false(), *said, *heard)


def people_and_places(audience: Audience) -> tuple[list[str], list[str]]:
    """Return the people and the places whose messages the audience may read."""
    people = [key.removeprefix("user:") for key in audience.keys if key.startswith("user:")]
    return people, [key for key in audience.keys if key.startswith("place:")]


_OWN = or_(messages.c.place == "", messages.c.role == "user")
"""A message that belongs to its user: not a reply in a place."""

# The same condition, built once: building it takes longer than running it. `coalesce` keeps SQLite from using
# the indexes of users and places, with which it would read everything that the audience may read.
_USER, _PLACE = func.coalesce(messages.c.user_id, ""), func.coalesce(messages.c.place, "")
MESSAGES_READABLE = or_(
    and_(_USER.in_(bindparam("people", expanding=True)), _OWN),
    and_(_PLACE != "", _PLACE.in_(bindparam("places", expanding=True)), ~WITHDRAWN),
)
