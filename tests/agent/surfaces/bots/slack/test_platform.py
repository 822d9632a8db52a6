"""A reply that is shown while it is generated, in a thread and elsewhere."""

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
from memory.audience import PRIVATE
from memory.records import Decision

THREAD = Source("T1", "C1", "UANA", "1.5", "UHACHI", thread="1.5", reply_in="1.5")
FLAT = Source("T1", "D1", "UANA", "1.5", "UHACHI")
RECEIPTS = (
    receipt_item(Decision("Ana likes tea", "add", "m1", "new"), PRIVATE),
    receipt_item(Decision("Ana lives in Lyon", "replace", "m2", "it changed"), PRIVATE),
)
LONG = "long " * (LIMIT // 4)
PAST_BUFFER = "word " * 60
"""slack_sdk sends pieces of 256 characters and more at once."""
BOTH = pytest.mark.parametrize("source", [THREAD, FLAT], ids=["stream", "message"])


@pytest.fixture
async def begin(settings: Settings) -> AsyncIterator[Callable[..., Any]]:
    """`await begin(source, text)`: a reply of which this much is shown."""
    async with AsyncExitStack() as leaving:

        async def begun(source: Source, text: str = "Good", **options: Any) -> Reply:
            posts = SlackPosts(build_client(settings), source)
            reply = await leaving.enter_async_context(Reply(posts, interval=0.01, **options))
            if text:
                await reply._show(text)
            return reply

        yield begun


async def test_in_a_thread_text_is_appended_to_a_stream_and_elsewhere_edited(begin, slack) -> None:
    reply = await begin(THREAD)
    await reply._show(f"Good {PAST_BUFFER}")
    await reply.finish(f"Good {PAST_BUFFER}<3")
    [message] = slack.messages
    assert message.versions == ["Good", f"Good {PAST_BUFFER}", f"Good {PAST_BUFFER}&lt;3"]
    assert (message.streamed, message.streaming) == (True, False)
    assert slack.called("chat.update") == []
    elsewhere = await begin(FLAT)
    await elsewhere.finish("Good morning")
    message = slack.messages[-1]
    assert (message.versions, message.streamed) == (["Good", "Good morning"], False)


@pytest.mark.parametrize(
    ("begun", "expired"), [('{"message": "Goo', False), ("Good", True), ("Good morning", True)]
)
async def test_a_stream_that_expired_or_begins_otherwise_is_edited(begin, slack, begun, expired) -> None:
    reply = await begin(THREAD, begun)
    if expired:
        slack.messages[0].streaming = False
    await reply.finish("Good morning")
    [message] = slack.messages
    assert (message.text, message.streaming) == ("Good morning", False)


@BOTH
async def test_superfluous_messages_are_removed_also_if_somebody_did(begin, slack, source) -> None:
    reply = await begin(source, LONG)
    assert len(slack.messages) == 2
    await reply._show("short")
    assert [message.text for message in slack.messages] == ["short"]
    await reply._show(LONG)
    slack.messages.pop()
    await reply.finish("Good morning")
    assert [message.text for message in slack.messages] == ["Good morning"]


@BOTH
async def test_a_reply_that_somebody_deleted_is_not_posted_again(begin, slack, source) -> None:
    ended: list[bool] = []
    reply = await begin(source, stopped=lambda: ended.append(True))
    slack.messages.clear()
    await reply.finish("Good morning", RECEIPTS)
    assert (slack.messages, ended) == ([], [True])


async def test_a_message_that_may_not_be_edited_any_more_is_replaced(begin, slack) -> None:
    reply = await begin(FLAT)
    slack.refused["chat.update"] = "edit_window_closed"
    await reply.finish("Good morning")
    assert [message.text for message in slack.messages] == ["Good morning"]


@BOTH
async def test_where_slack_limits_the_rate_the_text_waits_for_as_long_as_it_asks(
    begin: Any, slack: SlackServer, source: Source
) -> None:
    replies = [await begin(replace(source, ts=f"1.{number}")) for number in range(3)]
    slack.limited = {"chat.update", "chat.appendStream", "chat.stopStream", "chat.postMessage"}
    for reply in [*replies, await begin(source, "")]:
        assert await reply.finish(f"Good {PAST_BUFFER}end")
    assert [message.text[-3:] for message in slack.messages] == ["end"] * 4
    assert not any(message.streaming for message in slack.messages)


@BOTH
async def test_what_slack_refuses_for_good_is_tried_once_and_told_in_its_place(begin, slack, source) -> None:
    reply = await begin(source, "")
    slack.too_odd = "odd"
    assert await reply.finish("An odd reply.", instead="It cannot be shown.")
    assert [message.text for message in slack.messages] == ["It cannot be shown."]
    assert len(slack.called("chat.postMessage")) == 2


async def test_what_slack_cannot_do_just_now_is_tried_again(begin, slack) -> None:
    slack.refused["chat.postMessage"] = "internal_error"
    reply = await begin(FLAT, "")
    finishing = asyncio.create_task(reply.finish("A reply.", instead="It cannot be shown."))
    await slack.until(lambda: len(slack.called("chat.postMessage")) > 1)
    slack.refused.clear()
    assert await finishing
    assert [message.text for message in slack.messages] == ["A reply."]
