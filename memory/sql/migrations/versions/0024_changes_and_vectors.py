"""One log of changes that every index follows, and the vectors beside the rows."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

_INDEXED = ("messages", "active_conversations", "memories", "knowledge_chunks")


def upgrade() -> None:
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    counter = sa.Integer() if on_sqlite else sa.BigInteger()
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "vectors",
        sa.Column("id", sa.String(36), primary_key=True, comment="of a memory, message, summary or chunk"),
        sa.Column(
            "lane", sa.Text(), primary_key=True, comment="dense: of its text; window_dense: of its window"
        ),
        sa.Column("embedder", sa.Text(), primary_key=True),
        sa.Column("digest", sa.LargeBinary(), nullable=False, comment="of the text that it was made of"),
        sa.Column("vector", sa.LargeBinary(), nullable=False, comment="numbers of two bytes"),
    )
    op.create_table(
        "changes",
        sa.Column("seq", counter, sa.Identity(), primary_key=True),
        sa.Column(
            "tx",
            sa.BigInteger(),
            nullable=False,
            comment="PostgreSQL's number of the transaction; 0 on SQLite",
        ),
        sa.Column("kind", sa.Text(), nullable=False, comment="memory, message, summary or chunk"),
        sa.Column(
            "id",
            sa.String(36),
            nullable=False,
            comment="of a row that an index is to show otherwise, or no more",
        ),
    )
    op.create_index("ix_changes_position", "changes", ["tx", "seq"])
    op.create_table(
        "index_positions",
        sa.Column(
            "name", sa.Text(), primary_key=True, comment="a collection on a server; cut: where the log begins"
        ),
        sa.Column(
            "tx",
            sa.BigInteger(),
            comment="with seq: up to where it has followed the log; NULL: to be filled",
        ),
        sa.Column("seq", sa.BigInteger()),
        sa.Column("holder", sa.Text(), comment="who makes it follow now"),
        sa.Column("until", moment, comment="when another one may"),
    )
    for table in _INDEXED:
        op.drop_index(f"ix_{table}_unindexed", table)
        op.drop_column(table, "indexed_under")
    op.drop_column("memories", "revision")
    op.execute("DELETE FROM work WHERE kind = 'unindex'")
    op.execute("DELETE FROM knowledge_chunks WHERE text = ''")  # removed ones that waited to leave the index
    op.execute("DELETE FROM knowledge_documents WHERE owner = ''")
