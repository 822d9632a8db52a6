"""A text is found by its words, whatever the script."""

import pytest

from memory.index import bm25 as words

FOUND = [
    ("He was running home", "run"),
    ("She has two dogs", "dog"),
    ("אני אוהב חתולים וכלבים", "חתולים"),
    ("שָׁלוֹם לכולם", "שלום"),
    ("J'aime les éclairs au café", "eclairs"),
    ("Camille n’aime pas les champignons", "n'aime champignons"),
    ("Привет, мой добрый мир", "мир"),
    ("مَرْحَبًا بالعالم", "مرحبا"),
    ("Η γάτα κοιμάται", "γατα"),
    ("我喜欢吃苹果", "苹果"),
    ("我家有一只猫", "猫"),
    ("私は東京に住んでいます", "東京"),
    ("毎朝コーヒーを飲む", "コーヒー"),
    ("ｺｰﾋｰが好き", "コーヒー"),
    ("한국어를 공부합니다", "한국어"),
    ("ผมชอบกินข้าวผัด", "ข้าวผัด"),
    ("मुझे चाय पसंद है", "चाय"),
    ("party 🎉🐶!", "🐶"),
    ("I ❤️ this", "❤"),
    ("waving 👋🏽", "👋"),
    ("well \ud83d\udc36", "🐶"),
    ("Ｆｕｌｌ width", "full"),
    ("flight BA 2490 on 3 May", "2490"),
    ("a\x00b tulip", "tulip"),
    ("\ud800 tulip", "tulip"),
]
MISSED = [
    ("我喜欢吃苹果", "香蕉"),
    ("私は東京に住んでいます", "大阪"),
    ("party 🎉", "🐶"),
    ("חתולים", "כלבים"),
    ("the cat and the dog", "the and"),
]


def shared(document: str, question: str) -> set[int]:
    asked, found = words.query(question), words.document(document)
    return set(asked.indices if asked else ()) & set(found.indices if found else ())


@pytest.mark.parametrize(("document", "question"), FOUND)
def test_is_found(document: str, question: str) -> None:
    assert shared(document, question)


@pytest.mark.parametrize(("document", "question"), MISSED)
def test_is_not_found(document: str, question: str) -> None:
    assert not shared(document, question)


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
