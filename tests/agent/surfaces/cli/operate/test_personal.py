import json
import sqlite3
import stat
from contextlib import closing

import pytest

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


def test_the_receipt_as_json_and_what_others_said_too(anas):
    anas("memories", "add", "Ana skis", "--user", "lea", "--place", "acme/general")
    receipt = anas("memories", "erase", "--user", "ana", "--yes", "--json").json
    assert (receipt["user"], receipt["verified"]) == ("ana", True)
    assert receipt["removed"]["messages"] == 2
    assert receipt["at"].endswith("+00:00")
    assert [(left["kind"], left["count"], left["expected"]) for left in receipt["left"]] == [
        ("memories shared", 1, True)
    ]


def test_the_receipt_calls_what_others_said_theirs(anas):
    anas("memories", "add", "Ana skis", "--user", "lea", "--place", "acme/general")
    ran = anas("memories", "erase", "--user", "ana", "--yes")
    [line] = [line for line in ran.out.splitlines() if "somebody else" in line]
    assert line.startswith("stays, as it is not theirs: 1 memories shared: ")
    assert not [line for line in ran.out.splitlines() if line.startswith("left")]
    assert "verified: nothing of theirs is left" in ran.out


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
