"""Consolidation without a model: a summary of quotations, and what people state in a fixed form."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.background.plain import LONGEST_SUMMARY, MOST_SENTENCES, plain_summary, plain_updates
from memory.records import Message, Role


def said(text: str, author: str = "Anna", role: Role = "user") -> Message:
    return Message("1", "c", role, author, text, datetime(2026, 11, 22, 9, 30, tzinfo=UTC))


def test_the_summary_quotes_what_people_stated_with_their_names() -> None:
    talk = [
        said("Hello! We rent in Lyon. Is that far?"),
        said("Noted.", "hachi", "assistant"),
        said("Ich habe zwei Katzen: Minka und Felix", "Ben: the boss"),
        said("I want to die", "Cleo"),
        said("remind me to call Ana"),
    ]
    summary = plain_summary("", talk)
    assert summary == "Anna: We rent in Lyon.\nBen the boss: Ich habe zwei Katzen – Minka und Felix."
    assert plain_summary(summary, talk) == summary


def test_the_newest_statements_stay_within_the_limits() -> None:
    summary = ""
    for number in range(20):
        summary = plain_summary(summary, [said(f"My boat number {number} is {'very ' * 30}green.")])
        assert len(summary) <= LONGEST_SUMMARY
    assert "number 19" in summary
    assert len(summary.splitlines()) <= MOST_SENTENCES


@pytest.mark.parametrize(
    ("text", "updates"),
    [
        ("my name is Ana and I am in Europe/Paris", [("name", "Ana"), ("timezone", "Europe/Paris")]),
        ("My name is on the list", []),
        ("My name is Bond, James Bond", [("name", "Bond")]),
        ("the ratio Input/Output is 3", []),
        ("Je m'appelle Ana", []),
    ],
)
def test_only_what_has_a_fixed_form_is_noted(text: str, updates: list[tuple[str, str]]) -> None:
    assert plain_updates(text) == updates


@given(st.text(max_size=200), st.text(max_size=50))
def test_any_text_is_summed_up(text: str, author: str) -> None:
    assert len(plain_summary("", [said(text, author)])) <= LONGEST_SUMMARY
