"""When a message was edited away or regenerated in the client that holds the conversation."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0017"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    comment = "another message took its place then, in the client's history"
    op.add_column("messages", sa.Column("replaced_at", moment, comment=comment))
