import sqlite3
from contextlib import closing

import pytest


@pytest.fixture(scope="module")
def filled(shared):
    tags = [part for number in range(11) for part in ("--subject", f"tag{number}")]
    shared("memories", "add", "Mickael skis", "--subject", "sport", "--at", "2026-01-10")
    shared("memories", "add", "Mickael likes tea", "--type", "preference", "--at", "2026-01-11", *tags)
    shared("memories", "add", "Mickael skis")
    shared("memories", "add", "Lea swims", "--subject", "sport", "--user", "lea", "--at", "2026-01-11")
    with closing(sqlite3.connect(shared.home / "hachi.db")) as database, database:
        counted = [("mickael", "extractions", 2), ("mickael", "applied", 1), ("lea", "extractions", 1)]
        database.executemany("INSERT INTO figures VALUES (?, ?, ?)", counted)
    return shared


def test_memories_and_decisions_are_counted(filled):
    counts = filled("stats", "--json").json
    assert counts.pop("subjects") == {"sport": 2} | {f"tag{number}": 1 for number in range(11)}
    assert counts == {
        "memories": 3,
        "types": {"fact": 2, "preference": 1},
        "days": {"2026-01-11": 2, "2026-01-10": 1},
        "decisions": {"add": 3, "merge": 0, "replace": 0, "ignore": 1},
        "look_backs": {"applied": 1, "failed": 2},
    }
    counts = filled("stats", "--user", "lea", "--json").json
    assert (counts["memories"], counts["subjects"]) == (1, {"sport": 1})
    assert counts["decisions"]["add"] == 1
    assert counts["look_backs"] == {"applied": 0, "failed": 1}


def test_the_table_shows_the_first_of_many(filled):
    table = filled("stats").out
    assert "tag8" in table
    assert "tag10" not in table
    assert "… and 2 more" in table
    assert "looked back" in table
