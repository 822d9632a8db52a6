"""How events come in, by Socket Mode and by HTTP, signed; and what the bot does by itself."""

import asyncio
import logging
import re
import signal
from typing import Any

import aiohttp
import pytest
from scripted_server import Call, answer
from slack_server import buttons_of

from agent.errors import SettingsError
from agent.surfaces.bots.slack.bot import run
from hachi import Settings
from memory.audience import PRIVATE, Place

DM = "D1"


@pytest.fixture
async def address(go_online: Any) -> str:
    bot = await go_online(http=True)
    return str(bot.where.partition("events at ")[2])


async def test_a_signed_event_is_answered_once(address, slack, server) -> None:
    server.script(answer("Hello!"))
    message = slack.says("UANA", "hello", channel=DM)
    assert await slack.post(address, message) == 200
    again = {"X-Slack-Retry-Num": "1", "X-Slack-Retry-Reason": "http_timeout"}
    assert await slack.post(address, message, **again) == 200
    await slack.until(lambda: slack.in_channel(DM))
    assert [message.text for message in slack.in_channel(DM)] == ["Hello!"]
    assert logging.getLogger("hachi").level == logging.NOTSET, "Bolt leaves the bot's own log as it is"
    reaction = slack.event({"type": "reaction_added", "user": "UANA", "item": {}})
    assert await slack.post(address, reaction) == 200
    challenge = {"type": "url_verification", "challenge": "3eZbrw", "token": "old"}
    assert await slack.post(address, challenge) == 200


async def test_requests_that_slack_did_not_sign_just_now_are_refused(address, slack, server) -> None:
    forgeries: tuple[dict[str, Any], ...] = (
        {"secret": "another"},
        {"age": 600},
        {"X-Slack-Signature": "v0=0"},
    )
    for forged in forgeries:
        assert await slack.post(address, slack.says("UANA", "hello", channel=DM), **forged) == 401
        assert await slack.post(address, slack.command("/forget-me", user="UANA"), **forged) == 401
    async with aiohttp.ClientSession() as session, session.post(address, data=b"{}") as response:
        assert response.status == 401
    assert await slack.post(address, slack.says("UANA", "x" * 2_000_000, channel=DM)) == 413
    assert server.asked == []


@pytest.mark.parametrize(
    ("method", "told"), [("auth.test", "SLACK_BOT_TOKEN"), ("apps.connections.open", "SLACK_APP_TOKEN")]
)
async def test_a_token_that_is_revoked_while_it_runs_ends_it_with_a_line(
    pet: Any, settings: Settings, slack: Any, monkeypatch: pytest.MonkeyPatch, method: str, told: str
) -> None:
    monkeypatch.setattr("agent.surfaces.bots.slack.bot.ASK_SECONDS", 0.01)
    async with asyncio.timeout(60):
        running = asyncio.create_task(run(pet, settings, print))
        await slack.until(lambda: slack.connections)
        slack.refused[method] = "token_revoked"
        await slack.hang_up()
        with pytest.raises(SettingsError, match=f"Slack refuses {told} .token_revoked.; copy"):
            await running


async def test_it_runs_until_a_signal(pet, settings) -> None:
    told: list[str] = []

    def say(line: str) -> None:
        told.append(line)
        signal.raise_signal(signal.SIGTERM)

    async with asyncio.timeout(60):
        await run(pet, settings, say, ("127.0.0.1", 0))
    assert told[0].startswith("on Slack in Acme as hachi, ")
    assert "the rule-based stand-in answers; Ctrl-C" in told[0]


async def test_reminders_reach_people_while_the_bot_runs(go_online, slack, pet, clock) -> None:
    slack.closed = {"C2"}
    clock.advance(minutes=5)
    for what, user, path in (
        ("call the dentist", "slack:T1:UANA", ()),
        ("bring <!channel> cake", "slack:T1:UANA", ("slack", "T1", "C1")),
        ("buy milk", "slack:T1:UANA", ("slack", "T1", "C2")),
        ("of another workspace", "slack:T2:UANA", ()),
    ):
        place = Place(path) if path else PRIVATE
        await pet.components.tasks.update(user, what, now=clock(), due=clock(), place=place)
    assert await pet.reminders.run() == 0
    await go_online()
    assert await pet.reminders.run() == 3
    assert "call the dentist" in slack.in_channel("DANA")[0].text
    assert len(slack.in_channel("DANA")) == 2
    [public] = slack.in_channel("C1")
    said = public.blocks[0]["elements"][0]["elements"]
    assert said[0] == {"type": "user", "user_id": "UANA"}
    assert "bring <!channel> cake" in said[2]["text"]
    assert "bring &lt;!channel&gt; cake" in public.text


