"""Read messages for the index: of every owner, and with the messages around them."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import bindparam, or_, select, text

from memory.audience import user_key
from memory.sql.engine import Database
from memory.sql.hidden import WITHDRAWN
from memory.sql.messages.message_rows import REACH, is_visible
from memory.sql.tables import messages

APART = 64
"""Two messages whose `seq` differs by more are read as two runs."""


class Anchor(NamedTuple):
    """The position of a message, hidden or not: its conversation, its readers and its `seq`."""

    id: str
    conversation: str
    heard: str
    """The owner key of the conversation's readers: its place, or in private its user."""
    seq: int


_POSITION = tuple(messages.c[name] for name in ("id", "conversation_id", "place", "user_id", "seq"))
_OF_INDEX = (*_POSITION, *(messages.c[name] for name in ("role", "author", "text", "sent_at")))
_OF_IDS = select(*_POSITION).where(messages.c.id.in_(bindparam("ids", expanding=True)))
_LINES = select(*_OF_INDEX, WITHDRAWN.label("withdrawn"))
_NEWEST = {
    private: _LINES.where(
        (messages.c.user_id if private else messages.c.place) == bindparam("whose"),
        or_(messages.c.place == "", messages.c.role == "user") if private else ~WITHDRAWN,
        messages.c.seq < bindparam("before"),
        is_visible(),
    )
    .order_by(messages.c.seq.desc())
    .limit(bindparam("most"))
    for private in (True, False)
}


async def anchors_of(database: Database, ids: Collection[str]) -> list[Anchor]:
    """Return the positions of these messages for their author, and for their place even if withdrawn."""
    return to_anchors(await database.rows(_OF_IDS, {"ids": list(ids)})) if ids else []


def to_anchors(rows: Iterable[Any]) -> list[Anchor]:
    return [
        Anchor(row.id, row.conversation_id, heard, row.seq)
        for row in rows
        for heard in ((row.place,) if row.place else ()) + (user_key(row.user_id),)
    ]


async def newest_lines(database: Database, owner: str, before: int, most: int) -> Sequence[Any]:
    """Return the rows of the owner's `most` newest messages whose `seq` is under `before`, newest first."""
    private = owner.startswith("user:")
    given = {"whose": owner.removeprefix("user:") if private else owner, "before": before, "most": most}
    return await database.rows(_NEWEST[private], given)


_TALK = """{m}.conversation_id = {run}.conversation
    AND CASE WHEN {m}.place = '' OR {told} THEN 'user:' || {m}.user_id ELSE {m}.place END = {run}.heard
    AND NOT EXISTS (SELECT 1 FROM hidden WHERE row_id = {m}.id AND kind = 'message')
    AND ({m}.role = 'user' OR NOT {told})"""
_TOLD = "EXISTS (SELECT 1 FROM hidden WHERE row_id = {m}.id AND kind = 'told')"
_EDGE = """coalesce((SELECT edge.seq FROM messages AS edge WHERE {talk} AND edge.seq {beyond}
    ORDER BY edge.seq {order} LIMIT 1 OFFSET :reach - 1), {end})"""


_BETWEEN = """LATERAL (SELECT * FROM messages AS line WHERE line.conversation_id = spans.conversation
    AND line.seq BETWEEN spans.begins AND spans.ends OFFSET 0) AS messages"""
"""Makes PostgreSQL use an index. Its planner expects many rows and would read all messages."""


def _around(runs: str, between: str) -> Any:
    def of(name: str, run: str) -> str:
        return _TALK.format(m=name, run=run, told=_TOLD.format(m=name))

    fields = {
        "number": "INTEGER",
        "conversation": "TEXT",
        "heard": "TEXT",
        "first": "BIGINT",
        "last": "BIGINT",
    }
    given = ", ".join(f"CAST(value ->> '{name}' AS {kind}) AS {name}" for name, kind in fields.items())
    edge = of("edge", "given")
    begin = _EDGE.format(talk=edge, beyond="< given.first", order="DESC", end=0)
    end = _EDGE.format(talk=edge, beyond="> given.last", order="ASC", end=2**62)
    # MATERIALIZED, because PostgreSQL would otherwise compute the ends of a run again for each message.
    return text(
        f"""WITH given AS MATERIALIZED (SELECT {given} FROM {runs}), spans AS MATERIALIZED (
            SELECT number, conversation, heard, {begin} AS begins, {end} AS ends FROM given)
        SELECT {", ".join(f"messages.{column.name}" for column in _OF_INDEX)},
            spans.number AS run, {_TOLD.format(m="messages")} AS withdrawn
        FROM spans JOIN {between} ON messages.seq BETWEEN spans.begins AND spans.ends
            AND {of("messages", "spans")} ORDER BY spans.number, messages.seq"""
    ).columns(*_OF_INDEX)


_AROUND = {
    True: _around("json_each(:runs)", "messages"),
    False: _around("json_array_elements(CAST(:runs AS json))", _BETWEEN),
}
"""Keyed by whether the database is SQLite. A run is the part of a conversation from a first to a last
message, with `reach` messages on either side."""


async def lines_around(
    database: Database, anchors: Collection[Anchor], reach: int = 2 * REACH
) -> list[tuple[Sequence[Anchor], list[Any]]]:
    """Return the rows of these messages, with up to `reach` neighbours on either side, in order, grouped into
    runs."""
    runs = list(_runs(anchors))
    if not runs:
        return []
    given = [
        {"number": number, "conversation": run[0].conversation, "heard": run[0].heard}
        | {"first": run[0].seq, "last": run[-1].seq}
        for number, run in enumerate(runs)
    ]
    rows = await database.rows(_AROUND[database.sqlite], {"runs": json.dumps(given), "reach": reach})
    found = groupby(rows, key=lambda row: row.run)
    return [(runs[number], list(lines)) for number, lines in found]


def _runs(anchors: Collection[Anchor]) -> Iterator[list[Anchor]]:
    talk = itemgetter(1, 2)  # the conversation and its readers
    for _, of_talk in groupby(sorted(anchors, key=itemgetter(1, 2, 3)), key=talk):
        run: list[Anchor] = []
        for anchor in of_talk:
            if run and anchor.seq - run[-1].seq > APART:
                yield run
                run = []
            run.append(anchor)
        yield run
