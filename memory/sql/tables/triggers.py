"""Triggers write what follows from a row, in the transaction that writes the row.

They write the log of changes (`memory.sql.changes`): of facts by the links to those who have them, of
messages until they are hidden or withdrawn from their place, of summaries and of chunks. With a row, or the
text of a summary, its vectors go. A new memory gets its tags, and rests on the message that states it.
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


def _log(kind: str, row: str) -> str:
    return f"INSERT INTO changes (tx, kind, id) VALUES ({{tx}}, '{kind}', {row})"


def _log_message(entry: str) -> str:
    """Log the message that a row of `hidden` names, unless it is deleted, or an entry of a profile."""
    named = f"SELECT {{tx}}, 'message', id FROM messages WHERE id = {entry}.row_id"
    return f"INSERT INTO changes (tx, kind, id) {named}"


_TRIGGERS = {
    "evidence_gone": ("INSTEAD OF DELETE ON rests_on FOR EACH ROW", _NO_EVIDENCE),
    "link_made": ("INSERT ON memory_owners FOR EACH ROW", _log("memory", "NEW.memory_id")),
    "link_changed": (
        "UPDATE OF superseded_by ON memory_owners FOR EACH ROW "
        "WHEN ((OLD.superseded_by IS NULL) <> (NEW.superseded_by IS NULL))",
        _log("memory", "NEW.memory_id"),
    ),
    "link_gone": ("DELETE ON memory_owners FOR EACH ROW", _log("memory", "OLD.memory_id")),
    "memory_made": ("INSERT ON memories FOR EACH ROW", f"{_TAGS}; {_EVIDENCE}"),
    "memory_prolonged": ("UPDATE OF expires_at ON memories FOR EACH ROW", _log("memory", "NEW.id")),
    "memory_gone": ("DELETE ON memories FOR EACH ROW", _NO_VECTORS),
    "message_made": ("INSERT ON messages FOR EACH ROW", _log("message", "NEW.id")),
    "message_hidden": (
        "INSERT ON hidden FOR EACH ROW WHEN (NEW.kind IN ('message', 'told'))",
        _log_message("NEW"),
    ),
    "message_shown": (
        "DELETE ON hidden FOR EACH ROW WHEN (OLD.kind IN ('message', 'told'))",
        _log_message("OLD"),
    ),
    "message_gone": ("DELETE ON messages FOR EACH ROW", f"{_log('message', 'OLD.id')}; {_NO_VECTORS}"),
    "summary_changed": (
        "UPDATE OF revision ON active_conversations FOR EACH ROW WHEN (OLD.revision <> NEW.revision)",
        f"{_log('summary', 'OLD.id')}; {_NO_VECTORS}",
    ),
    "summary_gone": (
        "DELETE ON active_conversations FOR EACH ROW",
        f"{_log('summary', 'OLD.id')}; {_NO_VECTORS}",
    ),
    "chunk_made": ("INSERT ON knowledge_chunks FOR EACH ROW", _log("chunk", "NEW.id")),
    "chunk_gone": ("DELETE ON knowledge_chunks FOR EACH ROW", f"{_log('chunk', 'OLD.id')}; {_NO_VECTORS}"),
}
"""By name: after what, or instead of what, and what it does."""


def _moment(change: str) -> str:
    return change if change.startswith("INSTEAD OF") else f"AFTER {change}"


ON_SQLITE = {
    name: f"CREATE TRIGGER {name} {_moment(of)} BEGIN {does.format(tx=0, json_each='json_each')}; END"
    for name, (of, does) in _TRIGGERS.items()
}
"""By name, as SQLite keeps them."""
_ON_POSTGRESQL = {"tx": "pg_current_xact_id()::text::bigint", "json_each": "json_array_elements_text"}
_BODIES = {
    name: f" BEGIN {does.format(**_ON_POSTGRESQL)}; RETURN NULL; END "
    for name, (_, does) in _TRIGGERS.items()
}
"""By name, as PostgreSQL keeps the function that a trigger calls."""
_THERE = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
    "WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace",
}
_FUNCTION = "CREATE OR REPLACE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql AS $${}$$"


def create_triggers(connection: Connection) -> None:
    """Make the triggers, once the tables are there."""
    for name, (change, _) in _TRIGGERS.items():
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(ON_SQLITE[name])
        else:
            connection.exec_driver_sql(_FUNCTION.format(name, _BODIES[name]))
            connection.exec_driver_sql(f"CREATE TRIGGER {name} {_moment(change)} EXECUTE FUNCTION {name}()")


def drop_triggers(connection: Connection) -> None:
    """Drop all triggers, also those of an older version, while rows are copied or converted."""
    dialect = connection.dialect.name
    for name in connection.exec_driver_sql(_THERE[dialect]).scalars().all():
        connection.exec_driver_sql(
            f"DROP TRIGGER {name}" if dialect == "sqlite" else f"DROP FUNCTION {name} CASCADE"
        )


def trigger_texts(dialect: str) -> dict[str, str]:
    """Return what the database keeps of each trigger, by its name."""
    return ON_SQLITE if dialect == "sqlite" else _BODIES
