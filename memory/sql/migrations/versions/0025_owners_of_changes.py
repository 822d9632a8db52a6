"""Log changes by owner, and list the rows that an index on a server has to add or remove."""

from alembic import op

from memory.sql.tables import changes, index_marks, index_todo

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    for name in ("index_positions", "changes", "index_todo", "index_marks"):
        op.execute(f"DROP TABLE IF EXISTS {name}")
    for table in (changes, index_todo, index_marks):
        table.create(op.get_bind())
