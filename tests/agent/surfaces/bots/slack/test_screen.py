"""A reply that is shown while it is written, in a thread and elsewhere."""

from typing import Any

import pytest
from slack_server import BOT_TOKEN, SlackServer, buttons_of

from agent import Companion, Settings
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.receipts import Receipt
from agent.surfaces.bots.slack.app import build_client
from agent.surfaces.bots.slack.screen import LONGEST, ReplyScreen, Stage, Where
from agent.surfaces.bots.turns import Said
from memory.audience import PRIVATE, Place

THREAD = Where("T1", "C1", "UANA", "1.5", "1.5")
FLAT = Where("T1", "D1", "UANA", "1.5", None)
RECEIPT = Receipt("Ana likes tea", "m1", None, "delete")


@pytest.fixture
def stage(settings: Settings, pet: Companion) -> Stage:
    return Stage(build_client(settings), Commands(pet))


def screen_at(stage: Stage, where: Where) -> ReplyScreen:
    place = Place(("slack", "T1", "C1")) if where.thread else PRIVATE
    return stage.screen(Said("slack:T1:UANA", "Ana", "hello", place, where=where))


async def test_in_a_thread_what_is_new_is_appended_to_a_stream(stage: Stage, slack: SlackServer) -> None:
    screen = screen_at(stage, THREAD)
    await screen.show("Good")
    await screen.show("Good mor")
    await screen.end("Good morning <3", ())
    [message] = slack.messages
    assert message.versions == ["Good", "Good mor", "Good morning &lt;3", "Good morning &lt;3"]
    assert (message.streamed, message.streaming) == (True, False)
    assert slack.called("chat.update") == []


async def test_a_stream_that_turns_out_otherwise_is_ended_and_edited(
    stage: Stage, slack: SlackServer
) -> None:
    screen = screen_at(stage, THREAD)
    await screen.show('{"message": "Goo')
    await screen.end("Good morning", ())
    [message] = slack.messages
    assert (message.text, message.streaming) == ("Good morning", False)


async def test_a_stream_that_expired_is_edited(stage: Stage, slack: SlackServer) -> None:
    screen = screen_at(stage, THREAD)
    await screen.show("Good")
    slack.expire_streams()
    await screen.show("Good mor")
    await screen.end("Good morning", ())
    assert [message.text for message in slack.messages] == ["Good morning"]
    assert len(slack.called("chat.update")) == 2


async def test_a_stream_that_expired_at_the_end_does_no_harm(stage: Stage, slack: SlackServer) -> None:
    screen = screen_at(stage, THREAD)
    await screen.show("Good morning")
    slack.expire_streams()
    await screen.end("Good morning", ())
    assert [message.text for message in slack.messages] == ["Good morning"]


async def test_outside_of_threads_the_message_is_edited(stage: Stage, slack: SlackServer) -> None:
    screen = screen_at(stage, FLAT)
    await screen.show("Good")
    await screen.end("Good morning", ())
    [message] = slack.messages
    assert message.versions == ["Good", "Good morning"]
    assert not message.streamed


@pytest.mark.parametrize("where", [THREAD, FLAT], ids=["stream", "message"])
async def test_a_message_that_somebody_took_away_is_posted_anew(
    stage: Stage, slack: SlackServer, where: Where
) -> None:
    screen = screen_at(stage, where)
    await screen.show("Good")
    slack.messages.clear()
    await screen.end("Good morning", ())
    assert [message.text for message in slack.messages] == ["Good morning"]


async def test_what_got_shorter_takes_its_last_message_away(stage: Stage, slack: SlackServer) -> None:
    for where in (THREAD, FLAT):
        slack.messages.clear()
        screen = screen_at(stage, where)
        await screen.show("long " * (LONGEST // 4))
        assert len(slack.messages) == 2
        await screen.end("short", ())
        assert [message.text for message in slack.messages] == ["short"]


async def test_a_last_message_that_is_gone_already_is_no_matter(stage: Stage, slack: SlackServer) -> None:
    screen = screen_at(stage, FLAT)
    await screen.show("long " * (LONGEST // 4))
    slack.messages.pop()
    await screen.end("short", ())
    assert [message.text for message in slack.messages] == ["short"]


@pytest.mark.parametrize("method", ["chat.update", "chat.delete", "chat.postMessage"])
async def test_what_slack_refuses_comes_through_to_be_tried_again(
    stage: Stage, slack: SlackServer, method: str
) -> None:
    slack.refused[method] = "fatal_error"
    screen = screen_at(stage, FLAT)
    with pytest.raises(Exception, match="fatal_error"):
        await _grow_and_shrink(screen)
    slack.refused.clear()
    await screen.end("short", ())
    assert [message.text for message in slack.messages] == ["short"]


async def _grow_and_shrink(screen: ReplyScreen) -> None:
    await screen.show("begun")
    await screen.show("long " * (LONGEST // 4))
    await screen.show("short")


async def test_a_refused_stream_is_a_message_and_streams_are_tried_again(
    stage: Stage, slack: SlackServer
) -> None:
    slack.refused["chat.startStream"] = "internal_error"
    await screen_at(stage, THREAD).end("Good morning", ())
    slack.refused.clear()
    await screen_at(stage, THREAD).end("Good evening", ())
    assert [(message.text, message.streamed) for message in slack.messages] == [
        ("Good morning", False),
        ("Good evening", True),
    ]


async def test_receipts_are_told_once_however_often_the_end_is_shown(
    stage: Stage, slack: SlackServer
) -> None:
    screen = screen_at(stage, FLAT)
    await screen.end("Noted.", [RECEIPT])
    await screen.end("Noted.", [RECEIPT])
    assert len(slack.only_for("UANA")) == 1


async def test_receipts_that_cannot_be_told_do_not_spoil_the_answer(stage: Stage, slack: SlackServer) -> None:
    slack.refused["chat.postEphemeral"] = "user_not_in_channel"
    await screen_at(stage, FLAT).end("Noted.", [RECEIPT])
    assert [message.text for message in slack.messages] == ["Noted."]


async def test_several_receipts_can_each_be_taken_back(stage: Stage, slack: SlackServer) -> None:
    other = Receipt("Ana lives in Lyon", "m2", None, "undo")
    await screen_at(stage, FLAT).end("Noted.", [RECEIPT, other])
    [receipt] = slack.only_for("UANA")
    ids = [button["action_id"] for button in buttons_of(receipt.blocks)]
    assert ids == ["hachi.delete", "hachi.edit", "hachi.undo", "hachi.edit"]


async def test_a_status_that_slack_does_not_take_is_no_matter(stage: Stage, slack: SlackServer) -> None:
    slack.refused["assistant.threads.setStatus"] = "channel_not_found"
    async with stage.busy(Said("slack:T1:UANA", "Ana", "hello", PRIVATE, where=FLAT)):
        pass
    assert slack.statuses == []


async def test_the_token_is_the_bots(stage: Any) -> None:
    assert stage.client.token == BOT_TOKEN
