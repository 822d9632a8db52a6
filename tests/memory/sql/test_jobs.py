"""The queue of what is done after the reply."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from memory.sql.engine import Database
from memory.sql.jobs import CLAIM, MAX_ATTEMPTS, Job, JobQueue

if TYPE_CHECKING:
    from pathlib import Path

    from tests.memory.conftest import Stack


async def add(stack: Stack, kind: str = "store") -> str:
    async with stack.database.write() as connection:
        return await stack.queue.add(
            connection, kind, "anna", {"text": "Zoë\x00 ☕", "n": 1}, stack.clock.now
        )


async def claim(stack: Stack, id: str | None = None) -> Job:
    piece = await stack.queue.claim(stack.clock.now, id)
    assert piece
    return piece


async def test_work_is_taken_as_it_was_given_oldest_first(stack: Stack) -> None:
    ids = [await add(stack, kind) for kind in ("first", "second")]
    taken = [await claim(stack), await claim(stack)]
    assert taken == [
        Job(id, kind, "anna", {"text": "Zoë\x00 ☕", "n": 1}, attempts=1)
        for id, kind in zip(ids, ("first", "second"), strict=True)
    ]
    assert await stack.queue.claim(stack.clock.now) is None


async def test_work_whose_transaction_failed_was_never_there(stack: Stack) -> None:
    async def fail_halfway() -> None:
        async with stack.database.write() as connection:
            await stack.queue.add(connection, "store", "anna", {}, stack.clock.now)
            raise asyncio.CancelledError

    await asyncio.gather(fail_halfway(), return_exceptions=True)
    assert await stack.queue.claim(stack.clock.now) is None
    assert await stack.queue.counts() == (0, 0)


async def test_a_piece_is_taken_by_its_id(stack: Stack) -> None:
    _, wanted = await add(stack), await add(stack)
    assert (await claim(stack, wanted)).id == wanted
    assert await stack.queue.claim(stack.clock.now, wanted) is None
    assert await stack.queue.claim(stack.clock.now, "another") is None


async def test_what_is_done_is_gone(stack: Stack) -> None:
    id = await add(stack)
    await claim(stack)
    await stack.queue.done(id)
    stack.clock.move(days=1)
    assert await stack.queue.claim(stack.clock.now) is None
    assert await stack.queue.counts() == (0, 0)


async def test_what_a_crash_left_behind_is_taken_again_when_its_time_is_up(stack: Stack) -> None:
    id = await add(stack)
    await claim(stack)
    stack.clock.move(seconds=119)
    assert await stack.queue.claim(stack.clock.now) is None
    stack.clock.move(seconds=1)
    again = await claim(stack)
    assert (again.id, again.attempts) == (id, 2)


async def test_what_fails_is_tried_again_later_each_time_and_then_given_up(stack: Stack) -> None:
    id = await add(stack)
    for wait in (1, 4, 16, 64, 256, 1024, 3600, 3600):
        await stack.queue.failed(await claim(stack), "it broke \x00" + "!" * 9000, stack.clock.now)
        stack.clock.move(seconds=wait - 0.001)
        assert await stack.queue.claim(stack.clock.now) is None
        stack.clock.move(seconds=0.001)
    stack.clock.move(days=365)
    assert await stack.queue.claim(stack.clock.now) is None
    assert await stack.queue.claim(stack.clock.now, id) is None
    assert await stack.queue.counts() == (0, 1)


async def test_the_next_process_takes_what_one_that_is_gone_had_taken(stack: Stack) -> None:
    left, failed = await add(stack), await add(stack)
    await claim(stack, left)
    await stack.queue.failed(await claim(stack, failed), "the model is away", stack.clock.now)
    await stack.queue.release(stack.clock.now)
    assert (await claim(stack)).id == left
    assert await stack.queue.claim(stack.clock.now) is None  # the one that failed waits its second
    stack.clock.move(seconds=1)
    assert (await claim(stack)).id == failed


async def test_waiting_and_given_up_are_counted_apart(stack: Stack) -> None:
    stuck = await add(stack)
    for _ in range(MAX_ATTEMPTS):
        await claim(stack, stuck)
        stack.clock.move(hours=1)
    for _ in range(2):
        await add(stack)
    await claim(stack)
    assert await stack.queue.counts() == (2, 1)


async def test_no_two_workers_ever_get_the_same_piece(
    stack: Stack, database_url: str, tmp_path: Path
) -> None:
    """Each with a database of its own, as in processes of their own."""
    databases = [await Database.open(database_url, tmp_path) for _ in range(4)]
    wanted = [await add(stack) for _ in range(40)]
    got: list[str] = []

    async def work(queue: JobQueue) -> None:
        while piece := await queue.claim(stack.clock.now):
            got.append(piece.id)
            await asyncio.sleep(0)
            await queue.done(piece.id)

    # Somebody else at the same piece makes one look in vain, so each looks again.
    while (await stack.queue.counts())[0]:
        await asyncio.gather(*(work(JobQueue(database)) for database in databases))
    assert sorted(got) == sorted(wanted)
    for database in databases:
        await database.close()


async def test_a_renewed_claim_lasts_and_no_other_does(stack: Stack) -> None:
    kept, left = await add(stack), await add(stack)
    job, _ = await claim(stack, kept), await claim(stack, left)
    stack.clock.now += CLAIM
    await stack.queue.renew(job, stack.clock.now)

    again = await stack.queue.claim(stack.clock.now)

    assert again is not None
    assert again.id == left
    assert await stack.queue.claim(stack.clock.now) is None
