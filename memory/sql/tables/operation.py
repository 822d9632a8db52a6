"""Tables of API keys, traces, erasures, figures and jobs."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    Identity,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
)

from memory.sql.tables.columns import Utc, counter, metadata, row_id

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", row_id, primary_key=True),
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

traces = Table(
    "traces",
    metadata,
    Column("seq", counter, Identity(), primary_key=True),
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
    Column("message_id", row_id, comment="what was said, in the transcript"),
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
    Column("trace", counter, primary_key=True, autoincrement=False, comment="traces.seq"),
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
    Column("name", Text, primary_key=True, comment="what: add, replace, searches, consolidations …"),
    Column("value", BigInteger, nullable=False, comment="how often"),
)

work = Table(
    "work",
    metadata,
    Column("seq", counter, Identity(), primary_key=True),
    Column("id", row_id, nullable=False, unique=True),
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
