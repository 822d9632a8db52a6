"""Tables of messages, their ids on platforms, and summaries of conversations."""

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Identity, Index, Integer, Table, Text, text

from memory.sql.tables.columns import Utc, counter, metadata, row_id

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
    Column("seq", counter, Identity(), primary_key=True, comment="the order in which they came"),
    Column("id", row_id, nullable=False, unique=True),
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
    Column(
        "follows", row_id, comment="the message that it follows, where a client went back to an earlier one"
    ),
    Column("asks", JSON(none_as_null=True), comment="kinds and ids of what a reply asks whether to forget"),
    Index("ix_messages_conversation", "conversation_id", "seq"),
    Index("ix_messages_user", "user_id", "seq"),
    Index("ix_messages_place", "place", "seq"),
    Index(
        "ix_messages_replies",
        "user_id",
        "sent_at",
        sqlite_where=text("role = 'assistant'"),
        postgresql_where=text("role = 'assistant'"),
    ),
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
    Column("message_id", row_id, ForeignKey("messages.id", ondelete="CASCADE"), nullable=False, index=True),
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
    Column("id", row_id, primary_key=True, comment="of its summary in the index"),
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

deliveries = Table(
    "deliveries",
    metadata,
    Column("source", Text, primary_key=True, comment="discord, slack …"),
    Column("id", Text, primary_key=True, comment="what the platform calls the event"),
    Column("seen_at", Utc, nullable=False, index=True),
    Column("user_id", Text, comment="who wrote it, until it is answered, or while the next is there"),
    Column(
        "posts",
        JSON(none_as_null=True),
        comment="the ids of the reply's posts, where nothing of it is stored",
    ),
    Column("job", row_id, index=True, comment="what answers the message that it tells of"),
)
