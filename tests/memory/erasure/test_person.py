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
from memory.sql.errors import Overtaken
from memory.sql.keys import Keys, digest
from memory.sql.tables import metadata

if TYPE_CHECKING:
    from tests.memory.conftest import Stack

ACME = "acme/general"
PARIS, LYON, ROME = (f"Mickael lives in {city}" for city in ("Paris", "Lyon", "Rome"))


def erasure_of(stack: Stack, *, embedded: bool = False) -> Erasure:
    """Documents are in the stack's own index too, as far as these tests go."""
    knowledge = DocumentLibrary(stack.database, stack.index, stack.embedder, stack.clock, FusedReranker())
    return Erasure(
        stack.database,
        stack.queue,
        stack.indexing,
        stack.index,
        knowledge,
        stack.index,
        stack.clock,
        lambda *_: None,
        embedded=embedded,
    )


async def erase(stack: Stack, user: str = "anna") -> Erased:
    return await erasure_of(stack).erase(user)


async def everything(stack: Stack) -> dict[str, list[str]]:
    """Every row of every table, as it reads."""
    async with stack.database.read() as connection:
        return {
            name: [str(tuple(row)) for row in await connection.execute(select(table))]
            for name, table in metadata.tables.items()
        }


async def where_it_stands(stack: Stack, *words: str) -> set[str]:
    """The tables in which one of these words stands anywhere."""
    rows = await everything(stack)
    return {table for table, lines in rows.items() for line in lines if any(word in line for word in words)}


async def fill(stack: Stack, user: str = "anna") -> None:
    """Some of everything that is kept of a person, in private and in a place."""
    for place in (None, ACME):
        where = Place.parse(place)
        await stack.receive(f"{user} told the {place} of a zebrafish", user, place, author=user.title())
        await stack.remember(f"{user} has a zebrafish named {place}", user, place)
        await stack.remember(f"{user} is really called Zoe in {place}", user, place)
        await summarise(stack, f"{user} spoke of a zebrafish in {place}", user, place)
        await stack.tasks.put(user, f"feed the zebrafish of {place}", now=stack.clock.now, place=_key(place))
        await contexts(stack).merge(user, where, [Entry("profile.role", "", "zebrafish", stack.clock.now)])
    async with stack.database.write() as connection:
        await stack.queue.add(connection, "look_back", user, {"said": "zebrafish"}, stack.clock.now)
        key = {"id": str(uuid4()), "name": "laptop", "kind": "user", "user_id": user, "digest": uuid4().hex}
        await connection.execute(insert(tables.api_keys).values(**key, created_at=stack.clock.now))
        place = {"place": f"place:the%20{user[0]}%20team", "listening": "mentions", "changed_by": user}
        await connection.execute(insert(tables.places).values(**place, changed_at=stack.clock.now))


async def summarise(stack: Stack, summary: str, user: str = "ben", place: str | None = ACME) -> int:
    """A summary of all that was said there so far; how far it reaches."""
    where = Place.parse(place)
    talk, owner = f"dm:{user}" if where.private else where.key, owner_of(user, where)
    active = await stack.conversations.of(talk, owner)
    after = active.covered if active else 0
    covered = (await stack.transcript.following(talk, owner, 0, 50, most=50))[-1].seq
    assert await stack.conversations.update(
        talk, owner, summary, after=after, covered=covered, now=stack.clock.now
    )
    return covered


def contexts(stack: Stack) -> Any:
    from memory.people.profile_store import ProfileStore

    return ProfileStore(stack.database)


def _key(place: str | None) -> str:
    return "" if place is None else Place.parse(place).key


async def test_nothing_of_a_person_is_left_in_any_column(stack: Stack) -> None:
    await fill(stack)
    await stack.indexing.catch_up()
    points = await stack.index.count()

    receipt = await erase(stack)

    assert receipt.verified
    assert receipt.left == ()
    assert await where_it_stands(stack, "anna", "Anna", "zebrafish", "Zoe") == set()
    assert points == 8
    assert await stack.index.count() == 0
    assert await stack.queue.counts() == (0, 0)
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


async def test_the_setting_of_a_place_stays_without_who_made_it(stack: Stack) -> None:
    await fill(stack)

    await erase(stack)

    async with stack.database.read() as connection:
        [place] = (await connection.execute(select(tables.places))).all()
    assert (place.listening, place.changed_by) == ("mentions", NOBODY)


