"""The conversation, typed: in this process, and once at a real terminal."""

import os
import signal
import sys

import pexpect
import pytest
from command import stopping, until
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from scripted_server import Fail, Say, answer

from agent.companion import Companion
from agent.surfaces.cli.chat.terminal import ChatHistory

PROMPT = r"\x1b\[\?2004h[^\r\n]*mickael:"


@pytest.fixture
def talk(hachi):
    """`talk("hello")` types it at the prompt, and leaves."""

    def run(*lines: str, leave: str = "exit\r", **options):
        with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
            keys.send_text("".join(f"{line}\r" for line in lines) + leave)
            return hachi("chat", typed=True, screen=True, **options)

    return run


def test_a_conversation_is_answered_and_its_lines_are_kept(talk, home):
    ran = talk("I broke my shoulder", " ", "What happened to me?", leave="\x04")
    assert ran.code == 0
    assert "hachi: You told me" in ran.out
    assert "offline stand-in" in ran.out.splitlines()[0]
    assert str(home) in ran.out.splitlines()[0]
    assert "+I broke my shoulder" in (home / "chat_history").read_text()


def test_ctrl_c_drops_what_was_being_typed(talk):
    ran = talk(leave="I broke my shoulder\x03exit\r")
    assert ran.code == 0
    assert "hachi: " not in ran.out


def test_a_turn_that_fails_does_not_end_the_conversation(talk, model):
    model.then = Fail(500)
    ran = talk("one", "two")
    assert ran.code == 0
    assert ran.err.count("answered 500") == 2


def test_a_runtime_that_does_not_load_is_tried_again(talk, monkeypatch):
    async def breaks(_):
        raise ImportError("a part is missing")

    monkeypatch.setattr(Companion, "runtime", breaks)
    ran = talk("one", "two")
    assert ran.err.count("a part is missing") == 2


def test_ctrl_c_stops_the_turn_and_nothing_else(talk, model):
    model.then = answer("one two three four five six seven eight nine ten")
    model.then = Say(model.then.text, pause=0.3)

    def press(out, _):
        with stopping():
            until(lambda: "one" in out.getvalue())

    before = signal.getsignal(signal.SIGINT)
    ran = talk("hello", meanwhile=press)
    assert ran.code == 0
    assert "(stopped)" in ran.out
    assert "ten" not in ran.out
    assert signal.getsignal(signal.SIGINT) is before


def test_the_text_is_shown_piece_by_piece(hachi, model):
    model.then = Say('{"message": "Hello there, how are you?", "memories": []}', pause=0.2)
    seen = []

    def watch(out, _):
        until(lambda: "Hello" in out.getvalue())
        seen.append(out.getvalue())

    ran = hachi("chat", "-m", "hi", screen=True, meanwhile=watch)
    assert "how are you" not in seen[0]
    assert "Hello there, how are you?\n" in ran.out


def test_history_takes_what_is_no_text_and_costs_only_itself(tmp_path, capsys):
    history = ChatHistory(tmp_path / "chat_history")
    history.store_string("half \udce9")
    assert list(history.load_history_strings()) == ["half �"]
    history = ChatHistory(tmp_path / "nowhere" / "chat_history")
    history.store_string("hello")
    assert "cannot be kept" in capsys.readouterr().err
    unreadable = ChatHistory(tmp_path)
    assert list(unreadable.load_history_strings()) == []


def test_at_a_real_terminal(home):
    settings = os.environ | {"PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "xterm"}
    terminal = pexpect.spawn(
        sys.executable,
        ["-m", "hachi", "chat"],
        env=settings,
        encoding="utf-8",
        timeout=30,
        dimensions=(30, 160),
    )
    try:
        terminal.expect("rule-based stand-in")
        terminal.expect("Ctrl-D or exit ends")
        terminal.expect(PROMPT)
        terminal.send("I broke my shoulder\r")
        terminal.expect("hachi: .*shoulder")
        terminal.expect(PROMPT)
        terminal.send("I bro\x03")
        terminal.expect(PROMPT)
        terminal.sendeof()
        terminal.expect(pexpect.EOF)
    finally:
        terminal.close()
    assert terminal.exitstatus == 0
