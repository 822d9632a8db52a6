"""Store with a reply the items that it offers to forget."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    comment = "kinds and ids of what a reply asks whether to forget"
    op.add_column("messages", sa.Column("asks", sa.JSON(none_as_null=True), comment=comment))
