"""What runs by itself again and again, or within a write, costs the same however much a home holds."""

import re
from typing import Any

import pytest
from sqlalchemy import event

from memory.people.due_tasks import DueTasks
from memory.sql.tables.triggers import create_triggers, drop_triggers
from tests.memory.conftest import Stack

GROWS = "memories|messages|tasks|memory_owners|evidence|evidence_ids|hidden|active_conversations|changes"
GROWS += "|replacements|memory_aliases|memory_tags|memory_updates|speakers|vectors"
SCAN = re.compile(rf"SCAN ({GROWS})\b(?! USING INDEX ix_)|Seq Scan on messages")


def statements_of(stack: Stack) -> list[Any]:
    """Return a list to which each statement is added that is executed, with what it is given."""
    asked: list[Any] = []
    listened = stack.database.engine.sync_engine, "before_cursor_execute"
    event.listen(*listened, lambda _, __, statement, given, *___: asked.append((statement, given)))
    return asked


async def scans(stack: Stack, asked: list[Any]) -> list[str]:
    """Return where these statements read a table from one end to the other."""
    explain = "EXPLAIN QUERY PLAN" if stack.database.sqlite else "EXPLAIN"
    async with stack.database.read() as connection:
        plans = [await connection.exec_driver_sql(f"{explain} {one}", given) for one, given in asked]
        return [row[-1] for plan in plans for row in plan if SCAN.search(row[-1])]


@pytest.mark.parametrize("on_database", ["sqlite"], indirect=True)
async def test_periodic_jobs_and_a_deletion_seek_their_rows(stack: Stack) -> None:
    asked = statements_of(stack)
    await stack.remember("Anna is ill", ttl="1d")
    await stack.remember("Anna has a cat")
    stack.clock.advance(days=1)
    asked.clear()
    assert len(await stack.expire()) == 1
    await DueTasks(stack.database, stack.queue).take([""], stack.clock.now)
    await stack.queue.claim_due(stack.clock.now, 1)
    await stack.queue.take_up(stack.clock.now)
    assert await stack.delete(await stack.the_memory())
    await stack.found("cat")
    read = [one for one in asked if one[0].lstrip().startswith(("SELECT", "UPDATE", "DELETE", "WITH"))]
    assert len(read) > 10
    assert await scans(stack, read) == []


@pytest.mark.parametrize("on_database", ["postgresql"], indirect=True)
async def test_postgresql_takes_messages_and_those_around_them_from_indexes(stack: Stack) -> None:
    said = """INSERT INTO messages (id, conversation_id, user_id, place, role, author, text, sent_at)
        SELECT gen_random_uuid()::text, 'talk ' || n % 200, 'person ' || n % 200,
            CASE n % 2 WHEN 0 THEN '' ELSE 'place:acme' END, 'user', 'Ann', 'said', now()
        FROM generate_series(1, 10000) AS n"""
    async with stack.database.write() as connection:
        await connection.run_sync(drop_triggers)
        await connection.exec_driver_sql(said)
        await connection.run_sync(create_triggers)
        await connection.exec_driver_sql("ANALYZE messages")
    asked, rows, now = statements_of(stack), stack.indexing.engine.rows, stack.clock.now
    index_rows = [index_row async for some in rows.of_owner("user:person 3", now, 20) for index_row in some]
    assert len(index_rows) == 50
    assert await rows.shown({"message": [index_row.point.id for index_row in index_rows[:3]]}, now)
    of_messages = [one for one in asked if "FROM messages" in one[0] or "JOIN LATERAL" in one[0]]
    assert len(of_messages) > 6
    assert await scans(stack, of_messages) == []
