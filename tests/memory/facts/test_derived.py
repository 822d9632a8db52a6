"""Derived text does not outlive the message or the memory that it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.facts.derived import withhold
from memory.sql.summaries import LOOK_BACK

if TYPE_CHECKING:
    from tests.memory.conftest import Stack


async def test_a_summary_is_emptied_and_due_again_when_a_message_it_covers_no_longer_holds(
    stack: Stack,
) -> None:
    told = await stack.receive("I moved to Lisbon.", conversation="talk")
    later = await stack.receive("And to Porto.", conversation="talk")
    await stack.store_summary("She moved to Lisbon.", after=0, covered=1)

    async with stack.database.write() as connection:
        await withhold(connection, stack.clock.now, message_ids=[later])
    kept = await stack.conversations.of("talk", "user:anna", stack.clock.now)
    assert kept is not None
    assert kept.summary == "She moved to Lisbon."

    async with stack.database.write() as connection:
        await withhold(connection, stack.clock.now, message_ids=[told])
    kept = await stack.conversations.of("talk", "user:anna", stack.clock.now)
    assert kept is not None
    assert (kept.summary, kept.covered) == ("", 1)
    [due] = await stack.queue.due(stack.clock.now, 10)
    assert (due.kind, due.user_id) == (LOOK_BACK, "anna")
