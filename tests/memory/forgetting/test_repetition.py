"""The one rule on words: which replies contain a fact."""

import asyncio
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.forgetting.repetition import ForgottenTexts, repeats

ANN = "ann"
MARCH = "My mum's birthday is on March 3rd."


@pytest.mark.parametrize(
    ("contains", "fact", "reply"),
    [
        (True, MARCH, "I'll remember, in your words: “My mum's birthday is on March 3rd.”"),
        (
            True,
            MARCH,
            "- You told me: “My mum's birthday is on March 3rd.”\n- You told me: “It is on March 4th.”",
        ),
        (True, "Ann's mum's birthday is on March 3rd", "Your mum has her birthday on March 3rd, Ann."),
        (True, "I earn 52k", "You told me “I earn 52k”, and later 61k."),
        (True, "Ann plans to quit her job", "Of your job: you plan to quit."),
        (True, "Ann's bank PIN is 4711", "It is 4711."),
        (True, "Ann's address is ann@acme.example", "Write to Ann@acme.example."),
        (True, "Ann's address is ann@acme.example", "Ask bo@x, (ann@acme.example), or him@acme.example."),
        (False, "Ann's address is ann@acme", "Write to ann@acme, PIN 47a11."),
        (True, "Ann's page is https://ann.example/me", "See https://ann.example/me"),
        (True, "I am pregnant.", "You told me: “I am pregnant.”"),
        (True, "我住在巴黎", "你说：我住在巴黎。"),
        (False, MARCH, "Your mum's birthday is on March 4th."),
        (False, MARCH, "I found nothing about that in what you told me."),
        (False, "Ann's bank PIN is 4711", "I will not tell your bank PIN."),
        (False, "Ann has a cat", "Delete the cat photos."),
        (False, "Ann was born in 1990", "Your house was built in 1990."),
        (False, "Ann is expecting a baby", "No wine for you."),
        (False, "Ann bought 29 red tulips", "That is 29."),
        (False, "Ann", "Hello, Anna!"),
    ],
)
def test_a_reply_contains_a_fact_by_its_words_or_what_identifies_it(
    contains: bool, fact: str, reply: str
) -> None:
    assert repeats(reply, fact, ANN) is contains


@pytest.mark.parametrize("one", ["a", "。", "a@", "a.b@", "1a", "http://"])
def test_a_long_reply_without_a_blank_is_compared_in_no_time(one: str) -> None:
    began = process_time()
    assert not repeats(one * (60_000 // len(one)), "Ann's address is ann@acme.example, PIN 4711", ANN)
    assert process_time() - began < 1


def repeated(told: ForgottenTexts, reply: str) -> list[str]:
    return asyncio.run(told.by_key(ANN)).repeated_in(reply, ANN)


MINE, OURS = "Oui, il est à moi.", "Es ist mir wichtig. Ich kann nicht warten!"


@pytest.mark.parametrize(
    ("quotes", "message", "reply"),
    [
        (True, MINE, "C'est noté. Tu m'as dit : « Oui, il est à moi. » Je m'en souviens."),
        (True, MINE, "Oui : le vélo est bien rouge.\nIl est à toi, pas à moi."),
        (True, OURS, "Du sagtest:\n- Es ist mir wichtig.\n- Ich kann nicht warten!\nGern."),
        (True, "我有糖尿病。", "好的。你说过：我有糖尿病。多喝水。"),
        (
            False,
            MINE,
            "Oui ! Va au musée. Il est ouvert. Prends le train. C'est beau. À toi de voir. Et moi ?",
        ),
        (False, OURS, "Ich kann da sein. Es ist kalt. Warum warten? Nicht hier. Sag mir: was ist wichtig?"),
        (False, "It is mine.", "It is mine."),
    ],
)
def test_a_reply_quotes_a_message_by_words_that_stand_together(
    quotes: bool, message: str, reply: str
) -> None:
    told = ForgottenTexts(ANN, [], [message])
    assert repeated(told, reply) == [message] * quotes


WORDS = (
    "Dying skies, early Birthdays tried relational happiness generously ponies 47112 I'm Will "
    "Citroën ORLÉANS straße ΟΔΟΣ Йогурт 我住在巴黎 カレー 🙂 ﬁsh İzmir’s ann@acme.example"
).split()
ENDINGS = st.sampled_from(["", "s", "ed", "ing", "ational", "iveness", "’s", "_", "…", ". "])
texts = st.lists(st.tuples(st.sampled_from(WORDS), ENDINGS).map("".join), min_size=1, max_size=6).map(
    " ".join
)


@given(fact=texts, reply=texts, case=st.sampled_from([str, str.upper, str.lower, str.title]))
def test_what_is_looked_for_before_a_comparison_is_in_every_reply_that_contains_a_fact(
    fact: str, reply: str, case: type[str]
) -> None:
    told = ForgottenTexts(ANN, [fact], [fact])
    for text in (case(reply), case(f"{fact} {reply}")):
        if repeated(told, text):
            assert any(hint.is_in(text) for hint in told.hints(ANN))
