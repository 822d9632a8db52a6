"""A reply is stored without its text if something that it was written from is gone by then. What it
rests on is stored with it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from sqlalchemy import select, update

from memory.audience import Audience, Place
from memory.erasure.person import progress
from memory.facts.derived.replies import ReplySources, given_to
from memory.records import Message
from memory.sql.tables import active_conversations, messages

if TYPE_CHECKING:
    from tests.memory.conftest import Stack

ACME = Place.parse("acme")
NOTHING: frozenset[str] = frozenset()
on_both = pytest.mark.parametrize("on_database", ["sqlite", "postgresql"], indirect=True)


async def stored(stack: Stack, *ids: str, told_in: frozenset[str] = NOTHING, user: str = "ben") -> str:
    """The text under which a reply to `user` in acme is stored that was written from these ids."""
    asked = await stack.receive("and now?", user, "acme")
    since = stack.clock.now
    sources = ReplySources(frozenset(ids), told_in, Audience.of(user, ACME), since)
    stack.clock.move(seconds=1)
    reply = Message(str(uuid4()), "place:acme", "assistant", "hachi", "So it is.", stack.clock.now)
    given = {
        "user": user,
        "place": ACME,
        "now": stack.clock.now,
        "answering": asked,
    }
    async with stack.database.write(lock=[ACME.key], shared=True) as connection:
        written = await stack.transcript.append(connection, reply, lost=sources.lost(), **given)
        await sources.record(connection, reply.id, asked)
    assert written is not None
    async with stack.database.read() as connection:
        assert await given_to(connection, [reply.id]) == (
            {reply.id: {*ids, *told_in}} if ids or told_in else {}
        )
    async with stack.database.read() as connection:
        row = (await connection.execute(select(messages).where(messages.c.id == reply.id))).one()
    assert (row.text, row.forgotten_at) == (written.text, written.forgotten_at)
    assert (row.forgotten_at is None) == bool(row.text)
    return row.text


@on_both
async def test_a_reply_keeps_its_text_while_all_that_it_was_written_from_is_there(stack: Stack) -> None:
    message = await stack.receive("I live in Paris", "anna", "acme")
    paris = await stack.remember("Anna lives in Paris", place="acme", message_id=message)
    lyon = await stack.remember("Anna lives in Lyon", place="acme", replaces=paris.id)
    summary = await stack.summarise("Anna moved.", "anna", "acme")
    task = await stack.tasks.update("ben", "call Anna", now=stack.clock.now, place=ACME)
    ids = (message, str(paris.id), str(lyon.id), summary, task.task.id)
    assert await stored(stack, *ids, told_in=frozenset({"of an older home"})) == "So it is."
    assert await stored(stack) == "So it is."


@on_both
async def test_a_reply_loses_its_text_with_any_of_its_sources(stack: Stack) -> None:
    message = await stack.receive("I live in Paris", "anna", "acme")
    paris = await stack.remember("Anna lives in Paris", place="acme")
    summary = await stack.summarise("Anna lives in Paris.", "anna", "acme")
    private = await stack.remember("Anna skis")
    later = stack.clock.now.replace(year=stack.clock.now.year + 1)
    assert await stored(stack, message, str(uuid4())) == ""
    assert await stored(stack, str(private.id)) == ""  # what the place cannot read
    async with stack.database.write() as connection:
        await connection.execute(update(messages).where(messages.c.id == message).values(forgotten_at=later))
        await connection.execute(update(active_conversations).values(forgotten_at=later))
    assert await stored(stack, message) == ""
    assert await stored(stack, summary) == ""
    assert await stored(stack, told_in=frozenset({message})) == ""
    assert await stored(stack, str(paris.id)) == "So it is."


@on_both
async def test_a_reply_loses_its_text_if_a_source_is_of_a_person_who_is_being_erased(stack: Stack) -> None:
    message = await stack.receive("I live in Paris", "anna", "acme")
    told = await stack.remember("Anna lives in Paris", place="acme")
    shared = await stack.remember("The office moves", "ben", "acme")
    await stack.remember("The office moves", "anna", "acme")
    async with stack.database.write() as connection:
        await progress.begin(connection, "anna", (), stack.clock.now)
    assert await stored(stack, message) == await stored(stack, str(told.id)) == ""
    assert await stored(stack, str(shared.id)) == "So it is."


@on_both
async def test_replies_share_a_lock_that_a_forgetting_waits_for(stack: Stack) -> None:
    async def forget() -> None:
        async with stack.database.write(lock=[ACME.key]):
            order.append("forgotten")

    order: list[str] = []
    async with stack.database.write(lock=[ACME.key], shared=True):
        forgetting = asyncio.create_task(forget())
        await asyncio.sleep(0.05)
        order.append("stored")
    await forgetting
    assert order == ["stored", "forgotten"]
