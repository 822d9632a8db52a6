"""Erasing a person: nothing of theirs is left anywhere, and nobody else has lost anything."""

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest
from sqlalchemy import insert, select

from memory.audience import PRIVATE, Audience, Place, user_key
from memory.documents.library import DocumentLibrary
from memory.errors import IndexUnavailable, NotFound
from memory.facts.candidate import Provenance
from memory.facts.derived import remaining_messages
from memory.forgetting.erasure import Erasure
from memory.forgetting.erasure_rows import SHARED, SHOWN, ErasureProgress
from memory.forgetting.purge import NOBODY
from memory.index import Question
from memory.people.profile_entries import Entry
from memory.people.profile_store import ProfileStore
from memory.records import Erased, NewMemory
from memory.sql import tables
from memory.sql.keys import Keys, digest
from memory.sql.messages.summaries import CONSOLIDATE, owner_of
from tests.memory.conftest import Stack, StackBuilder, on_both

ACME = "acme/general"
THERE = Place.parse(ACME)
PARIS, LYON, ROME = (f"Mickael lives in {city}" for city in ("Paris", "Lyon", "Rome"))
OSLO = "Mickael moved to Oslo"


def erasure_of(stack: Stack, knowledge: Any = None, outside: Any = None) -> Erasure:
    library = knowledge or DocumentLibrary(stack.database, stack.indexing, stack.embedder, stack.clock)
    parts = (stack.database, stack.purge, stack.indexing, library, stack.clock)
    return Erasure(*parts, outside or Nothing())


async def erase(stack: Stack, user: str = "anna") -> Erased:
    return await erasure_of(stack).erase(user)


class Nothing:
    """Nothing outside the database and the indexes."""

    async def places(self, _: str) -> list[str]:
        return []

    async def clean(self, found: ErasureProgress) -> None: ...

    async def rewrite(self) -> None: ...

    def out_of_reach(self) -> list[str]:
        return ["the letters"]


async def rows(stack: Stack, *columns: Any) -> list[Any]:
    return list(await stack.database.rows(select(*columns)))


async def everything(stack: Stack) -> dict[str, list[str]]:
    """Every row of every table as text."""
    return {
        name: [str(tuple(row)) for row in await rows(stack, table)]
        for name, table in tables.metadata.tables.items()
    }


async def tables_with(stack: Stack, *words: str) -> set[str]:
    """The tables in which one of these words occurs."""
    found = await everything(stack)
    return {table for table, lines in found.items() for line in lines if any(word in line for word in words)}


async def fill(stack: Stack, user: str = "anna") -> None:
    """Some of everything that is kept of a person, in private and in a place."""
    now = stack.clock.now
    for place in (None, ACME):
        where = Place.parse(place)
        await stack.receive(f"{user} told the {place} of a zebrafish", user, place, author=user.title())
        await stack.remember(f"{user} has a zebrafish named {place}", user, place)
        await stack.remember(f"{user} is also called Zoe in {place}", user, place)
        await summarise(stack, f"{user} spoke of a zebrafish in {place}", user, place)
        await stack.tasks.update(user, f"feed the zebrafish of {place}", now=now, place=where)
        await ProfileStore(stack.database).merge(user, where, [Entry("profile.role", "", "zebrafish", now)])
    async with stack.database.write() as connection:
        await stack.queue.add(connection, "consolidate", user, {"said": "zebrafish"}, now)
        key = {"id": str(uuid4()), "name": "laptop", "kind": "user", "user_id": user, "digest": uuid4().hex}
        await connection.execute(insert(tables.api_keys).values(**key, created_at=now))
        place = {"place": f"place:the%20{user[0]}%20team", "listening": "mentions", "changed_by": user}
        await connection.execute(insert(tables.places).values(**place, changed_at=now))


async def summarise(stack: Stack, summary: str, user: str = "ben", place: str | None = ACME) -> int:
    """Store a summary of all messages there; returns the `seq` of the last."""
    where = Place.parse(place)
    talk, owner = f"dm:{user}" if where.private else where.key, owner_of(user, where)
    active = await stack.conversations.of(talk, owner, stack.clock.now)
    after = active.covered if active else 0
    covered = (await stack.transcript.following(talk, owner, 0, 50, most=50))[-1].seq
    assert await stack.store_summary(summary, after, covered, owner, talk)
    return covered


