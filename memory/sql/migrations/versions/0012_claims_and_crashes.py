"""Who works on a job, and how many processes ended in it. From now on only failures count as attempts: jobs
that never failed get back the attempts that claims had used up."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("work", sa.Column("claimed_by", sa.Text(), comment="the process that works on it"))
    op.add_column(
        "work",
        sa.Column(
            "crashes", sa.Integer(), nullable=False, server_default="0", comment="processes that ended in it"
        ),
    )
    op.execute("UPDATE work SET attempts = 0 WHERE last_error IS NULL")
