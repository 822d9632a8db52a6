import json
import sqlite3
import stat

import pytest

SAME = (
    "content",
    "subjects",
    "type",
    "importance",
    "created_at",
    "expires_at",
    "source",
    "place",
    "message_id",
)


@pytest.fixture
def filled(hachi):
    """Some of everything: refined, replaced, for a time, said in a place, with evidence."""
    hachi("chat", stdin=b"I broke my shoulder\nMy sister is called Lea\n")
    hachi(
        "memories", "add", "Mickael skis", "--subject", "sport", "--at", "2026-01-10", "--importance", "0.9"
    )
    for _ in range(2):  # said again, so that it holds a broken number of seconds
        hachi("memories", "add", "Mickael is on holiday", "--ttl", "30d", "--type", "insight")
    hachi("memories", "add", "The meeting room is green", "--place", "acme/general")
    old = hachi("memories", "add", "Mickael lives in Paris", "--type", "preference", "--json").json
    hachi("memories", "update", old["id"], "Mickael lives in Lyon")
    hachi("tasks", "update", "new", "--description", "buy skis")


def kept(hachi, *args):
    found = hachi("memories", "list", "--json", *args).json
    return sorted([{field: memory[field] for field in SAME} for memory in found], key=json.dumps)


def test_an_export_brings_the_same_memories_into_an_empty_home(hachi, filled, tmp_path, monkeypatch):
    file = tmp_path / "mickael.json"
    before = kept(hachi)
    wrote = hachi("memories", "export", str(file))
    assert wrote.complaint.endswith(f"6 memories and 4 messages are in {file}")
    monkeypatch.setenv("HACHI_HOME", str(tmp_path / "elsewhere"))
    read = hachi("memories", "import", str(file))
    assert read.code == 0
    said, _, left = read.complaint.partition("; not taken over: ")
    assert said == "hachi: 4 messages and 6 memories were read; 6 of these are new"
    assert {"tasks (1)", "history (1)"} <= set(left.split(", "))
    assert kept(hachi) == before
    assert "shoulder" in hachi("memories", "search", "shoulder").out
    again = hachi("memories", "import", str(file))
    assert "0 of these are new" in again.complaint
    assert kept(hachi) == before


def test_an_export_holds_ones_own_alone_and_is_for_ones_own_eyes(hachi, filled, tmp_path):
    hachi("memories", "add", "Lea swims", "--user", "lea")
    file = tmp_path / "lea.json"
    hachi("memories", "export", str(file), "--user", "lea")
    whole = json.loads(file.read_text())
    assert [memory["content"] for memory in whole["memories"]] == ["Lea swims"]
    assert whole["messages"] == []
    assert (whole["format"], whole["version"], whole["user"]) == ("hachi-export", 1, "lea")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_is_everybodys_is_not_exported_as_ones_own(hachi, home):
    hachi("memories", "add", "The office is closed on Sundays", "--user", "lea")
    with sqlite3.connect(home / "hachi.db") as database:
        database.execute("UPDATE memory_owners SET owner = 'global'")
    database.close()
    assert len(hachi("memories", "list", "--json").json) == 1
    assert json.loads(hachi("memories", "export").out)["memories"] == []


def test_a_place_is_exported_by_itself(hachi, filled):
    whole = json.loads(hachi("memories", "export", "--place", "acme/general").out)
    assert [memory["content"] for memory in whole["memories"]] == ["The meeting room is green"]


def test_an_export_that_cannot_be_written_leaves_nothing(hachi, home, tmp_path):
    ran = hachi("memories", "export", str(tmp_path / "nowhere" / "file.json"))
    assert ran.code == 1
    assert ran.complaint.endswith("file.json: No such file or directory")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert hachi("memories", "export", str(folder)).code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "home"]


