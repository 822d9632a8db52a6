"""The bot as a whole: until it is stopped, or Discord will not have it."""

import asyncio
import os
import signal
from typing import Any

import discord
import pytest
from discord_server import APPLICATION, DM, TOKEN, DiscordServer, refusal
from scripted_server import ScriptedServer, answer

from agent import Companion
from agent.errors import HachiError, SettingsError
from agent.surfaces.bots.discord.running import run


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_prints_the_invitation_and_finishes_its_replies_when_stopped(
    number: int, pet: Companion, platform: DiscordServer, server: ScriptedServer
) -> None:
    said: list[str] = []
    server.script(answer("Good night!"))
    running = asyncio.create_task(run(pet, TOKEN, said.append, guild_ready_timeout=0.05))
    async with asyncio.timeout(20):
        await platform.connected.wait()
        while not said:  # noqa: ASYNC110 - what is waited for is a call
            await asyncio.sleep(0.01)
        await platform.say("good night")
        await platform.until(lambda: platform.typed[DM])
        os.kill(os.getpid(), number)
        await running
    assert platform.shown(DM) == ["Good night!"]
    [line] = said
    assert f"client_id={APPLICATION}" in line
    assert "scope=bot+applications.commands" in line
    assert "on Discord as hachi" in line


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


async def test_an_unreachable_discord_is_an_error(pet, platform, monkeypatch) -> None:
    monkeypatch.setattr(discord.http.Route, "BASE", "http://127.0.0.1:9/api/v10")
    with pytest.raises(HachiError, match="Discord cannot be reached"):
        await run(pet, TOKEN)


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
        patch.setattr(bot.client.conversations, "add", lambda message: 1 / 0)
        await bot.hears("hello")
    await bot.hears("hello?")
    assert platform.shown(DM) == ["Hello!"]
    assert "does not take them" in caplog.text
    assert "cannot handle" in caplog.text
