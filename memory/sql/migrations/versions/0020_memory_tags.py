"""An index of memories by tag, for the facts that others told of a person."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.create_table(
        "memory_tags",
        sa.Column("tag", sa.Text(), comment="one of the memory's subjects"),
        sa.Column("memory_id", sa.String(36)),
        sa.PrimaryKeyConstraint("tag", "memory_id", name="pk_memory_tags"),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.id"], ondelete="CASCADE", name="fk_memory_tags_memory_id"
        ),
    )
    op.create_index("ix_memory_tags_memory_id", "memory_tags", ["memory_id"])
    each = "json_array_elements_text(memories.subjects) AS each(value)"
    if op.get_bind().dialect.name == "sqlite":
        each = "json_each(memories.subjects) AS each"
    op.execute(f"INSERT INTO memory_tags SELECT DISTINCT each.value, memories.id FROM memories, {each}")
