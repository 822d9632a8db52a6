"""Converts a home of the second edition: links carry the state of facts, one log tells the indexes what has
changed, one table what rests on what, and what was forgotten and can be undone is hidden, not serialised."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid4, uuid5

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

_moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    steps = (
        _links_carry_the_state,
        _one_log_of_changes,
        _one_record_of_sources,
        _entries_have_ids,
        _hide_what_can_come_back,
        _keep_what_was_posted,
        _note_who_wants_nothing_kept,
    )
    config = op.get_context().config
    tell = config.attributes.get("tell") if config else None
    for done, step in enumerate(steps, 1):
        step()
        if tell:
            tell(done, len(steps))


_HISTORY = (
    "undone",
    "said before what is known: a model judged that this takes its place",
    "said before what it is to correct",
)
"""Reasons of steps from a fact that never held, or was taken back."""
_PRIVATE = "made private"

_links = sa.table(
    "memory_owners",
    *map(sa.column, ("memory_id", "owner", "content_key", "superseded", "superseded_by", "reason")),
    sa.column("superseded_at", sa.DateTime(timezone=True)),
)
_steps = sa.table(
    "memory_updates",
    *map(sa.column, ("old_id", "new_id", "reason")),
    sa.column("created_at", sa.DateTime(timezone=True)),
    sa.column("owners", sa.JSON()),
)


def _links_carry_the_state() -> None:
    op.add_column("memory_owners", sa.Column("superseded_by", sa.String(36)))
    op.add_column("memory_owners", sa.Column("superseded_at", sa.DateTime(timezone=True)))
    op.add_column("memory_owners", sa.Column("reason", sa.Text()))
    steps = op.get_bind().execute(sa.select(_steps).order_by(_steps.c.created_at)).all()
    last = {(step.old_id, owner): step for step in steps for owner in step.owners}
    _convert_links(last)
    _note_places({step.old_id: step for step in steps if step.reason == _PRIVATE})
    op.drop_index("uq_memory_owners_active", "memory_owners")
    op.drop_column("memory_owners", "superseded")
    holds = sa.text("superseded_by IS NULL")
    op.create_index(
        "uq_memory_owners_active",
        "memory_owners",
        ["owner", "content_key"],
        unique=True,
        sqlite_where=holds,
        postgresql_where=holds,
    )
    op.create_index("ix_memory_owners_superseded_by", "memory_owners", ["superseded_by"])


def _state(id: str, step: Any) -> dict[str, Any]:
    """What the last step of a superseded link says in the link itself."""
    if step is None or step.reason == _PRIVATE:
        return {"superseded_by": id, "superseded_at": None, "reason": None}
    at = None if step.reason in _HISTORY else step.created_at
    return {"superseded_by": step.new_id or id, "superseded_at": at, "reason": step.reason}


def _convert_links(last: Mapping[tuple[str, str], Any]) -> None:
    ended = sa.select(_links.c.memory_id, _links.c.owner).where(_links.c.superseded == 1)
    for id, owner in op.get_bind().execute(ended).all():
        here = sa.update(_links).where(_links.c.memory_id == id, _links.c.owner == owner)
        op.execute(here.values(_state(id, last.get((id, owner)))))


def _note_places(private: Mapping[str, Any]) -> None:
    """Link what was made private to the places where it was told, as ended there."""
    connection = op.get_bind()
    sources = sa.table("memory_sources", sa.column("memory_id"), sa.column("message_id"))
    messages = sa.table("messages", sa.column("id"), sa.column("conversation_id"))
    talks = sa.table("conversations", sa.column("id"), sa.column("place"))
    told = (
        sa.select(sources.c.memory_id, talks.c.place, sa.func.max(_links.c.content_key).label("key"))
        .join(messages, messages.c.id == sources.c.message_id)
        .join(talks, talks.c.id == messages.c.conversation_id)
        .join(_links, _links.c.memory_id == sources.c.memory_id)
        .where(sources.c.memory_id.in_(list(private)), talks.c.place != "")
        .group_by(sources.c.memory_id, talks.c.place)
    )
    for id, place, key in connection.execute(told).all():
        same = (_links.c.memory_id == id, _links.c.owner == place)
        if connection.execute(sa.select(_links.c.owner).where(*same)).first() is None:
            ended = {"superseded_by": id, "superseded_at": private[id].created_at, "reason": _PRIVATE}
            row = {"memory_id": id, "owner": place, "content_key": key, "superseded": 1} | ended
            op.execute(sa.insert(_links).values(row))


_INDEXED = ("messages", "active_conversations", "memories", "knowledge_chunks")


def _one_log_of_changes() -> None:
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    counter = sa.Integer() if on_sqlite else sa.BigInteger()
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "vectors",
        sa.Column("id", sa.String(36), primary_key=True, comment="of a memory, message, summary or chunk"),
        sa.Column(
            "lane", sa.Text(), primary_key=True, comment="dense: of its text; window_dense: of its window"
        ),
        sa.Column("embedder", sa.Text(), primary_key=True),
        sa.Column("digest", sa.LargeBinary(), nullable=False, comment="of the text that it was made of"),
        sa.Column("vector", sa.LargeBinary(), nullable=False, comment="numbers of two bytes"),
    )
    op.create_table(
        "changes",
        sa.Column("seq", counter, sa.Identity(), primary_key=True),
        sa.Column(
            "tx",
            sa.BigInteger(),
            nullable=False,
            comment="PostgreSQL's number of the transaction; 0 on SQLite",
        ),
        sa.Column("kind", sa.Text(), nullable=False, comment="memory, message, summary or chunk"),
        sa.Column(
            "id",
            sa.String(36),
            nullable=False,
            comment="of a row that an index is to show otherwise, or no more",
        ),
    )
    op.create_index("ix_changes_position", "changes", ["tx", "seq"])
    op.create_table(
        "index_positions",
        sa.Column(
            "name", sa.Text(), primary_key=True, comment="a collection on a server; cut: where the log begins"
        ),
        sa.Column(
            "tx",
            sa.BigInteger(),
            comment="with seq: up to where it has followed the log; NULL: to be filled",
        ),
        sa.Column("seq", sa.BigInteger()),
        sa.Column("holder", sa.Text(), comment="who makes it follow now"),
        sa.Column("until", moment, comment="when another one may"),
    )
    for table in _INDEXED:
        op.drop_index(f"ix_{table}_unindexed", table)
        op.drop_column(table, "indexed_under")
    op.drop_column("memories", "revision")
    op.execute("DELETE FROM work WHERE kind = 'unindex'")
    op.execute("DELETE FROM knowledge_chunks WHERE text = ''")  # removed ones that waited to leave the index
    op.execute("DELETE FROM knowledge_documents WHERE owner = ''")


_rests_on = sa.table("rests_on", *map(sa.column, ("derived_id", "source_id", "how")))


def _columns(table: str, *names: str, **typed: Any) -> Any:
    return sa.table(table, *map(sa.column, names), *(sa.column(name, of) for name, of in typed.items()))


def _one_record_of_sources() -> None:
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
    comment = "the message that it follows, where a client went back to an earlier one"
    op.add_column("messages", sa.Column("follows", sa.String(36), comment=comment))
    _begin_trace_rows()
    summaries = _columns("active_conversations", "unsourced", "summary", "withheld")
    emptied = {"summary": "", "withheld": 1}
    op.execute(sa.update(summaries).where(summaries.c.unsourced == 1).values(emptied))
    op.drop_column("active_conversations", "unsourced")
    op.drop_column("active_conversations", "forgotten_at")
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
    op.create_table(
        "trace_sets",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("trace_id", sa.Text(), primary_key=True, comment="also of a trace that is gone"),
        sa.Column("holds", sa.Text(), nullable=False, comment="what its reply must hold, one a line"),
    )
    first = "seconds to the first letter that the person saw; NULL: not streamed"
    op.add_column("traces", sa.Column("first", sa.Float(), comment=first))
    retried = sa.Column("retried", sa.Integer(), nullable=False, server_default="0")
    retried.comment = "model calls that were tried again"
    op.add_column("traces", retried)
    op.execute("DELETE FROM trace_bodies")
    op.execute("UPDATE traces SET said = '', reply = '', error = NULL")
    outcome = "CASE status WHEN 'forgotten' THEN 'ok' ELSE substr(status, 11) END"
    op.execute(f"UPDATE traces SET status = {outcome} WHERE status LIKE 'forgotten%'")


def _entries_have_ids() -> None:
    """Entries of profiles rest on messages by an id of their own, as everything else does."""
    key = ("user_id", "place", "field", "item")
    entries = _columns("context_entries", *key, "value", "message_id", said_at=_moment)
    rows, stated = [], []
    for row in _rows(sa.select(entries)):
        id = str(uuid5(NAMESPACE_OID, "\n".join(getattr(row, name) for name in key)))
        rows.append(
            {**{name: value for name, value in row._mapping.items() if name != "message_id"}, "id": id}
        )
        stated += [(id, row.message_id, "stated")] if row.message_id else []
        if row.field == "memory_summary":
            for place in {row.place, row.place.removeprefix("place:"), "dm"}:
                old = str(uuid5(NAMESPACE_OID, f"memory_summary {row.user_id} {place}"))
                same = sa.update(_rests_on).where(_rests_on.c.derived_id == old)
                op.execute(same.values(derived_id=id))
    _insert(stated)
    op.drop_table("context_entries")
    made = op.create_table(
        "context_entries",
        *(sa.Column(name, sa.Text(), nullable=False) for name in (*key, "value")),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("said_at", _moment, nullable=False),
        sa.PrimaryKeyConstraint(*key, name="pk_context_entries"),
        sa.UniqueConstraint("id", name="uq_context_entries_id"),
    )
    op.bulk_insert(made, rows)


_forgettings = _columns("forgettings", "id", "person", "why", "named", at=_moment, until=_moment)
_hidden = _columns("hidden", "row_id", "kind", "forgetting_id")
_messages = _columns("messages", "id", "user_id", "text", "place", forgotten_at=_moment, replaced_at=_moment)
_owned = _columns("memory_owners", "memory_id", "owner", "superseded_by", "reason", superseded_at=_moment)


def _hide_what_can_come_back() -> None:
    op.create_table(
        "forgettings",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("at", _moment, nullable=False),
        sa.Column("until", _moment),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("named", sa.String(36)),
    )
    op.create_index("ix_forgettings_person", "forgettings", ["person"])
    op.create_index("ix_forgettings_until", "forgettings", ["until"])
    op.create_table(
        "hidden",
        sa.Column("row_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("forgetting_id", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("row_id", "kind", "forgetting_id", name="pk_hidden"),
        sa.ForeignKeyConstraint(
            ["forgetting_id"], ["forgettings.id"], name="fk_hidden_forgetting_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_hidden_forgetting_id", "hidden", ["forgetting_id"])
    forgotten = _columns("forgotten", "id", "user_id", payload=sa.JSON(), forgotten_at=_moment, until=_moment)
    for row in _rows(sa.select(forgotten)):
        _begin("forgotten", row.user_id, row.forgotten_at, row.until, row.payload.get("named"), row.id)
        _put_back_hidden(row.id, row.payload)
    op.drop_table("forgotten")
    _hide_replaced()
    _hide_private()
    _delete_emptied()
    for name in ("forgotten_at", "replaced_at"):
        op.drop_column("messages", name)
    op.drop_column("erasures", "sought")
    op.drop_table("erasure_items")
    op.execute("DELETE FROM work WHERE kind = 'forget_outside'")


def _begin(
    why: str, person: str, at: datetime, until: datetime | None, named: str | None = None, id: str = ""
) -> str:
    row = {"id": id or str(uuid4()), "person": person, "at": at, "until": until, "why": why, "named": named}
    op.execute(sa.insert(_forgettings).values(row))
    return str(row["id"])


def _hide(forgetting: str, kind: str, ids: Iterable[str]) -> None:
    rows = [{"forgetting_id": forgetting, "kind": kind, "row_id": id} for id in sorted(set(ids))]
    if rows:
        op.bulk_insert(_hidden, rows)


def _put_back_hidden(forgetting: str, payload: Mapping[str, Any]) -> None:
    """Put the rows back that a forgetting took, hidden."""
    rows, texts = payload["rows"], payload["messages"]
    for id, text in texts.items():
        op.execute(sa.update(_messages).where(_messages.c.id == id).values(text=text))
    _hide(forgetting, "message", texts)
    _put("memories", rows.get("memories", {}).values(), "id")
    links = [_link_of(row, rows) for row in rows.get("memory_owners", {}).values()]
    new, known = [], {(row.memory_id, row.owner): row for row in _rows(sa.select(_owned))}
    for link in links:
        key = (link["memory_id"], link["owner"])
        if key not in known:
            new.append(link)
        elif known[key].superseded_by is None and link["superseded_by"]:
            _hide(forgetting, "replaced", [f"{key[0]} {link['superseded_by']} {key[1]}"])
    _hide(forgetting, "link", [f"{link['memory_id']} {link['owner']}" for link in new])
    for link in new:
        link["superseded_by"] = link["superseded_by"] or link["memory_id"]
    _put("memory_owners", new, "memory_id", "owner")
    _put("memory_aliases", rows.get("memory_aliases", {}).values(), "memory_id", "owner", "name", "other")
    _put("memory_tags", rows.get("memory_tags", {}).values(), "tag", "memory_id")
    _put("session_memories", rows.get("session_memories", {}).values(), "memory_id", "conversation_id")
    _put("memory_updates", rows.get("memory_updates", {}).values(), "id")
    known_sources = {tuple(row) for row in _rows(sa.select(_rests_on))}
    told = [
        (row["memory_id"], row["message_id"], "stated") for row in rows.get("memory_sources", {}).values()
    ]
    _insert(row for row in told if row not in known_sources)
    tasks = [dict(row) for row in payload.get("tasks", ())]
    _put("tasks", tasks, "id")
    _hide(forgetting, "task", [task["id"] for task in tasks])
    of_entry = ("user_id", "place", "field", "item")
    entries = []
    for row in payload.get("entries", ()):
        id = str(uuid5(NAMESPACE_OID, "\n".join(row[name] for name in of_entry)))
        said = [row["message_id"]] if row.get("message_id") else row.get("sources", ())
        if _put("context_entries", [{**row, "id": id}], "id"):
            _insert((id, message, "stated") for message in said)
            entries.append(id)
    _hide(forgetting, "entry", entries)


def _link_of(row: Mapping[str, Any], rows: Mapping[str, Any]) -> dict[str, Any]:
    """A link with the state that its owner's last step tells."""
    link = {**row, "superseded_by": None, "superseded_at": None, "reason": None}
    if link.pop("superseded", 0):
        steps = sorted(rows.get("memory_updates", {}).values(), key=lambda step: str(step["created_at"]))
        step = next(
            (s for s in reversed(steps) if s["old_id"] == row["memory_id"] and row["owner"] in s["owners"]),
            None,
        )
        by = (step and step["new_id"]) or row["memory_id"]
        at = step["created_at"] if step and step["reason"] not in _HISTORY else None
        link |= {"superseded_by": by, "superseded_at": at, "reason": step and step["reason"]}
    return link


