"""What replaced what, and taking it back."""

from itertools import pairwise

import pytest

from memory.audience import Audience, Place
from memory.errors import NotFound
from memory.sql.memories.store import UNDONE
from tests.memory.conftest import Stack, on_both

MICKAEL = Audience.of("mickael")
ACME = Audience.of("ben", Place.parse("acme"))
CITIES = [f"Mickael lives in {city}" for city in ("Paris", "Lyon", "Rome")]


@pytest.fixture(autouse=True)
def judge(stack: Stack) -> None:
    """A model that rules the newer statement to replace the older one."""
    stack.rule(True)


async def move_about(stack: Stack, place: str | None = None) -> list[str]:
    """Ids of three memories, each of which replaced the one before."""
    ids = []
    for city in CITIES:
        ids.append(str((await stack.remember(city, "mickael", place)).id))
        stack.clock.advance(days=1)
    return ids


@on_both
async def test_the_whole_chain_is_told_from_anywhere_in_it_to_place_and_person(stack: Stack) -> None:
    ids = await move_about(stack, "acme")
    for id, audience in ((ids[0], MICKAEL), (ids[2][:8], MICKAEL), (ids[0], ACME)):
        steps = await stack.history.of(id, audience)
        assert [(step.old_content, step.new_content) for step in steps] == [*pairwise(CITIES)]
        assert [(step.old_id, step.new_id) for step in steps] == [*pairwise(ids)]
        assert {step.user_id for step in steps} == {"mickael"}
    for stranger in (Audience.of("ben"), Audience.of(None), Audience.of("ben", Place.parse("home"))):
        assert await stack.history.of(ids[0], stranger) == []


@on_both
@pytest.mark.parametrize("place", [None, "acme"])
async def test_the_last_step_is_taken_back_for_person_and_place(stack: Stack, place: str | None) -> None:
    ids, audience = await move_about(stack, place), Audience.of("mickael", Place.parse(place))
    undone = await stack.history.undo(ids[1], audience, "mickael", stack.clock.now)
    assert (undone.old_content, undone.new_content, undone.reason) == (CITIES[2], CITIES[1], UNDONE)
    assert await stack.known("mickael") == await stack.known("mickael", place) == {CITIES[1]}
    await stack.indexing.catch_up()
    assert await stack.found("where does Mickael live?", "mickael", place) == {CITIES[1]}
    stack.clock.advance(minutes=1)
    with pytest.raises(NotFound, match="nothing that could be restored"):
        await stack.history.undo(ids[2], audience, "mickael", stack.clock.now)


async def test_what_has_expired_meanwhile_is_not_brought_back(stack: Stack) -> None:
    paris = await stack.remember("Mickael lives in Paris", "mickael", ttl="7d")
    lyon = await stack.remember("Mickael lives in Lyon", "mickael", replaces=paris.id)
    stack.clock.advance(days=7)
    with pytest.raises(NotFound, match="superseded expired on"):
        await stack.history.undo(str(lyon.id), MICKAEL, "mickael", stack.clock.now)
    await stack.expire()
    assert await stack.known("mickael") == {"Mickael lives in Lyon"}
