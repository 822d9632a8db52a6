"""The summary of each conversation, what is known of a person, and documents."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ID = sa.String(36)
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    active_conversations()
    context_entries()
    op.create_index("ix_memories_foremost", "memories", ["user_id", "importance", "created_at"])
    knowledge()


def active_conversations() -> None:
    op.create_table(
        "active_conversations",
        sa.Column("id", ID, nullable=False, comment="of its summary in the index"),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column(
            "owner", sa.Text(), nullable=False, comment="who may read it: place:P, or user:U in private"
        ),
        sa.Column("mode", sa.Text(), comment="what it is for: companion, study, work"),
        sa.Column("summary", sa.Text(), server_default="", nullable=False),
        sa.Column(
            "covered",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="messages.seq it reaches to",
        ),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("indexed_under", sa.Text()),
        sa.Column(
            "revision", sa.Integer(), server_default="0", nullable=False, comment="grows with the summary"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_active_conversations"),
    )
    op.create_index(
        "uq_active_conversations", "active_conversations", ["conversation_id", "owner"], unique=True
    )
    op.create_index("ix_active_conversations_unindexed", "active_conversations", ["indexed_under"])
    op.create_index("ix_active_conversations_owner", "active_conversations", ["owner", "updated_at"])


def context_entries() -> None:
    op.create_table(
        "context_entries",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column(
            "place", sa.Text(), nullable=False, comment="where it was told; the place's key, empty in private"
        ),
        sa.Column(
            "field",
            sa.Text(),
            nullable=False,
            comment="of the user context: profile.name, preferences.tone …",
        ),
        sa.Column(
            "item", sa.Text(), nullable=False, comment="of a list: which one; empty where there is one value"
        ),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("said_at", MOMENT, nullable=False, comment="only what was said later takes its place"),
        sa.PrimaryKeyConstraint("user_id", "place", "field", "item", name="pk_context_entries"),
    )


def knowledge() -> None:
    op.create_table(
        "knowledge_documents",
        sa.Column("id", ID, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False, comment="who may read it: user:U, place:P or global"),
        sa.Column("path", sa.Text(), nullable=False, comment="where it was read from"),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False, comment="SHA-256 of the file, and how it was cut"),
        sa.Column("added_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_knowledge_documents"),
    )
    op.create_index("uq_knowledge_documents", "knowledge_documents", ["owner", "path"], unique=True)
    op.create_table(
        "knowledge_chunks",
        sa.Column("id", ID, nullable=False),
        sa.Column("document_id", ID, nullable=False),
        sa.Column("chunk_index", sa.Integer(), nullable=False, comment="from 0, in the document's order"),
        sa.Column(
            "heading", sa.Text(), nullable=False, comment="the headings it stands under, outermost first"
        ),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("indexed_under", sa.Text()),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["knowledge_documents.id"],
            name="fk_knowledge_chunks_document_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_knowledge_chunks"),
    )
    op.create_index("uq_knowledge_chunks", "knowledge_chunks", ["document_id", "chunk_index"], unique=True)
    op.create_index("ix_knowledge_chunks_unindexed", "knowledge_chunks", ["indexed_under"])