def _put(name: str, rows: Iterable[Mapping[str, Any]], *key: str) -> int:
    """Insert those of these rows, as JSON has them, that are not there. Returns how many."""
    table = sa.Table(name, sa.MetaData(), autoload_with=op.get_bind())
    new = []
    for row in rows:
        values = {
            column.name: _value(column, row.get(column.name)) for column in table.c if column.name in row
        }
        same = sa.select(sa.func.count()).where(*(table.c[part] == values[part] for part in key))
        if not op.get_bind().execute(same).scalar():
            new.append(values)
    for values in new:
        op.execute(sa.insert(table).values(values))
    return len(new)


def _value(column: Any, value: Any) -> Any:
    """A value of JSON as the column has it."""
    if isinstance(column.type, sa.DateTime) and isinstance(value, str):
        moment = datetime.fromisoformat(value)
        return moment if op.get_bind().dialect.name != "sqlite" else moment.replace(tzinfo=None)
    return value


def _hide_replaced() -> None:
    """Messages that a client has replaced, and the facts that ended with them."""
    why = "its message was replaced"
    replaced = sa.select(_messages).where(_messages.c.replaced_at.is_not(None))
    edits: dict[tuple[str, Any], str] = {}
    for row in _rows(replaced):
        at = (row.user_id, row.replaced_at)
        if at not in edits:
            edits[at] = _begin("edited", row.user_id, row.replaced_at, None)
        _hide(edits[at], "message", [row.id])
    for link in _rows(sa.select(_owned).where(_owned.c.reason == why)):
        user = link.owner.removeprefix("user:")
        if (user, link.superseded_at) not in edits:
            edits[user, link.superseded_at] = _begin("edited", user, link.superseded_at, None)
        _hide_link(edits[user, link.superseded_at], link)


