"""What runs by itself again and again, or within a write, costs the same however much a home holds."""

import re
from typing import Any

import pytest
from sqlalchemy import event

from memory.people.due_tasks import DueTasks
from tests.memory.conftest import Stack

GROWS = "memories|messages|tasks|memory_owners|evidence|evidence_ids|hidden|active_conversations|changes"
GROWS += "|replacements|memory_aliases|memory_tags|memory_updates|speakers|vectors"
SCAN = re.compile(rf"SCAN ({GROWS})\b(?! USING INDEX ix_)")


async def test_periodic_jobs_and_a_deletion_seek_their_rows(stack: Stack) -> None:
    if not stack.database.sqlite:
        pytest.skip("PostgreSQL chooses a plan by the rows that there are")
    asked: list[tuple[str, Any]] = []
    event.listen(
        stack.database.engine.sync_engine,
        "before_cursor_execute",
        lambda _, __, statement, given, *___: asked.append((statement, given)),
    )
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
    async with stack.database.read() as connection:
        for statement, given in read:
            plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)
            scans = [step.detail for step in plan if SCAN.match(step.detail)]
            assert not scans, f"{scans} in {statement}"
