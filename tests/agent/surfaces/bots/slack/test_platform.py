"""A reply that is shown while it is generated."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from slack_server import SlackServer

from agent.surfaces.bots.answers import receipt_item
from agent.surfaces.bots.slack.client import build_client
from agent.surfaces.bots.slack.messages import Source
from agent.surfaces.bots.slack.platform import LIMIT, SlackPosts
from agent.surfaces.bots.streamed_reply import Reply
from hachi import Settings
from memory.audience import PRIVATE, Place
from memory.records import Decision

THREAD = Source("T1", "C1", "UANA", "1.5", "UHACHI", thread="1.5", reply_in="1.5")
RECEIPTS = (
    receipt_item(Decision("Ana likes tea", "add", "m1", "new"), PRIVATE),
    receipt_item(Decision("Ana lives in Lyon", "replace", "m2", "it changed"), PRIVATE),
)
LONG = "long " * (LIMIT // 4)


@pytest.fixture
async def begin(settings: Settings) -> AsyncIterator[Callable[..., Any]]:
    """`await begin(THREAD, text)`: a reply of which this much is shown."""
    async with AsyncExitStack() as leaving:

        async def begun(source: Source, text: str = "Good", **options: Any) -> Reply:
            posts = SlackPosts(build_client(settings), source)
            reply = await leaving.enter_async_context(Reply(posts, interval=0.01, **options))
            if text:
                await reply._show(text)
            return reply

        yield begun


async def test_text_is_edited_as_it_grows(begin, slack) -> None:
    reply = await begin(THREAD)
    await reply._show("Good\n```\na <")
    await reply.finish("Good morning <3")
    [message] = slack.messages
    assert message.versions == ["Good", "Good\n```\na <\n```", "Good morning &lt;3"]


async def test_superfluous_messages_are_removed_also_if_somebody_did(begin, slack) -> None:
    reply = await begin(THREAD, LONG)
    assert len(slack.messages) == 2
    await reply._show("short")
    assert [message.text for message in slack.messages] == ["short"]
    await reply._show(LONG)
    slack.messages.pop()
    await reply.finish("Good morning")
    assert [message.text for message in slack.messages] == ["Good morning"]


async def test_a_reply_that_somebody_deleted_is_not_posted_again(begin, slack) -> None:
    ended: list[bool] = []
    reply = await begin(THREAD, stopped=lambda: ended.append(True))
    slack.messages.clear()
    await reply.finish("Good morning", RECEIPTS)
    assert (slack.messages, ended) == ([], [True])


async def test_a_message_that_may_not_be_edited_any_more_is_replaced(begin, slack) -> None:
    reply = await begin(THREAD)
    slack.refused["chat.update"] = "edit_window_closed"
    await reply.finish("Good morning")
    assert [message.text for message in slack.messages] == ["Good morning"]


async def test_where_slack_limits_the_rate_the_text_waits_for_as_long_as_it_asks(
    begin: Any, slack: SlackServer
) -> None:
    replies = [await begin(replace(THREAD, ts=f"1.{number}")) for number in range(3)]
    slack.limited = {"chat.update", "chat.postMessage"}
    for reply in [*replies, await begin(THREAD, "")]:
        assert await reply.finish("Good end")
    assert [message.text[-3:] for message in slack.messages] == ["end"] * 4


async def test_what_slack_refuses_for_good_is_tried_once_and_told_in_its_place(begin, slack) -> None:
    reply = await begin(THREAD, "")
    slack.too_odd = "odd"
    assert await reply.finish("An odd reply.", instead="It cannot be shown.")
    assert [message.text for message in slack.messages] == ["It cannot be shown."]
    assert len(slack.called("chat.postMessage")) == 2


async def test_what_slack_cannot_do_just_now_is_tried_again(begin, slack) -> None:
    slack.refused["chat.postMessage"] = "internal_error"
    reply = await begin(THREAD, "")
    finishing = asyncio.create_task(reply.finish("A reply.", instead="It cannot be shown."))
    await slack.until(lambda: len(slack.called("chat.postMessage")) > 1)
    slack.refused.clear()
    assert await finishing
    assert [message.text for message in slack.messages] == ["A reply."]


async def test_who_can_read_a_channel_is_asked_of_slack(bot: Any, slack: SlackServer) -> None:
    slack.members = {"CBOARD": {"UANA"}, "CHR": {"UBEN"}}
    user, reader = "slack:T1:UANA", bot.hachi.platform
    public, board, others, gone, elsewhere = (
        Place(("slack", team, channel))
        for team, channel in (("T1", "C1"), ("T1", "CBOARD"), ("T1", "CHR"), ("T1", "CGONE"), ("T2", "C1"))
    )
    places = [public, board, others, gone, elsewhere]
    member = {public: "#general", board: "#secret", others: "", gone: "", elsewhere: ""}
    assert await reader.may_read(user, places) == member
    for told in ({"is_restricted": True}, {"is_stranger": True}, {"team_id": "T2"}):
        slack.people["UANA"] = told
        assert await reader.may_read(user, places) == member | {public: ""}, "a guest reads what they are in"
    slack.people["UANA"] = {"deleted": True}
    assert await reader.may_read(user, places) == dict.fromkeys(places, "")
    slack.people.clear()
    slack.members["CBOARD"].clear()
    assert (await reader.may_read(user, places))[board] == ""
