"""What people want to be reminded of."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import event, insert

from hachi.testing import FixedClock
from memory.audience import PRIVATE, Place
from memory.errors import NotFound
from memory.people.tasks import MOST_READ, Change, Tasks, Unclear, bare_id
from memory.records import Task
from memory.sql.engine import Database
from memory.sql.tables import tasks as table

ACME, OTHER = Place.parse("acme"), Place.parse("other")
DUE = datetime(2026, 12, 1, 9, tzinfo=UTC)


class Asked:
    """Tasks of anna, who asks at the time of the clock."""

    def __init__(self, database: Database, clock: FixedClock) -> None:
        self.database, self.clock, self.tasks = database, clock, Tasks(database)

    async def change(
        self, description: str, status: Any = "open", user: str = "anna", **given: Any
    ) -> Change:
        return await self.tasks.update(
            user, description, status, now=self.clock.now, **{"place": PRIVATE, **given}
        )

    async def put(self, description: str, status: Any = "open", **given: Any) -> Task:
        return (await self.change(description, status, **given)).task

    async def open(self, place: Place = PRIVATE, **given: Any) -> list[Task]:
        return await self.tasks.list("anna", place, **given)

    async def words(self) -> set[str]:
        return {task.description for task in await self.open()}


@pytest.fixture
def asked(database: Database, clock: FixedClock) -> Asked:
    return Asked(database, clock)


async def test_a_task_is_kept_as_it_was_given_and_is_its_users_alone(asked: Asked) -> None:
    now = asked.clock.now
    task = await asked.put("  call\x00 the dentist \ud800", due=DUE.astimezone(ZoneInfo("Europe/Paris")))
    assert task == Task(task.id, "anna", "call the dentist \ufffd", "open", now, now, DUE)
    assert task.due
    assert task.due.utcoffset() == timedelta(0)
    assert await asked.open() == [task]
    assert await asked.tasks.list("ben", PRIVATE) == []
    with pytest.raises(NotFound, match="give an id that you were shown"):
        await asked.put("", "done", user="ben", id=task.id)
    assert await asked.open() == [task]


async def test_an_update_is_refused_without_a_zone_or_a_name_and_with_an_id_of_no_task(asked: Asked) -> None:
    naive = datetime(2026, 12, 1, 9)  # noqa: DTZ001
    for given in ({"due": naive, "now": asked.clock.now}, {"now": naive}):
        with pytest.raises(ValueError, match="aware UTC"):
            await asked.tasks.update("anna", "call Ben", place=PRIVATE, **given)
    await asked.put("call Ben")
    for id in ("abc", "%%%%", ""):
        with pytest.raises(NotFound):
            await asked.put("", "done", id=id)
    with pytest.raises(NotFound, match="give its id, or a description"):
        await asked.put("  ", "done")
    assert await asked.words() == {"call Ben"}


@pytest.mark.parametrize("shown", [str, lambda id: f" {id[:8].upper()} "])
async def test_only_what_is_given_with_an_id_changes(asked: Asked, shown: Any) -> None:
    task = await asked.put("call the dentist")
    id = shown(task.id)
    asked.clock.advance(hours=1)
    assert await asked.change("", None, id=id) == Change(task, "unchanged")
    begun = await asked.put("", "in_progress", id=id, due=DUE)
    assert begun == Task(
        task.id, "anna", "call the dentist", "in_progress", task.created_at, asked.clock.now, DUE
    )
    renamed = await asked.put("call Dr. Katz", None, id=id)
    assert (renamed.description, renamed.status, renamed.due) == ("call Dr. Katz", "in_progress", DUE)
    assert await asked.open() == [renamed]
    await asked.put("", "done", id=id)
    assert (await asked.put("call", "open", id=id)).status == "open"


async def test_the_same_words_change_nothing_until_it_is_done(asked: Asked) -> None:
    task = await asked.put("Call the dentist")
    asked.clock.advance(hours=1)
    assert await asked.change(" call the DENTIST") == Change(task, "unchanged")
    begun = await asked.put("call the dentist", "in_progress")
    assert (await asked.put("call the dentist")).status == "in_progress", "open does not reset it"
    done = await asked.put("call the dentist", "done")
    assert begun.id == done.id == task.id
    assert await asked.open() == []
    asked.clock.advance(hours=1)
    again = await asked.change("call the dentist", "done", due="never")
    assert again == Change(done, "unchanged"), "finished twice is finished once"
    new = await asked.put("call the dentist")
    assert [task.id for task in await asked.open(done=True)] == [new.id, task.id]


async def test_turns_at_the_same_time_make_one_task(asked: Asked) -> None:
    await asyncio.gather(*(asked.put(words) for words in ("call Ben", "Call Ben!", "  CALL  Ben")))
    assert len(await asked.open()) == 1


async def test_a_task_with_another_word_is_another_task(asked: Asked) -> None:
    task = await asked.put("call mum")
    longer = await asked.change("call mum on Monday")
    assert (longer.action, longer.close) == ("made", (task,))
    assert (await asked.change("Call mum!")).task == task
    changed = await asked.put("call mum on Friday", id=longer.task.id)
    assert (changed.id, changed.description) == (longer.task.id, "call mum on Friday")


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ("call the dentist", "dentist"),
        ("call the dentist", "please call the dentist"),
        ("להתקשר לרופא", "לרופא"),
    ],
)
async def test_a_word_finishes_the_only_task_that_has_it(asked: Asked, description: str, said: str) -> None:
    task = await asked.put(description)
    await asked.put("water 3 plants")
    with pytest.raises(Unclear, match="no open task is surely"):
        await asked.change(said, "done", alike=False)
    done = await asked.put(said, "done")
    assert (done.id, done.description, done.status) == (task.id, description, "done")
    assert await asked.words() == {"water 3 plants"}


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ("buy 2 eggs", "buy 3 eggs"),
        ("call Martin", "call Martina"),
        ("call Anna about Ben", "call Ben about Anna"),
        ("lock the garden shed", "unlock the garden shed"),
        ("plan the party", "art"),
    ],
)
async def test_other_words_finish_nothing(asked: Asked, description: str, said: str) -> None:
    task = await asked.put(description)
    with pytest.raises(Unclear, match="nothing was changed"):
        await asked.put(said, "done")
    assert await asked.open() == [task]


@pytest.mark.parametrize(
    ("id", "bare"),
    [
        *((shown, "1a2b") for shown in ("1a2b", "[task 1a2b]", "task 1a2b", "[1a2b]", "#1a2b", " 1a2b ")),
        *((blank, None) for blank in ("", " ", "null", "None", "new", "[task null]")),
        (7, 7),
        (None, None),
    ],
)
def test_an_id_is_read_as_the_prompt_shows_it(id: object, bare: object) -> None:
    assert bare_id(id) == bare


async def test_what_is_begun_is_the_only_task_it_can_mean_or_a_new_one(asked: Asked) -> None:
    task = await asked.put("do the tax return")
    assert (await asked.put("tax return", "in_progress")).id == task.id
    assert (await asked.put("paint the door", "in_progress")).status == "in_progress"
    assert await asked.words() == {"do the tax return", "paint the door"}
    two = {await asked.put("call the dentist"), await asked.put("ask the dentist for a paper")}
    with pytest.raises(Unclear, match="can mean several open tasks") as error:
        await asked.put("dentist", "done")
    assert set(error.value.candidates) == two
    assert two <= set(await asked.open())


async def test_a_job_that_runs_twice_does_not_make_a_finished_task_again(asked: Asked) -> None:
    read_at = asked.clock.now
    done = await asked.put("call Ben")
    asked.clock.advance(minutes=1)
    done = await asked.put("", "done", id=done.id)
    assert await asked.change("call Ben", read_at=read_at) == Change(done, "unchanged")
    later = done.last_updated + timedelta(seconds=1)
    assert (await asked.change("call Ben", read_at=later)).action == "made"


async def test_a_place_reads_and_changes_only_what_was_asked_for_there(asked: Asked) -> None:
    private = await asked.put("call the dentist")
    for given in ({"description": "", "id": private.id}, {"description": "dentist"}):
        with pytest.raises(NotFound) as error:
            await asked.put(status="done", place=ACME, **given)
        assert f"[task {private.id[:8]}]" not in str(error.value)
    there = await asked.put("call the dentist", place=ACME)
    assert there.id != private.id
    assert await asked.open(ACME) == [there]
    assert await asked.open(OTHER) == []
    assert {task.id for task in await asked.open()} == {private.id, there.id}
    assert (await asked.put("call the dentist", "done")).id == private.id, "in private, first the private one"
    assert (await asked.put("dentist", "done")).id == there.id
    rash = await asked.put("call the doctor", place=ACME)
    await asked.put("call the doctor about the rash", "in_progress", id=rash.id)
    [shown] = await asked.open(ACME)
    assert (shown.id, shown.description) == (rash.id, "call the doctor"), "private words stay private"


async def relevant(asked: Asked, question: str, place: Place = PRIVATE, **given: Any) -> list[str]:
    found = await asked.tasks.relevant("anna", question, place, now=asked.clock.now, **given)
    return [task.description for task in found]


async def test_due_tasks_come_first_then_those_talked_about_then_the_newest(asked: Asked) -> None:
    now = asked.clock.now
    due = {"water the plants": 47, "feed the cat": -3, "pay the rent": 49, "call the dentist": None}
    for description, hours in due.items():
        asked.clock.advance(seconds=1)
        await asked.put(description, due=now + timedelta(hours=hours) if hours else None)
    asked.clock.now = now
    order = ["feed the cat", "water the plants", "pay the rent", "call the dentist"]
    assert await relevant(asked, "when do I pay my rents?") == order
    assert await relevant(asked, "", limit=2) == order[:2]


async def test_a_question_brings_the_task_it_shares_words_with(asked: Asked) -> None:
    for description in ("call the dentist", "להתקשר לרופא", "购买牛奶", "newest of all"):
        asked.clock.advance(minutes=1)
        await asked.put(description)
    for question, first in {
        "did I call the DENTIST?": "call the dentist",
        "אמרתי לרופא": "להתקשר לרופא",
        "我买了牛奶吗": "购买牛奶",
        "hello there": "newest of all",
    }.items():
        assert (await relevant(asked, question))[0] == first


async def test_a_turn_reads_a_bounded_number_of_tasks_in_one_statement(asked: Asked) -> None:
    now = asked.clock.now
    rows = [
        {"id": f"{n:08d}", "user_id": "anna", "place": "", "description": f"read page {n}", "status": "open"}
        | {"due": now if n == 0 else None, "created_at": now + timedelta(seconds=n), "last_updated": now}
        for n in range(MOST_READ + 50)
    ]
    async with asked.database.write() as connection:
        await connection.execute(insert(table), rows)
    statements: list[str] = []
    engine = asked.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    found = await relevant(asked, "page 7", limit=1_000)
    assert len([statement for statement in statements if "FROM tasks" in statement]) == 1
    assert len(found) == MOST_READ
    assert found[:2] == ["read page 0", f"read page {MOST_READ + 49}"]
    assert await relevant(asked, "page 7", limit=5) == found[:5]
