import re
import sqlite3
from contextlib import closing


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


def test_a_search_and_a_reindex_each_restore_what_a_damaged_index_lost(hachi, home):
    hachi("chat", "-m", "I broke my shoulder")
    (home / "index" / "edge_config.json").write_text("damaged")
    search = hachi("memories", "search", "shoulder")
    assert (search.code, "shoulder" in search.out) == (0, True)
    (home / "index" / "edge_config.json").write_text("damaged")
    assert hachi("reindex").complaint == "hachi: the index is new: 3 entries are in it"
    index = next(check for check in hachi("doctor", "--json").json["checks"] if check["name"] == "index")
    assert (index["ok"], "3 points" in index["detail"]) == (True, True)


def test_migrate_names_each_database_and_what_was_done(hachi, tmp_path):
    new, traces = tmp_path / "new", tmp_path / "traces.db"
    settings = {"HACHI_HOME": str(new), "HACHI_TRACES_URL": f"sqlite:///{traces}"}
    first, second = (hachi("migrate", **settings).out for _ in range(2))
    assert [line.partition(" to ")[0] for line in first.splitlines()] == [
        f"{new / 'hachi.db'}: brought",
        f"{traces}: brought",
    ]
    assert second == first.replace("brought to", "already at")
    for name in ("DATABASE_URL", "HACHI_TRACES_URL"):
        ran = hachi("migrate", **{name: "nonsense"})
        assert (ran.code, f"{name} is no URL" in ran.err) == (1, True)


def test_memories_and_decisions_are_counted(hachi):
    tags = [part for number in range(11) for part in ("--subject", f"tag{number}")]
    hachi("memories", "add", "Mickael skis", "--subject", "sport", "--at", "2026-01-10")
    hachi("memories", "add", "Mickael likes tea", "--type", "preference", "--at", "2026-01-11", *tags)
    hachi("memories", "add", "Mickael skis")
    hachi("memories", "add", "Lea swims", "--subject", "sport", "--user", "lea", "--at", "2026-01-11")
    with closing(sqlite3.connect(hachi.home / "hachi.db")) as database, database:
        counted = [("mickael", "extractions", 2), ("mickael", "applied", 1), ("lea", "extractions", 1)]
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
    assert "looked back" in table


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


def test_the_json_of_a_new_key(hachi):
    made = hachi("keys", "create", "web", "--service", "--admin", "--json").json
    assert made.pop("key").startswith("hachi-")
    assert made.pop("id")
    assert made.pop("created_at")
    never = {"last_used_at": None, "revoked_at": None}
    assert made == {"name": "web", "kind": "service", "user": None, "admin": True} | never
