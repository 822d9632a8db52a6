"""Tables of facts, their owners and replacements, and of hidden rows."""

from sqlalchemy import (
    JSON,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Table,
    Text,
)

from memory.sql.tables.columns import Utc, metadata, row_id

memories = Table(
    "memories",
    metadata,
    Column("id", row_id, primary_key=True),
    Column("content", Text, nullable=False),
    Column("subjects", JSON, nullable=False),
    Column("created_at", Utc, nullable=False, comment="when it was said"),
    Column("expires_at", Utc),
    Column("source", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("importance", Float, nullable=False),
    Column("last_accessed_at", Utc),
    Column("uses", Integer, nullable=False, server_default="0"),
    Column("user_id", Text, nullable=False, comment="who said it"),
    Column("place", Text, nullable=False, comment="where: dm or the names joined by /"),
    Column("message_id", row_id, comment="its evidence"),
    Index("ix_memories_expires_at", "expires_at"),
    Index("ix_memories_foremost", "user_id", "importance", "created_at"),
)

memory_owners = Table(
    "memory_owners",
    metadata,
    Column("memory_id", row_id, ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True),
    Column("owner", Text, primary_key=True, comment="user:U, place:P or global"),
    Column("content_key", String(64), nullable=False, comment="of the normalised content"),
    Column("created_at", Utc, comment="the memory's, in whose order an owner's are listed"),
    Index("ix_memory_owners_owner", "owner", "content_key"),
    Index("ix_memory_owners_newest", "owner", "created_at", "memory_id"),
)

replacements = Table(
    "replacements",
    metadata,
    Column("old_id", row_id, primary_key=True),
    Column("owner", Text, primary_key=True, comment="for whom new took the place of old"),
    Column("new_id", row_id, primary_key=True, index=True, comment="may be purged, and this stay"),
    Column("lasts", Text, nullable=False, comment="while it holds, past its expiry or always"),
    Column("at", Utc, nullable=False),
    Column("reason", Text, nullable=False),
    ForeignKeyConstraint(
        ["old_id", "owner"], ["memory_owners.memory_id", "memory_owners.owner"], ondelete="CASCADE"
    ),
    sqlite_with_rowid=False,
)

memory_aliases = Table(
    "memory_aliases",
    metadata,
    Column("memory_id", row_id, primary_key=True),
    Column(
        "owner", Text, primary_key=True, index=True, comment="each of the memory's, as a search asks by it"
    ),
    Column("name", Text, primary_key=True, comment="the memory says that this name …"),
    Column("other", Text, primary_key=True, comment="… and this one are one person's"),
    ForeignKeyConstraint(
        ["memory_id", "owner"], ["memory_owners.memory_id", "memory_owners.owner"], ondelete="CASCADE"
    ),
)

memory_tags = Table(
    "memory_tags",
    metadata,
    Column("tag", Text, primary_key=True, comment="one of the memory's subjects"),
    Column("memory_id", row_id, ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True, index=True),
)

forgettings = Table(
    "forgettings",
    metadata,
    Column("id", row_id, primary_key=True),
    Column("person", Text, nullable=False, index=True, comment="whose act hides the rows"),
    Column("at", Utc, nullable=False),
    Column("until", Utc, index=True, comment="when the rows are deleted for good; NULL: never"),
    Column("why", Text, nullable=False, comment="forgotten, edited, private, erased or old"),
    Column("named", row_id, comment="the memory that was named"),
)

hidden = Table(
    "hidden",
    metadata,
    Column("row_id", Text, primary_key=True, comment="of a link: memory and owner"),
    Column("kind", Text, primary_key=True, comment="link, message, told, task, entry or summary"),
    Column(
        "forgetting_id",
        row_id,
        ForeignKey("forgettings.id", ondelete="CASCADE"),
        primary_key=True,
        comment="a row that any forgetting names is in no read",
    ),
    Index("ix_hidden_of_forgetting", "forgetting_id", "kind", "row_id"),
)

memory_updates = Table(
    "memory_updates",
    metadata,
    Column("id", row_id, primary_key=True),
    Column("user_id", Text, nullable=False, index=True),
    Column("old_id", row_id, nullable=False, index=True),
    Column("new_id", row_id, index=True),
    Column("reason", Text, nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("owners", JSON, nullable=False, comment="the owners for whom old gave way to new"),
)
