"""Keeping the index in step with the database."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from memory.audience import Audience
from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.facts.compare import content_key
from memory.index import Point, Question
from memory.index.sync import catching_up
from memory.sql.memories import link
from memory.sql.tables import active_conversations

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from memory.index.embedders.bundled import BundledEmbedder
    from memory.sql.engine import Database
    from tests.memory.conftest import Stack, StackBuilder, WordsEmbedder

    Act = Callable[[], Awaitable[object]]

ANNA = Audience.of("anna")


async def in_index(stack: Stack, *ids: str | None) -> set[str]:
    return await stack.index.present([id for id in ids if id])


async def found_by_words(stack: Stack, words: str) -> set[str]:
    """Ids, straight from the index."""
    question = Question(ANNA.keys, stack.clock.now, text=words, limit=50)
    found = await stack.index.search(question)
    return {ranked.id for ranked in (*found.words, *found.window_words)}


def around_the_next_put(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, *, before: Act | None = None, after: Act | None = None
) -> None:
    """Somebody acts just before or just after the next points reach the index."""
    put = stack.index.put

    async def with_somebody_else(points: Sequence[Point]) -> None:
        if points:
            monkeypatch.undo()
        if points and before:
            await before()
        await put(points)
        if points and after:
            await after()

    monkeypatch.setattr(stack.index, "put", with_somebody_else, raising=False)


async def delete_the_memory(stack: Stack) -> None:
    await stack.forgetting.delete(await stack.the_memory(), "anna")


async def test_what_is_remembered_is_found_at_once(stack: Stack) -> None:
    await stack.indexing.catch_up()
    decision = await stack.remember("Anna has a cat")
    assert await in_index(stack, decision.id) == {decision.id}
    assert await stack.found("cat") == {"Anna has a cat"}


async def test_what_waits_is_put_once(stack: Stack) -> None:
    stack.index.away = True
    decision = await stack.remember("Anna has a cat")
    message = await stack.receive("I have a cat")
    stack.index.away = False
    assert await stack.indexing.due() == 2
    told: list[int] = []
    assert await stack.indexing.catch_up(told.append) == 2
    assert sum(told) == 2
    assert await in_index(stack, decision.id, message) == {decision.id, message}
    assert await stack.indexing.due() == 0
    assert await stack.indexing.catch_up() == 0


async def test_more_than_a_batch_is_put_batch_by_batch(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    stack.index.away = True
    for number in range(7):
        await stack.receive(f"message {number}")
        await stack.summarise(f"Anna paints boat {number}", conversation=str(number))
    for number in range(5):
        await stack.remember(f"Anna has {number} cats", subjects=(str(number),))
    stack.index.away = False
    monkeypatch.setattr("memory.index.sync.index_sync.BATCH", 3)
    told: list[int] = []
    assert await stack.indexing.catch_up(told.append) == 19
    assert told == [9, 8, 2]
    assert await stack.index.count() == 19
    assert await stack.indexing.due("") == 19


async def test_what_many_facts_have_shown_is_marked_on_the_way(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.index.sync.index_sync.BATCH", 8)
    for number in range(5):
        await stack.remember(f"Anna has {number} cats", subjects=(str(number),))
    assert await stack.indexing.due() < 5


async def test_expired_and_superseded_facts_are_not_put_and_are_taken_out(
    stack: Stack,
) -> None:
    old = await stack.remember("Mickael broke his shoulder")
    expired = await stack.remember("Mickael is ill", ttl="1d")
    stack.clock.move(days=1)
    new = await stack.remember("Mickael broke his shoulder on 10 January 2026")
    await stack.indexing.catch_up()
    assert await in_index(stack, old.id, expired.id, new.id) == {new.id}
    assert await stack.indexing.due() == 0


async def test_owners_of_a_fact_change_in_the_index_too(stack: Stack) -> None:
    await stack.remember("The office has moved to Lyon", "anna", "acme")
    await stack.remember("The office has moved to Lyon", "ben", "acme")
    assert await stack.found("where is the office?", "ben") == {"The office has moved to Lyon"}


async def test_a_window_is_drawn_again_when_a_neighbour_arrives(stack: Stack) -> None:
    question = await stack.receive("where shall we go on holiday?")
    await stack.indexing.catch_up()
    assert await found_by_words(stack, "Iceland") == set()
    answer = await stack.receive("to Iceland, I'd say")
    await stack.indexing.catch_up()
    assert await found_by_words(stack, "Iceland") == {question, answer}
    third = await stack.receive("lovely")
    far = [await stack.receive(f"something else {number}") for number in range(3)]
    await stack.indexing.catch_up()
    # Two messages on either side belong to the exchange.
    assert await found_by_words(stack, "Iceland") == {question, answer, third, far[0]}


async def test_a_window_shows_nothing_of_another_persons_private_messages(stack: Stack) -> None:
    await stack.receive("my PIN is 1234", "ben", conversation="session-1")
    await stack.receive("what is my PIN?", "anna", conversation="session-1")
    await stack.indexing.catch_up()
    assert await found_by_words(stack, "1234") == set()


async def test_what_changed_while_it_was_put_is_put_again(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.index.away = True
    decision = await stack.remember("The office has moved to Lyon", "anna")
    stack.index.away = False

    async def ben_says_it_too() -> None:
        async with stack.database.write() as connection:
            key = content_key("The office has moved to Lyon")
            await link(connection, str(decision.id), ["user:ben"], key)

    around_the_next_put(stack, monkeypatch, after=ben_says_it_too)
    await stack.indexing.catch_up()
    assert await stack.indexing.due() == 1
    await stack.indexing.catch_up()
    assert await stack.found("where is the office?", "ben") == {"The office has moved to Lyon"}


async def test_what_is_deleted_while_it_is_put_leaves_no_point(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.index.away = True
    decision = await stack.remember("Anna has a cat")
    stack.index.away = False
    around_the_next_put(stack, monkeypatch, before=lambda: delete_the_memory(stack))
    await stack.indexing.catch_up()
    assert await in_index(stack, decision.id) == set()


@pytest.mark.parametrize("part", ["index", "embedder"])
async def test_what_comes_while_a_part_is_away_is_caught_up_when_it_is_back(stack: Stack, part: str) -> None:
    await stack.indexing.catch_up()
    getattr(stack, part).away = True
    await stack.remember("Anna has a cat")
    await stack.receive("I have a cat")
    await stack.summarise("Anna told of her cat")
    with pytest.raises((IndexUnavailable, EmbedderUnavailable)):
        await stack.indexing.catch_up()
    await stack.indexing.try_to_catch_up()
    getattr(stack, part).away = False
    assert await stack.found("cat") == {"Anna has a cat", "I have a cat", "Anna told of her cat"}
    assert await stack.indexing.due() == 0


async def test_what_an_earlier_process_left_is_found(
    stack: Stack, build_stack: StackBuilder, bundled: BundledEmbedder
) -> None:
    stack.index.away = True
    await stack.remember("Anna has a cat")
    await stack.summarise("Anna told of her cat")
    stack.index.away = False
    later = await build_stack(stack.database, bundled, stack.index)
    assert await later.found("cat") == {"Anna has a cat", "Anna told of her cat"}


async def test_what_is_deleted_just_before_it_is_shown_leaves_no_point(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stack.indexing.catch_up()
    around_the_next_put(stack, monkeypatch, before=lambda: delete_the_memory(stack))
    decision = await stack.remember("Anna has a cat")
    assert await in_index(stack, decision.id) == {decision.id}
    await stack.indexing.catch_up()
    assert await in_index(stack, decision.id) == set()


# Summaries of conversations.


async def test_a_summary_is_put_as_it_is_now(stack: Stack) -> None:
    id = await stack.summarise("Anna paints her boat")
    assert await stack.indexing.due() == 1
    assert await stack.indexing.catch_up() == 1
    assert await found_by_words(stack, "boat") == {id}
    await stack.summarise("Anna paints her fence")
    assert await stack.indexing.catch_up() == 1
    assert await found_by_words(stack, "boat") == set()
    assert await found_by_words(stack, "fence") == {id}
    assert await stack.indexing.due() == await stack.indexing.catch_up() == 0
    await stack.summarise("  ")
    assert await stack.indexing.catch_up() == 1
    assert await in_index(stack, id) == set()


async def test_a_summary_that_changes_while_it_is_put_is_put_again(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stack.summarise("Anna paints her boat")
    around_the_next_put(stack, monkeypatch, after=lambda: stack.summarise("Anna paints her fence"))
    await stack.indexing.catch_up()
    assert await stack.indexing.due() == 1
    await stack.indexing.catch_up()
    assert len(await found_by_words(stack, "fence")) == 1


async def test_a_summary_that_is_deleted_while_it_is_put_leaves_no_point(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await stack.summarise("Anna paints her boat")

    async def delete_it() -> None:
        async with stack.database.write() as connection:
            await connection.execute(sa.delete(active_conversations))

    around_the_next_put(stack, monkeypatch, before=delete_it)
    await stack.indexing.catch_up()
    assert await in_index(stack, id) == set()


async def test_many_catching_up_at_once_do_it_once(stack: Stack) -> None:
    stack.index.away = True
    for number in range(5):
        await stack.remember(f"Anna has {number} cats", subjects=(str(number),))
    stack.index.away = False
    assert sorted(await asyncio.gather(*(stack.indexing.catch_up() for _ in range(4)))) == [0, 0, 0, 5]


# An index that is gone, or made for another embedder.


async def fill(stack: Stack) -> None:
    await stack.remember("Anna has a cat")
    await stack.remember("Anna is ill", ttl="7d")
    await stack.receive("I have a cat")
    await stack.summarise("Anna told of her cat")
    await stack.indexing.catch_up()


async def test_a_deleted_index_is_rebuilt_from_the_database(
    database: Database, build_stack: StackBuilder, bundled: BundledEmbedder, tmp_path: Path
) -> None:
    stack = await build_stack(database, bundled)
    await fill(stack)
    await stack.index.close()
    shutil.rmtree(tmp_path / "index")
    later = await build_stack(database, bundled)
    assert await later.indexing.due() == 4
    assert await later.found("cat") >= {"Anna has a cat", "I have a cat", "Anna told of her cat"}
    assert await later.index.count() == 4
    assert await later.indexing.due() == 0


async def test_another_embedder_has_the_index_rebuilt(
    database: Database, build_stack: StackBuilder, bundled: BundledEmbedder, words_embedder: WordsEmbedder
) -> None:
    stack = await build_stack(database, bundled)
    await fill(stack)
    await stack.index.close()
    later = await build_stack(database, words_embedder)
    assert await later.indexing.due() == 4
    assert await later.found("cat") >= {"Anna has a cat", "I have a cat", "Anna told of her cat"}
    await later.index.close()
    back = await build_stack(database, bundled)
    assert await back.indexing.catch_up() == 4
    await back.index.wipe()
    assert await back.indexing.catch_up() == await back.index.count() == 4


async def test_an_older_index_beside_a_newer_database_is_noticed_and_rebuilt(
    stack: Stack, build_stack: StackBuilder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def started() -> Stack:
        one = await build_stack(stack.database, stack.embedder.real)
        await one.indexing.begin()
        return one

    first = await started()
    await first.remember("Anna has a cat")
    await first.indexing.catch_up()
    await first.index.close()
    shutil.copytree(tmp_path / "index", tmp_path / "older")
    second = await started()
    await second.remember("Anna plays chess")
    await second.indexing.catch_up()
    assert (await second.indexing.compare()).fits
    await second.index.close()
    shutil.rmtree(tmp_path / "index")
    shutil.move(tmp_path / "older", tmp_path / "index")
    third = await started()
    assert "does not fit the database (1 points for 2 rows" in caplog.text
    assert await third.found("chess") == {"Anna plays chess"}
    assert (await third.indexing.compare()).fits
    await third.index.close()


async def test_points_that_show_something_else_are_noticed_once_a_day_and_rebuilt(stack: Stack) -> None:
    decision = await stack.remember("Anna has a cat")
    await stack.indexing.catch_up()
    [memory] = await stack.memories()
    [vector] = await stack.embedder.embed(["Ben has a dog"])
    owners = frozenset({"user:ben"})
    await stack.index.put(
        [Point(str(decision.id), "memory", owners, "Ben has a dog", vector, memory.created_at)]
    )
    found = await stack.indexing.compare()
    assert (found.fits, found.differing) == (False, 1)
    await stack.indexing.check()
    assert (await stack.indexing.compare()).fits
    assert await stack.found("cat") == {"Anna has a cat"}


async def test_what_waits_to_leave_the_index_is_no_misfit(stack: Stack) -> None:
    await stack.remember("Anna has a cat")
    await stack.indexing.catch_up()
    stack.index.away = True
    await delete_the_memory(stack)
    stack.index.away = False
    assert (await stack.indexing.compare()).fits


async def test_a_long_rebuild_goes_on_in_the_background_while_searches_read_the_newest_rows(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stack.remember("Anna has a cat")
    monkeypatch.setattr(catching_up, "PATIENCE", 0)
    await stack.index.wipe()
    stack.indexing.begun = False  # as at a start
    assert await stack.found("cat") == {"Anna has a cat"}
    assert stack.recall.without_index == catching_up.BUILDING
    await stack.indexing.catch_up()
    await stack.indexing.try_to_catch_up()
    assert await stack.found("cat") == {"Anna has a cat"}
    assert stack.recall.without_index is None
