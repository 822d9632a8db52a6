import asyncio
import json
import sqlite3
import stat
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from memory.index.embedded.index import EmbeddedIndex
from memory.index.embedders.bundled import BundledEmbedder

FIELDS = {
    *("id", "content", "subjects", "created_at", "expires_at", "source", "type", "importance"),
    *("last_accessed_at", "owners", "place", "message_id"),
}


def test_a_fact_is_added_listed_and_found(hachi):
    decision = hachi(
        *("memories", "add", "Mickael skis", "--subject", "Sport", "--subject", "mickael"),
        *("--ttl", "2w", "--type", "preference", "--importance", "0.8", "--at", "2026-11-20T10:00", "--json"),
    ).json
    hachi("memories", "add", "Lea swims", "--user", "lea")
    [memory] = hachi("memories", "list", "--json").json
    assert (decision["action"], decision["id"]) == ("add", memory["id"])
    assert set(memory) == FIELDS
    assert memory["subjects"] == ["sport", "mickael"]
    assert memory["created_at"] == "2026-11-20T10:00:00+00:00"
    assert memory["expires_at"] == "2026-12-04T10:00:00+00:00"
    assert (memory["type"], memory["importance"], memory["source"]) == ("preference", 0.8, "note")
    assert memory["owners"] == ["user:mickael"]
    table = hachi("memories", "list").out
    assert memory["id"][:8] in table
    assert memory["id"] not in table
    assert "2026-12-04" in table
    assert "Lea" not in table
    [hit] = hachi("memories", "search", "skiing", "--subject", "sport", "--json").json
    assert set(hit) == FIELDS | {"score", "kind", "author"}
    assert hit["id"] == memory["id"]
    assert hachi("memories", "search", "skiing", "--subject", "tea").complaint == "hachi: nothing was found"
    assert f"{hit['score']:.2f}" in hachi("memories", "search", "skiing").out


def test_decisions_are_told(hachi):
    assert "nothing is remembered for 'mickael'" in hachi("memories", "list").complaint
    assert hachi("memories", "add", "Mickael skis", "--ttl", "7d").out.startswith("added ")
    assert "known word for word" in hachi("memories", "add", "Mickael skis").out
    unimportant = hachi("memories", "add", "Mickael yawned", "--importance", "0.1")
    assert unimportant.out == "not stored: Mickael yawned (importance 0.1 is under 0.3)\n"
    ran = hachi("memories", "add", "Mickael \x1b[31mswims", "--ttl", "never", "--everybody")
    assert ran.code == 0
    assert "\x1b" not in hachi("memories", "list").out
    [swims] = [one for one in hachi("memories", "list", "--json").json if "swims" in one["content"]]
    assert (swims["expires_at"], "global" in swims["owners"]) == (None, True)


def test_messages_are_found_with_their_author(hachi):
    hachi("chat", "-m", "I broke my shoulder")
    hits = hachi("memories", "search", "shoulder", "--json").json
    assert ("message", "mickael") in [(hit["kind"], hit["author"]) for hit in hits]
    assert "mickael: I broke my shoulder" in hachi("memories", "search", "shoulder").out


def test_an_update_replaces_is_told_by_the_history_and_can_be_undone(hachi):
    first = hachi("memories", "add", "Mickael lives in Paris", "--json").json
    assert "never changed" in hachi("memories", "history", first["id"]).out
    assert hachi("memories", "history", first["id"], "--json").json == []
    second = hachi("memories", "update", first["id"][:8], "Mickael lives in Lyon", "--json").json
    assert (second["action"], second["target_id"]) == ("replace", first["id"])
    [step] = hachi("memories", "history", second["id"][:8], "--json").json
    assert (step["old_content"], step["new_content"]) == ("Mickael lives in Paris", "Mickael lives in Lyon")
    assert "corrected on purpose" in hachi("memories", "history", first["id"]).out, "by the replaced id"
    assert hachi("memories", "undo", second["id"][:8]).out.endswith(": Mickael lives in Paris\n")
    assert [memory["id"] for memory in hachi("memories", "list", "--json").json] == [first["id"]]
    again = hachi("memories", "undo", second["id"])
    assert (again.code, "nothing that could be brought back" in again.complaint) == (1, True)
    hachi("memories", "update", first["id"], "Mickael lives in Rome", "--ttl", "1d")
    [memory] = hachi("memories", "list", "--json").json
    lasts = datetime.fromisoformat(memory["expires_at"]) - datetime.now(UTC)
    assert timedelta(hours=23) < lasts <= timedelta(days=1)
    for command in ("delete", "history"):
        ran = hachi("memories", command, memory["id"], "--user", "lea")
        assert (ran.code, "no memory" in ran.complaint) == (1, True)


def test_forgetting_asks_at_a_terminal_and_tells_what_was_taken(hachi):
    id = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    refused = hachi("memories", "delete", id, stdin=b"n\n", typed=True)
    assert (refused.code, "nothing was forgotten" in refused.err) == (1, True)
    told = hachi("memories", "delete", id, "--yes", "--json", typed=True).json
    assert (told["id"], told["forgotten"]["memories"]) == (id, [id])
    again = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    red = hachi("memories", "add", "The red skis are new", "--json").json["id"]
    told = hachi("memories", "delete", again[:8], stdin=b"y\n", typed=True).out
    assert f"forgotten {again[:8]}: Mickael skis\ntaken: 1 memory\n" in told
    assert f"forgets one of these too:\n  {red[:8]}: The red skis are new\n" in told
    near = hachi("memories", "delete", red, "--json").json["forgotten"]["near"]
    assert (near, hachi("memories", "list", "--json").json) == ([], [])


