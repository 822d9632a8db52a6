"""Statements with lists of any length."""

import sqlite3
from typing import Any

import pytest
from sqlalchemy import Table, bindparam, func, insert, select

from memory.sql.engine import Database
from memory.sql.tables import figures, speakers

SAID = 70_000


@pytest.mark.parametrize(("table", "name"), [(speakers, "owner"), (figures, "value")])
@pytest.mark.parametrize("late", [False, True])
async def test_a_list_may_be_of_any_length(database: Database, table: Table, name: str, late: bool) -> None:
    column, text = table.c[name], table is speakers
    wanted: list[Any] = [f"ü{n}'\"%" if text else n for n in range(SAID)]
    rows = [
        {"owner": one, "author": "Ana"} if text else {"user_id": str(one), "name": "", "value": one}
        for one in wanted
    ]
    async with database.write() as connection:
        if database.sqlite:  # fewer parameters than any build allows
            raw = (await connection.get_raw_connection()).driver_connection
            assert raw is not None
            raw.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
        await connection.execute(insert(table), rows[:3])
        for values in (wanted[1:], wanted[1:2]):  # of one statement, packed and not
            listed: Any = bindparam("values", expanding=True) if late else values
            given = {"values": values} if late else {}
            inside = len(values[:2])
            for condition, found in ((column.in_(listed), inside), (column.not_in(listed), 3 - inside)):
                assert await connection.scalar(select(func.count()).where(condition), given) == found
