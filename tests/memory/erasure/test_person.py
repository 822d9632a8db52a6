"""Forgetting a person: nothing of theirs is left anywhere, and nobody else has lost anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select

from memory.audience import Audience, Place, user_key
from memory.conversations.summaries import owner_of
from memory.documents import DocumentLibrary, FusedReranker
from memory.erasure.memories import NOBODY
from memory.erasure.person import BATCH, Erasure
from memory.erasure.receipt import Erased, Gone
from memory.erasure.removal import UNINDEX
from memory.index import Question, fingerprint_of
from memory.index.embedded import EmbeddedIndex
from memory.index.lazy import LazyIndex
from memory.people.profile import Entry
from memory.records import Draft
from memory.sql import tables
from memory.sql.engine import Overtaken
from memory.sql.keys import Keys, digest
from memory.sql.tables import metadata

if TYPE_CHECKING:
    from tests.memory.conftest import House

ACME = "acme/general"
PARIS, LYON, ROME = (f"Mickael lives in {city}" for city in ("Paris", "Lyon", "Rome"))


def erasure_of(house: House, *, embedded: bool = False) -> Erasure:
    """Documents are in the house's own index too, as far as these tests go."""
    knowledge = DocumentLibrary(house.database, house.index, house.embedder, house.clock, FusedReranker())
    return Erasure(
        house.database,
        house.queue,
        house.indexing,
        house.index,
        knowledge,
        house.index,
        house.clock,
        lambda *_: None,
        embedded=embedded,
    )


async def erase(house: House, user: str = "anna") -> Erased:
    return await erasure_of(house).erase(user)


async def everything(house: House) -> dict[str, list[str]]:
    """Every row of every table, as it reads."""
    async with house.database.read() as connection:
        return {
            name: [str(tuple(row)) for row in await connection.execute(select(table))]
            for name, table in metadata.tables.items()
        }


async def where_it_stands(house: House, *words: str) -> set[str]:
    """The tables in which one of these words stands anywhere."""
    rows = await everything(house)
    return {table for table, lines in rows.items() for line in lines if any(word in line for word in words)}


async def fill(house: House, user: str = "anna") -> None:
    """Some of everything that is kept of a person, in private and in a place."""
    for place in (None, ACME):
        where = Place.parse(place)
        await house.receive(f"{user} told the {place} of a zebrafish", user, place, author=user.title())
        await house.remember(f"{user} has a zebrafish named {place}", user, place)
        await house.remember(f"{user} is really called Zoe in {place}", user, place)
        await summarise(house, f"{user} spoke of a zebrafish in {place}", user, place)
        await house.tasks.put(user, f"feed the zebrafish of {place}", now=house.clock.now, place=_key(place))
        await contexts(house).merge(user, where, [Entry("profile.role", "", "zebrafish", house.clock.now)])
    async with house.database.write() as connection:
        await house.queue.add(connection, "look_back", user, {"said": "zebrafish"}, house.clock.now)
        key = {"id": str(uuid4()), "name": "laptop", "kind": "user", "user_id": user, "digest": uuid4().hex}
        await connection.execute(insert(tables.api_keys).values(**key, created_at=house.clock.now))
        place = {"place": f"place:the%20{user[0]}%20team", "listening": "mentions", "changed_by": user}
        await connection.execute(insert(tables.places).values(**place, changed_at=house.clock.now))


async def summarise(house: House, summary: str, user: str = "ben", place: str | None = ACME) -> int:
    """A summary of all that was said there so far; how far it reaches."""
    where = Place.parse(place)
    talk, owner = f"dm:{user}" if where.private else where.key, owner_of(user, where)
    active = await house.conversations.of(talk, owner)
    after = active.covered if active else 0
    covered = (await house.transcript.following(talk, owner, 0, 50, most=50))[-1].seq
    assert await house.conversations.update(
        talk, owner, summary, after=after, covered=covered, now=house.clock.now
    )
    return covered


def contexts(house: House) -> Any:
    from memory.people.profile_store import ProfileStore

    return ProfileStore(house.database)


def _key(place: str | None) -> str:
    return "" if place is None else Place.parse(place).key


