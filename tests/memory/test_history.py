"""What replaced what, and taking it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memory.audience import Audience, Place
from memory.errors import NotFound
from memory.history import UNDONE

if TYPE_CHECKING:
    from tests.memory.conftest import House

MICKAEL = Audience.of("mickael")
ACME = Audience.of("ben", Place.parse("acme"))
CITIES = [f"Mickael lives in {city}" for city in ("Paris", "Lyon", "Rome")]


async def move_about(house: House, place: str | None = None) -> list[str]:
    """Ids of three memories, each of which replaced the one before."""
    ids = []
    for city in CITIES:
        ids.append(str((await house.remember(city, "mickael", place)).id))
        house.clock.move(days=1)
    return ids


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("length", [36, 8])
async def test_the_whole_chain_is_told_from_anywhere_in_it(house: House, at: int, length: int) -> None:
    ids = await move_about(house)
    steps = await house.history.of(ids[at][:length], MICKAEL)
    assert [(step.old_content, step.new_content) for step in steps] == [
        (CITIES[0], CITIES[1]),
        (CITIES[1], CITIES[2]),
    ]
    assert [(step.old_id, step.new_id) for step in steps] == [(ids[0], ids[1]), (ids[1], ids[2])]
    assert {step.user_id for step in steps} == {"mickael"}


async def test_the_steps_of_a_place_are_told_there_and_to_those_who_took_them(house: House) -> None:
    shared = await move_about(house, "acme")
    for audience in (ACME, MICKAEL):
        assert len(await house.history.of(shared[0], audience)) == 2
    for other in (Audience.of("ben"), Audience.of(None), Audience.of("ben", Place.parse("home"))):
        assert await house.history.of(shared[0], other) == []


async def test_nothing_is_told_of_what_is_unknown(house: House) -> None:
    assert await house.history.of("no such memory", MICKAEL) == []
    decision = await house.remember(CITIES[0], "mickael")
    assert await house.history.of(str(decision.id), MICKAEL) == []


@pytest.mark.parametrize("at", [1, 2])
async def test_the_last_step_is_taken_back(house: House, at: int) -> None:
    ids = await move_about(house)
    undone = await house.history.undo(ids[at], MICKAEL, "mickael", house.clock.now)
    assert (undone.old_content, undone.new_content, undone.reason) == (CITIES[2], CITIES[1], UNDONE)
    assert await house.known("mickael") == {CITIES[1]}
    await house.indexing.catch_up()
    assert await house.found("where does Mickael live?", "mickael") == {CITIES[1]}
    with pytest.raises(NotFound, match="nothing that could be brought back"):
        await house.history.undo(ids[at], MICKAEL, "mickael", house.clock.now)


async def test_taking_it_back_in_private_leaves_the_place_as_it_is(house: House) -> None:
    ids = await move_about(house, "acme")
    await house.history.undo(ids[2], MICKAEL, "mickael", house.clock.now)
    assert await house.known("mickael") == {CITIES[1]}
    assert await house.known("ben", "acme") == {CITIES[2]}


async def test_nobody_takes_back_what_they_may_not_read(house: House) -> None:
    ids = await move_about(house)
    for audience in (Audience.of("ben"), ACME, Audience.of(None)):
        with pytest.raises(NotFound):
            await house.history.undo(ids[2], audience, "ben", house.clock.now)
    assert await house.known("mickael") == {CITIES[2]}
