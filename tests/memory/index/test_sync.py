"""Keeping the index in step with the record."""

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
from memory.sql.tables import active_conversations

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from memory.index.embedders.bundled import BundledEmbedder
    from memory.sql.engine import Database
    from tests.memory.conftest import House, HouseBuilder, WordsEmbedder

ANNA = Audience.of("anna")


async def in_index(house: House, *ids: str | None) -> set[str]:
    return await house.index.present([id for id in ids if id])


async def found_by_words(house: House, words: str) -> set[str]:
    """Ids, straight from the index."""
    question = Question(ANNA.keys, house.clock.now, text=words, limit=50)
    found = await house.index.search(question)
    return {ranked.id for ranked in (*found.words, *found.window_words)}


async def test_what_is_remembered_is_found_at_once(house: House) -> None:
    await house.indexing.catch_up()
    decision = await house.remember("Anna has a cat")
    assert await in_index(house, decision.id) == {decision.id}
    assert await house.found("cat") == {"Anna has a cat"}


async def test_what_waits_is_put_once(house: House) -> None:
    house.index.away = True
    decision = await house.remember("Anna has a cat")
    message = await house.receive("I have a cat")
    house.index.away = False
    assert await house.indexing.due() == 2
    told: list[int] = []
    assert await house.indexing.catch_up(told.append) == 2
    assert sum(told) == 2
    assert await in_index(house, decision.id, message) == {decision.id, message}
    assert await house.indexing.due() == 0
    assert await house.indexing.catch_up() == 0


