"""Which texts of a person state a fact."""

import pytest

from memory.erasure.repetition import FactWords, telling_sentences, words

ANN = words("ann")


@pytest.mark.parametrize(
    ("fact", "message", "states"),
    [
        ("Ann's bank PIN is 4711", "Hi! My bank PIN is 4711.", True),
        ("Ann's bank PIN is 4711", "My bank PIN is 4712.", False),
        ("Ann's bank PIN is 4711", "I pay 4711 euros.", False),
        ("Ann lives in Paris", "I live in Paris now, near the river and the old market", True),
        ("Ann lives in Paris", "I live in Lyon", False),
        ("Ann plans to quit her job", "I am planning to quit my job, and then to travel for years", True),
        ("Ann likes tea", "I like tea", True),
        ("Ann likes tea", "I would like to serve tea to my mother when she visits on Sunday", False),
        ("Ann skis", "I ski.", True),
        ("Ann skis", "Which ski resorts do you know?", False),
        ("Ann's dog is Rex", "I have a dog. He is called Rex.", True),
        ("Ann", "Ann here", False),
    ],
)
def test_a_message_states_a_fact_with_all_its_words(fact: str, message: str, states: bool) -> None:
    assert FactWords.of(fact, ANN).stated_by(message) is states


@pytest.mark.parametrize(
    ("fact", "message", "shows"),
    [
        ("Ann's bank PIN is 4711", "Is 4711 my PIN?", True),
        ("Ann's bank PIN is 4711", "it was 4711", True),
        ("Ann's bank PIN is 4711", "I pay 4711 euros, and €4711 more, or 4711€.", False),
        ("Ann's bank PIN is 4711", "please forget my PIN", True),
        ("Ann's bank PIN is 4711", "Delete my account at the other shop", False),
        ("Ann's phone is 0176-1234567", "Call me at 0176 1234567!", True),
        ("Ann's address is ann@acme.example", "Write to Ann@acme.example, please.", True),
        ("Ann's locker has the code 312", "Is 312 the code?", True),
        ("Ann's locker has the code 312", "I read 312 pages.", False),
        ("Ann was born in 1990 in Lyon", "The house was built in 1990.", False),
        ("Ann earns 4250 a month", "The car costs 4250, far too much.", False),
        ("Ann's train leaves at 18:45", "Dinner is at 18:45.", False),
        ("Ann sees her doctor on 12 May at 18:45", "My train is on 12 May at 18:45, too.", False),
        ("Ann sees her doctor on 12 May at 18:45", "On 12 May at 18:45 I see him.", True),
        ("Ann has 2 red tulips", "I saw 2 tulips.", False),
        ("Ann plans to quit her job", "Forget that I plan to quit, please.", True),
        ("Ann plans to quit her job", "Do I plan anything?", False),
    ],
)
def test_a_message_of_the_teller_shows_a_fact_with_what_identifies_it(
    fact: str, message: str, shows: bool
) -> None:
    assert FactWords.of(fact, ANN).shown_by_own(message) is shows


def test_a_fact_is_the_same_as_its_rewording_and_as_what_shows_its_identifying_number() -> None:
    pin, paris = FactWords.of("Ann's bank PIN is 4711", ANN), FactWords.of("Ann lives in Paris", ANN)
    assert pin.same_as(FactWords.of("the PIN of the bank: 4711", ANN))
    assert pin.same_as(FactWords.of("Ann's bank PIN is 4711 and she banks at Revolut", ANN))
    assert pin.same_as(FactWords.of("Ann opens the gate with 4711", ANN))
    assert not pin.same_as(FactWords.of("Ann pays 4711 euros", ANN))
    assert not paris.same_as(FactWords.of("Ann lives in Paris with Ben", ANN))


def test_only_sentences_that_say_something_are_recognised() -> None:
    assert telling_sentences("Thanks! Ok. My number is 12. I plan to quit my job.", ANN) == [
        "My number is 12.",
        "I plan to quit my job.",
    ]


def test_a_year_identifies_no_fact() -> None:
    born = FactWords.of("Ann was born in 1990", ANN)
    assert not born.same_as(FactWords.of("Ann's brother Tom was born in 1990 in Lyon", ANN))
