from datetime import UTC, datetime

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from agent.surfaces.cli.chat.forget import NOTHING, chosen
from memory.records import ForgetCandidate

CANDIDATES = [
    ForgetCandidate(str(n), "memory", f"fact {n}", datetime(2026, 1, 10, tzinfo=UTC), "asked")
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


def test_what_is_confirmed_is_forgotten(talk, hachi):
    ran = talk(PIN, "please forget my bank PIN", "y")
    assert ran.code == 0
    assert "1. " in ran.out
    assert "taken: 1 memory" in ran.out
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
