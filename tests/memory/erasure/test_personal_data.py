"""Where a person's data can be is declared for every column there is."""

from __future__ import annotations

import pytest

from memory.erasure.personal_data import COLUMNS, rows_naming, rows_saying
from memory.sql.tables import metadata


def test_every_table_says_what_it_holds_of_a_person() -> None:
    assert COLUMNS.keys() == metadata.tables.keys()


@pytest.mark.parametrize("table", sorted(metadata.tables))
def test_every_column_says_what_it_holds_of_a_person(table: str) -> None:
    about = COLUMNS[table]
    declared = [*about.names, *about.texts, *about.plain]
    assert sorted(declared) == sorted(column.name for column in metadata.tables[table].columns)


@pytest.mark.parametrize("table", sorted(metadata.tables))
def test_columns_that_say_who_or_what_are_declared_as_such(table: str) -> None:
    """By their names: an erasure must not pass over a column that tells of somebody."""
    telling = {"user_id", "owner", "owners", "author", "changed_by", "text", "content", "summary", "payload"}
    assert not telling & set(COLUMNS[table].plain)


async def test_rows_that_name_or_quote_a_person_are_found(stack: object) -> None:
    await stack.remember('Anna said "où?"', "anna", "acme")  # type: ignore[attr-defined]
    await stack.receive("I like tea", "anna")  # type: ignore[attr-defined]
    async with stack.database.read() as connection:  # type: ignore[attr-defined]
        named = await rows_naming(connection, "anna")
        assert await rows_naming(connection, "ann") == {}
        said = await rows_saying(connection, ['Anna said "où?"', "like tea"])
        assert await rows_saying(connection, ["like coffee"]) == {}
    assert named == {
        "users": 1,
        "conversations": 1,
        "messages": 1,
        "speakers": 1,
        "memories": 1,
        "memory_owners": 1,
    }
    assert said == {"messages": 1, "memories": 1}
