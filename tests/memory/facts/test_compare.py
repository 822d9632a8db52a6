"""Which statements have the same words, in more than twenty languages, and what holds for any pair."""

import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory.facts.compare import alike, content_key, normalise, same_words
from memory.index.embedders.thresholds import Thresholds

ONE_KEY = [
    ("Camille n'aime pas les champignons.", "Camille n’aime pas les champignons !"),
    ("Zoë plays at Café Lumière.", "Zoe\u0308 plays at Cafe\u0301 Lumie\u0300re"),
    ('Kwame said: "I never run."', "Kwame said: “I never run”"),
    ("The team won 3–1", "the team won 3-1"),
    ("two  espressos\tevery morning", "two espressos every morning…"),
    ("שׂרה גרה בת״א.", 'שרה גרה בת"א'),
    ("שָׂרָה מבשלת", "שרה מבשלת"),
    ("\u200fדנה רצה\u200f", "דנה רצה"),
    ("ليلى تُحب القهـوة", "ليلى تحب القهوة"),
    ("電話は１２３です。", "電話は123です"),
    ("موعد ٣ مايو", "موعد 3 مايو"),
    ("علی لاہور میں رہتا ہے۔", "علی لاہور میں رہتا ہے"),
    ("Bea's 'flat'.", "bea’s ‘flat’"),
    ("Jan wohnt in der Großen Straße", "JAN WOHNT IN DER GROẞEN STRAẞE"),
]  # fmt: skip
TWO_KEYS = [
    ("The code is 1,5", "The code is 15"),
    ("It is -5 outside", "It is 5 outside"),
    ("10² cells", "102 cells"),
    ("Ana lives in Rome?", "Ana lives in Rome"),
    ("هل يسكن بن في روما؟", "هل يسكن بن في روما."),
    ("Bo loves 🍝", "Bo loves 🍕"),
    ("Bo writes C", "Bo writes C++"),
    ("אף של דנה", "אפ של דנה"),
    ("Lena trinkt in Maßen", "Lena trinkt in Massen"),
    ("मीना का बेटा", "मीना की बेटी"),
    ("Every morning, Kai walks his dog.", "Kai walks his dog every morning."),
    ("", "Ben"),
    ("!!", "??"),
]


def pairs(*wanted: str) -> list[tuple[str, str]]:
    lines = (Path(__file__).parent / "fact_pairs.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line and not line.startswith("#")]
    return [(old, new) for relation, _, old, new in rows if relation in wanted]


@pytest.mark.parametrize(("one", "other"), [*ONE_KEY, *pairs("same")])
def test_spellings_of_the_same_statement_share_a_key(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)
    assert content_key(one) == content_key(other)
    assert same_words(one, other)


@pytest.mark.parametrize(("one", "other"), TWO_KEYS)
def test_what_may_carry_a_value_stays_in_the_key(one: str, other: str) -> None:
    assert content_key(one) != content_key(other)
    assert not same_words(one, other)


def test_what_may_be_two_facts_is_kept() -> None:
    apart = pairs("apart", "unproven")
    assert len(apart) >= 400
    assert [pair for pair in apart if same_words(*pair)] == []


@pytest.mark.parametrize("text", ["!!!", "…", "?", "🎉"])
def test_a_text_of_marks_alone_keeps_them(text: str) -> None:
    assert normalise(text)


def test_a_judge_is_asked_only_about_what_is_near() -> None:
    calibrated = Thresholds(dedupe=0.94, recall=0.15)
    old, new = "Ann drinks a lot of juice.", "Ann is fond of lemonade."
    assert alike(old, new, 0.45, calibrated)
    assert not alike(old, new, 0.4, calibrated)
    assert alike("Ann baked a lasagna for us.", "Ann baked a lasagne for us.", 0, calibrated)


@given(st.sampled_from([text for pair in pairs("apart", "same") for text in pair]), st.data())
def test_another_word_in_any_known_statement_is_never_merged(text: str, data: st.DataObject) -> None:
    words = text.split()
    at = data.draw(st.integers(0, len(words) - 1))
    assume(re.search(r"\w", words[at]))
    other = str(int(words[at]) + 1) if words[at].isdigit() else "Qor" + words[at]
    assert not same_words(text, " ".join([*words[:at], other, *words[at + 1 :]]))


@given(st.text(st.characters(categories=None)))
def test_any_text_has_a_key_of_32_hexadecimal_digits_and_normalising_twice_changes_nothing(text: str) -> None:
    assert re.fullmatch("[0-9a-f]{32}", content_key(text))
    assert normalise(normalise(text)) == normalise(text)
