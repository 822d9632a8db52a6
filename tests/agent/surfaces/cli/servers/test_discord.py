"""`hachi discord`: what it needs, and that it runs until it is stopped."""

import asyncio
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import yarl
from discord_server import TOKEN, DiscordServer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of audioop, for voice, which is not used
    import discord
    from discord.gateway import DiscordWebSocket


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISCORD_TOKEN", raising=False)


def test_without_a_token_it_says_what_to_do(hachi: Callable[..., Any]) -> None:
    ran = hachi("discord")
    assert ran.code == 1
    assert ran.complaint.startswith("hachi: set DISCORD_TOKEN")


def test_without_the_library_it_says_what_to_install(
    hachi: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("agent.surfaces.bots.discord")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "discord", None)
    ran = hachi("discord")
    assert ran.code == 1
    assert ran.complaint == "hachi: discord.py is not installed; run: pip install 'hachi[discord]'"


def test_it_runs_until_it_is_stopped(hachi: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Discord runs in a thread of its own, and stops the command once it has seen the bot."""
    listening = threading.Event()
    address = ""

    async def serve() -> None:
        nonlocal address
        async with DiscordServer.running() as platform, asyncio.timeout(30):
            address = platform.address
            listening.set()
            await platform.connected.wait()
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.5)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert listening.wait(10)
    monkeypatch.setattr(discord.http.Route, "BASE", f"http://{address}/api/v10")
    monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(f"ws://{address}/gw/"))
    monkeypatch.setenv("DISCORD_TOKEN", TOKEN)
    ran = hachi("discord")
    thread.join()
    assert (ran.code, ran.out) == (0, "")


def test_a_token_that_discord_refuses_is_told(
    hachi: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discord.http.Route, "BASE", "http://127.0.0.1:9/api/v10")
    monkeypatch.setenv("DISCORD_TOKEN", "wrong")
    ran = hachi("discord")
    assert ran.code == 1
    assert "Discord cannot be reached" in ran.complaint
    assert "wrong" not in ran.complaint
