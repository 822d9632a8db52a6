"""Forgetting what a person stated, on both databases."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, Place
from memory.erasure import restore
from memory.erasure.statements import StatementForgetting
from memory.errors import NotFound
from memory.facts.derived.sources import entry_id
from memory.people.profile_entries import Entry
from memory.people.profile_store import ProfileStore
from memory.process.spans import new_id
from memory.records import Forgotten, Memory, Message
from memory.sql.engine.errors import Overtaken
from memory.sql.jobs import FORGET_OUTSIDE
from memory.sql.rests_on import record
from memory.sql.tables import metadata

if TYPE_CHECKING:
    from tests.memory.conftest import Stack

on_both = pytest.mark.parametrize("on_database", ["sqlite", "postgresql"], indirect=True)
PIN = "my bank PIN is 4711"


async def told(stack: Stack, text: str, fact: str, user: str = "anna", place: str | None = None) -> str:
    """A message from which a fact was learned; the message's id."""
    message = await stack.receive(text, user, place)
    await stack.remember(fact, user, place, message_id=message, said=text, live=True)
    return message


async def answered(
    stack: Stack, text: str, user: str = "anna", place: str | None = None, conversation: str | None = None
) -> str:
    """A reply of Hachi's to the person; its id."""
    where = Place.parse(place)
    talk = conversation or (f"dm:{user}" if where.private else where.key)
    message = Message(new_id(), talk, "assistant", "hachi", text, stack.clock.now)
    async with stack.database.write() as connection:
        await stack.transcript.append(connection, message, user=user, place=where, now=stack.clock.now)
        await stack.transcript.note_answer(connection, message, user, where)
    return message.id


async def the_memory(stack: Stack, content: str, user: str = "anna", place: str | None = None) -> Memory:
    [memory] = [memory for memory in await stack.memories(user, place) if memory.content == content]
    return memory


async def forget(stack: Stack, content: str, user: str = "anna", place: str | None = None) -> Forgotten:
    receipt, _ = await stack.statements.forget(await the_memory(stack, content, user, place), user)
    await stack.indexing.catch_up()
    return receipt


async def transcript(stack: Stack, user: str = "anna", place: str | None = None) -> list[str]:
    """The texts in order; a forgotten one is empty."""
    page = await stack.transcript.page(Audience.of(user, Place.parse(place)), 50)
    assert all(bool(line.text) == (line.forgotten_at is None) for line in page)
    return [line.text for line in reversed(page)]


async def everything(stack: Stack, *but: str) -> str:
    """All rows of all tables except these, as text, without what the index changes in them."""
    found = []
    async with stack.database.read() as connection:
        for table in metadata.sorted_tables:
            columns = [c for c in table.columns if c.name != "revision"]
            if table.name not in (*but, "changes"):
                found += map(repr, await connection.execute(select(*columns)))
    return "\n".join(sorted(found))


async def jobs(stack: Stack, *kinds: str) -> list[dict[str, Any]]:
    work = metadata.tables["work"]
    async with stack.database.read() as connection:
        rows = await connection.execute(select(work).where(work.c.kind.in_(kinds)).order_by(work.c.kind))
        return [row.payload for row in rows]


async def test_a_forgotten_fact_takes_its_message_and_the_reply_to_it(stack: Stack) -> None:
    await told(stack, PIN, "Anna's bank PIN is 4711")
    await answered(stack, "Noted.")
    await told(stack, "I like tea", "Anna likes tea")
    await answered(stack, "Tea it is.")
    receipt = await forget(stack, "Anna's bank PIN is 4711")
    assert (receipt.content, receipt.messages, receipt.replies) == ("Anna's bank PIN is 4711", 1, 1)
    assert await transcript(stack) == ["", "", "I like tea", "Tea it is."]
    assert await stack.known() == {"Anna likes tea"}
    assert "4711" not in await everything(stack, "forgotten", "work")
    assert await stack.found("bank PIN 4711") <= {"Anna likes tea", "I like tea", "Tea it is."}


