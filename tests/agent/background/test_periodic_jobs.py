"""The jobs beside the conversation, at short intervals."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from agents.testing import ScriptedModel

from agent.background import periodic_jobs as schedule
from agent.background.reminders import Reminders
from agent.services.admin import AdminService
from agent.turn.store_memories_job import STORE_MEMORIES, store_memories_payload
from agent.types import TurnRequest
from hachi import Companion, Settings
from memory.records import NewMemory
from memory.sql import changes


@pytest.fixture(autouse=True)
def purged_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "PURGE_SECONDS", 0.05)


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - a row in a database sets no event
            await asyncio.sleep(0.02)


async def test_what_expires_is_purged_by_itself(open_pet, clock, rows, caplog):
    caplog.set_level(logging.INFO, "hachi.schedule")
    pet = await open_pet(given=ScriptedModel(), periodic_jobs=True)
    await pet.remember("Ana is in Rome", user="ana", ttl="1h")
    await pet.remember("Ana likes tea", user="ana")
    await asyncio.sleep(0.2)
    assert len(rows("SELECT * FROM memories")) == 2

    clock.advance(hours=1)

    await _until(lambda: len(rows("SELECT * FROM memories")) == 1)
    await _until(lambda: "purged 1 memories" in caplog.text)
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana likes tea"]


async def test_work_that_another_process_left_is_done_by_itself(open_pet, rows, monkeypatch):
    monkeypatch.setattr(schedule, "QUEUE_SECONDS", 0.05)
    pet = await open_pet(given=ScriptedModel(), periodic_jobs=True)
    await pet.settle()
    payload = store_memories_payload([NewMemory("Ana skis")], TurnRequest("", "ana", pet.clock()), None, [])
    async with pet.components.database.write() as connection:
        await pet.components.queue.add(connection, STORE_MEMORIES, "ana", payload, pet.clock())

    await _until(lambda: rows("SELECT content FROM memories") == [{"content": "Ana skis"}])


async def test_what_is_overdue_runs_soon_after_a_start_and_once_for_all_processes(
    open_pet, clock, rows, monkeypatch
):
    monkeypatch.setattr(schedule, "OVERDUE_SECONDS", 0.01)
    monkeypatch.setattr(changes, "LATEST", 3)
    pet = await open_pet()
    for number in range(5):
        await pet.respond(f"I have {number} geese", user="ana", settle=True)
    await pet.settle()
    assert rows("SELECT * FROM traces")
    ran = asyncio.Queue[str]()
    for name in ("prune_traces", "cut_log", "give_back"):
        act = getattr(AdminService, name)

        async def noted(self, *given, act=act, name=name):
            ran.put_nowait(name)
            return await act(self, *given)

        monkeypatch.setattr(AdminService, name, noted)
    clock.advance(days=40)
    for due in (3, 0, 0):
        for _ in range(2):
            await open_pet(periodic_jobs=True)
        await asyncio.sleep(0.5)
        assert ran.qsize() == due
        while not ran.empty():
            ran.get_nowait()
    assert len(rows("SELECT * FROM changes")) == 3
    assert rows("SELECT * FROM traces") == []


async def test_the_jobs_outlive_a_database_that_fails(open_pet, clock, rows, monkeypatch, caplog):
    monkeypatch.setattr(schedule, "QUEUE_SECONDS", 0.05)
    pet = await open_pet(given=ScriptedModel(), periodic_jobs=True)
    await pet.remember("Ana is in Rome", user="ana", ttl="1h")
    rows("ALTER TABLE memories RENAME TO memories_away")
    rows("ALTER TABLE work RENAME TO work_away")
    clock.advance(hours=1)
    await _until(lambda: "the purge failed" in caplog.text)
    await asyncio.sleep(0.2)
    assert caplog.text.count("the purge failed") == 1, "said once as long as it lasts"
    await _until(
        lambda: (
            "the queue could not be checked" in caplog.text or "background work is postponed" in caplog.text
        )
    )

    rows("ALTER TABLE work_away RENAME TO work")
    rows("ALTER TABLE memories_away RENAME TO memories")

    await _until(lambda: rows("SELECT * FROM memories") == [])
    assert "Traceback" not in caplog.text


async def test_a_job_that_takes_long_runs_once_and_the_scheduler_says_nothing(open_pet, monkeypatch, caplog):
    monkeypatch.setattr(schedule, "REMIND_SECONDS", 0.02)
    began = list[bool]()

    async def slow(_: Any) -> None:
        began.append(True)
        await asyncio.sleep(0.3)

    monkeypatch.setattr(Reminders, "run", slow)
    with caplog.at_level(logging.WARNING):
        await open_pet(given=ScriptedModel(), periodic_jobs=True)
        await _until(lambda: len(began) == 2)

    assert caplog.records == []


async def test_the_jobs_end_with_the_companion(home, clock, rows, light_embedder, caplog):
    settings = Settings(home=home, embedder="bundled")
    async with Companion.open(settings, clock=clock, model=ScriptedModel()) as pet:
        await pet.remember("Ana is in Rome", user="ana", ttl="1h")
        await pet.settle()
    clock.advance(hours=1)

    await asyncio.sleep(0.3)

    assert len(rows("SELECT * FROM memories")) == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
