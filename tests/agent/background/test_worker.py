"""What is done after the reply, from the durable queue."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from agents.testing import ScriptedModel

from agent.background.worker import LOOK_AHEAD
from agent.turn.store_memories_job import STORE_MEMORIES, read_store_memories, store_memories_payload
from agent.types import TurnRequest
from hachi import Companion, Place
from memory.process.breaker import NotNow
from memory.records import Hit, NewMemory
from memory.sql.jobs.job import MAX_ATTEMPTS, Job

OpenPet = Callable[..., Awaitable[Companion]]


@pytest.fixture
async def pet(open_pet: OpenPet) -> Companion:
    pet = await open_pet(given=ScriptedModel())
    await pet.settle()  # what is done at the start is done
    return pet


async def _accept(
    pet: Companion, *contents: str, kind: str = STORE_MEMORIES, ours: bool = False
) -> list[Job]:
    """Write work as a turn does, one piece a content."""
    jobs = []
    for content in contents:
        incoming = TurnRequest("so it is", "ana", pet.clock())
        payload = store_memories_payload([NewMemory(content, ("ana",))], incoming, None, [])
        async with pet.components.database.write() as connection:
            job = await pet.components.queue.add(connection, kind, "ana", payload, pet.clock(), ours=ours)
            jobs.append(job)
    return jobs


async def _contents(pet: Companion) -> list[str]:
    return sorted(memory.content for memory in await pet.memories.list(user="ana"))


async def test_stopping_finishes_running_jobs_and_starts_no_more(pet, monkeypatch):
    worker = (await pet.runtime()).worker
    *_, last = await _accept(pet, "Ana skis", "Ana has 2 cats", "Ana lives in Oslo")
    begun, go_on = asyncio.Event(), asyncio.Event()
    embed = pet.components.embedder.embed

    async def slow(texts: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await embed(texts)

    monkeypatch.setattr(pet.components.embedder, "embed", slow)
    worker.wake()
    await begun.wait()
    stopping = asyncio.create_task(worker.stop())
    await asyncio.sleep(0.05)
    assert not stopping.done()

    go_on.set()
    await stopping

    assert await _contents(pet) == ["Ana skis"]
    worker.wake()
    assert await worker.run_claimed(last) == [], "the reply it belongs to does not fail"
    await worker.settle()
    assert await pet.components.queue.counts() == (2, 0), "it has stopped for good"


async def test_a_memory_job_holds_ids_and_is_read_with_what_they_name(pet, clock):
    said = {
        "id": "5c8a2f0e-0000-4000-8000-000000000000",
        "author": "Ana",
        "text": "I ski",
        "sent_at": clock(),
    }
    await pet.conversations.import_messages([said], user="ana")
    snow = await pet.remember("Ana likes snow", user="ana")
    drafts = [
        NewMemory("Ana skis", ("ana", "ski"), "7d", "preference", 0.9, "some-id"),
        NewMemory("Ana has a cat"),
    ]
    incoming = TurnRequest("I ski", "ana", clock(), Place(("acme", "general")))
    found = [
        Hit(str(snow.id), "memory", "Ana likes snow", 0.4, clock()),
        Hit("x", "summary", "…", 1, clock()),
    ]
    payload = store_memories_payload(drafts, incoming, said["id"], found, ["shown"])
    assert "I ski" not in str(payload)
    assert "snow" not in str(payload)
    job = Job("w", STORE_MEMORIES, "ana", payload, 1)

    async with pet.components.database.read() as connection:
        read = await read_store_memories(job, connection, clock())
    assert read is not None
    assert read[0] == drafts
    origin = read[1]
    assert (origin.user, origin.place, origin.said_at) == ("ana", incoming.place, clock())
    assert (origin.message_id, origin.said, origin.shown) == (said["id"], "I ski", {"shown"})
    assert [(hit.id, hit.kind, hit.content) for hit in origin.found] == [
        (snow.id, "memory", "Ana likes snow")
    ]

    gone = await pet.memories.forget(str(snow.id), user="ana")
    async with pet.components.database.read() as connection:
        with pytest.raises(NotNow) as waits:
            await read_store_memories(job, connection, clock())
        assert waits.value.until == gone.undo_until
        assert await read_store_memories(job, connection, waits.value.until) is None


@pytest.mark.parametrize("back", [True, False])
async def test_a_job_waits_while_what_it_rests_on_may_be_brought_back(pet, clock, back):
    said = {"author": "Ana", "text": "I ski and row", "sent_at": clock()}
    await pet.conversations.import_messages([said], user="ana")
    [message] = await pet.conversations.messages(user="ana")
    gone = await pet.conversations.forget(message.id, user="ana")
    incoming, queue = TurnRequest(message.text, "ana", clock(), Place()), pet.components.queue
    payload = store_memories_payload([NewMemory("Ana skis")], incoming, message.id, [])
    async with pet.components.database.write() as connection:
        await queue.add(connection, STORE_MEMORIES, "ana", payload, clock())
    await pet.settle()
    assert [job.kind for job in await queue.listed()] == [STORE_MEMORIES]
    assert await pet.memories.list(user="ana") == []

    if back:
        await pet.memories.undo_forget(str(gone.undo_id), user="ana")
    clock.advance(minutes=11)
    await pet.admin.purge()
    await pet.settle()

    assert await queue.listed() == []
    assert [one.content for one in await pet.memories.list(user="ana")] == ["Ana skis"] * back


async def test_settling_runs_due_jobs_once_indexes_and_notes_uses(pet, clock):
    worker = (await pet.runtime()).worker
    await pet.remember("Ana likes tea", user="ana")
    await pet.search_memories("tea", user="ana")
    await _accept(pet, "Ana skis", "Ana skis", "Ana skis.", "Ana has 2 cats")
    clock.advance(minutes=5)

    worker.wake()
    worker.wake()
    await asyncio.sleep(0)
    await worker.settle()
    await worker.settle()

    assert await _contents(pet) == ["Ana has 2 cats", "Ana likes tea", "Ana skis"]
    assert await pet.components.queue.counts() == (0, 0)
    [tea] = [memory for memory in await pet.memories.list(user="ana") if memory.content == "Ana likes tea"]
    assert (tea.uses, tea.last_accessed_at) == (1, clock())


async def test_a_job_that_is_handed_over_runs_at_once_after_the_persons_others(pet, rows, caplog):
    worker = (await pet.runtime()).worker
    first, second, third = await _accept(pet, "Ana skis", "Ana skis.", "Ana has 2 cats", ours=True)

    worker.run_claimed(first)
    [repeated] = await worker.run_claimed(second)
    assert repeated.action == "ignore"
    assert [row["id"] for row in rows("SELECT id FROM work")] == [third.id]
    rows("ALTER TABLE work RENAME TO work_away")
    assert await worker.run_claimed(third) == [], "the reply it belongs to does not fail"
    await pet.settle()
    assert caplog.text.count("background work is postponed") == 2
    rows("ALTER TABLE work_away RENAME TO work")

    assert await _contents(pet) == ["Ana skis"], "nothing is written without its claim"
    assert (await pet.components.queue.counts())[0] == 1, "it runs again once its claim has ended"


async def test_a_failing_job_is_retried_later_and_finally_given_up(pet, clock, rows, caplog):
    await _accept(pet, "Ana's secret is 4417", kind="juggling")
    await _accept(pet, "Ana skis")
    waits = []

    for attempt in range(1, MAX_ATTEMPTS + 1):
        await pet.settle()
        await pet.settle()
        assert await _contents(pet) == ["Ana skis"], "it holds up no other job"
        [row] = rows("SELECT attempts, last_error, due_at FROM work")
        assert row["attempts"] == attempt, "not twice at once"
        assert "no handler for work of the kind 'juggling'" in row["last_error"]
        due = datetime.fromisoformat(row["due_at"]).replace(tzinfo=UTC)
        waits.append((due - clock()).total_seconds())
        clock.now = due

    assert waits == [1, 4, 16, 64, 256, 1024, 3600, 3600]
    assert await pet.components.queue.counts() == (0, 1)
    await pet.settle()
    assert [row["attempts"] for row in rows("SELECT attempts FROM work")] == [MAX_ATTEMPTS]
    assert "attempt 1" in caplog.text
    assert "4417" not in caplog.text, "the log does not quote people"


async def test_what_a_killed_process_had_claimed_runs_when_its_claim_ends(pet, clock, rows, caplog):
    ids = [job.id for job in await _accept(pet, "Ana skis", "Ana has 2 cats")]
    for id in ids:
        assert await pet.components.queue.claim(clock(), id) is not None
    await pet.settle()
    assert await _contents(pet) == [], "its claimer may be alive"

    rows("UPDATE work SET claimed_by = 'another-host:7-7', due_at = '2000-01-01 00:00:00.000000'")
    await pet.settle()

    assert await _contents(pet) == ["Ana has 2 cats", "Ana skis"]
    assert f"work {ids[0]} ({STORE_MEMORIES}): its process ended while it ran (1 times)" in caplog.text


async def test_jobs_that_may_end_the_process_run_one_at_a_time(pet, rows):
    for name in ("ana", "ben"):
        payload = store_memories_payload(
            [NewMemory("so it is")], TurnRequest("", name, pet.clock()), None, []
        )
        async with pet.components.database.write() as connection:
            await pet.components.queue.add(connection, STORE_MEMORIES, name, payload, pet.clock())
    rows("UPDATE work SET crashes = 2")

    worker = (await pet.runtime()).worker
    for _ in range(2):
        await worker._claim_jobs()
        assert [job.user_id for job in worker._claimed.values()] == ["ana"]
    await asyncio.gather(*worker._claimed)
    await pet.settle()
    assert rows("SELECT * FROM work") == []


async def test_many_jobs_of_one_person_leave_room_for_others(pet):
    await _accept(pet, *(f"Ana's boat number {n} is green" for n in range(LOOK_AHEAD + 1)))
    payload = store_memories_payload([NewMemory("Ben sings")], TurnRequest("", "ben", pet.clock()), None, [])
    async with pet.components.database.write() as connection:
        await pet.components.queue.add(connection, STORE_MEMORIES, "ben", payload, pet.clock())

    worker = (await pet.runtime()).worker
    await worker._claim_jobs()
    assert {job.user_id for job in worker._claimed.values()} == {"ana", "ben"}
    assert len(worker._claimed) == LOOK_AHEAD
    await pet.settle()
    assert len(await _contents(pet)) == LOOK_AHEAD + 1
