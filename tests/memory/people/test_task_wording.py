"""Which descriptions mean one task."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory.people.task_wording import adds, bare_id, may_mean, same_words

SAME = [
    ("call the dentist", "Call dentist!"),
    ("call the dentist", "to call the dentist"),
    ("call mum", "Don’t forget to call mum"),
    ("call mum on Monday", "on Monday, call mum"),
    ("check e-mails", "check E mails"),
    ("appeler le dentiste", "Rappelle-moi d’appeler le dentiste."),
    ("réserver l'hôtel à Rome", "reserver hotel à Rome"),
    ("להתקשר לרופא", "תזכיר לי להתקשר לרופא!"),
    ("ΠΑΡΕ ΓΑΛΑ", "πάρε γάλα"),
    ("позвонить маме", "Позвонить маме."),
    ("给妈妈打电话", "给妈妈打电话。"),
    ("🎉", "🎉"),
    ("the", "The"),
]
APART = [
    ("call mum on Monday", "call mum on Tuesday"),
    ("buy 2 eggs", "buy 3 eggs"),
    ("buy 1.5 kg", "buy 5.1 kg"),
    ("set the heating to 5", "set the heating to -5"),
    ("pay 5€", "pay 5$"),
    ("learn C", "learn C++"),
    ("call Anna", "call Ben"),
    ("call Martin", "call Martina"),
    ("call Anna", "call Anna's mother"),
    ("call her", "call him"),
    ("call Anna about Ben", "call Ben about Anna"),
    ("call anna about ben", "call ben about anna"),
    ("llamar a Ana sobre Ben", "llamar a Ben sobre Ana"),
    ("turn the heating on", "turn the heating off"),
    ("turn on the heating", "turn off the heating"),
    ("call mum", "don't call mum"),
    ("call mum", "call mum again"),
    ("buy milk", "sell milk"),
    ("read chapter one", "read chapter two"),
    ("acheter du thé", "acheter du lait"),
    ("acheter du thé", "acheter the"),
    ("appeler Anna", "appeler la mère d'Anna"),
    ("לקנות חלב", "לקנות לחם"),
    ("かぎを買う", "かきを買う"),
    ("给妈妈打电话", "给爸爸打电话"),
    ("buy 🍎", "buy 🍌"),
    ("!!!", "???"),
    ("buy two eggs", "buy 2 eggs"),
    ("buy milk and eggs", "buy eggs and milk"),
    ("log in to the bank", "log on to the bank"),
]
ADDED = [
    ("call mum", "call mum on Monday"),
    ("buy milk", "buy milk and eggs"),
    ("call the dentist", "call the dentist on Monday at 9"),
    ("appeler maman", "appeler maman avec Léo"),
    ("להתקשר לאמא", "להתקשר לאמא עם דנה"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_words_are_one_task(one: str, other: str) -> None:
    assert same_words(one, other)
    assert same_words(other, one)


@pytest.mark.parametrize(("one", "other"), APART)
def test_different_words_are_two_tasks(one: str, other: str) -> None:
    assert not same_words(one, other)
    assert not adds(one, other)
    assert not adds(other, one)


@pytest.mark.parametrize(("less", "more"), ADDED)
def test_a_time_a_companion_or_an_item_is_an_addition(less: str, more: str) -> None:
    assert adds(more, less)
    assert not adds(less, more)
    assert not same_words(less, more)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("call the dentist", "dentist"),
        ("call the dentist", "I finally called the dentist today"),
        ("call the dentist", "calling the dentist"),
        ("call mum", "call mum on Monday"),
        ("plan the trip", "planned the trip"),
        ("go to the bank", "bank"),
        ("appeler maman", "j’ai appelé maman"),
        ("acheter du pain", "pain acheté"),
        ("להתקשר לרופא", "הרופא"),
        ("购买牛奶", "牛奶"),
        ("치과에 전화하기", "치과"),
        ("done with it", "done"),
    ],
)
def test_a_word_or_another_form_may_mean_a_task(task: str, said: str) -> None:
    assert may_mean(said, task)
    assert not may_mean(said, "water 3 plants")


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("buy 2 eggs", "buy 3 eggs"),
        ("call Martin", "called Martina"),
        ("call Anna's mother", "called Anna"),
        ("call Anna about Ben", "called Ben about Anna"),
        ("don't call Ben", "called Ben"),
        ("buy milk", "bought milk"),
        ("购买牛奶", "奶茶"),
        ("call the dentist", "swimming"),
    ],
)
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


@given(plain_words, st.integers(0, 5))
def test_case_punctuation_articles_and_an_end_put_first_never_matter(words: list[str], at: int) -> None:
    sentence = " ".join(words)
    for other in (
        " ".join([*words[at:], *words[:at]]),
        sentence.upper(),
        sentence.title(),
        f"to {sentence}!",
        ", ".join(words),
        "the " + " the ".join(words),
    ):
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