async def test_nothing_of_a_person_is_left_in_any_column(house: House) -> None:
    await fill(house)
    await house.indexing.catch_up()
    points = await house.index.count()

    receipt = await erase(house)

    assert receipt.verified
    assert receipt.left == ()
    assert await where_it_stands(house, "anna", "Anna", "zebrafish", "Zoe") == set()
    assert points == 8
    assert await house.index.count() == 0
    assert await house.queue.counts() == (0, 0)
    assert dict(receipt.removed) == {
        "messages": 2,
        "memories": 4,
        "summaries of places": 1,
        "summaries": 1,
        "tasks": 2,
        "context": 2,
        "work": 1,
        "keys": 1,
        "names": 1,
        "person": 1,
        "index": 7,
    }


async def test_the_setting_of_a_place_stays_without_who_made_it(house: House) -> None:
    await fill(house)

    await erase(house)

    async with house.database.read() as connection:
        [place] = (await connection.execute(select(tables.places))).all()
    assert (place.listening, place.changed_by) == ("mentions", NOBODY)


async def test_a_key_that_goes_with_its_person_does_not_open_the_door_to_everybody(house: House) -> None:
    made, secret = await Keys(house.database).create("Anna's laptop", "user", "anna", now=house.clock.now)

    receipt = await erase(house)

    keys = Keys(house.database)  # of a process that has just begun
    assert await keys.exist()
    assert await keys.check(secret, house.clock.now) is None
    [left] = await keys.all()
    assert (left.id, left.user, left.revoked_at) == (made.id, NOBODY, house.clock.now)
    assert await where_it_stands(house, "anna", "Anna", digest(secret)) == set()
    assert (dict(receipt.removed), receipt.verified) == ({"keys": 1}, True)
    assert dict((await erase(house)).removed) == {}


async def test_others_keep_everything(house: House) -> None:
    await fill(house, "ben")
    before = await everything(house)
    await fill(house, "anna")

    await erase(house)

    after = await everything(house)
    # These are due in the index again, or keep the setting that was made there, or that there was a key.
    changing = {"messages", "memories", "active_conversations", "places", "api_keys"}
    assert set(before["api_keys"]) < set(after["api_keys"])
    assert {t: after[t] for t in after.keys() - changing} == {t: before[t] for t in before.keys() - changing}
    assert all("anna" not in line for lines in after.values() for line in lines)
    assert [len(after[table]) for table in sorted(changing)] == [2, 2, 4, 2, 2]
    assert len(await house.memories("ben")) == 4
    assert await house.found("zebrafish", "ben") >= {"ben told the None of a zebrafish"}


async def test_erasing_again_finds_nothing(house: House) -> None:
    await fill(house)
    await erase(house)

    receipt = await erase(house)

    assert (dict(receipt.removed), receipt.left, receipt.verified) == ({}, (), True)


async def test_a_preview_says_what_goes_and_changes_nothing(house: House) -> None:
    await fill(house)
    before = await everything(house)

    found = await erasure_of(house).preview("anna")

    assert found == {
        "memories": 4,
        "messages": 2,
        "summaries": 1,
        "tasks": 2,
        "context": 2,
        "work": 1,
        "keys": 1,
        "names": 1,
        "person": 1,
    }
    assert await everything(house) == before
    assert await erasure_of(house).preview("nobody") == {}


# What others said too.


async def test_what_somebody_else_said_as_well_is_theirs_alone(house: House) -> None:
    await house.remember(PARIS, "anna", ACME)
    await house.remember(PARIS, "ben", ACME)

    receipt = await erase(house)

    memory = await house.the_memory("ben", ACME)
    assert (memory.content, memory.user_id) == (PARIS, "ben")
    assert memory.owners == {user_key("ben"), Place.parse(ACME).key}
    assert memory.message_id is None
    assert receipt.removed["memories shared"] == 1
    assert receipt.verified


async def test_what_the_other_said_first_stays_with_its_evidence(house: House) -> None:
    said = await house.receive(PARIS, "ben", ACME)
    await house.remember(PARIS, "ben", ACME, message_id=said)
    await house.remember(PARIS, "anna", ACME)

    await erase(house)

    memory = await house.the_memory("ben")
    assert (memory.user_id, memory.message_id) == ("ben", said)


async def test_it_stays_only_where_the_other_said_it(house: House) -> None:
    await house.remember(PARIS, "anna", "acme")
    await house.remember(PARIS, "anna", ACME)
    await house.receive("so he does", "ben", ACME)
    await house.remember(PARIS, "ben", ACME)
    assert (await house.the_memory("ben")).owners >= {Place.parse(p).key for p in ("acme", ACME)}

    await erase(house)

    memory = await house.the_memory("ben", ACME)
    assert (memory.content, memory.place) == (PARIS, ACME)
    assert await house.known("ben", "acme") == set()


