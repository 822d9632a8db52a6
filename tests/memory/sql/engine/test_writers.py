"""The queue in front of SQLite's only writer."""

import asyncio

from memory.sql.engine.writers import Writers


async def test_who_waits_writes_in_order_and_in_one_round_of_the_event_loop() -> None:
    writers, wrote = Writers(), list[int]()
    rounds = 0

    async def write(n: int) -> None:
        async with writers.turn():
            wrote.append(n)

    async with writers.turn():
        waiting = [asyncio.create_task(write(n)) for n in range(9)]
        await asyncio.sleep(0)
        assert wrote == []
    while len(wrote) < 9:
        rounds += 1
        await asyncio.sleep(0)
    assert wrote == list(range(9))
    assert rounds <= 2
    await asyncio.gather(*waiting)


async def test_who_finds_the_lock_taken_keeps_their_place() -> None:
    writers, wrote = Writers(), list[int]()

    async def write_slowly(n: int) -> None:
        async with writers.turn():
            await asyncio.sleep(0)
            wrote.append(n)

    async with asyncio.TaskGroup() as group:
        for n in range(5):
            group.create_task(write_slowly(n))
            await asyncio.sleep(0)
    assert wrote == [0, 1, 2, 3, 4]


async def test_who_leaves_early_or_stops_waiting_holds_up_nobody() -> None:
    writers, wrote = Writers(), list[str]()

    async def write(name: str) -> None:
        async with writers.turn():
            wrote.append(name)

    async with writers.turn() as leave:
        leave()  # before the block ends
        async with asyncio.timeout(1):
            await asyncio.create_task(write("meanwhile"))
    async with writers.turn():
        first, last = [asyncio.create_task(write(name)) for name in ("first", "last")]
        await asyncio.sleep(0)
    first.cancel()  # woken, and cancelled before it ran
    late = asyncio.create_task(write("late"))
    await asyncio.gather(first, last, late, return_exceptions=True)
    assert wrote == ["meanwhile", "last", "late"]
