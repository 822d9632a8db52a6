"""What people want to be reminded of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from memory.errors import NotFound
from memory.records import Task

if TYPE_CHECKING:
    from tests.memory.conftest import House

ACME = "place:acme"


async def put(house: House, description: str, status: Any = "open", user: str = "anna", **given: Any) -> Task:
    return await house.tasks.put(user, description, status, now=house.clock.now, **given)


async def test_a_task_is_kept_as_it_was_given(house: House) -> None:
    due = datetime(2026, 12, 1, 9, tzinfo=UTC)
    task = await put(house, "  call the dentist ", due=due)
    assert await house.tasks.list("anna") == [task]
    assert task == Task(task.id, "anna", "call the dentist", "open", house.clock.now, house.clock.now, due)


async def test_a_task_is_its_users_alone(house: House) -> None:
    task = await put(house, "call the dentist")
    assert await house.tasks.list("ben") == []
    with pytest.raises(NotFound, match="give null to make a new one"):
        await put(house, "", "done", user="ben", id=task.id)
    assert await house.tasks.list("anna") == [task]


@pytest.mark.parametrize("length", [36, 8, 4])
async def test_a_task_is_changed_by_its_id_or_the_beginning_of_it(house: House, length: int) -> None:
    task = await put(house, "call the dentist")
    house.clock.move(hours=1)
    due = datetime(2026, 12, 1, 9, tzinfo=UTC)
    await put(house, "", "in_progress", id=task.id[:length], due=due)
    [changed] = await house.tasks.list("anna")
    assert (changed.id, changed.description, changed.status, changed.due) == (
        task.id,
        "call the dentist",
        "in_progress",
        due,
    )
    assert changed.created_at == task.created_at
    assert changed.last_updated == house.clock.now


@pytest.mark.parametrize("id", ["abc", "%%%%", "____", "no such task", ""])
async def test_an_id_that_names_no_task_changes_none(house: House, id: str) -> None:
    task = await put(house, "call the dentist")
    with pytest.raises(NotFound):
        await put(house, "", "done", id=id)
    assert await house.tasks.list("anna") == [task]


async def test_a_change_without_a_due_time_leaves_the_one_there_was(house: House) -> None:
    due = datetime(2026, 12, 1, 9, tzinfo=UTC)
    task = await put(house, "call the dentist", due=due)
    assert (await put(house, "call Dr. Katz", id=task.id)).due == due
    [changed] = await house.tasks.list("anna")
    assert changed.description == "call Dr. Katz"


@pytest.mark.parametrize(
    ("first", "again"), [("Call the dentist", " call the DENTIST"), ("Être à l'heure", "être à l'heure")]
)
async def test_saying_it_twice_makes_one_task(house: House, first: str, again: str) -> None:
    one = await put(house, first)
    assert (await put(house, again)).id == one.id
    assert len(await house.tasks.list("anna")) == 1


async def test_what_is_done_can_be_asked_for_anew(house: House) -> None:
    done = await put(house, "water the plants")
    await put(house, "", "done", id=done.id)
    assert await house.tasks.list("anna") == []
    house.clock.move(days=1)
    anew = await put(house, "water the plants")
    assert anew.id != done.id
    assert [task.id for task in await house.tasks.list("anna", done=True)] == [anew.id, done.id]


async def test_what_was_asked_for_in_private_does_not_show_in_a_place(house: House) -> None:
    private = await put(house, "call the dentist")
    asked_there = await put(house, "call the dentist", place=ACME)
    assert asked_there.id != private.id
    assert [task.id for task in await house.tasks.list("anna", place=ACME)] == [asked_there.id]
    assert await house.tasks.list("anna", place="place:other") == []
    assert {task.id for task in await house.tasks.list("anna")} == {private.id, asked_there.id}


async def test_a_place_changes_only_what_was_asked_for_there_and_private_anything(house: House) -> None:
    private = await put(house, "call the dentist")
    asked_there = await put(house, "bring the cake", place=ACME)
    with pytest.raises(NotFound):
        await put(house, "", "done", id=private.id, place=ACME)
    await put(house, "", "done", id=asked_there.id)
    assert await house.tasks.list("anna") == [private]
