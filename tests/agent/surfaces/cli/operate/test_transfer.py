"""The way back, as an operator types it."""


def test_a_backup_is_restored_into_an_empty_folder(hachi, tmp_path, monkeypatch):
    hachi("memories", "add", "Mickael skis")
    traces = {"HACHI_TRACES_URL": f"sqlite:///{tmp_path / 'traces.db'}"}
    hachi("chat", "-m", "hello", **traces)
    told = hachi("backup", str(tmp_path / "copy"), **traces).complaint
    assert "are in" in told
    assert f"`hachi restore {tmp_path / 'copy'}` brings them back" in told
    refused = hachi("restore", str(tmp_path / "copy"), **traces)
    assert (refused.code, "--yes replaces it" in refused.complaint) == (1, True)
    (tmp_path / "traces.db").unlink()
    assert "are back" in hachi("restore", str(tmp_path / "copy"), "--yes", **traces).complaint
    assert [one["content"] for one in hachi("memories", "list", "--json").json] == ["Mickael skis"]
    assert len(hachi("traces", "ls", "--json", **traces).json) == 1


def test_postgresql_has_its_own_tools(hachi, tmp_path):
    ran = hachi("backup", str(tmp_path / "copy"), DATABASE_URL="postgresql://hachi:secret@127.0.0.1:1/hachi")
    assert (ran.code, "pg_dump" in ran.complaint, "secret" in ran.complaint) == (1, True, False)


def test_everything_moves_to_another_database_and_is_compared(hachi, tmp_path):
    hachi("memories", "add", "Mickael skis")
    traces = {"HACHI_TRACES_URL": f"sqlite:///{tmp_path / 'traces.db'}"}
    hachi("chat", "-m", "hello", **traces)
    url = f"sqlite:///{tmp_path / 'new.db'}"
    ran = hachi("move", "--to", url, "--json", **traces)
    rows = {table["name"]: table["rows"] for table in ran.json}
    assert rows.items() >= {"memories": 1, "messages": 2, "users": 1}.items()
    assert min(rows["traces"], rows["trace_bodies"]) > 0
    assert f"{tmp_path / 'new.db'} and was compared: set DATABASE_URL to it" in ran.complaint
    assert "unset HACHI_TRACES_URL" in ran.complaint
    assert "Mickael skis" in hachi("memories", "search", "skis", DATABASE_URL=url).out
    again = hachi("move", "--to", url)
    assert (again.code, "holds other data" in again.complaint) == (1, True)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    ran = hachi("move", "--to", other, "--qdrant", "http://127.0.0.1:1")
    assert (ran.code, "set DATABASE_URL and QDRANT_URL to it" in ran.err, "Qdrant" in ran.err) == (
        1,
        True,
        True,
    )
    assert [one["content"] for one in hachi("memories", "list", "--json", DATABASE_URL=other).json] == [
        "Mickael skis"
    ]
    assert "--to is no URL" in hachi("move", "--to", "nowhere").complaint


def test_a_home_without_a_database_is_not_moved(hachi, tmp_path):
    nowhere = tmp_path / "nowhere"
    ran = hachi("move", "--to", f"sqlite:///{tmp_path / 'new.db'}", HACHI_HOME=str(nowhere))
    assert (ran.code, ran.complaint) == (
        1,
        f"hachi: there is no database {nowhere / 'hachi.db'}, so there is nothing to move",
    )
    assert not (tmp_path / "new.db").exists()
    assert not (nowhere / "hachi.db").exists()
