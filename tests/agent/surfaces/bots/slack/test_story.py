"""A morning of two people and the bot on Slack: what they say, edit and forget, and what stands there."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from scripted_server import ScriptedServer, answer
from slack_server import BOT, SlackServer

from agent.surfaces.bots import platform_jobs
from agent.surfaces.bots.conversations import IS_LATE

DM, GENERAL = "D1", "C1"
ANA = "slack:T1:UANA"


def shown(slack: SlackServer, channel: str = GENERAL) -> list[str]:
    return [message.text for message in slack.in_channel(channel)]


async def test_what_is_edited_deleted_and_forgotten_on_slack_is_so_there_too(
    bot: Any, slack: SlackServer, server: ScriptedServer, pet: Any, clock: Any, rows: Any
) -> None:
    jobs = bot.hachi.jobs("T1")
    # Ana asks in the channel, and corrects herself: the reply is written again where it stands.
    server.script(answer("Two cups."), answer("Three cups."))
    mention, message = slack.mentions("UANA", "tea for two", channel=GENERAL)
    await bot.hears(mention, message)
    asked = message["event"]["ts"]
    await bot.hears(*slack.edits(asked, f"<@{BOT}> tea for three", channel=GENERAL))
    assert shown(slack) == ["Three cups."]
    assert "tea for three" in server.asked[1].conversation[-1][1]
    assert "tea for two" not in server.asked[1].text
    # Ben talks to Ana, and adds a mention later.
    talk = slack.says("UBEN", "milk?", channel=GENERAL)
    await bot.hears(talk)
    server.script(answer("With milk."))
    await bot.hears(*slack.edits(talk["event"]["ts"], f"<@{BOT}> milk?", channel=GENERAL))
    assert shown(slack) == ["Three cups.", "With milk."]
    # Ana forgets it on a page of her own: the reply is deleted at once, and an undo does not post it again.
    [said] = [one for one in await pet.conversations.messages(user=ANA) if one.role == "user"]
    forgotten = await pet.conversations.forget(said.id, user=ANA)
    await jobs.do()
    await slack.until(lambda: shown(slack) == ["With milk."])
    await pet.memories.undo_forget(str(forgotten.undo_id), user=ANA)
    await jobs.do()
    assert shown(slack) == ["With milk."]
    # Ben deletes his question on Slack. The reply goes with it.
    await bot.hears(slack.deletes(talk["event"]["ts"], channel=GENERAL))
    await jobs.do()
    await slack.until(lambda: shown(slack) == [])


async def test_what_was_written_while_the_bot_was_not_there_is_caught_up(
    go_online: Any, slack: SlackServer, server: ScriptedServer, pet: Any, clock: Any, monkeypatch: Any
) -> None:
    slack.epoch = int(clock().timestamp())
    server.script(answer("Hello."), answer("Hello, Ben."), answer("In private."))
    bot = await go_online()
    await bot.hears(slack.says("UANA", "hello", channel=DM))
    await bot.hachi.jobs("T1").do()
    await bot.hachi.conversations.stop()
    slack.epoch += 30
    head = slack.says("UANA", "lunch?", channel=GENERAL)["event"]["ts"]
    slack.says("UBEN", f"<@{BOT}> hello", channel=GENERAL, thread_ts=head)
    slack.says("UANA", "still there?", channel=DM)
    slack.refused["conversations.history"] = "missing_scope"
    later = await go_online()
    await later.hachi._catch_up("T1", clock())
    assert len(server.asked) == 1
    del slack.refused["conversations.history"]
    for _ in range(2):
        await later.hachi._catch_up("T1", clock())
        await later.hachi.conversations.settle()
    assert sorted(shown(slack, GENERAL) + shown(slack, DM)) == ["Hello, Ben.", "Hello.", "In private."]
    slack.says("UANA", "hello again", channel=DM)
    since = clock()
    clock.advance(minutes=20)
    await later.hachi._catch_up("T1", since)
    await later.hachi.conversations.settle()
    assert shown(slack, DM)[-1] == IS_LATE


async def test_what_was_written_without_a_connection_is_caught_up_once_there_is_one(
    go_online: Any, slack: SlackServer, server: ScriptedServer, pet: Any, clock: Any, monkeypatch: Any
) -> None:
    deliveries = pet.conversations.deliveries
    monkeypatch.setattr(
        "agent.surfaces.bots.slack.bot.PING_SECONDS", 1.0
    )  # the SDK waits for it to connect again
    bot = await go_online()
    monkeypatch.setattr(platform_jobs, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(platform_jobs, "NOTED_EVERY", timedelta())
    slack.epoch = int(clock().timestamp())
    server.script(answer("Hello."), answer("Here I am."))
    await bot.hears(slack.says("UANA", "hello", channel=DM))
    await eventually(lambda: deliveries.last_here("slack:T1"), clock())
    before, slack.away = clock(), True
    await slack.hang_up()
    clock.advance(minutes=5)
    slack.epoch += 240
    slack.says("UANA", "still there?", channel=DM)
    await asyncio.sleep(0.2)
    assert await deliveries.last_here("slack:T1") == before
    slack.refused["conversations.history"] = "internal_error"  # at first
    slack.away = False
    await slack.until(lambda: slack.called("conversations.history"))
    assert await deliveries.last_here("slack:T1") == before
    del slack.refused["conversations.history"]
    await slack.until(lambda: shown(slack, DM) == ["Hello.", "Here I am."])
    await eventually(lambda: deliveries.last_here("slack:T1"), clock())


async def eventually(read: Callable[[], Awaitable[Any]], wanted: Any) -> None:
    async with asyncio.timeout(10):
        while await read() != wanted:  # noqa: ASYNC110 - what is waited for happens in the database
            await asyncio.sleep(0.01)
