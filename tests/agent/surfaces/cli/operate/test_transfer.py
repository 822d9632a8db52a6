"""Erasing, exporting, importing; backups and moves."""

import json
import sqlite3
import stat
from contextlib import closing

from agent.background.consolidation.learn_imported import LearningCost, LearningResult
from agent.companion import Companion
from agent.types import Usage

# Erasing.


def test_erasing_shows_what_goes_asks_and_prints_a_receipt(hachi, home):
    hachi("chat", "--user", "ana", stdin=b"I broke my shoulder\n")
    hachi("memories", "add", "Ana skis", "--user", "ana", "--place", "acme/general")
    hachi("memories", "add", "Mickael rows")
    erase = ("memories", "erase", "--user", "ana")
    refused = hachi(*erase)
    assert (refused.code, "--yes" in refused.complaint) == (2, True)
    ran = hachi(*erase, stdin=b"n\n", typed=True)
    assert (ran.code, "messages" in ran.out, "nothing was erased" in ran.err) == (1, True, True)
    assert "Erase all of this of ana for good?" in ran.out
    assert hachi("memories", "list", "--user", "ana", "--json").json != []
    ran = hachi(*erase, stdin=b"y\n", typed=True)
    assert (ran.code, "verified: nothing of theirs is left" in ran.out) == (0, True)
    assert hachi("memories", "list", "--user", "ana", "--json").json == []
    assert "ana" not in (home / "hachi.log").read_text()
    assert [memory["content"] for memory in hachi("memories", "list", "--json").json] == ["Mickael rows"]
    receipt = hachi("memories", "erase", "--user", "mickael", "--yes", "--json").json
    assert (receipt["user"], receipt["verified"], receipt["left"]) == ("mickael", True, [])
    assert receipt["removed"]["memories"] == 1
    assert receipt["at"].endswith("+00:00")


def test_an_erasure_that_is_not_verified_exits_with_1(hachi, home):
    hachi("chat", "--user", "ana", "-m", "I broke my shoulder")
    with closing(sqlite3.connect(home / "hachi.db")) as database, database:
        database.execute(
            "CREATE TRIGGER back AFTER DELETE ON users "
            "BEGIN INSERT INTO users (id, created_at) VALUES ('ana', OLD.created_at); END"
        )
    ran = hachi("memories", "erase", "--user", "ana", "--yes")
    assert ran.code == 1
    assert "STILL THERE: 1 person" in ran.out
    assert "not verified" in ran.out


# Exporting and importing.


def test_an_export_brings_the_same_memories_into_an_empty_home(hachi, shared, tmp_path):
    shared("chat", stdin=b"I broke my shoulder\nMy sister is called Lea\n")
    shared("memories", "add", "Mickael skis", "--subject", "sport", "--at", "2026-01-10", "--ttl", "900d")
    shared("memories", "add", "The meeting room is green", "--place", "acme/general")
    shared("memories", "add", "Lea swims", "--user", "lea")
    shared("tasks", "update", "new", "--description", "buy skis")
    file = tmp_path / "mickael.json"
    written = shared("memories", "export", str(file)).complaint
    assert written == f"hachi: 4 memories and 4 messages are in {file}"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "Lea swims" not in file.read_text()
    counts, _, left = hachi("memories", "import", str(file)).complaint.partition("; not imported: ")
    assert (counts, left) == (
        "hachi: 4 messages and 4 memories were read; 4 messages and 4 memories of these are new",
        "tasks (1)",
    )
    assert (
        "; 0 messages and 0 memories of these are new"
        in hachi("memories", "import", "-", stdin=file.read_bytes()).complaint
    )
    own, theirs = (hachi_("memories", "list", "--json").json for hachi_ in (hachi, shared))
    unlike = {"last_accessed_at", "id"}
    kept = [[{k: v for k, v in one.items() if k not in unlike} for one in found] for found in (own, theirs)]
    assert sorted(kept[0], key=str) == sorted(kept[1], key=str)
    place = json.loads(shared("memories", "export", "--place", "acme/general").out)
    assert [memory["content"] for memory in place["memories"]] == ["The meeting room is green"]


def test_an_export_that_cannot_be_written_leaves_nothing(shared, tmp_path):
    ran = shared("memories", "export", str(tmp_path / "nowhere" / "file.json"))
    assert ran.code == 1
    assert ran.complaint.endswith("file.json: No such file or directory")
    (tmp_path / "folder").mkdir()
    assert shared("memories", "export", str(tmp_path / "folder")).code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


