"""The tool that keeps track of what somebody has to do."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from memory.audience import Place


async def test_a_task_is_made_changed_and_done(turn: Any) -> None:
    made = await turn.call("update_task", id=None, description="buy tea", status="open")
    assert made == {"ok": True, "id": made["id"], "description": "buy tea", "status": "open", "due": None}

    changed = await turn.call(
        "update_task",
        id=made["id"],
        description="buy green tea",
        status="in_progress",
        due="2026-12-01T10:00Z",
    )
    assert (changed["id"], changed["description"]) == (made["id"], "buy green tea")
    assert (changed["status"], changed["due"]) == ("in_progress", "2026-12-01T10:00:00+00:00")

    done = await turn.call("update_task", id=made["id"][:8], description="", status="done")
    assert (done["description"], done["status"]) == ("buy green tea", "done")
    assert await turn.pet.tasks.list("ana") == []


@pytest.mark.parametrize("id", [None, "", "null"])
async def test_a_new_task_may_be_asked_for_in_several_ways(turn: Any, id: str | None) -> None:
    made = await turn.call("update_task", id=id, description="buy tea", status="open")

    assert made["ok"]


async def test_what_is_left_out_is_done_without(turn: Any) -> None:
    made = await turn.call("update_task", description="buy tea")

    assert (made["ok"], made["status"]) == (True, "open")


async def test_the_same_task_twice_is_one(turn: Any) -> None:
    first = await turn.call("update_task", id=None, description="buy tea", status="open")
    again = await turn.call("update_task", id=None, description="Buy tea ", status="in_progress")

    assert first["id"] == again["id"]
    assert len(await turn.pet.tasks.list("ana")) == 1


@pytest.mark.parametrize(
    ("due", "read"),
    [
        ("2026-12-01T10:00:00+02:00", datetime(2026, 12, 1, 8, tzinfo=UTC)),
        ("2026-12-01T10:00:00", datetime(2026, 12, 1, 10, tzinfo=UTC)),
        ("2026-12-01", datetime(2026, 12, 1, tzinfo=UTC)),
        ("null", None),
        ("", None),
        (None, None),
    ],
)
async def test_when_it_is_due_is_an_aware_time(turn: Any, due: str | None, read: datetime | None) -> None:
    await turn.call("update_task", id=None, description="buy tea", status="open", due=due)

    [task] = await turn.pet.tasks.list("ana")
    assert task.due == read


@pytest.mark.parametrize("description", ["", "   "])
async def test_a_new_task_needs_a_description(turn: Any, description: str) -> None:
    told = await turn.call("update_task", id=None, description=description, status="open")

    assert (told["ok"], told["try_again"]) == (False, True)
    assert "description" in told["error"]
    assert await turn.pet.tasks.list("ana") == []


async def test_nobody_changes_anothers_task(turn: Any, turn_of: Callable[..., Any]) -> None:
    made = await turn.call("update_task", id=None, description="buy tea", status="open")

    told = await turn_of("bob").call("update_task", id=made["id"], description="x", status="done")

    assert not told["ok"]
    assert "no task" in told["error"]
    assert [task.description for task in await turn.pet.tasks.list("ana")] == ["buy tea"]


async def test_a_task_belongs_to_the_place_it_was_asked_for_in(turn_of: Callable[..., Any]) -> None:
    place = Place(("acme", "general"))
    turn = turn_of("ana", place=place)

    await turn.call("update_task", id=None, description="buy tea", status="open")

    assert len(await turn.pet.tasks.list("ana", place=place.key)) == 1
    assert await turn.pet.tasks.list("ana", place="place:other") == []


async def test_no_task_is_kept_for_somebody_anonymous(turn_of: Callable[..., Any], rows: Any) -> None:
    told = await turn_of(None).call("update_task", id=None, description="buy tea", status="open")

    assert (told["ok"], "anonymous" in told["error"]) == (False, True)
    assert rows("SELECT * FROM tasks") == []
