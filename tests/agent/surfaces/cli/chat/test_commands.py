"""What a person types beside messages, and how they confirm what is to be forgotten."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

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

PAUL = "Paul is a carpenter in the harbour"


@pytest.fixture
def talk(hachi):
    """`talk("/help")` types each line at the prompt, and leaves."""

    def run(*lines: str, **options):
        with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
            keys.send_text("".join(f"{line}\r" for line in (*lines, "exit")))
            return hachi("chat", typed=True, screen=True, **options)

    return run


def test_help_names_every_command(talk):
    ran = talk("/help", "/nonsense")
    assert all(f"/{name}" in ran.out for name in ("memories", "forget", "tasks", "context", "trace"))
    assert "hachi: there is no /nonsense; /help lists what there is" in ran.err


def test_a_program_may_use_them_too_and_none_is_taken_for_a_message(hachi):
    hachi("memories", "add", PAUL)
    hachi("memories", "add", "Lea sails at night")
    told = "/memories\n/nonsense x\n/forget Paul carpenter\n1\n/memories\n/trace\n/help\n"
    ran = hachi("chat", stdin=told.encode())
    assert ran.code == 1
    assert "hachi: there is no /nonsense; /help lists what there is" in ran.err
    listed, _, rest = ran.out.partition(ASK_A_PROGRAM)
    assert ("sails" in listed, f"1. {PAUL}" in listed) == (True, True)
    assert "taken: 1 memory" in rest
    assert "(There was no turn yet.)" in rest
    assert "/context" in rest
    assert hachi("messages", "list", "--json").json == []
    assert [one["content"] for one in hachi("memories", "list", "--json").json] == ["Lea sails at night"]


def test_exit_ends_a_piped_conversation_too_and_is_no_message(hachi):
    said = hachi("chat", stdin=b"my name is Mickael\nexit\nmy dog is Rex\n")
    assert said.code == 0
    told = [one["text"] for one in hachi("messages", "list", "--json").json]
    assert ("my name is Mickael" in told, "exit" in told, "my dog is Rex" in told) == (True, False, False)


def test_with_json_a_command_is_refused_in_one_line(hachi):
    ran = hachi("chat", "--json", stdin=b"/forget Paul\nhello\n")
    assert (ran.code, "/forget prints for people; with --json use" in ran.err) == (1, True)
    assert len(ran.out.splitlines()) == 1


def test_what_is_remembered_is_listed_and_searched(talk, hachi):
    assert "(Nothing is remembered.)" in talk("/memories").out
    hachi("memories", "add", PAUL)
    hachi("memories", "add", "Lea sails at night")
    assert all(fact in talk("/memories").out for fact in ("carpenter", "sails"))
    found = talk("/memories what is Paul's work?").out
    assert "carpenter" in found
    assert "sails" not in found


def test_tasks_and_what_is_known_are_shown(talk, hachi):
    assert "(There are no open tasks.)" in talk("/tasks").out
    hachi("tasks", "add", "call mum")
    hachi("context", "set", "name", "Mickael")
    ran = talk("/tasks", "/context")
    assert "call mum" in ran.out
    assert "name: Mickael" in ran.out


def test_the_last_turn_is_shown_as_a_tree(talk):
    ran = talk("/trace", "hello", "/trace")
    assert "There was no turn yet" in ran.out
    assert "mickael: hello" in ran.out or '"hello"' in ran.out


def test_a_path_is_a_message(talk):
    assert "hachi: " in talk("/etc/hosts is empty").out


def test_a_line_break_is_typed_with_alt_enter(talk, hachi):
    talk("I keep bees\x1b\rin the garden")
    [question] = [one for one in hachi("messages", "list", "--json").json if one["author"] == "mickael"]
    assert question["text"] == "I keep bees\nin the garden"


def test_a_due_task_rings_and_nobody_elses(talk, hachi):
    just_now = (datetime.now(UTC) - timedelta(minutes=2)).isoformat()
    hachi("tasks", "add", "stretch", "--due", just_now)
    hachi("tasks", "add", "sleep", "--due", just_now, "--user", "mickaela")
    ran = talk("hello")
    assert "⏰" in ran.out
    assert "stretch" in ran.out
    assert "sleep" not in ran.out


CANDIDATES = [
    ForgetCandidate(str(n), "memory", f"fact {n}", datetime(2026, 1, 10, tzinfo=UTC), "asked", sure=True)
    for n in (1, 2, 3)
]
PIN = "my bank PIN is 4711, do not tell"


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
    assert said(hachi) == ["what is my bank PIN?"]
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
