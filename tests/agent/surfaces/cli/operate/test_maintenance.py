import sqlite3


def test_purge_says_what_went(hachi):
    hachi("memories", "add", "The café is closed", "--ttl", "1h", "--at", "2999-01-01")
    hachi("memories", "add", "Mickael skis")
    assert hachi("purge").out == "0 memories deleted\n"


def test_what_has_expired_is_shown_and_gone(hachi, home):
    for content in ("The café is closed", "The lift is broken"):
        hachi("memories", "add", content, "--ttl", "7d")
    expire(home, "The café is closed")
    table = hachi("purge").out
    assert "The café is closed" in table
    assert "mickael" in table
    assert table.endswith("1 memory deleted\n")
    expire(home, "The lift is broken")
    gone = hachi("purge", "--json").json
    assert gone["count"] == 1
    assert [memory["content"] for memory in gone["memories"]] == ["The lift is broken"]
    assert hachi("purge", "--json").json == {"count": 0, "dry_run": False, "memories": []}


def test_a_dry_run_says_what_would_go_and_why_and_takes_nothing(hachi, home, monkeypatch):
    monkeypatch.setenv("HACHI_MAX_MEMORIES", "1")
    for content, importance in (
        ("Mickael hums", "0.4"),
        ("Mickael skis", "0.9"),
        ("The lift is broken", "0.9"),
    ):
        hachi("memories", "add", content, "--importance", importance)
    expire(home, "The lift is broken")
    would = hachi("purge", "--dry-run", "--json").json
    reasons = {memory["content"]: memory["reason"] for memory in would["memories"]}
    assert reasons == {"The lift is broken": "expired", "Mickael hums": "over the cap"}
    assert hachi("purge", "--dry-run").out.endswith("2 memories would be deleted\n")
    assert len(hachi("memories", "list", "--json").json) == 2
    assert hachi("purge", "--json").json["count"] == 2
    assert [memory["content"] for memory in hachi("memories", "list", "--json").json] == ["Mickael skis"]


def expire(home, content):
    with sqlite3.connect(home / "hachi.db") as database:
        changed = database.execute(
            "UPDATE memories SET expires_at = '2026-01-01 00:00:00.000000' WHERE content = ?", (content,)
        )
        assert changed.rowcount == 1
    database.close()


def test_reindex_makes_findable_again_what_the_index_lost(hachi, home):
    hachi("chat", "-m", "I broke my shoulder")
    (home / "index" / "edge_config.json").write_text("damaged")
    search = hachi("memories", "search", "shoulder")
    assert search.code == 1
    assert "hachi reindex" in search.complaint
    assert hachi("reindex").complaint == "hachi: the index is new: 4 entries are in it"
    assert "shoulder" in hachi("memories", "search", "shoulder").out


def test_migrate_says_what_was_done(hachi, home):
    first, second = hachi("migrate").out, hachi("migrate").out
    assert first.startswith(f"{home / 'hachi.db'}: brought to ")
    assert second == first.replace("brought to", "already at")


def test_migrate_tells_of_a_database_it_cannot_use(hachi, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "nonsense")
    ran = hachi("migrate")
    assert ran.code == 1
    assert "DATABASE_URL is no URL" in ran.complaint


def test_migrate_brings_the_database_of_traces_along(hachi, home, tmp_path, monkeypatch):
    monkeypatch.setenv("HACHI_TRACES_URL", f"sqlite:///{tmp_path / 'traces.db'}")
    record, traces = hachi("migrate").out.splitlines()
    assert record.startswith(f"{home / 'hachi.db'}: ")
    assert traces.startswith(f"{tmp_path / 'traces.db'}: brought to ")
    monkeypatch.setenv("HACHI_TRACES_URL", "nonsense")
    assert "HACHI_TRACES_URL is no URL" in hachi("migrate").complaint
