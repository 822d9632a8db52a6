"""The conversation, typed: in this process for each turn of it, and once at a real terminal."""

import asyncio
import os
import signal
import sys
from contextlib import contextmanager

import pexpect
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from agent.companion import Companion
from agent.surfaces.cli.chat.terminal import ChatHistory
from agent.surfaces.cli.chat.turn import print_turn

PROMPT = r"\x1b\[\?2004h[^\r\n]*mickael:"


@pytest.fixture
def talk(hachi):
    """`talk("hello")` types it at the prompt, and leaves."""

    @contextmanager
    def typing():
        with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
            yield keys

    def run(*lines: str, leave: str = "exit\r"):
        with typing() as keys:
            keys.send_text("".join(f"{line}\r" for line in lines) + leave)
            return hachi("chat", typed=True, screen=True)

    return run


def test_a_conversation_is_answered_and_its_lines_are_kept(talk, home):
    ran = talk("I broke my shoulder", " ", "What happened to me?")
    assert ran.code == 0
    assert ran.out.count("hachi: ") == 2
    assert "offline stand-in" in ran.out.splitlines()[0]
    assert str(home) in ran.out.splitlines()[0]
    assert "+I broke my shoulder" in (home / "chat_history").read_text()


def test_ctrl_d_leaves(talk):
    assert talk(leave="\x04").code == 0


def test_ctrl_c_drops_what_was_being_typed(talk):
    ran = talk(leave="I broke my shoulder\x03exit\r")
    assert ran.code == 0
    assert "hachi: " not in ran.out


def test_a_turn_that_fails_does_not_end_the_conversation(talk, model):
    model.status = 500
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
    model.answer, model.pause = "one two three four five six", 0.4

    waiting = model.interrupt_once_asked(after=1.0)
    before = signal.getsignal(signal.SIGINT)
    ran = talk("hello")
    waiting.join()
    assert ran.code == 0
    assert "(stopped)" in ran.out
    assert "six" not in ran.out
    assert signal.getsignal(signal.SIGINT) is before


def test_one_message_at_a_terminal_is_shown_as_it_comes(hachi, model):
    assert "Hello there, how are you?" in hachi("chat", "-m", "hi", screen=True).out


async def test_the_text_is_shown_piece_by_piece(home, model, capsys):
    model.answer, model.pause = '{"message": "Hello there, how are you?", "memories": []}', 0.3
    async with Companion.open(upkeep=False) as pet:
        turn = asyncio.create_task(print_turn(pet, "hi", "mickael", "dm", prefix="hachi: "))
        seen = ""
        async with asyncio.timeout(30):
            while "there" not in seen:
                await asyncio.sleep(0.05)
                seen += capsys.readouterr().out
        assert "how are you" not in seen
        await turn
    assert "how are you?\n" in capsys.readouterr().out


def test_history_that_cannot_be_kept_costs_only_that(tmp_path, capsys):
    history = ChatHistory(tmp_path / "nowhere" / "chat_history")
    history.store_string("hello")
    assert "cannot be kept" in capsys.readouterr().err
    unreadable = ChatHistory(tmp_path)
    assert list(unreadable.load_history_strings()) == []


def test_history_takes_what_is_no_text(tmp_path):
    history = ChatHistory(tmp_path / "chat_history")
    history.store_string("half \udce9")
    assert list(history.load_history_strings()) == ["half �"]


def test_at_a_real_terminal(home):
    settings = os.environ | {"PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "xterm"}
    terminal = pexpect.spawn(
        sys.executable,
        ["-m", "agent.surfaces.cli", "chat"],
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
