"""Which lines of a conversation are shown with a found message."""

from datetime import UTC, datetime, timedelta

from memory.records import Hit, Message
from memory.search.excerpts import EXPLAINED, Excerpt, excerpts, relevant
from memory.sql.messages.message_rows import Line

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)
LONG = "A statement that is long enough to be understood without what was said before it."


def conversation(*said: tuple[str, str]) -> list[Line]:
    return [
        Line(
            Message(str(n), "dm:ana", "user", author, text, NOON + timedelta(minutes=n)),
            frozenset({"user:ana"}),
            n,
            "ana",
        )
        for n, (author, text) in enumerate(said)
    ]


def shown(lines: list[Line], *found: int, seen: frozenset[str] = frozenset()) -> list[str]:
    """The positions of the lines in each excerpt."""
    hits = [Hit(str(at), "message", lines[at].message.text, 1.0, NOON) for at in found]
    around = {str(at): lines[max(0, at - 2) : at + 3] for at in found}
    parts = excerpts(hits, around, seen)
    return ["".join(line.message.id for line in one.lines) for one in parts if isinstance(one, Excerpt)]


def test_results_end_where_relevance_ends_also_among_the_first() -> None:
    hits = [Hit(str(score), "message", LONG, score, NOON) for score in (0.9, 0.4, 0.1)]
    assert relevant(hits, 0.9) == hits[:2]
    assert relevant(hits[1:], 3.0) == [], "what is seen already was so much better"
    assert excerpts([Hit("x", "message", "gone", 1.0, NOON)], {}) == [], "it was deleted meanwhile"


def test_a_found_question_comes_with_the_lines_up_to_its_answer() -> None:
    lines = conversation(
        ("ben", "How long did you date him?"), ("ben", "I mean Viktor."), ("ana", LONG), ("ben", LONG)
    )
    assert shown(lines, 0) == ["012"]
    assert shown(lines[:2], 0) == ["0"], "nobody answered"
    assert shown(lines, 0, seen=frozenset({"2"})) == ["01"], "the prompt shows the answer"
    lines = conversation(("ben", LONG), ("ana", LONG), ("ben", LONG))
    assert shown(lines, 1) == ["1"], "a long statement that answers nothing stands alone"


def test_after_the_best_hits_only_short_messages_bring_a_line_with_them() -> None:
    lines = conversation(
        *[("ben", LONG)] * 6, ("ben", "Why?"), ("ana", LONG), ("ben", "Why?"), ("ana", "No.")
    )
    best = list(range(EXPLAINED))
    assert shown(lines, 7) == ["67"]
    assert shown(lines, *best, 7) == ["012347"]
    assert shown(lines, *best, 9) == ["0123489"]


def test_finds_of_one_sitting_are_one_excerpt_in_the_order_in_which_they_were_said() -> None:
    lines = conversation(*[("ana", LONG)] * 90)
    assert shown(lines, 2, 0, 8) == ["028"]
    assert shown(lines, 3, 80, 1) == ["13", "80"], "more than an hour lies between"
