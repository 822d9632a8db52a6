"""The queue of what is done after the reply."""

import asyncio
from datetime import timedelta
from time import thread_time
from typing import Any

import pytest
from sqlalchemy import insert, update

from memory.forgetting.purge import drop_jobs
from memory.process.spans import new_id
from memory.sql.jobs.job import MAX_ATTEMPTS, REMIND, Job, StaleClaim
from memory.sql.jobs.queue import JobQueue
from memory.sql.tables import work
from tests.memory.conftest import Stack


async def claimed_elsewhere(stack: Stack, id: str) -> None:
    async with stack.database.write() as connection:
        await connection.execute(update(work).where(work.c.id == id).values(claimed_by="another-host:7-7"))


async def add(stack: Stack, kind: str = "store") -> str:
    async with stack.database.write() as connection:
        payload = {"text": "Zoë\x00 ☕", "n": 1}
        return (await stack.queue.add(connection, kind, "anna", payload, stack.clock.now)).id


async def oldest(stack: Stack) -> Job | None:
    return next(iter(await stack.queue.claim_due(stack.clock.now, 1)), None)


async def claim(stack: Stack, id: str | None = None) -> Job:
    piece = await (stack.queue.claim(stack.clock.now, id) if id else oldest(stack))
    assert piece
    return piece


async def test_work_is_taken_as_it_was_given_oldest_first_until_it_is_done(stack: Stack) -> None:
    ids = [await add(stack, kind) for kind in ("first", "second")]
    taken = [await claim(stack), await claim(stack)]
    assert taken == [
        Job(id, kind, "anna", {"text": "Zoë\x00 ☕", "n": 1}, attempts=1)
        for id, kind in zip(ids, ("first", "second"), strict=True)
    ]
    assert await oldest(stack) is None
    assert await stack.queue.claim(stack.clock.now, ids[0]) is None
    for job in taken:
        await stack.queue.done(job)
    stack.clock.advance(days=1)
    assert await oldest(stack) is None
    assert await stack.queue.counts() == (0, 0)


async def test_crashes_delay_a_job_and_never_give_it_up(stack: Stack) -> None:
    id, waits = await add(stack), []
    for _ in range(MAX_ATTEMPTS + 2):
        await claim(stack, id)
        await claimed_elsewhere(stack, id)
        await stack.end_claims()
        await stack.queue.take_up(stack.clock.now)
        [job] = await stack.queue.listed()
        waits.append((job.due_at - stack.clock.now).total_seconds())
        assert await stack.queue.counts() == (1, 0), "it is still to be done"
        assert await stack.queue.claim(job.due_at - timedelta(seconds=0.001), id) is None
        stack.clock.now = job.due_at

    assert waits == [0, 64, 256, 1024, *[3600] * 6]
    [job] = await stack.queue.listed()
    assert (job.state, job.failures, job.crashes) == ("waiting", 0, MAX_ATTEMPTS + 2)
    assert job.last_error == f"its process ended while it ran ({MAX_ATTEMPTS + 2} times)"
    assert await stack.queue.claim_due(stack.clock.now, 1, suspects=False) == []
    assert (await claim(stack)).crashes == MAX_ATTEMPTS + 2


async def test_what_another_process_had_claimed_is_due_when_its_claim_ends(stack: Stack) -> None:
    theirs, failed = [await add(stack, kind) for kind in ("a", "b")]
    await claim(stack, theirs)
    await claimed_elsewhere(stack, theirs)
    await stack.queue.failed(await claim(stack, failed), "the model is away", stack.clock.now)
    await stack.queue.take_up(stack.clock.now)
    assert await oldest(stack) is None  # the one that failed waits its second
    stack.clock.advance(seconds=1)
    assert (await claim(stack)).id == failed
    stack.clock.advance(days=1)  # the clock of a process ends no claim
    await stack.queue.take_up(stack.clock.now)
    assert await oldest(stack) is None
    await stack.end_claims()
    await stack.queue.take_up(stack.clock.now)
    again = await stack.queue.claim(stack.clock.now, theirs)
    assert again
    assert (again.attempts, again.crashes) == (1, 1), "its end is no failure"


async def test_what_is_written_for_a_job_is_written_only_under_its_claim(stack: Stack) -> None:
    job, other = await claim(stack, await add(stack)), JobQueue(stack.database, stack.clock)
    async with stack.queue.working_on(job):
        await stack.remember("Anna rows")
    await stack.end_claims()
    await other.take_up(stack.clock.now)
    [theirs] = await other.claim_due(stack.clock.now, 1)
    assert theirs == job

    with pytest.raises(StaleClaim):
        async with stack.queue.working_on(job):
            await stack.remember("Anna sings")
    await stack.queue.failed(job, "it was stopped", stack.clock.now)
    await stack.queue.postpone(job, stack.clock.now)
    await stack.queue.done(job)

    assert [memory.content for memory in await stack.memories()] == ["Anna rows"]
    async with other.working_on(theirs):
        await stack.remember("Anna swims")
    [listed] = await other.listed()
    assert (listed.state, listed.failures) == ("running", 0)


