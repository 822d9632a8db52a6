"""A reply that is shown while it is generated."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_server import SlackServer

from agent.surfaces.bots.slack.access import build_client
from agent.surfaces.bots.slack.messages import Source
from agent.surfaces.bots.slack.platform import SlackPosts
from agent.surfaces.bots.streamed_reply import Closed, Gone, Refused, Reply
from hachi import Settings
from memory.audience import Place

THREAD = Source("T1", "C1", "UANA", "1.5", "UHACHI", thread="1.5", reply_in="1.5")


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


async def test_a_message_that_may_not_be_edited_any_more_is_replaced(begin, slack) -> None:
    reply = await begin(THREAD)
    slack.refused["chat.update"] = "edit_window_closed"
    await reply.finish("Good morning")
    assert [message.text for message in slack.messages] == ["Good morning"]


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        ("message_not_found", Gone),
        ("is_archived", Gone),
        ("cant_update_message", Closed),
        ("invalid_blocks", Refused),
        ("internal_error", SlackApiError),
    ],
)
async def test_what_slack_refuses_is_gone_closed_refused_for_good_or_tried_again(
    settings, slack, code, raised
) -> None:
    posts = SlackPosts(build_client(settings), THREAD)
    slack.refused |= {"chat.update": code, "chat.delete": code}
    with pytest.raises(raised):
        await posts.edit("1.6", "Good")
    with nullcontext() if raised is Gone else pytest.raises(raised):
        await posts.remove("1.6")


async def test_where_slack_limits_the_rate_the_text_waits_for_as_long_as_it_asks(
    begin: Any, slack: SlackServer
) -> None:
    replies = [await begin(replace(THREAD, ts=f"1.{number}")) for number in range(3)]
    slack.limited = {"chat.update", "chat.postMessage"}
    for reply in [*replies, await begin(THREAD, "")]:
        assert await reply.finish("Good end")
    assert [message.text[-3:] for message in slack.messages] == ["end"] * 4


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
