"""The sessions that memories were given to, and the calls of a client's tools that wait for their results."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0020"


def upgrade() -> None:
    comment = "calls of a client's tools and their results, while it is not answered"
    op.add_column("messages", sa.Column("client_items", sa.JSON(), comment=comment))
    waiting = sa.text("client_items IS NOT NULL")
    op.create_index(
        "ix_messages_waiting", "messages", ["user_id"], sqlite_where=waiting, postgresql_where=waiting
    )
    op.create_table(
        "session_memories",
        sa.Column(
            "memory_id", sa.String(36), sa.ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column(
            "conversation_id",
            sa.Text(),
            sa.ForeignKey("conversations.id", ondelete="CASCADE"),
            primary_key=True,
            comment="a session that it was given to, beside those in which it was said",
        ),
    )
    op.create_index("ix_session_memories_conversation_id", "session_memories", ["conversation_id"])
