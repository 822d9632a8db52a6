"""Finding what was said and learned: in the record and through the index."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from memory.audience import GLOBAL, Audience
from memory.errors import IndexUnavailable, NotFound, StoreUnavailable
from memory.facts.compare import content_key
from memory.index import Point
from memory.search.recall import COLD_START

if TYPE_CHECKING:
    from pathlib import Path

    from memory.index.embedders.bundled import BundledEmbedder
    from memory.records import Memory
    from memory.sql.engine import Database
    from tests.memory.conftest import House, HouseBuilder


async def everybody_knows(house: House, content: str) -> None:
    """A fact of everybody's, as an operator adds it."""
    decision = await house.remember(content, "operator")
    async with house.database.write() as connection:
        await house.store.link(connection, str(decision.id), [GLOBAL], content_key(content))
    await house.indexing.catch_up()


async def test_facts_and_messages_are_found_by_meaning_and_by_words(house: House) -> None:
    message = await house.receive("I broke my shoulder on the ice rink", "mickael")
    fact = await house.remember("Mickael fractured his shoulder", "mickael", message_id=message)
    for other in ("Mickael has a cat called Minka", "Mickael works as a baker"):
        await house.remember(other, "mickael")
    hits = await house.search("shoulder injury", "mickael")
    assert {(hit.kind, hit.id) for hit in hits[:2]} == {("memory", fact.id), ("message", message)}
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    by_kind = {hit.kind: hit for hit in hits[:2]}
    assert by_kind["message"].author == "mickael"
    assert by_kind["message"].message_id == by_kind["memory"].message_id == message
    assert by_kind["memory"].memory == await house.store.get(
        str(fact.id), Audience.of("mickael"), house.clock.now
    )


@pytest.mark.parametrize("question", ["", "  \n "])
async def test_an_empty_question_finds_nothing(house: House, question: str) -> None:
    await house.remember("Anna has a cat")
    assert await house.search(question) == []
    assert await house.search("cat", limit=0) == []


async def test_an_anonymous_reader_finds_nothing(house: House) -> None:
    await everybody_knows(house, "Cats have nine lives")
    nobody = Audience.of(None)
    assert await house.recall.search("cat", nobody) == []
    assert await house.recall.recent(nobody, 10) == []


async def test_as_many_as_asked_for_and_none_that_was_excluded(house: House) -> None:
    ids = [(await house.remember(f"Anna has a cat called {name}")).id for name in ("Minka", "Tom", "Luna")]
    assert len(await house.search("cat", limit=2)) == 2
    assert {hit.id for hit in await house.search("cat", exclude=ids[:2])} == {ids[2]}


async def test_subjects_keep_to_the_facts_that_bear_one_of_them(house: House) -> None:
    await house.remember("Anna has a cat", subjects=("anna", "pets"))
    await house.remember("Anna has a car", subjects=("anna", "things"))
    await house.receive("Anna has a cat")
    hits = await house.search("what does Anna have?", subjects=[" Pets ", "plants"])
    assert [hit.content for hit in hits] == ["Anna has a cat"]


async def test_what_is_found_is_noted_once_however_often(house: House) -> None:
    await house.remember("Anna has a cat")
    await house.receive("I have a cat")
    for _ in range(2):
        await house.search("cat")
    await house.recall.recent(Audience.of("anna"), 5)
    house.clock.move(hours=1)
    await house.recall.note_uses()
    await house.recall.note_uses()
    memory = await house.the_memory()
    assert (memory.uses, memory.last_accessed_at) == (1, house.clock.now)