@on_both
async def test_nothing_of_a_person_is_left_anywhere(stack: Stack, tmp_path: Path) -> None:
    await fill(stack)
    assert await stack.indexing.rows() == 8
    before = await everything(stack)
    in_database = {"memories": 4, "messages": 2, "summaries": 1, "tasks": 2, "context": 2}
    in_database |= {"work": 1, "keys": 1, "names": 1, "person": 1}
    assert await erasure_of(stack).preview("anna") == in_database
    assert await erasure_of(stack).preview("nobody") == {}
    assert await everything(stack) == before, "a preview changes nothing"

    receipt = await erase(stack)

    assert (receipt.left, receipt.verified) == ((), True)
    assert dict(receipt.removed) == in_database | {"summaries of places": 1, "index": 7}
    assert await tables_with(stack, "anna", "Anna", "zebrafish", "Zoe") == set()
    assert await stack.indexing.rows() == 0
    assert await stack.queue.counts() == (1, 0), "the summary of the place is written again"
    setting = tables.places.c
    assert await rows(stack, setting.listening, setting.changed_by) == [("mentions", NOBODY)]
    files = list(tmp_path.glob("hachi.db*"))  # noqa: ASYNC240 - of a test
    assert (len(files) > 1) == stack.database.sqlite
    assert all(b"zebrafish" not in file.read_bytes() for file in files)
    again = await erase(stack)
    assert (dict(again.removed), again.left, again.verified) == ({}, (), True)


NAMING = {"user_id", "person", "owner", "owners", "author", "changed_by"}
"""Names of columns that say whose a row is. Those of traces are cleared outside, those of `erasures` last."""


async def test_every_column_that_names_people_is_cleared(stack: Stack) -> None:
    await fill(stack)
    now, id = stack.clock.now, str(uuid4())
    await stack.remember(
        "Anna has a zebrafish named Otto", "anna", replaces=(await stack.memories("anna"))[0].id
    )
    document = {"path": "a.md", "title": "a", "digest": "", "owner": "user:anna", "added_at": now}
    delivery = {"source": "chat", "seen_at": now, "user_id": "anna", "posts": ["chat:1"], "job": id}
    more: dict[Any, dict[str, Any]] = {
        tables.knowledge_documents: document,
        tables.forgettings: {"person": "anna", "at": now, "until": now, "why": "forgotten"},
        tables.figures: {"user_id": "anna", "name": "add", "value": 1},
        tables.check_ins: {"user_id": "anna", "since": now},
        tables.index_todo: {"owner": "user:anna", "kind": "memory"},
        tables.deliveries: delivery,
        tables.links: {"user_id": "anna", "person": "anna", "since": now},
        tables.link_codes: {"user_id": "anna", "wrong": 1},
    }
    async with stack.database.write() as connection:
        for table, row in more.items():
            await connection.execute(insert(table).values(**({"id": id} if "id" in table.c else {}), **row))
    naming = {
        (name, column.name)
        for name, table in tables.metadata.tables.items()
        for column in table.c
        if column.name in NAMING and name not in {"traces", "erasures", "unkept"}
    }
    held = [
        (name, column)
        for name, column in sorted(naming)
        for [value] in await rows(stack, tables.metadata.tables[name].c[column])
        if "anna" in str(value).casefold()
    ]
    assert set(held) == naming, "fill the new column too"

    assert (await erase(stack)).verified

    assert await tables_with(stack, "anna", "Anna") == set()


async def test_a_deleted_key_does_not_open_the_server_to_everybody(stack: Stack) -> None:
    made, secret = await Keys(stack.database).create("Anna's laptop", "user", "anna", now=stack.clock.now)

    receipt = await erase(stack)

    keys = Keys(stack.database)  # of a process that has just begun
    assert await keys.exist()
    assert await keys.check(secret, stack.clock.now) is None
    [left] = await keys.all()
    assert (left.id, left.user, left.revoked_at) == (made.id, NOBODY, stack.clock.now)
    assert await tables_with(stack, "anna", "Anna", digest(secret)) == set()
    assert (dict(receipt.removed), receipt.verified) == ({"keys": 1}, True)


@on_both
async def test_others_keep_everything(stack: Stack) -> None:
    await fill(stack, "ben")
    before = await everything(stack)
    await fill(stack, "anna")

    await erase(stack)

    after = await everything(stack)
    for found in (before, after):
        del found["changes"]
    # These are indexed again, or keep the setting that was made there, or that there was a key; the place's
    # summary is to be written again.
    changing = {"messages", "memories", "active_conversations", "places", "api_keys", "work"}
    assert all(set(before[table]) < set(after[table]) for table in ("api_keys", "work"))
    assert {t: after[t] for t in after.keys() - changing} == {t: before[t] for t in before.keys() - changing}
    assert all("anna" not in line for lines in after.values() for line in lines)
    assert [len(after[table]) for table in sorted(changing)] == [2, 2, 4, 2, 2, 2]
    assert len(await stack.memories("ben")) == 4
    assert await stack.found("zebrafish", "ben") >= {"ben told the None of a zebrafish"}


