"""What rests on what: the only record of where facts, replies, summaries and profiles come from."""

from collections.abc import Collection, Iterable
from typing import Any, Literal

from sqlalchemy import BindParameter, Select, delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.sql.tables import rests_on

How = Literal["stated", "answered", "found", "covered"]
"""How a text rests on a source: the message says it; it is a reply to that message; the prompt, or what was
shown of a result, held the source; a summary was written from it."""


async def record(connection: AsyncConnection, derived: str, sources: Iterable[str], how: How) -> None:
    """Store what a text rests on, besides what it rested on before."""
    await record_each(connection, ((derived, source, how) for source in sources))


async def record_each(connection: AsyncConnection, found: Iterable[tuple[str, str, How]]) -> None:
    """Store which text rests on which source, and how, in one statement."""
    rows = [dict(zip(("derived_id", "source_id", "how"), row, strict=True)) for row in sorted(found)]
    if rows:
        await connection.execute(insert(rests_on).on_conflict_do_nothing(), rows)


async def rest_as_others(connection: AsyncConnection, reply: str, question: str) -> None:
    """Let a reply rest on what the other replies to its question were written from."""
    others = select(rests_on.c.derived_id).where(
        rests_on.c.source_id == question, rests_on.c.how == "answered", rests_on.c.derived_id != reply
    )
    sources = select(rests_on.c.source_id).where(rests_on.c.derived_id.in_(others), rests_on.c.how == "found")
    await record(connection, reply, await connection.scalars(sources.distinct()), "found")


async def let_go(connection: AsyncConnection, ids: Collection[str]) -> None:
    """Delete what is stored of the sources of these texts."""
    if ids:
        await connection.execute(delete(rests_on).where(rests_on.c.derived_id.in_(ids)))


def stated_in(ids: Collection[str] | BindParameter[Any]) -> Select[str]:
    """Selects the facts that these messages state."""
    return select(rests_on.c.derived_id).where(rests_on.c.source_id.in_(ids), rests_on.c.how == "stated")


def statements_of(ids: Collection[str]) -> Select[str]:
    """Selects the messages that state these facts."""
    return select(rests_on.c.source_id).where(rests_on.c.derived_id.in_(ids), rests_on.c.how == "stated")


def resting_on(ids: Collection[str], *how: How) -> Select[str]:
    """Selects all that rests on these, in one of these ways, directly or not."""
    derived = select(rests_on.c.derived_id).where(rests_on.c.how.in_(how))
    chain = derived.where(rests_on.c.source_id.in_(ids)).cte(recursive=True)
    further = derived.join(chain, rests_on.c.source_id == chain.c.derived_id)
    return select(chain.union(further).c.derived_id)
