"""Searching what was said and learned, in SQL and through the index."""

from datetime import timedelta

import pytest

from memory.audience import GLOBAL, Audience
from memory.errors import NotFound
from memory.facts.compare import content_key
from memory.index.rows import Rows
from memory.sql.memories.owner_links import link
from tests.memory.conftest import Stack

ANNA = Audience.of("anna")


async def everybody_knows(stack: Stack, content: str) -> None:
    """A fact of everybody's, as an operator adds it."""
    decision = await stack.remember(content, "operator")
    async with stack.database.write() as connection:
        await link(connection, str(decision.id), [GLOBAL], content_key(content), stack.clock.now)
    await stack.indexing.catch_up()


async def test_facts_and_messages_are_found_by_meaning_and_by_words(stack: Stack) -> None:
    message = await stack.receive("I broke my shoulder on the ice rink", "mickael")
    fact = await stack.remember("Mickael fractured his shoulder", "mickael", message_id=message)
    for other in ("Mickael has a cat called Minka", "Mickael works as a baker"):
        await stack.remember(other, "mickael")
    hits = await stack.search("shoulder injury", "mickael")
    assert {(hit.kind, hit.id) for hit in hits[:2]} == {("memory", fact.id), ("message", message)}
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    by_kind = {hit.kind: hit for hit in hits[:2]}
    assert by_kind["message"].author == "mickael"
    assert by_kind["message"].message_id == by_kind["memory"].message_id == message
    assert by_kind["memory"].memory == await stack.store.get(
        str(fact.id), Audience.of("mickael"), stack.clock.now
    )


async def test_a_fact_is_found_by_the_name_of_who_told_it_and_by_their_id(stack: Stack) -> None:
    message = await stack.receive("I keep bees", "discord:7", "acme", author="Ben")
    await stack.remember("Keeps bees", "discord:7", "acme", message_id=message)
    await stack.remember("Keeps bees and a hen", "ana", "acme")
    for author in ("Ben", "discord:7"):
        hits = await stack.search("bees", "ana", "acme", author=author)
        assert "Keeps bees" in [hit.content for hit in hits], author
        assert "Keeps bees and a hen" not in [hit.content for hit in hits], author


async def test_nothing_is_found_without_a_limit_or_a_reader(stack: Stack) -> None:
    await everybody_knows(stack, "Cats have nine lives")
    nobody = Audience.of(None)
    for question in ("", "cat"):
        assert await stack.search(question, limit=0) == []
    assert await stack.recall.search("cat", nobody) == await stack.recall.recent(nobody, 10) == []


async def test_subjects_keep_to_the_facts_that_bear_one_of_them(stack: Stack) -> None:
    await stack.remember("Anna has a cat", subjects=("anna", "pets"))
    await stack.remember("Anna has a car", subjects=("anna", "things"))
    await stack.receive("Anna has a cat")
    hits = await stack.search("what does Anna have?", subjects=[" Pets ", "plants"])
    assert [hit.content for hit in hits] == ["Anna has a cat"]


async def test_what_is_found_is_noted_once_however_often(stack: Stack) -> None:
    await stack.remember("Anna has a cat")
    await stack.receive("I have a cat")
    for _ in range(2):
        await stack.search("cat")
    await stack.recall.recent(Audience.of("anna"), 5)
    stack.clock.advance(hours=1)
    await stack.recall.note_uses()
    await stack.recall.note_uses()
    memory = await stack.the_memory()
    assert (memory.uses, memory.last_accessed_at) == (1, stack.clock.now)
    assert await stack.recall.memory(memory.id[:8], Audience.of("anna")) == memory
    with pytest.raises(NotFound):
        await stack.recall.memory(memory.id, Audience.of("ben"))


async def test_who_is_new_also_gets_what_everybody_knows(stack: Stack) -> None:
    await everybody_knows(stack, "The cafeteria closes at two")
    anna = Audience.of("anna")
    for number in range(5):
        recent = [hit.content for hit in await stack.recall.recent(anna, 10)]
        assert "The cafeteria closes at two" in recent
        await stack.remember(f"Anna has {number} cats and {number} dogs", subjects=(str(number),))
    recent = [hit.content for hit in await stack.recall.recent(anna, 10)]
    assert len(recent) == 5
    assert "The cafeteria closes at two" not in recent
    assert "The cafeteria closes at two" in await stack.found("when does the cafeteria close?")


