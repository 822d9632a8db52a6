"""The facts that are in every prompt: important, relevant and readable."""

from datetime import UTC, datetime

import pytest

from memory.audience import Audience, Place
from memory.records import Memory
from memory.search.core_facts import core_facts, get_relevant_memories
from tests.memory.conftest import Stack

START = datetime(2026, 11, 21, 12, tzinfo=UTC)


async def told(stack: Stack, user: str = "anna", place: str | None = None) -> list[str]:
    """The texts of their core facts there."""
    audience = Audience.of(user, Place.parse(place))
    return [memory.content for memory in await core_facts(stack.store, user, audience, stack.clock.now)]


async def test_facts_are_read_where_they_were_told_inside_it_and_in_private(stack: Stack) -> None:
    await stack.remember("Anna is pregnant", importance=0.9)
    await stack.remember("Anna skis on Sundays", place="acme/general")
    await stack.remember("Bob hates cheese", user="bob", importance=0.9)
    await stack.remember("Bob plays the cello", user="bob", place="acme", importance=0.8)

    assert await told(stack) == ["Anna is pregnant", "Anna skis on Sundays"]
    for place in ("acme/general", "acme/general/thread-7"):
        assert await told(stack, place=place) == ["Anna skis on Sundays"]
    for place in ("acme", "other"):
        assert await told(stack, place=place) == []
    assert await told(stack, user="bob") == ["Bob hates cheese", "Bob plays the cello"]
    assert await core_facts(stack.store, "anna", Audience.of(None), stack.clock.now) == []


async def test_expired_and_replaced_facts_are_left_out(stack: Stack) -> None:
    await stack.remember("Anna has the flu", ttl="1h", importance=0.9)
    stack.clock.advance(minutes=59)
    assert await told(stack) == ["Anna has the flu"]
    stack.clock.advance(minutes=1)
    assert await told(stack) == []

    await stack.remember("Anna lives in Paris", place="acme")
    await stack.remember("Anna lives in Lyon", replaces=(await stack.the_memory()).id)
    assert await told(stack) == ["Anna lives in Lyon"]
    assert await told(stack, place="acme") == ["Anna lives in Paris"]  # it was replaced in private


async def test_the_most_important_comes_first_and_of_equals_the_newest(stack: Stack) -> None:
    facts = {
        "Anna skis": 0.5,
        "Anna is allergic to nuts": 0.9,
        "Anna paints": 0.5,
        "Anna saw a red car": 0.49,
    }
    for content, importance in facts.items():
        await stack.remember(content, importance=importance)
        stack.clock.advance(hours=1)

    assert await told(stack) == ["Anna is allergic to nuts", "Anna paints", "Anna skis"]


def fact(content: str, importance: float = 0.6, subjects: tuple[str, ...] = (), id: str = "") -> Memory:
    return Memory(
        *(id or f"id of {content}", content, subjects, START, None, "conversation", "fact", importance, None),
        *(0, "anna", "dm", None),
    )


def relevant(facts: list[Memory], question: str, limit: int = 7) -> list[str]:
    return [memory.content for memory in get_relevant_memories(facts, question, limit)]


@pytest.mark.parametrize(
    ("said", "other", "question"),
    [
        ("Anna skis in Chamonix", "Anna paints", "Where can one ski?"),
        ("אנה גרה בליון", "אנה מציירת", "מה מזג האוויר בליון?"),
        ("我喜欢滑雪", "我住在里昂", "去哪里滑雪好？"),
        ("أنا أحب القهوة", "أنا أرسم", "أين القهوة؟"),
        ("Anna loves 🎿", "Anna loves 🎨", "🎿?"),
    ],
)
def test_what_shares_words_with_the_question_comes_first(said: str, other: str, question: str) -> None:
    assert relevant([fact(other), fact(said)], question)[0] == said
    assert relevant([fact(said), fact(other)], question)[0] == said


def test_words_and_tags_decide_and_then_importance() -> None:
    skiing = [fact("Anna skis Sundays", 0.5), fact("Anna skis Mondays", 0.7)]
    therapy = fact("She sees it every Monday", subjects=("therapist",))
    nuts = fact("Anna is allergic to nuts", 0.9)

    assert relevant(skiing, "When does one ski?") == ["Anna skis Mondays", "Anna skis Sundays"]
    assert relevant([therapy], "my therapist") == ["She sees it every Monday"]
    assert relevant([fact("Anna skis"), nuts], "What is the capital of Peru?") == ["Anna is allergic to nuts"]
    assert relevant([], "Where can one ski?") == []


def test_weighty_facts_come_first_whatever_the_question_and_leave_room_for_two_that_bear_on_it() -> None:
    weighty, skis = [f"Weighty {n}" for n in range(9)], [f"Anna skis {n}" for n in range(4)]
    facts = [*(fact(one, 0.8) for one in weighty), *(fact(one, 0.79) for one in skis)]

    assert relevant(facts, "?! …") == weighty[:7]
    assert relevant(facts, "When does one ski?") == weighty[:5] + skis[:2]
    assert relevant(facts[8:], "When does one ski?") == weighty[8:] + skis
