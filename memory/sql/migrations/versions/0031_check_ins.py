"""Store who wants check-ins."""

from alembic import op

from memory.sql.tables import check_ins
from memory.sql.tables.evidence import VIEW

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    check_ins.create(op.get_bind())
    op.execute("DROP VIEW rests_on")  # the view gets one more `how`
    op.execute(VIEW)