async def test_what_fails_is_tried_again_later_each_time_and_then_given_up(stack: Stack) -> None:
    stuck = await add(stack)
    for wait in (1, 4, 16, 64, 256, 1024, 3600, 3600):
        await stack.queue.failed(await claim(stack), "it broke \x00" + "!" * 9000, stack.clock.now)
        stack.clock.advance(seconds=wait - 0.001)
        assert await oldest(stack) is None
        stack.clock.advance(seconds=0.001)
    stack.clock.advance(days=365)
    assert await oldest(stack) is None
    assert await stack.queue.claim(stack.clock.now, stuck) is None
    for _ in range(2):
        await add(stack)
    running = await claim(stack)
    assert await stack.queue.counts() == (2, 1)
    states = [job.state for job in await stack.queue.listed()]
    assert states == ["given up", "running", "waiting"]
    [given_up] = await stack.queue.listed(failed=True)
    assert (given_up.id, given_up.last_error[:8]) == (stuck, "it broke")
    assert await stack.queue.named(stuck[:8]) == given_up
    assert await stack.queue.retry([stuck, running.id], stack.clock.now) == 1, "not one that runs"
    assert (await claim(stack, stuck)).attempts == 1


async def test_no_two_workers_ever_get_the_same_piece(stack: Stack, open_again: Any) -> None:
    databases = [await open_again() for _ in range(4)]
    wanted = [await add(stack) for _ in range(40)]
    got: list[str] = []

    async def handle(queue: JobQueue) -> None:
        while pieces := await queue.claim_due(stack.clock.now, 3):
            got.extend(piece.id for piece in pieces)
            await asyncio.sleep(0)
            for piece in pieces:
                await queue.done(piece)

    # Somebody else at the same piece makes one look in vain, so each looks again.
    while (await stack.queue.counts())[0]:
        await asyncio.gather(*(handle(JobQueue(database, stack.clock)) for database in databases))
    assert sorted(got) == sorted(wanted)


async def test_the_oldest_of_each_person_come_first_one_kind_last_and_of_suspects_one(stack: Stack) -> None:
    async with stack.database.write() as connection:
        for kind, user in (("late", "ben"), *[("store", "anna")] * 3, ("store", "ben"), ("store", "carl")):
            await stack.queue.add(connection, kind, user, {}, stack.clock.now)
        await connection.execute(update(work).where(work.c.user_id == "carl").values(crashes=2))
        await stack.queue.add(connection, REMIND, "anna", {}, stack.clock.now)
    jobs = [
        [(job.kind, job.user_id) for job in await stack.queue.claim_due(stack.clock.now, 2, last="late")]
        for _ in range(4)
    ]
    assert jobs == [
        [("store", "anna"), ("store", "ben")],
        [("store", "anna"), ("store", "anna")],
        [("store", "carl"), ("late", "ben")],
        [],
    ]


async def test_a_claim_and_a_purge_cost_the_same_however_many_jobs_wait(stack: Stack) -> None:
    async def wait(count: int, user: str) -> None:
        rows = [
            {"id": new_id(), "kind": "store", "user_id": user, "payload": {"n": 1}, "about": user}
            | dict.fromkeys(("due_at", "created_at"), stack.clock.now)
            for _ in range(count)
        ]
        async with stack.database.write() as connection:
            await connection.execute(insert(work), rows)

    async def seconds() -> float:
        took = []
        for _ in range(5):
            began = thread_time()
            await stack.queue.claim_due(stack.clock.now, 1)
            async with stack.database.write() as connection:
                await drop_jobs(connection, {"gone"})
            took.append(thread_time() - began)
        return min(took)

    await wait(1_000, "anna")
    few = await seconds()
    await wait(15_000, "anna")
    await wait(1, "ben")
    if stack.database.sqlite:  # the server has its own processor
        assert await seconds() < 4 * few
    assert "ben" in {job.user_id for job in await stack.queue.claim_due(stack.clock.now, 2)}


async def test_a_claim_is_renewed_during_the_work(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.sql.jobs.queue.RENEW_SECONDS", 0.001)
    job = await claim(stack, await add(stack))
    async with stack.queue.working_on(job):
        await stack.end_claims()
        while (await stack.queue.listed())[0].state != "running":  # noqa: ASYNC110 - in SQL
            await asyncio.sleep(0.001)
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "hachi claim"], "it has ended"


async def test_work_that_another_process_has_claimed_meanwhile_ends(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.sql.jobs.queue.RENEW_SECONDS", 0.001)
    job = await claim(stack, await add(stack))

    async def work() -> None:
        async with asyncio.timeout(5), stack.queue.working_on(job):
            await claimed_elsewhere(stack, job.id)
            await asyncio.Event().wait()

    with pytest.raises(StaleClaim, match="was taken over while it ran"):
        await work()
    assert (await stack.queue.listed())[0].state == "running", "it is still theirs"


async def test_work_that_is_cancelled_is_given_back(stack: Stack) -> None:
    job = await claim(stack, await add(stack))

    async def work() -> None:
        async with stack.queue.working_on(job):
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)

    assert (await claim(stack)).id == job.id
