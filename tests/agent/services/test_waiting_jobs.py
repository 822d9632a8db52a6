"""What a forgetting takes from jobs that wait."""

import json
from typing import Any

import pytest

from agent.services.erasure.waiting_jobs import WaitingJobs
from agent.turn.jobs import APPLY_UPDATES, STORE_MEMORIES, store_memories_payload
from agent.types import TurnRequest
from memory.audience import Place
from memory.erasure.forgotten_data import ForgottenData
from memory.erasure.repetition import words
from memory.records import Draft, Hit

PIN = "my bank PIN is 4711"
DATA = ForgottenData("ana", frozenset({"m1", "f1"}), ("Ana's bank PIN is 4711",), (PIN,), words("ana"))


def draft(content: str, replaces: str | None = None) -> dict[str, Any]:
    return {"content": content, "replaces": replaces, "subjects": []}


@pytest.fixture
async def jobs(open_pet: Any) -> WaitingJobs:
    pet = await open_pet()
    return WaitingJobs(pet.clock)


def test_a_job_about_a_forgotten_message_has_nothing_left_to_do(jobs: WaitingJobs) -> None:
    payload = {"message_id": "m1", "drafts": [draft("Ana skis")], "recalled": []}
    assert jobs.without_forgotten(STORE_MEMORIES, "ana", payload, DATA) is None


def test_memories_that_wait_to_be_stored_lose_what_was_forgotten(jobs: WaitingJobs) -> None:
    hits = [
        {"id": "f1", "content": "x"},
        {"id": "s1", "content": "PIN 4711"},
        {"id": "f2", "content": "skis"},
    ]
    drafts = [draft("the PIN of Ana's bank: 4711"), draft("Ana skis")]
    payload = {"message_id": "m2", "drafts": drafts, "recalled": hits, "said": "I ski"}
    assert jobs.without_forgotten(STORE_MEMORIES, "ana", payload, DATA) == payload | {
        "drafts": [draft("Ana skis")],
        "recalled": [{"id": "f2", "content": "skis"}],
    }


def test_updates_that_wait_lose_the_facts_of_a_forgotten_message(jobs: WaitingJobs) -> None:
    facts = [
        {"draft": draft("Ana skis"), "message_id": "m1"},
        {"draft": draft("Ana's bank PIN is 4711"), "message_id": "m2"},
        {"draft": draft("Ana has a cat", replaces="f1"), "message_id": "m2"},
        {"draft": draft("Ana has a boat"), "message_id": "m2", "kept": None},
    ]
    payload = {"facts": facts, "said": {"m1": PIN, "m2": "I have a boat"}, "tasks": []}
    clean = {"facts": facts[3:], "said": {"m2": "I have a boat"}, "tasks": []}
    assert jobs.without_forgotten(APPLY_UPDATES, "ana", payload, DATA) == clean
    assert jobs.without_forgotten(APPLY_UPDATES, "ana", payload | {"facts": facts[:3]}, DATA) is None
    tasks = [{"description": "change the bank PIN 4711", "status": "open"}]
    kept = [{"description": "call the bank", "status": "open"}]
    payload |= {"facts": [], "said": {}}
    with_tasks = payload | {"tasks": tasks + kept}
    assert jobs.without_forgotten(APPLY_UPDATES, "ana", with_tasks, DATA) == payload | {"tasks": kept}
    assert jobs.without_forgotten(APPLY_UPDATES, "ana", payload | {"tasks": tasks}, DATA) is None
    other = {"conversation": "dm:ana", "place": []}
    assert jobs.without_forgotten("look_back", "ana", other, DATA) is other
    assert jobs.without_forgotten(APPLY_UPDATES, "ben", payload, DATA) == payload


async def test_what_others_say_stays_in_their_jobs_without_what_they_were_reminded_of(
    jobs: WaitingJobs, clock: Any
) -> None:
    asked = TurnRequest("my bank PIN is 4711 too! Is Ana's?", "ben", clock(), place=Place.parse("acme"))
    told, echo = Draft("Ben's bank PIN is 4711 too"), Draft("Ana's bank PIN is 4711")
    hits = [Hit("f1", "memory", echo.content, 1.0, clock()), Hit("f2", "memory", "skis", 1.0, clock())]
    payload = store_memories_payload([told, echo], asked, "m2", hits)
    clean = store_memories_payload([told], asked, "m2", hits[1:])
    assert jobs.without_forgotten(STORE_MEMORIES, "ben", payload, DATA) == clean


async def test_what_somebody_else_told_too_is_corrected_by_their_waiting_job(open_pet: Any) -> None:
    pet = await open_pet(look_back="off")
    components, acme = pet.components, Place.parse("acme")
    for user in ("ana", "ben"):
        said = {
            "id": f"said-by-{user}",
            "author": user,
            "text": "The office is in Lyon",
            "sent_at": pet.clock(),
        }
        await pet.conversations.import_messages([said], user=user, place="acme")
        shared = await pet.remember("The office is in Lyon", user=user, place="acme")
    asked = TurnRequest("no, the office is in Nice", "ben", pet.clock(), place=acme)
    known = Hit(shared.id, "memory", "The office is in Lyon", 1.0, pet.clock())
    corrected = Draft("The office is in Nice", replaces=shared.id)
    payload = store_memories_payload([corrected], asked, "said-by-ben", [known])
    async with components.database.write() as connection:
        await components.queue.add(connection, STORE_MEMORIES, "ben", payload, pet.clock())
    await pet.memories.forget(shared.id, user="ana", place="acme")
    [waiting] = [job.payload async for job in _jobs(components, STORE_MEMORIES)]
    assert waiting == json.loads(json.dumps(payload))


async def _jobs(components: Any, kind: str) -> Any:
    for job in await components.queue.due(components.clock(), 50):
        if job.kind == kind:
            yield await components.queue.take(job.id)
