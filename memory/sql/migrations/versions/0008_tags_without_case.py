"""Tags without case and in one Unicode form, as they are searched for."""

import unicodedata

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

memories = sa.table(
    "memories",
    sa.column("id", sa.String),
    sa.column("subjects", sa.JSON),
    sa.column("indexed_under", sa.Text),
    sa.column("revision", sa.Integer),
)


def upgrade() -> None:
    connection = op.get_bind()
    rows = connection.execute(sa.select(memories.c.id, memories.c.subjects)).all()
    for id, subjects in rows:
        folded = list(dict.fromkeys(found for subject in subjects if (found := _tag(subject))))
        if folded != list(subjects):
            changed = {"subjects": folded, "indexed_under": None, "revision": memories.c.revision + 1}
            connection.execute(sa.update(memories).where(memories.c.id == id).values(**changed))


def _tag(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).strip()