async def test_either_name_finds_what_is_known_of_both(stack: Stack) -> None:
    await stack.remember("dev is also called Mickael")
    await stack.remember("Mickael broke his shoulder")
    await stack.remember("dev has a cat")
    assert await stack.found("what happened to dev's shoulder?") >= {"Mickael broke his shoulder"}
    assert await stack.found("does Mickael have a cat?") >= {"dev has a cat"}
    assert (await stack.recall.aliases(Audience.of("anna"))).other_names("dev") == ("Mickael",)
    assert (await stack.recall.aliases(Audience.of("ben"))).other_names("dev") == ()


async def test_a_name_finds_what_is_said_of_somebody_before_their_small_talk(stack: Stack) -> None:
    for text in ("haha, nice one!", "ok go ahead without me then", "see you", "Evan here"):
        await stack.receive(text, "evan", "acme")
    told = await stack.receive("Evan goes kayaking on the Loire with his brother", "sam", "acme")
    await stack.receive("Thanks for the ride, Evan!", "sam", "acme")
    hits = await stack.search("Where does Evan go kayaking?", "sam", "acme")
    assert hits[0].id == told


async def test_without_a_question_what_was_said_last_is_listed(stack: Stack) -> None:
    old = await stack.receive("my cat is ill", sent_at=stack.clock.now - timedelta(days=30))
    message = await stack.receive("I broke my shoulder")
    fact = await stack.remember("Anna broke her shoulder", message_id=message, subjects=["anna"])
    stack.embedder.away = True  # it does not take it
    assert [hit.id for hit in await stack.search("")] == [fact.id, old]
    assert [hit.id for hit in await stack.search(" ", exclude=[str(fact.id)])] == [message, old]
    assert [hit.id for hit in await stack.search("", subjects=["anna"])] == [fact.id]
    assert await stack.search("", subjects=["ben"]) == []
    assert await stack.search("", "ben") == []


@pytest.mark.parametrize("name", ["Will", "April", "May", "June"])
async def test_a_friend_who_is_called_like_a_common_word_is_found(stack: Stack, name: str) -> None:
    await stack.receive("The dentist has moved to the harbour", "ben", "acme", author="Ben")
    said = await stack.receive("I sold the red canoe", name.lower(), "acme", author=name)
    fact = await stack.remember(f"{name} plays the violin", "ben", "acme", subjects=[name.lower()])
    assert (await stack.search(f"what did {name} say", "ben", "acme"))[0].id in (said, fact.id)
    assert (await stack.search(f"what does {name} play?", "ben", "acme"))[0].id == fact.id
    assert (await stack.search(f"who is {name}?", "ben", "acme"))[0].id == fact.id


async def test_facts_are_found_among_more_messages_than_a_search_holds(stack: Stack) -> None:
    fact = await stack.remember("Anna's cat is called Minka")
    for number in range(60):
        await stack.receive(f"cat cat cat number {number}", sent_at=stack.clock.now - timedelta(days=number))
    await stack.indexing.catch_up()
    hits = await stack.search("what is the cat called in November?", limit=60)
    assert fact.id in {hit.id for hit in hits}


async def test_a_summary_is_found_by_meaning_and_by_words(stack: Stack) -> None:
    id = await stack.summarise("Anna will paint the boat before May; she decided on blue.")
    await stack.remember("Anna works as a baker")
    for question in ("which colour was the vessel to get?", "blue"):
        hit = next(hit for hit in await stack.search(question) if hit.kind == "summary")
        assert (hit.id, hit.content) == (id, "Anna will paint the boat before May; she decided on blue.")
        assert (hit.created_at, hit.message_id, hit.author, hit.memory) == (stack.clock.now, None, None, None)
        assert 0.0 < hit.score <= 1.0


async def test_without_a_question_the_newest_summaries_come_first_or_those_of_a_time(stack: Stack) -> None:
    await stack.receive("my cat is ill")
    await stack.summarise("They chose a name for the cat.", conversation="oldest")
    stack.clock.advance(days=1)
    older = await stack.summarise("They planned a holiday.", conversation="older")
    stack.clock.advance(days=1)
    newest = await stack.summarise("They paint the boat.")
    message = await stack.receive("we paint the boat")
    await stack.summarise("Ben's secret.", "ben")
    stack.embedder.away = True  # it does not take it
    hits = await stack.search("")
    assert [hit.id for hit in hits[:3]] == [newest, older, message]
    assert [hit.kind for hit in hits[:3]] == ["summary", "summary", "message"]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert [hit.id for hit in await stack.search("", limit=1)] == [newest]
    [first, *_] = await stack.search("", exclude=[newest])
    assert first.id == older
    only = await stack.search("", kinds=frozenset({"memory", "message"}))
    assert [hit.content for hit in only] == ["we paint the boat", "my cat is ill"]
    then = await stack.search("", until=stack.clock.now - timedelta(days=1, hours=2))
    assert [hit.content for hit in then] == ["They chose a name for the cat.", "my cat is ill"]


