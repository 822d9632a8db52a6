"""What the operator asks for: purge, migrate, stats, keys, jobs, the embedder."""

import re
import sqlite3
from contextlib import closing

import pytest


def expire(home, content):
    with closing(sqlite3.connect(home / "hachi.db")) as database, database:
        changed = database.execute(
            "UPDATE memories SET expires_at = '2026-01-01 00:00:00.000000' WHERE content = ?", (content,)
        )
        assert changed.rowcount == 1


def test_purge_shows_what_goes_and_why(hachi, home):
    for content, importance in (
        ("Mickael hums", "0.4"),
        ("Mickael skis", "0.9"),
        ("The lift is broken", "0.9"),
    ):
        hachi("memories", "add", content, "--importance", importance)
    assert hachi("purge").out == "0 memories deleted\n"
    expire(home, "The lift is broken")
    cap = {"HACHI_MAX_MEMORIES": "1"}
    would = hachi("purge", "--dry-run", "--json", **cap).json
    reasons = {memory["content"]: memory["reason"] for memory in would["memories"]}
    assert reasons == {"The lift is broken": "expired", "Mickael hums": "over the cap"}
    assert hachi("purge", "--dry-run", **cap).out.endswith("2 memories would be deleted\n")
    table = hachi("purge", **cap).out
    for shown in ("The lift is broken", "mickael", "over the cap", "2 memories deleted\n"):
        assert shown in table
    assert [memory["content"] for memory in hachi("memories", "list", "--json").json] == ["Mickael skis"]
    assert hachi("purge", "--json").json == {"count": 0, "dry_run": False, "memories": []}


def test_a_purge_does_the_hourly_and_daily_jobs_too(hachi, rows, monkeypatch):
    monkeypatch.setattr("memory.sql.changes.LATEST", 1)
    for text in ("I ski", "I row"):
        hachi("chat", "-m", text)
    rows("UPDATE traces SET started_at = '2020-01-01 00:00:00'")
    assert len(rows("SELECT * FROM changes")) > 1
    hachi("purge")
    assert (len(rows("SELECT * FROM changes")), rows("SELECT * FROM traces")) == (1, [])


def test_migrate_names_the_database_and_what_was_done(hachi, tmp_path):
    first, second = (hachi("migrate", HACHI_HOME=str(tmp_path / "new")).out for _ in range(2))
    assert first.startswith(f"{tmp_path / 'new' / 'hachi.db'}: brought to ")
    assert second == first.replace("brought to", "already at")
    ran = hachi("migrate", DATABASE_URL="nonsense")
    assert (ran.code, "DATABASE_URL is no URL" in ran.err) == (1, True)


def test_memories_and_decisions_are_counted(hachi):
    tags = [part for number in range(11) for part in ("--subject", f"tag{number}")]
    hachi("memories", "add", "Mickael skis", "--subject", "sport", "--at", "2026-01-10")
    hachi("memories", "add", "Mickael likes tea", "--type", "preference", "--at", "2026-01-11", *tags)
    hachi("memories", "add", "Mickael skis")
    hachi("memories", "add", "Lea swims", "--subject", "sport", "--user", "lea", "--at", "2026-01-11")
    with closing(sqlite3.connect(hachi.home / "hachi.db")) as database, database:
        counted = [("mickael", "consolidations", 2), ("mickael", "applied", 1), ("lea", "consolidations", 1)]
        database.executemany("INSERT INTO figures VALUES (?, ?, ?)", counted)
    counts = hachi("stats", "--json").json
    assert counts.pop("subjects") == {"sport": 2} | {f"tag{number}": 1 for number in range(11)}
    assert counts == {
        "memories": 3,
        "types": {"fact": 2, "preference": 1},
        "days": {"2026-01-11": 2, "2026-01-10": 1},
        "decisions": {"add": 3, "merge": 0, "replace": 0, "ignore": 1},
        "look_backs": {"applied": 1, "failed": 2},
    }
    counts = hachi("stats", "--user", "lea", "--json").json
    assert (counts["memories"], counts["subjects"]) == (1, {"sport": 1})
    assert counts["decisions"]["add"] == 1
    assert counts["look_backs"] == {"applied": 0, "failed": 1}
    table = hachi("stats").out
    assert ("tag8" in table, "tag10" in table, "… and 2 more" in table) == (True, False, True)
    assert "consolidated" in table


def test_keys_are_made_listed_and_revoked(hachi):
    assert hachi("keys", "list").complaint.startswith("hachi: there is no key yet")
    ran = hachi("keys", "create", "laptop", "--user", "ana")
    [secret] = ran.out.splitlines()
    assert secret.startswith("hachi-")
    assert "not shown again" in ran.complaint
    assert secret not in hachi("keys", "list").out
    [listed] = hachi("keys", "list", "--json").json
    assert re.search(rf"{listed['id'][:8]}\s+laptop\s+user\s+ana", hachi("keys", "list").out)
    revoked = hachi("keys", "revoke", listed["id"][:8])
    assert revoked.out == f"revoked {listed['id'][:8]}: laptop\n"
    assert hachi("keys", "list", "--json").json[0]["revoked_at"]
    again = hachi("keys", "revoke", listed["id"][:8])
    assert (again.code, "hachi keys list" in again.complaint) == (1, True)


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
    assert stuck("jobs", "drop", "11111111").code == 2, "without a terminal it needs --yes"
    assert stuck("jobs", "drop", "11111111", "--yes").out == "dropped 11111111: store_memories of lea\n"
    assert [job["id"] for job in stuck("jobs", "list", "--json").json] == [CRASHED]
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
