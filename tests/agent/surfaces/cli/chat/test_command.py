import json
import os

from scripted_server import answer

from agent.companion import Companion
from agent.errors import ModelUnavailable
from agent.surfaces.cli import main


def test_each_line_is_a_message_and_each_answer_follows(hachi):
    ran = hachi("chat", stdin=b"I broke my shoulder\n\n   \nRemind me to buy milk")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 2
    assert "shoulder" in ran.out.splitlines()[0]
    assert "rule-based stand-in" in ran.complaint
    assert "shoulder" in hachi("chat", "-m", "What happened to me?").out


def test_json_is_one_object_a_turn_with_what_was_done(hachi):
    ran = hachi("chat", "--json", stdin=b"I broke my shoulder\nWhat happened to me?\n")
    first, second = (json.loads(line) for line in ran.out.splitlines())
    assert list(first) == ["message", "memories", "tools", "trace_id", "model"]
    assert list(first["memories"][0])[:4] == ["content", "action", "id", "expires_at"]
    assert first["memories"][0]["action"] == "add"
    assert list(second["tools"][0]) == ["name", "arguments", "ok"]
    assert second["tools"][0]["name"] == "search_memories"
    assert first["model"] == "offline"
    assert first["trace_id"] != second["trace_id"]


def test_the_memories_of_an_answer_are_stored_before_it_ends(hachi, model):
    model.then = answer("Noted.", {"content": "Mickael skis", "ttl": "7d"})
    ran = hachi("chat", "--json", "-m", "I ski").json
    assert (ran["message"], ran["model"]) == ("Noted.", "tiny")
    assert [kept["content"] for kept in ran["memories"]] == ["Mickael skis"]
    assert ran["memories"][0]["expires_at"].endswith("+00:00")
    hachi("chat", "--user", "lea", "--place", "acme/general", "-m", "I ski")
    [memory] = hachi("memories", "list", "--user", "lea", "--place", "acme/general", "--json").json
    assert memory["place"] == "acme/general"


def test_a_message_that_cannot_be_taken_fails_alone(hachi):
    undecodable = hachi("chat", "--json", stdin=b"My name is \xff\x00\xed\xa0\x80Lea\n")
    assert undecodable.json["message"]
    ran = hachi("chat", stdin=b"x" * 1_000_000 + b"\nI broke my shoulder\n")
    assert (ran.code, "shoulder" in ran.out, "longer than 100,000 characters" in ran.err) == (1, True, True)
    empty = hachi("chat", "-m", "")
    assert (empty.code, "the message is empty" in empty.err) == (1, True)


def test_an_error_names_its_trace(shared, monkeypatch):
    async def fails(*_, **__):
        error = ModelUnavailable("the model is away")
        error.trace_id = "trace_1"
        raise error

    monkeypatch.setattr(Companion, "respond", fails)
    assert shared("chat", "-m", "hello").err.splitlines()[-1] == "hachi: the model is away (trace_1)"


def test_stdin_that_cannot_be_read_is_reported(home, monkeypatch, capsys, tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(
        "sys.stdin", type("Stdin", (), {"fileno": lambda _: folder, "isatty": lambda _: False})()
    )
    assert main(["chat"]) == 1
    assert "Is a directory" in capsys.readouterr().err.splitlines()[-1]
    os.close(folder)