def _hide_private() -> None:
    """What was made private, for the places where it was told."""
    first = dict(_rows(sa.select(_columns("memories", "id", "user_id"))))
    for link in _rows(sa.select(_owned).where(_owned.c.reason == _PRIVATE)):
        at = link.superseded_at
        _hide_link(_begin("private", first[link.memory_id], at, None, link.memory_id), link)


def _hide_link(forgetting: str, link: Any) -> None:
    _hide(forgetting, "link", [f"{link.memory_id} {link.owner}"])
    here = (_owned.c.memory_id == link.memory_id, _owned.c.owner == link.owner)
    state = {"superseded_by": link.memory_id, "superseded_at": None, "reason": None}
    op.execute(sa.update(_owned).where(*here).values(state))


def _delete_emptied() -> None:
    """Messages that were forgotten for good, whose rows have no text."""
    kept = sa.select(_hidden.c.row_id).where(_hidden.c.kind == "message")
    gone = sa.and_(_messages.c.forgotten_at.is_not(None), _messages.c.id.not_in(kept))
    ids = sa.select(_messages.c.id).where(gone)
    named = sa.or_(_rests_on.c.derived_id.in_(ids), _rests_on.c.source_id.in_(ids))
    op.execute(sa.delete(_rests_on).where(named))
    op.execute(sa.delete(_messages).where(gone))


def _keep_what_was_posted() -> None:
    comment = "1: Hachi posted it there, as the reply or, where none is stored, about the question"
    posted = sa.Column("posted", sa.Integer(), nullable=False, server_default="0", comment=comment)
    op.add_column("message_origins", posted)
    for name in ("user_id", "message", "posts"):
        op.add_column("deliveries", sa.Column(name, sa.Text() if name == "user_id" else sa.JSON()))
    op.add_column("deliveries", sa.Column("job", sa.String(36)))
    op.create_index("ix_deliveries_job", "deliveries", ["job"])


def _note_who_wants_nothing_kept() -> None:
    op.create_table(
        "unkept",
        sa.Column("user_id", sa.Text(), comment="who wants nothing of theirs kept"),
        sa.Column("place", sa.Text(), comment="there: the place's key; empty: anywhere"),
        sa.Column("since", _moment, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "place", name="pk_unkept"),
    )
