"""The few facts that go with every question: what matters, bears on it, and may be read here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.audience import Audience, Place
from memory.records import Memory
from memory.search.core_facts import (
    LONGEST_QUESTION,
    POOL,
    TELLING,
    UNASKED,
    core_facts,
    get_relevant_memories,
)

if TYPE_CHECKING:
    from tests.memory.conftest import Stack

START = datetime(2026, 11, 21, 12, tzinfo=UTC)


async def told(stack: Stack, user: str = "anna", place: str | None = None) -> list[str]:
    """The texts of what goes with a question of theirs there."""
    audience = Audience.of(user, Place.parse(place))
    return [memory.content for memory in await core_facts(stack.store, user, audience, stack.clock.now)]


# What may be read here.


async def test_what_was_said_in_private_goes_with_no_question_in_a_place(stack: Stack) -> None:
    await stack.remember("Anna is pregnant", importance=0.9)
    await stack.remember("Anna skis on Sundays", place="acme/general")

    assert await told(stack, place="acme/general") == ["Anna skis on Sundays"]
    assert await told(stack, place="acme") == []
    assert await told(stack, place="other") == []


async def test_what_was_said_in_a_place_is_known_there_inside_it_and_in_private(stack: Stack) -> None:
    await stack.remember("Anna skis on Sundays", place="acme/general")

    for place in (None, "acme/general", "acme/general/thread-7"):
        assert await told(stack, place=place) == ["Anna skis on Sundays"]


async def test_nobody_is_told_what_somebody_else_said(stack: Stack) -> None:
    await stack.remember("Bob hates cheese", user="bob", importance=0.9)
    await stack.remember("Bob plays the cello", user="bob", place="acme", importance=0.9)

    assert await told(stack) == []
    assert await told(stack, place="acme") == []
    assert sorted(await told(stack, user="bob")) == ["Bob hates cheese", "Bob plays the cello"]


async def test_who_has_no_name_is_told_nothing(stack: Stack) -> None:
    await stack.remember("Anna skis on Sundays")

    assert await core_facts(stack.store, "anna", Audience.of(None), stack.clock.now) == []


# What is true, and what matters.


async def test_what_has_expired_is_gone_from_that_moment_on(stack: Stack) -> None:
    await stack.remember("Anna has the flu", ttl="1h", importance=0.9)

    stack.clock.move(minutes=59)
    assert await told(stack) == ["Anna has the flu"]
    stack.clock.move(minutes=1)
    assert await told(stack) == []


async def test_what_was_replaced_is_gone(stack: Stack) -> None:
    await stack.remember("Anna lives in Paris")
    old = await stack.the_memory()

    await stack.remember("Anna lives in Lyon", replaces=old.id)

    assert await told(stack) == ["Anna lives in Lyon"]


async def test_what_was_replaced_in_private_still_holds_in_the_place(stack: Stack) -> None:
    await stack.remember("Anna lives in Paris", place="acme")
    old = await stack.the_memory()

    await stack.remember("Anna lives in Lyon", replaces=old.id)

    assert await told(stack) == ["Anna lives in Lyon"]
    assert await told(stack, place="acme") == ["Anna lives in Paris"]


async def test_facts_of_little_importance_do_not_go_with_every_question(stack: Stack) -> None:
    await stack.remember("Anna saw a red car", importance=0.49)
    await stack.remember("Anna skis on Sundays", importance=0.5)

    assert await told(stack) == ["Anna skis on Sundays"]


async def test_the_most_important_comes_first_and_of_equals_the_newest(stack: Stack) -> None:
    for content, importance in (("Anna skis", 0.6), ("Anna is allergic to nuts", 0.9), ("Anna paints", 0.6)):
        await stack.remember(content, importance=importance)
        stack.clock.move(hours=1)

    assert await told(stack) == ["Anna is allergic to nuts", "Anna paints", "Anna skis"]


async def test_of_very_many_the_same_ones_are_looked_at_each_time(stack: Stack) -> None:
    numbers = range(POOL + 5)
    for number in numbers:
        await stack.remember(f"Anna's locker number {number} holds item {number * 7}", importance=0.6)
    first = await told(stack)

    assert len(first) == POOL
    assert await told(stack) == first
    ids = [memory.id for memory in await stack.memories()]
    by_id = {memory.id: memory.content for memory in await stack.memories()}
    assert first == [by_id[id] for id in sorted(ids)[:POOL]]


async def test_facts_and_questions_of_any_length_need_no_index(stack: Stack) -> None:
    await stack.remember("Anna skis on Sundays")
    stack.index.away = stack.embedder.away = True

    found = await core_facts(stack.store, "anna", Audience.of("anna"), stack.clock.now)

    assert get_relevant_memories(found, "x " * 100_000 + "Anna skis?") == found


# Which of them bear on the question.


def fact(content: str, importance: float = 0.6, subjects: tuple[str, ...] = (), id: str = "") -> Memory:
    return Memory(
        *(id or f"id of {content}", content, subjects, START, None, "conversation", "fact", importance, None),
        *(0, "anna", "dm", None),
    )


def relevant(facts: list[Memory], question: str, limit: int = 7) -> list[str]:
    return [memory.content for memory in get_relevant_memories(facts, question, limit)]


WORDS = st.sampled_from("Anna skis paints tea hut Lyon היא גרה בליון 我喜欢滑雪 аня любит чай 🎿 le".split())
FACTS = st.lists(
    st.tuples(st.lists(WORDS, max_size=5).map(" ".join), st.sampled_from([0.5, 0.6, 0.75, 0.9])), max_size=20
).map(lambda rows: [fact(content, weight, id=str(at)) for at, (content, weight) in enumerate(rows)])
QUESTIONS = st.lists(WORDS, max_size=5).map(" ".join) | st.text(max_size=30)


@given(FACTS, QUESTIONS, st.integers(0, 20))
def test_at_most_so_many_each_once_and_the_same_each_time(
    facts: list[Memory], question: str, limit: int
) -> None:
    found = get_relevant_memories(facts, question, limit)

    assert found == get_relevant_memories(list(facts), question, limit)
    assert len(found) <= limit
    assert len({memory.id for memory in found}) == len(found)
    assert {memory.id for memory in found} <= {memory.id for memory in facts}


@given(FACTS, QUESTIONS)
def test_the_three_most_telling_are_always_there(facts: list[Memory], question: str) -> None:
    found = get_relevant_memories(facts, question)

    assert len(found) <= 7
    assert len(found) >= min(UNASKED, sum(memory.importance >= TELLING for memory in facts))
    if len(found) < 7:
        unshown = [memory for memory in facts if memory not in found]
        assert sum(m.importance >= TELLING for m in found) >= UNASKED or not any(
            m.importance >= TELLING for m in unshown
        )


@given(FACTS)
def test_a_question_without_words_brings_the_telling_ones_alone(facts: list[Memory]) -> None:
    telling = [memory for memory in facts if memory.importance >= TELLING]

    assert get_relevant_memories(facts, "?! …") == telling[:UNASKED]


@pytest.mark.parametrize(
    ("said", "other", "question"),
    [
        ("Anna skis in Chamonix", "Anna paints", "Where can one ski?"),
        ("Anna habite à Lyon", "Anna peint", "Quel temps fait-il à LYON ?"),
        ("אנה גרה בליון", "אנה מציירת", "מה מזג האוויר בליון?"),
        ("我喜欢滑雪", "我住在里昂", "去哪里滑雪好？"),
        ("Аня любит чай", "Аня рисует", "Какой чай лучше?"),
        ("أنا أحب القهوة", "أنا أرسم", "أين القهوة؟"),
        ("Anna loves 🎿", "Anna loves 🎨", "🎿?"),
    ],
)
def test_what_shares_words_with_the_question_comes_first(said: str, other: str, question: str) -> None:
    assert relevant([fact(other), fact(said)], question)[0] == said
    assert relevant([fact(said), fact(other)], question)[0] == said


def test_tags_are_words_too() -> None:
    assert relevant([fact("She sees it every Monday", subjects=("therapist",))], "my therapist") == [
        "She sees it every Monday"
    ]


def test_what_shares_nothing_and_is_not_telling_stays_away() -> None:
    facts = [fact("Anna skis"), fact("Anna is allergic to nuts", 0.9)]

    assert relevant(facts, "What is the capital of Peru?") == ["Anna is allergic to nuts"]


def test_of_what_shares_as_much_the_weightier_comes_first() -> None:
    facts = [fact("Anna skis Sundays", 0.5), fact("Anna skis Mondays", 0.9)]

    assert relevant(facts, "When does one ski?") == ["Anna skis Mondays", "Anna skis Sundays"]


def test_what_is_telling_is_not_crowded_out_by_what_shares_a_small_word() -> None:
    noise = [fact(f"le voisin numéro {n} est parti", id=f"n{n}") for n in range(9)]
    facts = [fact("Anna : allergie sévère aux noix", 0.95), *noise]

    found = relevant(facts, "Quel est le meilleur dessert ?")

    assert len(found) == 7
    assert found[-1] == "Anna : allergie sévère aux noix"


def test_three_telling_ones_leave_room_for_what_was_asked() -> None:
    facts = [fact(f"Telling {n}", 0.9) for n in range(5)] + [fact(f"Anna skis run {n}") for n in range(9)]

    found = relevant(facts, "Where can one ski?")

    assert found[:4] == [f"Anna skis run {n}" for n in range(4)]
    assert found[4:] == ["Telling 0", "Telling 1", "Telling 2"]


def test_after_something_long_it_is_the_question_that_counts() -> None:
    pasted = "zebra " * LONGEST_QUESTION

    assert relevant([fact("Anna saw a zebra"), fact("Anna skis")], f"{pasted} ") == ["Anna saw a zebra"]
    assert relevant([fact("Anna skis")], f"{pasted} Where can one ski?") == ["Anna skis"]
    assert relevant([fact("Anna skis")], f"ski {pasted}") == []


def test_no_facts_no_matter_what_is_asked() -> None:
    assert get_relevant_memories([], "Where can one ski?") == []