async def test_what_is_everybodys_stays_and_names_nobody(house: House) -> None:
    await house.remember("The office is closed on Sundays", "anna", everybody=True)

    receipt = await erase(house)

    memory = await house.the_memory("ben")
    assert memory.user_id == NOBODY
    assert receipt.verified


async def test_what_they_had_replaced_of_others_holds_again(house: House) -> None:
    house.rule(True)
    await house.remember(PARIS, "ben", ACME)
    house.clock.move(days=1)
    await house.remember("Mickael moved to Lyon", "anna", ACME)
    assert await house.known("cleo", ACME) == {"Mickael moved to Lyon"}

    await erase(house)

    assert await house.known("cleo", ACME) == {PARIS}
    assert await house.found(PARIS, "cleo", ACME) == {PARIS}
    assert await where_it_stands(house, "Lyon") == set()


async def test_what_they_had_corrected_on_purpose_stays_corrected(house: House) -> None:
    old = await house.remember(PARIS, "ben", ACME)
    await house.remember("Mickael lives on a boat", "anna", ACME, replaces=old.id)

    await erase(house)

    assert await house.known("cleo", ACME) == set()
    assert await house.known("ben") == {PARIS}


async def test_a_chain_is_joined_where_they_stood_in_it(house: House) -> None:
    ids = []
    for user, city in (("ben", PARIS), ("anna", LYON), ("anna", ROME), ("ben", "Mickael moved to Oslo")):
        ids.append((await house.remember(city, user, ACME)).id)
        house.clock.move(days=1)

    receipt = await erase(house)

    steps = await house.history.of(str(ids[0]), Audience.of("cleo", Place.parse(ACME)))
    assert [(step.old_content, step.new_content, step.user_id) for step in steps] == [
        (PARIS, "Mickael moved to Oslo", "ben")
    ]
    assert await house.known("cleo", ACME) == {"Mickael moved to Oslo"}
    assert receipt.removed["history"] > 0


async def test_a_step_that_was_taken_back_leaves_no_trace(house: House) -> None:
    old = await house.remember(PARIS, "ben", ACME)
    house.clock.move(days=1)
    new = await house.remember(LYON, "anna", ACME)
    there = Audience.of("anna", Place.parse(ACME))
    await house.history.undo(str(new.id), there, "anna", house.clock.now)

    await erase(house)

    assert await house.known("cleo", ACME) == {PARIS}
    assert await house.history.of(str(old.id), there) == []


async def test_their_own_history_goes_with_the_superseded_texts(house: House) -> None:
    for city in (PARIS, LYON, ROME):
        await house.remember(city, "anna")
        house.clock.move(days=1)

    receipt = await erase(house)

    assert (receipt.removed["memories"], receipt.removed["history"]) == (3, 2)
    assert await where_it_stands(house, "Mickael") == set()


# What was said in a place.


async def test_what_was_said_beside_them_is_found_by_its_own_words_alone(house: House) -> None:
    """A message is also found by its neighbours' words: those of the erased must not be among them."""
    for user, text in (("ben", "Where was it?"), ("anna", "By the old lighthouse"), ("ben", "I see")):
        await house.receive(text, user, ACME)
    await house.indexing.catch_up()
    assert await found_by(house, "lighthouse") == 3

    await erase(house)

    assert await found_by(house, "lighthouse") == 0
    assert await found_by(house, "see") == 2


async def found_by(house: House, word: str) -> int:
    """How many messages in the place the index finds by this word, their own or a neighbour's."""
    question = Question(frozenset({Place.parse(ACME).key}), house.clock.now, text=word)
    return len((await house.index.search(question)).window_words)


async def test_the_summary_of_a_place_is_made_anew_from_what_is_left(house: House) -> None:
    place = Place.parse(ACME)
    for number in range(4):
        await house.receive(f"message {number}", "ben", ACME)
    await house.receive("I am ill", "anna", ACME)
    last = await house.receive("Get well", "ben", ACME)
    seq = await summarise(house, "Anna is ill")
    await house.indexing.catch_up()

    receipt = await erase(house)

    active = await house.conversations.of(place.key, place.key)
    assert active is not None
    assert active.summary == ""
    left = await house.conversations.uncovered(place.key, "ben", place)
    assert [line.message.text for line in left] == [f"message {n}" for n in range(4)] + ["Get well"]
    assert left[-1].message.id == last
    assert not await house.conversations.update(
        place.key, place.key, "Anna is ill, says Ben", after=seq, covered=seq + 1, now=house.clock.now
    )
    assert await house.index.present([active.id]) == set()
    assert receipt.removed["summaries of places"] == 1


