"""What runs until it is stopped: most of it in this process, each kind once as a process of its own."""

import asyncio
import json
import signal
import socket
import sys
import urllib.request
import warnings
from contextlib import contextmanager

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from command import stopping, until
from discord_server import TOKEN, DiscordServer
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from slack_server import APP_TOKEN, BOT_TOKEN, SlackServer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of audioop, for voice, which is not used
    from discord.http import Route


def ask(address, path="", key=None):
    request = urllib.request.Request(address + path)
    if key:
        request.add_header("authorization", f"Bearer {key}")
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
        return answer.read()


def test_serve_runs_until_a_signal(hachi):
    def visit(address):
        assert json.loads(ask(address, "/healthz")) == {"status": "ok"}
        assert json.loads(ask(address, "/v1/models"))["data"][0]["id"] == "hachi"

    ran = hachi.serving("serve", "--port", "0", visit=visit, stop=signal.SIGINT)
    assert ran.code == 0
    first, _, last = ran.err.splitlines()
    assert "no key yet" in first
    assert last == "hachi: stopped"


def test_the_pages_of_traces_are_served(hachi):
    ran = hachi.serving(
        *("traces", "serve", "--port", "0"),
        visit=lambda address: b"There is no trace yet" in ask(address) or pytest.fail(address),
    )
    assert (ran.code, "so whoever is on this machine may look" in ran.err) == (0, True)


def test_a_worker_runs_until_a_signal_and_touches_its_heartbeat(hachi, tmp_path):
    def stop(_, err):
        with stopping(signal.SIGTERM):
            until(lambda: "doing background work; Ctrl-C stops" in err.getvalue())
            until((tmp_path / "beat").exists)

    ran = hachi("worker", "--heartbeat", str(tmp_path / "beat"), meanwhile=stop)
    assert (ran.code, ran.err.splitlines()[-1]) == (0, "hachi: stopped")


def test_other_machines_are_refused_while_there_is_no_key(shared):
    ran = shared("serve", "--port", "0", "--host", "0.0.0.0")
    assert ran.code == 1
    assert "hachi keys create" in ran.complaint


def test_an_address_that_cannot_be_listened_on_is_named(shared):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran, other = shared("serve", "--port", str(port)), shared("mcp", "--http", str(port))
    assert ran.code == 1
    assert f"127.0.0.1:{port} cannot be listened on" in ran.complaint
    assert ran.complaint.endswith("choose another --port")
    assert other.complaint.endswith("choose another --http")


# MCP.


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


def test_over_http_a_key_says_whose_memory_it_is(hachi):
    keys = [hachi("keys", "create", user, "--user", user, "--json").json for user in ("ana", "ben")]

    async def remembered(url, key):
        headers = {"authorization": f"Bearer {key['key']}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=20, trust_env=False, verify=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            proxied = await http.post(url, headers={"host": "hachi.example"}, json={})
            assert proxied.status_code == 400  # and not 421
            await call(client, "remember", content=f"{key['user'].title()} has a red boat")
            found = (await call(client, "get_recent_memories"))["memories"]
        return [memory["content"] for memory in found]

    def visit(url):
        assert url.endswith("/mcp")
        known = [asyncio.run(remembered(url, key)) for key in keys]
        assert known == [["Ana has a red boat"], ["Ben has a red boat"]]

    ran = hachi.serving("mcp", "--http", "0", "--allow-host", "hachi.example", visit=visit)
    assert (ran.code, ran.err.splitlines()[-1]) == (0, "hachi: stopped")


# The bots.


@pytest.fixture
def tokens(monkeypatch):
    monkeypatch.setenv("SLACK_BOT_TOKEN", BOT_TOKEN)
    monkeypatch.setenv("SLACK_APP_TOKEN", APP_TOKEN)
    monkeypatch.setenv("DISCORD_TOKEN", TOKEN)


@pytest.mark.parametrize(
    ("without", "command", "told"),
    [
        ("DISCORD_TOKEN", "discord", "set DISCORD_TOKEN"),
        ("SLACK_APP_TOKEN", "slack", "set SLACK_APP_TOKEN"),
        ("SLACK_APP_TOKEN", "slack --http 0", "set SLACK_SIGNING_SECRET"),
    ],
)
def test_a_missing_token_is_told_in_one_line(hachi, monkeypatch, tokens, without, command, told):
    monkeypatch.delenv(without)
    ran = hachi(*command.split())
    assert (ran.code, told in ran.complaint) == (1, True)


@pytest.mark.parametrize(
    ("bot", "missing", "told"),
    [
        (
            "discord",
            "discord",
            "discord.py is not installed: run pip install -e '.[discord]' in the clone of Hachi",
        ),
        ("slack", "agent.surfaces.bots.slack.rendering", "agent.surfaces.bots.slack.rendering"),
    ],
)
def test_a_missing_extra_is_told_with_what_to_run(hachi, monkeypatch, tokens, bot, missing, told):
    loaded = (f"agent.surfaces.bots.{bot}", "slack_bolt.")
    for name in [name for name in sys.modules if name.startswith(loaded)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    ran = hachi(bot)
    assert (ran.code, told in ran.complaint) == (1, True)


@contextmanager
def on_a_thread(server):
    """The server, and a portal to its event loop."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(server.running()) as running:
        yield running, portal


def test_the_discord_bot_runs_until_it_is_stopped(hachi, monkeypatch, tokens):
    def stop(*_):
        with stopping(signal.SIGTERM):
            portal.call(platform.connected.wait)

    with on_a_thread(DiscordServer) as (platform, portal):
        monkeypatch.setattr(Route, "BASE", Route.BASE)  # put back what the command sets
        monkeypatch.setenv("DISCORD_API_URL", f"http://{platform.address}/api/v10")
        ran = hachi("discord", meanwhile=stop)
    assert (ran.code, ran.out) == (0, "")


def test_the_slack_bot_answers_until_it_is_stopped(hachi, monkeypatch, tokens):
    async def talk():
        await slack.until(lambda: slack.connections, seconds=30)
        await slack.deliver(slack.says("UANA", "I like jasmine tea", channel="D1"))
        await slack.until(lambda: slack.in_channel("D1"), seconds=30)

    def stop(*_):
        with stopping(signal.SIGTERM):
            portal.call(talk)

    with on_a_thread(SlackServer) as (slack, portal):
        monkeypatch.setenv("SLACK_API_URL", slack.api)
        ran = hachi("slack", meanwhile=stop)
    assert ran.code == 0
    assert ran.complaint.startswith("hachi: on Slack in Acme as hachi, in Socket Mode; ")
    assert ran.complaint.endswith("the rule-based stand-in answers; Ctrl-C stops")
