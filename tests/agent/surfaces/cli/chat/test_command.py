import json

import pytest

from agent.companion import Companion
from agent.errors import ModelUnavailable

ANNOUNCED = "rule-based stand-in"


def test_each_line_is_a_message_and_each_answer_follows(hachi):
    ran = hachi("chat", stdin=b"I broke my shoulder\n\n   \nRemind me to buy milk\n")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 2
    assert "shoulder" in ran.out.splitlines()[0]
    assert ANNOUNCED in ran.complaint


def test_a_last_line_needs_no_end(hachi):
    assert "shoulder" in hachi("chat", "-u", "lea", stdin=b"I broke my shoulder").out


def test_no_input_is_no_turn(hachi):
    ran = hachi("chat")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_one_message_as_an_argument(hachi):
    hachi("chat", "-m", "I broke my shoulder")
    assert "shoulder" in hachi("chat", "-m", "What happened to me?").out


def test_json_is_one_object_a_turn_with_what_was_done(hachi):
    ran = hachi("chat", "--json", stdin=b"I broke my shoulder\nWhat happened to me?\n")
    first, second = (json.loads(line) for line in ran.out.splitlines())
    assert list(first) == ["message", "memories", "tools", "trace_id", "model"]
    assert list(first["memories"][0]) == ["content", "action", "id", "expires_at"]
    assert first["memories"][0]["action"] == "add"
    assert first["memories"][0]["id"]
    assert list(second["tools"][0]) == ["name", "arguments", "ok"]
    assert second["tools"][0]["name"] == "search_memories"
    assert first["model"] == "offline"
    assert first["trace_id"] != second["trace_id"]


def test_json_tells_of_the_memories_in_the_answer_too(hachi, model):
    model.answer = json.dumps(
        {
            "message": "Noted.",
            "memories": [
                {"content": "Mickael skis", "subjects": [], "ttl": "7d", "type": "fact", "importance": 0.8}
            ],
        }
    )
    ran = hachi("chat", "--json", "-m", "I ski").json
    assert ran["message"] == "Noted."
    assert ran["model"] == "small"
    assert [kept["content"] for kept in ran["memories"]] == ["Mickael skis"]
    assert ran["memories"][0]["expires_at"].endswith("+00:00")


def test_what_was_answered_is_stored_before_it_ends(hachi, model):
    model.answer = json.dumps({"message": "Noted.", "memories": [{"content": "Mickael skis"}]})
    hachi("chat", "-m", "I ski")
    assert [memory["content"] for memory in hachi("memories", "list", "--json").json] == ["Mickael skis"]


def test_input_that_is_no_text_is_read_as_well_as_it_can_be(hachi):
    ran = hachi("chat", "--json", stdin=b"My name is \xff\x00\xed\xa0\x80Lea\n")
    assert ran.code == 0
    assert ran.json["message"]
    assert hachi("chat", "-m", "half a \udce9 character").code == 0


def test_a_message_that_is_too_long_fails_alone(hachi):
    ran = hachi("chat", stdin=b"x" * 1_000_000 + b"\nI broke my shoulder\n")
    assert ran.code == 1
    assert "shoulder" in ran.out
    assert "1,000,000 characters" in ran.err
    assert len(ran.err.splitlines()) == 2


def test_an_empty_message_is_a_fault(hachi):
    ran = hachi("chat", "-m", "")
    assert ran.code == 1
    assert "the message is empty" in ran.err


def test_a_turn_that_fails_is_told_and_the_next_one_is_taken(hachi, model):
    model.status = 500
    ran = hachi("chat", stdin=b"one\ntwo\n")
    assert ran.code == 1
    assert len(ran.err.splitlines()) == 2
    assert "500" in ran.err
    assert len(model.asked) == 2


def test_a_fault_names_its_trace(hachi, monkeypatch):
    async def fails(*_, **__):
        error = ModelUnavailable("the model is away")
        error.trace_id = "trace_1"
        raise error

    monkeypatch.setattr(Companion, "respond", fails)
    assert hachi("chat", "-m", "hello").err.splitlines()[-1] == "hachi: the model is away (trace_1)"


def test_stdin_that_cannot_be_read_is_told(hachi, monkeypatch):
    monkeypatch.setattr("agent.surfaces.cli.chat.stdin._lines", _broken)
    ran = hachi("chat")
    assert ran.code == 1
    assert ran.complaint == "hachi: Input/output error"


def _broken():
    raise OSError(5, "Input/output error")
    yield


@pytest.mark.parametrize("place", ["dm", "acme/general"])
def test_what_is_said_in_a_place_is_known_there(hachi, place):
    hachi("chat", "--place", place, "-m", "I broke my shoulder")
    [memory] = hachi("memories", "list", "--place", place, "--json").json
    assert memory["place"] == place