async def test_a_key_that_goes_with_its_person_does_not_open_the_door_to_everybody(stack: Stack) -> None:
    made, secret = await Keys(stack.database).create("Anna's laptop", "user", "anna", now=stack.clock.now)

    receipt = await erase(stack)

    keys = Keys(stack.database)  # of a process that has just begun
    assert await keys.exist()
    assert await keys.check(secret, stack.clock.now) is None
    [left] = await keys.all()
    assert (left.id, left.user, left.revoked_at) == (made.id, NOBODY, stack.clock.now)
    assert await where_it_stands(stack, "anna", "Anna", digest(secret)) == set()
    assert (dict(receipt.removed), receipt.verified) == ({"keys": 1}, True)
    assert dict((await erase(stack)).removed) == {}


async def test_others_keep_everything(stack: Stack) -> None:
    await fill(stack, "ben")
    before = await everything(stack)
    await fill(stack, "anna")

    await erase(stack)

    after = await everything(stack)
    # These are due in the index again, or keep the setting that was made there, or that there was a key.
    changing = {"messages", "memories", "active_conversations", "places", "api_keys"}
    assert set(before["api_keys"]) < set(after["api_keys"])
    assert {t: after[t] for t in after.keys() - changing} == {t: before[t] for t in before.keys() - changing}
    assert all("anna" not in line for lines in after.values() for line in lines)
    assert [len(after[table]) for table in sorted(changing)] == [2, 2, 4, 2, 2]
    assert len(await stack.memories("ben")) == 4
    assert await stack.found("zebrafish", "ben") >= {"ben told the None of a zebrafish"}


async def test_erasing_again_finds_nothing(stack: Stack) -> None:
    await fill(stack)
    await erase(stack)

    receipt = await erase(stack)

    assert (dict(receipt.removed), receipt.left, receipt.verified) == ({}, (), True)


async def test_a_preview_says_what_goes_and_changes_nothing(stack: Stack) -> None:
    await fill(stack)
    before = await everything(stack)

    found = await erasure_of(stack).preview("anna")

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
    assert await everything(stack) == before
    assert await erasure_of(stack).preview("nobody") == {}


# What others said too.


async def test_what_somebody_else_said_as_well_is_theirs_alone(stack: Stack) -> None:
    await stack.remember(PARIS, "anna", ACME)
    await stack.remember(PARIS, "ben", ACME)

    receipt = await erase(stack)

    memory = await stack.the_memory("ben", ACME)
    assert (memory.content, memory.user_id) == (PARIS, "ben")
    assert memory.owners == {user_key("ben"), Place.parse(ACME).key}
    assert memory.message_id is None
    assert receipt.removed["memories shared"] == 1
    assert receipt.verified


async def test_what_the_other_said_first_stays_with_its_evidence(stack: Stack) -> None:
    said = await stack.receive(PARIS, "ben", ACME)
    await stack.remember(PARIS, "ben", ACME, message_id=said)
    await stack.remember(PARIS, "anna", ACME)

    await erase(stack)

    memory = await stack.the_memory("ben")
    assert (memory.user_id, memory.message_id) == ("ben", said)


async def test_it_stays_only_where_the_other_said_it(stack: Stack) -> None:
    await stack.remember(PARIS, "anna", "acme")
    await stack.remember(PARIS, "anna", ACME)
    await stack.receive("so he does", "ben", ACME)
    await stack.remember(PARIS, "ben", ACME)
    assert (await stack.the_memory("ben")).owners >= {Place.parse(p).key for p in ("acme", ACME)}

    await erase(stack)

    memory = await stack.the_memory("ben", ACME)
    assert (memory.content, memory.place) == (PARIS, ACME)
    assert await stack.known("ben", "acme") == set()


async def test_what_is_everybodys_stays_and_names_nobody(stack: Stack) -> None:
    await stack.remember("The office is closed on Sundays", "anna", everybody=True)

    receipt = await erase(stack)

    memory = await stack.the_memory("ben")
    assert memory.user_id == NOBODY
    assert receipt.verified


async def test_what_they_had_replaced_of_others_holds_again(stack: Stack) -> None:
    stack.rule(True)
    await stack.remember(PARIS, "ben", ACME)
    stack.clock.move(days=1)
    await stack.remember("Mickael moved to Lyon", "anna", ACME)
    assert await stack.known("cleo", ACME) == {"Mickael moved to Lyon"}

    await erase(stack)

    assert await stack.known("cleo", ACME) == {PARIS}
    assert await stack.found(PARIS, "cleo", ACME) == {PARIS}
    assert await where_it_stands(stack, "Lyon") == set()