async def test_what_could_not_be_noted_is_noted_later(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.remember("Anna has a cat")
    await house.search("cat")

    async def away(*_: object) -> None:
        raise StoreUnavailable("the database is away")

    with monkeypatch.context() as patched:
        patched.setattr(house.store, "touch", away)
        with pytest.raises(StoreUnavailable):
            await house.recall.note_uses()
    await house.recall.note_uses()
    assert (await house.the_memory()).uses == 1


async def test_the_newest_facts_need_no_index(house: House) -> None:
    for number in range(3):
        await house.remember(f"Anna's number is {number}", ttl="7d")
        house.clock.move(days=1)
    house.index.away = house.embedder.away = True
    recent = await house.recall.recent(Audience.of("anna"), 2)
    assert [hit.content for hit in recent] == ["Anna's number is 2", "Anna's number is 1"]


async def test_one_memory_is_read_by_its_id(house: House) -> None:
    decision = await house.remember("Anna has a cat")
    found = await house.recall.memory(str(decision.id)[:8], Audience.of("anna"))
    assert found.content == "Anna has a cat"
    with pytest.raises(NotFound):
        await house.recall.memory(str(decision.id), Audience.of("ben"))


async def test_who_is_new_also_gets_what_everybody_knows(house: House) -> None:
    await everybody_knows(house, "The cafeteria closes at two")
    anna = Audience.of("anna")
    assert [hit.content for hit in await house.recall.recent(anna, 10)] == ["The cafeteria closes at two"]
    for number in range(COLD_START):
        await house.remember(f"Anna has {number} cats and {number} dogs", subjects=(str(number),))
    recent = [hit.content for hit in await house.recall.recent(anna, 10)]
    assert len(recent) == COLD_START
    assert "The cafeteria closes at two" not in recent
    assert "The cafeteria closes at two" in await house.found("when does the cafeteria close?")


async def test_either_name_finds_what_is_known_of_both(house: House) -> None:
    await house.remember("dev is really called Mickael")
    await house.remember("Mickael broke his shoulder")
    await house.remember("dev has a cat")
    assert await house.found("what happened to dev's shoulder?") >= {"Mickael broke his shoulder"}
    assert await house.found("does Mickael have a cat?") >= {"dev has a cat"}
    assert (await house.recall.aliases(Audience.of("anna"))).others("dev") == ("Mickael",)
    assert (await house.recall.aliases(Audience.of("ben"))).others("dev") == ()


async def test_a_question_that_names_nothing_is_answered_by_what_was_said_last(house: House) -> None:
    old = await house.receive("my cat is ill", sent_at=house.clock.now - timedelta(days=30))
    message = await house.receive("I broke my shoulder")
    fact = await house.remember("Anna broke her shoulder", message_id=message)
    question = await house.receive("what did we talk about?")
    house.index.away = house.embedder.away = True  # it takes neither
    hits = await house.search("What did we talk about?", exclude=[question])
    assert [hit.id for hit in hits] == [fact.id, old]
    without = await house.search("what did we talk about?", exclude=[question, str(fact.id)])
    assert [hit.id for hit in without] == [message, old]
    assert await house.search("what did we talk about?", "ben") == []


async def test_a_question_that_names_only_a_time_is_answered_by_what_was_said_then(house: House) -> None:
    await house.receive("my cat is ill", sent_at=house.clock.now - timedelta(days=1))
    await house.receive("I broke my shoulder")
    hits = await house.search("what did we talk about yesterday?")
    assert [hit.content for hit in hits] == ["my cat is ill"]


async def test_facts_are_found_among_more_messages_than_a_search_holds(house: House) -> None:
    fact = await house.remember("Anna's cat is called Minka")
    for number in range(60):
        await house.receive(f"cat cat cat number {number}", sent_at=house.clock.now - timedelta(days=number))
    await house.indexing.catch_up()
    hits = await house.search("what is the cat called last week?", limit=60)
    assert fact.id in {hit.id for hit in hits}


# Summaries of conversations.


async def test_a_summary_is_found_by_meaning_and_by_words(house: House) -> None:
    id = await house.summarise("Anna will paint the boat before May; she decided on blue.")
    await house.remember("Anna works as a baker")
    for question in ("which colour was the vessel to get?", "blue"):
        hit = next(hit for hit in await house.search(question) if hit.kind == "summary")
        assert (hit.id, hit.content) == (id, "Anna will paint the boat before May; she decided on blue.")
        assert (hit.created_at, hit.message_id, hit.author, hit.memory) == (house.clock.now, None, None, None)
        assert 0.0 < hit.score <= 1.0


async def test_a_summary_is_found_by_its_audience_alone(house: House) -> None:
    told = {("anna", None): "Anna's PIN is 1234", ("ben", None): "Ben's PIN is 5678"}
    told |= {("ben", "acme"): "The PIN of the office is 9999"}
    for (user, place), summary in told.items():
        await house.summarise(summary, user, place, conversation="session-1")
    for (user, place), summary in told.items():
        assert await house.found("what is the PIN?", user, place) == {summary}
    assert await house.found("what is the PIN?", "cleo", "acme/general") == {"The PIN of the office is 9999"}
    assert await house.found("what is the PIN?", "cleo") == set()
    assert await house.recall.search("what is the PIN?", Audience.of(None)) == []


async def test_a_summary_comes_after_the_message_it_was_made_from(house: House) -> None:
    message = await house.receive("We paint the boat blue")
    for other in ("It rained all day", "The bakery opens at six", "My sister lives in Rome"):
        await house.receive(other)
    summary = await house.summarise("They paint the boat blue.")
    ids = [hit.id for hit in await house.search("what colour do we paint the boat?")]
    assert ids.index(message) < ids.index(summary)


async def test_a_summary_can_be_left_out(house: House) -> None:
    id = await house.summarise("They paint the boat.")
    await house.receive("the boat is blue")
    assert await house.found("boat") == {"They paint the boat.", "the boat is blue"}
    for given in ({"exclude": [id]}, {"kinds": frozenset({"message"})}):
        assert [hit.content for hit in await house.search("boat", **given)] == ["the boat is blue"]
    assert await house.search("boat", subjects=["boat"]) == []


async def test_a_summary_is_shown_as_it_is_in_the_record(house: House) -> None:
    await house.summarise("They paint the boat.")
    await house.indexing.catch_up()
    await house.summarise("They paint the boat blue.")
    assert await house.found("boat") == {"They paint the boat blue."}
    await house.summarise("")
    assert await house.found("boat") == set()


async def test_a_summary_that_the_index_shows_to_others_is_held_back_by_the_record(house: House) -> None:
    id = await house.summarise("Anna's PIN is 1234")
    await house.indexing.catch_up()
    [vector] = await house.embedder.embed(["Anna's PIN is 1234"])
    everywhere = frozenset({"user:anna", "user:ben", "place:acme", GLOBAL})
    await house.index.put(
        [Point(id, "summary", everywhere, "Anna's PIN is 1234", vector, house.clock.now)]  # type: ignore[arg-type]
    )
    for user, place in (("ben", None), ("ben", "acme"), ("anna", "acme")):
        assert await house.search("What is Anna's PIN?", user, place) == []
    assert await house.found("What is Anna's PIN?") == {"Anna's PIN is 1234"}


async def test_a_summary_is_found_among_more_messages_than_a_search_holds(house: House) -> None:
    id = await house.summarise("They talked about the weather, the boat and the cat.")
    await house.remember("cat cat cat")
    await house.remember(
        "Anna's neighbours have horses, hens, a dog that barks all night, and also one old cat"
    )
    for number in range(60):
        await house.receive(f"cat cat cat number {number}")
    await house.indexing.catch_up()
    assert id in {hit.id for hit in await house.search("cat cat cat", limit=70)}


async def test_what_was_talked_about_is_told_by_the_newest_summaries_first(house: House) -> None:
    await house.summarise("They chose a name for the cat.", conversation="oldest")
    house.clock.move(days=1)
    older = await house.summarise("They planned a holiday.", conversation="older")
    house.clock.move(days=1)
    newest = await house.summarise("They paint the boat.")
    message = await house.receive("we paint the boat")
    await house.summarise("Ben's secret.", "ben")
    house.index.away = house.embedder.away = True  # it takes neither
    hits = await house.search("what did we talk about?")
    assert [hit.id for hit in hits] == [newest, older, message]
    assert [hit.kind for hit in hits] == ["summary", "summary", "message"]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert [hit.id for hit in await house.search("what did we talk about?", limit=1)] == [newest]
    [first, *_] = await house.search("what did we talk about?", exclude=[newest])
    assert first.id == older
    only = await house.search("what did we talk about?", kinds=frozenset({"memory", "message"}))
    assert [hit.id for hit in only] == [message]


async def test_what_was_talked_about_then_is_told_by_the_summaries_of_then(house: House) -> None:
    then = await house.summarise("They planned a holiday.", conversation="older")
    house.clock.move(days=1)
    await house.summarise("They paint the boat.")
    hits = await house.search("what did we talk about yesterday?")
    assert [hit.id for hit in hits] == [then]


# When the index lies, or is away.


def lie(memory: Memory, owners: frozenset[str], vector: object) -> Point:
    """A point that shows more than the record allows."""
    return Point(memory.id, "memory", owners, memory.content, vector, memory.created_at)  # type: ignore[arg-type]


async def test_what_the_index_shows_to_others_is_held_back_by_the_record(house: House) -> None:
    await house.remember("Anna's PIN is 1234", "anna")
    secret = await house.the_memory("anna")
    [vector] = await house.embedder.embed([secret.content])
    everywhere = frozenset({"user:anna", "user:ben", "place:acme", GLOBAL})
    await house.index.put([lie(secret, everywhere, vector)])
    for user, place in (("ben", None), ("ben", "acme"), ("anna", "acme")):
        assert await house.search("What is Anna's PIN?", user, place) == []
    assert await house.found("What is Anna's PIN?", "anna") == {"Anna's PIN is 1234"}


async def test_a_stale_point_of_what_was_unlinked_is_held_back(house: House) -> None:
    for user in ("anna", "ben"):
        await house.remember("The office has moved to Lyon", user, "acme")
    await house.indexing.catch_up()
    memory = await house.the_memory("ben")
    async with house.database.write() as connection:
        await house.store.unlink(connection, memory, "ben")
    assert await house.search("where is the office?", "ben") == []


async def test_a_stale_point_of_what_was_replaced_is_held_back(house: House) -> None:
    await house.remember("Mickael lives in Paris", "mickael")
    await house.indexing.catch_up()
    house.clock.move(days=1)
    old = await house.the_memory("mickael")
    await house.remember("Mickael lives in Lyon", "mickael")
    [vector] = await house.embedder.embed([old.content])
    await house.index.put([lie(old, old.owners, vector)])
    assert await house.found("where does Mickael live?", "mickael") == {"Mickael lives in Lyon"}


async def test_points_without_a_row_are_passed_over(house: House) -> None:
    await house.remember("Anna has a cat")
    memory = await house.the_memory()
    async with house.database.write() as connection:
        await house.store.delete(connection, [memory.id])
    assert await house.index.present([memory.id]) == {memory.id}
    assert await house.search("cat") == []


async def test_without_the_index_a_search_says_so_and_works_again_when_it_is_back(house: House) -> None:
    await house.remember("Anna has a cat")
    house.index.away = True
    with pytest.raises(IndexUnavailable):
        await house.search("cat")
    house.index.away = False
    assert await house.found("cat") == {"Anna has a cat"}


async def test_without_the_embedder_a_search_goes_by_words(house: House) -> None:
    await house.remember("Anna has a cat")
    await house.indexing.catch_up()
    house.embedder.away = True
    await house.remember("Anna has a parrot")
    assert await house.found("cat") == {"Anna has a cat"}
    house.embedder.away = False
    assert await house.found("parrot") >= {"Anna has a parrot"}


HOLDER = """
import asyncio, sys
from pathlib import Path
from memory.index.embedders.bundled import BundledEmbedder
from memory.index import fingerprint_of
from memory.index.edge import EmbeddedIndex

async def main():
    embedder = BundledEmbedder()
    fingerprint = fingerprint_of(embedder.name, embedder.dimension)
    index = await EmbeddedIndex.open(Path(sys.argv[1]), embedder.dimension, fingerprint)
    print("open", flush=True)
    sys.stdin.read()
    await index.close()

asyncio.run(main())
"""


def holding(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-c", HOLDER, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def test_beside_a_process_that_holds_the_index_one_can_list_store_and_delete(
    database: Database, build_house: HouseBuilder, bundled: BundledEmbedder, tmp_path: Path
) -> None:
    with holding(tmp_path / "index") as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "open\n"
        house = await build_house(database, bundled)
        await house.remember("Anna has a cat")
        await house.remember("Anna has a dog")
        with pytest.raises(IndexUnavailable, match="in use by another hachi process") as told:
            await house.search("cat")
        assert "\n" not in str(told.value)
        recent = await house.recall.recent(Audience.of("anna"), 10)
        assert {hit.content for hit in recent} == await house.known() == {"Anna has a cat", "Anna has a dog"}
        [cat] = [memory for memory in await house.memories() if "cat" in memory.content]
        await house.removal.delete(cat, "anna")
        assert await house.known() == {"Anna has a dog"}
        assert await house.queue.counts() == (1, 0)
        holder.communicate("done")
