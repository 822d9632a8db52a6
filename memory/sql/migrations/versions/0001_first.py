"""The first shape. Written out, so that it stays what it was while `memory.sql.tables` moves on."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ID = sa.String(36)
MOMENT = sa.DateTime(timezone=True)
COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    people_and_places()
    transcript()
    memories()
    audit()
    tasks()
    work()


def people_and_places() -> None:
    op.create_table(
        "users",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
    )
    op.create_table(
        "conversations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), comment="whose, for a private one"),
        sa.Column("place", sa.Text(), nullable=False, comment="the place's key; empty in private"),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_conversations"),
    )


def transcript() -> None:
    op.create_table(
        "messages",
        sa.Column("seq", COUNTER, sa.Identity(), nullable=False, comment="the order in which they came"),
        sa.Column("id", ID, nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False, comment="who spoke, or was answered"),
        sa.Column("place", sa.Text(), nullable=False, comment="the place's key; empty in private"),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("sent_at", MOMENT, nullable=False),
        sa.Column("indexed_under", sa.Text()),
        sa.PrimaryKeyConstraint("seq", name="pk_messages"),
        sa.UniqueConstraint("id", name="uq_messages_id"),
    )
    op.create_index("ix_messages_conversation", "messages", ["conversation_id", "seq"])
    op.create_index("ix_messages_user", "messages", ["user_id", "seq"])
    op.create_index("ix_messages_unindexed", "messages", ["indexed_under", "seq"])
    op.create_index("ix_messages_place", "messages", ["place", "seq"])
    op.create_table(
        "speakers",
        sa.Column("owner", sa.Text(), nullable=False, comment="whose transcript: user:U or place:P"),
        sa.Column("author", sa.Text(), nullable=False, comment="a name that messages in it bear"),
        sa.PrimaryKeyConstraint("owner", "author", name="pk_speakers"),
    )


def memories() -> None:
    op.create_table(
        "memories",
        sa.Column("id", ID, nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("subjects", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False, comment="when it was said"),
        sa.Column("expires_at", MOMENT),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("importance", sa.Float(), nullable=False),
        sa.Column("last_accessed_at", MOMENT),
        sa.Column("uses", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("user_id", sa.Text(), nullable=False, comment="who said it"),
        sa.Column("place", sa.Text(), nullable=False, comment="where: dm or the names joined by /"),
        sa.Column("message_id", ID, comment="its evidence"),
        sa.Column("indexed_under", sa.Text()),
        sa.Column(
            "revision",
            sa.Integer(),
            nullable=False,
            server_default="0",
            comment="grows with what the index shows",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_memories"),
    )
    op.create_index("ix_memories_expires_at", "memories", ["expires_at"])
    op.create_index("ix_memories_unindexed", "memories", ["indexed_under"])
    op.create_table(
        "memory_owners",
        sa.Column("memory_id", ID, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False, comment="user:U, place:P or global"),
        sa.Column("content_key", sa.String(64), nullable=False, comment="of the normalised content"),
        sa.Column(
            "superseded",
            sa.Integer(),
            nullable=False,
            server_default="0",
            comment="1: replaced for this owner",
        ),
        sa.PrimaryKeyConstraint("memory_id", "owner", name="pk_memory_owners"),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.id"], name="fk_memory_owners_memory_id", ondelete="CASCADE"
        ),
    )
    op.create_index(
        "uq_memory_owners_active",
        "memory_owners",
        ["owner", "content_key"],
        unique=True,
        sqlite_where=sa.text("superseded = 0"),
        postgresql_where=sa.text("superseded = 0"),
    )
    op.create_table(
        "memory_aliases",
        sa.Column("memory_id", ID, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False, comment="each of the memory's, as a search asks by it"),
        sa.Column("name", sa.Text(), nullable=False, comment="the memory says that this name …"),
        sa.Column("other", sa.Text(), nullable=False, comment="… and this one are one person's"),
        sa.PrimaryKeyConstraint("memory_id", "owner", "name", "other", name="pk_memory_aliases"),
        sa.ForeignKeyConstraint(
            ["memory_id", "owner"],
            ["memory_owners.memory_id", "memory_owners.owner"],
            name="fk_memory_aliases_memory_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_memory_aliases_owner", "memory_aliases", ["owner"])


def audit() -> None:
    op.create_table(
        "memory_updates",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("old_id", ID, nullable=False),
        sa.Column("new_id", ID),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("owners", sa.JSON(), nullable=False, comment="the owners for whom old gave way to new"),
        sa.PrimaryKeyConstraint("id", name="pk_memory_updates"),
    )
    for column in ("user_id", "old_id", "new_id"):
        op.create_index(f"ix_memory_updates_{column}", "memory_updates", [column])


def tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column(
            "place",
            sa.Text(),
            nullable=False,
            comment="where it was asked for; the place's key, empty in private",
        ),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("due", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("last_updated", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
    )
    op.create_index("ix_tasks_user_id", "tasks", ["user_id"])


def work() -> None:
    op.create_table(
        "work",
        sa.Column("seq", COUNTER, sa.Identity(), nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False, comment="whose data the payload holds"),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("due_at", MOMENT, nullable=False, comment="not before; while claimed, when the claim ends"),
        sa.Column("last_error", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_work"),
        sa.UniqueConstraint("id", name="uq_work_id"),
    )
    op.create_index("ix_work_due_at", "work", ["due_at"])
