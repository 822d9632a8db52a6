"""Which statements have the same words, in more than twenty languages, and what holds for any pair."""

import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory.facts.compare import (
    alike,
    content_key,
    mentions,
    missing_value,
    normalise,
    only_recalled,
    same_words,
    tells,
)
from memory.index.embedders import Thresholds

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


VALUE_LOST = [
    ("the train leaves at 9:15", "the train leaves at 9:45"),
    ("Ana takes 5 mg", "Ana takes 50 mg"),
    ("Ana takes 5mg", "Ana takes 5 g"),
    ("Ana has two cats", "Ana has three cats"),
    ("Ana has 2 cats and 3 dogs", "Ana has 3 cats and 2 dogs"),
    ("It is -5 outside", "It is 5 outside"),
    ("Ana owes 50%", "Ana owes 50€"),
    ("Ana leaves at 9:15 and lands at 9:45", "Ana lands at 9:15 and leaves at 9:45"),
    ("Petra ran 10 km on 2025-05-04", "Petra ran 10 km on 2025-05-05"),
    ("Ana was born on 3 May", "Ana was born on 3 June"),
    ("On Monday Ana swims", "Ana swims on Tuesday"),
    ("ana nage le lundi", "ana nage le mardi"),
    ("Ana smokes", "Ana stopped smoking"),
    ("Ana stopped smoking", "Ana smokes"),
    ("Ana smokes", "Ana doesn't smoke"),
    ("Ana is not married", "Ana is married"),
    ("Ana does not drink but smokes", "Ana does not smoke"),
    ("Ana lives in Paris", "Ana lived in Paris"),
    ("Anna rows", "Hanna rows"),
    ("anna rows", "hanna rows"),
    ("Lucia met Ben", "Ben met Lucia"),
    ("Ana met 3 tall men", "Ana met Hanna"),
    ("Ana loves tea", "Ana hates tea"),
    ("Ana has a dog", "Ana has a dog from Spain"),
    ("Ana likes 🍝", "Ana likes 🍕"),
    ("דנה גרה בחיפה", "דנה גרה ביפו"),
    ("אורי פגש את נועה", "נועה פגש את אורי"),
    ("أنا تسكن في القاهرة", "أنا تسكن في دمشق"),
    ("Аня курит", "Аня бросила курить"),
    ("安娜住在北京", "安娜住在南京"),
    ("安娜喝茶", "安娜不喝茶"),
    ("安娜不喝茶", "安娜喝茶"),
    ("मीना चाय पीती है", "मीना चाय नहीं पीती है"),
    ("แอนนาชอบชา", "แอนนาไม่ชอบชา"),
    ("the visit is at 9 pm", "the visit is at 9 am"),
    ("Ana works before noon", "Ana works after noon"),
    ("Ana is over 18", "Ana is under 18"),
    ("he lives with her", "she lives with him"),
    ("Ana had it", "Ana has it"),
    ("Ana is looking for a job", "Ana has a job"),
    ("Ana wants to swim", "Ana can swim"),
    ("Ana hardly drinks", "Ana drinks"),
    ("the visit was 2 days ago", "the visit is in 2 days"),
    ("room 4b", "room 4a"),
    ("the cat is black and the dog is white", "the cat is white and the dog is black"),
    ("Ana's blood type is A+", "Ana's blood type is A-"),
    ("it costs 10%", "it costs 10"),
    ("मीना चाय नहीं पीती है", "मीना चाय पीती है"),
    ("그는 고기를 안 먹는다", "그는 고기를 먹는다"),
]
VALUE_KEPT = [
    ("Ana has the flu", "Ana is down with the flu"),
    ("Ana is 30 years old", "Ana is in her thirties"),
    ("Every morning, Kai walks his dog.", "Kai walks his dog every morning"),
    ("Ana has a cat called Tofu since 2019", "Ana has a cat"),
    ("Ana never eats meat in restaurants", "Ana never eats meat"),
    ("Jonas lives at 18 Harbour Street, Bristol", "Jonas lives in Bristol"),
    ("Yannick est comptable à Rennes depuis 2016.", "Yannick est comptable."),
    ("לדנה יש אח גדול בשם רועי", "לדנה יש אח"),
    ("安娜住在北京", "安娜住北京"),
]


@pytest.mark.parametrize(("known", "new"), VALUE_LOST)
def test_a_word_that_only_the_new_fact_has_is_not_lost(known: str, new: str) -> None:
    assert missing_value(new, known)


@pytest.mark.parametrize(("known", "new"), VALUE_KEPT)
def test_what_says_no_more_is_known(known: str, new: str) -> None:
    assert missing_value(new, known) is None


@given(st.text(), st.text())
def test_any_text_is_known_to_itself(one: str, other: str) -> None:
    assert missing_value(one, one) is None
    missing_value(one, other)


@pytest.mark.parametrize(
    ("text", "fact", "mention", "repeat"),
    [
        ("They spoke of Lisbon.", "Ana lives in Lisbon", True, True),
        ("Ana is well, and that is that.", "Ana lives in Lisbon", False, False),
        ("They will meet in Lyon.", "Noa keeps 31 hives of bees on a roof in Lyon", True, False),
        ("Noa is in Lyon.", "Noa keeps 31 hives of bees on a roof in Lyon", True, True),
        ("他们谈到里斯本", "安娜住在里斯本", True, True),
    ],
)
def test_a_text_tells_a_fact_of_which_it_has_a_third_or_two_words(
    text: str, fact: str, mention: bool, repeat: bool
) -> None:
    assert (mentions(text, fact, ["Ana", "安娜"]), tells(text, fact, ["Ana", "安娜"])) == (mention, repeat)


TEA, HOME = "Ana likes tea", "Ana lives in Lyon"


@pytest.mark.parametrize(
    ("said", "new", "known", "recalls"),
    [
        ("What do you know about me?", "Ana is fond of tea", TEA, True),
        ("Tell me all you remember.", "Lyon is where Ana resides", HOME, True),
        ("What is my home town?", "Ana's home town is Lyon", HOME, True),
        ("Yes, exactly!", "Ana's home is Lyon", HOME, True),
        ("I have it every morning.", "Ana has tea every morning", TEA, False),
        ("Not any more.", "Ana no longer likes tea", TEA, False),
        (
            "What may my sister eat, who is allergic to nuts?",
            "Ana's sister is allergic to nuts",
            "Ana has a sister",
            False,
        ),
        ("מה שלומך?", "Ana is fond of tea", TEA, False),
        ("Yes, both.", "Ana's friend Noor lives at number 1", "Ana's friend Iris lives at number 1", False),
        ("Yes, both.", "Ana's friend Iris lives at number 2", "Ana's friend Iris lives at number 1", False),
    ],
)
def test_only_what_the_speakers_words_do_not_give_is_recalled(
    said: str, new: str, known: str, recalls: bool
) -> None:
    assert bool(only_recalled(new, {"known": known}, said, ["Ana"])) == recalls
