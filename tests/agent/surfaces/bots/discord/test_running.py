"""The bot as a whole: where it works and for whom, what it does by itself, and when it stops."""

import asyncio
import os
import re
import signal
from types import SimpleNamespace as Is
from typing import Any

import pytest
from discord import shard
from discord_server import ANA, APPLICATION, BEN, BOT, DM, GENERAL, GUILD, TOKEN, DiscordServer, refusal
from scripted_server import Call, ScriptedServer, answer

from agent.errors import HachiError, SettingsError
from agent.surfaces.bots.discord.bot import Allowed, run
from hachi import Companion, Settings
from memory.audience import PRIVATE, Place


async def test_it_prints_the_invitation_and_finishes_its_replies_when_stopped(pet, platform, server) -> None:
    said: list[str] = []
    server.script(answer("Good night!"))
    running = asyncio.create_task(run(pet, TOKEN, said.append, guild_ready_timeout=0.05))
    async with asyncio.timeout(60):
        await platform.connected.wait()
        while not said:  # noqa: ASYNC110 - what is waited for is a call
            await asyncio.sleep(0.01)
        await platform.say("good night")
        await platform.until(lambda: platform.typed[DM])
        os.kill(os.getpid(), signal.SIGTERM)
        await running
    assert platform.shown(DM) == ["Good night!"]
    [line] = said
    assert f"client_id={APPLICATION}" in line
    assert "scope=bot+applications.commands" in line
    assert "on Discord as hachi" in line
    assert "the model tiny answers" in line


@pytest.mark.parametrize(
    ("code", "kind", "told"),
    [
        (0, SettingsError, "DISCORD_TOKEN; copy the bot's token anew"),
        (4014, SettingsError, "switch on Message Content Intent"),
        (4004, SettingsError, "copy the bot's token anew"),
        (4013, HachiError, "code 4013"),
    ],
)
async def test_refusals_are_errors_of_one_line(code, kind, told, pet, platform) -> None:
    platform.close_with = code
    with pytest.raises(kind, match=told) as raised:
        await run(pet, TOKEN if code else "wrong")
    assert "\n" not in str(raised.value)


async def test_the_bot_runs_though_discord_refuses_its_commands_and_a_message_fails(
    go_online: Any,
    platform: DiscordServer,
    server: ScriptedServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: Any,
) -> None:
    platform.faults.append(lambda method, _: refusal(400, 50035, "no") if method == "PUT" else None)
    bot = await go_online()
    server.script(answer("Hello!"))
    with monkeypatch.context() as patch:
        patch.setattr(bot.client.conversations, "receive", lambda *_: 1 / 0)
        await bot.hears("hello")
    await bot.hears("hello?")
    assert platform.shown(DM) == ["Hello!"]
    assert "does not take them" in caplog.text


async def test_discord_py_waits_a_minute_at_most_before_it_connects_again(bot) -> None:
    backoff = shard.ExponentialBackoff()
    assert max(backoff.delay() for _ in range(100)) <= 60


async def test_an_event_that_cannot_be_read_ends_nothing(bot, platform, server, caplog) -> None:
    server.script(answer("Hello!"))
    await platform.send("INTERACTION_CREATE", {"id": None})
    await bot.hears("hello")
    assert platform.shown(DM) == ["Hello!"]
    assert "event INTERACTION_CREATE cannot be read" in caplog.text


THREAD_ID = 555
SERVER = Place(("discord", str(GUILD)))


async def due(pet: Companion, what: str, place: Place = PRIVATE, user: str = f"discord:{ANA}") -> None:
    await pet.tasks.update(what, user=user, due=pet.clock(), place=place)


async def test_a_reminder_comes_in_its_thread_and_can_be_put_off_and_done(
    bot, pet, platform, server, clock
) -> None:
    platform.threads[THREAD_ID] = GENERAL
    due = {"id": None, "description": "call Ben", "status": "open", "due": "in 2 minutes"}
    server.script(Call("update_task", due), answer("I will."))
    await bot.hears(f"<@{BOT}> remind me", channel=THREAD_ID)
    receipt = platform.posted(THREAD_ID)[-1]
    assert re.fullmatch(r"I will\.\n\n-# Task due <t:\d+:f>: call Ben", receipt.text)
    assert [button["label"] for button in receipt.buttons] == ["Done"]
    clock.advance(minutes=2)
    assert await pet.reminders.run() == 1
    reminder = platform.posted(THREAD_ID)[-1]
    others = await platform.answered(await platform.press(reminder, "10 minutes", by=BEN))
    assert "somebody else" in others.text
    again = await platform.answered(await platform.press(reminder, "10 minutes"))
    assert "I remind you again: call Ben" in again.text
    assert re.search(r"again <t:\d+:f>", again.text)
    assert re.fullmatch(r"<@\d+> ⏰ “call Ben”\n-# due <t:\d+:f>\n-# \(snoozed\)", reminder.text)
    assert reminder.buttons == []
    clock.advance(minutes=9)
    assert await pet.reminders.run() == 0
    clock.advance(minutes=1)
    assert await pet.reminders.run() == 1
    reminder = platform.posted(THREAD_ID)[-1]
    assert "Done: call Ben" in (await platform.answered(await platform.press(reminder, "Done"))).text
    assert reminder.text.endswith("\n-# (done)")
    assert await pet.tasks.list(user=f"discord:{ANA}") == []


