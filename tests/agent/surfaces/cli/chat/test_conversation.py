"""What a person types beside messages, and how they confirm what is to be forgotten."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from agent.surfaces.cli.chat.conversation import (
    NOTHING,
    NOTHING_FORGOTTEN,
    QUESTION,
    WHICH,
    Conversation,
    chosen,
    question,
)
from hachi import Reply
from hachi.testing import AnsweringModel
from memory.audience import PRIVATE
from memory.records import ForgetCandidate
from tools.proposed_call import ProposedCall

PAUL = "Paul is a carpenter in the harbour"


def test_a_person_types_commands_beside_messages(talk, hachi):
    hachi("tasks", "add", "call mum")
    hachi("context", "set", "name", "Mickael")
    ran = talk(
        "/help", "/nonsense", "/trace", "/memories", "/tasks", "/context", "/etc/hosts is empty", "/trace"
    )
    assert all(f"/{name}" in ran.out for name in ("memories", "forget", "tasks", "context", "trace"))
    assert "hachi: there is no /nonsense; /help lists what there is" in ran.err
    for shown in ("(There was no turn yet.)", "(Nothing is remembered.)", "call mum", "name: Mickael"):
        assert shown in ran.out
    assert "/etc/hosts is empty" in ran.out.rpartition("call 1")[0], "a path is a message"
    talk("I keep bees\x1b\rin the garden")  # Alt-Enter breaks the line
    assert said(hachi)[0] == "I keep bees\nin the garden"


def test_a_due_task_rings_and_nobody_elses(talk, hachi):
    just_now = (datetime.now(UTC) - timedelta(minutes=2)).isoformat()
    hachi("tasks", "add", "stretch", "--due", just_now)
    hachi("tasks", "add", "sleep", "--due", just_now, "--user", "mickaela")
    ran = talk("hello")
    assert ("⏰" in ran.out, "stretch" in ran.out, "sleep" in ran.out) == (True, True, False)
    assert "stretch" in hachi("messages", "list").out, "it was told, and does not ring again"


def test_a_program_may_use_them_too_and_none_is_taken_for_a_message(hachi):
    hachi("memories", "add", PAUL)
    hachi("memories", "add", "Lea sails at night")
    told = "/memories sails\n/nonsense x\n/forget Paul carpenter\n1\n/memories\n/trace\n/help\nexit\nhi\n"
    ran = hachi("chat", stdin=told.encode())
    assert ran.code == 1
    assert "hachi: there is no /nonsense; /help lists what there is" in ran.err
    listed, _, rest = ran.out.partition(QUESTION)
    assert ("sails" in listed, f"1. {PAUL}" in listed) == (True, True)
    assert PAUL not in listed.partition("1. ")[0], "it was searched"
    assert "taken: 1 memory" in rest
    assert "(There was no turn yet.)" in rest
    assert "/context" in rest
    assert hachi("messages", "list", "--json").json == []
    assert [one["content"] for one in hachi("memories", "list", "--json").json] == ["Lea sails at night"]


CANDIDATES = [
    ForgetCandidate(str(n), "memory", f"fact {n}", datetime(2026, 1, 10, tzinfo=UTC), "asked", sure=True)
    for n in (1, 2, 3)
]
PIN = "my bank PIN is 4711, do not tell"


@pytest.mark.parametrize(
    ("answer", "named"),
    [(" YES ", [1, 2, 3]), ("1 3", [1, 3]), ("3,1", [1, 3]), ("9", []), ("", []), ("yesterday?", [])],
)
def test_only_what_the_answer_names_is_chosen(answer, named):
    assert [int(candidate.id) for candidate in chosen(answer, CANDIDATES)] == named


def test_a_yes_is_for_what_contains_the_words_that_were_given():
    maybe = [replace(CANDIDATES[0], sure=False)]
    assert chosen("y", maybe) == []
    assert chosen("1", maybe) == maybe
    assert (question(maybe), question(CANDIDATES)) == (WHICH, QUESTION)


def test_what_is_confirmed_is_forgotten(talk, hachi):
    ran = talk("/forget zebra", PIN, "please forget my bank PIN", "y")
    assert ran.code == 0
    assert NOTHING in ran.out
    assert "1. " in ran.out
    assert PIN in ran.out.split("forgotten ")[1]
    assert "taken: 1 memory, 2 messages" in ran.out
    assert "hachi memories restore" in ran.out
    assert "4711" not in hachi("memories", "list").out


def test_a_program_answers_the_question_with_its_next_line(hachi):
    told = f"{PIN}\nplease forget my bank PIN\ny\nwhat is my bank PIN?\n"
    ran = hachi("chat", stdin=told.encode())
    assert ran.code == 0
    _, question, rest = ran.out.partition(QUESTION)
    assert question
    assert "taken: 1 memory, 2 messages" in rest
    assert said(hachi) == ["what is my bank PIN?"]
    refused = hachi("chat", "--json", stdin=b"/forget Paul\nhello\n")
    assert (refused.code, "/forget prints for people; with --json use" in refused.err) == (1, True)
    assert len(refused.out.splitlines()) == 1


def test_what_is_no_answer_forgets_nothing_and_the_commands_are_shown(hachi):
    told = f"{PIN}\nforget my bank PIN\nn\nforget my bank PIN\nyes, it rains\ny\nforget my bank PIN\n"
    ran = hachi("chat", stdin=told.encode())
    assert (ran.out.count(QUESTION), ran.out.count(NOTHING_FORGOTTEN)) == (3, 2), (
        "nor is the end of the input"
    )
    assert said(hachi)[1:3] == ["y", "yes, it rains"]
    [memory] = [one for one in hachi("memories", "list", "--json").json if "4711" in one["content"]]
    assert f"hachi memories delete {memory['id'][:8]}" in ran.out
    candidate, *_ = hachi("chat", "--json", "-m", "forget my bank PIN").json["forget"]
    assert (candidate["id"], candidate["kind"]) == (memory["id"], "memory")
    lines = hachi("chat", "--json", stdin=b"forget my bank PIN\n1\n").out.splitlines()
    assert json.loads(lines[-1])["forgotten"][0]["memories"] == [memory["id"]]


def said(hachi):
    """The person's messages, newest first."""
    return [line["text"] for line in hachi("messages", "list", "--json").json if line["role"] == "user"]


