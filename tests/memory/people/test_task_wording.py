"""Which descriptions mean one task."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory.facts.compare import same_words
from memory.people.task_wording import bare_id, may_mean

PAIRS = tomllib.loads((Path(__file__).parents[2] / "data" / "task_wording.toml").read_text())


@pytest.mark.parametrize(("one", "other"), PAIRS["same"])
def test_the_same_words_are_one_task(one: str, other: str) -> None:
    assert same_words(one, other)
    assert same_words(other, one)


@pytest.mark.parametrize(("one", "other"), PAIRS["apart"])
def test_different_words_are_two_tasks(one: str, other: str) -> None:
    assert not same_words(one, other)


@pytest.mark.parametrize(("task", "said"), PAIRS["meant"])
def test_a_word_or_another_form_may_mean_a_task(task: str, said: str) -> None:
    assert may_mean(said, task)
    assert not may_mean(said, "water 3 plants")


@pytest.mark.parametrize(("task", "said"), PAIRS["not_meant"])
def test_other_names_numbers_and_words_do_not_mean_it(task: str, said: str) -> None:
    assert not may_mean(said, task)


@pytest.mark.parametrize(
    ("id", "bare"),
    [
        *((shown, "1a2b") for shown in ("1a2b", "[task 1a2b]", "task 1a2b", "[1a2b]", "#1a2b", " 1a2b ")),
        *((blank, None) for blank in ("", " ", "null", "None", "new", "[task null]")),
        (7, 7),
        (None, None),
    ],
)
def test_an_id_is_read_as_the_prompt_shows_it(id: object, bare: object) -> None:
    assert bare_id(id) == bare


plain_words = st.lists(
    st.text("bcdfghjkßжзйβδθबगدج", min_size=3, max_size=7) | st.integers(2, 99).map(str),
    min_size=1,
    max_size=6,
)


@given(plain_words)
def test_case_and_punctuation_never_matter(words: list[str]) -> None:
    sentence = " ".join(words)
    for other in (sentence.upper(), sentence.title(), f"{sentence}!", ", ".join(words)):
        assert same_words(sentence, other)
        assert same_words(other, sentence)


@given(plain_words, plain_words)
def test_other_words_are_never_the_same(one: list[str], other: list[str]) -> None:
    assume(sorted(one) != sorted(other))
    assert not same_words(" ".join(one), " ".join(other))


@given(st.text(), st.text())
def test_any_text_can_be_compared(one: str, other: str) -> None:
    assert same_words(one, one)
    assert same_words(one, other) == same_words(other, one)
    assert may_mean(one, other) == may_mean(other, one)