async def test_a_summary_that_does_not_reach_to_them_stays(house: House) -> None:
    place = Place.parse(ACME)
    await house.receive("Good morning", "ben", ACME)
    await summarise(house, "A greeting")
    await house.receive("I am ill", "anna", ACME)

    await erase(house)

    active = await house.conversations.of(place.key, place.key)
    assert active is not None
    assert active.summary == "A greeting"


async def test_a_name_that_somebody_else_bears_too_stays(house: House) -> None:
    await house.receive("hello", "anna", ACME, author="Sam")
    await house.receive("hello", "anna", ACME, author="Annie")
    await house.receive("hello too", "ben", ACME, author="Sam")

    await erase(house)

    authors = await house.transcript.authors(Audience.of("ben", Place.parse(ACME)))
    async with house.database.read() as connection:
        kept = set((await connection.execute(select(tables.speakers.c.author))).scalars())
    assert kept == {"Sam"}
    assert authors >= {"Sam"}


async def test_a_conversation_of_the_same_name_is_the_others_from_now_on(house: House) -> None:
    await house.receive("hello", "anna", conversation="travel")
    await house.receive("hello", "ben", conversation="travel")

    await erase(house)

    async with house.database.read() as connection:
        rows = (await connection.execute(select(tables.conversations))).all()
    assert [(row.id, row.user_id) for row in rows] == [("travel", "ben")]


async def test_more_than_one_lot_goes(house: House) -> None:
    async with house.database.write() as connection:
        for number in range(BATCH + 5):
            line = {"id": str(uuid4()), "conversation_id": "dm:anna", "user_id": "anna", "place": ""}
            about = {"role": "user", "author": "anna", "sent_at": house.clock.now, "text": f"no {number}"}
            await connection.execute(insert(tables.messages).values(**line, **about))

    receipt = await erase(house)

    assert receipt.removed["messages"] == BATCH + 5
    assert await where_it_stands(house, "anna") == set()


# Faults.


async def test_an_index_that_is_away_is_told_and_cleaned_later(house: House) -> None:
    await fill(house)
    await house.indexing.catch_up()
    house.index.away = True

    receipt = await erase(house)

    assert not receipt.verified
    [left] = receipt.left
    assert (left.kind, left.count, left.expected) == ("index", 7, False)
    assert await where_it_stands(house, "anna", "zebrafish") == set()
    house.index.away = False
    while piece := await house.queue.claim(house.clock.now):
        assert (piece.kind, piece.user_id) == (UNINDEX, NOBODY)
        await house.index.remove(piece.payload["ids"])
        await house.queue.done(piece.id)
    await house.indexing.catch_up()
    assert await house.index.count() == 0
    assert (await erase(house)).verified


STEPS = ("_some_messages", "_some_memories", "_rows", "_documents", "_out_of_the_index", "_look")


