"""The evidence of facts, replies, summaries and profiles: which text rests on which sources."""

import json
from collections.abc import Collection, Iterable
from typing import Any, Literal

from sqlalchemy import BindParameter, Select, TextClause, delete, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.sql.tables import evidence, evidence_ids, rests_on
from memory.sql.tables.evidence import CODES

How = Literal["stated", "answered", "found", "covered", "followed"]
"""How a text rests on a source: the source states it; it answers the source; it was written with the source
in view; it is a summary or profile written from the source; it follows up on the source."""


def _inserts(ids: str, rows: str) -> tuple[TextClause, TextClause]:
    """Return two statements that read JSON: one numbers ids, the other inserts rows of two ids and a code."""
    return text(
        f"INSERT INTO evidence_ids (id) SELECT value FROM {ids} WHERE true ON CONFLICT DO NOTHING"
    ), text(
        f"""INSERT INTO evidence (derived, source, how)
        SELECT derived.number, source.number, CAST(given.value ->> 2 AS INTEGER) FROM {rows} AS given
        JOIN evidence_ids AS derived ON derived.id = given.value ->> 0
        JOIN evidence_ids AS source ON source.id = given.value ->> 1
        WHERE true ON CONFLICT DO NOTHING"""
    )


_INSERTS = {
    "sqlite": _inserts("json_each(:ids)", "json_each(:rows)"),
    "postgresql": _inserts(
        "json_array_elements_text(CAST(:ids AS json))", "json_array_elements(CAST(:rows AS json))"
    ),
}


async def record(connection: AsyncConnection, derived: str, sources: Iterable[str], how: How) -> None:
    """Add sources to a text."""
    await record_each(connection, ((derived, source, how) for source in sources))


async def record_each(connection: AsyncConnection, links: Iterable[tuple[str, str, How]]) -> None:
    """Store which text rests on which source, and how."""
    rows = [(derived, source, CODES[how]) for derived, source, how in sorted(links)]
    if not rows:
        return
    ids = sorted({id for derived, source, _ in rows for id in (derived, source)})
    into_ids, into_evidence = _INSERTS[connection.dialect.name]
    await connection.execute(into_ids, {"ids": json.dumps(ids)})
    await connection.execute(into_evidence, {"rows": json.dumps(rows)})


async def rest_as_others(connection: AsyncConnection, reply: str, question: str) -> None:
    """Add to a reply the sources of the other replies to its question."""
    others = select(rests_on.c.derived_id).where(
        rests_on.c.source_id == question, rests_on.c.how == "answered", rests_on.c.derived_id != reply
    )
    sources = select(rests_on.c.source_id).where(rests_on.c.derived_id.in_(others), rests_on.c.how == "found")
    await record(connection, reply, await connection.scalars(sources.distinct()), "found")


async def let_go(connection: AsyncConnection, ids: Collection[str]) -> None:
    """Delete the sources of these texts."""
    if ids:
        await connection.execute(delete(rests_on).where(rests_on.c.derived_id.in_(ids)))


async def drop_rows(connection: AsyncConnection, ids: Collection[str]) -> None:
    """Delete the evidence of purged rows, with their ids."""
    numbers = select(evidence_ids.c.number).where(evidence_ids.c.id.in_(ids))
    for column in (evidence.c.derived, evidence.c.source):
        await connection.execute(delete(evidence).where(column.in_(numbers)))
    await connection.execute(delete(evidence_ids).where(evidence_ids.c.id.in_(ids)))


def stated_in(ids: Collection[str] | BindParameter[Any]) -> Select[str]:
    """Select the facts that these messages state."""
    return select(rests_on.c.derived_id).where(rests_on.c.source_id.in_(ids), rests_on.c.how == "stated")


def statements_of(ids: Collection[str]) -> Select[str]:
    """Select the messages that state these facts."""
    return select(rests_on.c.source_id).where(rests_on.c.derived_id.in_(ids), rests_on.c.how == "stated")


def resting_on(ids: Collection[str], *how: How) -> Select[str]:
    """Select everything that rests on these ids in one of the ways `how`, directly or indirectly."""
    derived = select(rests_on.c.derived_id).where(rests_on.c.how.in_(how))
    chain = derived.where(rests_on.c.source_id.in_(ids)).cte(recursive=True)
    further = derived.join(chain, rests_on.c.source_id == chain.c.derived_id)
    return select(chain.union(further).c.derived_id)
