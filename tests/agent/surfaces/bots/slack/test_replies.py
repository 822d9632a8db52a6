"""A reply that is shown while it is generated, in a thread and elsewhere."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count

import pytest
from slack_server import SlackServer, buttons_of

from agent import Companion, Settings
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.live_text import NotNow, Stopped
from agent.surfaces.bots.platform import IncomingMessage
from agent.surfaces.bots.slack.client import Pace, build_client
from agent.surfaces.bots.slack.content import Reader
from agent.surfaces.bots.slack.messages import SlackMessage
from agent.surfaces.bots.slack.replies import LIMIT, SlackPlatform, SlackReply
from memory.records import Decision

THREAD = SlackMessage("T1", "C1", "UANA", "hello", "1.5", "UHACHI", "1.5")
FLAT = SlackMessage("T1", "D1", "UANA", "hello", "1.5", "UHACHI", private=True)
NEW = [
    Decision("Ana likes tea", "add", "m1", "new"),
    Decision("Ana lives in Lyon", "replace", "m2", "it changed"),
]
LONG = "long " * (LIMIT // 4)


@pytest.fixture
def seconds() -> Iterator[float]:
    """A clock on which each look takes two minutes: calls have room."""
    return count(0.0, 120.0)


@pytest.fixture
def platform(settings: Settings, pet: Companion, seconds: Iterator[float]) -> SlackPlatform:
    client = build_client(settings)
    return SlackPlatform(client, Commands(pet), Reader(client), pace=Pace(lambda: next(seconds)))


def reply(platform: SlackPlatform, source: SlackMessage) -> SlackReply:
    return platform.reply_to(IncomingMessage(source.author, source.place, source=source))


async def grow_and_shrink(view: SlackReply) -> None:
    for text in ("begun", LONG, "short"):
        await view.show(text)


async def test_in_a_thread_text_is_appended_to_a_stream_and_elsewhere_edited(platform, slack) -> None:
    view = reply(platform, THREAD)
    await view.show("Good")
    await view.show("Good mor")
    await view.finish("Good morning <3", ())
    [message] = slack.messages
    assert message.versions == ["Good", "Good mor", "Good morning &lt;3", "Good morning &lt;3"]
    assert (message.streamed, message.streaming) == (True, False)
    assert slack.called("chat.update") == []
    elsewhere = reply(platform, FLAT)
    await elsewhere.show("Good")
    await elsewhere.finish("Good morning", ())
    message = slack.messages[-1]
    assert (message.versions, message.streamed) == (["Good", "Good morning"], False)


@pytest.mark.parametrize(
    ("begun", "expired"), [('{"message": "Goo', False), ("Good", True), ("Good morning", True)]
)
async def test_a_stream_that_expired_or_begins_otherwise_is_edited(platform, slack, begun, expired) -> None:
    view = reply(platform, THREAD)
    await view.show(begun)
    if expired:
        slack.messages[0].streaming = False
    await view.finish("Good morning", ())
    [message] = slack.messages
    assert (message.text, message.streaming) == ("Good morning", False)


@pytest.mark.parametrize("source", [THREAD, FLAT], ids=["stream", "message"])
async def test_deleted_messages_are_posted_again_and_superfluous_ones_removed(
    platform: SlackPlatform, slack: SlackServer, source: SlackMessage
) -> None:
    view = reply(platform, source)
    await view.show("Good")
    slack.messages.clear()
    await view.show(LONG)
    assert len(slack.messages) == 2
    await view.show("short")
    assert [message.text for message in slack.messages] == ["short"]
    await view.show(LONG)
    slack.messages.pop()
    await view.finish("Good morning", ())
    assert [message.text for message in slack.messages] == ["Good morning"]


async def test_errors_of_slack_pass_through_and_the_next_call_continues(platform, slack) -> None:
    for method in ("chat.update", "chat.delete", "chat.postMessage"):
        slack.messages.clear()
        slack.refused[method] = "fatal_error"
        view = reply(platform, FLAT)
        with pytest.raises(Exception, match="fatal_error"):
            await grow_and_shrink(view)
        slack.refused.clear()
        await view.finish("short", ())
        assert [message.text for message in slack.messages] == ["short"]


@pytest.mark.parametrize(("error", "tried_again"), [("internal_error", True), ("unknown_method", False)])
async def test_without_a_stream_a_message_is_posted(platform, slack, error, tried_again) -> None:
    slack.refused["chat.startStream"] = error
    await reply(platform, THREAD).finish("Good morning", ())
    slack.refused.clear()
    await reply(platform, THREAD).finish("Good evening", ())
    assert [(message.text, message.streamed) for message in slack.messages] == [
        ("Good morning", False),
        ("Good evening", tried_again),
    ]


async def test_receipts_are_shown_once_with_buttons_for_each(platform, slack) -> None:
    view = reply(platform, FLAT)
    await view.finish("Noted.", NEW)
    await view.finish("Noted.", NEW)
    [shown] = slack.only_for("UANA")
    ids = [button["action_id"] for button in buttons_of(shown.blocks)]
    assert ids == ["hachi.delete", "hachi.edit", "hachi.undo", "hachi.edit"]
    slack.refused["chat.postEphemeral"] = "user_not_in_channel"
    await reply(platform, FLAT).finish("Noted too.", NEW)
    assert slack.in_channel("D1")[-1].text == "Noted too."


@pytest.mark.parametrize("source", [THREAD, FLAT], ids=["stream", "message"])
async def test_replies_that_are_written_at_once_share_what_slack_guarantees_the_workspace(
    platform: SlackPlatform, slack: SlackServer, source: SlackMessage
) -> None:
    now = 0.0
    platform.pace = Pace(lambda: now)
    slack.monotonic = lambda: now
    views = [reply(platform, replace(source, ts=f"1.{number}")) for number in range(5)]
    for second in range(90):
        now = float(second)
        for view in views:
            with suppress(NotNow):
                await view.show("word " * (second + 1))
    shown = [len(message.versions) for message in slack.messages]
    for view in views:
        await view.finish("word " * 90 + "end")
    assert slack.too_many == []
    assert min(shown) >= 10, "they take turns"
    assert [message.text[-3:] for message in slack.messages] == ["end"] * 5


@pytest.mark.parametrize("source", [THREAD, FLAT], ids=["stream", "message"])
async def test_the_final_text_does_not_wait_where_slack_limits_edits(
    platform: SlackPlatform, slack: SlackServer, source: SlackMessage
) -> None:
    view = reply(platform, source)
    await view.show("Good")
    slack.held = dict.fromkeys(("chat.update", "chat.appendStream", "chat.stopStream"), 30)
    with pytest.raises(NotNow):
        await view.show("Good mor")
    platform.client.retry_handlers = []  # only what comes after the text may wait
    await view.finish("Good morning")
    assert [message.text for message in slack.messages] == ["Good morning"]


async def test_a_stream_that_a_person_stopped_takes_the_final_text_only(platform, slack) -> None:
    view = reply(platform, THREAD)
    await view.show("Good")
    slack.stop("UANA", channel="C1", thread="1.5")
    with pytest.raises(Stopped):
        await view.show("Good mor")
    await view.finish("Good mor\n\n(stopped)")
    assert [message.text for message in slack.messages] == ["Good mor\n\n(stopped)"]


async def test_a_stream_of_more_than_five_minutes_goes_on_as_a_message(platform, slack) -> None:
    slack.monotonic = count(0.0, 200.0).__next__
    view = reply(platform, THREAD)
    for text in ("Good", "Good mor", "Good morning"):
        await view.show(text)
    await view.finish("Good morning Ana")
    [message] = slack.messages
    assert (message.text, message.streamed, message.streaming) == ("Good morning Ana", True, False)


async def test_a_stream_is_ended_later_where_slack_takes_no_more_of_that_at_present(platform, slack) -> None:
    slack.limited = {"chat.stopStream"}
    view = reply(platform, THREAD)
    await view.finish("Good morning")
    [message] = slack.messages
    assert message.text == "Good morning"
    await slack.until(lambda: not message.streaming)


async def test_two_processes_of_one_workspace_show_every_final_text(platform, slack) -> None:
    now = 0.0
    slack.monotonic = lambda: now
    others = [replace(platform, pace=Pace(lambda: now)) for _ in range(2)]
    views = [reply(others[number % 2], replace(FLAT, ts=f"1.{number}")) for number in range(4)]
    for second in range(60):
        now = float(second)
        for view in views:
            with suppress(NotNow):
                await view.show("word " * (second + 1))
    for view in views:
        await view.finish("word " * 60 + "end")
    assert slack.too_many, "each counts its own edits only"
    assert [message.text[-3:] for message in slack.messages] == ["end"] * 4


async def test_a_method_that_slack_limits_is_left_alone_for_as_long_as_it_asks(platform, slack) -> None:
    now = 0.0
    platform.pace = Pace(lambda: now)
    view = reply(platform, FLAT)
    await view.show("Good")
    slack.held["chat.update"] = 30
    for second in (10.0, 20.0, 39.0):
        now = second
        with pytest.raises(NotNow):
            await view.show("Good mor")
    assert len(slack._called_at["chat.update"]) == 1
    slack.held.clear()
    now = 41.0
    await view.show("Good mor")
    assert slack.messages[0].text == "Good mor"