@pytest.mark.parametrize("first", ["anna", "ben"])
async def test_what_somebody_else_stated_too_is_theirs_alone(stack: Stack, first: str) -> None:
    said = await stack.receive(PARIS, first, ACME)
    await stack.remember(PARIS, first, ACME, message_id=said)
    await stack.remember(PARIS, "ben" if first == "anna" else "anna", ACME)

    receipt = await erase(stack)

    memory = await stack.the_memory("ben", ACME)
    assert (memory.content, memory.user_id) == (PARIS, "ben")
    assert memory.owners == {user_key("ben"), THERE.key}
    assert memory.message_id == (said if first == "ben" else None), "the evidence must be the other's own"
    assert [(left.kind, left.count, left.expected) for left in receipt.left] == [(SHARED, 1, True)]
    assert receipt.verified


@on_both
async def test_the_history_is_joined_around_their_statements(stack: Stack) -> None:
    stack.rule(True)
    ids = []
    for user, city in (("ben", PARIS), ("anna", LYON), ("anna", ROME), ("ben", OSLO)):
        ids.append((await stack.remember(city, user, ACME)).id)
        stack.clock.advance(days=1)

    receipt = await erase(stack)

    steps = await stack.history.of(str(ids[0]), Audience.of("cleo", THERE))
    assert [(step.old_content, step.new_content, step.user_id) for step in steps] == [(PARIS, OSLO, "ben")]
    assert await stack.known("cleo", ACME) == {OSLO}
    assert receipt.removed["history"] > 0


async def reply(stack: Stack, text: str, to: str, place: str | None = ACME, shown: Sequence[Any] = ()) -> str:
    """A reply of Hachi's that was written from what has these ids; its id."""
    return await stack.receive(text, to, place, role="assistant", author="hachi", shown=[*map(str, shown)])


KIWI = "Anna is allergic to kiwifruit"


async def replies_left(stack: Stack) -> list[str]:
    said = select(tables.messages.c.text).where(tables.messages.c.role == "assistant")
    return [row.text for row in await stack.database.rows(said.order_by(tables.messages.c.seq))]


@pytest.mark.parametrize("heard", ["memory", "message", "summary", "expired"])
async def test_a_reply_to_another_goes_that_was_shown_it_and_contains_it(stack: Stack, heard: str) -> None:
    thread = f"{ACME}/thread-7"
    said = await stack.receive("Hello! I am allergic to kiwifruit, Ben.", "anna", ACME)
    memory = await stack.remember("Anna is allergic to kiwifruit and Ben knows", "anna", ACME)
    week = await stack.remember("Anna avoids kiwifruit this week", "anna", ACME, message_id=said, ttl="7d")
    await summarise(stack, "Kiwifruit is nothing for Anna.", "anna")
    [summary] = await rows(stack, tables.active_conversations.c.id)
    shown = {"memory": memory.id, "message": said, "summary": summary.id, "expired": week.id}[heard]
    told = "Anna is allergic to kiwifruit, and Ben knows."
    await stack.receive("What should I cook?", "ben", thread)
    first = await reply(stack, told, "ben", thread, [shown])
    await reply(stack, f"As I said: {told}", "cleo", thread, [first])
    rest = ["No fruit salad!", told, "Soup is good on a Sunday."]
    await reply(stack, rest[0], "ben", thread, [shown])
    await reply(stack, rest[1], "ben", thread, [str(uuid4())])
    await reply(stack, rest[2], "ben", thread)
    stack.clock.advance(days=8)
    assert await stack.expire() == [], "the summary is to be told of it"
    stack.clock.advance(days=1)
    assert [one.id for one in await stack.expire()] == [week.id]

    receipt = await erase(stack)

    assert await replies_left(stack) == rest
    assert (receipt.verified, receipt.removed["replies"]) == (True, 2)
    assert [(left.kind, left.count, left.expected) for left in receipt.left] == [(SHOWN, 1, True)]
    assert await stack.shown(first) == set()


