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
        ("The café is closed", "0.9"),
    ):
        hachi("memories", "add", content, "--importance", importance)
    assert hachi("purge").out == "0 memories deleted\n"
    expire(home, "The café is closed")
    table = hachi("purge").out
    assert "The café is closed" in table
    assert "mickael" in table
    assert table.endswith("1 memory deleted\n")
    expire(home, "The lift is broken")
    cap = {"HACHI_MAX_MEMORIES": "1"}
    would = hachi("purge", "--dry-run", "--json", **cap).json
    reasons = {memory["content"]: memory["reason"] for memory in would["memories"]}
    assert reasons == {"The lift is broken": "expired", "Mickael hums": "over the cap"}
    assert hachi("purge", "--dry-run", **cap).out.endswith("2 memories would be deleted\n")
    assert len(hachi("memories", "list", "--json").json) == 2
    assert hachi("purge", "--json", **cap).json["count"] == 2
    assert [memory["content"] for memory in hachi("memories", "list", "--json").json] == ["Mickael skis"]
    assert hachi("purge", "--json").json == {"count": 0, "dry_run": False, "memories": []}


def test_reindex_restores_what_a_damaged_index_lost(hachi, home):
    hachi("chat", "-m", "I broke my shoulder")
    (home / "index" / "edge_config.json").write_text("damaged")
    search = hachi("memories", "search", "shoulder")
    assert (search.code, "hachi reindex" in search.complaint) == (1, True)
    assert hachi("reindex").complaint == "hachi: the index is new: 4 entries are in it"
    assert "shoulder" in hachi("memories", "search", "shoulder").out


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
