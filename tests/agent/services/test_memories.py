"""What people change, take back and take away of what they told in a place; and nobody else."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.audience import Audience, Place
from memory.errors import NotFound
from tests.agent.conftest import OpenPet

GENERAL, THREAD, OTHER = "acme/general", "acme/general/7", "acme/other"
PARIS, LYON, ROME = (f"Ana lives in {city}" for city in ("Paris", "Lyon", "Rome"))


@pytest.fixture
async def pet(open_pet: OpenPet) -> Any:
    return await open_pet()


async def known(pet: Any, user: str = "cleo", place: str | None = GENERAL) -> set[str]:
    return {memory.content for memory in await pet.memories.list(user=user, place=place)}


async def test_what_they_told_there_is_said_differently_there(pet: Any) -> None:
    told = await pet.remember(PARIS, user="ana", place=GENERAL, subjects=["ana"])
    changed = await pet.memories.update(told.id, LYON, user="ana", place=THREAD)
    assert (changed.action, changed.target_id) == ("replace", told.id)
    assert await known(pet) == await known(pet, "ana", None) == {LYON}
    [step] = await pet.memories.history(changed.id, user="cleo", place=GENERAL)
    assert (step.old_content, step.new_content) == (PARIS, LYON)


async def test_what_was_told_in_two_places_is_changed_where_they_ask(pet: Any) -> None:
    for place in (GENERAL, OTHER):
        told = await pet.remember(PARIS, user="ana", place=place)
    memory = await pet.memories.get(told.id, user="ana", place=OTHER)
    changed = await pet.memories.update(memory.id, LYON, user="ana", place=OTHER)
    assert await known(pet, place=OTHER) == {LYON}
    assert (await pet.memories.forget(changed.id, user="ana", place=f"{OTHER}/7")).content == LYON
    assert await known(pet, place=OTHER) == set()


@pytest.mark.parametrize(
    ("told_in", "user"), [(GENERAL, "ben"), (None, "ana")], ids=["told by another", "told in private"]
)
async def test_in_a_place_nobody_changes_what_another_told_or_what_was_told_in_private(
    pet: Any, told_in: str | None, user: str
) -> None:
    first = await pet.remember(PARIS, user="ana", place=told_in)
    told = await pet.remember(LYON, user="ana", place=told_in, replaces=first.id)
    for act in (
        pet.memories.update(told.id, ROME, user=user, place=GENERAL),
        pet.memories.forget(told.id, user=user, place=GENERAL),
        pet.memories.make_private(told.id, user=user, place=GENERAL),
        pet.memories.undo(told.id, user=user, place=GENERAL),
    ):
        with pytest.raises(NotFound):
            await act
    assert await known(pet, "ana", None) == {LYON}
    steps = await pet.memories.history(first.id, user=user, place=GENERAL)
    assert (await known(pet), len(steps)) == (({LYON}, 1) if told_in else (set(), 0))


async def test_a_receipt_names_what_stays_near_it_as_far_as_it_may_be_read_there(pet: Any) -> None:
    for fact in ("Citalopram makes Ana tired", "Ana plays the cello"):
        await pet.remember(fact, user="chat:1")
    for place, near in ((GENERAL, []), (None, ["Citalopram makes Ana tired"])):
        told = await pet.remember("Ana takes citalopram for her depression", user="chat:1", place=place)
        gone = await pet.memories.forget(told.id, user="chat:1", place=place)
        assert [one.content for one in gone.offered] == near


async def test_what_two_have_told_is_not_one_persons_to_change(pet: Any) -> None:
    for user in ("ana", "ben"):
        told = await pet.remember(PARIS, user=user, place=GENERAL)
    with pytest.raises(NotFound, match="somebody else stated it"):
        await pet.memories.update(told.id, LYON, user="ana", place=GENERAL)
    await pet.memories.update(told.id, LYON, user="ana")  # in private, for herself
    assert await known(pet, "ana", None) == {LYON}
    assert await known(pet) == await known(pet, "ben", None) == {PARIS}
    await pet.memories.forget(told.id, user="ben", place=GENERAL)
    assert await known(pet) == {PARIS}  # ana said it here too, and has not taken that back


async def test_what_was_made_private_stays_private_when_it_is_changed(pet: Any) -> None:
    told = await pet.remember(PARIS, user="ana", place=GENERAL)
    assert (await pet.memories.make_private(told.id, user="ana", place=GENERAL)).content == PARIS
    changed = await pet.memories.update(told.id, LYON, user="ana")
    assert changed.action == "replace"
    assert await known(pet, "ana", None) == {LYON}
    assert await known(pet) == set()
    assert await pet.search_memories("where does Ana live?", user="cleo", place=GENERAL) == []


async def test_who_told_it_is_called_by_no_name_from_elsewhere(pet: Any) -> None:
    await pet.respond("I like Rust", user="u1", author="Agent X", place="secret/den")
    await pet.respond("hello", user="ben", place=GENERAL)
    await pet.remember("The server password rotates on Monday", user="u1", place=GENERAL, author="Ulla")
    audience = Audience.of("ben", Place.parse(GENERAL))
    assert await pet.components.transcript.speakers.names({"u1"}, audience) == {"u1": "Ulla"}


async def test_what_another_said_instead_stays_beside_what_one_changes(pet: Any) -> None:
    told = await pet.remember(PARIS, user="ana", place=GENERAL)
    await pet.remember(LYON, user="ben", place=GENERAL, replaces=told.id)
    assert await known(pet) == {PARIS, LYON}
    await pet.memories.update(told.id, ROME, user="ana")
    assert await known(pet, "ana", None) == {ROME}
    assert await known(pet) == {ROME, LYON}


async def test_what_was_summed_up_of_them_is_let_go_when_something_is_made_private(
    pet: Any, rows: Callable[..., Any]
) -> None:
    told = await pet.remember("Ana had measles", user="ana", place=GENERAL)
    await pet.people.set_context("memory_summary", "Ana had measles.", user="ana", place=GENERAL)
    await pet.memories.make_private(told.id, user="ana", place=GENERAL)
    assert rows("SELECT value FROM context_entries") == [{"value": ""}]