def test_many_memories_are_taken_over_in_steps(hachi):
    names = ["Ada", "Bea", "Cleo", "Dora", "Eva", "Fay", "Gina", "Hana", "Ida", "Joan"]
    skills = ["skis", "swims", "paints", "sings", "codes", "cooks"]
    memories = [
        {"content": f"{name} {skill}", "created_at": "2026-01-10T09:00:00Z"}
        for name in names
        for skill in skills
    ]
    export = {"format": "hachi-export", "version": 1, "memories": memories}
    ran = hachi("memories", "import", stdin=json.dumps(export).encode())
    assert ran.complaint.endswith("60 memories were read; 60 of these are new")
    assert len(hachi("memories", "list", "--json").json) == 60


def test_a_transcript_is_taken_over_and_can_be_searched(hachi):
    messages = [
        {"id": "1", "author": "mickael", "text": "I broke my shoulder", "sent_at": "2026-01-10T09:30:00Z"},
        {"id": "2", "author": "lea", "text": "Oh \ud800 no", "sent_at": "2026-01-10T09:31:00Z"},
    ]
    given = json.dumps(messages).encode()
    assert "2 messages and 0 memories were read" in hachi("memories", "import", "-", stdin=given).complaint
    assert hachi("memories", "import", stdin=given).code == 0
    hits = hachi("memories", "search", "shoulder", "--json").json
    assert [hit["author"] for hit in hits if "shoulder" in hit["content"]] == ["mickael"]


MESSAGE = {"author": "lea", "text": "hello", "sent_at": "2026-01-10T09:30:00Z"}
MEMORY = {"content": "Lea swims", "created_at": "2026-01-10T09:30:00Z"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"{not json", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b"7", "neither an export of hachi nor a list"),
        ({"memories": []}, "neither an export of hachi nor a list"),
        ([MESSAGE, "hello"], "message 2 is no object"),
        ([MESSAGE, MESSAGE | {"sent_at": "2026-01-10T09:30:00"}], "message 2"),
        ([MESSAGE, {"author": "lea"}], "message 2 has no 'text'"),
    ],
)
def test_a_bad_file_is_told_in_one_line_and_nothing_is_imported(hachi, given, said):
    ran = hachi("memories", "import", stdin=given if isinstance(given, bytes) else json.dumps(given).encode())
    assert ran.code == 1
    assert said in ran.complaint
    assert json.loads(hachi("memories", "export").out)["messages"] == []


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"content": "x"}, "memory 2 has no 'created_at'"),
        ("hello", "memory 2 cannot be read"),
        (
            MEMORY | {"created_at": "2026-01-10T09:30:00"},
            "memory 2 cannot be read: '2026-01-10T09:30:00' needs a time zone",
        ),
        (MEMORY | {"content": 7}, "content must be text"),
        (MEMORY | {"subjects": [7]}, "subjects a list of texts"),
        (MEMORY | {"type": "rumour"}, "'rumour' is none of fact, preference, insight"),
        (MEMORY | {"importance": 7}, "importance 7 is no number from 0 to 1"),
        (MEMORY | {"importance": True}, "importance True"),
        (MEMORY | {"expires_at": 7}, "memory 2 cannot be read"),
    ],
)
def test_a_bad_memory_is_told_by_its_number_and_nothing_is_imported(hachi, entry, said):
    export = {"format": "hachi-export", "version": 1, "memories": [MEMORY, entry]}
    ran = hachi("memories", "import", stdin=json.dumps(export).encode())
    assert ran.code == 1
    assert said in ran.complaint
    assert hachi("memories", "list", "--json").json == []


@pytest.mark.parametrize(
    ("change", "said"), [({"version": 2}, "newer hachi (version 2)"), ({"memories": {}}, "must be lists")]
)
def test_an_export_of_another_shape_is_refused(hachi, change, said):
    export = {"format": "hachi-export", "version": 1, "memories": []} | change
    assert said in hachi("memories", "import", stdin=json.dumps(export).encode()).complaint


def test_a_file_that_is_not_there_is_told(hachi, tmp_path):
    ran = hachi("memories", "import", str(tmp_path / "nothing.json"))
    assert ran.code == 1
    assert ran.complaint.endswith("nothing.json: No such file or directory")
