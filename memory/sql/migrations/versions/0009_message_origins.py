"""Which messages of a chat platform a stored message came from."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "message_origins",
        sa.Column("origin", sa.Text(), nullable=False, comment="the platform's id: discord:1234"),
        sa.Column("message_id", sa.String(36), nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name="fk_message_origins_message_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("origin", name="pk_message_origins"),
    )
    op.create_index("ix_message_origins_message_id", "message_origins", ["message_id"])
