"""A text is found by its words, whatever the script."""

import tomllib
from pathlib import Path

import pytest

from memory.index import bm25 as words

PAIRS = tomllib.loads((Path(__file__).parents[2] / "data" / "words.toml").read_text())
ODD = [("well \ud83d\udc36", "🐶"), ("a\x00b tulip", "tulip"), ("\ud800 tulip", "tulip")]


def shared(document: str, question: str) -> set[int]:
    asked, found = words.query(question), words.document(document)
    return set(asked.indices if asked else ()) & set(found.indices if found else ())


@pytest.mark.parametrize(("document", "question"), [*PAIRS["found"], *ODD, *PAIRS["missed"]])
def test_a_text_is_found_by_its_words_alone(document: str, question: str) -> None:
    assert bool(shared(document, question)) == ([document, question] not in PAIRS["missed"])


@pytest.mark.parametrize("empty", ["", "  ", "...", "the", "\x00"])
def test_a_text_without_words_has_no_vector(empty: str) -> None:
    assert words.document(empty) is None
    assert words.query(empty) is None


def test_a_repeated_word_weighs_more_but_not_twice_as_much() -> None:
    once, twice = words.document("walrus egg"), words.document("walrus walrus egg")
    assert once
    assert twice
    assert max(once.values) < max(twice.values) < 2 * max(once.values)


def test_what_lies_beyond_the_longest_is_not_read() -> None:
    assert words.prepare("x" * (words.LONGEST + 5)) == "x" * words.LONGEST
