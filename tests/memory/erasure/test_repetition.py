"""Which texts state or repeat a fact."""

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


@pytest.mark.parametrize(
    ("fact", "question", "reply", "repeats"),
    [
        ("Ann's bank PIN is 4711", "", "You told me: “My bank PIN is 4711.”", True),
        ("Ann's bank PIN is 4711", "and the number?", "It is 4711.", True),
        ("Ann's bank PIN is 4711", "", "I will not tell your bank PIN.", False),
        ("Ann is 29", "how old am I? 29?", "You are 29.", True),
        ("Ann bought 29 red tulips", "what is 20 + 9?", "That is 29.", False),
        ("Ann lives in Paris", "where do I live?", "In Paris.", True),
        ("Ann lives in Paris", "which city has museums?", "Paris has many.", False),
        ("Ann plans to quit her job", "what about my job?", "You plan to quit.", True),
        ("Ann plans to quit her job", "I plan to quit my job", "Good luck!", False),
        ("Ann loves tea", "what do I love", "Tea.", True),
        ("Ann loves tea", "My sister loves me and tea was cold today.", "Oh dear, cold tea.", False),
        ("Ann", "", "Ann!", False),
    ],
)
def test_a_reply_repeats_a_fact_with_its_values_and_most_words(
    fact: str, question: str, reply: str, repeats: bool
) -> None:
    assert FactWords.of(fact, ANN).repeated_by(reply, question) is repeats


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


def test_neither_a_year_nor_a_number_in_the_tellers_id_identifies_a_fact():
    teller = words("discord:123456")
    born = FactWords.of("Ann was born in 1990", ANN)
    assert not born.same_as(FactWords.of("Ann's brother Tom was born in 1990 in Lyon", ANN))
    assert not born.repeated_by("Your house was built in 1990.")
    lives = FactWords.of("discord:123456 lives in Paris", teller)
    assert not lives.repeated_by("Mickael lives in Lyon")
    assert lives.repeated_by("You live in Paris.")
