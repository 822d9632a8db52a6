"""The types of columns, and the names of constraints."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, MetaData, String, TypeDecorator

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Utc(TypeDecorator[datetime]):
    """An aware UTC datetime. SQLite stores no zone, so it is removed on writing and added on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone; Hachi's times are aware UTC")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        """Reads SQLite's text itself: what SQLAlchemy puts together takes four times as long, and a search
        reads hundreds."""
        if dialect.name != "sqlite":
            return lambda value: value and value.astimezone(UTC)
        return lambda value: value and datetime.fromisoformat(value).replace(tzinfo=UTC)


row_id = String(36)
counter = BigInteger().with_variant(Integer, "sqlite")
