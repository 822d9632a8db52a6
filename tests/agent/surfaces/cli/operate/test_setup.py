"""`hachi setup`, by options and at a terminal, against servers on this machine."""

import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from command import Hachi, Ran
from discord_server import APPLICATION, DiscordServer
from discord_server import TOKEN as DISCORD_TOKEN
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from scripted_server import Fail, Say, ScriptedServer
from slack_server import APP_TOKEN, BOT_TOKEN, SlackServer

from agent.errors import SettingsError
from agent.surfaces.bots.slack.access import SCOPES
from agent.surfaces.cli.operate.setup import dialogue, questions
from hachi import Settings

AWAY = "http://127.0.0.1:9/v1"
OLD = "# mine\nHACHI_MAX_TURNS=7\nOPENAI_API_KEY=sk-before\nNOT OURS\n"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """It lists the model `tiny`."""
    with ScriptedServer.on_a_thread() as running:
        running.then = Say("Hello.")
        yield running


@pytest.fixture
def file(home: Path) -> Path:
    return home / ".env"


@pytest.fixture
def typing(hachi: Hachi, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """`typing("2\\r", "--bot", "none")` answers with these keys at a terminal where no server is found."""
    monkeypatch.setattr(questions, "HERE", {"ollama": AWAY})

    def run(keys: str, *options: str) -> Ran:
        with create_pipe_input() as keyboard, create_app_session(input=keyboard, output=DummyOutput()):
            keyboard.send_text(keys)
            return hachi("setup", *options, typed=True, screen=True)

    return run


@contextmanager
def on_a_thread(running: Any) -> Iterator[Any]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(running) as platform:
        yield platform


def test_options_are_tried_and_written_beside_what_the_file_has(hachi, server, file):
    file.write_text(OLD)
    ran = hachi("setup", "--provider", server.url, "--key", "-", "--model", "tiny", stdin=b"sk-new\n")
    assert (ran.code, "answered in" in ran.out, len(server.asked)) == (0, True, 1)
    assert "sk-" not in ran.out + ran.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().startswith("# mine\nHACHI_MAX_TURNS=7\nNOT OURS\n")
    settings = Settings.load()
    assert (settings.max_turns, settings.chosen_model, settings.openai_base_url) == (7, "tiny", server.url)
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == "sk-new"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--provider URL --model tiny --key sk-wrong", "answered 401: no such key; check OPENAI_API_KEY"),
        (f"--provider {AWAY} --model tiny", "cannot be reached; is it running?"),
        ("--provider crystal-ball", "'crystal-ball' is no server; give one of openai, mistral"),
        ("--provider mistral --model m", "this server needs a key"),
        ("--provider URL --model tiny --key sk-é", "that is no key"),
        (f"--provider {AWAY}", "HACHI_MODEL must name one of that server's models"),
        ("--provider ./none.gguf", "none.gguf cannot be read"),
        ("--provider openai --key -", "stdin has no line for OPENAI_API_KEY"),
        (
            "--provider http://127.0.0.1:99999/v1 --model m",
            "OPENAI_BASE_URL cannot be read: input should be a valid url, invalid port",
        ),
        ("--provider http://[ --model m", "OPENAI_BASE_URL cannot be read"),
        ("--provider none --key sk-new", "nothing asks for OPENAI_API_KEY"),
        ("--provider none --model tiny", "nothing asks for HACHI_MODEL"),
        ("--bot none --discord-token x", "nothing asks for DISCORD_TOKEN"),
        ("--bot irc", "'irc' is no bot; give discord, slack or none"),
        ("--bot discord", "DISCORD_TOKEN is missing"),
        ("--daily-turns many", "HACHI_BOT_DAILY_TURNS='many' cannot be read"),
        ("--servers here", "HACHI_DISCORD_SERVERS='here' cannot be read"),
    ],
)
def test_what_is_wrong_is_told_in_a_line_and_nothing_is_written(hachi, server, file, options, told):
    server.then = Fail(401, "no such key")
    file.write_text(OLD)
    file.chmod(0o600)
    ran = hachi("setup", *options.replace("URL", server.url).split())
    assert (ran.code, told in ran.complaint) == (1, True), ran.err
    assert "Traceback" not in ran.err
    assert file.read_text() == OLD


def test_what_answers_on_this_machine_is_offered_and_a_wrong_answer_asked_again(
    typing, server, file, monkeypatch
):
    monkeypatch.setattr(questions, "HERE", {"ollama": AWAY, "vllm": server.url})
    ran = typing("nonsense\r1\r\rirc\rNone\r")
    assert f"1  vllm at {server.url}: tiny" in ran.out
    assert "ollama at" not in ran.out
    assert ("'nonsense' is no server" in ran.err, "'irc' is no bot" in ran.err) == (True, True)
    settings = Settings.load()
    assert (ran.code, settings.openai_base_url, settings.chosen_model) == (0, server.url, "tiny")