async def test_every_message_that_stated_it_goes_however_often_it_was_said(stack: Stack) -> None:
    await told(stack, PIN, "Anna's bank PIN is 4711")
    await told(stack, "again: it is 4711, the bank PIN", "Anna's bank PIN is 4711")
    await stack.receive("remember that my bank PIN is 4711!")
    await stack.receive("what is my bank PIN?")
    receipt = await forget(stack, "Anna's bank PIN is 4711")
    assert receipt.messages == 3
    assert await transcript(stack) == ["", "", "", "what is my bank PIN?"]


async def test_replies_that_repeat_it_go_from_every_conversation_of_its_readers(stack: Stack) -> None:
    await told(stack, "I live in Paris", "Anna lives in Paris", place="acme")
    await stack.receive("where does Anna live?", "ben", "acme")
    await answered(stack, "Anna lives in Paris.", "ben", "acme")
    await answered(stack, "You live in Paris.", "anna")
    await stack.receive("where is the fair?", "cleo", "other")
    await answered(stack, "It takes place in Paris, where Anna lives.", "cleo", "other")
    receipt = await forget(stack, "Anna lives in Paris")
    assert (receipt.messages, receipt.replies) == (1, 2)
    assert await transcript(stack, "ben", "acme") == ["", "where does Anna live?", ""]
    assert await transcript(stack, "cleo", "other") == [
        "where is the fair?",
        "It takes place in Paris, where Anna lives.",
    ]


async def test_what_says_less_of_it_goes_too_and_what_says_something_else_stays(stack: Stack) -> None:
    stays = {"Citalopram makes Anna tired", "Anna takes aspirin", "Anna takes citalopram for her sister"}
    for fact in ("Anna takes citalopram.", "Anna takes citalopram for her depression.", *stays):
        await stack.remember(fact)
    receipt = await forget(stack, "Anna takes citalopram for her depression.")
    assert len(receipt.memories) == 2
    assert await stack.known() == stays


@on_both
async def test_what_others_said_and_know_is_never_taken(stack: Stack) -> None:
    await told(stack, "our office moves to Lyon", "The office moves to Lyon", "anna", "acme")
    await told(stack, "yes, the office moves to Lyon", "The office moves to Lyon", "ben", "acme")
    await stack.receive("is it true?", "ben", "acme")
    await answered(stack, "The office moves to Lyon.", "ben", "acme")
    await forget(stack, "The office moves to Lyon", "anna")
    assert await stack.known("ben", "acme") == {"The office moves to Lyon"}
    assert await transcript(stack, "ben", "acme") == [
        "",
        "yes, the office moves to Lyon",
        "is it true?",
        "The office moves to Lyon.",
    ]
    kept = await stack.the_memory("ben", "acme")
    assert kept.user_id == "ben"
    assert kept.message_id is not None
    assert await stack.known("anna") == set()


async def test_only_who_stated_a_fact_may_have_it_forgotten(stack: Stack) -> None:
    await told(stack, PIN, "Anna's bank PIN is 4711", "anna", "acme")
    memory = await the_memory(stack, "Anna's bank PIN is 4711", "ben", "acme")
    with pytest.raises(NotFound, match="not ben's"):
        await stack.statements.forget(memory, "ben")
    assert await transcript(stack, "anna", "acme") == [PIN]


async def test_what_it_had_replaced_and_its_other_wordings_go_too(stack: Stack) -> None:
    await told(stack, "I live in Paris", "Anna lives in Paris")
    old = await stack.the_memory()
    await stack.remember("Anna lives in Lyon", replaces=old.id)
    await stack.receive("Paris is where I used to live")
    await stack.remember("In Lyon lives Anna!", place="acme")
    receipt = await forget(stack, "Anna lives in Lyon")
    assert {memory.content for memory in receipt.memories} >= {"Anna lives in Paris", "Anna lives in Lyon"}
    left = await everything(stack, "forgotten", "work")
    assert "Paris" not in left
    assert "Lyon" not in left


