"""Verdicts on pairs in more than twenty languages, and what holds for any pair."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory.facts.compare import Verdict, compare, same_words
from memory.facts.compare.tokens import NEGATIONS

MERGING, KEPT = "same", "different"


@dataclass(frozen=True)
class Calibrated:
    dedupe: float = 0.94
    recall: float = 0.15


def verdict(old: str, new: str, alike: float = 0.99) -> Verdict:
    """Similarity is as high as it gets unless given: no vector may overrule what words say."""
    return compare(old, new, alike, Calibrated())


def pairs(*wanted: str) -> list[tuple[str, str]]:
    lines = (Path(__file__).parent / "fact_pairs.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line and not line.startswith("#")]
    return [(old, new) for relation, _, old, new in rows if relation in wanted]


def test_what_may_be_two_facts_is_kept_whichever_comes_first() -> None:
    apart = pairs("apart", "unproven")
    assert len(apart) >= 400
    assert [pair for pair in apart if same_words(*pair) or same_words(*reversed(pair))] == []


@pytest.mark.parametrize(("old", "new"), pairs("same"))
def test_a_fact_said_twice_is_the_same_whichever_is_newer(old: str, new: str) -> None:
    assert verdict(old, new).relation == verdict(new, old).relation == MERGING


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Mia has 3 cats.", "Mia has 5 cats.", "differs: 3 / 5"),
        ("Leo plays chess.", "Leo plays chess in Rome.", "differs: nothing / in, Rome"),
        ("Every day, Leo naps.", "Leo naps every day.", "the same words"),
        ("On Mondays, Leo naps.", "Leo naps on Mondays.", "the same words"),
    ],
)
def test_the_reason_names_what_differs(old: str, new: str, reason: str) -> None:
    assert verdict(old, new).reason == reason
    assert len(verdict(old, new + " and so on" * 99).reason) < 150


def test_a_judge_is_asked_only_about_what_is_near() -> None:
    old, new = "Ann drinks a lot of juice.", "Ann is fond of lemonade."
    assert verdict(old, new, alike=0.45).alike
    assert not verdict(old, new, alike=0.4).alike
    assert verdict("Ann baked a lasagna for us.", "Ann baked a lasagne for us.", alike=0).alike


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ben likes tea 🍵", "Ben likes tea 🍷"),
        ("Loves 🍝", "Loves"),
        ("Ben lives in Rome?", "Ben lives in Rome."),
        ("هل يسكن بن في روما؟", "هل يسكن بن في روما."),
        ("", "Ben"),
        ("!!", "??"),
        ("Ann prefers tea to coffee.", "Ann prefers coffee to tea."),
        ("Dogs chase cats.", "Cats chase dogs."),
        ("Little Paul, Ann has a dog.", "Ann has a dog Little Paul."),
        ("Any time at 5, 6 of us eat.", "6 of us eat any time at 5."),
        ("Not today, Ann sings.", "Ann sings not today."),
        ("Only Ann sings here.", "Ann sings here only."),
        ("Ann has 3.", "Ann has 3 cats."),
        ("Ann's cat sleeps.", "Ann cat sleeps."),
    ],
)
def test_neither_replaces_nor_swallows(old: str, new: str) -> None:
    assert verdict(old, new).relation == verdict(new, old).relation == KEPT


NAMES = st.sampled_from(
    ["Ada", "Ben", "Paul", "Paula", "Marie", "Maria", "Jin-ho", "Jin-woo", "Oslo", "Rome", "Ève"]
)
FRAMES = st.sampled_from([
    "{} has a cat.", "Tom visits {} every Sunday.", "Tom's sister {} is a nurse and likes tea.",
    "{} vit à Lyon.", "Tom habite avec {} depuis mai.", "דנה נפגשת עם {} ביום שישי.",
    "{} isst gern Brot.", "Иван знает {}.",
])  # fmt: skip
COUNTS = st.sampled_from([
    "Ann has {} cats.", "Ann turned {} in May.", "Ann's flight is at {}:30.", "Ann a {} chats.",
    "Ann wohnt im Haus {}.", "Ann was born on {} March.", "לדנה יש {} חתולים.", "アンナは{}歳です。",
    "Ann ran {} km, then slept.", "Ann paid ${}.",
])  # fmt: skip


@given(FRAMES, NAMES, NAMES, st.floats(0, 1))
def test_another_name_is_never_merged(frame: str, one: str, other: str, alike: float) -> None:
    assume(one != other)
    assert verdict(frame.format(one), frame.format(other), alike=alike).relation == KEPT


@given(COUNTS, st.integers(1, 28), st.integers(1, 28), st.floats(0, 1))
def test_another_number_is_never_merged(frame: str, one: int, other: int, alike: float) -> None:
    assume(one != other)
    assert verdict(frame.format(one), frame.format(other), alike=alike).relation == KEPT


KNOWN = st.sampled_from([text for pair in pairs("apart", "unproven", "same") for text in pair])


@given(KNOWN, st.data())
def test_another_word_in_any_known_statement_is_never_merged(text: str, data: st.DataObject) -> None:
    words = text.split()
    at = data.draw(st.integers(0, len(words) - 1))
    assume(re.search(r"\w", words[at]))
    other = str(int(words[at]) + 1) if words[at].isdigit() else "Qor" + words[at]
    assert verdict(text, " ".join([*words[:at], other, *words[at + 1 :]])).relation == KEPT


@given(KNOWN, st.sampled_from(sorted(NEGATIONS)), st.data())
def test_a_negation_anywhere_is_never_merged(text: str, negation: str, data: st.DataObject) -> None:
    words = text.split()
    at = data.draw(st.integers(0, len(words)))
    turned = " ".join([*words[:at], negation, *words[at:]])
    assert verdict(text, turned).relation == KEPT
    assert verdict(turned, text).relation == KEPT


@given(KNOWN, KNOWN)
def test_verdicts_agree_whichever_statement_is_new(one: str, other: str) -> None:
    assert verdict(one, other).relation == verdict(other, one).relation


@given(st.text(), st.text(), st.floats(-1, 1))
def test_no_text_makes_it_fail(old: str, new: str, alike: float) -> None:
    assert verdict(old, new, alike=alike).reason
    assert verdict(old, old).relation == "same"


@given(st.lists(KNOWN, min_size=2, max_size=2), st.data())
def test_no_mixture_of_real_words_makes_it_fail(texts: list[str], data: st.DataObject) -> None:
    words = data.draw(st.permutations(" ".join(texts).split()))
    cut = data.draw(st.integers(0, len(words)))
    assert verdict(" ".join(words[:cut]), " ".join(words[cut:])).reason


def test_the_one_list_of_words_stays_short() -> None:
    assert len(NEGATIONS) <= 30
