"""Which tasks are to be announced: each due time once, whoever looks."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from memory.audience import PRIVATE, Place
from memory.people.due_tasks import AT_ONCE, TOO_OLD, DueTasks
from memory.sql.jobs import CLAIM, REMIND, JobQueue
from memory.sql.tables import tasks, work

if TYPE_CHECKING:
    from memory.records import Task
    from tests.memory.conftest import House

EVERYBODY = [""]


async def note(house: House, what: str = "call the dentist", user: str = "anna", **given: object) -> Task:
    due = house.clock.now + timedelta(hours=1)
    return await house.tasks.put(user, what, now=house.clock.now, **{"due": due, **given})  # type: ignore[arg-type]


def due_tasks(house: House) -> DueTasks:
    return DueTasks(house.database, house.queue)


async def taken(house: House, *prefixes: str) -> int:
    return await due_tasks(house).take(prefixes or EVERYBODY, house.clock.now)


async def test_a_task_is_taken_when_it_is_due_and_once(house: House) -> None:
    await note(house)
    assert await taken(house) == 0
    house.clock.move(minutes=59)
    assert await taken(house) == 0
    house.clock.move(minutes=1)
    assert [await taken(house), await taken(house)] == [1, 0]
    house.clock.move(days=1)
    assert await taken(house) == 0


async def test_what_is_done_or_has_no_due_time_is_not_taken(house: House) -> None:
    task = await note(house)
    await note(house, "water the plants", due=None)
    await house.tasks.put("anna", "", "done", now=house.clock.now, id=task.id)
    house.clock.move(days=1)
    assert await taken(house) == 0


async def test_another_due_time_is_taken_again(house: House) -> None:
    task = await note(house)
    house.clock.move(hours=2)
    assert await taken(house) == 1
    later = house.clock.now + timedelta(hours=1)
    await house.tasks.put("anna", "", now=house.clock.now, id=task.id, due=later)
    assert await taken(house) == 0
    house.clock.move(hours=1)
    assert await taken(house) == 1


@pytest.mark.parametrize(("late", "announced"), [(timedelta(), 1), (timedelta(seconds=1), 0)])
async def test_what_has_been_due_for_too_long_is_given_up_and_stays_listed(
    house: House, late: timedelta, announced: int
) -> None:
    task = await note(house)
    house.clock.now += timedelta(hours=1) + TOO_OLD + late
    assert await taken(house) == 1
    assert len(await due_tasks(house).waiting(EVERYBODY, house.clock.now)) == announced
    assert await taken(house) == 0
    assert [open_.id for open_ in await house.tasks.list("anna")] == [task.id]


async def test_tasks_of_people_whom_nobody_reaches_wait(house: House) -> None:
    for user in ("discord:1", "Discord:2", "slack:T:3", "anna"):
        await note(house, user=user)
    house.clock.move(hours=1)
    assert await taken(house, "discord:", "sms:") == 1
    async with house.database.read() as connection:
        query = select(tasks.c.user_id).where(tasks.c.reminded.is_(None))
        left = set((await connection.execute(query)).scalars())
    assert left == {"Discord:2", "slack:T:3", "anna"}
    assert await due_tasks(house).waiting(["slack:"], house.clock.now) == []
    assert len(await due_tasks(house).waiting(["discord:"], house.clock.now)) == 1


async def test_many_are_taken_in_lots(house: House) -> None:
    for number in range(AT_ONCE + 3):
        await note(house, f"task number {number}", f"user{number}")
    house.clock.move(hours=1)
    assert await taken(house) == AT_ONCE + 3


async def test_processes_that_look_at_the_same_time_share_them(house: House) -> None:
    for number in range(30):
        await note(house, user=f"user{number}")
    house.clock.move(hours=1)
    others = [DueTasks(house.database, JobQueue(house.database)) for _ in range(6)]
    counts = await asyncio.gather(*(other.take(EVERYBODY, house.clock.now) for other in others))
    assert sum(counts) == 30
    async with house.database.read() as connection:
        pieces = (await connection.execute(select(work.c.user_id))).scalars().all()
    assert len(pieces) == len(set(pieces)) == 30


async def test_a_piece_is_left_to_who_can_do_it(house: House) -> None:
    await note(house)
    house.clock.move(hours=1)
    await taken(house)
    assert await house.queue.claim(house.clock.now) is None
    [id] = await due_tasks(house).waiting(EVERYBODY, house.clock.now)
    piece = await house.queue.claim(house.clock.now, id)
    assert piece is not None
    assert piece.kind == REMIND
    assert await due_tasks(house).waiting(EVERYBODY, house.clock.now) == []
    house.clock.now += CLAIM  # whoever took it is gone
    assert await due_tasks(house).waiting(EVERYBODY, house.clock.now) == [id]


@pytest.mark.parametrize("place", [PRIVATE, Place(("discord", "a/b", "42"))])
async def test_a_piece_says_what_is_to_be_announced_and_where(house: House, place: Place) -> None:
    task = await note(house, place="" if place.private else place.key)
    house.clock.move(hours=1)
    await taken(house)
    [id] = await due_tasks(house).waiting(EVERYBODY, house.clock.now)
    piece = await house.queue.claim(house.clock.now, id)
    assert piece is not None
    reminder = await due_tasks(house).announced_by(piece)
    assert reminder is not None
    assert (reminder.task, reminder.place) == (task, place)


@pytest.mark.parametrize("change", ["done", "put off", "no due time"])
async def test_what_has_changed_meanwhile_is_not_announced(house: House, change: str) -> None:
    task = await note(house)
    house.clock.move(hours=1)
    await taken(house)
    [id] = await due_tasks(house).waiting(EVERYBODY, house.clock.now)
    piece = await house.queue.claim(house.clock.now, id)
    assert piece is not None
    due = {"put off": house.clock.now + timedelta(days=1), "no due time": "never"}.get(change)
    status = "done" if change == "done" else None
    await house.tasks.put("anna", "", status, now=house.clock.now, id=task.id, due=due)  # type: ignore[arg-type]
    assert await due_tasks(house).announced_by(piece) is None