async def test_what_the_index_shows_to_others_is_held_back_by_sql(stack: Stack) -> None:
    await stack.remember("Anna's PIN is 1234", "anna")
    secret = await stack.the_memory("anna")
    stack.let_the_index_lie([secret])
    for user, place in (("ben", None), ("ben", "acme"), ("anna", "acme")):
        assert await stack.search("What is Anna's PIN?", user, place) == []
    assert await stack.found("What is Anna's PIN?", "anna") == {"Anna's PIN is 1234"}


async def test_a_search_needs_no_embedder(stack: Stack) -> None:
    await stack.remember("Anna has a cat")
    assert await stack.found("cat") == {"Anna has a cat"}
    stack.embedder.away = True
    await stack.remember("Anna has a parrot")
    assert await stack.found("cat") == {"Anna has a cat"}
    stack.embedder.away = False
    assert await stack.found("parrot") >= {"Anna has a parrot"}


async def test_a_question_about_nothing_known_brings_nothing(stack: Stack) -> None:
    for fact in (
        "bought a small sailing boat",
        "painted the hull blue",
        "sails every Sunday",
        "lost an anchor",
    ):
        await stack.remember(f"Anna {fact}")
    assert await stack.search("tax return") == []
    assert await stack.search("sailing")


async def test_a_message_is_near_in_meaning_to_what_it_says_and_not_to_its_code(stack: Stack) -> None:
    said = await stack.receive("My budget is tight.\n```js\nconst items = all.map((one) => one.price);\n```")
    [index_row] = await Rows(stack.database).shown({"message": [said]}, stack.clock.now)
    assert (index_row.text, "const items" in index_row.point.text) == ("My budget is tight.", True)


@pytest.mark.parametrize(
    ("question", "tag"),
    [
        ("what did will say", "will"),
        ("What did Will say?", "will"),
        ("surnom d'Ana", "ana"),
        ("Zoë's plans", "zoë"),
        ("anything in New York?", "new york"),
        ("my sister-in-law", "sister-in-law"),
    ],
)
async def test_a_fact_whose_tag_stands_in_the_question_comes_first(
    stack: Stack, question: str, tag: str
) -> None:
    fact = await stack.remember("They call him Bibi, which he likes", subjects=(tag,))
    for n in range(12):
        await stack.remember(f"The garden has {n} trees and {n + 1} hens", subjects=("garden",))
        await stack.receive(f"My {n} trees are in bloom")
    assert (await stack.search(question))[0].id == fact.id


async def test_what_is_left_out_was_ranked_before(stack: Stack) -> None:
    shown = await stack.remember("Anna's cat is called Minka")
    await stack.remember("Anna has a garden")
    found = await stack.recall.look("what is Anna's cat called?", ANNA, exclude={str(shown.id)})
    assert {hit.id for hit in found.hits}.isdisjoint({shown.id})
    assert all(hit.score < 0.5 * found.best for hit in found.hits)


async def test_the_message_that_asks_is_not_what_others_are_measured_by(stack: Stack) -> None:
    fact = await stack.remember("Anna's cat is called Minka")
    before = await stack.receive("Hello again")
    asking = await stack.receive("What is my cat called again?")
    found = await stack.recall.look("cat called", ANNA, exclude={before, asking}, asking=asking)
    assert found.best == found.hits[0].score
    assert found.hits[0].id == fact.id


@pytest.mark.parametrize(
    "question", ["What is the capital of Peru?", "How does photosynthesis work?", "Quelle est la capitale ?"]
)
async def test_a_question_that_no_memory_bears_on_finds_nothing(stack: Stack, question: str) -> None:
    for n in range(20):
        await stack.remember(f"Anna's hen number {n} lays {n} eggs a week", subjects=("hens",))
        await stack.receive(f"I fix cars on day {n}, and what I mend there works well")
    assert await stack.found(question) == set()
    assert await stack.found("how many eggs does hen number 7 lay?")
