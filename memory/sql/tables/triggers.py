"""Triggers that write dependent rows in the transaction that writes a row.

They log each change of a fact, message, summary or chunk for each of its owners (`memory.sql.changes`), and
also in `index_todo` while there is an index on a server. They delete the vectors of a deleted row or a
changed summary. For a new memory they write its tags and its message as evidence.
"""

from sqlalchemy import Connection

from memory.sql.tables.evidence import CODES, WHENS

_NO_VECTORS = "DELETE FROM vectors WHERE id = OLD.id"
_TAGS = (
    "INSERT INTO memory_tags (memory_id, tag) SELECT NEW.id, value FROM {json_each}(NEW.subjects) AS value"
)
_BOTH = "FROM evidence_ids AS derived, evidence_ids AS source WHERE derived.id = {0} AND source.id = {1}"
_EVIDENCE = (
    "INSERT INTO evidence_ids (id) SELECT NEW.id WHERE NEW.message_id IS NOT NULL "
    "UNION SELECT NEW.message_id WHERE NEW.message_id IS NOT NULL ON CONFLICT DO NOTHING; "
    "INSERT INTO evidence (derived, source, how) SELECT derived.number, source.number, "
    f"{CODES['stated']} {_BOTH.format('NEW.id', 'NEW.message_id')} ON CONFLICT DO NOTHING"
)
_NO_EVIDENCE = (
    "DELETE FROM evidence WHERE (derived, source) = "
    f"(SELECT derived.number, source.number {_BOTH.format('OLD.derived_id', 'OLD.source_id')}) "
    f"AND CASE how {WHENS} END = OLD.how"
)


def _log(kind: str, owner: str, id: str, where: str = "") -> str:
    """Log a change of a row for its owner. `owner` and `id` are SQL expressions, `where` ends the SELECT."""
    return f"INSERT INTO changes (tx, owner, kind, id) SELECT {{tx}}, {owner}, '{kind}', {id} {where}"


def _log_olds(new: str, where: str = "") -> str:
    """Log the memories that a memory had replaced, because they may have become active or inactive."""
    return _log("memory", "owner", "old_id", f"FROM replacements WHERE new_id = {new} {where}")


def _log_link(entry: str) -> str:
    """Log the memory of a hidden link, and the memories that it had replaced for this owner."""
    id, owner = f"substr({entry}.row_id, 1, 36)", f"substr({entry}.row_id, 38)"
    return f"{_log('memory', owner, id)}; {_log_olds(id, f'AND owner = {owner}')}"


def _log_message(message: str, where: str = "", *, around: bool = False) -> str:
    """Log a change of a message for its owners, and with `around` also for owners of only its neighbours."""
    row = f"{message}.id"
    place = f"{where} {'AND' if where else 'WHERE'} {message}.place <> ''"
    own = f"({message}.place = '' OR {message}.role = 'user')"
    parts = [
        _log("message", f"'user:' || {message}.user_id", row, f"{where} {'AND' if where else 'WHERE'} {own}"),
        _log("message", f"{message}.place", row, place),
    ]
    if around:
        parts.append(_log("message", f"'around ' || {message}.place", row, place))
    return "; ".join(parts)


def _log_named(entry: str) -> str:
    """Log the message of a row of `hidden`, but nothing for a deleted message or a profile entry."""
    return _log_message("messages", f"FROM messages WHERE id = {entry}.row_id", around=True)


_IS_HIDDEN = "EXISTS (SELECT 1 FROM hidden WHERE row_id = {id} AND kind IN ('message', 'told'))"
_TALK = f"""SELECT user_id, role FROM messages WHERE NEW.place <> '' AND place = NEW.place
    AND conversation_id = NEW.conversation_id AND NOT {_IS_HIDDEN.format(id="messages.id")}"""
_BESIDE = f"""INSERT INTO changes (tx, owner, kind, id)
    SELECT DISTINCT {{tx}}, 'user:' || beside.user_id, 'message', NEW.id FROM (
        SELECT * FROM ({_TALK} AND seq < NEW.seq ORDER BY seq DESC LIMIT 2) AS before
        UNION ALL SELECT * FROM ({_TALK} AND seq > NEW.seq ORDER BY seq LIMIT 2) AS after
    ) AS beside WHERE beside.role = 'user' AND (NEW.role <> 'user' OR beside.user_id <> NEW.user_id)"""
"""Log a new message in a place for the authors of the two on either side, whose windows contain it."""
_AT_COMMIT = "message_beside"
"""PostgreSQL runs this trigger at the commit: two open transactions do not see each other's messages."""
_UNSEEN = f"NOT {_IS_HIDDEN.format(id='OLD.id')}"
_DOCUMENT = "'documents of ' || knowledge_documents.owner"
_OF_SUMMARY = f"{_log('summary', 'OLD.owner', 'OLD.id')}; {_NO_VECTORS}"