@pytest.mark.parametrize("also_told_by", [None, "ben"])
async def test_what_it_had_replaced_in_private_goes_from_the_place_unless_somebody_else_told_it(
    stack: Stack, also_told_by: str | None
) -> None:
    await told(stack, "the office is in Lyon", "The office is in Lyon", "anna", "acme")
    if also_told_by:
        await told(stack, "yes, the office is in Lyon", "The office is in Lyon", also_told_by, "acme")
    old = await stack.the_memory("anna", "acme")
    await stack.remember("The office is in Nice", replaces=old.id)
    assert await stack.known("cleo", "acme") == {"The office is in Lyon"}
    await stack.indexing.catch_up()
    before = await everything(stack, "work", "forgotten")
    receipt = await forget(stack, "The office is in Nice")
    assert {memory.content for memory in receipt.memories} == {
        "The office is in Nice",
        "The office is in Lyon",
    }
    assert await stack.known("cleo", "acme") == ({"The office is in Lyon"} if also_told_by else set())
    assert await stack.known("anna") == set()
    await stack.statements.undo(str(receipt.undo_id), "anna")
    await stack.indexing.catch_up()
    assert await everything(stack, "work", "forgotten") == before


async def task(stack: Stack, description: str, user: str = "anna", place: str | None = None) -> None:
    where = Place.parse(place)
    await stack.tasks.update(user, description, now=stack.clock.now, place=where, alike=False)


async def tasks_of(stack: Stack, user: str = "anna") -> set[str]:
    return {task.description for task in await stack.tasks.list(user, Place(), done=True)}


async def test_tasks_made_from_a_forgotten_message_go_with_it_and_come_back(stack: Stack) -> None:
    message = await stack.receive("remind me to call the clinic on Friday about my rash")
    for user, place in (("anna", None), ("anna", "acme"), ("ben", None)):
        await task(stack, "call the clinic about the rash", user, place)
    await task(stack, "call the garage on Friday")
    listed = await answered(stack, "Still to do: call the clinic about the rash.", conversation="later")
    before = await everything(stack, "work", "forgotten")
    receipt, _ = await stack.statements.forget_message(message, "anna")
    assert (receipt.tasks, receipt.messages, receipt.replies) == (2, 1, 1), listed
    assert await tasks_of(stack) == {"call the garage on Friday"}
    assert await tasks_of(stack, "ben") == {"call the clinic about the rash"}
    back = await stack.statements.undo(str(receipt.undo_id), "anna")
    assert back.tasks == 2
    await stack.indexing.catch_up()
    assert await everything(stack, "work", "forgotten") == before


async def test_tasks_that_repeat_a_forgotten_fact_go_but_not_where_somebody_else_told_it(
    stack: Stack,
) -> None:
    for user in ("anna", "ben"):
        await told(stack, "the audit is in Nice", "The audit is in Nice", user, "acme")
    await task(stack, "book a train for the audit in Nice")
    await task(stack, "print the list for the audit in Nice", place="acme")
    await task(stack, "visit Nice")
    receipt = await forget(stack, "The audit is in Nice", place="acme")
    assert receipt.tasks == 1
    assert await tasks_of(stack) == {"print the list for the audit in Nice", "visit Nice"}


@on_both
async def test_an_earlier_undo_brings_back_no_task_of_what_was_forgotten_later(stack: Stack) -> None:
    message = await told(stack, "remind me to ask Ben about my rash, it is bad", "Anna has a rash")
    await task(stack, "ask Ben about the rash")
    rash = await forget(stack, "Anna has a rash")
    again = await stack.receive("remind me to ask Ben about my rash")
    await stack.statements.forget_message(again, "anna")
    assert message not in await transcript(stack)
    assert (await stack.statements.undo(str(rash.undo_id), "anna")).tasks == 0
    assert await tasks_of(stack) == set()


