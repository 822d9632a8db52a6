"""Rename the stored work after turns to "consolidation"."""

from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    for table in ("work", "traces"):
        op.execute(f"UPDATE {table} SET kind = 'consolidate' WHERE kind = 'look_back'")  # noqa: S608
    op.execute("UPDATE figures SET name = 'consolidations' WHERE name = 'extractions'")
    op.execute(
        "UPDATE figures SET name = replace(name, 'upkeep', 'consolidation') WHERE name LIKE 'upkeep calls %'"
    )
