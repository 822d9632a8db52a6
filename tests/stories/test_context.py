"""Stories of what a companion carries from one turn to the next: what its model is sent is looked at."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from scripted_server import Call, ScriptedServer, answer

from hachi import Companion
from hachi.testing import AnsweringModel

Opened = Callable[..., AbstractAsyncContextManager[Companion]]
Rows = Callable[..., list[dict[str, Any]]]


async def say(pet: Companion, text: str, user: str = "ana", **where: Any) -> str:
    """What it answers, once all that follows from the message is done."""
    reply = await pet.respond(text, user=user, **where)
    await pet.settle()
    return reply.message


# What was said is carried on.


def sent(model: AnsweringModel, turn: int) -> str:
    """What stood before the question's message."""
    return json.dumps(model.inputs[turn][:-1], ensure_ascii=False)


def so_far(items: list[Any]) -> str:
    """The section that sums up the conversation."""
    _, _, rest = items[-1]["content"].partition("## Conversation summary\n")
    return rest.partition("\n\n")[0]


async def test_what_was_decided_in_a_channel_is_carried_there_and_nowhere_else(
    opened: Opened, clock: Any
) -> None:
    model = AnsweringModel()

    async with opened(given=model, consolidate="plain", history_messages=4) as pet:
        await say(pet, "We decided to meet on Thursdays.", user="ben", place="acme/general")
        for n in range(3):
            await say(pet, f"It rained for {n} hours.", place="acme/general")
            clock.advance(minutes=1)
        await say(pet, "so?", user="cleo", place="acme/general")
        await say(pet, "so?", user="ben")
        await say(pet, "so?", place="acme/random")

    there, private, elsewhere = model.inputs[-3:]
    assert "ben: We decided to meet on Thursdays." in so_far(there)
    assert (so_far(private), so_far(elsewhere)) == ("", "")
    assert "Thursdays" not in sent(model, -3)


# Without consolidation.


async def test_without_consolidation_the_facts_of_the_answers_are_kept_and_found_in_another_conversation(
    scripted: Opened, server: ScriptedServer, rows: Rows
) -> None:
    fact = {"content": "Ana's boat is green", "subjects": ["ana", "boat"], "importance": 0.6}
    server.script(
        answer("A fine colour!", fact),
        Call("search_memories", {"query": "the keel of Zanzibar"}),
        answer("Green."),
    )

    async with scripted(consolidate="off") as pet:
        await say(pet, "my boat is green, please be brief")
    async with scripted(consolidate="off") as pet:
        await say(pet, "what about my boat?", conversation="another")

    assert "> - [FACT] Ana's boat is green (" in server.asked[1].context
    assert server.consolidations == []
    assert all("Conversation summary" not in asked.context for asked in server.asked)
    assert [rows(f"SELECT * FROM {table}") for table in ("active_conversations", "context_entries")] == [
        [],
        [],
    ]
