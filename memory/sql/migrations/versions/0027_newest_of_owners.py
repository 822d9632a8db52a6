"""Copy memories' times to their links, so that a list reads only the rows it shows. Drop an unused table."""

import sqlalchemy as sa
from alembic import op

from memory.sql.tables.columns import Utc

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    comment = "the memory's, in whose order an owner's are listed"
    op.add_column("memory_owners", sa.Column("created_at", Utc, comment=comment))
    op.execute(
        "UPDATE memory_owners SET created_at = "
        "(SELECT created_at FROM memories WHERE memories.id = memory_owners.memory_id)"
    )
    op.create_index("ix_memory_owners_newest", "memory_owners", ["owner", "created_at", "memory_id"])
    op.drop_table("session_memories")