async def test_what_they_had_corrected_on_purpose_stays_corrected(stack: Stack) -> None:
    old = await stack.remember(PARIS, "ben", ACME)
    await stack.remember("Mickael lives on a boat", "anna", ACME, replaces=old.id)

    await erase(stack)

    assert await stack.known("cleo", ACME) == set()
    assert await stack.known("ben") == {PARIS}


async def test_a_chain_is_joined_where_they_stood_in_it(stack: Stack) -> None:
    ids = []
    for user, city in (("ben", PARIS), ("anna", LYON), ("anna", ROME), ("ben", "Mickael moved to Oslo")):
        ids.append((await stack.remember(city, user, ACME)).id)
        stack.clock.move(days=1)

    receipt = await erase(stack)

    steps = await stack.history.of(str(ids[0]), Audience.of("cleo", Place.parse(ACME)))
    assert [(step.old_content, step.new_content, step.user_id) for step in steps] == [
        (PARIS, "Mickael moved to Oslo", "ben")
    ]
    assert await stack.known("cleo", ACME) == {"Mickael moved to Oslo"}
    assert receipt.removed["history"] > 0


async def test_a_step_that_was_taken_back_leaves_no_trace(stack: Stack) -> None:
    old = await stack.remember(PARIS, "ben", ACME)
    stack.clock.move(days=1)
    new = await stack.remember(LYON, "anna", ACME)
    there = Audience.of("anna", Place.parse(ACME))
    await stack.history.undo(str(new.id), there, "anna", stack.clock.now)

    await erase(stack)

    assert await stack.known("cleo", ACME) == {PARIS}
    assert await stack.history.of(str(old.id), there) == []


async def test_their_own_history_goes_with_the_superseded_texts(stack: Stack) -> None:
    for city in (PARIS, LYON, ROME):
        await stack.remember(city, "anna")
        stack.clock.move(days=1)

    receipt = await erase(stack)

    assert (receipt.removed["memories"], receipt.removed["history"]) == (3, 2)
    assert await where_it_stands(stack, "Mickael") == set()


# What was said in a place.


async def test_what_was_said_beside_them_is_found_by_its_own_words_alone(stack: Stack) -> None:
    """A message is also found by its neighbours' words: those of the erased must not be among them."""
    for user, text in (("ben", "Where was it?"), ("anna", "By the old lighthouse"), ("ben", "I see")):
        await stack.receive(text, user, ACME)
    await stack.indexing.catch_up()
    assert await found_by(stack, "lighthouse") == 3

    await erase(stack)

    assert await found_by(stack, "lighthouse") == 0
    assert await found_by(stack, "see") == 2


async def found_by(stack: Stack, word: str) -> int:
    """How many messages in the place the index finds by this word, their own or a neighbour's."""
    question = Question(frozenset({Place.parse(ACME).key}), stack.clock.now, text=word)
    return len((await stack.index.search(question)).window_words)


async def test_the_summary_of_a_place_is_made_anew_from_what_is_left(stack: Stack) -> None:
    place = Place.parse(ACME)
    for number in range(4):
        await stack.receive(f"message {number}", "ben", ACME)
    await stack.receive("I am ill", "anna", ACME)
    last = await stack.receive("Get well", "ben", ACME)
    seq = await summarise(stack, "Anna is ill")
    await stack.indexing.catch_up()

    receipt = await erase(stack)

    active = await stack.conversations.of(place.key, place.key)
    assert active is not None
    assert active.summary == ""
    left, _ = await stack.conversations.uncovered(place.key, place.key, active.covered)
    assert [line.message.text for line in left] == [f"message {n}" for n in range(4)] + ["Get well"]
    assert left[-1].message.id == last
    assert not await stack.conversations.update(
        place.key, place.key, "Anna is ill, says Ben", after=seq, covered=seq + 1, now=stack.clock.now
    )
    assert await stack.index.present([active.id]) == set()
    assert receipt.removed["summaries of places"] == 1