@pytest.mark.parametrize(
    ("line", "runs", "shown"),
    [("y", 2, "The clouds are there.\n" * 2), (" NO ", 0, "(Nothing is run.)\n"), ("what?", 0, "I see.\n")],
)
async def test_the_next_line_says_whether_calls_run_that_change_something(
    open_pet, capsys, line, runs, shown
):
    pet, ran = await open_pet(given=AnsweringModel()), list[str]()
    calls = [
        ProposedCall("sky", "move", "sky_move", text, "ana", PRIVATE, "1") for text in ('{"a": 1}', "{}")
    ]

    async def turn(text: str) -> Reply:
        for call in calls if text == "move the clouds" else ():
            await talk.propose(call)
        reply = await pet.respond(text, user="ana")
        print(reply.message)
        return reply

    async def run(call: ProposedCall) -> Reply:
        ran.append(call.arguments)
        return Reply("The clouds are there.", (), (), "", "", 1)

    object.__setattr__(pet, "calls", SimpleNamespace(run=run))
    talk = Conversation(pet, "ana", "dm", turn)
    await talk.take("move the clouds")
    asked = "Move, with sky\na: 1\nShall I do this? Say y or n with the next line.\n"
    assert asked in capsys.readouterr().out
    await talk.take(line)
    assert (len(ran), capsys.readouterr().out) == (runs, shown)
    await talk.take("y")
    assert len(ran) == runs
