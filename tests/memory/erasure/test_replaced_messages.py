"""Messages that a client's history has replaced, on both databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memory.audience import Audience
from memory.erasure.replaced_messages import (
    MESSAGE_BACK,
    MESSAGE_REPLACED,
    bring_back,
    replace_messages,
)

if TYPE_CHECKING:
    from tests.memory.conftest import Stack

pytestmark = pytest.mark.parametrize("on_database", ["sqlite", "postgresql"], indirect=True)


async def told(stack: Stack, text: str, fact: str) -> str:
    """A message from which a fact was learned; the message's id."""
    message = await stack.receive(text)
    await stack.remember(fact, message_id=message, said=text, live=True)
    return message


async def replace(stack: Stack, *ids: str) -> None:
    async with stack.database.write(lock={"user:anna"}) as connection:
        await replace_messages(connection, ids, "anna", stack.clock.now)
    await stack.indexing.catch_up()


async def test_a_fact_ends_with_the_only_message_that_states_it_and_returns_with_it(stack: Stack) -> None:
    lives = await told(stack, "I live in Lyon", "Anna lives in Lyon")
    await told(stack, "I like tea", "Anna likes tea")
    [fact] = [memory for memory in await stack.memories() if "Lyon" in memory.content]
    await stack.indexing.catch_up()

    await replace(stack, lives)
    assert await stack.known() == {"Anna likes tea"}
    assert "Lyon" not in str(await stack.found("where do I live? Lyon"))
    assert await stack.reasons(fact.id) == [MESSAGE_REPLACED]
    page = await stack.transcript.page(Audience.of("anna"), 10)
    assert [(one.text, one.replaced_at) for one in page if one.gone] == [("I live in Lyon", stack.clock.now)]

    async with stack.database.write(lock={"user:anna"}) as connection:
        await bring_back(connection, [lives], "anna", stack.clock.now)
    await stack.indexing.catch_up()
    assert await stack.known() == {"Anna likes tea", "Anna lives in Lyon"}
    assert "Lyon" in str(await stack.found("where do I live? Lyon"))
    assert sorted(await stack.reasons(fact.id)) == sorted([MESSAGE_REPLACED, MESSAGE_BACK])


async def test_a_fact_that_another_message_states_too_stays(stack: Stack) -> None:
    first = await told(stack, "I live in Lyon", "Anna lives in Lyon")
    await told(stack, "as I said, I live in Lyon", "Anna lives in Lyon")
    await replace(stack, first)
    assert await stack.known() == {"Anna lives in Lyon"}


async def test_a_fact_told_again_is_not_there_twice(stack: Stack) -> None:
    first = await told(stack, "I live in Lyon", "Anna lives in Lyon")
    await replace(stack, first)
    await told(stack, "I do live in Lyon", "Anna lives in Lyon")
    async with stack.database.write(lock={"user:anna"}) as connection:
        await bring_back(connection, [first], "anna", stack.clock.now)
    assert [memory.content for memory in await stack.memories()] == ["Anna lives in Lyon"]
