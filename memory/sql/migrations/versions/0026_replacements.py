"""Store replacements in a table of their own, from which active links are computed."""

import sqlalchemy as sa
from alembic import op

from memory.sql.tables.columns import Utc

revision = "0026"
down_revision = "0025"

_LASTS = """
    CASE WHEN link.superseded_at IS NULL THEN 'always' WHEN link.reason = 'corrected on purpose'
    THEN 'past its expiry' ELSE 'while it holds' END,
    coalesce(link.superseded_at, memories.created_at), coalesce(link.reason, '')
"""
_REPLACED = f"""
    INSERT INTO replacements (old_id, new_id, owner, lasts, at, reason)
    WITH RECURSIVE steps (old_id, new_id, owner, lasts, at, reason) AS (
        SELECT link.memory_id, link.superseded_by, link.owner, {_LASTS}
        FROM memory_owners AS link JOIN memories ON memories.id = link.memory_id
        WHERE link.superseded_by <> link.memory_id
        UNION SELECT link.memory_id, substr(hidden.row_id, 38, 36), link.owner, {_LASTS}
        FROM hidden JOIN memory_owners AS link
            ON link.memory_id = substr(hidden.row_id, 1, 36) AND link.owner = substr(hidden.row_id, 75)
        JOIN memories ON memories.id = link.memory_id
        WHERE hidden.kind = 'replaced'
    ), chain (old_id, new_id, owner, lasts, at, reason) AS (
        SELECT * FROM steps
        UNION SELECT chain.old_id, steps.new_id, chain.owner, steps.lasts, steps.at, steps.reason
        FROM chain JOIN steps ON steps.old_id = chain.new_id AND steps.owner = chain.owner
    )
    SELECT * FROM chain WHERE old_id <> new_id ON CONFLICT DO NOTHING
"""
_TOLD_AGAIN = """
    INSERT INTO replacements (old_id, new_id, owner, lasts, at, reason)
    SELECT older.memory_id, newer.memory_id, newer.owner, 'while it holds', memories.created_at, 'told again'
    FROM memory_owners AS newer JOIN memory_owners AS older
        ON older.owner = newer.owner AND older.content_key = newer.content_key
    JOIN memories ON memories.id = newer.memory_id
    WHERE newer.superseded_by IS NULL AND older.superseded_by IS NOT NULL ON CONFLICT DO NOTHING
"""


def upgrade() -> None:
    text = sa.Text
    op.create_table(
        "replacements",
        sa.Column("old_id", sa.String(36), primary_key=True, nullable=False),
        sa.Column(
            "owner", text, primary_key=True, nullable=False, comment="for whom new took the place of old"
        ),
        sa.Column(
            "new_id", sa.String(36), primary_key=True, nullable=False, comment="may be purged, and this stay"
        ),
        sa.Column("lasts", text, nullable=False, comment="while it holds, past its expiry or always"),
        sa.Column("at", Utc, nullable=False),
        sa.Column("reason", text, nullable=False),
        sa.ForeignKeyConstraint(
            ["old_id", "owner"], ["memory_owners.memory_id", "memory_owners.owner"], ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_replacements_new_id", "replacements", ["new_id"])
    for statement in (_REPLACED, _TOLD_AGAIN, "DELETE FROM hidden WHERE kind = 'replaced'"):
        op.execute(statement)
    for index in (
        "ix_memory_owners_content_key",
        "ix_memory_owners_superseded_by",
        "uq_memory_owners_active",
    ):
        op.drop_index(index, "memory_owners")
    op.create_index("ix_memory_owners_owner", "memory_owners", ["owner", "content_key"])
    for column in ("superseded_by", "superseded_at", "reason"):
        op.drop_column("memory_owners", column)
