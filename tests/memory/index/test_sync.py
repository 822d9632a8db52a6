"""The index follows the log of changes, and searches read what it has not followed."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from sqlalchemy import func, select

from memory.audience import Audience
from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.facts.compare import content_key
from memory.forgetting.hiding import replace_messages
from memory.forgetting.purge import delete_messages
from memory.index import Point, Question, searching
from memory.index import sync as module
from memory.index.embedded.index import EmbeddedIndex
from memory.index.embedders.bundled import BundledEmbedder
from memory.sql import changes
from memory.sql.engine import Database
from memory.sql.memories.owner_links import link
from memory.sql.tables import vectors
from tests.memory.conftest import Stack, StackBuilder

ANNA = Audience.of("anna")


async def found_by_words(stack: Stack, words: str) -> set[str]:
    """Ids, straight from the index."""
    question = Question(ANNA.keys, stack.clock.now, text=words, limit=50)
    found = await stack.index.search(question)
    return {ranked.id for ranked in (*found.words, *found.window_words)}


async def fill(stack: Stack) -> None:
    await stack.remember("Anna has a cat")
    await stack.remember("Anna is ill", ttl="7d")
    await stack.receive("I have a cat")
    await stack.summarise("Anna told of her cat")


CAT = {"Anna has a cat", "I have a cat", "Anna told of her cat"}


async def test_what_is_written_is_found_at_once_and_followed_later(stack: Stack) -> None:
    await fill(stack)
    assert await stack.found("cat") >= CAT
    assert stack.recall.without_index is None
    await asyncio.wait_for(stack.indexing.wake(hurry=True), 60)
    assert await stack.indexing.due() == await stack.indexing.catch_up() == 0
    assert await stack.index.count() == await stack.indexing.rows() == 4


async def test_expired_replaced_and_deleted_facts_leave_the_index(stack: Stack) -> None:
    old = await stack.remember("Mickael broke his shoulder")
    expired = await stack.remember("Mickael is ill", ttl="1d")
    gone = await stack.remember("Anna has a cat")
    await stack.indexing.catch_up()
    stack.clock.advance(days=1)
    new = await stack.remember("Mickael broke his shoulder on 10 January 2026", replaces=old.id)
    [cat] = [memory for memory in await stack.memories() if memory.id == gone.id]
    await stack.delete(cat, "anna")
    await stack.expire()
    await stack.indexing.catch_up()
    assert await stack.index.present([str(one.id) for one in (old, expired, gone, new)]) == {new.id}


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


async def test_what_changes_meanwhile_is_followed_too(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    decision = await stack.remember("The office has moved to Lyon", "anna")

    put = stack.index.put

    async def and_then_ben_says_it_too(points: Sequence[Point]) -> None:
        monkeypatch.undo()
        await put(points)
        async with stack.database.write() as connection:
            key = content_key("The office has moved to Lyon")
            await link(connection, str(decision.id), ["user:ben"], key)

    monkeypatch.setattr(stack.index, "put", and_then_ben_says_it_too, raising=False)
    await stack.indexing.catch_up()
    await stack.indexing.catch_up()
    assert await stack.found("where is the office?", "ben") == {"The office has moved to Lyon"}


@pytest.mark.parametrize("part", ["index", "embedder"])
async def test_what_comes_while_a_part_is_away_is_found_and_followed_later(stack: Stack, part: str) -> None:
    await stack.indexing.catch_up()
    getattr(stack, part).away = True
    await fill(stack)
    with pytest.raises((IndexUnavailable, EmbedderUnavailable)):
        await stack.indexing.catch_up()
    await stack.indexing.try_to_catch_up()
    assert await stack.found("cat") == CAT
    assert stack.recall.without_index
    getattr(stack, part).away = False
    assert await stack.found("cat") >= CAT
    assert stack.recall.without_index is None
    assert await stack.indexing.due() == 0


async def test_an_index_that_is_new_was_emptied_or_is_behind_a_log_that_was_cut_is_filled_from_the_rows(
    database: Database,
    build_stack: StackBuilder,
    bundled: BundledEmbedder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stack = await build_stack(database, bundled)
    await fill(stack)
    assert await stack.found("cat") >= CAT
    await stack.index.close()
    shutil.rmtree(tmp_path / "index")
    later = await build_stack(database, bundled)
    assert await later.indexing.due() == 4
    assert await later.found("cat") >= CAT
    assert (await later.index.count(), await later.indexing.due()) == (4, 0)
    await later.index.wipe()
    told: list[int] = []
    assert await later.indexing.catch_up(told.append) == sum(told) == 4
    assert await later.indexing.catch_up(anew=True) == await later.index.count() == 4
    monkeypatch.setattr(changes, "KEPT", 1)
    await later.indexing.cut_log()
    assert await later.indexing.catch_up() == 0, "it has followed"
    await later.index.advance(await later.index.position(), changes.START)
    assert await later.indexing.catch_up() == await later.index.count() == 4, "the log before it was cut"


async def test_searches_read_the_newest_rows_where_a_fill_is_long_or_more_has_changed_than_they_read(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stack.remember("Anna has a cat")
    monkeypatch.setattr(module, "PATIENCE", 0)
    await stack.index.wipe()
    assert await stack.found("cat") == {"Anna has a cat"}
    assert stack.recall.without_index == module.BUILDING
    await stack.indexing.wake()
    assert await stack.found("cat") == {"Anna has a cat"}
    assert stack.recall.without_index is None
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    await fill(stack)
    await stack.indexing.stop()
    assert await stack.found("cat") == CAT


@pytest.mark.parametrize("purged", [True, False])
async def test_a_purge_does_not_wait_for_an_index_that_is_being_filled(
    database: Database, build_stack: StackBuilder, bundled: BundledEmbedder, purged: bool
) -> None:
    """What is deleted meanwhile is in no index, and has no vector, without a purge too."""
    slow = Slow(bundled, "slow")
    stack = await build_stack(database, slow)
    cat, dog = await stack.receive("I have a cat"), await stack.receive("I have a dog")
    await stack.indexing.stop()
    filling = asyncio.create_task(stack.indexing.catch_up(anew=True))
    await asyncio.wait_for(slow.asked.wait(), 60)
    assert await stack.index.present([cat, dog]) == {cat, dog}, "they are found by their words"
    async with database.write() as connection:
        await replace_messages(connection, [cat], "anna", stack.clock.now)
        await delete_messages(connection, [cat], stack.clock.now)
    if purged:
        await asyncio.wait_for(stack.indexing.purge(), 60)
        assert await stack.index.present([cat, dog]) == {dog}
        assert await found_by_words(stack, "cat") == set(), "nor by the window of its neighbour"
    slow.go_on.set()
    await filling
    assert await stack.index.present([cat, dog]) == {dog}
    assert await embedders_stored(database) == {"slow": 2}


class Slow:
    """An embedder that waits until it may go on."""

    def __init__(self, real: Any, name: str) -> None:
        self.name, self.real, self.asked, self.go_on = name, real, asyncio.Event(), asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> Any:
        self.asked.set()
        await self.go_on.wait()
        return await self.real.embed(texts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class Counting(Slow):
    """An embedder that notes what it embeds, and does not wait."""

    def __init__(self, real: Any, name: str) -> None:
        super().__init__(real, name)
        self.texts = list[str]()
        self.go_on.set()

    async def embed(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        return await super().embed(texts)


async def embedders_stored(database: Database) -> dict[str, int]:
    rows = await database.rows(select(vectors.c.embedder, func.count()).group_by(vectors.c.embedder))
    return {row[0]: row[1] for row in rows}


async def test_an_index_is_filled_from_the_stored_vectors_and_another_embedders_are_made_once(
    database: Database, build_stack: StackBuilder, bundled: BundledEmbedder, tmp_path: Path
) -> None:
    one, two = Counting(bundled, "one"), Counting(bundled, "two")
    stack = await build_stack(database, one)
    await fill(stack)
    await stack.indexing.catch_up()
    assert one.texts.count("Anna has a cat") == 1, "the fact's vector was stored with it"
    assert await embedders_stored(database) == {"one": 5}
    one.texts.clear()
    assert await stack.indexing.catch_up(anew=True) == 4
    assert (await stack.index.count(), one.texts) == (4, [])
    await stack.indexing.stop()
    await stack.index.close()

    later = await build_stack(database, two)
    assert await later.found("cat") >= CAT
    await later.indexing.catch_up()
    assert await embedders_stored(database) == {"two": 5}, "those of the other are deleted"
    assert two.texts.count("Anna has a cat") == 1
    found = await later.index.search(
        Question(ANNA.keys, later.clock.now, (await two.embed(["cat"]))[0], limit=9)
    )
    assert len(found.dense) == 4


async def test_words_are_there_before_the_vectors_of_another_embedder(
    database: Database, build_stack: StackBuilder, bundled: BundledEmbedder, tmp_path: Path
) -> None:
    stack = await build_stack(database, Counting(bundled, "one"))
    await fill(stack)
    stack.embedder.away = True
    with pytest.raises(EmbedderUnavailable):
        await stack.indexing.catch_up(anew=True)
    assert len(await found_by_words(stack, "cat")) == 3
    assert await stack.index.position() is None, "it is filled again"


async def test_three_processes_of_one_folder_find_at_once_what_another_wrote_or_forgot(
    database: Database, build_stack: StackBuilder, bundled: BundledEmbedder, tmp_path: Path
) -> None:
    indexes = [EmbeddedIndex(tmp_path / "index", bundled, database.number) for _ in range(3)]
    processes = [await build_stack(database, bundled, index) for index in indexes]
    for process in processes:
        await process.found("anything")
    assert [index.folder.name for index in indexes] == ["1", "2", "3"]
    await each_finds_what_another_wrote(processes)


async def each_finds_what_another_wrote(processes: Sequence[Stack]) -> None:
    for number, writer in enumerate(processes):
        fact = f"Anna has boat number {number}"
        await writer.remember(fact, subjects=(str(number),))
        await writer.receive(f"I painted barn {number}")
        for reader in processes:
            assert fact in await reader.found(f"boat {number}")
            assert f"I painted barn {number}" in await reader.found(f"barn {number}")
            assert reader.recall.without_index is None
    for number, forgetter in enumerate(processes):
        [boat] = [m for m in await forgetter.memories() if m.content.endswith(str(number))]
        await forgetter.delete(boat, "anna")
        for reader in processes:
            assert boat.content not in await reader.found(f"boat {number}")
    for process in processes:
        await process.indexing.catch_up()
        assert await process.index.count() == 3


async def test_a_decision_takes_the_index_as_it_is_where_somebody_has_just_asked_what_waits(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = AsyncMock(wraps=stack.indexing.waiting)
    monkeypatch.setattr(stack.indexing.searching, "_waiting", waiting)
    told = [await stack.remember(text) for text in ("Anna runs", "Runs, Anna?", "anna runs")]
    assert [decision.action for decision in told] == ["add", "add", "ignore"]
    assert waiting.await_count == 1
    monkeypatch.setattr(searching, "LATELY", 0)
    assert (await stack.remember("Anna RUNS!")).target_id == told[0].id
    assert waiting.await_count == 2