async def test_a_reply_stays_that_contains_what_somebody_else_told_it_too(stack: Stack) -> None:
    boat, bicycle = "Anna's boat is called Gull", "Anna has a green bicycle from Delft"
    shared = await stack.remember(KIWI, "anna", ACME)
    await stack.remember(KIWI, "cleo", ACME)
    anna = await stack.receive("I have a green bicycle from Delft", "anna", ACME)
    cleo = await stack.receive(bicycle, "cleo", ACME)
    alone = await stack.remember(boat, "anna", ACME)
    for text, shown in ((KIWI, [shared.id]), (bicycle, [anna, cleo]), (boat, [alone.id]), (bicycle, [anna])):
        await reply(stack, text, "ben", shown=shown)
    await reply(stack, boat, "ben", shown=[cleo])

    receipt = await erase(stack)

    assert await replies_left(stack) == [KIWI, bicycle, boat]
    assert {left.kind: left.count for left in receipt.left} == {SHARED: 1, SHOWN: 1}


async def found_by(stack: Stack, word: str) -> int:
    """How many messages in the place the index finds by this word, their own or a neighbour's."""
    question = Question(frozenset({THERE.key}), stack.clock.now, text=word)
    return len((await stack.indexing.search(question)).window_words)


async def test_the_summary_of_a_place_is_rebuilt_from_what_is_left(stack: Stack) -> None:
    for number in range(4):
        await stack.receive(f"message {number}", "ben", ACME)
    await stack.receive("I am ill", "anna", ACME)
    await stack.receive("Get well", "ben", ACME)
    await summarise(stack, "Anna is ill")

    receipt = await erase(stack)

    active = await stack.conversations.of(THERE.key, THERE.key, stack.clock.now)
    assert active
    assert (active.summary, active.withheld) == ("", True)
    async with stack.database.read() as connection:
        left = await remaining_messages(connection, THERE.key, THERE.key, active.covered, 50)
    assert [message.text for message in left] == [f"message {n}" for n in range(4)] + ["Get well"]
    assert CONSOLIDATE in {job.kind for job in await stack.queue.claim_due(stack.clock.now, 9)}
    assert await stack.shown(active.id) == set()
    assert receipt.removed["summaries of places"] == 1


@on_both
async def test_shared_names_and_shared_conversation_ids_stay_the_others(stack: Stack) -> None:
    for user, author in (("anna", "Sam"), ("anna", "Annie"), ("ben", "Sam")):
        await stack.receive("hello", user, ACME, author=author)
    for user in ("anna", "ben"):
        await stack.receive("hello", user, conversation="travel")

    await erase(stack)

    speakers, conversations = tables.speakers.c, tables.conversations.c
    names = await rows(stack, speakers.owner, speakers.author)
    assert {row.author for row in names if row.owner == THERE.key} == {"Sam"}
    assert await stack.transcript.speakers.authors(Audience.of("ben", THERE)) >= {"Sam"}
    assert ("travel", "ben") in await rows(stack, conversations.id, conversations.user_id)
    assert await tables_with(stack, "anna", "Annie") == set()


