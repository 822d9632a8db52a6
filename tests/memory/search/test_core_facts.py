"""The facts that are in every prompt: important, relevant and readable."""

from datetime import UTC, datetime

import pytest

from memory.audience import Audience, Place
from memory.records import Memory
from memory.search.core_facts import core_facts, get_relevant_memories
from tests.memory.conftest import Stack, on_both

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


async def of_anna(
    stack: Stack, place: str | None = "acme", named: str = "Anna", user: str = "anna"
) -> list[str]:
    """The facts that a prompt shows to Anna there, where she writes under this name."""
    audience = Audience.of(user, Place.parse(place))
    facts = await core_facts(stack.store, user, audience, stack.clock.now, named=named)
    found = get_relevant_memories(facts, "And what of climbing?")
    return [memory.content for memory in found]


async def tell(
    stack: Stack, content: str, *subjects: str, place: str | None = "acme", user: str = "bob"
) -> str:
    """What this person said of others; its id."""
    line = await stack.receive(content, user, place, author=user.title())
    told = await stack.remember(content, user=user, place=place, subjects=subjects, message_id=line)
    return str(told.id)


async def test_what_another_told_of_the_person_in_the_place_is_shown_as_told_by_them(stack: Stack) -> None:
    await stack.remember("Anna fell while climbing", place="acme")
    await tell(stack, "Anna loves climbing", "anna", "climbing")
    await tell(stack, "Annabel hates climbing", "annabel")
    await tell(stack, "Cleo is climbing", "cleo")

    shown = ["Anna fell while climbing", "Bob said: “Anna loves climbing”"]
    for place in ("acme", "acme/general"):
        assert sorted(await of_anna(stack, place)) == shown
    assert await told(stack, place="acme") == shown[:1]
    bobs = ["Anna loves climbing", "Annabel hates climbing", "Cleo is climbing"]
    assert sorted(await of_anna(stack, user="bob", named="Bob")) == bobs


@on_both
async def test_it_is_shown_nowhere_else_and_never_where_it_was_told_in_private(stack: Stack) -> None:
    await tell(stack, "Anna loves climbing", "anna", place="acme/general")
    await tell(stack, "Anna is bad at climbing", "anna", place=None)

    for place in (None, "acme", "acme/random", "other"):
        assert await of_anna(stack, place) == []
    assert await of_anna(stack, "acme/general") == ["Bob said: “Anna loves climbing”"]


@on_both
@pytest.mark.parametrize("name", ["Zoë", "Аня", "100%_/\\ me", 'the "one"'])
async def test_any_name_is_found_as_a_whole(stack: Stack, name: str) -> None:
    await tell(stack, f"{name} loves climbing", name)
    await tell(stack, "somebody else loves climbing", f"{name}s", name[:-1])

    assert await of_anna(stack, named=name.upper()) == [f"Bob said: “{name} loves climbing”"]


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
