from datetime import UTC, datetime, timedelta

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from agent.surfaces.cli.chat.commands import ASK_A_PROGRAM

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


def test_what_a_command_asks_and_nobody_answers_is_kept(hachi):
    hachi("memories", "add", PAUL)
    ran = hachi("chat", "-m", "/forget Paul carpenter")
    assert ("(Nothing is forgotten.)" in ran.out, "hachi memories delete" in ran.out) == (True, True)
    assert "carpenter" in hachi("memories", "list").out


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


def test_a_fact_is_forgotten_once_it_is_confirmed(talk, hachi):
    hachi("memories", "add", PAUL)
    assert "Say what" in talk("/forget").out
    assert talk("/forget unicorns").out.count("(Nothing") == 1
    assert "(Nothing is forgotten.)" in talk("/forget Paul carpenter", "n").out
    ran = talk("/forget Paul carpenter", "y")
    assert f"1. {PAUL}" in ran.out
    assert "hachi memories restore" in ran.out
    assert "(Nothing is remembered.)" in talk("/memories").out


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
