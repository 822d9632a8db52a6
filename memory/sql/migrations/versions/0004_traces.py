"""Traces: what happened in every turn."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

MOMENT = sa.DateTime(timezone=True)
COUNTER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "traces",
        sa.Column("seq", COUNTER, sa.Identity(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False, comment="turn, or the kind of the work after it"),
        sa.Column("turn_id", sa.Text(), comment="of work after a turn: which turn"),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("written_at", MOMENT, nullable=False, comment="when it was last heard of"),
        sa.Column("took", sa.Float(), comment="seconds; NULL until it ends"),
        sa.Column("user_id", sa.Text()),
        sa.Column("place", sa.Text(), nullable=False, comment="the place's key; empty in private"),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("surface", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("process", sa.Text(), nullable=False, comment="host and process that recorded it"),
        sa.Column("said", sa.Text(), nullable=False, comment="its beginning"),
        sa.Column("reply", sa.Text(), nullable=False, comment="its beginning"),
        sa.Column("error", sa.Text()),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column(
            "tools", sa.Text(), nullable=False, comment="names between blanks, each failed one with a !"
        ),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.String(36), comment="what was said, in the transcript"),
        sa.PrimaryKeyConstraint("seq", name="pk_traces"),
        sa.UniqueConstraint("id", name="uq_traces_id"),
    )
    op.create_index("ix_traces_turn_id", "traces", ["turn_id"])
    op.create_index("ix_traces_started_at", "traces", ["started_at"])
    op.create_index("ix_traces_user", "traces", ["user_id", "seq"])
    op.create_index("ix_traces_place", "traces", ["place"])
    op.create_index("ix_traces_status", "traces", ["status", "seq"])
    op.create_table(
        "trace_bodies",
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="the tree of spans: JSON, deflated"),
        sa.PrimaryKeyConstraint("trace_id", name="pk_trace_bodies"),
    )