async def test_a_reminder_comes_in_its_thread_and_can_be_put_off_and_done(
    bot, slack, pet, clock, server
) -> None:
    due = {"id": None, "description": "call Ben", "status": "open", "due": "in 2 minutes"}
    server.script(Call("update_task", due), answer("I will."), answer("Then not."))
    asked = slack.mentions("UANA", "remind me", channel="C1", ts="1.5")
    await bot.hears(*asked)
    [receipt] = slack.only_for("UANA")
    assert re.fullmatch(r"Remembered:\nTask: call Ben \(due <!date\^\d+\^.*>\)", receipt.text)
    clock.advance(minutes=2)
    assert await pet.reminders.run() == 1
    reminder = slack.in_channel("C1", thread="1.5")[-1]
    assert re.fullmatch("⏰ “call Ben”\ndue <!date.*>", reminder.text)
    done, soon, *_ = buttons_of(reminder.blocks)
    for pressed, user, replaced in ((soon, "UBEN", False), (soon, "UANA", True)):
        before = len(slack.responses)
        await slack.deliver(slack.pressed(pressed, user=user, channel="C1"))
        await slack.until(lambda before=before: len(slack.responses) > before)
        assert slack.responses[-1]["replace_original"] is replaced
    assert re.fullmatch("I remind you again: call Ben\nagain <!date.*>", slack.responses[-1]["text"])
    clock.advance(minutes=9)
    assert await pet.reminders.run() == 0
    clock.advance(minutes=1)
    assert await pet.reminders.run() == 1
    await bot.hears(slack.says("UANA", "no!", channel="C1", thread_ts="1.5"))
    assert "⏰ “call Ben”" in server.asked[-1].conversation[-2][1], "the talk of the thread has it"
    for pressed in (done, soon):
        await slack.deliver(slack.pressed(pressed, user="UANA", channel="C1"))
    await slack.until(lambda: "no longer open" in slack.responses[-1]["text"])
    assert "Done: call Ben" in slack.responses[-2]["text"]
    assert await pet.tasks.list(user="slack:T1:UANA") == []


async def test_a_person_is_asked_how_it_went_in_direct_messages_and_ends_it_by_a_button(
    bot, slack, pet, clock, server, plan
) -> None:
    ana = "slack:T1:UANA"
    server.script(answer("Good luck!"), answer("How did the <!channel> exam go?"), answer("Well done!"))
    await bot.hears(slack.says("UANA", "My exam is today", channel="DANA"))
    await plan(ana, "her exam")
    clock.advance(minutes=2)
    assert await pet.check_ins.run() == 1
    question = slack.in_channel("DANA")[-1]
    assert question.text == "How did the &lt;!channel&gt; exam go?"
    not_now, stop = buttons_of(question.blocks)
    await bot.hears(slack.says("UANA", "I passed", channel="DANA"))
    assert server.asked[-1].conversation[-2][1].endswith("How did the <!channel> exam go?")
    for pressed, told in ((not_now, "will not ask about that"), (stop, "Check-ins are off")):
        await slack.deliver(slack.pressed(pressed, user="UANA", channel="DANA"))
        await slack.until(lambda told=told: slack.responses and told in slack.responses[-1]["text"])
        assert slack.responses[-1]["replace_original"]
    assert not await pet.check_ins.wanted(user=ana)


async def test_a_call_that_changes_something_waits_for_its_person_and_runs_once(
    bot, slack, pet, server, clouds
) -> None:
    call = Call("sky_move_clouds", {"town": "<!channel>"})
    server.script(call, answer("I have asked you."), answer("The clouds are there."))
    await bot.hears(*slack.mentions("UANA", "move the clouds", channel="C1", ts="1.5"))
    question = next(one for one in slack.in_channel("C1", thread="1.5") if "Shall I" in one.text)
    assert question.text == "Shall I do this?\nMove clouds, with sky\ntown: &lt;!channel&gt;"
    yes, _ = buttons_of(question.blocks)
    for user, told in (
        ("UBEN", "for somebody else"),
        ("UANA", "doing it: Move clouds"),
        ("UANA", "That is answered"),
    ):
        await slack.deliver(slack.pressed(yes, user=user, channel="C1"))
        await slack.until(lambda told=told: slack.responses and told in slack.responses[-1]["text"])
        assert len(clouds()) <= (user == "UANA")
    await slack.until(lambda: "The clouds are there." in slack.in_channel("C1", thread="1.5")[-1].text)
    assert clouds() == ['{"town": "<!channel>"}']
