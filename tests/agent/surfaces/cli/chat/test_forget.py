import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from agent.surfaces.cli.chat.commands import (
    ASK_A_PROGRAM,
    KEPT,
    NOTHING,
    WHICH_A_PROGRAM,
    ask_a_program,
    chosen,
)
from memory.records import ForgetCandidate

CANDIDATES = [
    ForgetCandidate(str(n), "memory", f"fact {n}", datetime(2026, 1, 10, tzinfo=UTC), "asked", sure=True)
    for n in (1, 2, 3)
]
PIN = "my bank PIN is 4711, do not tell"


@pytest.fixture
def talk(hachi):
    """`talk("forget it", "y")` types each line at the prompt, and leaves."""

    def run(*lines: str):
        with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
            keys.send_text("".join(f"{line}\r" for line in (*lines, "exit")))
            return hachi("chat", typed=True, screen=True)

    return run


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ("y", [1, 2, 3]),
        (" YES ", [1, 2, 3]),
        ("2", [2]),
        ("1 3", [1, 3]),
        ("3,1", [1, 3]),
        ("9", []),
        ("", []),
    ]
    + [(no, []) for no in ("n", "no", "never", "yesterday?")],
)
def test_only_what_the_answer_names_is_chosen(answer, named):
    assert [int(candidate.id) for candidate in chosen(answer, CANDIDATES)] == named


def test_a_yes_is_for_what_contains_the_words_that_were_given():
    maybe = [replace(CANDIDATES[0], sure=False)]
    assert chosen("y", maybe) == []
    assert chosen("1", maybe) == maybe
    assert (ask_a_program(maybe), ask_a_program(CANDIDATES)) == (WHICH_A_PROGRAM, ASK_A_PROGRAM)


@pytest.mark.parametrize("typed", [True, False])
def test_what_matches_nothing_offers_nothing_and_is_told_in_two_short_lines(talk, hachi, typed):
    hachi("chat", "-m", "My name is Mickael and I live in Lyon.")
    ran = talk("/forget zebra", "y") if typed else hachi("chat", "-m", "forget that I saw a zebra")
    assert NOTHING in ran.out
    assert "Lyon" not in ran.out
    if not typed:
        [line] = ran.out.split(NOTHING)[0].strip().splitlines()
        assert line.startswith("I forget only what you confirm")
        assert len(line) < 80


def test_what_is_confirmed_is_forgotten(talk, hachi):
    ran = talk(PIN, "please forget my bank PIN", "y")
    assert ran.code == 0
    assert "1. " in ran.out
    assert PIN in ran.out.split("forgotten ")[1]
    assert "taken: 1 memory, 2 messages" in ran.out
    assert "hachi memories restore" in ran.out
    assert "4711" not in hachi("memories", "list").out
    assert "4711" not in hachi("chat", "-m", "what is my bank PIN?").out


def test_what_is_not_confirmed_stays(talk, hachi):
    ran = talk(PIN, "please forget my bank PIN", "n")
    assert "(Nothing is forgotten.)" in ran.out
    assert "4711" in hachi("memories", "list").out


def test_where_nobody_can_be_asked_the_commands_are_shown(hachi):
    hachi("chat", "-m", PIN)
    ran = hachi("chat", "-m", "please forget my bank PIN")
    [memory] = hachi("memories", "list", "--json").json
    assert f"hachi memories delete {memory['id'][:8]}" in ran.out
    assert NOTHING in hachi("chat", "-m", "please forget my umbrella").out
    candidate, *_ = hachi("chat", "--json", "-m", "forget my bank PIN").json["forget"]
    assert (candidate["id"], candidate["kind"]) == (memory["id"], "memory")


def test_a_program_answers_the_question_with_its_next_line(hachi):
    told = f"{PIN}\nplease forget my bank PIN\ny\nwhat is my bank PIN?\n"
    ran = hachi("chat", stdin=told.encode())
    assert ran.code == 0
    _, question, rest = ran.out.partition(ASK_A_PROGRAM)
    assert question
    assert "taken: 1 memory, 2 messages" in rest
    assert said(hachi) == ["what is my bank PIN?", "", ""]
    assert "4711" not in hachi("memories", "list").out


def test_a_program_may_refuse_or_go_on(hachi):
    told = f"{PIN}\nforget my bank PIN\nn\nforget my bank PIN\nyes, it rains\ny\n"
    ran = hachi("chat", stdin=told.encode())
    assert (ran.out.count(ASK_A_PROGRAM), ran.out.count(KEPT)) == (2, 1)
    assert said(hachi)[:2] == ["y", "yes, it rains"]
    assert "4711" in hachi("memories", "list").out


def test_an_end_of_input_is_no_answer_and_json_has_the_receipts(hachi):
    ran = hachi("chat", stdin=f"{PIN}\nforget my bank PIN\n".encode())
    assert KEPT in ran.out
    [memory] = hachi("memories", "list", "--json").json
    assert f"hachi memories delete {memory['id'][:8]}" in ran.out
    lines = hachi("chat", "--json", stdin=b"forget my bank PIN\n1\n").out.splitlines()
    assert json.loads(lines[-1])["forgotten"][0]["memories"] == [memory["id"]]


def said(hachi):
    """The person's messages, newest first."""
    return [line["text"] for line in hachi("messages", "list", "--json").json if line["role"] == "user"]
