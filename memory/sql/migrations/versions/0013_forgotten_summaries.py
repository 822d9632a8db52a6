"""When something in a conversation's summary was forgotten."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    column = sa.Column(
        "forgotten_at", moment, comment="something in it was forgotten then: replies begun before may tell it"
    )
    op.add_column("active_conversations", column)
