"""What rests on what: the only record of where facts, replies, summaries and profiles come from."""

import json
from collections.abc import Collection, Iterable
from typing import Any, Literal

from sqlalchemy import ARRAY, BindParameter, Integer, Select, Text, bindparam, delete, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.sql.tables import evidence, evidence_ids, rests_on
from memory.sql.tables.evidence import CODES

How = Literal["stated", "answered", "found", "covered", "followed"]
"""How a text rests on a source: it says it, answers it, was shown it, was written from it, or comes back to
it."""


_IDS_SQLITE = text(
    "INSERT INTO evidence_ids (id) SELECT value FROM json_each(:ids) WHERE true ON CONFLICT DO NOTHING"
)
_ROWS_SQLITE = text("""
    INSERT INTO evidence (derived, source, how)
    SELECT derived.number, source.number, json_extract(row.value, '$[2]') FROM json_each(:rows) AS row
    JOIN evidence_ids AS derived ON derived.id = json_extract(row.value, '$[0]')
    JOIN evidence_ids AS source ON source.id = json_extract(row.value, '$[1]')
    WHERE true ON CONFLICT DO NOTHING
""")
_IDS = text("INSERT INTO evidence_ids (id) SELECT unnest(:ids) ON CONFLICT DO NOTHING").bindparams(
    bindparam("ids", type_=ARRAY(Text))
)
_ROWS = text("""
    INSERT INTO evidence (derived, source, how) SELECT derived.number, source.number, row.how
    FROM unnest(:derived, :sources, :codes) AS row (derived, source, how)
    JOIN evidence_ids AS derived ON derived.id = row.derived
    JOIN evidence_ids AS source ON source.id = row.source
    ON CONFLICT DO NOTHING
""").bindparams(
    *(bindparam(name, type_=ARRAY(Text)) for name in ("derived", "sources")),
    bindparam("codes", type_=ARRAY(Integer)),
)


async def record(connection: AsyncConnection, derived: str, sources: Iterable[str], how: How) -> None:
    """Store what a text rests on, besides what it rested on before."""
    await record_each(connection, ((derived, source, how) for source in sources))


async def record_each(connection: AsyncConnection, found: Iterable[tuple[str, str, How]]) -> None:
    """Store which text rests on which source, and how."""
    rows = [(derived, source, CODES[how]) for derived, source, how in sorted(found)]
    if not rows:
        return
    ids = sorted({id for derived, source, _ in rows for id in (derived, source)})
    if connection.dialect.name == "sqlite":
        await connection.execute(_IDS_SQLITE, {"ids": json.dumps(ids)})
        await connection.execute(_ROWS_SQLITE, {"rows": json.dumps(rows)})
    else:
        await connection.execute(_IDS, {"ids": ids})
        derived, sources, codes = (list(column) for column in zip(*rows, strict=True))
        await connection.execute(_ROWS, {"derived": derived, "sources": sources, "codes": codes})


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


async def drop_rows(connection: AsyncConnection, ids: Collection[str]) -> None:
    """Delete the record of rows that are deleted for good, with their ids."""
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
    """Select all that rests on these, in one of these ways, directly or not."""
    derived = select(rests_on.c.derived_id).where(rests_on.c.how.in_(how))
    chain = derived.where(rests_on.c.source_id.in_(ids)).cte(recursive=True)
    further = derived.join(chain, rests_on.c.source_id == chain.c.derived_id)
    return select(chain.union(further).c.derived_id)
