"""Tables of people, profiles, tasks, linked accounts and check-ins, and of the settings of places."""

from sqlalchemy import Column, Index, Integer, Table, Text

from memory.sql.tables.columns import Utc, metadata, row_id

users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("created_at", Utc, nullable=False),
    Column("import_key", Text, comment="random; makes the ids of imported messages that have none"),
)

context_entries = Table(
    "context_entries",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("place", Text, primary_key=True, comment="where it was told; the place's key, empty in private"),
    Column("field", Text, primary_key=True, comment="of the user context: profile.name, preferences.tone …"),
    Column("item", Text, primary_key=True, comment="of a list: which one; empty where there is one value"),
    Column("value", Text, nullable=False),
    Column("id", row_id, nullable=False, unique=True, comment="made of the key; it rests on messages by it"),
    Column("said_at", Utc, nullable=False, comment="only what was said later takes its place"),
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", row_id, primary_key=True),
    Column("user_id", Text, nullable=False, index=True),
    Column(
        "place", Text, nullable=False, comment="where it was asked for; the place's key, empty in private"
    ),
    Column("description", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("due", Utc),
    Column("created_at", Utc, nullable=False),
    Column("last_updated", Utc, nullable=False),
    Column("reminded", Utc, comment="the due time that was announced; another one is due again"),
    Index("ix_tasks_due", "due"),
)

places = Table(
    "places",
    metadata,
    Column("place", Text, primary_key=True, comment="the place's key"),
    Column("listening", Text, nullable=False, comment="mentions, everything or nothing"),
    Column("changed_by", Text, nullable=False),
    Column("changed_at", Utc, nullable=False),
)

unkept = Table(
    "unkept",
    metadata,
    Column("user_id", Text, primary_key=True, comment="who wants nothing of theirs kept"),
    Column("place", Text, primary_key=True, comment="there: the place's key; empty: anywhere"),
    Column("since", Utc, nullable=False),
)

check_ins = Table(
    "check_ins",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("since", Utc, comment="since when they want to be asked how things went; NULL: they do not"),
    Column("asked_at", Utc, comment="when they were asked last"),
    Column("unanswered", Integer, nullable=False, server_default="0", comment="asked since they last wrote"),
)

links = Table(
    "links",
    metadata,
    Column("user_id", Text, primary_key=True, comment="an account that is linked with others"),
    Column("person", Text, nullable=False, index=True, comment="random; accounts that are linked share it"),
    Column("since", Utc, nullable=False),
)

link_codes = Table(
    "link_codes",
    metadata,
    Column("user_id", Text, primary_key=True, comment="who got the code, or typed wrong ones"),
    Column("digest", Text, unique=True, comment="of the code that links with this account"),
    Column("given_at", Utc, comment="when it was given"),
    Column("wrong", Integer, nullable=False, comment="how many wrong codes were typed …"),
    Column("wrong_since", Utc, comment="… since then"),
)
