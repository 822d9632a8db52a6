from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.names import Aliases, called, named, spoken_of, without_names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("What did Caroline research?", "Caroline"),
        ("Qu'est-ce qu'on sait d'Anna ?", "Anna Berg"),
        ("What do Soren and Lukasz plan?", "Søren"),
        ("What do Soren and Lukasz plan?", "ŁUKASZ"),
        ("IŞIL NE DEDİ?", "Işıl"),
        ("מה אמרתי למיכאל?", "מיכאל"),
        ("田中さんは何が好き?", "田中"),
        ("नेहा ने क्या कहा?", "नेहा शर्मा"),
        ("কে বলেছে, রিতা।", "রিতা"),
        ("கவிதா என்ன சொன்னாள்?", "கவிதா"),
        ("ဒေါ်စုဘာပြောလဲ", "စု"),
    ],
)
def test_a_name_is_found_without_case_and_accents_in_any_script(text: str, name: str) -> None:
    assert named(text, [name, "Somebody"]) == {name}


def test_letters_inside_another_word_are_no_name() -> None:
    inside = {"What is annoying?": "Anna", "הירדנית שטה": "דני", "A plan": "A", "Nothing here": "!!!"}
    inside |= {"राजा आया": "राज", "রাতে": "রিতা"}
    assert {text: named(text, [name]) for text, name in inside.items()} == dict.fromkeys(inside, frozenset())


def test_the_name_and_its_possessive_are_taken_out_of_the_question() -> None:
    assert without_names("When did Caroline's sister paint?", ["Caroline", "Mel"]) == "When did sister paint?"
    assert without_names("Où Mélanie a-t-elle couru hier ?", ["Melanie"]) == "Où a-t-elle couru hier ?"
    for name in ("İstanbul", "ﬁnn", "Straße", "ΑΣ"):  # without case they have another length
        assert without_names(f"what did {name} see there?", [name]) == "what did see there?"


@pytest.mark.parametrize(
    ("text", "of_him"),
    [
        ("Evan sails on Sundays", True),
        ("I borrowed Evan's boat", True),
        ("Thanks, Evan!", False),
        ("Evan, are you coming?", False),
    ],
)
def test_who_is_spoken_of_is_told_from_who_is_addressed(text: str, of_him: bool) -> None:
    assert spoken_of(text, ["Evan"]) is of_him


@pytest.mark.parametrize(
    ("question", "name", "is_called"),
    [
        ("which coffee do we have?", "Captain Coffee", False),
        ("which one is Coffee's?", "Captain Coffee", True),
        ("where did ann go?", "Ann Lee", True),
        ("what did captain coffee say?", "Captain Coffee", True),
        ("מה כהן אמר?", "דני כהן", True),
    ],
)
def test_a_common_word_within_a_name_calls_nobody(question: str, name: str, is_called: bool) -> None:
    assert called(question, [name]) == ({name} if is_called else frozenset())


@given(st.text(), st.lists(st.text(max_size=8), max_size=4))
def test_any_text_can_be_read(question: str, names: list[str]) -> None:
    assert named(question, names) <= set(names)
    assert len(without_names(question, names)) <= len(question)


def test_a_text_is_read_once_however_many_names_there_are() -> None:
    names = frozenset(f"Speaker{n} Name{n}" for n in range(3_000))
    aliases = Aliases(tuple((f"Nick{n}", f"Person{n}") for n in range(3_000)))
    question = "what did Speaker7 say of Nick7?"
    began = thread_time()
    for _ in range(20):
        assert named(question, names) == called(question, names) == {"Speaker7 Name7"}
        assert without_names(question, names) == "what did say of Nick7?"
        assert aliases.other_names(question) == ("Person7",)
        assert aliases.canonical("Person7 sails") == "Nick7 sails"
    assert thread_time() - began < 1.0  # one pattern a name took twenty seconds
