"""Forgetting a person, as a program does it: turns that are going on, and what is kept in files."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from agent.surfaces.cli.log import logging_to
from agent.tracing import recorder
from agent.tracing.store.filters import TraceFilter
from agent.turn.store_memories_job import STORE_MEMORIES, store_memories_payload
from agent.types import TurnRequest
from hachi import Companion, Settings
from hachi.testing import AnsweringModel
from memory.audience import Audience, Place
from memory.errors import IndexUnavailable, StoreUnavailable
from memory.facts.decision_log import decision_run
from memory.index.bm25 import stems
from memory.records import NewMemory
from tests.agent.conftest import OpenPet, Rows

TABLES = ("messages", "memories", "memory_owners", "tasks", "context_entries", "active_conversations", "work")
SKIS = {"message": "So you ski!", "memories": [{"content": "Ana skis"}]}


def left(rows: Rows) -> dict[str, int]:
    found = {table: len(rows(f"SELECT * FROM {table}")) for table in TABLES}
    return {table: count for table, count in found.items() if count}


async def test_a_turn_that_is_going_on_brings_nothing_back(open_pet: OpenPet, rows: Rows) -> None:
    model = AnsweringModel(then=SKIS, hold="I ski")
    pet = await open_pet(given=model)
    turn = asyncio.create_task(pet.respond("I ski", user="ana", settle=True))
    await model.held.wait()
    cleared = []
    pet.components.embedder.clear = lambda: cleared.append(True)  # type: ignore[attr-defined]
    stems("Ana skis")

    receipt = await pet.people.erase(user="ana")
    model.release.set()
    reply = await turn
    await pet.settle()

    assert receipt.verified
    assert (reply.message, reply.message_id, reply.memories) == ("So you ski!", None, ())
    assert left(rows) == {}
    assert (await pet.people.erase(user="ana")).removed == {}
    assert cleared
    assert stems.cache_info().currsize == 0, "nor is it kept in mind"


async def test_a_consolidation_that_is_going_on_brings_nothing_back(open_pet: OpenPet, rows: Rows) -> None:
    found = {
        "summary": "Ana skis.",
        "new_facts": [{"text": "Ana skis", "importance": "high", "tags": []}],
        "new_preferences": [{"key": "role", "value": "nurse"}],
        "task_updates": [{"description": "wax the skis", "status": "open"}],
    }
    model = AnsweringModel(then=found, hold="I ski")
    pet = await open_pet(given=AnsweringModel(), consolidating=model)
    await pet.respond("I ski", user="ana")
    settling = asyncio.create_task(pet.settle())
    await asyncio.wait_for(model.held.wait(), 60)

    await pet.people.erase(user="ana")
    model.release.set()
    await settling
    await pet.settle()

    assert left(rows) == {}


async def test_work_that_was_taken_already_brings_nothing_back(open_pet: OpenPet, rows: Rows) -> None:
    pet = await open_pet()
    said = {"id": "5c8a2f0e-0000-4000-8000-000000000000", "author": "Ana", "text": "I ski"}
    await pet.conversations.import_messages([said | {"sent_at": pet.clock()}], user="ana")
    payload = store_memories_payload(
        [NewMemory("Ana skis")], TurnRequest("I ski", "ana", pet.clock()), said["id"], []
    )
    async with pet.components.database.write() as connection:
        piece = await pet.components.queue.add(connection, STORE_MEMORIES, "ana", payload, pet.clock())
    await pet.people.erase(user="ana")

    assert await (await pet.runtime()).worker.run_claimed(piece) == []

    assert left(rows) == {}


async def test_what_is_said_while_they_are_erased_is_heard_afterwards(open_pet: OpenPet, rows: Rows) -> None:
    pet = await open_pet()
    await pet.remember("Ana skis", user="ana")
    await pet.respond("hello", user="ana")

    async with asyncio.timeout(60):
        receipt, reply, stream, _ = await asyncio.gather(
            pet.people.erase(user="ana"),
            pet.respond("my boat is green", user="ana"),
            read(pet, "and mine is fast"),
            pet.respond("hi", user="ben"),
        )

    assert receipt.verified
    assert reply.message_id is not None
    assert stream
    said = [row["text"] for row in rows("SELECT text FROM messages WHERE role = 'user'")]
    assert sorted(said) == ["and mine is fast", "hi", "my boat is green"]
    assert {row["id"] for row in rows("SELECT id FROM users")} == {"ana", "ben"}


async def read(pet: Companion, text: str) -> str:
    return "".join([piece async for piece in pet.stream(text, user="ana")])


async def test_who_comes_back_is_known_again_as_somebody_new(open_pet: OpenPet, rows: Rows) -> None:
    pet = await open_pet()
    await pet.people.keep(False, user="ana", place="acme/boats")
    await pet.respond("I have a parrot", user="ana", author="Ana", place="acme/general", settle=True)
    [memory] = await pet.memories.list(user="ana")
    await pet.memories.make_private(memory.id, user="ana")
    await pet.people.erase(user="ana")
    assert rows("SELECT owner FROM speakers WHERE author = 'Ana'") == []
    assert await pet.people.unkept(user="ana") == [Place(("acme", "boats"))], "this wish outlives it"

    await pet.respond("hello again", user="ana", place="acme/general")

    assert rows("SELECT id FROM users") == [{"id": "ana"}]
    assert {row["owner"] for row in rows("SELECT owner FROM speakers")} == {"user:ana", "place:acme/general"}
    audience = Audience.of("ben", Place.parse("acme/general"))
    assert await pet.components.transcript.speakers.authors(audience) == {"ana", "hachi"}


# Traces.


def holding(folder: Path, word: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]


async def said_by(pet: Companion) -> list[str | None]:
    await pet.components.recorder.flush()
    return [one.user for one in await pet.traces.list(TraceFilter(kinds=frozenset()), pet.clock(), 100)]


async def test_traces_of_a_person_and_of_the_places_where_they_spoke_go_and_every_byte(
    open_pet: OpenPet, tmp_path: Path
) -> None:
    pet = await open_pet()
    await pet.respond("my zebrafish is called Otto", user="anna.q", settle=True)
    await pet.remember("Anna's zebrafish lives in a bowl", user="anna.q", place="acme/general")
    await pet.respond("hello all", user="anna.q", place="acme/general")
    for place in ("acme/general", "acme/general/thread", "acme/other", None):
        await pet.respond("hello", user="ben", place=place)
    assert len(await said_by(pet)) == 7

    receipt = await pet.people.erase(user="anna.q")

    assert receipt.verified
    assert receipt.removed["traces"] == 5
    assert await said_by(pet) == ["ben", "ben"], "the erasure leaves none of itself either"
    for word in (b"zebrafish", b"anna.q"):
        assert holding(tmp_path, word) == []
    assert "traces" not in (await pet.people.erase(user="anna.q")).removed


@pytest.mark.parametrize("written", [True, False])
async def test_what_is_being_recorded_of_them_goes_too(
    open_pet: OpenPet, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    monkeypatch.setattr(recorder, "PAUSE", 0.1 if written else 3600.0)
    model = AnsweringModel(then=SKIS, hold="I ski")
    pet = await open_pet(given=model)
    await pet.respond("the general hello", user="ana", place="acme")
    turns = [
        asyncio.create_task(pet.respond("I ski", user="ana", settle=True)),
        asyncio.create_task(pet.respond("I ski too", user="ben", place="acme")),
        asyncio.create_task(pet.respond("I ski as well", user="ben")),
    ]
    await model.held.wait()
    await asyncio.sleep(0.3 if written else 0)  # until they are in the record as going on

    receipt = await pet.people.erase(user="ana")
    model.release.set()
    await asyncio.gather(*turns)
    await pet.settle()

    assert receipt.verified
    traces = await pet.traces.list(TraceFilter(), pet.clock())
    assert [(one.user, one.said) for one in traces] == [("ben", "I ski as well")]


async def test_a_turn_in_another_process_does_not_bring_its_trace_back(open_pet: OpenPet) -> None:
    """There it is not known that somebody is erased; but what was written of it has gone."""
    model = AnsweringModel(then={"message": "So you ski!", "memories": []}, hold="I ski")
    pet, other = await open_pet(given=model), await open_pet()
    await other.respond("hello", user="ana", place="acme")
    turn = asyncio.create_task(pet.respond("I ski", user="ben", place="acme"))
    await model.held.wait()
    await asyncio.sleep(0.5)
    assert "ben" in await said_by(other)

    await other.people.erase(user="ana")
    model.release.set()
    await turn
    await pet.settle()

    assert await other.traces.count(TraceFilter()) == 0


async def test_an_erasure_says_so_where_the_traces_are_out_of_reach(
    open_pet: OpenPet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pet = await open_pet()
    await pet.respond("I ski", user="ana")
    await pet.settle()

    away = StoreUnavailable("hachi.db: the disk cannot be written")
    with monkeypatch.context() as broken:
        broken.setattr(pet.traces, "_delete", AsyncMock(side_effect=away))
        with pytest.raises(StoreUnavailable, match=r"hachi\.db"):
            await pet.people.erase(user="ana")
    receipt = await pet.people.erase(user="ana")
    assert receipt.verified
    assert receipt.removed["traces"] >= 1


async def test_old_traces_go_by_themselves(open_pet: OpenPet, clock: Any) -> None:
    pet = await open_pet(trace_days=2, consolidate="off")
    await pet.respond("hello", user="ana")
    clock.advance(days=1)
    await pet.respond("hello again", user="ana")
    await pet.components.recorder.flush()
    clock.advance(days=1.5)

    assert await pet.admin.prune_traces() == 1
    assert [one.said for one in await pet.traces.list(TraceFilter(), clock())] == ["hello again"]


# Work of others.


async def test_what_a_model_wrote_for_others_from_what_they_told_is_not_remembered(
    open_pet: OpenPet, rows: Rows
) -> None:
    pet = await open_pet()
    await pet.remember("Ana broke her left shoulder", user="ana", place="acme")
    await pet.remember("Ben has a dog", user="ben", place="acme")
    hits = await pet.components.recall.recent(Audience.of("ben", Place.parse("acme")), 5)
    incoming = TurnRequest("what is new with Ana?", "ben", pet.clock(), Place.parse("acme"))
    drafts = [NewMemory("Ana broke her left shoulder"), NewMemory("Ben asks after Ana")]
    async with pet.components.database.write() as connection:
        await pet.components.queue.add(
            connection,
            STORE_MEMORIES,
            "ben",
            store_memories_payload(drafts, incoming, None, hits),
            pet.clock(),
        )

    receipt = await pet.people.erase(user="ana")

    assert rows("SELECT payload FROM work") == []
    assert receipt.verified


# Files.


async def test_lines_of_the_log_that_name_them_are_blanked(open_pet: OpenPet, home: Path) -> None:
    pet = await open_pet()
    await pet.remember("Ana's boat is called Gull", user="ana")
    ana = {"event": "memory_decision", "user_id": "ana", "decisions": [{"fact": "Ana's boat is called Gull"}]}
    [boat] = await pet.memories.list(user="ana")
    told = {"event": "memory_decision", "user_id": "ben", "reason": f"repeats {boat.id}"}
    ben = {"event": "memory_decision", "user_id": "ben", "decisions": []}
    lines = [json.dumps(ana), json.dumps(told), json.dumps(ben)]
    text = "\n".join([*lines, "12:00 WARNING for ana: late", "12:01 WARNING banana: late", ""])
    (home / "hachi.log").write_text(text)
    (home / "hachi.log.2").write_text(text)
    handler = logging.FileHandler(home / "hachi.log")

    receipt = await pet.people.erase(user="ana")

    assert receipt.removed["log lines"] == 6
    for name in ("hachi.log", "hachi.log.2"):
        after = (home / name).read_text()
        assert len(after) == len(text)
        assert [line for line in after.splitlines() if line.strip()] == [
            lines[2],
            "12:01 WARNING banana: late",
        ]
    handler.emit(logging.LogRecord("x", 20, "", 0, "about ben", None, None))
    handler.close()
    assert (home / "hachi.log").read_text().endswith("late\nabout ben\n"), "what is written meanwhile stays"


HACHIS = [
    json.dumps({"event": "x", "user_id": "hachi"}),
    json.dumps({"event": "x", "acts_for": None, "path": "/api/users/hachi"}),
    "12:00 WARNING hachi.turn: cannot write to hachi: late",
]
NOT_HACHIS = [
    json.dumps({"event": "x", "user_id": "ben", "reason": "ask hachi"}),
    "12:00 WARNING hachi: the model is away",
    "12:00 INFO hachi.turn: it begins",
    '  File "/srv/hachi/turn.py", line 3, in hachi.turn',
]
BENS = [
    json.dumps({"event": "turn", "method": "DELETE", "acts_for": "ben", "path": "/api/users/ben/memories"})
]


def turns_of(user: str) -> list[str]:
    return [json.dumps({"event": "turn", "path": f"/api/{whose}/{user}"}) for whose in ("users", "sessions")]


@pytest.mark.parametrize(
    ("user", "theirs", "others"),
    [
        ("hachi", HACHIS, NOT_HACHIS),
        *((word, turns_of(word), BENS) for word in ("turn", "DELETE", "users", "memories")),
    ],
)
async def test_a_person_called_as_a_word_of_the_log_takes_no_line_that_is_not_about_them(
    open_pet: OpenPet, home: Path, user: str, theirs: list[str], others: list[str]
) -> None:
    pet = await open_pet()
    await pet.remember("I row", user=user)
    (home / "hachi.log").write_text("\n".join([*theirs, *others, ""]))

    await pet.people.erase(user=user)

    assert [line for line in (home / "hachi.log").read_text().splitlines() if line.strip()] == others


def decided(home: Path) -> list[tuple[str, list[str]]]:
    """Whom each line of decisions is about, and the facts in it."""
    lines = (home / "decisions.jsonl").read_text().splitlines()
    read = [json.loads(line) for line in lines if line.strip()]
    return [(line["user_id"], [made["fact"] for made in line["decisions"]]) for line in read]


async def test_decisions_go_by_the_ids_in_them_and_not_by_names(open_pet: OpenPet, home: Path) -> None:
    pet = await open_pet()
    tale, same = "ana is a bird in Hebrew tales", "The office moves to Lyon"
    with logging_to(Settings(home=home), verbose=False):
        boat = await pet.remember("Ana's boat is called Gull", user="ana", place="acme")
        await pet.remember(same, user="ana", place="acme")
        with decision_run():
            await pet.remember(same, user="ben", place="acme")
            await pet.remember(tale, user="ben", place="acme")
    told = [{"fact": "A boat", "action": "ignore", "target_id": boat.id, "reason": "known"}]
    with (home / "decisions.jsonl").open("a") as file:
        file.write(json.dumps({"event": "memory_decision", "user_id": "ben", "decisions": told}) + "\n")
        file.write('{"event": "memory_dec')  # cut short by a full disk: nobody can tell whose it is
    size = (home / "decisions.jsonl").stat().st_size

    await pet.people.erase(user="ana")

    assert (home / "decisions.jsonl").stat().st_size == size
    assert decided(home) == [("ben", [same, tale]), ("ben", [])]


async def test_what_they_typed_goes_and_what_others_typed_stays(open_pet: OpenPet, home: Path) -> None:
    pet = await open_pet()
    await pet.respond("my boat\nis green", user="ana")
    await pet.respond("hello there", user="ben")
    entries = ["my boat\nis green", "hello there", "my boat"]
    history = "".join(
        "\n# 2026-11-21\n" + "".join(f"+{line}\n" for line in entry.split("\n")) for entry in entries
    )
    (home / "chat_history").write_text(history)

    receipt = await pet.people.erase(user="ana")

    assert receipt.removed["typed lines"] == 1
    from agent.surfaces.cli.chat.terminal import ChatHistory

    assert list(ChatHistory(home / "chat_history").load_history_strings()) == ["my boat", "hello there"]


async def test_an_interrupted_erasure_is_counted_and_does_not_take_what_was_said_since(
    open_pet: OpenPet, clock: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pet = await open_pet(consolidate="off")
    await pet.respond("I ski", user="ana")
    with monkeypatch.context() as patch:
        patch.setattr(pet.components.sync, "erase", AsyncMock(side_effect=IndexUnavailable("it is away")))
        assert not (await pet.people.erase(user="ana")).verified
    assert (await pet.admin.statistics.totals())["erasures unfinished"] == 1
    clock.advance(hours=1)
    await pet.respond("I row", user="ana")

    assert await pet.components.erasure.resume() == []

    assert "run it again" in caplog.text
    assert (await pet.people.erase(user="ana")).verified


async def test_a_fact_that_is_forgotten_leaves_the_files_too(open_pet: OpenPet, home: Path) -> None:
    drafts = [("Ana's boat is called Gull", 0.9), ("A vessel of hers lets water in", 0.1)]
    memories = [{"content": content, "importance": importance} for content, importance in drafts]
    model = AnsweringModel({"message": "Oh.", "memories": memories})
    pet = await open_pet(given=model, consolidate="off")
    with logging_to(Settings(home=home), verbose=False):
        await pet.respond("My boat Gull leaks", user="ana", settle=True)
        await pet.remember("A boat that is called Gull is Ana's", user="ana", importance=0.1)
        await pet.remember("Ana has a cat", user="ana")
        await pet.remember("A gull is a bird", user="ben")
    assert len(decided(home)) == 4
    [boat] = [memory for memory in await pet.memories.list(user="ana") if "Gull" in memory.content]
    (home / "hachi.log").write_text(f"decided on {boat.id}\nana was here\n")

    await pet.memories.forget(boat.id, user="ana")
    pet.clock.advance(hours=1)
    await pet.admin.purge()

    left = [fact for _, facts in decided(home) for fact in facts]
    assert left == ["A boat that is called Gull is Ana's", "Ana has a cat", "A gull is a bird"]
    assert (home / "hachi.log").read_text().split() == ["ana", "was", "here"]
