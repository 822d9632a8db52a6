"""What is made private leaves every read of the place where it was told; its author loses nothing."""

from typing import Any

import pytest
from agents.testing import function_call
from sqlalchemy import select

from agent.tracing.store.filters import TraceFilter
from agent.types.meanings import audience_of
from hachi import Companion
from hachi.testing import AnsweringModel
from memory.audience import PRIVATE
from memory.facts.candidate import Provenance
from memory.sql.tables import active_conversations
from tests.agent.conftest import OpenPet

GENERAL, THREAD = "acme/general", "acme/general/7"
JOB = "Bob applied for a job at Initech"
SAID = "I applied for a job at Initech"
QUESTION = "who applied for a job at Initech?"
QUOTED = "Bob applied for a job at Initech, he said."
LUCK = "Good luck, Bob!"


def consolidate(asked: str) -> dict[str, Any]:
    """Summaries tell whether the prompt quotes the message."""
    told = "They spoke of Initech." if "Initech" in asked.partition("## What was said")[2] else "They met."
    return {"summary": told, "memory_summary": told}


@pytest.fixture
def model() -> AnsweringModel:
    told = {"message": LUCK, "memories": [{"content": JOB, "subjects": ["bob"]}]}
    search = [function_call("search_memories", {"query": "Initech"}, call_id="one")]
    return AnsweringModel(told, QUOTED, search, QUOTED, "It is late.")


@pytest.fixture(params=["sqlite", "postgresql"])
async def pet(open_pet: OpenPet, model: AnsweringModel, request: pytest.FixtureRequest) -> Companion:
    """Bob has told of his application in the channel; Cyn has asked about it there and in a thread."""
    settings: dict[str, Any] = {}
    if request.param == "postgresql":
        settings["database_url"] = await request.getfixturevalue("postgresql").new()
    pet = await open_pet(given=model, consolidating=AnsweringModel(then=consolidate), **settings)
    await pet.respond(SAID, user="bob", author="Bob", place=GENERAL, settle=True)
    await pet.respond("Where did Bob apply?", user="cyn", author="Cyn", place=GENERAL, settle=True)
    await pet.respond("Where did Bob apply?", user="cyn", author="Cyn", place=THREAD, settle=True)
    await pet.respond("What time is it?", user="cyn", author="Cyn", place=GENERAL, settle=True)
    await pet.settle()
    return pet


async def readable(pet: Companion, user: str, place: str | None) -> str:
    """All that may be read there, but for the prompt of a turn."""
    at: dict[str, Any] = {"user": user, "place": place}
    recall, audience = pet.components.recall, audience_of(**at)
    found: list[Any] = [await pet.people.context(**at)]
    found += await pet.memories.list(**at)
    found += await pet.conversations.messages(**at, limit=100)
    found += await recall.recent(audience, 100)
    for author in ("bob", "hachi"):
        found += await recall.search(QUESTION, audience, limit=50, author=author)
    hits = await pet.search_memories(QUESTION, **at, limit=50)
    found += [*hits, await recall.around(hits, audience)]
    if place:
        found.append(await pet.conversations.export_place(place, user=user))
    return "\n".join(map(str, found))


async def stored(pet: Companion, column: Any, *where: Any) -> str:
    async with pet.components.database.read() as connection:
        return str((await connection.execute(select(column).where(*where))).all())


async def test_nobody_reads_it_there_any_more_and_its_author_loses_nothing(
    pet: Companion, model: AnsweringModel
) -> None:
    assert "Initech" in await stored(pet, active_conversations.c.summary)
    shown = await readable(pet, "cyn", GENERAL)
    assert all(text in shown for text in (JOB, SAID, QUOTED))
    assert QUOTED in await readable(pet, "cyn", THREAD)
    [memory] = await pet.memories.list(user="bob")

    await pet.memories.make_private(memory.id, user="bob")

    for _ in range(2):  # before and after summaries are written again
        for user in ("bob", "cyn", "dan"):
            for place in (GENERAL, THREAD):
                assert "Initech" not in await readable(pet, user, place)
        assert "Initech" not in await stored(
            pet, active_conversations.c.summary, active_conversations.c.owner.startswith("place:")
        )
        await pet.settle()
    await pet.respond("Good morning!", user="dan", author="Dan", place=GENERAL, settle=True)
    assert "Initech" not in model.shown()
    assert "What time is it?" in model.shown()

    exported = str(await pet.conversations.export(user="bob"))
    assert all(text in exported for text in (JOB, SAID, LUCK))
    assert [one.content for one in await pet.memories.list(user="bob")] == [JOB]
    assert SAID in await readable(pet, "bob", None)
    assert {hit.content for hit in await pet.search_memories(QUESTION, user="bob")} >= {JOB, SAID}
    receipt = await pet.memories.forget(memory.id, user="bob")
    assert (receipt.messages, receipt.replies) == (1, 3)
    assert "Initech" not in await readable(pet, "bob", None)


async def test_no_trace_of_the_place_shows_it(open_pet: OpenPet, model: AnsweringModel) -> None:
    pet = await open_pet(given=model, consolidate="off")
    await pet.respond(SAID, user="bob", author="Bob", place=GENERAL, settle=True)
    await pet.respond("I applied for a job at Initech, as you know", user="bob", author="Bob", settle=True)
    [memory] = [one for one in await pet.memories.list(user="bob") if one.content == JOB]

    await pet.memories.make_private(memory.id, user="bob")

    await pet.components.recorder.flush()
    wanted, now = TraceFilter(kinds=frozenset()), pet.clock()
    left = [one async for one in pet.traces.each(wanted, now) if one.status != "forgotten"]
    shown = [one for one in left if one.content != "hidden"]
    for one in shown:
        assert one.place == "" or "Initech" not in str(await pet.traces.get(one.id, now))
    assert len(shown) < len(left)


async def test_what_was_told_in_another_place_stays_there(open_pet: OpenPet) -> None:
    other, before = "acme/other", "Bob works at Globex"
    told = [{"message": "Noted.", "memories": [{"content": fact, "subjects": []}]} for fact in (before, JOB)]
    pet = await open_pet(given=AnsweringModel(*told), consolidating=AnsweringModel(then=consolidate))
    await pet.respond("I work at Globex", user="bob", author="Bob", place=other, settle=True)
    await pet.respond(SAID, user="bob", author="Bob", place=GENERAL, settle=True)
    by_text = {memory.content: memory for memory in await pet.memories.list(user="bob")}
    origin = Provenance("bob", pet.clock(), PRIVATE)
    await pet.components.writer.rule(by_text[JOB].id, by_text[before].id, "replaces", origin)
    await pet.memories.make_private(by_text[JOB].id, user="bob", place=GENERAL)
    assert SAID not in await readable(pet, "cyn", GENERAL)
    assert "I work at Globex" in await readable(pet, "cyn", other)
