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
    memories = sa.table("memories", sa.column("id"), sa.column("subjects", sa.JSON()))
    tags = sa.table("memory_tags", sa.column("memory_id"), sa.column("tag"))
    found = op.get_bind().execute(sa.select(memories)).all()
    pairs = {(id, tag): None for id, subjects in found for tag in map(_storable, subjects) if tag}
    if pairs:
        op.bulk_insert(tags, [{"memory_id": id, "tag": tag} for id, tag in pairs])


def _storable(tag: str) -> str:
    return tag.replace("\0", "").encode(errors="replace").decode()[:200]
