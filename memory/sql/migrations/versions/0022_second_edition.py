"""The tables of the second edition, from which the conversion begins. New tables are made without it."""

revision = "0022"
down_revision = None


def upgrade() -> None:
    raise RuntimeError("the tables of the second edition are not made any more")
