"""Longer answers, in words."""

from datetime import UTC, datetime

from agent.surfaces.bots.wording import context_items, erasure_answer
from memory.erasure.person import Erased, Left
from memory.people.profile import UserContext

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def test_what_is_not_known_is_left_out() -> None:
    assert context_items(UserContext()) == ()
    known = UserContext(conversation_themes=("cello", "Lyon"), memory_summary="Ana plays the cello.")
    assert [(item.label, item.text) for item in context_items(known)] == [
        ("themes", "cello; Lyon"),
        ("in short", "Ana plays the cello."),
    ]


def test_what_was_erased_is_counted() -> None:
    answer = erasure_answer(Erased("chat:1", NOW, {"messages": 12, "memories": 3}, (), True))
    assert answer.text == "Everything I kept of you is gone."
    assert [(item.label, item.text) for item in answer.items] == [("messages", "12"), ("memories", "3")]
    assert erasure_answer(Erased("chat:1", NOW, {}, (), True)).text == "I kept nothing of you."


def test_an_erasure_that_is_not_complete_is_told() -> None:
    left = Left("index", 3, "it cannot be reached", expected=False)
    answer = erasure_answer(Erased("chat:1", NOW, {}, (left,), False))
    assert answer.text.startswith("Not everything is gone yet")
    assert [(item.label, item.text) for item in answer.items] == [("left: index", "3, it cannot be reached")]
