from dataclasses import replace
from datetime import UTC, datetime, timedelta

from memory.index.windows import LIMIT, NEIGHBOUR_LIMIT, windows_of
from memory.records import Message

START = datetime(2026, 11, 21, 9, tzinfo=UTC)


def said(n: int, *, text: str | None = None, conversation: str = "c", hours: float = 0.0) -> Message:
    at = START + timedelta(minutes=n, hours=hours)
    return Message(str(n), conversation, "user", "Ann" if n % 2 else "Ben", text or f"line {n}", at)


def test_a_window_is_the_message_with_two_before_and_after_in_one_sitting_of_its_conversation() -> None:
    messages = [said(n) for n in range(7)]
    meaning = windows_of(messages)[3].meaning
    assert meaning == "Ann: line 1\nBen: line 2\nAnn: line 3\nBen: line 4\nAnn: line 5"
    messages = [said(0, conversation="other"), said(1), said(2, hours=7), said(3, hours=7)]
    assert windows_of(messages)[1].meaning == "Ann: line 1"
    assert windows_of(messages)[2].meaning == "Ben: line 2\nAnn: line 3"


def test_where_the_companion_replies_a_window_is_what_was_said_and_its_reply() -> None:
    long = "I have signed up for the course in Ghent, which begins in March"
    talk = [replace(said(n, text=f"{long} {n}"), role=("user", "assistant")[n in (1, 4)]) for n in range(6)]
    assert [line[-1] for line in windows_of(talk)[0].words.splitlines()] == ["0", "1"]
    assert [line[-1] for line in windows_of(talk)[2].words.splitlines()] == ["2", "3", "4"]
    assert [line[-1] for line in windows_of(talk)[4].words.splitlines()] == ["2", "3", "4"], "the reply's own"
    talk[2] = replace(talk[2], text="yes, 2")
    assert [line[-1] for line in windows_of(talk)[2].words.splitlines()] == ["0", "1", "2", "3", "4"]


def test_a_long_neighbour_does_not_drown_the_message() -> None:
    messages = [said(0, text="x" * 9_000), said(1, text="y" * 9_000)]
    assert windows_of(messages)[1].words.count("x") == NEIGHBOUR_LIMIT
    assert windows_of(messages)[1].words.count("y") == LIMIT
