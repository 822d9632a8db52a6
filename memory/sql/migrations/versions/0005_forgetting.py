"""Forgetting: which messages a memory rests on, forgotten messages, and what an undo brings back."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("messages", sa.Column("forgotten_at", MOMENT, comment="its text was emptied then"))
    op.create_table(
        "memory_sources",
        sa.Column("memory_id", sa.String(36), nullable=False),
        sa.Column("message_id", sa.String(36), nullable=False, comment="a message that stated it"),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.id"], name="fk_memory_sources_memory_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("memory_id", "message_id", name="pk_memory_sources"),
    )
    op.create_index("ix_memory_sources_message_id", "memory_sources", ["message_id"])
    op.execute(
        "INSERT INTO memory_sources (memory_id, message_id) "
        "SELECT id, message_id FROM memories WHERE message_id IS NOT NULL"
    )
    op.create_table(
        "forgotten",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False, comment="who had it forgotten"),
        sa.Column("forgotten_at", MOMENT, nullable=False),
        sa.Column("until", MOMENT, nullable=False, comment="when the undo ends and this row is deleted"),
        sa.Column(
            "payload", sa.JSON(), nullable=False, comment="the rows that were taken, for the undo alone"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_forgotten"),
    )
    op.create_index("ix_forgotten_user_id", "forgotten", ["user_id"])
    op.create_index("ix_forgotten_until", "forgotten", ["until"])
