"""Keys for ids of imported messages, where a message states what ended, and an index of facts by words."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0014"


def upgrade() -> None:
    key = sa.Column(
        "import_key", sa.Text(), comment="random; makes the ids of imported messages that have none"
    )
    op.add_column("users", key)
    ended = sa.Column(
        "ended", sa.JSON(), comment="where it states such facts, as [from, to]; NULL: not known"
    )
    op.add_column("messages", ended)
    op.create_index("ix_memory_owners_content_key", "memory_owners", ["content_key"])
