"""The command as a process of its own: at a terminal, beside workers, stopped and killed. One server of
processes is started for all of them, as they are in one module."""

import asyncio
import json
import os
import pty
import re
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from command import until, use_home
from discord_server import DM, DiscordServer
from discord_server import TOKEN as DISCORD_TOKEN
from forked import forked
from pexpect import fdpexpect
from scripted_server import Hang, ScriptedServer, answer
from slack_server import APP_TOKEN, BOT_TOKEN, SlackServer

PROMPT = r"\x1b\[\?2004h[^\r\n]*mickael:"


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_home(monkeypatch, home)
    return home


def test_at_a_real_terminal(home: Path) -> None:
    settings = os.environ | {"PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "xterm"}
    master, screen = pty.openpty()
    with forked("chat", settings=settings, files=(screen, screen)) as running:
        terminal = fdpexpect.fdspawn(master, encoding="utf-8", timeout=30)
        terminal.expect("rule-based stand-in")
        terminal.expect("Ctrl-D or exit ends")
        terminal.expect(PROMPT)
        terminal.send("I broke my shoulder\r")
        terminal.expect("hachi: .*shoulder")
        terminal.expect(PROMPT)
        terminal.send("I bro\x03")
        terminal.expect(PROMPT)
        terminal.send("\x04")
        running.join(timeout=20)
        assert running.exitcode == 0
        terminal.close()


def test_ctrl_c_ends_a_process_with_one_line(home: Path) -> None:
    (heard, keys), (told, said) = os.pipe(), os.pipe()
    with forked("chat", files=(heard, said)) as running, open(told) as out, open(keys, "w") as typing:
        typing.write("hello\n")
        typing.flush()
        assert any(line.startswith("Tell me something") for line in out)
        os.kill(running.pid or 0, signal.SIGINT)
        running.join(timeout=20)
        assert running.exitcode == 1, "it waits for a line that never comes"
        assert out.read().splitlines()[-1] == "hachi: stopped"


def children(parent: int) -> set[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children")
    return {int(one) for one in listed.read_text().split()} if listed.exists() else set()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="it looks for processes in /proc")
def test_workers_answer_at_one_address_and_end_with_the_first_process(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    told, said = os.pipe()
    files = os.open(os.devnull, os.O_RDONLY), said
    with forked("serve", "--port", "0", "--workers", "2", files=files) as running, open(told) as out:
        listening = next(line for line in out if "listening on" in line)
        address = re.findall(r"listening on (http://\S+);", listening)[0]
        parent = running.pid or 0
        [worker] = until(lambda: children(parent))
        os.kill(worker, signal.SIGKILL)
        [another] = until(lambda: children(parent) - {worker})
        with urlopen(f"{address}/healthz", timeout=20) as answered:
            assert json.load(answered) == {"status": "ok"}
        running.kill()
        until(lambda: not Path(f"/proc/{another}").exists())


class OnSlack:
    command = "slack"

    def __init__(self, server: SlackServer) -> None:
        self.server = server
        self.settings = {
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_API_URL": server.api,
        }
        self.events: list[Any] = []

    async def say(self, text: str) -> None:
        self.events.append(self.server.says("UANA", text, channel="D1"))
        await self.server.deliver(self.events[-1])

    async def say_all_again(self) -> None:
        await self.server.deliver(*self.events)

    @property
    def shown(self) -> list[str]:
        return [message.text for message in self.server.in_channel("D1")]


class OnDiscord:
    command = "discord"

    def __init__(self, server: DiscordServer) -> None:
        self.server = server
        self.settings = {
            "DISCORD_TOKEN": DISCORD_TOKEN,
            "DISCORD_API_URL": f"http://{server.address}/api/v10",
        }

    async def say(self, text: str) -> None:
        async with asyncio.timeout(30):
            await self.server.connected.wait()
        await self.server.say(text)

    async def say_all_again(self) -> None:
        await self.server.connected.wait()
        for said in self.server.history[DM]:
            await self.server.send("MESSAGE_CREATE", said)

    @property
    def shown(self) -> list[str]:
        return self.server.shown(DM)


ON_DISCORD = pytest.param((DiscordServer, OnDiscord), id="discord", marks=pytest.mark.slow)


@pytest.fixture(params=[pytest.param((SlackServer, OnSlack), id="slack"), ON_DISCORD])
async def platform(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    server, on = request.param
    async with server.running() as running:
        yield on(running)


async def holds(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.02)


async def test_after_a_kill_the_next_start_ends_the_reply_that_was_cut_and_answers_what_waited_once(
    home: Path,
    platform: Any,
    server: ScriptedServer,
    rows: Callable[..., Any],
    end_claims: Callable[[], object],
) -> None:
    model = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test", "HACHI_MODEL": "tiny"}
    settings = os.environ | model | {"HACHI_API": "chat", "HACHI_MODEL_RETRIES": "0"} | platform.settings
    waiting = "SELECT * FROM work WHERE kind = 'answer'"
    server.script(Hang('{"message": "Once upon', 9))
    with forked(platform.command, settings=settings):
        await platform.say("a story, please")
        await holds(lambda: platform.shown and rows(f"{waiting} AND payload LIKE '%:%:%'"))
        assert platform.shown[0].startswith("Once")
        await platform.say("are you there?")
        await holds(lambda: len(rows(waiting)) == 2)
    end_claims()
    getattr(platform.server, "connected", asyncio.Event()).clear()
    server.script(answer("Once upon a time."), answer("Here I am."), answer("Twice!"))
    with forked(platform.command, settings=settings):
        await platform.say_all_again()
        await holds(lambda: len(platform.shown) == 2)
        await platform.say_all_again()
        await holds(lambda: not rows(waiting))
    assert platform.shown == ["Once upon a time.", "Here I am."]
    assert len(rows("SELECT * FROM messages")) == 4
