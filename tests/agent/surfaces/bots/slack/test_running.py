"""How events come in: by Socket Mode, over connections that drop, and by HTTP, signed."""

import asyncio
import signal
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from scripted_server import Hang, ScriptedServer, answer
from slack_server import SlackServer, buttons_of

from agent import Companion, Settings
from agent.errors import HachiError, SettingsError
from agent.surfaces.bots.slack import running
from agent.surfaces.bots.slack.running import run

DM = "D1"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PING_SECONDS", 0.2)


@pytest.mark.parametrize("politely", [True, False], ids=["with notice", "without"])
async def test_a_connection_that_ends_is_made_anew(
    impatient: None, bot: Any, slack: SlackServer, server: ScriptedServer, politely: bool
) -> None:
    server.script(answer("Before."), answer("After."))
    await bot.hears(slack.says("UANA", "one", channel=DM))
    await slack.hang_up(politely=politely)
    await slack.until(lambda: slack.connections == 2)
    await bot.hears(slack.says("UANA", "two", channel=DM))
    assert [message.text for message in slack.in_channel(DM)] == ["Before.", "After."]


async def test_what_was_not_acknowledged_in_time_comes_again_and_is_answered_once(
    impatient: None, bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Hello!"))
    message = slack.says("UANA", "hello", channel=DM)
    await bot.hears(message)
    await slack.hang_up(politely=True)
    await slack.until(lambda: slack.connections == 2)
    await slack.deliver(message, retry_attempt=2, retry_reason="timeout")
    await bot.hachi.conversations.settle()
    assert [message.text for message in slack.in_channel(DM)] == ["Hello!"]


class TestHttp:
    @pytest.fixture
    async def bot(self, go_online: Any) -> Any:
        return await go_online(http=True)

    @pytest.fixture
    def address(self, bot: Any) -> str:
        return str(bot.where.partition("events at ")[2])

    async def test_a_signed_event_is_answered(
        self, bot: Any, address: str, slack: SlackServer, server: ScriptedServer
    ) -> None:
        server.script(answer("Hello!"))
        message = slack.says("UANA", "hello", channel=DM)
        assert await slack.post(address, message) == 200
        again = {"X-Slack-Retry-Num": "1", "X-Slack-Retry-Reason": "http_timeout"}
        assert await slack.post(address, message, **again) == 200
        await bot.hachi.conversations.settle()
        assert [message.text for message in slack.in_channel(DM)] == ["Hello!"]

    @pytest.mark.parametrize(
        "forged", [{"secret": "another"}, {"age": 600}, {"X-Slack-Signature": "v0=00"}], ids=str
    )
    async def test_what_slack_did_not_sign_just_now_is_refused(
        self, bot: Any, address: str, slack: SlackServer, server: ScriptedServer, forged: dict[str, Any]
    ) -> None:
        assert await slack.post(address, slack.says("UANA", "hello", channel=DM), **forged) == 401
        assert await slack.post(address, slack.command("/forget-me", user="UANA"), **forged) == 401
        await bot.hachi.conversations.settle()
        assert server.asked == []

    async def test_what_is_not_signed_at_all_is_refused(self, address: str) -> None:
        async with aiohttp.ClientSession() as session, session.post(address, data=b"{}") as response:
            assert response.status == 401

    async def test_bodies_that_are_too_long_are_not_read(self, address: str, slack: SlackServer) -> None:
        assert await slack.post(address, slack.says("UANA", "x" * 2_000_000, channel=DM)) == 413

    async def test_slack_finds_the_address_to_be_right(self, address: str, slack: SlackServer) -> None:
        challenge = {"type": "url_verification", "challenge": "3eZbrw", "token": "old"}
        assert await slack.post(address, challenge) == 200

    async def test_what_nobody_listens_to_is_acknowledged(self, address: str, slack: SlackServer) -> None:
        reaction = slack.event({"type": "reaction_added", "user": "UANA", "item": {}})
        assert await slack.post(address, reaction) == 200

    async def test_a_modal_comes_in_there_too(self, address: str, slack: SlackServer, pet: Companion) -> None:
        told = slack.command("/remember", "Ana has the flu", user="UANA", channel="C1")
        assert await slack.post(address, told) == 200
        await slack.until(lambda: slack.responses)
        edit = next(b for b in buttons_of(slack.responses[0]["blocks"]) if b["text"]["text"] == "Edit")
        assert await slack.post(address, slack.pressed(edit, user="UANA", channel="C1")) == 200
        await slack.until(lambda: slack.modals)
        assert await slack.post(address, slack.filled_in("Ana is well", user="UANA")) == 200
        await slack.until(lambda: len(slack.responses) == 2)
        assert [memory.content for memory in await pet.memories(user="slack:T1:UANA")] == ["Ana is well"]

    async def test_commands_and_buttons_come_in_there_too(self, address: str, slack: SlackServer) -> None:
        assert await slack.post(address, slack.command("/forget-me", user="UANA")) == 200
        await slack.until(lambda: slack.responses)
        keep = slack.responses[0]["blocks"][-1]["elements"][1]
        assert await slack.post(address, slack.pressed(keep, user="UANA")) == 200
        await slack.until(lambda: len(slack.responses) == 2)
        assert "nothing was changed" in slack.responses[1]["text"]

    async def test_an_event_is_acknowledged_while_the_model_still_thinks(
        self, bot: Any, address: str, slack: SlackServer, server: ScriptedServer
    ) -> None:
        server.script(Hang())
        assert await slack.post(address, slack.says("UANA", "hello", channel=DM)) == 200
        assert slack.in_channel(DM) == []
        await bot.hachi.conversations.stop(grace=0)


@pytest.mark.parametrize(
    ("given", "http", "told"),
    [
        ({"slack_bot_token": "xoxb-wrong"}, False, "Slack refuses SLACK_BOT_TOKEN (invalid_auth)"),
        ({"slack_app_token": "xapp-wrong"}, False, "Slack refuses SLACK_APP_TOKEN (invalid_auth)"),
        ({"slack_bot_token": None}, False, "set SLACK_BOT_TOKEN"),
        ({"slack_app_token": None}, False, "set SLACK_APP_TOKEN"),
        ({"slack_signing_secret": None}, True, "set SLACK_SIGNING_SECRET"),
    ],
)
async def test_a_token_that_is_missing_or_refused_is_told_with_what_to_do(
    pet: Companion, settings: Settings, given: dict[str, Any], http: bool, told: str
) -> None:
    wrong = Settings.load(**settings.model_dump(include=TOKENS) | given)
    with pytest.raises(SettingsError) as error:
        await run(pet, wrong, print, ("127.0.0.1", 0) if http else None)
    assert told in str(error.value)


TOKENS = {"slack_bot_token", "slack_app_token", "slack_signing_secret", "slack_api_url"}


async def test_a_slack_that_is_away_is_told(pet: Companion, settings: Settings) -> None:
    nowhere = Settings.load(**settings.model_dump(include=TOKENS) | {"slack_api_url": "http://127.0.0.1:1/"})
    with pytest.raises(HachiError, match="Slack cannot be reached"):
        await run(pet, nowhere, print)


async def test_a_port_that_is_taken_is_told(pet: Companion, settings: Settings, slack: SlackServer) -> None:
    with pytest.raises(OSError, match="address already in use"):
        await run(pet, settings, print, ("127.0.0.1", int(slack.url.rpartition(":")[2])))


@pytest.mark.parametrize("http", [None, ("127.0.0.1", 0)], ids=["socket", "http"])
async def test_it_runs_until_it_is_told_to_stop(
    pet: Companion, settings: Settings, http: tuple[str, int] | None
) -> None:
    told: list[str] = []

    def say(line: str) -> None:
        told.append(line)
        signal.raise_signal(signal.SIGTERM)

    async with asyncio.timeout(10):
        await run(pet, settings, say, http)
    assert told[0].startswith("on Slack in Acme as hachi, ")


async def test_reminders_reach_people_for_as_long_as_it_runs(
    go_online: Callable[..., Any], slack: SlackServer, pet: Companion, clock: Any
) -> None:
    ana, there = "slack:T1:UANA", "place:slack/T1/C1/1.5"
    clock.advance(minutes=5)
    await pet.services.tasks.put(ana, "call the dentist", now=clock(), due=clock())
    await pet.services.tasks.put(ana, "bring <!channel> cake", now=clock(), due=clock(), place=there)
    await pet.services.tasks.put("slack:T2:UANA", "not ours to tell", now=clock(), due=clock())
    assert await pet.reminders.run() == 0
    await go_online()
    assert await pet.reminders.run() == 2
    [private] = slack.in_channel("DANA")
    assert "call the dentist" in private.text
    [public] = slack.in_channel("C1", thread="1.5")
    assert public.text.startswith("<@UANA> ")
    assert "bring &lt;!channel&gt; cake" in public.text


async def test_where_a_channel_is_closed_the_person_is_reminded_in_private(
    bot: Any, slack: SlackServer, pet: Companion, clock: Any
) -> None:
    slack.closed = {"C1"}
    await pet.services.tasks.put("slack:T1:UANA", "cake", now=clock(), due=clock(), place="place:slack/T1/C1")
    assert await pet.reminders.run() == 1
    assert len(slack.in_channel("DANA")) == 1


async def test_whoever_cannot_be_reached_is_tried_again_later(
    bot: Any, slack: SlackServer, pet: Companion, clock: Any
) -> None:
    slack.closed = {"DANA"}
    await pet.services.tasks.put("slack:T1:UANA", "cake", now=clock(), due=clock())
    assert await pet.reminders.run() == 0
    slack.closed = set()
    clock.advance(hours=1)
    assert await pet.reminders.run() == 1
