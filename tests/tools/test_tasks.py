"""The tool that keeps track of what somebody has to do."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memory.audience import PRIVATE, Place
from tools.registry import TOOLS

PARIS = ZoneInfo("Europe/Paris")


async def test_a_task_is_made_changed_and_done(turn: Any) -> None:
    made = await turn.call("update_task", id=None, description="buy tea", status="open")
    [task] = await turn.pet.services.tasks.list("ana", PRIVATE)
    assert made == {
        "ok": True,
        "id": task.id[:8],
        "action": "made",
        "description": "buy tea",
        "status": "open",
        "due": None,
    }

    changed = await turn.call(
        "update_task",
        id=made["id"],
        description="buy green tea",
        status="in_progress",
        due="2026-12-01T10:00Z",
    )
    assert (changed["id"], changed["action"], changed["description"]) == (
        made["id"],
        "changed",
        "buy green tea",
    )
    assert (changed["status"], changed["due"]) == ("in_progress", "2026-12-01T10:00+00:00")

    done = await turn.call("update_task", id=made["id"], description="", status="done")
    assert (done["description"], done["status"]) == ("buy green tea", "done")
    assert await turn.pet.services.tasks.list("ana", PRIVATE) == []


@pytest.mark.parametrize("id", [None, "", "null"])
async def test_a_new_task_may_be_asked_for_in_several_ways(turn: Any, id: str | None) -> None:
    made = await turn.call("update_task", id=id, description="buy tea", status="open")

    assert made["ok"]


async def test_what_is_left_out_is_done_without(turn: Any) -> None:
    made = await turn.call("update_task", description="buy tea")

    assert (made["ok"], made["status"]) == (True, "open")


def test_the_model_is_asked_to_choose_a_status() -> None:
    [tool] = [tool for tool in TOOLS if tool.name == "update_task"]

    assert tool.schema["required"] == ["id", "description", "status"]
    assert tool.schema["properties"]["status"] == {
        "type": "string",
        "enum": ["open", "in_progress", "done"],
        "description": "as it is unless given; a new task is open",
    }


async def test_a_status_left_out_stays_as_it_is(turn: Any) -> None:
    made = await turn.call("update_task", id=None, description="buy tea", status="in_progress")
    moved = await turn.call(
        "update_task", id=made["id"], description="", status=None, due="2026-12-01T10:00Z"
    )

    assert (moved["status"], moved["due"]) == ("in_progress", "2026-12-01T10:00+00:00")


@pytest.mark.parametrize("form", ["[task {}]", "task {}", "[{}]", "#{}", " {} "])
async def test_an_id_may_be_given_as_it_is_shown(turn: Any, form: str) -> None:
    made = await turn.call("update_task", id=None, description="buy tea", status="open")

    done = await turn.call("update_task", id=form.format(made["id"]), description="", status="done")

    assert (done["id"], done["status"]) == (made["id"], "done")


@pytest.mark.parametrize("id", [7, ["1a2b3c4d"]])
async def test_an_id_is_text(turn: Any, id: Any) -> None:
    told = await turn.call("update_task", id=id, description="buy tea", status="open")

    assert (told["ok"], told["try_again"]) == (False, True)
    assert told["error"].startswith("id: ")


async def test_the_same_task_twice_is_one(turn: Any) -> None:
    first = await turn.call("update_task", id=None, description="buy tea", status="open")
    again = await turn.call("update_task", id=None, description="Buy tea ", status="in_progress")

    assert first["id"] == again["id"]
    assert len(await turn.pet.services.tasks.list("ana", PRIVATE)) == 1


@pytest.mark.parametrize(
    ("due", "read"),
    [
        ("2026-12-01T10:00:00+02:00", datetime(2026, 12, 1, 8, tzinfo=UTC)),
        ("2026-12-01T10:00:00", datetime(2026, 12, 1, 10, tzinfo=UTC)),
        ("2026-12-01", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("never", None),
        ("null", None),
        ("", None),
        (None, None),
    ],
)
async def test_when_it_is_due_is_an_aware_time(turn: Any, due: str | None, read: datetime | None) -> None:
    await turn.call("update_task", id=None, description="buy tea", status="open", due=due)

    [task] = await turn.pet.services.tasks.list("ana", PRIVATE)
    assert task.due == read


async def test_a_due_time_is_by_the_persons_clock_and_kept_in_utc(turn_of: Callable[..., Any]) -> None:
    turn = turn_of("ana", zone=PARIS)

    made = await turn.call(
        "update_task", id=None, description="buy tea", status="open", due="2026-12-01T10:00"
    )

    assert made["due"] == "2026-12-01T10:00+01:00"
    [task] = await turn.pet.services.tasks.list("ana", PRIVATE)
    assert task.due == datetime(2026, 12, 1, 9, tzinfo=UTC)


async def test_a_due_time_stays_unless_one_is_given_and_never_takes_it_away(turn: Any) -> None:
    made = await turn.call("update_task", id=None, description="buy tea", status="open", due="2026-12-01")

    kept = await turn.call("update_task", id=made["id"], description="", status="open", due=None)
    gone = await turn.call("update_task", id=made["id"], description="", status="open", due=" Never ")

    assert (kept["due"], gone["due"]) == ("2026-12-01T09:00+00:00", None)


@pytest.mark.parametrize("due", ["later", "2026-02-30", "5"])
async def test_a_due_time_that_cannot_be_read_is_to_be_given_again(turn: Any, due: str) -> None:
    told = await turn.call("update_task", id=None, description="buy tea", status="open", due=due)

    assert (told["ok"], told["try_again"]) == (False, True)
    assert told["error"].startswith(
        f"due: '{due}' is not a time that can be read; write for example 2026-01-10"
    )
    assert await turn.pet.services.tasks.list("ana", PRIVATE) == []


async def test_a_due_time_that_has_passed_is_taken_and_pointed_out(turn: Any) -> None:
    made = await turn.call("update_task", id=None, description="buy tea", status="open", due="2020-01-01")
    later = await turn.call("update_task", id=made["id"], description="", status="open", due="2030-01-01")
    done = await turn.call("update_task", id=made["id"], description="", status="done", due="2020-01-01")

    assert (made["ok"], made["due"]) == (True, "2020-01-01T09:00+00:00")
    assert "has passed" in made["note"]
    assert "note" not in later
    assert "note" not in done


async def test_a_task_is_finished_by_a_word_of_it(turn: Any) -> None:
    made = await turn.call("update_task", id=None, description="call the dentist", status="open")

    done = await turn.call("update_task", id=None, description="dentist", status="done")

    assert (done["id"], done["description"], done["status"]) == (made["id"], "call the dentist", "done")


async def test_where_two_tasks_can_be_meant_the_model_is_given_both(turn: Any) -> None:
    two = [
        await turn.call("update_task", id=None, description=description, status="open")
        for description in ("call the dentist", "thank the dentist")
    ]

    told = await turn.call("update_task", id=None, description="dentist", status="done")

    assert (told["ok"], told["try_again"]) == (False, True)
    for task in two:
        assert f"[task {task['id']}] {task['description']}" in told["error"]
    assert len(await turn.pet.services.tasks.list("ana", PRIVATE)) == 2


async def test_what_was_no_task_cannot_be_finished(turn: Any) -> None:
    told = await turn.call("update_task", id=None, description="tax return", status="done")

    assert not told["ok"]
    assert "nothing was changed" in told["error"]
    assert await turn.pet.services.tasks.list("ana", PRIVATE, done=True) == []


async def test_a_new_task_tells_which_it_resembles(turn: Any) -> None:
    first = await turn.call("update_task", id=None, description="water the plant", status="open")

    second = await turn.call("update_task", id=None, description="water the plants", status="open")

    assert second["action"] == "made"
    assert second["close"] == [{"id": first["id"], "description": "water the plant"}]


@pytest.mark.parametrize("description", ["", "   "])
async def test_a_new_task_needs_a_description(turn: Any, description: str) -> None:
    told = await turn.call("update_task", id=None, description=description, status="open")

    assert (told["ok"], told["try_again"]) == (False, True)
    assert "description" in told["error"]
    assert await turn.pet.services.tasks.list("ana", PRIVATE) == []


async def test_nobody_changes_anothers_task(turn: Any, turn_of: Callable[..., Any]) -> None:
    made = await turn.call("update_task", id=None, description="buy tea", status="open")

    told = await turn_of("bob").call("update_task", id=made["id"], description="x", status="done")

    assert not told["ok"]
    assert "no task" in told["error"]
    assert [task.description for task in await turn.pet.services.tasks.list("ana", PRIVATE)] == ["buy tea"]


async def test_a_task_belongs_to_the_place_it_was_asked_for_in(turn_of: Callable[..., Any]) -> None:
    place = Place(("acme", "general"))
    turn = turn_of("ana", place=place)

    await turn.call("update_task", id=None, description="buy tea", status="open")

    assert len(await turn.pet.services.tasks.list("ana", place)) == 1
    assert await turn.pet.services.tasks.list("ana", Place(("other",))) == []


async def test_no_task_is_kept_for_somebody_anonymous(turn_of: Callable[..., Any], rows: Any) -> None:
    told = await turn_of(None).call("update_task", id=None, description="buy tea", status="open")

    assert (told["ok"], "anonymous" in told["error"]) == (False, True)
    assert rows("SELECT * FROM tasks") == []
