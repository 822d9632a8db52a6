import json
import stat

import pytest

KEPT = ("content", "subjects", "type", "importance", "created_at", "expires_at", "source", "place")
MESSAGE = {"author": "lea", "text": "hello", "sent_at": "2026-01-10T09:30:00Z"}


@pytest.fixture(scope="module")
def filled(shared):
    """Memories that were refined, replaced, temporary, said in a place, or have evidence."""
    shared("chat", stdin=b"I broke my shoulder\nMy sister is called Lea\n")
    options = ("--subject", "sport", "--at", "2026-01-10", "--importance", "0.9")
    shared("memories", "add", "Mickael skis", *options)
    for _ in range(2):  # said again, so that it holds a fraction of a second
        shared("memories", "add", "Mickael is on holiday", "--ttl", "30d", "--type", "insight")
    shared("memories", "add", "The meeting room is green", "--place", "acme/general")
    old = shared("memories", "add", "Mickael lives in Paris", "--type", "preference", "--json").json
    shared("memories", "update", old["id"], "Mickael lives in Lyon")
    shared("memories", "add", "Lea swims", "--user", "lea")
    shared("memories", "add", "The office is closed on Sundays", "--user", "lea", "--everybody")
    shared("tasks", "update", "new", "--description", "buy skis")
    return shared


def kept(hachi):
    found = [one for one in hachi("memories", "list", "--json").json if "global" not in one["owners"]]
    return sorted([{field: one[field] for field in (*KEPT, "message_id")} for one in found], key=json.dumps)


def test_an_export_brings_the_same_memories_into_an_empty_home(filled, hachi, tmp_path):
    file = tmp_path / "mickael.json"
    assert filled("memories", "export", str(file)).complaint.endswith(
        f"6 memories and 4 messages are in {file}"
    )
    read = hachi("memories", "import", str(file))
    assert read.code == 0
    counts, _, left = read.complaint.partition("; not taken over: ")
    assert counts == "hachi: 4 messages and 6 memories were read; 6 of these are new"
    assert {"tasks (1)", "history (1)"} <= set(left.split(", "))
    assert kept(hachi) == kept(filled)
    assert "shoulder" in hachi("memories", "search", "shoulder").out
    assert "0 of these are new" in hachi("memories", "import", str(file)).complaint
    assert kept(hachi) == kept(filled)


def test_an_export_holds_ones_own_alone_in_a_private_file(filled, tmp_path):
    file = tmp_path / "lea.json"
    filled("memories", "export", str(file), "--user", "lea")
    whole = json.loads(file.read_text())
    assert "Lea swims" in [memory["content"] for memory in whole["memories"]]
    assert "Mickael" not in file.read_text()
    assert (whole["format"], whole["version"], whole["user"]) == ("hachi-export", 1, "lea")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    place = json.loads(filled("memories", "export", "--place", "acme/general").out)
    assert [memory["content"] for memory in place["memories"]] == ["The meeting room is green"]


def test_an_export_that_cannot_be_written_leaves_nothing(shared, tmp_path):
    ran = shared("memories", "export", str(tmp_path / "nowhere" / "file.json"))
    assert ran.code == 1
    assert ran.complaint.endswith("file.json: No such file or directory")
    (tmp_path / "folder").mkdir()
    assert shared("memories", "export", str(tmp_path / "folder")).code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_transcript_is_imported_and_can_be_searched(hachi):
    messages = [
        {"id": "1", "author": "mickael", "text": "I broke my shoulder", "sent_at": "2026-01-10T09:30:00Z"},
        {"id": "2", "author": "lea", "text": "Oh \ud800 no", "sent_at": "2026-01-10T09:31:00Z"},
    ]
    given = json.dumps(messages).encode()
    assert "2 messages and 0 memories were read" in hachi("memories", "import", "-", stdin=given).complaint
    assert hachi("memories", "import", stdin=given).code == 0
    hits = hachi("memories", "search", "shoulder", "--json").json
    assert [hit["author"] for hit in hits if "shoulder" in hit["content"]] == ["mickael"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"{not json", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b"7", "stdin: this is neither an export of hachi nor a list"),
        (json.dumps([MESSAGE, MESSAGE | {"sent_at": "2026-01-10T09:30:00"}]).encode(), "message 2"),
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
    assert ran.code == 1
    assert ran.complaint.endswith("nothing.json: No such file or directory")
