import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

GIVEN_UP, CRASHED = "11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002"


@pytest.fixture
def stuck(hachi):
    """One job was given up, and one ended two processes."""
    with closing(sqlite3.connect(hachi.home / "hachi.db")) as database, database:
        database.executemany(
            "INSERT INTO work (id, kind, user_id, payload, attempts, crashes, due_at, created_at, last_error)"
            "VALUES (?, ?, 'lea', '{\"ids\": []}', ?, ?,"
            " '2026-01-01 00:00:00.000000', '2026-01-01 00:00:00.000000', ?)",
            [
                (GIVEN_UP, "store_memories", 8, 0, "the disk is full"),
                (CRASHED, "forget_outside", 0, 2, "its process ended while it ran (2 times)"),
            ],
        )
    return hachi


def test_doctor_fails_on_work_that_was_given_up_and_says_what_to_do(stuck):
    ran = stuck("doctor")
    assert ran.code == 1
    assert "✗ work       1 given up; `hachi jobs list`" in ran.out
    stuck("jobs", "drop", GIVEN_UP, "--yes")
    ran = stuck("doctor")
    assert (ran.code, "1 may be what ends the process" in ran.out) == (1, True)


def test_jobs_are_listed_without_what_they_are_about(stuck):
    table = stuck("jobs", "list").out
    for shown in ("11111111", "store_memories", "lea", "given up", "the disk is full", "22222222", "waiting"):
        assert shown in table
    [job] = stuck("jobs", "list", "--given-up", "--json").json
    assert (job["id"], job["state"], job["failures"], job["crashes"]) == (GIVEN_UP, "given up", 8, 0)
    assert "payload" not in job


def test_what_was_given_up_is_tried_again_all_of_it_or_one(stuck):
    assert stuck("jobs", "retry").complaint == "hachi: 1 job is due now"
    assert stuck("jobs", "list", "--given-up").complaint == "hachi: no work is given up"
    assert stuck("jobs", "retry", "22222222", "--json").json == {"due": 1}
    assert [job["crashes"] for job in stuck("jobs", "list", "--json").json] == [0, 0]
    assert "no job 'nonsense'" in stuck("jobs", "retry", "nonsense").complaint


def test_a_dropped_job_is_gone_but_none_that_finishes_a_deletion_is_dropped(stuck):
    assert stuck("jobs", "drop", "11111111").code == 2, "without a terminal it needs --yes"
    assert stuck("jobs", "drop", "11111111", "--yes").out == "dropped 11111111: store_memories of lea\n"
    refused = stuck("jobs", "drop", "22222222", "--yes")
    assert (refused.code, "finishes a deletion" in refused.complaint) == (1, True)
    assert [job["id"] for job in stuck("jobs", "list", "--json").json] == [CRASHED]


def test_doctor_tells_what_waits_for_model_calls_and_until_when(hachi, monkeypatch):
    monkeypatch.setenv("HACHI_UPKEEP_PER_DAY", "3")
    now = datetime.now(UTC)
    days = [now + timedelta(days=n) for n in range(2)]  # the day may end meanwhile
    with closing(sqlite3.connect(hachi.home / "hachi.db")) as database, database:
        database.executemany(
            "INSERT INTO figures (user_id, name, value) VALUES ('lea', ?, 3)",
            [(f"upkeep calls {day:%Y-%m-%d}",) for day in days],
        )
        database.execute(
            "INSERT INTO work (id, kind, user_id, payload, due_at, created_at) VALUES (?, 'look_back', 'lea',"
            ' \'{"conversation": "dm:lea", "place": []}\', ?, ?)',
            (GIVEN_UP, f"{days[1]:%F %T}.000000", f"{now:%F %T}.000000"),
        )
    ran = hachi("doctor")
    assert ran.code == 0
    assert "1 waiting, 1 of them for the next model calls, until 20" in ran.out
    assert " 00:00 UTC at the latest (HACHI_UPKEEP_PER_HOUR, HACHI_UPKEEP_PER_DAY)" in ran.out
