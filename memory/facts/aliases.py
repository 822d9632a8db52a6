"""Link the names of one person: "Ana is also called Annie".

A link counts for everybody who may read the memory that states it, as long as that is active. Only sentences
in the form of `also_called` link names, and nobody can link the name of another person (`names_of_others`).
"""

from sqlalchemy import ColumnElement, or_, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.sql.hidden import ENTRY_IS_HIDDEN
from memory.sql.tables import context_entries, memories, messages
from memory.text.names import fold, parts_of

_ALSO_CALLED = " is also called "
_MOST_WORDS = 4
"""The most words of one name."""


def also_called(name: str, other: str) -> str:
    return f"{name}{_ALSO_CALLED}{other}"


def names_in(text: str) -> tuple[str, str] | None:
    """Return the two names that an alias sentence links; None for any other sentence."""
    name, separator, other = text.strip().removesuffix(".").partition(_ALSO_CALLED)
    named = all(0 < len(one.split()) <= _MOST_WORDS for one in (name, other))
    return (name, other) if separator and named and fold(name) != fold(other) else None


async def names_of_others(connection: AsyncConnection, place: Place, user: str) -> frozenset[str]:
    """Return the folded names, whole and in parts, of other people who write or are mentioned in this place,
    around it or inside it. Empty in private."""
    if place.private:
        return frozenset()
    query = union(
        select(messages.c.author.label("name")).where(
            messages.c.user_id != user, messages.c.role == "user", _is_around(messages.c.place, place)
        ),
        select(messages.c.user_id).where(messages.c.user_id != user, _is_around(messages.c.place, place)),
        select(memories.c.user_id).where(memories.c.user_id != user, _stated_around(place)),
        select(context_entries.c.value).where(
            context_entries.c.user_id != user,
            context_entries.c.field == "profile.name",
            ~ENTRY_IS_HIDDEN,
            _is_around(context_entries.c.place, place),
        ),
    )
    names = (await connection.execute(query)).scalars()
    return frozenset(part for name in names for part in (fold(name), *parts_of(name)))


async def linked_names(
    connection: AsyncConnection, place: Place, user: str, content: str
) -> list[tuple[str, str]]:
    """Return the pair of names that a fact links; empty if another person there has one of the names."""
    pair = names_in(content)
    if pair is None:
        return []
    others = await names_of_others(connection, place, user)
    return [] if others & set(map(fold, pair)) else [pair]


def _is_around(column: ColumnElement[str], place: Place) -> ColumnElement[bool]:
    around = [outer.key for outer in place.containing()]
    return or_(column.in_(around), column.startswith(f"{place.key}/", autoescape=True))


def _stated_around(place: Place) -> ColumnElement[bool]:
    """Match memories stated around or inside a place. `memories.place` is text such as ``acme/general``."""
    around = [str(outer) for outer in place.containing()]
    return or_(memories.c.place.in_(around), memories.c.place.startswith(f"{place}/", autoescape=True))