async def test_more_than_a_batch_is_put_batch_by_batch(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.index.away = True
    for number in range(7):
        await house.receive(f"message {number}")
    for number in range(5):
        await house.remember(f"Anna has {number} cats", subjects=(str(number),))
    house.index.away = False
    monkeypatch.setattr("memory.index.sync.BATCH", 3)
    told: list[int] = []
    assert await house.indexing.catch_up(told.append) == 12
    assert len(told) >= 3
    assert await house.index.count() == 12


async def test_what_many_facts_have_shown_is_marked_on_the_way(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.index.sync.BATCH", 8)
    for number in range(5):
        await house.remember(f"Anna has {number} cats", subjects=(str(number),))
    assert await house.indexing.due() < 5


async def test_expired_and_superseded_facts_are_not_put_and_are_taken_out(
    house: House,
) -> None:
    old = await house.remember("Mickael broke his shoulder")
    expired = await house.remember("Mickael is ill", ttl="1d")
    house.clock.move(days=1)
    new = await house.remember("Mickael broke his shoulder on 10 January 2026")
    await house.indexing.catch_up()
    assert await in_index(house, old.id, expired.id, new.id) == {new.id}
    assert await house.indexing.due() == 0


async def test_owners_of_a_fact_change_in_the_index_too(house: House) -> None:
    await house.remember("The office has moved to Lyon", "anna", "acme")
    await house.remember("The office has moved to Lyon", "ben", "acme")
    assert await house.found("where is the office?", "ben") == {"The office has moved to Lyon"}


async def test_a_window_is_drawn_again_when_a_neighbour_arrives(house: House) -> None:
    question = await house.receive("where shall we go on holiday?")
    await house.indexing.catch_up()
    assert await found_by_words(house, "Iceland") == set()
    answer = await house.receive("to Iceland, I'd say")
    await house.indexing.catch_up()
    assert await found_by_words(house, "Iceland") == {question, answer}
    third = await house.receive("lovely")
    far = [await house.receive(f"something else {number}") for number in range(3)]
    await house.indexing.catch_up()
    # Two messages on either side belong to the exchange.
    assert await found_by_words(house, "Iceland") == {question, answer, third, far[0]}


async def test_a_window_shows_nothing_of_another_persons_private_messages(house: House) -> None:
    await house.receive("my PIN is 1234", "ben", conversation="session-1")
    await house.receive("what is my PIN?", "anna", conversation="session-1")
    await house.indexing.catch_up()
    assert await found_by_words(house, "1234") == set()


async def test_what_changed_while_it_was_put_is_put_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.index.away = True
    decision = await house.remember("The office has moved to Lyon", "anna")
    house.index.away = False
    put = house.index.put

    async def meanwhile_ben_says_it_too(points: Sequence[Point]) -> None:
        await put(points)
        async with house.database.write() as connection:
            key = content_key("The office has moved to Lyon")
            await house.store.link(connection, str(decision.id), ["user:ben"], key)
        monkeypatch.undo()

    monkeypatch.setattr(house.index, "put", meanwhile_ben_says_it_too, raising=False)
    await house.indexing.catch_up()
    assert await house.indexing.due() == 1
    await house.indexing.catch_up()
    assert await house.found("where is the office?", "ben") == {"The office has moved to Lyon"}


async def test_what_is_deleted_while_it_is_put_leaves_no_point(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.index.away = True
    decision = await house.remember("Anna has a cat")
    house.index.away = False
    put = house.index.put

    async def meanwhile_it_is_deleted(points: Sequence[Point]) -> None:
        monkeypatch.undo()
        await house.removal.delete(await house.the_memory(), "anna")
        await put(points)

    monkeypatch.setattr(house.index, "put", meanwhile_it_is_deleted, raising=False)
    await house.indexing.catch_up()
    assert await in_index(house, decision.id) == set()


@pytest.mark.parametrize("part", ["index", "embedder"])
async def test_what_comes_while_a_part_is_away_is_caught_up_when_it_is_back(house: House, part: str) -> None:
    await house.indexing.catch_up()
    getattr(house, part).away = True
    await house.remember("Anna has a cat")
    await house.receive("I have a cat")
    with pytest.raises((IndexUnavailable, EmbedderUnavailable)):
        await house.indexing.catch_up()
    await house.indexing.try_to_catch_up()
    getattr(house, part).away = False
    assert await house.found("cat") == {"Anna has a cat", "I have a cat"}
    assert await house.indexing.due() == 0


async def test_what_an_earlier_process_left_is_found(
    house: House, build_house: HouseBuilder, bundled: BundledEmbedder
) -> None:
    house.index.away = True
    await house.remember("Anna has a cat")
    house.index.away = False
    later = await build_house(house.database, bundled, house.index)
    assert await later.found("cat") == {"Anna has a cat"}


# Summaries of conversations.


async def test_a_summary_is_put_as_it_is_now(house: House) -> None:
    id = await house.summarise("Anna paints her boat")
    assert await house.indexing.due() == 1
    assert await house.indexing.catch_up() == 1
    assert await found_by_words(house, "boat") == {id}
    await house.summarise("Anna paints her fence")
    assert await house.indexing.catch_up() == 1
    assert await found_by_words(house, "boat") == set()
    assert await found_by_words(house, "fence") == {id}
    assert await house.indexing.due() == await house.indexing.catch_up() == 0


async def test_an_empty_summary_is_taken_out(house: House) -> None:
    id = await house.summarise("Anna paints her boat")
    await house.indexing.catch_up()
    await house.summarise("  ")
    assert await house.indexing.catch_up() == 1
    assert await in_index(house, id) == set()
    assert await house.indexing.due() == 0


async def test_more_summaries_than_a_batch_are_put_batch_by_batch(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.index.sync.BATCH", 3)
    for number in range(7):
        await house.summarise(f"Anna paints boat {number}", conversation=str(number))
    told: list[int] = []
    assert await house.indexing.catch_up(told.append) == 7
    assert told == [3, 3, 1]
    assert await house.index.count() == 7


async def test_a_summary_that_changes_while_it_is_put_is_put_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.summarise("Anna paints her boat")
    put = house.index.put

    async def meanwhile_it_changes(points: Sequence[Point]) -> None:
        await put(points)
        if points:
            monkeypatch.undo()
            await house.summarise("Anna paints her fence")

    monkeypatch.setattr(house.index, "put", meanwhile_it_changes, raising=False)
    await house.indexing.catch_up()
    assert await house.indexing.due() == 1
    await house.indexing.catch_up()
    assert len(await found_by_words(house, "fence")) == 1


async def test_a_summary_that_is_deleted_while_it_is_put_leaves_no_point(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await house.summarise("Anna paints her boat")
    put = house.index.put

    async def meanwhile_it_is_deleted(points: Sequence[Point]) -> None:
        async with house.database.write() as connection:
            await connection.execute(sa.delete(active_conversations))
        await put(points)

    monkeypatch.setattr(house.index, "put", meanwhile_it_is_deleted, raising=False)
    await house.indexing.catch_up()
    assert await in_index(house, id) == set()


@pytest.mark.parametrize("part", ["index", "embedder"])
async def test_a_summary_made_while_a_part_is_away_is_caught_up_when_it_is_back(
    house: House, part: str
) -> None:
    getattr(house, part).away = True
    await house.summarise("Anna paints her boat")
    await house.indexing.try_to_catch_up()
    getattr(house, part).away = False
    assert await house.indexing.due() == 1
    assert await house.found("boat") == {"Anna paints her boat"}


async def test_a_summary_that_an_earlier_process_kept_and_did_not_index_is_found(
    house: House, build_house: HouseBuilder, bundled: BundledEmbedder
) -> None:
    await house.indexing.catch_up()
    await house.summarise("Anna paints her boat")
    later = await build_house(house.database, bundled, house.index)
    assert await later.found("boat") == {"Anna paints her boat"}


async def test_many_catching_up_at_once_do_it_once(house: House) -> None:
    house.index.away = True
    for number in range(5):
        await house.remember(f"Anna has {number} cats", subjects=(str(number),))
    house.index.away = False
    assert sorted(await asyncio.gather(*(house.indexing.catch_up() for _ in range(4)))) == [0, 0, 0, 5]


# An index that is gone, or made for another embedder.


async def fill(house: House) -> None:
    await house.remember("Anna has a cat")
    await house.remember("Anna is ill", ttl="7d")
    await house.receive("I have a cat")
    await house.summarise("Anna told of her cat")
    await house.indexing.catch_up()


async def test_a_deleted_index_is_made_again_from_the_record(
    database: Database, build_house: HouseBuilder, bundled: BundledEmbedder, tmp_path: Path
) -> None:
    house = await build_house(database, bundled)
    await fill(house)
    await house.index.close()
    shutil.rmtree(tmp_path / "index")
    later = await build_house(database, bundled)
    assert await later.indexing.due() == 4
    assert await later.found("cat") >= {"Anna has a cat", "I have a cat", "Anna told of her cat"}
    assert await later.index.count() == 4
    assert await later.indexing.due() == 0


async def test_another_embedder_has_the_index_made_again(
    database: Database, build_house: HouseBuilder, bundled: BundledEmbedder, words_embedder: WordsEmbedder
) -> None:
    house = await build_house(database, bundled)
    await fill(house)
    await house.index.close()
    later = await build_house(database, words_embedder)
    assert await later.indexing.due() == 4
    assert await later.found("cat") >= {"Anna has a cat", "I have a cat", "Anna told of her cat"}
    await later.index.close()
    back = await build_house(database, bundled)
    assert await back.indexing.catch_up() == 4


async def test_a_wiped_index_is_filled_again(house: House) -> None:
    await fill(house)
    await house.index.wipe()
    assert await house.indexing.catch_up() == 4
    assert await house.index.count() == 4
