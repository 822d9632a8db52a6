import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.facts.compare.normalise import content_key, normalise

ONE_KEY = [
    ("Camille n'aime pas les champignons.", "Camille n’aime pas les champignons !"),
    ("Zoë plays at Café Lumière.", "Zoe\u0308 plays at Cafe\u0301 Lumie\u0300re"),
    ("Derek loves lasagna 🍝", "DEREK LOVES LASAGNA 🍝"),
    ('Kwame said: "I never run."', "Kwame said: “I never run”"),
    ("Helen, Omar and Bo share a desk", "Helen, Omar, and Bo share a desk."),
    ("The team won 3–1", "the team won 3-1"),
    ("two  espressos\tevery morning", "two espressos every morning…"),
    ("שׂרה גרה בת״א.", 'שרה גרה בת"א'),
    ("שָׂרָה מבשלת", "שרה מבשלת"),
    ("\u200fדנה רצה\u200f", "דנה רצה"),
    ("ليلى تُحب القهـوة", "ليلى تحب القهوة"),
    ("電話は１２３です。", "電話は123です"),
    ("موعد ٣ مايو", "موعد 3 مايو"),
    ("Straße", "STRASSE"),
    ("¡Ana tiene un gato!", "Ana tiene un gato."),
    ("Bea's 'flat'.", "bea’s ‘flat’"),
]  # fmt: skip
TWO_KEYS = [
    ("The code is 1,5", "The code is 15"),
    ("It is -5 outside", "It is 5 outside"),
    ("10² cells", "102 cells"),
    ("José ist da", "Jose ist da"),
    ("Ana lives in Rome?", "Ana lives in Rome"),
    ("Bo loves 🍝", "Bo loves 🍕"),
    ("Bo writes C", "Bo writes C++"),
    ("אף של דנה", "אפ של דנה"),
    ("मीना का बेटा", "मीना की बेटी"),
]


@pytest.mark.parametrize(("one", "other"), ONE_KEY)
def test_spellings_of_the_same_statement_share_a_key(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)
    assert content_key(one) == content_key(other)


@pytest.mark.parametrize(("one", "other"), TWO_KEYS)
def test_what_may_carry_a_value_stays_in_the_key(one: str, other: str) -> None:
    assert content_key(one) != content_key(other)


@pytest.mark.parametrize("text", ["!!!", "…", "?", "🎉"])
def test_a_text_of_marks_alone_keeps_them(text: str) -> None:
    assert normalise(text)


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(st.characters(categories=None)))
def test_any_text_has_a_key_of_32_hexadecimal_digits(text: str) -> None:
    assert len(content_key(text)) == 32
    assert int(content_key(text), 16) >= 0
