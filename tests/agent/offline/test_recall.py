from typing import Any

import pytest

from agent.offline.recall import (
    LINES,
    Asker,
    answer,
    is_about_people,
    is_general,
    passage,
    query,
    shortened,
    wider_query,
)

MICKAEL = Asker("Mickael", ("Mickael", "the user"), "en")
NOBODY = Asker(None, ("the user",), "en")


def fact(content: str, score: float = 0.5, at: str = "2026-01-01") -> dict[str, Any]:
    return {"kind": "memory", "content": content, "score": score, "created_at": at}


def message(content: str, author: str = "Mickael") -> dict[str, Any]:
    return {"kind": "message", "content": content, "author": author, "score": 0.9, "created_at": "2026-02-01"}


def lines(question: str, *hits: dict[str, Any], asker: Asker = MICKAEL) -> tuple[str, ...]:
    return answer(question, list(hits), asker, question).lines


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what happened to me?", "what happened to Mickael"),
        ("what is my job?", "what is Mickael's job"),
        ("où est-ce que j'habite ?", "où est-ce que j'habite Mickael"),
        ("where does Ana live?", "where does Ana live"),
    ],
)
def test_a_question_about_oneself_is_asked_by_name(question: str, expected: str) -> None:
    asker = Asker("Mickael", ("Mickael",), "fr" if "où" in question else "en")
    assert query(question, asker) == expected
    assert query("what is my job?", NOBODY) == "what is my job"


def test_the_wider_search_adds_words_that_answers_use() -> None:
    assert wider_query("where do I live?", MICKAEL).startswith("Mickael live lives living home address moved")


@pytest.mark.parametrize(
    "question", ["who am I?", "what do you know about me?", "what did we talk about?", "do you remember me"]
)
def test_some_questions_ask_for_whatever_is_known(question: str) -> None:
    assert is_general(question, MICKAEL)
    assert not is_general("what do you know about Ana?", MICKAEL)
    assert not is_general("why?", MICKAEL)


def test_only_memory_knows_people() -> None:
    assert is_about_people("where do I live?")
    assert is_about_people("where does she live?")
    assert not is_about_people("how do I reset the router?")
    assert not is_about_people("what is the capital of France?")


def test_the_newest_of_what_answers_comes_first_and_the_rest_stays_away() -> None:
    assert lines(
        "where do I live?",
        fact("Mickael lives in Paris", 0.9, "2025-01-01"),
        fact("Mickael lives in Lyon", 0.8, "2026-01-01"),
        fact("Mickael hates olives", 0.9, "2026-03-01"),
        fact("Mickael's sister Ana lives in Rome", 0.9, "2026-03-01"),
    ) == ("You live in Lyon", "You live in Paris")


def test_the_thing_that_is_asked_about_must_be_there() -> None:
    found = answer("what's my dog's name?", [fact("The user's name is Mickael")], MICKAEL, "")
    assert not found.sure
    assert lines("what's my dog's name?", fact("Mickael's dog is called Rex")) == ("Your dog is called Rex",)
    assert lines("what's my favorite colour?", fact("Mickael's colour is blue")) == ("Your colour is blue",)


def test_what_is_far_off_is_not_even_offered() -> None:
    assert lines("where do I live?", fact("Mickael hates olives", 0.1)) == ()
    assert lines("where do I live?", {"content": "Mickael hates olives", "score": None}) == ()
    assert lines("where is the station?", fact("Mickael hates olives", 0.9)) == ()


def test_messages_answer_where_no_fact_does_as_well() -> None:
    assert lines("what about my boat?", message("my boat leaks", "Mickael")) == (
        "You told me: “my boat leaks”",
    )
    assert lines("what about the boat?", message("the boat leaks", "")) == ("You told me: “the boat leaks”",)
    assert lines("what about my boat?", message("my boat leaks"), fact("Mickael's boat leaks")) == (
        "Your boat leaks",
    )


def test_neither_questions_nor_own_replies_nor_the_message_itself_are_evidence() -> None:
    told = [
        message("the boat?"),
        message("I'll remember: the boat leaks"),
        message("the boat", "hachi"),
        message(""),
    ]
    assert (
        answer(
            "what about the boat", [*told, message("what about the boat")], MICKAEL, "what about the boat"
        ).lines
        == ()
    )


def test_in_general_facts_come_first_one_s_own_before_others_and_nothing_twice() -> None:
    known = lines(
        "what do you know about me?",
        message("Mickael skis and swims"),
        message("my boat is old"),
        fact("Ana lives in Rome"),
        fact("Mickael skis"),
        fact("The user skis"),
        fact("Mickael swims"),
    )
    assert known == ("You ski", "You swim", "Ana lives in Rome", "You told me: “my boat is old”")
    many = [fact(f"Mickael owns boat {n}") for n in range(9)]
    assert len(lines("who am I?", *many)) == LINES


def test_a_fact_under_another_name_answers_for_the_name_that_is_asked_for() -> None:
    known = fact("Dev likes olives")
    found = answer("what does Bob like?", [known], NOBODY, "", also=frozenset({"dev"}))
    assert (found.lines, found.sure) == (("Dev likes olives",), True)


def test_a_passage_begins_where_it_bears_on_the_question() -> None:
    chunks = [
        {"text": "Nothing here.", "source": "a.md"},
        {"text": "We open at 8. Reset the router here. Then wait.", "source": "b.md"},
    ]
    found = passage("how do I reset the router?", chunks, MICKAEL)
    assert found == ("b.md", "Reset the router here. Then wait.")
    assert passage("where is Ana?", chunks, MICKAEL) is None


def test_long_lines_are_cut_between_words() -> None:
    assert shortened("word " * 100, 12) == "word word …"
    assert shortened("word\n word") == "word word"
