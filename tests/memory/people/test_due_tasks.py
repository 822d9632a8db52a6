"""Which tasks are to be announced: each due time once, whoever looks."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from memory.audience import PRIVATE, Place
from memory.people.due_tasks import TOO_OLD, DueTasks
from memory.records import Task
from memory.sql.jobs.job import REMIND, Job
from memory.sql.jobs.queue import JobQueue
from memory.sql.tables import tasks, work
from tests.memory.conftest import Stack

EVERYBODY = [""]


async def note(stack: Stack, what: str = "call the dentist", user: str = "anna", **given: object) -> Task:
    told = {"due": stack.clock.now + timedelta(hours=1), "place": PRIVATE, **given}
    return (await stack.tasks.update(user, what, now=stack.clock.now, **told)).task  # type: ignore[arg-type]


def due_tasks(stack: Stack) -> DueTasks:
    return DueTasks(stack.database, stack.queue)


async def taken(stack: Stack, *prefixes: str) -> int:
    return await due_tasks(stack).take(prefixes or EVERYBODY, stack.clock.now)


async def waiting(stack: Stack, *prefixes: str) -> Sequence[str]:
    return await due_tasks(stack).waiting(prefixes or EVERYBODY, stack.clock.now)


async def claimed(stack: Stack) -> Job:
    """The piece that announces the only task, an hour later."""
    stack.clock.advance(hours=1)
    await taken(stack)
    [id] = await waiting(stack)
    piece = await stack.queue.claim(stack.clock.now, id)
    assert piece is not None
    return piece


async def test_a_task_is_taken_when_it_is_due_and_once(stack: Stack) -> None:
    await note(stack)
    assert await taken(stack) == 0
    stack.clock.advance(minutes=59)
    assert await taken(stack) == 0
    stack.clock.advance(minutes=1)
    assert [await taken(stack), await taken(stack)] == [1, 0]
    stack.clock.advance(days=1)
    assert await taken(stack) == 0


@pytest.mark.parametrize(("late", "announced"), [(timedelta(), 1), (timedelta(seconds=1), 0)])
async def test_what_is_long_due_is_not_announced_and_kept(
    stack: Stack, late: timedelta, announced: int
) -> None:
    task = await note(stack)
    stack.clock.now += timedelta(hours=1) + TOO_OLD + late
    assert await taken(stack) == len(await waiting(stack)) == announced
    assert await taken(stack) == 0
    assert [open_.id for open_ in await stack.tasks.list("anna", PRIVATE)] == [task.id]


async def test_tasks_of_people_whom_nobody_reaches_wait(stack: Stack) -> None:
    for user in ("discord:1", "Discord:2", "slack:T:3", "anna"):
        await note(stack, user=user)
    stack.clock.advance(hours=1)
    assert await taken(stack, "discord:", "sms:") == 1
    left = await stack.database.rows(select(tasks.c.user_id).where(tasks.c.reminded.is_(None)))
    assert {row.user_id for row in left} == {"Discord:2", "slack:T:3", "anna"}
    assert [len(await waiting(stack, prefix)) for prefix in ("slack:", "discord:")] == [0, 1]


async def test_processes_that_look_at_the_same_time_share_them(stack: Stack) -> None:
    for number in range(30):
        await note(stack, user=f"user{number}")
    stack.clock.advance(hours=1)
    others = [DueTasks(stack.database, JobQueue(stack.database, stack.clock)) for _ in range(6)]
    counts = await asyncio.gather(*(other.take(EVERYBODY, stack.clock.now) for other in others))
    assert sum(counts) == 30
    pieces = [row.user_id for row in await stack.database.rows(select(work.c.user_id))]
    assert len(pieces) == len(set(pieces)) == 30


async def test_a_piece_is_left_to_who_can_do_it(stack: Stack) -> None:
    await note(stack)
    stack.clock.advance(hours=1)
    await taken(stack)
    assert await stack.queue.claim_due(stack.clock.now, 1) == []
    [id] = await waiting(stack)
    piece = await stack.queue.claim(stack.clock.now, id)
    assert piece is not None
    assert piece.kind == REMIND
    assert await waiting(stack) == []
    await stack.end_claims()  # whoever took it is gone
    await stack.queue.take_up(stack.clock.now)
    assert await waiting(stack) == [id]


@pytest.mark.parametrize("place", [PRIVATE, Place(("discord", "a/b", "42"))])
async def test_a_piece_says_what_is_to_be_announced_and_where(stack: Stack, place: Place) -> None:
    task = await note(stack, place=place)
    piece = await claimed(stack)
    reminder = await due_tasks(stack).reminder_of(piece)
    assert reminder is not None
    announced = replace(task, reminded=task.due)
    assert (reminder.task, reminder.place) == (announced, place)


@pytest.mark.parametrize("change", ["done", "put off", "no due time"])
async def test_what_has_changed_meanwhile_is_not_announced(stack: Stack, change: str) -> None:
    task = await note(stack)
    piece = await claimed(stack)
    due = {"put off": stack.clock.now + timedelta(days=1), "no due time": "never"}.get(change)
    status = "done" if change == "done" else None
    await stack.tasks.update("anna", "", status, now=stack.clock.now, id=task.id, due=due, place=PRIVATE)  # type: ignore[arg-type]
    assert await due_tasks(stack).reminder_of(piece) is None
