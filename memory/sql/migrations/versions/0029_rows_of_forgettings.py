"""Index the rows of a forgetting in the order in which they are deleted."""

from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    op.drop_index("ix_hidden_forgetting_id", "hidden")
    op.create_index("ix_hidden_of_forgetting", "hidden", ["forgetting_id", "kind", "row_id"])
