"""The tool that keeps track of what somebody has to do. `tests/memory/people` proves which task is meant."""

from typing import Any
from zoneinfo import ZoneInfo

from memory.audience import PRIVATE, Place
from memory.records import Task

PARIS = ZoneInfo("Europe/Paris")


async def change(turn: Any, description: str = "buy tea", **given: Any) -> dict[str, Any]:
    return await turn.call(
        "update_task", **{"id": None, "description": description, "status": "open"} | given
    )


async def tasks(turn: Any, place: Place = PRIVATE, *, done: bool = False) -> list[Task]:
    return await turn.pet.components.tasks.list("ana", place, done=done)


async def test_a_task_is_made_changed_and_done(turn):
    made = await change(turn)
    [task] = await tasks(turn)
    answer = {"id": task.id[:8], "action": "made", "description": "buy tea", "status": "open", "due": None}
    assert made == answer | {"ok": True}

    changed = await change(
        turn, "buy green tea", id=f"[task {made['id']}]", status="in_progress", due="2026-12-01T10:00Z"
    )
    new = {"description": "buy green tea", "status": "in_progress", "due": "2026-12-01T10:00+00:00"}
    new |= {"zone": "UTC"}
    assert changed == made | new | {"action": "changed"}
    same = await change(turn, "", id=made["id"], status=None)
    assert same == changed | {"action": "unchanged"}

    done = await change(turn, "", id=made["id"], status="done")
    assert (done["description"], done["status"]) == ("buy green tea", "done")
    assert await tasks(turn) == []


async def test_arguments_may_be_left_out_or_blank(turn):
    made = await turn.call("update_task", description="buy tea")
    again = await change(turn, "Buy tea ", id="null", status=None, due="")
    assert (made["ok"], made["status"], again["id"]) == (True, "open", made["id"])
    assert len(await tasks(turn)) == 1


async def test_due_times_are_read_by_the_persons_clock(turn_of):
    """How they are read, and what ends one, `tests/memory/people` proves."""
    made = await change(turn_of("ana", zone=PARIS), due="2026-12-01T10:00:00")
    assert (made["due"], made["zone"]) == ("2026-12-01T10:00+01:00", "Europe/Paris")
    gone = await change(turn_of("ana", zone=PARIS), "", id=made["id"], due=" Never ")
    assert (gone["due"], "zone" in gone) == (None, False)


async def test_a_due_time_that_has_passed_is_kept_and_pointed_out(turn):
    made = await change(turn, due="2020-01-01")
    assert (made["ok"], made["due"]) == (True, "2020-01-01T09:00+00:00")
    assert "has passed" in made["note"]
    assert "note" not in await change(turn, "", id=made["id"], due="2030-01-01")
    assert "note" not in await change(turn, "", id=made["id"], status="done", due="2020-01-01")


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"id": 7}, "id: "),
    ({"id": ["1a2b3c4d"]}, "id: "),
    ({"due": "later"}, "due: 'later' is not a time that can be read; "),
    ({"due": "2026-02-30"}, "due: '2026-02-30' is not a time that can be read; "),
    ({"description": "  "}, "description: say what"),
    ({"description": "tax return", "status": "done"}, "no task is open"),
    ({"id": "ffffffff"}, "no task 'ffffffff'"),
)


async def test_a_wrong_call_changes_nothing_and_says_what_to_change(turn):
    for given, error in WRONG:
        told = await change(turn, **given)
        assert (told["ok"], told["try_again"]) == (False, True)
        assert told["error"].startswith(error)
        assert await tasks(turn, done=True) == []


async def test_the_model_is_shown_the_tasks_that_can_be_meant(turn):
    two = [await change(turn, description) for description in ("water the plant", "water the plants")]
    assert two[1]["close"] == [{"id": two[0]["id"], "description": "water the plant"}]

    told = await change(turn, "water", status="done")

    assert (told["ok"], told["try_again"]) == (False, True)
    for task in two:
        assert f"[task {task['id']}] {task['description']}" in told["error"]
    assert len(await tasks(turn)) == 2


async def test_nobody_anonymous_has_tasks(turn_of):
    """Whose a task is and where it is read, `tests/memory/people/test_tasks.py` proves."""
    nobody = await change(turn_of(None), "feed the cat")
    assert (nobody["ok"], "anonymous" in nobody["error"]) == (False, True)