async def test_a_summary_that_does_not_reach_to_them_stays(stack: Stack) -> None:
    place = Place.parse(ACME)
    await stack.receive("Good morning", "ben", ACME)
    await summarise(stack, "A greeting")
    await stack.receive("I am ill", "anna", ACME)

    await erase(stack)

    active = await stack.conversations.of(place.key, place.key)
    assert active is not None
    assert active.summary == "A greeting"


async def test_a_name_that_somebody_else_bears_too_stays(stack: Stack) -> None:
    await stack.receive("hello", "anna", ACME, author="Sam")
    await stack.receive("hello", "anna", ACME, author="Annie")
    await stack.receive("hello too", "ben", ACME, author="Sam")

    await erase(stack)

    authors = await stack.transcript.authors(Audience.of("ben", Place.parse(ACME)))
    async with stack.database.read() as connection:
        kept = set((await connection.execute(select(tables.speakers.c.author))).scalars())
    assert kept == {"Sam"}
    assert authors >= {"Sam"}


async def test_a_conversation_of_the_same_name_is_the_others_from_now_on(stack: Stack) -> None:
    await stack.receive("hello", "anna", conversation="travel")
    await stack.receive("hello", "ben", conversation="travel")

    await erase(stack)

    async with stack.database.read() as connection:
        rows = (await connection.execute(select(tables.conversations))).all()
    assert [(row.id, row.user_id) for row in rows] == [("travel", "ben")]


async def test_more_than_one_lot_goes(stack: Stack) -> None:
    async with stack.database.write() as connection:
        for number in range(BATCH + 5):
            line = {"id": str(uuid4()), "conversation_id": "dm:anna", "user_id": "anna", "place": ""}
            about = {"role": "user", "author": "anna", "sent_at": stack.clock.now, "text": f"no {number}"}
            await connection.execute(insert(tables.messages).values(**line, **about))

    receipt = await erase(stack)

    assert receipt.removed["messages"] == BATCH + 5
    assert await where_it_stands(stack, "anna") == set()


# Faults.


async def test_an_index_that_is_away_is_told_and_cleaned_later(stack: Stack) -> None:
    await fill(stack)
    await stack.indexing.catch_up()
    stack.index.away = True

    receipt = await erase(stack)

    assert not receipt.verified
    [left] = receipt.left
    assert (left.kind, left.count, left.expected) == ("index", 7, False)
    assert await where_it_stands(stack, "anna", "zebrafish") == set()
    stack.index.away = False
    while piece := await stack.queue.claim(stack.clock.now):
        assert (piece.kind, piece.user_id) == (UNINDEX, NOBODY)
        await stack.index.remove(piece.payload["ids"])
        await stack.queue.done(piece.id)
    await stack.indexing.catch_up()
    assert await stack.index.count() == 0
    assert (await erase(stack)).verified


STEPS = ("_some_messages", "_some_memories", "_rows", "_documents", "_out_of_the_index", "_look")


