"""`hachi slack`, as it is run."""

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest
from slack_server import APP_TOKEN, BOT_TOKEN, SlackServer


@pytest.fixture(autouse=True)
def _tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", BOT_TOKEN)
    monkeypatch.setenv("SLACK_APP_TOKEN", APP_TOKEN)
    for name in ("SLACK_SIGNING_SECRET", "SLACK_API_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("without", "args", "told"),
    [
        ("SLACK_BOT_TOKEN", (), "set SLACK_BOT_TOKEN"),
        ("SLACK_APP_TOKEN", (), "set SLACK_APP_TOKEN"),
        ("SLACK_APP_TOKEN", ("--http", "0"), "set SLACK_SIGNING_SECRET"),
    ],
)
def test_a_token_that_is_missing_is_told_in_one_line(
    hachi: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    without: str,
    args: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.delenv(without)
    ran = hachi("slack", *args)
    assert ran.code == 1
    assert told in ran.complaint


def test_a_missing_extra_is_told_with_what_to_run(
    hachi: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        name for name in sys.modules if name.startswith(("agent.surfaces.bots.slack.", "slack_bolt."))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "slack_bolt", None)
    ran = hachi("slack")
    assert ran.code == 1
    assert ran.complaint == "hachi: slack-bolt is not installed; run: pip install 'hachi[slack]'"


def test_a_fault_of_our_own_does_not_pass_for_a_missing_extra(
    hachi: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("agent.surfaces.bots.slack.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "agent.surfaces.bots.slack.home", None)
    assert "agent.surfaces.bots.slack.home" in hachi("slack").complaint


async def test_the_bot_is_there_until_it_is_told_to_stop(
    process: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with SlackServer.running() as slack:
        monkeypatch.setenv("SLACK_API_URL", slack.api)
        bot = process("slack")
        await slack.until(lambda: slack.connections or bot.poll() is not None, seconds=60)
        assert bot.poll() is None, bot.communicate()
        await slack.deliver(slack.says("UANA", "I like jasmine tea", channel="D1"))
        await slack.until(lambda: slack.in_channel("D1"), seconds=60)
        bot.send_signal(signal.SIGTERM)
        _, told = await asyncio.to_thread(bot.communicate, timeout=30)
    assert bot.returncode == 0
    assert told.decode().splitlines() == ["hachi: on Slack in Acme as hachi, in Socket Mode; Ctrl-C stops"]


def test_a_slack_that_is_away_is_told_in_one_line(
    hachi: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_API_URL", "http://127.0.0.1:1/api/")
    ran = hachi("slack")
    assert ran.code == 1
    assert ran.complaint.startswith("hachi: Slack cannot be reached (")