async def test_a_reminder_pings_nobody_but_its_person_and_is_otherwise_a_direct_message(
    bot, pet: Companion, platform: DiscordServer
) -> None:
    await due(pet, f"tell <@{BEN}> and @everyone", Place((*SERVER.path, str(GENERAL))))
    await due(pet, "call the dentist")
    await due(pet, "buy tea", Place((*SERVER.path, "999")))
    await due(pet, "buy milk", SERVER)
    for user in ("slack:T1:U1", "discord:nobody"):
        await due(pet, "cake", user=user)
    assert await pet.reminders.run() == 4
    [posted] = platform.posted(GENERAL)
    assert posted.text.startswith(f"<@{ANA}> ")
    assert posted.pings == {str(ANA)}
    assert len(platform.shown(DM)) == 3
    platform.closed_dms.add(DM)
    await due(pet, "bring cake")
    assert await pet.reminders.run() == 0
    await bot.client.leave()
    platform.closed_dms.clear()
    assert await pet.reminders.run() == 0


async def test_a_person_is_asked_how_it_went_in_direct_messages_and_ends_it_by_a_button(
    bot, pet, platform, server, clock, plan
) -> None:
    ana = f"discord:{ANA}"
    server.script(answer("Good luck!"), answer("How did *the exam* go?"), answer("Well done!"))
    await bot.hears("My exam is today", channel=DM)
    await plan(ana, "her exam")
    clock.advance(minutes=2)
    assert await pet.check_ins.run() == 1
    question = platform.posted(DM)[-1]
    assert question.text == r"How did \*the exam\* go?"
    assert [button["label"] for button in question.buttons] == ["Not now", "Stop these"]
    await bot.hears("I passed", channel=DM)
    assert server.asked[-1].conversation[-2][1].endswith("How did *the exam* go?")

    assert "will not ask" in (await platform.answered(await platform.press(question, "Not now"))).text
    assert (question.text.splitlines()[-1], question.buttons) == ("-# (not now)", [])
    await plan(ana, "her test")
    server.script(answer("How was the test?"))
    clock.advance(days=1, minutes=1)
    assert await pet.check_ins.run() == 1
    await platform.answered(await platform.press(platform.posted(DM)[-1], "Stop these"))
    assert not await pet.check_ins.wanted(user=ana)


async def test_nobody_is_asked_where_roles_say_who_may_use_the_bot(
    go_online, pet, platform, server, clock, plan
) -> None:
    bot = await go_online()
    server.script(answer("Good luck!"))
    await bot.hears("My exam is today", channel=DM)
    await plan(f"discord:{ANA}", "her exam")
    await bot.client.leave()
    object.__setattr__(pet.settings, "discord_roles", frozenset({7}))
    await go_online()
    clock.advance(minutes=2)
    assert await pet.check_ins.run() == 0
    assert len(platform.posted(DM)) == 1


async def test_a_call_that_changes_something_waits_for_its_person_and_runs_once(
    bot, pet, platform, server, clouds
) -> None:
    call = Call("sky_move_clouds", {"town": "*Lyon*"})
    server.script(call, answer("I have asked you."), answer("The clouds are there."))
    await bot.hears(f"<@{BOT}> move the clouds", channel=GENERAL)
    question = next(one for one in platform.posted(GENERAL) if one.buttons)
    assert question.text == f"<@{ANA}> Shall I do this?\nMove clouds, with sky\ntown: \\*Lyon\\*"
    assert "somebody else" in (await platform.answered(await platform.press(question, "Yes", by=BEN))).text
    assert clouds() == []
    pressed = [await platform.press(question, "Yes") for _ in range(2)]
    assert {(await platform.answered(one)).text for one in pressed} == {
        "I am doing it: Move clouds. I will tell you the result.",
        "That is answered already, has timed out, or is for somebody else to answer.",
    }
    await platform.until(lambda: "The clouds are there." in platform.posted(GENERAL)[-1].text)
    assert clouds() == ['{"town": "*Lyon*"}']


CHANNEL = Is(id=20, guild=Is(id=1))
THREAD = Is(id=30, parent_id=20, guild=Is(id=1))
PRIVATELY = Is(id=40)
MEMBER = Is(roles=[Is(id=7), Is(id=8)])


@pytest.mark.parametrize(
    ("given", "permitted"),
    [
        ({}, True),
        ({"servers": {1}}, True),
        ({"servers": {2}}, False),
        ({"channels": {21}}, False),
        ({"roles": {8}}, True),
        ({"servers": {1}, "channels": {20}, "roles": {9}}, False),
    ],
)
def test_every_list_that_is_set_must_name_it(given, permitted):
    allowed = Allowed(**{name: frozenset(ids) for name, ids in given.items()})
    assert allowed.permits(CHANNEL, MEMBER) is permitted
    assert allowed.permits(THREAD, MEMBER) is permitted, "a thread is within its channel"
    privately = {"servers": frozenset({1}), "channels": frozenset({2})}
    assert Allowed(**privately).permits(PRIVATELY, Is())
    assert not Allowed(roles=frozenset({7})).permits(PRIVATELY, Is())


def test_the_settings_name_ids_with_commas_between_them(monkeypatch, tmp_path):
    monkeypatch.setenv("HACHI_DISCORD_CHANNELS", "20, 21")
    assert Settings.load().discord_channels == {20, 21}
    monkeypatch.setenv("HACHI_DISCORD_CHANNELS", "general")
    with pytest.raises(Exception, match="HACHI_DISCORD_CHANNELS"):
        Settings.load()
