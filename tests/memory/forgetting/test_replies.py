"""The one rule on words: which replies contain a fact."""

import pytest

from memory.forgetting.replies import repeats

ANN = "ann"
MARCH = "My mum's birthday is on March 3rd."


@pytest.mark.parametrize(
    ("fact", "reply"),
    [
        (MARCH, "I'll remember, in your words: “My mum's birthday is on March 3rd.”"),
        (MARCH, "- You told me: “My mum's birthday is on March 3rd.”\n- You told me: “It is on March 4th.”"),
        ("Ann's mum's birthday is on March 3rd", "Your mum has her birthday on March 3rd, Ann."),
        ("I earn 52k", "You told me “I earn 52k”, and later 61k."),
        ("Ann plans to quit her job", "Of your job: you plan to quit."),
        ("Ann's bank PIN is 4711", "It is 4711."),
        ("Ann's address is ann@acme.example", "Write to Ann@acme.example."),
        ("Ann's page is https://ann.example/me", "See https://ann.example/me"),
        ("I am pregnant.", "You told me: “I am pregnant.”"),
        ("我住在巴黎", "你说：我住在巴黎。"),
    ],
)
def test_a_reply_with_the_words_of_a_fact_or_what_identifies_it_contains_it(fact: str, reply: str) -> None:
    assert repeats(reply, fact, ANN)


@pytest.mark.parametrize(
    ("fact", "reply"),
    [
        (MARCH, "Your mum's birthday is on March 4th."),
        (MARCH, "I found nothing about that in what you told me."),
        ("Ann's bank PIN is 4711", "I will not tell your bank PIN."),
        ("Ann has a cat", "Delete the cat photos."),
        ("Ann was born in 1990", "Your house was built in 1990."),
        ("Ann is expecting a baby", "No wine for you."),
        ("Ann bought 29 red tulips", "That is 29."),
        ("Ann", "Hello, Anna!"),
    ],
)
def test_other_replies_do_not(fact: str, reply: str) -> None:
    assert not repeats(reply, fact, ANN)
