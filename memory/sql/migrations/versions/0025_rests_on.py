"""One record of what rests on what, for facts, replies, summaries and profiles."""

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"

_rests_on = sa.table("rests_on", *map(sa.column, ("derived_id", "source_id", "how")))


def _columns(table: str, *names: str, **typed: Any) -> Any:
    return sa.table(table, *map(sa.column, names), *(sa.column(name, of) for name, of in typed.items()))


def _begin_trace_rows() -> None:
    """What earlier traces show is not known by ids, so that their content goes. Times and tokens stay."""
    op.create_table(
        "trace_rows",
        sa.Column(
            "trace",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            autoincrement=False,
            comment="traces.seq",
        ),
        sa.Column("row_id", sa.LargeBinary(16), comment="a row whose text it shows"),
        sa.PrimaryKeyConstraint("trace", "row_id", name="pk_trace_rows"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_trace_rows_row_id", "trace_rows", ["row_id"])
    op.execute("DELETE FROM trace_bodies")
    op.execute("UPDATE traces SET said = '', reply = '', error = NULL")


def upgrade() -> None:
    op.create_table(
        "rests_on",
        sa.Column("derived_id", sa.String(36), comment="a fact, reply, summary or entry of a profile"),
        sa.Column("source_id", sa.String(36), comment="a message, memory, summary or task"),
        sa.Column("how", sa.Text(), comment="stated, answered, found or covered"),
        sa.PrimaryKeyConstraint("derived_id", "source_id", "how", name="pk_rests_on"),
    )
    op.create_index("ix_rests_on_source_id", "rests_on", ["source_id"])
    _insert(_of_facts())
    _insert(_of_texts())
    _insert(_of_replies())
    _insert(_answers())
    _convert_forgotten()
    comment = "the message that it follows, where a client went back to an earlier one"
    op.add_column("messages", sa.Column("follows", sa.String(36), comment=comment))
    summaries = _columns("active_conversations", "unsourced", "summary", "withheld")
    emptied = {"summary": "", "withheld": 1}
    op.execute(sa.update(summaries).where(summaries.c.unsourced == 1).values(emptied))
    op.drop_column("active_conversations", "unsourced")
    _begin_trace_rows()
    for name in ("outdated_at", "sources", "ended"):
        op.drop_column("messages", name)
    op.drop_table("memory_sources")
    op.drop_table("derived_sources")


def _insert(found: Iterable[tuple[str, str, str]]) -> None:
    rows = [dict(zip(("derived_id", "source_id", "how"), row, strict=True)) for row in sorted(set(found))]
    if rows:
        op.bulk_insert(_rests_on, rows)


def _rows(query: Any) -> Any:
    return op.get_bind().execute(query).all()


def _of_facts() -> Iterator[tuple[str, str, str]]:
    for fact, message in _rows(sa.select(_columns("memory_sources", "memory_id", "message_id"))):
        yield fact, message, "stated"


def _of_texts() -> Iterator[tuple[str, str, str]]:
    """Of facts that may come from what others said, of profiles, and of summaries."""
    facts = {id for (id,) in _rows(sa.select(_columns("memories", "id")))}
    entries = _columns("context_entries", "user_id", "place", "field", "item")
    said = {str(uuid5(NAMESPACE_OID, "\n".join(row))) for row in _rows(sa.select(entries))}
    for text, source in _rows(sa.select(_columns("derived_sources", "text_id", "source_id"))):
        yield text, source, "found" if text in facts else "stated" if text in said else "covered"


def _of_replies() -> Iterator[tuple[str, str, str]]:
    messages = _columns("messages", "id", sources=sa.JSON())
    for id, sources in _rows(sa.select(messages).where(messages.c.sources.is_not(None))):
        for source in [*sources["found"], *sources["given"]] if sources else ():
            yield id, source, "found"


def _answers() -> Iterator[tuple[str, str, str]]:
    """The questions of each reply: those in a row before it, of which each has one reply at most."""
    talks: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}
    messages = _columns("messages", "id", "conversation_id", "place", "user_id", "role", "seq")
    for row in _rows(sa.select(messages).order_by(messages.c.seq)):
        questions, replies = talks.setdefault((row.conversation_id, row.place, row.user_id), ([], []))
        if row.role == "user":
            if replies:
                questions.clear()
                replies.clear()
            questions.append(row.id)
        elif len(replies) < len(questions):
            replies.append(row.id)
            for question in questions:
                yield row.id, question, "answered"


def _convert_forgotten() -> None:
    forgotten = _columns("forgotten", "id", payload=sa.JSON())
    for id, payload in _rows(sa.select(forgotten)):
        sources = payload["rows"].pop("memory_sources", {}).values()
        payload["rows"]["rests_on"] = {
            f"{row['memory_id']} {row['message_id']} stated": {
                "derived_id": row["memory_id"],
                "source_id": row["message_id"],
                "how": "stated",
            }
            for row in sources
        }
        op.execute(sa.update(forgotten).where(forgotten.c.id == id).values(payload=payload))