@on_both
async def test_tasks_made_from_a_message_that_a_forgotten_fact_empties_go_but_not_what_stays_known(
    stack: Stack,
) -> None:
    message = await told(
        stack, "I have a rash. Remind me to call the clinic. My boat leaks!", "Anna has a rash"
    )
    await stack.remember("Anna's boat leaks", message_id=message)
    for what in ("call the clinic", "mend the boat that leaks", "call the garage"):
        await task(stack, what)
    for reply in ("On your list: call the clinic.", "Your boat leaks."):
        await answered(stack, reply, conversation="later")
    before = await everything(stack, "work", "forgotten")
    receipt = await forget(stack, "Anna has a rash")
    assert (receipt.tasks, receipt.messages, receipt.replies) == (1, 1, 1)
    assert await tasks_of(stack) == {"mend the boat that leaks", "call the garage"}
    assert await transcript(stack) == ["", "", "Your boat leaks."]
    await stack.statements.undo(str(receipt.undo_id), "anna")
    await stack.indexing.catch_up()
    assert await everything(stack, "work", "forgotten") == before


async def test_a_fact_takes_the_messages_that_show_its_number_or_ask_to_forget_it(stack: Stack) -> None:
    await told(stack, PIN, "Anna's bank PIN is 4711")
    for text in ("Is 4711 my PIN?", "4711!", "please forget my PIN", "I pay 4711 euros", "what is a PIN?"):
        await stack.receive(text)
    await stack.receive("my bike has 4711 on it", "ben")
    receipt = await forget(stack, "Anna's bank PIN is 4711")
    assert receipt.messages == 4
    assert await transcript(stack) == ["", "", "", "", "I pay 4711 euros", "what is a PIN?"]
    assert await transcript(stack, "ben") == ["my bike has 4711 on it"]


@on_both
async def test_a_request_to_forget_takes_no_task_that_was_told_beside_it(stack: Stack) -> None:
    await told(stack, PIN, "Anna's bank PIN is 4711")
    message = await stack.receive("forget the number, and remind me to call Ben")
    await task(stack, "call Ben")
    memory = await the_memory(stack, "Anna's bank PIN is 4711")
    receipt, _ = await stack.statements.forget(memory, "anna", asked_in=message)
    assert (receipt.messages, await transcript(stack)) == (2, ["", ""])
    assert await tasks_of(stack) == {"call Ben"}


async def test_other_facts_from_the_same_message_stay(stack: Stack) -> None:
    message = await told(stack, "my bank PIN is 4711 and I have a boat", "Anna's bank PIN is 4711")
    await stack.remember("Anna has a boat", message_id=message)
    await forget(stack, "Anna's bank PIN is 4711")
    [boat] = await stack.memories()
    assert (boat.content, boat.message_id) == ("Anna has a boat", message)
    assert await transcript(stack) == [""]


@on_both
async def test_derived_texts_are_withheld(stack: Stack) -> None:
    await told(stack, PIN, "Anna's bank PIN is 4711")
    await stack.summarise("Anna told her bank PIN, 4711.")
    receipt = await forget(stack, "Anna's bank PIN is 4711")
    assert receipt.summaries == 1
    assert not [hit for hit in await stack.search("bank PIN") if "4711" in hit.content]


@on_both
async def test_what_the_profile_says_of_it_goes_and_comes_back(stack: Stack) -> None:
    message = await told(stack, "I live in Paris", "Anna lives in Paris")
    profiles = ProfileStore(stack.database)
    entry = Entry("profile.location", "", "Paris", stack.clock.now, message_id=message)
    async with stack.database.write() as connection:
        await profiles.merge_in(connection, "anna", Place(), [entry])
    receipt = await forget(stack, "Anna lives in Paris")
    assert receipt.summaries == 1
    assert "Paris" not in await everything(stack, "forgotten", "work")
    await stack.statements.undo(str(receipt.undo_id), "anna")
    assert (await profiles.view("anna", Place(), stack.clock.now)).profile.location == "Paris"


async def noted_of(
    stack: Stack, field: str, value: str, message: str | None, user: str, place: str = ""
) -> None:
    """An entry of the profile that rests on a message."""
    entry = Entry(field, "", value, stack.clock.now, message_id=message)
    async with stack.database.write() as connection:
        await ProfileStore(stack.database).merge_in(connection, user, Place.parse(place), [entry])


