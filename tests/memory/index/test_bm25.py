"""A text is found by its words, whatever the script."""

import tomllib
from pathlib import Path

import pytest

from memory.index import bm25 as words

PAIRS = tomllib.loads((Path(__file__).parents[2] / "data" / "words.toml").read_text())
ODD = [("well \ud83d\udc36", "🐶"), ("a\x00b tulip", "tulip"), ("\ud800 tulip", "tulip")]


def shared(document: str, question: str) -> set[int]:
    return words.query(question) & words.document(document).keys()


@pytest.mark.parametrize(("document", "question"), [*PAIRS["found"], *ODD, *PAIRS["missed"]])
def test_a_text_is_found_by_its_words_alone(document: str, question: str) -> None:
    assert bool(shared(document, question)) == ([document, question] not in PAIRS["missed"])


@pytest.mark.parametrize("empty", ["", "  ", "...", "\x00"])
def test_a_text_without_words_has_none(empty: str) -> None:
    assert words.document(empty) == {}
    assert words.query(empty) == frozenset()


def test_a_question_leaves_out_function_words_that_are_no_names() -> None:
    assert words.query("What will he do?") == words.query("WHAT WILL HE DO") == frozenset()
    assert shared("Will has a boat", "where does Will live?")
    assert not shared("he will come", "Will he come? Will you go?") - words.query("come")


def test_a_repeated_word_weighs_more_but_not_twice_as_much() -> None:
    once, twice = words.document("walrus egg"), words.document("walrus walrus egg")
    assert max(once.values()) < max(twice.values()) < 2 * max(once.values())


def test_what_lies_beyond_the_longest_is_not_read() -> None:
    assert words.prepare("x" * (words.LONGEST + 5)) == "x" * words.LONGEST
