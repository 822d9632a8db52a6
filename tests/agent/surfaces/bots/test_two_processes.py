"""Two processes of one bot. Each event comes to one of them, as on Slack, or to both, as on Discord."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from scripted_server import Say, ScriptedServer, answer

from agent.surfaces.bots.conversations import Conversations
from agent.surfaces.bots.platform import Content, IncomingMessage
from agent.surfaces.bots.platform_jobs import PlatformJobs
from memory.audience import PRIVATE

ANA = "chat:1"
SLOWLY = Say('{"message": "Two cups, at once.", "memories": []}', pause=0.02)
QUESTION = IncomingMessage(ANA, PRIVATE, source=Content("Ana", "two cups"), origin="chat:1")
EDITED = replace(QUESTION, source=Content("Ana", "three cups"), version="1")
LEFT = "SELECT text FROM messages WHERE id NOT IN (SELECT row_id FROM hidden) ORDER BY seq"
WAITING = "SELECT * FROM work WHERE kind IN ('answer', 'posts')"


@pytest.fixture
def two(conversations_with: Any) -> tuple[Conversations, Conversations]:
    return conversations_with(), conversations_with()


async def shown(platform: Any) -> None:
    """Until the reply is being written."""
    async with asyncio.timeout(60):
        while not (platform.replies and platform.replies[0].texts):  # noqa: ASYNC110
            await asyncio.sleep(0.002)


async def settled(*processes: Conversations) -> None:
    for process in processes * 2:
        await process.settle()
        await PlatformJobs(process, "chat").do()
    await processes[-1].settle()


@pytest.mark.parametrize("told", [(0,), (1,), (0, 1), (1, 0)])
async def test_a_message_that_is_edited_has_one_reply_whichever_process_is_told(
    two: tuple[Conversations, Conversations],
    platform: Any,
    server: ScriptedServer,
    rows: Any,
    told: tuple[int, ...],
) -> None:
    server.script(SLOWLY, answer("Three cups.", {"content": "Ana takes three cups"}))
    await two[0].receive(QUESTION, "mentions")
    await shown(platform)
    platform.there[EDITED.origin] = EDITED
    for process in told:
        await two[process].edited(EDITED, "mentions")
    await settled(*two)
    assert platform.said == ["Three cups.\n\nAna takes three cups"], "with what was remembered"
    assert [row["text"] for row in rows(LEFT)] == ["three cups", "Three cups."]
    assert len(server.asked) == 2
    assert rows(WAITING) == []


@pytest.mark.parametrize("teller", [0, 1])
@pytest.mark.parametrize("when", ["waits", "is read", "is answered", "is answered and not kept"])
async def test_of_a_message_that_is_deleted_before_its_reply_stands_nothing_is_left(
    two: tuple[Conversations, Conversations],
    platform: Any,
    server: ScriptedServer,
    rows: Any,
    monkeypatch: pytest.MonkeyPatch,
    teller: int,
    when: str,
) -> None:
    here, teller_of_it = two[0], two[teller]
    read = platform.read

    async def deleted_first(message: IncomingMessage, **given: Any) -> Content:
        await teller_of_it.deleted(QUESTION.origin)
        return await read(message, **given)  # type: ignore[no-any-return]

    if when == "is read":
        monkeypatch.setattr(platform, "read", deleted_first)
    await here.pet.people.keep(when != "is answered and not kept", user=ANA)
    server.script(SLOWLY)
    await here.receive(QUESTION, "mentions")
    if when.startswith("is answered"):
        await shown(platform)
    if when != "is read":
        await teller_of_it.deleted(QUESTION.origin)
    await settled(*two)
    assert [said for said in platform.said if said] == []
    assert rows(LEFT) == rows(WAITING) == []


async def test_a_reply_to_what_is_forgotten_or_erased_while_it_is_written_does_not_stay(
    two: tuple[Conversations, Conversations], platform: Any, server: ScriptedServer, rows: Any
) -> None:
    pet, said = two[0].pet, []
    for number in range(2):
        server.script(SLOWLY)
        await two[0].receive(replace(QUESTION, origin=f"chat:{number}"), "mentions")
        await shown(platform)
        if number:
            await pet.people.erase(user=ANA)
        else:
            [message] = await pet.conversations.messages(user=ANA)
            await pet.conversations.forget(message.id, user=ANA)
        await settled(*two)
        said += platform.said
        platform.replies.clear()
    assert said == ["", ""]
    assert rows(LEFT) == rows(WAITING) == []
