"""Keys, deliveries that were seen, what is listened to where, which due times were announced, and what a
piece of work is about."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

ID = sa.String(36)
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    reminders()
    work()
    keys()
    surfaces()


def reminders() -> None:
    op.add_column(
        "tasks",
        sa.Column(
            "reminded",
            MOMENT,
            comment="the due time that was announced, or given up; another one is due again",
        ),
    )
    op.create_index("ix_tasks_due", "tasks", ["due"])


def work() -> None:
    op.add_column(
        "work", sa.Column("about", sa.Text(), comment="pieces of one kind about the same can be done as one")
    )
    op.create_index("ix_work_about", "work", ["about"])


def keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False, comment="user: acts for one; service: may name users"),
        sa.Column("user_id", sa.Text(), comment="for whom, of a user's key"),
        sa.Column(
            "admin",
            sa.Integer(),
            server_default="0",
            nullable=False,
            comment="1: may see figures and manage",
        ),
        sa.Column("digest", sa.String(64), nullable=False, comment="SHA-256 of the key; it is kept nowhere"),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("last_used_at", MOMENT),
        sa.Column("revoked_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("digest", name="uq_api_keys_digest"),
    )
    op.create_index("ix_api_keys_user_id", "api_keys", ["user_id"])


def surfaces() -> None:
    op.create_table(
        "deliveries",
        sa.Column("source", sa.Text(), nullable=False, comment="discord, slack …"),
        sa.Column("id", sa.Text(), nullable=False, comment="what the platform calls the event"),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("source", "id", name="pk_deliveries"),
    )
    op.create_index("ix_deliveries_seen_at", "deliveries", ["seen_at"])
    op.create_table(
        "places",
        sa.Column("place", sa.Text(), nullable=False, comment="the place's key"),
        sa.Column("listening", sa.Text(), nullable=False, comment="mentions, everything or nothing"),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("place", name="pk_places"),
    )
