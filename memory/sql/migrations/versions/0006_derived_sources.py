"""What derived texts rest on. Summaries that exist rest on everything that their owner may read."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

ID = sa.String(36)
MOMENT = sa.DateTime(timezone=True)

SAID_IN = """
    UPDATE context_entries SET message_id = COALESCE(
        (
            SELECT m.id FROM messages m
            WHERE m.user_id = context_entries.user_id AND m.place = context_entries.place
                AND m.role = 'user' AND m.sent_at <= context_entries.said_at
                AND lower(m.text) LIKE '%' || lower(context_entries.value) || '%'
            ORDER BY m.seq DESC LIMIT 1
        ),
        ''
    )
    WHERE value != '' AND field != 'memory_summary'
"""
"""An entry is taken from the last message with its words; without one it was set by hand …"""
NOT_KNOWN = """
    UPDATE context_entries SET message_id = NULL
    WHERE message_id = '' AND EXISTS (
        SELECT 1 FROM messages m
        WHERE m.user_id = context_entries.user_id AND m.place = context_entries.place
            AND m.sent_at = context_entries.said_at
    )
"""
"""… unless it bears the time of a message: then a model put it in other words."""


def upgrade() -> None:
    op.add_column(
        "messages",
        sa.Column("outdated_at", MOMENT, comment="a fact in it ended then: summaries leave it out"),
    )
    op.add_column(
        "active_conversations",
        sa.Column(
            "unsourced",
            sa.Integer(),
            server_default="0",
            nullable=False,
            comment="1: an older version wrote it, from facts that it did not record",
        ),
    )
    op.add_column(
        "active_conversations",
        sa.Column(
            "withheld",
            sa.Integer(),
            server_default="0",
            nullable=False,
            comment="1: removed, and to be written again from what still holds",
        ),
    )
    op.execute("UPDATE active_conversations SET unsourced = 1 WHERE summary != ''")
    op.add_column(
        "context_entries",
        sa.Column("message_id", ID, comment="in which it was said; empty: set by hand; NULL: not known"),
    )
    op.execute(SAID_IN)
    op.execute(NOT_KNOWN)
    op.create_table(
        "derived_sources",
        sa.Column(
            "text_id", ID, nullable=False, comment="a conversation's summary, or a person's of their facts"
        ),
        sa.Column("source_id", ID, nullable=False, comment="a memory or message that it rests on"),
        sa.PrimaryKeyConstraint("text_id", "source_id", name="pk_derived_sources"),
    )
    op.create_index("ix_derived_sources_source_id", "derived_sources", ["source_id"])
