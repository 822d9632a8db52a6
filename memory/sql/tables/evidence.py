"""Store evidence as numbers, because it is most of the rows of a turn. A view shows it with ids.

Each of a turn's fifty or so sources takes 30 bytes as numbers, and 200 with two ids in three B-trees.
"""

from sqlalchemy import Column, Connection, Identity, MetaData, SmallInteger, Table, Text

from memory.sql.tables.columns import counter, metadata, row_id

CODES = {"stated": 1, "answered": 2, "found": 3, "covered": 4, "followed": 5}
"""The number that stands for each `How` of `memory.sql.rests_on`."""

evidence_ids = Table(
    "evidence_ids",
    metadata,
    Column("number", counter, Identity(), primary_key=True),
    Column("id", row_id, nullable=False, unique=True, comment="of a row that rests on another, or under it"),
)

evidence = Table(
    "evidence",
    metadata,
    Column(
        "derived",
        counter,
        primary_key=True,
        autoincrement=False,
        comment="a fact, reply, summary, task or entry of a profile",
    ),
    Column(
        "source",
        counter,
        primary_key=True,
        autoincrement=False,
        index=True,
        comment="a message, memory, summary or task",
    ),
    Column(
        "how",
        SmallInteger,
        primary_key=True,
        autoincrement=False,
        comment="1: stated, 2: answered, 3: found, 4: covered, 5: followed",
    ),
    sqlite_with_rowid=False,
)

views = MetaData()
rests_on = Table(
    "rests_on",
    views,
    Column("derived_id", row_id, primary_key=True),
    Column("source_id", row_id, primary_key=True),
    Column("how", Text, primary_key=True),
)
"""The view. `memory.sql.rests_on` inserts into its tables; rows are deleted through the view."""

WHENS = " ".join(f"WHEN {code} THEN '{how}'" for how, code in CODES.items())
VIEW = (
    "CREATE VIEW rests_on AS SELECT derived.id AS derived_id, source.id AS source_id, "
    f"CASE evidence.how {WHENS} END AS how "
    "FROM evidence JOIN evidence_ids AS derived ON derived.number = evidence.derived "
    "JOIN evidence_ids AS source ON source.number = evidence.source"
)


def create_view(connection: Connection) -> None:
    connection.exec_driver_sql(VIEW)