@on_both
@pytest.mark.parametrize("deleted", ["forgotten", "over the cap"])
async def test_what_somebody_else_told_too_stays_in_their_profile_and_summaries(
    stack: Stack, deleted: str
) -> None:
    await told(stack, "our office is in Lyon", "The office is in Lyon", "anna", "acme")
    bens = await told(stack, "yes, the office is in Lyon", "The office is in Lyon", "ben", "acme")
    await noted_of(stack, "profile.location", "Lyon", bens, "ben", "acme")
    shared = await stack.the_memory("anna", "acme")
    if deleted == "forgotten":
        receipt, _ = await stack.statements.forget(shared, "anna")
    else:
        await stack.forgetting.delete(shared, "anna")
    profiles = ProfileStore(stack.database)
    assert (await profiles.view("ben", Place(), stack.clock.now)).profile.location == "Lyon"
    if deleted == "forgotten":
        await stack.statements.undo(str(receipt.undo_id), "anna")
        assert (await profiles.view("ben", Place(), stack.clock.now)).profile.location == "Lyon"


async def test_what_it_had_replaced_for_its_teller_alone_stays_with_others(stack: Stack) -> None:
    await told(stack, "our office is in Lyon", "The office is in Lyon", "anna", "acme")
    bens = await told(stack, "yes, the office is in Lyon", "The office is in Lyon", "ben", "acme")
    await noted_of(stack, "profile.location", "Lyon", bens, "ben", "acme")
    old = await stack.the_memory("ben", "acme")
    await stack.remember("The office is in Nice", replaces=old.id)
    await forget(stack, "The office is in Nice")
    known = await ProfileStore(stack.database).view("ben", Place(), stack.clock.now)
    assert known.profile.location == "Lyon"
    assert await transcript(stack, "ben", "acme") == ["", "yes, the office is in Lyon"]


@on_both
async def test_an_undo_replaces_again_what_a_deleted_message_had_given_back(stack: Stack) -> None:
    old = await stack.remember("Anna lives in Paris")
    message = await stack.receive("Lyon, I mean")
    await stack.remember("Anna lives in Lyon", replaces=old.id, message_id=message)
    await stack.indexing.catch_up()
    before = await everything(stack, "work", "forgotten")
    receipt, _ = await stack.statements.forget_message(message, "anna")
    assert [memory.content for memory in receipt.memories] == ["Anna lives in Lyon"]
    await stack.statements.undo(str(receipt.undo_id), "anna")
    assert await stack.known() == {"Anna lives in Lyon"}
    assert await everything(stack, "work", "forgotten") == before


async def test_an_earlier_undo_brings_back_nothing_that_was_forgotten_later(stack: Stack) -> None:
    message = await told(stack, "my PIN is 4711 and I have a boat", "Anna's PIN is 4711")
    await stack.remember("Anna has a boat", message_id=message)
    await told(stack, "I like tea. My PIN is 4711", "Anna likes tea")
    pin = await forget(stack, "Anna's PIN is 4711")
    await told(stack, "my PIN is 4711, I said", "Anna's PIN is 4711")
    boat = await forget(stack, "Anna has a boat")
    await stack.statements.undo(str(pin.undo_id), "anna")
    assert await stack.known() == {"Anna's PIN is 4711", "Anna likes tea"}
    assert await transcript(stack) == ["", "I like tea. My PIN is 4711", "my PIN is 4711, I said"]
    assert "boat" not in await everything(stack, "forgotten", "work")
    await stack.statements.undo(str(boat.undo_id), "anna")
    assert "Anna has a boat" in await stack.known()


async def test_what_was_told_and_forgotten_again_stays_forgotten_after_the_earlier_undo(stack: Stack) -> None:
    await told(stack, PIN, "Anna's bank PIN is 4711")
    first = await forget(stack, "Anna's bank PIN is 4711")
    await told(stack, PIN, "Anna's bank PIN is 4711")
    await forget(stack, "Anna's bank PIN is 4711")
    await stack.statements.undo(str(first.undo_id), "anna")
    assert await stack.known() == set()
    assert "4711" not in await everything(stack, "forgotten", "work")