_TRIGGERS = {
    "evidence_gone": ("INSTEAD OF DELETE ON rests_on FOR EACH ROW", _NO_EVIDENCE),
    "link_made": (
        "AFTER INSERT ON memory_owners FOR EACH ROW",
        _log("memory", "NEW.owner", "NEW.memory_id"),
    ),
    "link_hidden": ("AFTER INSERT ON hidden FOR EACH ROW WHEN (NEW.kind = 'link')", _log_link("NEW")),
    "link_shown": ("AFTER DELETE ON hidden FOR EACH ROW WHEN (OLD.kind = 'link')", _log_link("OLD")),
    "replaced": ("AFTER INSERT ON replacements FOR EACH ROW", _log("memory", "NEW.owner", "NEW.old_id")),
    "restored": ("AFTER DELETE ON replacements FOR EACH ROW", _log("memory", "OLD.owner", "OLD.old_id")),
    "link_gone": (
        "AFTER DELETE ON memory_owners FOR EACH ROW",
        _log("memory", "OLD.owner", "OLD.memory_id"),
    ),
    "memory_made": ("AFTER INSERT ON memories FOR EACH ROW", f"{_TAGS}; {_EVIDENCE}"),
    "memory_prolonged": (
        "AFTER UPDATE OF expires_at ON memories FOR EACH ROW",
        _log("memory", "owner", "memory_id", "FROM memory_owners WHERE memory_id = NEW.id"),
    ),
    "memory_gone": ("AFTER DELETE ON memories FOR EACH ROW", f"{_log_olds('OLD.id')}; {_NO_VECTORS}"),
    "message_made": ("AFTER INSERT ON messages FOR EACH ROW", _log_message("NEW")),
    "message_beside": ("AFTER INSERT ON messages FOR EACH ROW", _BESIDE),
    "message_moved": (
        "AFTER UPDATE OF seq ON messages FOR EACH ROW",
        _log_message("NEW", around=True),
    ),
    "message_hidden": (
        "AFTER INSERT ON hidden FOR EACH ROW WHEN (NEW.kind IN ('message', 'told'))",
        _log_named("NEW"),
    ),
    "message_shown": (
        "AFTER DELETE ON hidden FOR EACH ROW WHEN (OLD.kind IN ('message', 'told'))",
        _log_named("OLD"),
    ),
    "message_gone": (
        "AFTER DELETE ON messages FOR EACH ROW",
        f"{_log_message('OLD')}; "
        f"""{_log("message", "'around ' || OLD.place", "OLD.id", f"WHERE OLD.place <> '' AND {_UNSEEN}")}; """
        f"{_NO_VECTORS}",
    ),
    "summary_made": (
        "AFTER INSERT ON active_conversations FOR EACH ROW",
        _log("summary", "NEW.owner", "NEW.id"),
    ),
    "summary_changed": (
        "AFTER UPDATE OF revision ON active_conversations FOR EACH ROW WHEN (OLD.revision <> NEW.revision)",
        _OF_SUMMARY,
    ),
    "summary_gone": ("AFTER DELETE ON active_conversations FOR EACH ROW", _OF_SUMMARY),
    "chunk_made": (
        "AFTER INSERT ON knowledge_chunks FOR EACH ROW",
        _log("chunk", _DOCUMENT, "NEW.id", "FROM knowledge_documents WHERE id = NEW.document_id"),
    ),
    "chunk_gone": (
        "AFTER DELETE ON knowledge_chunks FOR EACH ROW",
        _log("chunk", _DOCUMENT, "OLD.id", "FROM knowledge_documents WHERE id = OLD.document_id")
        + f"; {_NO_VECTORS}",
    ),
    "document_gone": (
        "BEFORE DELETE ON knowledge_documents FOR EACH ROW",
        _log(
            "chunk", "'documents of ' || OLD.owner", "id", "FROM knowledge_chunks WHERE document_id = OLD.id"
        ),
    ),
    "change_noted": (
        "AFTER INSERT ON changes FOR EACH ROW",
        "INSERT INTO index_todo (owner, kind, id) "
        "SELECT NEW.owner, NEW.kind, NEW.id WHERE EXISTS (SELECT 1 FROM index_marks)",
    ),
}
"""The event and the statements of each trigger, by name."""

ON_SQLITE = {
    name: f"CREATE TRIGGER {name} {when} BEGIN {does.format(tx=0, json_each='json_each')}; END"
    for name, (when, does) in _TRIGGERS.items()
}
"""The text of each trigger as SQLite stores it, by name."""
_ON_POSTGRESQL = {"tx": "pg_current_xact_id()::text::bigint", "json_each": "json_array_elements_text"}
_BODIES = {
    name: f" BEGIN {does.format(**_ON_POSTGRESQL)}; RETURN coalesce(NEW, OLD); END "
    for name, (_, does) in _TRIGGERS.items()
}
"""The function of each trigger as PostgreSQL stores it, by name."""
_THERE = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
    "WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace",
}
_FUNCTION = "CREATE OR REPLACE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql AS $${}$$"


def create_triggers(connection: Connection) -> None:
    """Create the triggers. The tables must exist."""
    for name, (when, _) in _TRIGGERS.items():
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(ON_SQLITE[name])
        else:
            connection.exec_driver_sql(_FUNCTION.format(name, _BODIES[name]))
            made = f"TRIGGER {name} {when} EXECUTE FUNCTION {name}()"
            if name == _AT_COMMIT:
                made = f"CONSTRAINT {made.replace(' FOR EACH', ' DEFERRABLE INITIALLY DEFERRED FOR EACH')}"
            connection.exec_driver_sql(f"CREATE {made}")


def drop_triggers(connection: Connection) -> None:
    """Drop all triggers, also those of an older version, while rows are copied or converted."""
    dialect = connection.dialect.name
    for name in connection.exec_driver_sql(_THERE[dialect]).scalars().all():
        connection.exec_driver_sql(
            f"DROP TRIGGER {name}" if dialect == "sqlite" else f"DROP FUNCTION {name} CASCADE"
        )


def trigger_texts(dialect: str) -> dict[str, str]:
    """Return the text that the database stores for each trigger, by name."""
    return ON_SQLITE if dialect == "sqlite" else _BODIES