def test_what_was_forgotten_is_not_found_and_can_be_restored_for_a_while(hachi, home):
    for text in ("my bank PIN is 4711", "what is my bank PIN?"):
        hachi("chat", "-m", text)
    [pin] = hachi("memories", "list", "--json").json
    told = hachi("memories", "delete", pin["id"], "--json").json["forgotten"]
    assert (told["messages"], told["replies"]) == (1, 2)
    assert "4711" not in hachi("memories", "search", "bank PIN").out
    assert "4711" not in hachi("chat", "-m", "what is my bank PIN?").out
    assert "4711" not in hachi("memories", "export").out
    [trace] = [one for one in hachi("traces", "ls", "--json").json if one["status"] != "forgotten"]
    assert trace["said"] == "what is my bank PIN?"
    assert hachi("memories", "restore", told["undo_id"][:8]).out.startswith(
        "brought back: 1 memory, 1 message"
    )
    assert [memory["id"] for memory in hachi("memories", "list", "--json").json] == [pin["id"]]
    again = hachi("memories", "delete", pin["id"], "--json").json["forgotten"]
    with closing(sqlite3.connect(home / "hachi.db")) as database, database:
        database.execute("UPDATE forgotten SET until = '2020-01-01 00:00:00'")
    ran = hachi("memories", "restore", again["undo_id"])
    assert (ran.code, "gone for good" in ran.complaint) == (1, True)
    hachi("purge")
    for file in home.rglob("*"):
        assert not file.is_file() or b"4711" not in file.read_bytes(), file


def test_everything_works_while_another_process_holds_the_index(hachi, home):
    (home / "index").mkdir(parents=True, exist_ok=True)
    index = EmbeddedIndex(home / "index", BundledEmbedder())
    asyncio.run(index.refresh())
    id = hachi("memories", "add", "Mickael skis", "--json").json["id"]
    search = hachi("memories", "search", "skis")
    assert (search.code, "Mickael skis" in search.out) == (0, True)
    assert "newest entries of the database were searched: " in search.complaint
    assert "in use by another hachi process" in search.complaint
    assert "in use by another hachi process" in (home / "hachi.log").read_text()
    assert hachi("memories", "delete", id).code == 0
    asyncio.run(index.close())
    assert hachi("memories", "list", "--json").json == []


# Erasing.


@pytest.fixture
def anas(hachi):
    """Ana said something in private and in a place."""
    hachi("chat", "--user", "ana", stdin=b"I broke my shoulder\n")
    hachi("memories", "add", "Ana skis", "--user", "ana", "--place", "acme/general")
    hachi("memories", "add", "Mickael rows")
    return hachi


def test_erasing_shows_what_goes_asks_and_prints_a_receipt(anas, home):
    ran = anas("memories", "erase", "--user", "ana", stdin=b"n\n", typed=True)
    assert (ran.code, "messages" in ran.out, "nothing was erased" in ran.err) == (1, True, True)
    assert "Erase all of this of ana for good?" in ran.out
    assert anas("memories", "list", "--user", "ana", "--json").json != []
    ran = anas("memories", "erase", "--user", "ana", stdin=b"y\n", typed=True)
    assert (ran.code, "verified: nothing of theirs is left" in ran.out) == (0, True)
    assert anas("memories", "list", "--user", "ana", "--json").json == []
    assert "ana" not in (home / "hachi.log").read_text()
    assert [memory["content"] for memory in anas("memories", "list", "--json").json] == ["Mickael rows"]


def test_the_receipt_as_json_and_the_words_that_others_said_too(anas):
    anas("chat", "--user", "lea", stdin=b"I broke my shoulder\n")
    receipt = anas("memories", "erase", "--user", "ana", "--yes", "--json").json
    assert (receipt["user"], receipt["verified"]) == ("ana", True)
    assert receipt["removed"]["messages"] == 2
    assert receipt["at"].endswith("+00:00")
    assert "messages" in [left["kind"] for left in receipt["left"]]


def test_an_erasure_needs_yes_without_a_terminal_and_exits_with_1_if_not_verified(anas, home):
    with closing(sqlite3.connect(home / "hachi.db")) as database, database:
        database.execute(
            "CREATE TRIGGER back AFTER DELETE ON users "
            "BEGIN INSERT INTO users (id, created_at) VALUES ('ana', OLD.created_at); END"
        )
    refused = anas("memories", "erase", "--user", "ana")
    assert (refused.code, "--yes" in refused.complaint) == (2, True)
    ran = anas("memories", "erase", "--user", "ana", "--yes")
    assert ran.code == 1
    assert "STILL THERE: 1 in users" in ran.out
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
        "hachi: 4 messages and 4 memories were read; 4 of these are new",
        "summaries (1), tasks (1)",
    )
    assert "0 of these are new" in hachi("memories", "import", "-", stdin=file.read_bytes()).complaint
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
    assert "2 messages and 0 memories were read" in hachi("memories", "import", stdin=given).complaint
    assert "lea: I broke my shoulder" in hachi("memories", "search", "shoulder").out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"{not json", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b"7", "stdin: this is neither an export of hachi nor a list"),
        (json.dumps([MESSAGE, {"author": "lea"}]).encode(), "message 2 has no 'text'"),
    ],
)
def test_a_bad_file_is_one_line_and_nothing_is_imported(shared, given, message):
    ran = shared("memories", "import", "--user", "eve", stdin=given)
    assert ran.code == 1
    assert message in ran.complaint
    assert json.loads(shared("memories", "export", "--user", "eve").out)["messages"] == []


def test_a_missing_file_is_named(shared, tmp_path):
    ran = shared("memories", "import", str(tmp_path / "nothing.json"))
    assert (ran.code, ran.complaint.endswith("nothing.json: No such file or directory")) == (1, True)