@on_both
async def test_of_entries_without_a_message_only_those_that_repeat_the_forgotten_one_go(stack: Stack) -> None:
    await noted_of(stack, "profile.location", "Paris", None, "anna")
    await noted_of(stack, "profile.role", "nurse", None, "anna")
    message = await stack.receive("I live in Paris", sent_at=stack.clock.now)
    await stack.statements.forget_message(message, "anna")
    profile = (await ProfileStore(stack.database).view("anna", Place(), stack.clock.now)).profile
    assert (profile.location, profile.role) == (None, "nurse")


@on_both
async def test_a_value_of_several_possible_messages_is_forgotten_again_after_an_undo(stack: Stack) -> None:
    message = await stack.receive("My aunt's funeral was on Monday", sent_at=stack.clock.now)
    await noted_of(stack, "profile.role", "mourner", None, "anna")
    async with stack.database.write() as connection:
        id = entry_id("anna", "", "profile.role", "")
        await record(connection, id, {message, "another"}, "stated")
    before = await everything(stack, "work", "forgotten")
    for _ in range(2):
        receipt, _job = await stack.statements.forget_message(message, "anna")
        gone = await everything(stack, "work", "forgotten")
        assert "mourner" not in gone
        assert id not in gone
        await stack.statements.undo(str(receipt.undo_id), "anna")
        assert await everything(stack, "work", "forgotten") == before


async def test_a_writer_that_still_works_on_a_forgotten_message_stores_nothing(stack: Stack) -> None:
    message = await told(stack, PIN, "Anna's bank PIN is 4711")
    await forget(stack, "Anna's bank PIN is 4711")
    decision = await stack.remember("Anna's bank PIN is 4711", message_id=message, said=PIN, live=True)
    assert (decision.action, decision.id) == ("ignore", None)
    assert await stack.known() == set()
    await stack.remember("Anna's bank PIN is 4711")
    assert await stack.known() == {"Anna's bank PIN is 4711"}  # said anew


@on_both
async def test_waiting_jobs_are_cleaned_and_the_outside_is_left_to_a_job(stack: Stack) -> None:
    await told(stack, PIN, "Anna's bank PIN is 4711")
    async with stack.database.write() as connection:
        for kind in ("repeats", "done with", "other"):
            await stack.queue.add(connection, kind, "anna", {"text": "PIN 4711"}, stack.clock.now)
    clean: dict[str, Any] = {"repeats": {"text": ""}, "done with": None, "other": {"text": "PIN 4711"}}
    stack.statements = StatementForgetting(
        stack.database, stack.queue, stack.clock, lambda kind, *_: clean[kind], timedelta(minutes=10)
    )
    receipt = await forget(stack, "Anna's bank PIN is 4711")
    assert await jobs(stack, *clean) == [{"text": "PIN 4711"}, {"text": ""}]
    outside, at_the_end = await jobs(stack, FORGET_OUTSIDE)
    assert outside == at_the_end
    assert receipt.id in outside["ids"]
    await stack.statements.undo(str(receipt.undo_id), "anna")
    assert sorted(map(json.dumps, await jobs(stack, *clean))) == [json.dumps({"text": "PIN 4711"})] * 3
    assert await jobs(stack, FORGET_OUTSIDE) == [{}], "traces come back"


@on_both
async def test_an_undo_restores_every_row(stack: Stack) -> None:
    await told(stack, "I live in Paris", "Anna lives in Paris", place="acme")
    old = await stack.the_memory(place="acme")
    await stack.remember("Anna lives in Lyon with Ben", place="acme", replaces=old.id)
    await told(stack, "call me Annie", "Anna is also called Annie")
    await answered(stack, "You live in Lyon with Ben.")
    await stack.indexing.catch_up()
    before = await everything(stack, "work", "forgotten")
    receipt = await forget(stack, "Anna lives in Lyon with Ben")
    assert await everything(stack, "work", "forgotten") != before
    back = await stack.statements.undo(str(receipt.undo_id)[:8], "anna")
    await stack.indexing.catch_up()
    after = await everything(stack, "work", "forgotten")
    assert after == before
    assert back.content == "Anna lives in Lyon with Ben"
    assert (back.messages, back.replies) == (receipt.messages, receipt.replies)
    assert "Anna lives in Lyon with Ben" in await stack.found("where does Anna live?")


