"""User contexts as they are kept: who may know what was told where, and whose word holds."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from memory.audience import PRIVATE, Place
from memory.facts.derived import entry_id
from memory.people.profile import Preferences, Profile
from memory.people.profile_entries import Entry, context_of, entry_for
from memory.people.profile_store import ProfileStore
from memory.sql import hidden as entries
from memory.sql.engine import Database
from memory.sql.tables import rests_on

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ACME = Place.parse("acme")
GENERAL = Place.parse("acme/general")
RANDOM = Place.parse("acme/random")


def said(field: str, value: str, minute: int = 0) -> Entry:
    return entry_for(field, value, NOW + timedelta(minutes=minute))


@pytest.fixture
def contexts(database: Database) -> ProfileStore:
    return ProfileStore(database)


async def test_what_was_told_is_known_as_it_was_told(contexts: ProfileStore) -> None:
    told = [said("name", "אנה"), said("goals", "ski"), said("goals", "swim", 1), said("tone", "casual", 2)]
    await contexts.merge("anna", PRIVATE, told)
    assert set(await contexts.entries("anna", PRIVATE)) == set(told)
    view = await contexts.view("anna", PRIVATE, NOW)
    assert view == context_of(told)
    assert view.profile == Profile(name="אנה", goals=("swim", "ski"))
    assert view.last_updated == NOW + timedelta(minutes=2)


async def test_in_a_place_only_what_was_told_there_or_around_it_is_known(contexts: ProfileStore) -> None:
    await contexts.merge("anna", PRIVATE, [said("location", "Lyon", 9)])
    await contexts.merge("anna", ACME, [said("name", "Anna"), said("role", "engineer")])
    await contexts.merge("anna", GENERAL, [said("role", "team lead", 1)])
    await contexts.merge("anna", RANDOM, [said("role", "joker", 2)])
    assert (await contexts.view("anna", GENERAL, NOW)).profile == Profile(name="Anna", role="team lead")
    assert (await contexts.view("anna", ACME, NOW)).profile == Profile(name="Anna", role="engineer")
    beside = await contexts.view("anna", Place.parse("acme/gen"), NOW)
    assert beside.profile == Profile(name="Anna", role="engineer")
    private = await contexts.view("anna", PRIVATE, NOW)
    assert private.profile == Profile(name="Anna", role="joker", location="Lyon")


async def test_wishes_and_the_time_zone_count_everywhere_and_the_latest_wins(contexts: ProfileStore) -> None:
    await contexts.merge("anna", GENERAL, [said("answer_length", "short"), said("other_notes", "no emoji")])
    wishes = {"answer_length": "long", "prefers_bullets": "true", "timezone": "Asia/Tokyo"}
    private = wishes | {"other_notes": "never mention the divorce", "location": "Kyoto"}
    await contexts.merge("anna", PRIVATE, [said(field, value, 2) for field, value in private.items()])

    known = await contexts.view("anna", GENERAL, NOW)

    assert known.preferences == Preferences(
        answer_length="long", prefers_bullets=True, other_notes=("no emoji",)
    )
    assert known.profile == Profile(timezone="Asia/Tokyo")


async def test_a_repetition_writes_nothing_and_holds(contexts: ProfileStore, database: Database) -> None:
    told = [said("name", "Anna", 3), said("goals", "Ski", 3)]
    await contexts.merge("anna", PRIVATE, told)
    before = database.writes
    await contexts.merge("anna", PRIVATE, told)
    await contexts.merge("anna", PRIVATE, [said("name", "Ben", 2), said("goals", "ski", 1)])
    await contexts.merge("anna", PRIVATE, [])
    assert database.writes == before
    await contexts.merge("anna", PRIVATE, [said("name", "Anna", 9)])
    await contexts.merge("anna", PRIVATE, [said("name", "Ben", 5)])
    assert (await contexts.view("anna", PRIVATE, NOW)).profile.name == "Anna"


async def test_what_is_forgotten_leaves_no_text_and_is_known_where_else_told(contexts: ProfileStore) -> None:
    await contexts.merge("anna", GENERAL, [said("goals", "ski"), said("name", "Anna")])
    await contexts.merge("anna", PRIVATE, [said("goals", "ski"), said("goals", "swim"), said("name", "Anna")])
    gone = [said("goals", "", 1), said("name", "", 1)]
    await contexts.merge("anna", PRIVATE, gone)
    assert set(await contexts.entries("anna", PRIVATE)) == set(gone)
    assert (await contexts.view("anna", PRIVATE, NOW)).profile == Profile()
    assert (await contexts.view("anna", GENERAL, NOW)).profile == Profile(name="Anna", goals=("ski",))


async def test_a_value_rests_on_the_messages_that_told_it(contexts: ProfileStore, database: Database) -> None:
    async def sources() -> set[str]:
        return {row.source_id for row in await database.rows(select(rests_on.c.source_id))}

    def told(value: str, minute: int) -> list[Entry]:
        return [replace(said("role", value, minute), messages=frozenset({f"message {minute}"}))]

    await contexts.merge("anna", PRIVATE, told("nurse", 0))
    await contexts.merge("anna", PRIVATE, told("nurse", 1))
    assert await sources() == {"message 0", "message 1"}
    await contexts.merge("anna", PRIVATE, told("baker", 2))
    assert await sources() == {"message 2"}
    await contexts.merge("anna", PRIVATE, [said("role", "", 3)])
    assert await sources() == set()


async def test_a_hidden_value_is_read_when_told_again(contexts: ProfileStore, database: Database) -> None:
    await contexts.merge("anna", GENERAL, [said("role", "nurse")])
    id = entry_id("anna", GENERAL.stored, "profile.role", "")
    for kind, read in (("told", {PRIVATE}), ("entry", set())):
        async with database.write() as connection:
            forgetting = await entries.begin(connection, "anna", "forgotten", NOW, None)
            await entries.hide(connection, forgetting, {kind: [id]})
        for place in (PRIVATE, GENERAL):
            role = (await contexts.view("anna", place, NOW)).profile.role
            assert role == ("nurse" if place in read else None)
    await contexts.merge("anna", GENERAL, [said("role", "nurse", 1)])
    assert (await contexts.view("anna", GENERAL, NOW)).profile.role == "nurse"


async def test_merging_is_part_of_the_callers_transaction(contexts: ProfileStore, database: Database) -> None:
    told = [said("name", "Anna")]

    async def given_up() -> None:
        async with database.write() as connection:
            await contexts.merge_in(connection, "anna", PRIVATE, told)
            raise LookupError

    with pytest.raises(LookupError):
        await given_up()
    assert await contexts.entries("anna", PRIVATE) == []
    async with database.write() as connection:
        await contexts.merge_in(connection, "anna", PRIVATE, [])
        await contexts.merge_in(connection, "anna", PRIVATE, told)
    assert await contexts.entries("anna", PRIVATE) == told


async def test_of_two_processes_the_later_statement_holds(contexts: ProfileStore, open_again: Any) -> None:
    elsewhere = ProfileStore(await open_again())
    await asyncio.gather(
        *(
            each.merge("anna", PRIVATE, [said("name", f"Anna {m}", m), said("goals", f"goal {m}", m)])
            for m in reversed(range(12))
            for each in (contexts, elsewhere)
        )
    )
    view = await contexts.view("anna", PRIVATE, NOW)
    assert view.profile == Profile(name="Anna 11", goals=tuple(f"goal {m}" for m in range(11, 1, -1)))


async def test_what_is_set_after_the_clock_went_back_a_day_counts(contexts: ProfileStore) -> None:
    day = 24 * 60
    await contexts.merge("anna", GENERAL, [said("role", "judge", day)])
    await contexts.merge("anna", PRIVATE, [said("role", "nurse", day + 1)])
    for role in ("baker", "cook"):
        await contexts.merge("anna", PRIVATE, [said("role", role)], NOW)
        assert (await contexts.view("anna", PRIVATE, NOW)).profile.role == role
    async with contexts._database.write() as connection:
        await contexts.merge_in(connection, "anna", PRIVATE, [said("role", "pilot")], NOW)
    await contexts.merge("anna", PRIVATE, [said("role", "potter")])
    assert (await contexts.view("anna", PRIVATE, NOW)).profile.role == "pilot", "it was said before"