MESSAGE = {"author": "lea", "text": "hello", "sent_at": "2026-01-10T09:30:00Z"}


def test_a_transcript_is_imported(hachi):
    given = json.dumps(
        [MESSAGE | {"text": "I broke my shoulder"}, MESSAGE | {"text": "Oh \ud800 no"}]
    ).encode()
    for new in (2, 0):
        told = hachi("memories", "import", stdin=given).complaint
        assert told == (
            f"hachi: 2 messages and 0 memories were read; {new} messages and 0 memories of these are new"
        )
    assert "lea: I broke my shoulder" in hachi("memories", "search", "shoulder").out


def test_a_bad_file_is_one_line_and_nothing_is_imported(shared):
    ran = shared("memories", "import", "--user", "eve", stdin=json.dumps([{"author": "lea"}]).encode())
    assert ran.code == 1
    assert "message 1 cannot be read: it has no 'sent_at'; nothing was imported" in ran.complaint
    assert json.loads(shared("memories", "export", "--user", "eve").out)["messages"] == []


def test_a_backup_is_restored_into_an_empty_folder(hachi, tmp_path, monkeypatch):
    hachi("memories", "add", "Mickael skis")
    hachi("chat", "-m", "hello")
    told = hachi("backup", str(tmp_path / "copy")).complaint
    assert "are in" in told
    assert f"`hachi restore {tmp_path / 'copy'}` brings them back" in told
    refused = hachi("restore", str(tmp_path / "copy"))
    assert (refused.code, "--yes replaces it" in refused.complaint) == (1, True)
    assert "are back" in hachi("restore", str(tmp_path / "copy"), "--yes").complaint
    assert [one["content"] for one in hachi("memories", "list", "--json").json] == ["Mickael skis"]
    assert len(hachi("traces", "ls", "--json").json) == 1


def test_postgresql_has_its_own_tools(hachi, tmp_path):
    ran = hachi("backup", str(tmp_path / "copy"), DATABASE_URL="postgresql://hachi:secret@127.0.0.1:1/hachi")
    assert (ran.code, "pg_dump" in ran.complaint, "secret" in ran.complaint) == (1, True, False)


def test_everything_moves_to_another_database_and_is_compared(hachi, tmp_path):
    hachi("memories", "add", "Mickael skis")
    hachi("chat", "-m", "hello")
    url = f"sqlite:///{tmp_path / 'new.db'}"
    ran = hachi("move", "--to", url, "--json")
    rows = {table["name"]: table["rows"] for table in ran.json}
    assert rows.items() >= {"memories": 1, "messages": 2, "users": 1}.items()
    assert min(rows["traces"], rows["trace_bodies"]) > 0
    assert f"{tmp_path / 'new.db'} and was compared: set DATABASE_URL to it" in ran.complaint
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


def test_an_export_is_learned_from_and_its_cost_is_told(hachi, monkeypatch, home):
    lines = (
        '{"role": "user", "content": "I play the cello."}\n{"role": "assistant", "content": "Since when?"}'
    )
    assert (
        "no model consolidates here" in hachi("import", "--learn", "--user", "ana", stdin=lines.encode()).err
    )

    async def preview(pet, *, user):
        return LearningCost(1, 2, 1, 2_050, 400, "tiny")

    async def learn(pet, *, user, calls, progress):
        assert (user, calls) == ("ana", given[0])
        progress(2)
        return LearningResult(1, 3, 1, Usage(1_900, 210), LearningCost(0, 5, 1, 0, 0, "tiny"))

    monkeypatch.setattr(Companion, "preview_learn", preview)
    monkeypatch.setattr(Companion, "learn", learn)
    refused = hachi("import", "--learn", "--user", "ana", stdin=lines.encode())
    assert refused.code == 2
    given = []
    for most, options in ((7, ("--calls", "7")), (2, ("--yes",))):
        given[:] = [most]
        told = hachi("import", "--learn", "--user", "ana", *options, stdin=lines.encode()).err
        assert "1 conversations with 2 messages are to be learned from: about 1 calls of tiny, 2,050" in told
        assert (
            "3 facts were learned in 1 calls, 1,900 tokens read and 210 written; 5 messages are left" in told
        )
