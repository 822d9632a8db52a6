import pytest


def test_a_task_is_made_changed_and_finished(hachi):
    made = hachi("tasks", "update", "new", "--description", "buy milk", "--due", "2026-12-01", "--json").json
    assert (made["description"], made["status"]) == ("buy milk", "open")
    assert made["due"] == "2026-12-01T09:00:00+00:00"
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


def test_a_beginning_that_fits_no_task_or_several_changes_none(hachi):
    made = [
        hachi("tasks", "update", "new", "--description", f"read page {number}", "--json").json
        for number in range(2)
    ]
    ran = hachi("tasks", "update", "zzzz", "--status", "done")
    assert (ran.code, "no task 'zzzz'; `hachi tasks list --all`" in ran.complaint) == (1, True)
    ran = hachi("tasks", "update", "new", "--description", "page", "--status", "done")
    assert ran.code == 1
    assert all(f"[task {task['id'][:8]}]" in ran.complaint for task in made)


def test_new_is_another_task_unless_in_the_same_words(hachi):
    made = hachi("tasks", "update", "new", "--description", "call mum", "--json").json
    again = hachi("tasks", "update", "new", "--description", "Call mum!", "--json")
    assert again.json["id"] == made["id"]
    assert again.complaint.endswith(f"task {made['id'][:8]} has the same words, so there is no second one")
    other = hachi("tasks", "update", "new", "--description", "call mum on Monday", "--json")
    assert (other.json["id"] != made["id"], other.err) == (True, "")


def test_nothing_is_finished_that_was_no_task(hachi):
    ran = hachi("tasks", "update", "new", "--description", "swim", "--status", "done")
    assert (ran.code, "no task is open" in ran.complaint) == (1, True)


@pytest.mark.parametrize("word", ["never", "None"])
def test_a_due_time_is_taken_away(hachi, word):
    made = hachi("tasks", "update", "new", "--description", "swim", "--due", "2026-12-01", "--json").json
    assert hachi("tasks", "update", made["id"], "--due", word, "--json").json["due"] is None


def test_times_are_by_the_clock_of_the_person_where_they_told_it(hachi):
    made = hachi(
        "tasks", "update", "new", "--description", "swim", "--due", "2026-12-01T10:00", "--json"
    ).json
    assert made["due"] == "2026-12-01T10:00:00+00:00", "by the clock here, where none is told"
    hachi("context", "set", "timezone", "Asia/Tokyo")
    assert "2026-12-01 19:00" in hachi("tasks", "list").out
    moved = hachi("tasks", "update", made["id"], "--due", "2026-12-02T10:00", "--json").json
    assert moved["due"] == "2026-12-02T01:00:00+00:00"
    assert "2026-12-02 10:00" in hachi("tasks", "update", made["id"], "--status", "in_progress").out
    assert hachi("tasks", "list", "--json").json[0]["due"] == "2026-12-02T01:00:00+00:00"


@pytest.mark.parametrize("args", [["abcd1234"], ["new", "--status", "open"], ["new", "--description", " "]])
def test_a_change_that_says_nothing_is_wrong_usage(hachi, args):
    assert hachi("tasks", "update", *args).code == 2


def test_due_must_be_a_time(hachi):
    assert "'soon' is not a time" in hachi("tasks", "update", "new", "--due", "soon").complaint