@on_both
async def test_an_undo_is_the_persons_own_and_ends(stack: Stack) -> None:
    await told(stack, PIN, "Anna's bank PIN is 4711")
    receipt = await forget(stack, "Anna's bank PIN is 4711")
    assert receipt.undo_until == stack.clock.now + timedelta(minutes=10)
    for id, user in ((str(receipt.undo_id), "ben"), ("", "anna"), ("%", "anna")):
        with pytest.raises(NotFound):
            await stack.statements.undo(id, user)
    assert await stack.statements.purge_undo() == []
    stack.clock.move(minutes=10)
    with pytest.raises(NotFound, match="gone for good"):
        await stack.statements.undo(str(receipt.undo_id), "anna")
    waiting = {job.id for job in await stack.queue.of_kind(FORGET_OUTSIDE)}
    assert set(await stack.statements.purge_undo()) == waiting
    assert "4711" not in await everything(stack, "work")


@on_both
async def test_what_names_an_erased_person_cannot_be_brought_back(stack: Stack) -> None:
    place = Place.parse("acme").key
    for by in ("name", "message", "place"):
        await told(stack, "I live in Paris", "Anna lives in Paris", place="acme")
        reply = await answered(stack, "Anna lives in Paris.", "ben", "acme")
        receipt = await forget(stack, "Anna lives in Paris", "anna")
        async with stack.database.write() as connection:
            await restore.drop_naming(connection, {"cleo"}, {"another"}, {"place:other"})
        assert str(receipt.undo_id) in await everything(stack)
        async with stack.database.write() as connection:
            await restore.drop_naming(
                connection,
                {"user:anna"} if by == "name" else {"ben"},
                {reply} if by == "message" else set(),
                {place} if by == "place" else set(),
            )
        assert str(receipt.undo_id) not in await everything(stack)


async def test_without_an_undo_nothing_is_kept(stack: Stack) -> None:
    stack.statements = StatementForgetting(
        stack.database, stack.queue, stack.clock, lambda kind, user, payload, data: payload, timedelta()
    )
    await told(stack, PIN, "Anna's bank PIN is 4711")
    receipt = await forget(stack, "Anna's bank PIN is 4711")
    assert (receipt.undo_id, receipt.undo_until) == (None, None)
    assert "4711" not in await everything(stack, "work")


async def test_an_undo_leaves_what_was_stated_again_meanwhile(stack: Stack) -> None:
    await told(stack, PIN, "Anna's bank PIN is 4711")
    receipt = await forget(stack, "Anna's bank PIN is 4711")
    await stack.remember("Anna's bank PIN is 4711")
    await stack.statements.undo(str(receipt.undo_id), "anna")
    assert [memory.content for memory in await stack.memories()] == ["Anna's bank PIN is 4711"]
    assert await transcript(stack) == [PIN]


async def test_a_message_is_forgotten_with_the_facts_that_rest_on_it_alone(stack: Stack) -> None:
    await told(stack, "I live in Paris", "Anna lives in Paris")
    paris = await stack.the_memory()
    message = await told(stack, "I have a boat", "Anna has a boat")
    await stack.remember("Anna lives in Lyon", message_id=message, source="conversation")
    await told(stack, "my boat is blue", "Anna has a boat")
    await answered(stack, "A blue boat, in Lyon.")
    receipt, _ = await stack.statements.forget_message(message, "anna")
    assert {memory.content for memory in receipt.memories} == {"Anna lives in Lyon"}
    assert receipt.memory is None
    assert await stack.known() == {"Anna lives in Paris", "Anna has a boat"}
    assert (await transcript(stack))[:2] == ["I live in Paris", ""]
    assert paris.id in {memory.id for memory in await stack.memories()}
    await stack.statements.undo(str(receipt.undo_id), "anna")
    assert await stack.known() == {"Anna lives in Paris", "Anna has a boat", "Anna lives in Lyon"}


