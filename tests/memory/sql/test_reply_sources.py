"""A reply is not stored if something that it was written from is gone by then. What it rests on is stored
with it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from uuid import uuid4

import pytest
from sqlalchemy import select, update

from memory.audience import Audience, Place
from memory.records import Message
from memory.sql import hidden as entries
from memory.sql.messages.reply_sources import ReplySources
from memory.sql.tables import active_conversations, rests_on
from tests.memory.conftest import Stack, on_both

ACME = Place.parse("acme")


async def stored(
    stack: Stack,
    *ids: str,
    profile_messages: frozenset[str] = frozenset(),
    expired: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """Whether a reply to Ben in acme is stored that was written from these ids."""
    asked = await stack.receive("and now?", "ben", "acme")
    sources = ReplySources(frozenset(ids), profile_messages, Audience.of("ben", ACME), expired=expired)
    stack.clock.advance(seconds=1)
    reply = Message(str(uuid4()), "place:acme", "assistant", "hachi", "So it is.", stack.clock.now)
    given = {"user": "ben", "place": ACME, "now": stack.clock.now, "answering": asked}
    async with stack.database.write(lock=[ACME.key], shared=True) as connection:
        written = await stack.transcript.append(connection, reply, unless=sources.any_missing(), **given)
        if written is None:
            return False
        await sources.record(connection, reply.id, asked)
    found = select(rests_on.c.source_id).where(rests_on.c.derived_id == reply.id, rests_on.c.how == "found")
    async with stack.database.read() as connection:
        assert set(await connection.scalars(found)) == {*ids, *profile_messages} - expired.keys() | {
            *expired.values()
        }
    return True


@on_both
async def test_a_reply_is_stored_while_all_that_it_was_written_from_is_there(stack: Stack) -> None:
    message = await stack.receive("I live in Paris", "anna", "acme")
    paris = await stack.remember("Anna lives in Paris", place="acme", message_id=message)
    lyon = await stack.remember("Anna lives in Lyon", place="acme", replaces=paris.id)
    summary = await stack.summarise("Anna moved.", "anna", "acme")
    task = await stack.tasks.update("ben", "call Anna", now=stack.clock.now, place=ACME)
    ids = (message, str(paris.id), str(lyon.id), summary, task.task.id)
    assert await stored(stack, *ids, profile_messages=frozenset({message}))
    assert await stored(stack)


@on_both
async def test_a_reply_is_lost_with_any_of_its_sources(stack: Stack) -> None:
    message = await stack.receive("I live in Paris", "anna", "acme")
    paris = await stack.remember("Anna lives in Paris", place="acme")
    summary = await stack.summarise("Anna lives in Paris.", "anna", "acme")
    private = await stack.remember("Anna skis")
    later = stack.clock.now.replace(year=stack.clock.now.year + 1)
    assert not await stored(stack, message, str(uuid4()))
    assert not await stored(stack, str(private.id))  # what the place cannot read
    async with stack.database.write() as connection:
        forgetting = await entries.begin(connection, "anna", "forgotten", later, None)
        await entries.hide(connection, forgetting, {"message": [message]})
        await connection.execute(update(active_conversations).values(id=str(uuid4())))
    assert not await stored(stack, message)
    assert not await stored(stack, summary)
    assert not await stored(stack, profile_messages=frozenset({message}))
    assert await stored(stack, str(paris.id))
    async with stack.database.write() as connection:
        link = entries.link_id(str(paris.id), ACME.key)
        await entries.hide(connection, forgetting, {"link": [link]})
    assert not await stored(stack, str(paris.id))


@on_both
@pytest.mark.parametrize("noted", [True, False])
async def test_what_expires_loses_no_reply_and_what_was_purged_does(stack: Stack, noted: bool) -> None:
    message = None if noted else await stack.receive("I am ill", "anna", "acme")
    ill = await stack.remember("Anna is ill", place="acme", message_id=message, ttl="1d")
    stack.clock.advance(days=2)
    id, expired = str(ill.id), {str(ill.id): message} if message else {}
    assert await stored(stack, id, expired=expired)
    at_once = replace(stack.forgetting, undo_for=timedelta())
    await at_once.forget("memory", id, "anna", ACME)
    for forgetting in await stack.purge.due():
        await stack.purge.delete(forgetting)
    assert not await stored(stack, id, expired=expired)