@pytest.mark.parametrize("broken", STEPS)
async def test_one_that_was_cut_short_is_finished_by_the_next(
    house: House, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(house)
    await house.indexing.catch_up()
    first = erasure_of(house)
    step = getattr(first, broken)

    async def dies(*given: Any, **more: Any) -> Any:
        await step(*given, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(first, broken, dies)
    with suppress(KeyboardInterrupt):
        await first.erase("anna")

    while piece := await house.queue.claim(house.clock.now):  # as the next start does
        assert piece.kind in (UNINDEX, "look_back")
        if piece.kind == UNINDEX:
            await house.index.remove(piece.payload["ids"])
        await house.queue.done(piece.id)
    receipt = await erase(house)

    assert receipt.verified
    assert await where_it_stands(house, "anna", "Anna", "zebrafish", "Zoe") == set()
    assert await house.index.count() == 0


async def test_something_that_comes_in_at_the_last_moment_is_told(house: House) -> None:
    await fill(house)

    async def late(_: Gone) -> dict[str, int]:
        await house.receive("me again", "anna")
        return {}

    receipt = await erasure_of(house).erase("anna", [late])

    assert not receipt.verified
    assert {(left.kind, left.expected) for left in receipt.left} >= {("messages", False)}
    assert (await erase(house)).verified


async def test_what_was_made_of_their_words_and_is_still_there_is_told(house: House) -> None:
    await house.receive("my zebrafish is called Otto", "anna", ACME)

    async def late(_: Gone) -> dict[str, int]:
        await house.receive("he told me", "ben", ACME)
        await summarise(house, "someone said: my zebrafish is called Otto")
        return {}

    receipt = await erasure_of(house).erase("anna", [late])

    assert [(left.kind, left.expected) for left in receipt.left] == [("active_conversations", False)]


async def test_what_others_were_told_is_left_and_told(house: House) -> None:
    await house.receive("my zebrafish is called Otto", "anna", ACME)
    await house.receive("Anna wrote: my zebrafish is called Otto", "ben", ACME)

    receipt = await erase(house)

    assert receipt.verified
    [left] = receipt.left
    assert (left.kind, left.count, left.expected) == ("messages", 1, True)
    assert json.loads(json.dumps(receipt.to_json()))["left"][0]["kind"] == "messages"


async def test_what_is_kept_beside_the_record_is_counted(house: House) -> None:
    seen = []

    async def beside(gone: Gone) -> dict[str, int]:
        seen.append(sorted(gone.said | gone.facts))
        return {"letters": 2}

    await house.receive("hello", "anna")
    await house.remember("Anna skis", "anna")
    receipt = await erasure_of(house).erase("anna", [beside])

    assert seen == [["Anna skis", "hello"]]
    assert receipt.removed["letters"] == 2


async def test_a_point_that_was_put_back_is_told(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.remember("Anna skis", "anna")
    await house.indexing.catch_up()

    async def not_removed(_: object) -> None: ...

    monkeypatch.setattr(house.index.real, "remove", not_removed, raising=False)
    receipt = await erase(house)
    monkeypatch.undo()

    assert [(left.kind, left.count, left.expected) for left in receipt.left] == [("index", 1, False)]


@pytest.mark.parametrize(("faults", "goes"), [(4, True), (5, False)])
async def test_a_lot_that_others_are_changing_is_tried_again(house: House, faults: int, goes: bool) -> None:
    tries = iter([Overtaken("in the way")] * faults)

    async def step(_: Gone) -> bool:
        if fault := next(tries, None):
            raise fault
        return True

    retried = erasure_of(house)._retried(step, Gone("anna"))
    if goes:
        assert await retried
    else:
        with pytest.raises(Overtaken):
            await retried


async def test_others_may_go_on_talking_meanwhile(house: House) -> None:
    for city in (PARIS, LYON, ROME):
        await house.remember(city, "anna", ACME)
        await house.receive(f"{city} says zqanna", "anna", ACME)
    talking = [house.remember(text, "ben", ACME) for text in (PARIS, LYON, ROME, "Mickael has a dog") * 3]
    hearing = [house.receive(f"message {number}", "ben", ACME) for number in range(10)]

    await asyncio.gather(erase(house), *talking, *hearing, house.indexing.catch_up())

    assert (await erase(house)).verified
    assert await where_it_stands(house, "anna") == set()
    assert await found_by(house, "zqanna") == 0
    assert "Mickael has a dog" in await house.known("ben")
    async with house.database.read() as connection:
        said = (await connection.execute(select(tables.messages.c.text))).scalars().all()
    assert sorted(said) == sorted(f"message {number}" for number in range(10))


# What is still being done about them.


async def test_nothing_is_kept_of_a_message_that_was_erased(house: House) -> None:
    from memory.errors import NotFound
    from memory.facts.candidate import Provenance

    said = await house.receive("I ski", "anna")
    await erase(house)

    origin = Provenance("anna", house.clock.now, message_id=said, live=True)
    [decision] = await house.writer.remember([Draft("Anna skis")], origin)
    with pytest.raises(NotFound, match="has been erased"):
        await house.tasks.update("anna", "wax the skis", now=house.clock.now, heard=said)

    assert (decision.action, decision.reason) == ("ignore", "the message it came from has been erased")
    assert await where_it_stands(house, "anna", "skis") == set()


async def test_a_window_that_is_being_drawn_does_not_bring_words_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user, text in (("ben", "Where was it?"), ("anna", "By the old lighthouse"), ("ben", "I see")):
        await house.receive(text, user, ACME)
    put, again = house.index.real.put, erasure_of(house)

    async def erased_meanwhile(points: Any) -> None:
        monkeypatch.undo()
        await again._pass(Gone("anna"))
        await put(points)

    monkeypatch.setattr(house.index.real, "put", erased_meanwhile)
    await house.indexing.catch_up()

    assert await found_by(house, "lighthouse") == 0
    assert await house.index.count() == 2


# Documents, and the embedded index.


async def test_documents_go_and_an_embedded_index_is_built_anew(
    house: House, tmp_path: Path, build_house: Callable[..., Awaitable[House]], words_embedder: Any
) -> None:
    async def opener(anew: bool) -> EmbeddedIndex:
        fingerprint = fingerprint_of(words_embedder.name, words_embedder.dimension)
        return await EmbeddedIndex.open(
            tmp_path / "knowledge", words_embedder.dimension, fingerprint, anew=anew
        )

    own = await build_house(house.database, words_embedder)
    papers = LazyIndex(opener)
    knowledge = DocumentLibrary(own.database, papers, own.embedder, own.clock, FusedReranker())
    for owner in ("anna", "ben"):
        paper = tmp_path / owner / "paper.md"
        paper.parent.mkdir()
        paper.write_text(f"# {owner}\n\nThe {owner} paper tells of lighthouses.")
        await knowledge.add([paper], user_key(owner))
        await own.remember(f"{owner} has a lighthouse", owner)
    await own.indexing.catch_up()

    erasure = erasure_of(own, embedded=True)
    erasure._knowledge, erasure._knowledge_index = knowledge, papers
    receipt = await erasure.erase("anna")

    assert receipt.verified
    assert receipt.removed["documents"] == 1
    assert await papers.count() == 1
    await papers.close()
    await own.index.close()
    for file in [*(tmp_path / "index").rglob("*"), *(tmp_path / "knowledge").rglob("*")]:
        assert not file.is_file() or b"anna" not in file.read_bytes()
    assert await where_it_stands(own, "anna") == set()
    assert await own.found("lighthouse", "ben") == {"ben has a lighthouse"}


async def test_a_large_embedded_index_is_left_to_the_operator(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.erasure.person.BUILT_ANEW", -1)
    await house.remember("Anna skis", "anna")
    await house.indexing.catch_up()

    receipt = await erasure_of(house, embedded=True).erase("anna")

    [left] = receipt.left
    assert (left.kind, left.expected, receipt.verified) == ("index files", True, True)


async def test_nothing_can_be_read_from_sqlites_files(house: House, tmp_path: Path) -> None:
    if not house.database.sqlite:
        pytest.skip("the files of PostgreSQL are its server's")
    await fill(house)

    await erase(house)

    files = list(tmp_path.glob("hachi.db*"))  # noqa: ASYNC240 - of a test
    assert len(files) > 1
    assert all(b"zebrafish" not in file.read_bytes() for file in files)


# Several people who share places.

USERS, PLACES = ("anna", "ben", "cleo"), (None, "acme", "acme/general")
who, where = st.sampled_from(USERS), st.sampled_from(PLACES)
COMMON = (PARIS, LYON, ROME, "Mickael moved to Oslo", "Mickael has a dog", "Mickael has a black dog")
text = st.one_of(
    st.sampled_from(COMMON), st.sampled_from(["{me} lives in Paris", "{me} moved to Lyon", "{me} has a cat"])
)
TELL = st.tuples(st.just("tell"), who, where, text)
HEAR = st.tuples(st.just("hear"), who, where, text)
REST = st.tuples(st.sampled_from(["task", "context", "sum"]), who, where, st.just("{me} has a cat"))
DELETE = st.tuples(st.just("delete"), who, where, st.just(""))
STORY = st.lists(st.one_of(TELL, TELL, TELL, HEAR, HEAR, REST, DELETE), min_size=4, max_size=16)

_worlds = count()


@dataclass
class World:
    """People whose names stand in all that they alone say."""

    house: House
    number: int = field(default_factory=lambda: next(_worlds))

    def user(self, name: str) -> str:
        return f"zq{name}{self.number:04}"

    def place(self, name: str | None) -> Place:
        return Place() if name is None else Place.parse(f"world{self.number}/{name}")

    async def act(self, kind: str, name: str, at: str | None, said: str) -> None:
        house, user, place = self.house, self.user(name), self.place(at)
        said, where = said.format(me=user), str(place)
        if kind == "tell":
            await house.remember(said, user, where)
        elif kind == "hear":
            await house.receive(said, user, where)
        elif kind == "task":
            await house.tasks.put(user, said, now=house.clock.now, place="" if place.private else place.key)
        elif kind == "context":
            await contexts(house).merge(user, place, [Entry("profile.role", "", said, house.clock.now)])
        elif kind == "sum":
            await self.sum_up(user, place, said)
        else:
            for memory in await house.store.newest(Audience.of(user, place), house.clock.now, 1):
                if memory.user_id == user:
                    await house.removal.delete(memory, user)
        house.clock.move(hours=1)

    async def sum_up(self, user: str, place: Place, said: str) -> None:
        """As far as it goes: only of what has been said there."""
        talk, owner = f"dm:{user}" if place.private else place.key, owner_of(user, place)
        lines = await self.house.transcript.following(talk, owner, 0, 50, most=50)
        active = await self.house.conversations.of(talk, owner)
        after, told = active.covered if active else 0, " ".join(line.message.text for line in lines)
        if lines:
            await self.house.conversations.update(
                talk, owner, told, after=after, covered=lines[-1].seq, now=self.house.clock.now
            )

    async def of_others(self, name: str) -> dict[str, set[Any]]:
        """What the others have: their links with the texts, their messages, tasks and contexts."""
        t, erased = tables, self.user(name)
        queries = {
            "memories": select(t.memory_owners.c.owner, t.memories.c.content, t.memory_owners.c.superseded)
            .join(t.memories)
            .where(t.memory_owners.c.owner.in_([user_key(self.user(n)) for n in USERS if n != name])),
            "messages": select(t.messages.c.seq, t.messages.c.text, t.messages.c.user_id).where(
                t.messages.c.user_id != erased
            ),
            "tasks": select(t.tasks.c.id, t.tasks.c.description).where(t.tasks.c.user_id != erased),
            "context": select(
                t.context_entries.c.user_id, t.context_entries.c.place, t.context_entries.c.value
            ).where(t.context_entries.c.user_id != erased),
            "summaries": select(t.active_conversations.c.owner, t.active_conversations.c.summary).where(
                t.active_conversations.c.owner.in_([user_key(self.user(n)) for n in USERS if n != name])
            ),
        }
        async with self.house.database.read() as connection:
            return {
                kind: {tuple(row) for row in await connection.execute(query)}
                for kind, query in queries.items()
            }

    async def told_in_places(self, name: str) -> set[tuple[str, str]]:
        """What somebody else is known to have told in a place: (place, text)."""
        t = tables
        query = (
            select(t.memory_owners.c.owner, t.memories.c.content)
            .join(t.memories)
            .where(t.memory_owners.c.owner.startswith(f"place:world{self.number}/"))
            .where(t.memories.c.user_id != self.user(name))
        )
        async with self.house.database.read() as connection:
            return {tuple(row) for row in await connection.execute(query)}

    async def shown(self) -> int:
        """How many points the index is to have: what is held by somebody, messages, summaries."""
        held = [m for m in await self.house.store.where(tables.memories.c.id.is_not(None)) if m.owners]
        async with self.house.database.read() as connection:
            lines = (await connection.execute(select(tables.messages.c.id))).all()
            summed = (
                await connection.execute(
                    select(tables.active_conversations.c.id).where(
                        tables.active_conversations.c.summary != ""
                    )
                )
            ).all()
        return len(held) + len(lines) + len(summed)


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(story=STORY, leaving=who)
async def test_one_leaves_and_the_others_have_lost_nothing(
    house: House, story: list[tuple[str, str, str | None, str]], leaving: str
) -> None:
    world = World(house)
    for step in story:
        await world.act(*step)
    await house.indexing.catch_up()
    theirs, told = await world.of_others(leaving), await world.told_in_places(leaving)
    async with house.database.read() as connection:
        mine = select(tables.messages.c.id).where(tables.messages.c.user_id == world.user(leaving))
        points = list((await connection.execute(mine)).scalars())

    receipt = await erase(house, world.user(leaving))

    assert receipt.verified, receipt.left
    assert await where_it_stands(house, world.user(leaving)) == set()
    assert await world.of_others(leaving) == theirs
    assert told <= await world.told_in_places(leaving)
    assert await house.index.present(points) == set()
    assert await house.index.count() == await world.shown()
