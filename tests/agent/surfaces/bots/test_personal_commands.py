"""What is known of a person, and what was erased, as lines of an answer."""

from datetime import UTC, datetime

import pytest
from odd_people import fact, task

from agent.surfaces.bots.personal_commands import context_items, erasure_answer
from memory.people.profile import Preferences, Profile, UserContext
from memory.records import Erased, Remainder

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def test_unknown_fields_are_left_out() -> None:
    known = UserContext(
        profile=Profile(role="nurse"),
        preferences=Preferences(prefers_bullets=True),
        conversation_themes=("cello", "Lyon"),
        memory_summary="Ana plays the cello.",
        open_tasks=(task("call Lucie"),),
        long_term_facts=(fact("Ana lives in Lyon"),),
    )
    assert context_items(UserContext()) == ()
    assert [(item.label, item.text) for item in context_items(known)] == [
        ("role", "nurse"),
        ("prefers bullets", "yes"),
        ("themes", "cello; Lyon"),
        ("in short", "Ana plays the cello."),
        ("open tasks", "call Lucie"),
        ("fact", "Ana lives in Lyon"),
    ]


LEFT = Remainder("index", 3, "it cannot be reached", expected=False)


@pytest.mark.parametrize(
    ("removed", "left", "text", "items"),
    [
        ({"messages": 12}, (), "Everything I stored about you is deleted.", [("messages", "12")]),
        ({}, (), "I had stored nothing about you.", []),
        ({}, (LEFT,), "Not everything is deleted yet", [("not deleted: index", "3, it cannot be reached")]),
    ],
)
def test_an_erasure_tells_what_was_removed_and_what_is_left(removed, left, text, items) -> None:
    answer = erasure_answer(Erased("chat:1", NOW, removed, left, not left))
    assert answer.text.startswith(text)
    assert [(item.label, item.text) for item in answer.items] == items
