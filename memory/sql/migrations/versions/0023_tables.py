"""The oldest tables that can be converted. `memory.sql.engine.migrate` creates those of new databases."""

revision = "0023"
down_revision = None


def upgrade() -> None:
    raise RuntimeError("only newer tables are made, and only those of 0023 and later are converted")
