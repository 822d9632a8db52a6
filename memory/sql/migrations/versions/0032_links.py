"""Store which accounts are one person's, and the codes that link them."""

import sqlalchemy as sa
from alembic import op

from memory.sql.tables.columns import Utc

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    account = sa.Column("user_id", sa.Text, primary_key=True)
    person = sa.Column("person", sa.Text, nullable=False)
    op.create_table("links", account, person, sa.Column("since", Utc, nullable=False))
    op.create_index("ix_links_person", "links", ["person"])
    op.create_table(
        "link_codes",
        sa.Column("user_id", sa.Text, primary_key=True),
        sa.Column("digest", sa.Text, unique=True),
        sa.Column("given_at", Utc),
        sa.Column("wrong", sa.Integer, nullable=False),
        sa.Column("wrong_since", Utc),
    )
