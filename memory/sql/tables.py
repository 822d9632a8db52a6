"""The tables. SQL is the source of truth; the index is rebuilt from it."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Utc(TypeDecorator[datetime]):
    """An aware UTC datetime. SQLite stores no zone, so it is removed on writing and added on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone; Hachi's times are aware UTC")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


_id = String(36)
_counter = BigInteger().with_variant(Integer, "sqlite")

users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("created_at", Utc, nullable=False),
    Column("import_key", Text, comment="random; makes the ids of imported messages that have none"),
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_id", Text, comment="whose, for a private one"),
    Column("place", Text, nullable=False, comment="the place's key; empty in private"),
    Column("created_at", Utc, nullable=False),
)

messages = Table(
    "messages",
    metadata,
    Column("seq", _counter, Identity(), primary_key=True, comment="the order in which they came"),
    Column("id", _id, nullable=False, unique=True),
    Column("conversation_id", Text, nullable=False),
    Column("user_id", Text, nullable=False, comment="who spoke, or was answered"),
    Column("place", Text, nullable=False, comment="the place's key; empty in private"),
    Column("role", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("sent_at", Utc, nullable=False),
    Column(
        "client_items",
        JSON(none_as_null=True),
        comment="calls of a client's tools and their results, while it is not answered",
    ),
    Column("follows", _id, comment="the message that it follows, where a client went back to an earlier one"),
    Index("ix_messages_conversation", "conversation_id", "seq"),
    Index("ix_messages_user", "user_id", "seq"),
    Index("ix_messages_place", "place", "seq"),
    Index(
        "ix_messages_waiting",
        "user_id",
        sqlite_where=text("client_items IS NOT NULL"),
        postgresql_where=text("client_items IS NOT NULL"),
    ),
)

message_origins = Table(
    "message_origins",
    metadata,
    Column("origin", Text, primary_key=True, comment="the platform's id: discord:1234"),
    Column("message_id", _id, ForeignKey("messages.id", ondelete="CASCADE"), nullable=False, index=True),
    Column(
        "posted",
        Integer,
        nullable=False,
        server_default="0",
        comment="1: Hachi posted it there, as the reply or, where none is stored, about the question",
    ),
)

speakers = Table(
    "speakers",
    metadata,
    Column("owner", Text, primary_key=True, comment="whose transcript: user:U or place:P"),
    Column("author", Text, primary_key=True, comment="a name that messages in it bear"),
)

active_conversations = Table(
    "active_conversations",
    metadata,
    Column("id", _id, primary_key=True, comment="of its summary in the index"),
    Column("conversation_id", Text, nullable=False),
    Column("owner", Text, nullable=False, comment="who may read it: place:P, or user:U in private"),
    Column("mode", Text, comment="what it is for: companion, study, work"),
    Column("summary", Text, nullable=False, server_default=""),
    Column("covered", BigInteger, nullable=False, server_default="0", comment="messages.seq it reaches to"),
    Column("updated_at", Utc, nullable=False),
    Column("revision", Integer, nullable=False, server_default="0", comment="grows with the summary"),
    Column(
        "withheld",
        Integer,
        nullable=False,
        server_default="0",
        comment="1: removed, and to be written again from what still holds",
    ),
    Index("uq_active_conversations", "conversation_id", "owner", unique=True),
    Index("ix_active_conversations_owner", "owner", "updated_at"),
)

context_entries = Table(
    "context_entries",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("place", Text, primary_key=True, comment="where it was told; the place's key, empty in private"),
    Column("field", Text, primary_key=True, comment="of the user context: profile.name, preferences.tone …"),
    Column("item", Text, primary_key=True, comment="of a list: which one; empty where there is one value"),
    Column("value", Text, nullable=False),
    Column("id", _id, nullable=False, unique=True, comment="made of the key; it rests on messages by it"),
    Column("said_at", Utc, nullable=False, comment="only what was said later takes its place"),
)

rests_on = Table(
    "rests_on",
    metadata,
    Column("derived_id", _id, primary_key=True, comment="a fact, reply, summary, task or entry of a profile"),
    Column("source_id", _id, primary_key=True, index=True, comment="a message, memory, summary or task"),
    Column("how", Text, primary_key=True, comment="stated, answered, found or covered"),
)

memories = Table(
    "memories",
    metadata,
    Column("id", _id, primary_key=True),
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
    Column("message_id", _id, comment="its evidence"),
    Index("ix_memories_expires_at", "expires_at"),
    Index("ix_memories_foremost", "user_id", "importance", "created_at"),
)

memory_owners = Table(
    "memory_owners",
    metadata,
    Column("memory_id", _id, ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True),
    Column("owner", Text, primary_key=True, comment="user:U, place:P or global"),
    Column("content_key", String(64), nullable=False, index=True, comment="of the normalised content"),
    Column(
        "superseded_by",
        _id,
        index=True,
        comment="NULL: it holds for this owner; itself: it would, and is hidden",
    ),
    Column("superseded_at", Utc, comment="NULL: it never held, or was taken back, and is not brought back"),
    Column("reason", Text),
    # One active memory with the same words per owner, so that parallel turns store a fact once.
    Index(
        "uq_memory_owners_active",
        "owner",
        "content_key",
        unique=True,
        sqlite_where=text("superseded_by IS NULL"),
        postgresql_where=text("superseded_by IS NULL"),
    ),
)

memory_aliases = Table(
    "memory_aliases",
    metadata,
    Column("memory_id", _id, primary_key=True),
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
    Column("memory_id", _id, ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True, index=True),
)

session_memories = Table(
    "session_memories",
    metadata,
    Column("memory_id", _id, ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True),
    Column(
        "conversation_id",
        Text,
        ForeignKey("conversations.id", ondelete="CASCADE"),
        primary_key=True,
        index=True,
        comment="a session that it was given to, beside those in which it was said",
    ),
)

forgettings = Table(
    "forgettings",
    metadata,
    Column("id", _id, primary_key=True),
    Column("person", Text, nullable=False, index=True, comment="whose act hides the rows"),
    Column("at", Utc, nullable=False),
    Column("until", Utc, index=True, comment="when the rows are deleted for good; NULL: never"),
    Column("why", Text, nullable=False, comment="forgotten, edited, private, erased or old"),
    Column("named", _id, comment="the memory that was named"),
)

hidden = Table(
    "hidden",
    metadata,
    Column(
        "row_id", Text, primary_key=True, comment="of a link: memory and owner; of a replacement: both too"
    ),
    Column("kind", Text, primary_key=True, comment="link, replaced, message, told, task or entry"),
    Column(
        "forgetting_id",
        _id,
        ForeignKey("forgettings.id", ondelete="CASCADE"),
        primary_key=True,
        index=True,
        comment="a row that any forgetting names is in no read",
    ),
)

memory_updates = Table(
    "memory_updates",
    metadata,
    Column("id", _id, primary_key=True),
    Column("user_id", Text, nullable=False, index=True),
    Column("old_id", _id, nullable=False, index=True),
    Column("new_id", _id, index=True),
    Column("reason", Text, nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("owners", JSON, nullable=False, comment="the owners for whom old gave way to new"),
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", _id, primary_key=True),
    Column("user_id", Text, nullable=False, index=True),
    Column(
        "place", Text, nullable=False, comment="where it was asked for; the place's key, empty in private"
    ),
    Column("description", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("due", Utc),
    Column("created_at", Utc, nullable=False),
    Column("last_updated", Utc, nullable=False),
    Column("reminded", Utc, comment="the due time that was announced, or given up; another one is due again"),
    Index("ix_tasks_due", "due"),
)

knowledge_documents = Table(
    "knowledge_documents",
    metadata,
    Column("id", _id, primary_key=True),
    Column("owner", Text, nullable=False, comment="who may read it: user:U, place:P or global"),
    Column("path", Text, nullable=False, comment="where it was read from"),
    Column("title", Text, nullable=False),
    Column("digest", String(64), nullable=False, comment="SHA-256 of the file, and how it was cut"),
    Column("added_at", Utc, nullable=False),
    Index("uq_knowledge_documents", "owner", "path", unique=True),
)

knowledge_chunks = Table(
    "knowledge_chunks",
    metadata,
    Column("id", _id, primary_key=True),
    Column("document_id", _id, ForeignKey("knowledge_documents.id", ondelete="CASCADE"), nullable=False),
    Column("chunk_index", Integer, nullable=False, comment="from 0, in the document's order"),
    Column("heading", Text, nullable=False, comment="the headings it stands under, outermost first"),
    Column("text", Text, nullable=False),
    Index("uq_knowledge_chunks", "document_id", "chunk_index", unique=True),
)

vectors = Table(
    "vectors",
    metadata,
    Column("id", _id, primary_key=True, comment="of a memory, message, summary or chunk"),
    Column("lane", Text, primary_key=True, comment="dense: of its text; window_dense: of its window"),
    Column("embedder", Text, primary_key=True),
    Column("digest", LargeBinary, nullable=False, comment="of the text that it was made of"),
    Column("vector", LargeBinary, nullable=False, comment="numbers of two bytes"),
)

changes = Table(
    "changes",
    metadata,
    Column("seq", _counter, Identity(), primary_key=True),
    Column("tx", BigInteger, nullable=False, comment="PostgreSQL's number of the transaction; 0 on SQLite"),
    Column("kind", Text, nullable=False, comment="memory, message, summary or chunk"),
    Column("id", _id, nullable=False, comment="of a row that an index is to show otherwise, or no more"),
    Index("ix_changes_position", "tx", "seq"),
)

index_positions = Table(
    "index_positions",
    metadata,
    Column("name", Text, primary_key=True, comment="a collection on a server; cut: where the log begins"),
    Column("tx", BigInteger, comment="with seq: up to where it has followed the log; NULL: to be filled"),
    Column("seq", BigInteger),
    Column("holder", Text, comment="who makes it follow now"),
    Column("until", Utc, comment="when another one may"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", _id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False, comment="user: acts for one; service: may name users"),
    Column("user_id", Text, index=True, comment="for whom, of a user's key"),
    Column("admin", Integer, nullable=False, server_default="0", comment="1: may see figures and manage"),
    Column(
        "digest", String(64), nullable=False, unique=True, comment="SHA-256 of the key; it is kept nowhere"
    ),
    Column("created_at", Utc, nullable=False),
    Column("last_used_at", Utc),
    Column("revoked_at", Utc),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("source", Text, primary_key=True, comment="discord, slack …"),
    Column("id", Text, primary_key=True, comment="what the platform calls the event"),
    Column("seen_at", Utc, nullable=False, index=True),
    Column("user_id", Text, comment="who wrote it, while one of the next two is there"),
    Column("message", JSON(none_as_null=True), comment="as the platform told it, until it is answered"),
    Column(
        "posts",
        JSON(none_as_null=True),
        comment="the ids of the reply's posts, where nothing of it is stored",
    ),
    Column("job", _id, index=True, comment="what answers the message that it tells of"),
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

traces = Table(
    "traces",
    metadata,
    Column("seq", _counter, Identity(), primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False, comment="turn, or the kind of the work after it"),
    Column("turn_id", Text, index=True, comment="of work after a turn: which turn"),
    Column("status", Text, nullable=False),
    Column("started_at", Utc, nullable=False),
    Column("written_at", Utc, nullable=False, comment="when it was last heard of"),
    Column("took", Float, comment="seconds; NULL until it ends"),
    Column("user_id", Text),
    Column("place", Text, nullable=False, comment="the place's key; empty in private"),
    Column("conversation_id", Text, nullable=False),
    Column("surface", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("process", Text, nullable=False, comment="host and process that recorded it"),
    Column("said", Text, nullable=False, comment="its beginning"),
    Column("reply", Text, nullable=False, comment="its beginning"),
    Column("error", Text),
    Column("calls", Integer, nullable=False),
    Column("tools", Text, nullable=False, comment="names between blanks, each failed one with a !"),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("message_id", _id, comment="what was said, in the transcript"),
    Column("first", Float, comment="seconds to the first letter that the person saw; NULL: not streamed"),
    Column(
        "retried", Integer, nullable=False, server_default="0", comment="model calls that were tried again"
    ),
    Index("ix_traces_started_at", "started_at"),
    Index("ix_traces_user", "user_id", "seq"),
    Index("ix_traces_place", "place"),
    Index("ix_traces_status", "status", "seq"),
)

trace_bodies = Table(
    "trace_bodies",
    metadata,
    Column("trace_id", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False, comment="the tree of spans: JSON, deflated"),
)

trace_rows = Table(
    "trace_rows",
    metadata,
    Column("trace", _counter, primary_key=True, autoincrement=False, comment="traces.seq"),
    Column("row_id", LargeBinary(16), primary_key=True, index=True, comment="a row whose text it shows"),
    sqlite_with_rowid=False,
)

erasures = Table(
    "erasures",
    metadata,
    Column("user_id", Text, primary_key=True, comment="who is being erased; deleted at the end"),
    Column("begun_at", Utc, nullable=False),
    Column("places", JSON, nullable=False, comment="the keys of the places where they spoke"),
    Column("removed", JSON, nullable=False, comment="how many items were deleted, by kind"),
)

figures = Table(
    "figures",
    metadata,
    Column("user_id", Text, primary_key=True, comment="for whom it happened; empty for nobody"),
    Column("name", Text, primary_key=True, comment="what: add, replace, searches, extractions …"),
    Column("value", BigInteger, nullable=False, comment="how often"),
)

work = Table(
    "work",
    metadata,
    Column("seq", _counter, Identity(), primary_key=True),
    Column("id", _id, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("user_id", Text, nullable=False, comment="whose data the payload holds"),
    Column("payload", JSON, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0", comment="that failed"),
    Column("due_at", Utc, nullable=False, comment="not before; while claimed, when the claim ends"),
    Column("last_error", Text),
    Column("created_at", Utc, nullable=False),
    Column("about", Text, comment="jobs of one kind about the same can be done as one"),
    Column("claimed_by", Text, comment="the process that works on it"),
    Column("crashes", Integer, nullable=False, server_default="0", comment="processes that ended in it"),
    Index("ix_work_due_at", "due_at"),
    Index("ix_work_about", "about"),
)
