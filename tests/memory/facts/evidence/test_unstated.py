"""What a message cannot have stated."""

import dataclasses
from datetime import UTC, datetime

import pytest

from memory.facts.candidate import Provenance
from memory.facts.evidence import unstated

SAID = Provenance("ben", datetime(2026, 1, 10, tzinfo=UTC), speaker="Ben K.", live=True)


def said(text: str) -> Provenance:
    return dataclasses.replace(SAID, said=text)


@pytest.mark.parametrize(
    "content",
    [
        "Hello!",
        "Ben said hello",
        "The user greeted Hachi",
        "Bonjour",
        "תודה רבה",
        "Ben K. says thank you very much",
    ],
)
def test_a_greeting_is_no_fact(content: str) -> None:
    assert unstated.refusal(content, said("hello, I am back")) == unstated.GREETING


@pytest.mark.parametrize(
    "message", ["hi", "Good morning, Hachi!", "Guten Morgen", "こんにちは", "merci beaucoup"]
)
def test_nothing_is_learned_from_a_greeting(message: str) -> None:
    assert unstated.refusal("Ben lives in Lyon", said(message)) == unstated.FROM_GREETING


@pytest.mark.parametrize(
    "message", ["yes", "hi, I live in Lyon", "nuts", "42", "", "שלום, אני גר בליון", "Oma"]
)
def test_a_fact_may_come_from_any_other_message(message: str) -> None:
    assert unstated.refusal("Ben lives in Lyon", said(message)) is None


def test_the_message_counts_only_for_facts_of_its_own_turn() -> None:
    later = dataclasses.replace(said("hi"), live=False)
    assert unstated.refusal("Ben lives in Lyon", later) is None
    assert not unstated.is_own_knowledge("Paris is the capital of France", later)


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ("What is the capital of France?", "Paris is the capital of France"),
        ("When did the war end?", "The war ended in 1945"),
        ("Quelle est la capitale de la France ?", "La capitale de la France est Paris"),
    ],
)
def test_the_answer_to_a_question_is_no_fact_of_the_person(message: str, content: str) -> None:
    assert unstated.is_own_knowledge(content, said(message))


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ("Can you recommend a green tea?", "Ben likes green tea"),
        ("What do I cook for Anna, who is vegan?", "Anna is vegan"),
        ("Did you know that my sister Ana moved to Rome?", "Ana lives in Rome"),
        ("Is the wifi password still 4711?", "The wifi password is 4711"),
        ("I live in Paris. What is the capital of France?", "Somebody lives in Paris, France"),
        ("My cat is Minka. Cute, no?", "Minka is the cat of Benjamin"),
    ],
)
def test_a_question_may_state_facts(message: str, content: str) -> None:
    assert not unstated.is_own_knowledge(content, said(message))


def test_another_name_of_the_speaker_names_the_speaker() -> None:
    message, content = "Which tea from Japan do you like?", "Mickael likes tea from Japan"
    assert unstated.is_own_knowledge(content, said(message))
    assert not unstated.is_own_knowledge(content, said(message), ["Mickael"])
