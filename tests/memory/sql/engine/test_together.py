"""Reads that belong together are one statement, and say what each says alone."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import bindparam, event, select

from memory.errors import NotFound
from memory.sql.tables import Utc, active_conversations, messages
from tests.memory.conftest import Stack

WORDS = ["one", "two", "three", "four", "five"]
SAID = (
    select(messages.c.text, messages.c.sent_at)
    .where(messages.c.user_id == bindparam("user"), messages.c.sent_at <= bindparam("now", type_=Utc()))
    .order_by(messages.c.seq.desc())
    .limit(bindparam("most"))
)
COVERED = select(active_conversations.c.covered).where(active_conversations.c.owner == bindparam("user"))


async def test_what_is_read_together_is_one_statement_with_the_rows_of_each_in_order(stack: Stack) -> None:
    for word in WORDS:
        await stack.receive(word, conversation="talk")
    await stack.store_summary("They counted.", 0, 4, "user:anna", "talk")
    asked: list[str] = []
    event.listen(
        stack.database.engine.sync_engine, "before_cursor_execute", lambda *told: asked.append(told[2])
    )

    async def said(most: int) -> list[str]:
        rows = await stack.database.rows(
            SAID, {"user": "anna", "now": stack.clock.now + timedelta(1), "most": most}
        )
        assert all(row.sent_at.tzinfo for row in rows)
        return [row.text for row in rows]

    async def covered() -> list[int]:
        return [row.covered for row in await stack.database.rows(COVERED, {"user": "user:anna"})]

    async def nothing() -> str:
        return "nothing"

    async def said_twice() -> list[str]:
        return await said(1) + await said(2)

    alone = [await said(2), await said(4), await covered()]
    asked.clear()
    found = await stack.database.together(said(2), said(4), covered(), nothing(), said_twice())

    assert found == [*alone, "nothing", ["five", "five", "four"]]
    assert alone == [WORDS[:2:-1], WORDS[:0:-1], [4]]
    assert len([one for one in asked if one.lstrip().startswith("SELECT")]) == 2


async def test_a_task_that_a_read_begins_asks_by_itself_and_holds_nobody_up(stack: Stack) -> None:
    async def later() -> Any:
        await asyncio.sleep(0)
        return await stack.database.rows(COVERED, {"user": "user:anna"})

    async def begins() -> "asyncio.Task[Any]":
        task = asyncio.create_task(later())
        await asyncio.sleep(0)
        return task

    async with asyncio.timeout(20):
        [task] = await stack.database.together(begins())
        assert await task == []


async def test_a_read_that_fails_raises_its_own_error_and_a_statement_everybodys(stack: Stack) -> None:
    async def rows(**values: Any) -> Any:
        return await stack.database.rows(COVERED, values)

    async def lost() -> None:
        raise NotFound("no such memory")

    with pytest.raises(NotFound, match="no such memory"):
        await stack.database.together(rows(user="user:anna"), lost(), rows(user="user:ben"))
    with pytest.raises(Exception, match="user"):
        await stack.database.together(rows(user="user:anna"), rows())
