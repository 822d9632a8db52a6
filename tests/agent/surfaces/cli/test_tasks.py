import pytest


def test_a_task_is_made_changed_and_finished(hachi):
    made = hachi("tasks", "update", "new", "--description", "buy milk", "--due", "2026-12-01", "--json").json
    assert (made["description"], made["status"]) == ("buy milk", "open")
    assert made["due"] == "2026-12-01T00:00:00+00:00"
    changed = hachi("tasks", "update", made["id"][:8], "--status", "in_progress", "--json").json
    assert (changed["id"], changed["description"], changed["status"]) == (
        made["id"],
        "buy milk",
        "in_progress",
    )
    moved = hachi("tasks", "update", made["id"], "--due", "2026-12-02T10:00", "--json").json
    assert (moved["status"], moved["due"]) == ("in_progress", "2026-12-02T10:00:00+00:00")
    hachi("tasks", "update", made["id"], "--status", "done")
    assert hachi("tasks", "list", "--json").json == []
    assert [task["status"] for task in hachi("tasks", "list", "--all", "--json").json] == ["done"]


def test_the_table_shows_when_it_is_due(hachi):
    shown = hachi("tasks", "update", "new", "--description", "buy milk", "--due", "2026-12-01T09:00").out
    assert "2026-12-01 09:00" in shown
    assert "buy milk" in hachi("tasks", "list").out


def test_no_tasks_is_said(hachi):
    assert hachi("tasks", "list").complaint == "hachi: no open tasks for 'mickael'"
    assert hachi("tasks", "list", "--all").complaint == "hachi: no tasks for 'mickael'"


def test_a_task_is_its_users_alone(hachi):
    made = hachi("tasks", "update", "new", "--description", "swim", "--user", "lea", "--json").json
    ran = hachi("tasks", "update", made["id"], "--status", "done")
    assert ran.code == 1
    assert "`hachi tasks list --all` shows the ids" in ran.complaint


@pytest.mark.parametrize("args", [["abcd1234"], ["new", "--status", "open"], ["new", "--description", " "]])
def test_a_change_that_says_nothing_is_wrong_usage(hachi, args):
    assert hachi("tasks", "update", *args).code == 2


def test_due_must_be_a_time(hachi):
    assert "'soon' is no time" in hachi("tasks", "update", "new", "--due", "soon").complaint
