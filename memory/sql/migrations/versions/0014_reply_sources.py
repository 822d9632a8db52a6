"""What each reply was written from."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    comment = "of a reply: the ids of what searches found, and of what else the model was given"
    op.add_column("messages", sa.Column("sources", sa.JSON(), comment=comment))