def test_a_refused_key_is_asked_again_and_enter_keeps_what_is_set(typing, server, file):
    server.refuses = lambda asked: (
        None if asked.headers.get("authorization") == "Bearer sk-good" else Fail(401, "no such key")
    )
    options = ("--provider", server.url, "--model", "tiny", "--key", "sk-bad", "--bot", "none")
    ran = typing("n\r" + "\r" + "sk-good\r" + "\r", *options)
    assert (ran.code, "answered 401: no such key" in ran.err) == (0, True)
    assert "OPENAI_API_KEY='sk-good'" in file.read_text()
    before = file.read_text()
    ran = typing("\r\r\r", "--bot", "none")
    assert (ran.code, "nothing to change" in ran.err, file.read_text() == before) == (0, True, True)


@pytest.mark.parametrize("keys", ["\x03", "\x04", "none\r\x03"])
def test_ctrl_c_writes_nothing(typing, file, keys):
    ran = typing(keys)
    assert (ran.code, ran.complaint, file.exists()) == (1, "hachi: stopped", False)


def test_a_key_goes_to_no_other_server_than_its_own(hachi, server, file):
    file.write_text("OPENAI_API_KEY=sk-of-openai\nHACHI_MODEL=gpt-5\n")
    file.chmod(0o600)
    assert hachi("setup", "--provider", server.url).code == 0
    assert "sk-of-openai" not in str([asked.headers for asked in server.asked])
    assert "sk-of-openai" not in file.read_text()
    assert Settings.load().chosen_model == "tiny", "the one that the server lists"
    ran = hachi("setup", "--provider", "none", OPENAI_API_KEY="sk-outside")
    assert Settings.load().offline
    assert "no HACHI_MODEL" in ran.err


def test_discord_says_who_the_bot_is_and_how_to_invite_it(hachi, file, monkeypatch):
    route = pytest.importorskip("discord").http.Route
    monkeypatch.setattr(route, "BASE", route.BASE)  # is put back
    with on_a_thread(DiscordServer.running()) as platform:
        platform.flags = 1 << 18
        at = {"DISCORD_API_URL": f"http://{platform.address}/api/v10"}
        ran = hachi("setup", "--discord-token", "wrong", **at)
        assert (ran.code, "refuses DISCORD_TOKEN" in ran.complaint, file.exists()) == (1, True, False)
        ran = hachi("setup", "--discord-token", DISCORD_TOKEN, "--servers", "12, 34", **at)
    assert (ran.code, f"client_id={APPLICATION}" in ran.out, "Message Content Intent" in ran.out) == (
        0,
        True,
        True,
    )
    assert (Settings.load().discord_servers, "hachi discord" in ran.out) == ({12, 34}, True)


def test_slack_is_shown_its_manifest_and_both_tokens_are_tried(hachi, file):
    with on_a_thread(SlackServer.running()) as platform:
        platform.scopes = ",".join(SCOPES)
        at = {"SLACK_API_URL": platform.api}
        tokens = ("--slack-bot-token", BOT_TOKEN, "--slack-app-token")
        ran = hachi("setup", *tokens, "xoxb-mixed-up", **at)
        assert (ran.code, "SLACK_APP_TOKEN is a token of another kind" in ran.complaint) == (1, True)
        ran = hachi("setup", *tokens, APP_TOKEN, "--daily-turns", "50", **at)
    assert (ran.code, "socket_mode_enabled: true" in ran.out, "in Socket Mode" in ran.out) == (0, True, True)
    assert Settings.load().bot_daily_turns == 50


def test_a_value_that_the_environment_sets_too_is_told(hachi, file):
    ran = hachi("setup", "--daily-turns", "5", HACHI_BOT_DAILY_TURNS="7")
    assert (ran.code, "the environment sets HACHI_BOT_DAILY_TURNS" in ran.err) == (0, True)
    ran = hachi("setup", "--provider", "none", OPENAI_API_KEY="sk-outside")
    assert (ran.code, "the environment sets OPENAI_API_KEY" in ran.err) == (0, True)


def test_no_device_is_taken_for_the_settings_file(hachi):
    ran = hachi("setup", "--daily-turns", "5", HACHI_ENV_FILE="/dev/null")
    assert (ran.code, "/dev/null is no regular file" in ran.complaint) == (1, True)


@pytest.mark.parametrize("value", ["plain", "it's", "a\\b", "two words # and more", '"quoted"', "€"])
def test_a_value_is_read_as_it_was_written(value):
    text = dialogue.changed("A=1\nB=2", {"B": value, "C": value, "D": None})
    assert text.startswith("A=1\n")
    assert dialogue.changed(text, {"B": None, "C": None}) == "A=1\n"


def test_a_value_that_would_be_read_as_another_one_is_refused():
    with pytest.raises(SettingsError, match="C cannot be written"):
        dialogue.changed("A=1\n", {"C": "${A}"})
