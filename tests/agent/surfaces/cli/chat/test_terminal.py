"""The conversation, typed."""

import signal

from command import stopping, until
from scripted_server import Say, answer

from agent.surfaces.cli.chat.terminal import ChatHistory


def test_a_conversation_is_answered_and_its_lines_are_kept(talk, home):
    ran = talk("I broke my shoulder", " ", "What happened to me?", leave="\x04")
    assert ran.code == 0
    assert "hachi: You told me" in ran.out
    assert "offline stand-in" in ran.out.splitlines()[0]
    assert str(home) in ran.out.splitlines()[0]
    assert "+I broke my shoulder" in (home / "chat_history").read_text()


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


def test_history_takes_what_is_no_text_and_costs_only_itself(tmp_path, capsys):
    history = ChatHistory(tmp_path / "chat_history")
    history.store_string("half \udce9")
    assert list(history.load_history_strings()) == ["half �"]
    history = ChatHistory(tmp_path / "nowhere" / "chat_history")
    history.store_string("hello")
    assert "cannot be kept" in capsys.readouterr().err
    unreadable = ChatHistory(tmp_path)
    assert list(unreadable.load_history_strings()) == []