@pytest.mark.parametrize("broken", STEPS)
async def test_one_that_was_cut_short_is_finished_by_the_next(
    stack: Stack, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(stack)
    await stack.indexing.catch_up()
    first = erasure_of(stack)
    step = getattr(first, broken)

    async def dies(*given: Any, **more: Any) -> Any:
        await step(*given, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(first, broken, dies)
    with suppress(KeyboardInterrupt):
        await first.erase("anna")

    while piece := await stack.queue.claim(stack.clock.now):  # as the next start does
        assert piece.kind in (UNINDEX, "look_back")
        if piece.kind == UNINDEX:
            await stack.index.remove(piece.payload["ids"])
        await stack.queue.done(piece.id)
    receipt = await erase(stack)

    assert receipt.verified
    assert await where_it_stands(stack, "anna", "Anna", "zebrafish", "Zoe") == set()
    assert await stack.index.count() == 0


async def test_something_that_comes_in_at_the_last_moment_is_told(stack: Stack) -> None:
    await fill(stack)

    async def late(_: Gone) -> dict[str, int]:
        await stack.receive("me again", "anna")
        return {}

    receipt = await erasure_of(stack).erase("anna", [late])

    assert not receipt.verified
    assert {(left.kind, left.expected) for left in receipt.left} >= {("messages", False)}
    assert (await erase(stack)).verified


async def test_what_was_made_of_their_words_and_is_still_there_is_told(stack: Stack) -> None:
    await stack.receive("my zebrafish is called Otto", "anna", ACME)

    async def late(_: Gone) -> dict[str, int]:
        await stack.receive("he told me", "ben", ACME)
        await summarise(stack, "someone said: my zebrafish is called Otto")
        return {}

    receipt = await erasure_of(stack).erase("anna", [late])

    assert [(left.kind, left.expected) for left in receipt.left] == [("active_conversations", False)]


async def test_what_others_were_told_is_left_and_told(stack: Stack) -> None:
    await stack.receive("my zebrafish is called Otto", "anna", ACME)
    await stack.receive("Anna wrote: my zebrafish is called Otto", "ben", ACME)

    receipt = await erase(stack)

    assert receipt.verified
    [left] = receipt.left
    assert (left.kind, left.count, left.expected) == ("messages", 1, True)
    assert json.loads(json.dumps(receipt.to_json()))["left"][0]["kind"] == "messages"


async def test_what_is_kept_beside_the_record_is_counted(stack: Stack) -> None:
    seen = []

    async def beside(gone: Gone) -> dict[str, int]:
        seen.append(sorted(gone.said | gone.facts))
        return {"letters": 2}

    await stack.receive("hello", "anna")
    await stack.remember("Anna skis", "anna")
    receipt = await erasure_of(stack).erase("anna", [beside])

    assert seen == [["Anna skis", "hello"]]
    assert receipt.removed["letters"] == 2


async def test_a_point_that_was_put_back_is_told(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    await stack.remember("Anna skis", "anna")
    await stack.indexing.catch_up()

    async def not_removed(_: object) -> None: ...

    monkeypatch.setattr(stack.index.real, "remove", not_removed, raising=False)
    receipt = await erase(stack)
    monkeypatch.undo()

    assert [(left.kind, left.count, left.expected) for left in receipt.left] == [("index", 1, False)]


@pytest.mark.parametrize(("faults", "goes"), [(4, True), (5, False)])
async def test_a_lot_that_others_are_changing_is_tried_again(stack: Stack, faults: int, goes: bool) -> None:
    tries = iter([Overtaken("in the way")] * faults)

    async def step(_: Gone) -> bool:
        if fault := next(tries, None):
            raise fault
        return True

    retried = erasure_of(stack)._retried(step, Gone("anna"))
    if goes:
        assert await retried
    else:
        with pytest.raises(Overtaken):
            await retried


async def test_others_may_go_on_talking_meanwhile(stack: Stack) -> None:
    for city in (PARIS, LYON, ROME):
        await stack.remember(city, "anna", ACME)
        await stack.receive(f"{city} says zqanna", "anna", ACME)
    talking = [stack.remember(text, "ben", ACME) for text in (PARIS, LYON, ROME, "Mickael has a dog") * 3]
    hearing = [stack.receive(f"message {number}", "ben", ACME) for number in range(10)]

    await asyncio.gather(erase(stack), *talking, *hearing, stack.indexing.catch_up())

    assert (await erase(stack)).verified
    assert await where_it_stands(stack, "anna") == set()
    assert await found_by(stack, "zqanna") == 0
    assert "Mickael has a dog" in await stack.known("ben")
    async with stack.database.read() as connection:
        said = (await connection.execute(select(tables.messages.c.text))).scalars().all()
    assert sorted(said) == sorted(f"message {number}" for number in range(10))


# What is still being done about them.


async def test_nothing_is_kept_of_a_message_that_was_erased(stack: Stack) -> None:
    from memory.errors import NotFound
    from memory.facts.candidate import Provenance

    said = await stack.receive("I ski", "anna")
    await erase(stack)

    origin = Provenance("anna", stack.clock.now, message_id=said, live=True)
    [decision] = await stack.writer.remember([Draft("Anna skis")], origin)
    with pytest.raises(NotFound, match="has been erased"):
        await stack.tasks.update("anna", "wax the skis", now=stack.clock.now, heard=said)

    assert (decision.action, decision.reason) == ("ignore", "the message it came from has been erased")
    assert await where_it_stands(stack, "anna", "skis") == set()


async def test_a_window_that_is_being_drawn_does_not_bring_words_back(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user, text in (("ben", "Where was it?"), ("anna", "By the old lighthouse"), ("ben", "I see")):
        await stack.receive(text, user, ACME)
    put, again = stack.index.real.put, erasure_of(stack)

    async def erased_meanwhile(points: Any) -> None:
        monkeypatch.undo()
        await again._pass(Gone("anna"))
        await put(points)

    monkeypatch.setattr(stack.index.real, "put", erased_meanwhile)
    await stack.indexing.catch_up()

    assert await found_by(stack, "lighthouse") == 0
    assert await stack.index.count() == 2


# Documents, and the embedded index.


async def test_documents_go_and_an_embedded_index_is_built_anew(
    stack: Stack, tmp_path: Path, build_stack: Callable[..., Awaitable[Stack]], words_embedder: Any
) -> None:
    async def opener(rebuild: bool) -> EmbeddedIndex:
        fingerprint = fingerprint_of(words_embedder.name, words_embedder.dimension)
        return await EmbeddedIndex.open(
            tmp_path / "knowledge", words_embedder.dimension, fingerprint, rebuild=rebuild
        )

    own = await build_stack(stack.database, words_embedder)
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
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.erasure.person.BUILT_ANEW", -1)
    await stack.remember("Anna skis", "anna")
    await stack.indexing.catch_up()

    receipt = await erasure_of(stack, embedded=True).erase("anna")

    [left] = receipt.left
    assert (left.kind, left.expected, receipt.verified) == ("index files", True, True)


async def test_nothing_can_be_read_from_sqlites_files(stack: Stack, tmp_path: Path) -> None:
    if not stack.database.sqlite:
        pytest.skip("the files of PostgreSQL are its server's")
    await fill(stack)

    await erase(stack)

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

    stack: Stack
    number: int = field(default_factory=lambda: next(_worlds))

    def user(self, name: str) -> str:
        return f"zq{name}{self.number:04}"

    def place(self, name: str | None) -> Place:
        return Place() if name is None else Place.parse(f"world{self.number}/{name}")

    async def act(self, kind: str, name: str, at: str | None, said: str) -> None:
        stack, user, place = self.stack, self.user(name), self.place(at)
        said, where = said.format(me=user), str(place)
        if kind == "tell":
            await stack.remember(said, user, where)
        elif kind == "hear":
            await stack.receive(said, user, where)
        elif kind == "task":
            await stack.tasks.put(user, said, now=stack.clock.now, place="" if place.private else place.key)
        elif kind == "context":
            await contexts(stack).merge(user, place, [Entry("profile.role", "", said, stack.clock.now)])
        elif kind == "sum":
            await self.sum_up(user, place, said)
        else:
            for memory in await stack.store.newest(Audience.of(user, place), stack.clock.now, 1):
                if memory.user_id == user:
                    await stack.removal.delete(memory, user)
        stack.clock.move(hours=1)

    async def sum_up(self, user: str, place: Place, said: str) -> None:
        """As far as it goes: only of what has been said there."""
        talk, owner = f"dm:{user}" if place.private else place.key, owner_of(user, place)
        lines = await self.stack.transcript.following(talk, owner, 0, 50, most=50)
        active = await self.stack.conversations.of(talk, owner)
        after, told = active.covered if active else 0, " ".join(line.message.text for line in lines)
        if lines:
            await self.stack.conversations.update(
                talk, owner, told, after=after, covered=lines[-1].seq, now=self.stack.clock.now
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
        async with self.stack.database.read() as connection:
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
        async with self.stack.database.read() as connection:
            return {tuple(row) for row in await connection.execute(query)}

    async def shown(self) -> int:
        """How many points the index is to have: what is held by somebody, messages, summaries."""
        held = [m for m in await self.stack.store.where(tables.memories.c.id.is_not(None)) if m.owners]
        async with self.stack.database.read() as connection:
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
    stack: Stack, story: list[tuple[str, str, str | None, str]], leaving: str
) -> None:
    world = World(stack)
    for step in story:
        await world.act(*step)
    await stack.indexing.catch_up()
    theirs, told = await world.of_others(leaving), await world.told_in_places(leaving)
    async with stack.database.read() as connection:
        mine = select(tables.messages.c.id).where(tables.messages.c.user_id == world.user(leaving))
        points = list((await connection.execute(mine)).scalars())

    receipt = await erase(stack, world.user(leaving))

    assert receipt.verified, receipt.left
    assert await where_it_stands(stack, world.user(leaving)) == set()
    assert await world.of_others(leaving) == theirs
    assert told <= await world.told_in_places(leaving)
    assert await stack.index.present(points) == set()
    assert await stack.index.count() == await world.shown()
