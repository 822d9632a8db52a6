"""The queue of what is done after the reply."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from memory.sql.engine import Database
from memory.sql.jobs import MAX_ATTEMPTS, Job, JobQueue

if TYPE_CHECKING:
    from pathlib import Path

    from tests.memory.conftest import House


async def add(house: House, kind: str = "store") -> str:
    async with house.database.write() as connection:
        return await house.queue.add(
            connection, kind, "anna", {"text": "Zoë\x00 ☕", "n": 1}, house.clock.now
        )


async def claim(house: House, id: str | None = None) -> Job:
    piece = await house.queue.claim(house.clock.now, id)
    assert piece
    return piece


async def test_work_is_taken_as_it_was_given_oldest_first(house: House) -> None:
    ids = [await add(house, kind) for kind in ("first", "second")]
    taken = [await claim(house), await claim(house)]
    assert taken == [
        Job(id, kind, "anna", {"text": "Zoë\x00 ☕", "n": 1}, attempts=1)
        for id, kind in zip(ids, ("first", "second"), strict=True)
    ]
    assert await house.queue.claim(house.clock.now) is None


async def test_work_whose_transaction_failed_was_never_there(house: House) -> None:
    async def fail_halfway() -> None:
        async with house.database.write() as connection:
            await house.queue.add(connection, "store", "anna", {}, house.clock.now)
            raise asyncio.CancelledError

    await asyncio.gather(fail_halfway(), return_exceptions=True)
    assert await house.queue.claim(house.clock.now) is None
    assert await house.queue.counts() == (0, 0)


async def test_a_piece_is_taken_by_its_id(house: House) -> None:
    _, wanted = await add(house), await add(house)
    assert (await claim(house, wanted)).id == wanted
    assert await house.queue.claim(house.clock.now, wanted) is None
    assert await house.queue.claim(house.clock.now, "another") is None


async def test_what_is_done_is_gone(house: House) -> None:
    id = await add(house)
    await claim(house)
    await house.queue.done(id)
    house.clock.move(days=1)
    assert await house.queue.claim(house.clock.now) is None
    assert await house.queue.counts() == (0, 0)


async def test_what_a_crash_left_behind_is_taken_again_when_its_time_is_up(house: House) -> None:
    id = await add(house)
    await claim(house)
    house.clock.move(seconds=119)
    assert await house.queue.claim(house.clock.now) is None
    house.clock.move(seconds=1)
    again = await claim(house)
    assert (again.id, again.attempts) == (id, 2)


async def test_what_fails_is_tried_again_later_each_time_and_then_given_up(house: House) -> None:
    id = await add(house)
    for wait in (1, 4, 16, 64, 256, 1024, 3600, 3600):
        await house.queue.failed(await claim(house), "it broke \x00" + "!" * 9000, house.clock.now)
        house.clock.move(seconds=wait - 0.001)
        assert await house.queue.claim(house.clock.now) is None
        house.clock.move(seconds=0.001)
    house.clock.move(days=365)
    assert await house.queue.claim(house.clock.now) is None
    assert await house.queue.claim(house.clock.now, id) is None
    assert await house.queue.counts() == (0, 1)


async def test_the_next_process_takes_what_one_that_is_gone_had_taken(house: House) -> None:
    left, failed = await add(house), await add(house)
    await claim(house, left)
    await house.queue.failed(await claim(house, failed), "the model is away", house.clock.now)
    await house.queue.release(house.clock.now)
    assert (await claim(house)).id == left
    assert await house.queue.claim(house.clock.now) is None  # the one that failed waits its second
    house.clock.move(seconds=1)
    assert (await claim(house)).id == failed


async def test_waiting_and_given_up_are_counted_apart(house: House) -> None:
    stuck = await add(house)
    for _ in range(MAX_ATTEMPTS):
        await claim(house, stuck)
        house.clock.move(hours=1)
    for _ in range(2):
        await add(house)
    await claim(house)
    assert await house.queue.counts() == (2, 1)


async def test_no_two_workers_ever_get_the_same_piece(
    house: House, database_url: str, tmp_path: Path
) -> None:
    """Each with a database of its own, as in processes of their own."""
    databases = [await Database.open(database_url, tmp_path) for _ in range(4)]
    wanted = [await add(house) for _ in range(40)]
    got: list[str] = []

    async def work(queue: JobQueue) -> None:
        while piece := await queue.claim(house.clock.now):
            got.append(piece.id)
            await asyncio.sleep(0)
            await queue.done(piece.id)

    # Somebody else at the same piece makes one look in vain, so each looks again.
    while (await house.queue.counts())[0]:
        await asyncio.gather(*(work(JobQueue(database)) for database in databases))
    assert sorted(got) == sorted(wanted)
    for database in databases:
        await database.close()