async def test_an_unavailable_index_is_named_and_cleaned_later(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = {"collection": "hachi", "mark": "1", "until": stack.clock.now}
    await stack.database.run(insert(tables.index_marks).values(mark))  # there is an index on a server
    await fill(stack)
    away = AsyncMock(side_effect=IndexUnavailable("it is away"))
    with monkeypatch.context() as patch:
        patch.setattr(stack.indexing, "erase", away)
        receipt = await erase(stack)

    assert not receipt.verified
    [left] = receipt.left
    assert (left.kind, left.count, left.expected) == ("index", 7, False)
    assert await tables_with(stack, "anna", "zebrafish") == {"erasures"}
    assert await tables_with(stack, "zebrafish") == set()
    assert await rows(stack, tables.index_todo.c.id), "what the server is to remove"
    assert (await erase(stack)).verified


async def test_files_that_another_process_reads_are_named_and_rewritten_later(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.sql.engine.database.BUSY_SECONDS", 0.1)
    await fill(stack)
    with closing(sqlite3.connect(stack.database.where, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM messages").fetchall()
        receipt = await erase(stack)
        assert [(left.kind, left.expected) for left in receipt.left] == [("files", False)]
        assert not receipt.verified
    assert [one.verified for one in await erasure_of(stack).resume()] == [True]
    files = b"".join(path.read_bytes() for path in tmp_path.glob("hachi.db*"))  # noqa: ASYNC240 - of a test
    assert b"zebrafish" not in files


@pytest.mark.parametrize("last", ["_hide", "_clean_index"])
async def test_the_next_run_completes_a_run(stack: Stack, last: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(stack)
    first = erasure_of(stack)
    step = getattr(first, last)

    async def crashes(*given: Any) -> None:
        await step(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(first, last, crashes)
    with suppress(KeyboardInterrupt):
        await first.erase("anna")
    assert (await erase(stack)).verified
    assert await tables_with(stack, "anna", "Anna", "zebrafish", "Zoe") == set()
    assert await stack.indexing.rows() == 0


async def test_what_arrives_at_the_last_moment_is_named(stack: Stack) -> None:
    said = "my zebrafish is called Otto"
    await stack.receive(said, "anna", ACME)
    await stack.remember("Anna skis", "anna")
    seen = []

    class Late(Nothing):
        async def clean(self, found: ErasureProgress) -> None:
            seen.append((found.texts, len(found.ids)))
            assert await stack.known("anna") == await stack.found("zebrafish", "anna", ACME) == set()
            found.counts["letters"] += 1
            if len(seen) == 2:
                await stack.receive("me again", "anna")

    receipt = await erasure_of(stack, outside=Late()).erase("anna")

    assert not receipt.verified
    assert ("messages", 1, False) in [(left.kind, left.count, left.expected) for left in receipt.left]
    assert seen == [({said}, 2)] * 2
    assert receipt.removed["letters"] == 2
    assert (await erase(stack)).removed["letters"] == 2, "the receipt counts what both runs removed"


async def test_what_others_said_and_global_memories_stay_and_answers_to_them_go(stack: Stack) -> None:
    said = "Anna wrote: my zebrafish is called Otto"
    await stack.receive("my zebrafish is called Otto", "anna", ACME)
    await reply(stack, "Hello Anna", "anna")
    await stack.receive(said, "ben", ACME)
    closed = await stack.remember("The office is closed on Sundays", "anna", everybody=True)

    receipt = await erase(stack)

    assert (receipt.verified, receipt.left, receipt.removed["messages"]) == (True, (), 2)
    assert [row.text for row in await rows(stack, tables.messages.c.text)] == [said]
    whole = json.loads(json.dumps(receipt.to_json()))
    assert (whole["user"], whole["verified"], whole["removed"]) == ("anna", True, dict(receipt.removed))
    assert (await stack.the_memory("ben")).user_id == NOBODY
    assert await stack.shown(str(closed.id)) == {closed.id}


@on_both
async def test_others_may_go_on_talking_meanwhile(stack: Stack) -> None:
    for city in (PARIS, LYON, ROME):
        await stack.remember(city, "anna", ACME)
        await stack.receive(f"{city} says zqanna", "anna", ACME)
    talking = [stack.remember(text, "ben", ACME) for text in (PARIS, LYON, ROME, "Mickael has a dog") * 3]
    hearing = [stack.receive(f"message {number}", "ben", ACME) for number in range(10)]

    await asyncio.gather(erase(stack), *talking, *hearing)

    assert (await erase(stack)).verified
    assert await tables_with(stack, "anna") == set()
    assert await found_by(stack, "zqanna") == 0
    assert "Mickael has a dog" in await stack.known("ben")
    said = [row.text for row in await rows(stack, tables.messages.c.text)]
    assert sorted(said) == sorted(f"message {number}" for number in range(10))


async def test_nothing_is_kept_of_a_message_that_was_erased(stack: Stack) -> None:
    said = await stack.receive("I ski", "anna")
    await erase(stack)

    origin = Provenance("anna", stack.clock.now, message_id=said, live=True)
    [decision] = await stack.writer.remember([NewMemory("Anna skis")], origin)
    with pytest.raises(NotFound, match="has been erased"):
        await stack.tasks.update("anna", "wax the skis", now=stack.clock.now, message_id=said, place=PRIVATE)

    assert (decision.action, decision.reason) == ("ignore", "the message it came from has been erased")
    assert await tables_with(stack, "anna", "skis") == set()


async def test_documents_are_deleted_with_their_passages(
    stack: Stack, tmp_path: Path, build_stack: StackBuilder, bundled: Any
) -> None:
    own = await build_stack(stack.database, bundled)
    knowledge = DocumentLibrary(own.database, own.indexing, own.embedder, own.clock)
    for owner in ("anna", "ben"):
        paper = tmp_path / owner / "paper.md"
        paper.parent.mkdir()
        paper.write_text(f"# {owner}\n\nThe {owner} paper tells of lighthouses.")
        await knowledge.add([paper], user_key(owner))
        await own.remember(f"{owner} has a lighthouse", owner)

    receipt = await erasure_of(own, knowledge).erase("anna")

    assert receipt.verified
    assert receipt.removed["documents"] == 1
    assert await own.indexing.rows() == 2
    assert await tables_with(own, "anna") == set()
    assert await own.found("lighthouse", "ben") == {"ben has a lighthouse"}