async def test_a_deleted_message_gives_back_what_its_fact_had_replaced(stack: Stack) -> None:
    await told(stack, "I live in Paris", "Anna lives in Paris")
    old = await stack.the_memory()
    message = await stack.receive("Lyon, I mean")
    await stack.remember("Anna lives in Lyon", replaces=old.id, message_id=message)
    assert await stack.known() == {"Anna lives in Lyon"}
    await stack.statements.forget_message(message, "anna")
    assert await stack.known() == {"Anna lives in Paris"}


async def test_only_the_authors_own_messages_can_be_deleted(stack: Stack) -> None:
    message = await stack.receive(PIN, "anna", "acme")
    reply = await answered(stack, "Your bank PIN is 4711.", "anna", "acme")
    for id, user in ((message, "ben"), (reply, "anna"), ("nothing", "anna")):
        with pytest.raises(NotFound, match="no message"):
            await stack.statements.forget_message(id, user)
    receipt, _ = await stack.statements.forget_message(message, "anna")
    assert (receipt.messages, receipt.replies, receipt.id, receipt.content) == (1, 1, "", PIN)
    with pytest.raises(NotFound, match="no message"):
        await stack.statements.forget_message(message, "anna")


async def test_the_index_forgets_the_words_of_a_message_in_its_neighbours_too(stack: Stack) -> None:
    await stack.receive("which one?")
    await told(stack, "the zebra finch", "Anna keeps a zebra finch")
    await stack.receive("since last spring")
    assert "which one?" in await stack.found("zebra finch")
    await forget(stack, "Anna keeps a zebra finch")
    assert "which one?" not in await stack.found("zebra finch")


async def test_who_has_replaced_a_fact_since_does_not_keep_it_in_the_place(stack: Stack) -> None:
    for first, second in (("anna", "ben"), ("ben", "anna")):
        place = f"acme/{first}"
        decision = await stack.remember("The office is in Lyon", first, place)
        await stack.remember("The office is in Lyon", second, place)
        await stack.remember("The office is in Nice", "ben", place, replaces=decision.id)
        assert await stack.known("cleo", place) == {"The office is in Lyon", "The office is in Nice"}
        await stack.remember("In Lyon is the office", "anna")
        same = await the_memory(stack, "In Lyon is the office", "anna")
        await stack.statements.forget(same, "anna")
        assert await stack.known("cleo", place) == {"The office is in Nice"}
        assert await stack.known("anna") == set()
        assert "The office is in Lyon" in await everything(stack, "forgotten", "work"), "Ben's history"


@on_both
async def test_a_forgetting_of_a_message_and_an_undo_are_tried_again_when_others_write(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = await told(stack, PIN, "Anna's bank PIN is 4711")
    write, faults = stack.database.write, [Overtaken("just now"), None] * 2

    @asynccontextmanager
    async def overtaken(*args: Any, **given: Any) -> AsyncIterator[AsyncConnection]:
        async with write(*args, **given) as connection:
            yield connection
            if fault := faults.pop(0):
                raise fault

    monkeypatch.setattr(stack.database, "write", overtaken)
    receipt, _ = await stack.statements.forget_message(message, "anna")
    back = await stack.statements.undo(str(receipt.undo_id), "anna")
    assert (receipt.messages, back.messages, faults) == (1, 1, [])


async def test_what_was_forgotten_in_a_place_is_no_history_of_a_private_correction(stack: Stack) -> None:
    told = await stack.remember("Anna lives in Paris", place="acme")
    await stack.remember("Anna lives in Lyon", replaces=told.id)
    assert await stack.known(place="acme") == {"Anna lives in Paris"}
    await stack.statements.forget(await stack.the_memory(place="acme"), "anna")
    assert await stack.known() == {"Anna lives in Lyon"}
    assert "Paris" not in await everything(stack, "forgotten", "work")
