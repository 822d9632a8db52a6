"""Erasures that go on after a crash, and figures of what happened."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "erasures",
        sa.Column("user_id", sa.Text(), nullable=False, comment="who is being erased; deleted at the end"),
        sa.Column("begun_at", MOMENT, nullable=False),
        sa.Column("places", sa.JSON(), nullable=False, comment="the keys of the places where they spoke"),
        sa.Column("sought", sa.JSON(), nullable=False, comment="texts that the verification searches for"),
        sa.Column("removed", sa.JSON(), nullable=False, comment="how many items were deleted, by kind"),
        sa.PrimaryKeyConstraint("user_id", name="pk_erasures"),
    )
    op.create_table(
        "erasure_items",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False, comment="message, memory, summary, chunk or trace"),
        sa.Column("id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["erasures.user_id"], name="fk_erasure_items_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "kind", "id", name="pk_erasure_items"),
    )
    op.create_table(
        "figures",
        sa.Column("user_id", sa.Text(), nullable=False, comment="for whom it happened; empty for nobody"),
        sa.Column("name", sa.Text(), nullable=False, comment="what: add, replace, searches, extractions …"),
        sa.Column("value", sa.BigInteger(), nullable=False, comment="how often"),
        sa.PrimaryKeyConstraint("user_id", "name", name="pk_figures"),
    )
