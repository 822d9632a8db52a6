import os
import sys

import pexpect
import pytest

BOATS = """# Boats

## Knots

A bowline makes a loop that does not slip.

## Oars

Oars are made of ash.
"""


@pytest.fixture
def folder(tmp_path):
    """Two documents that can be read."""
    folder = tmp_path / "handbook"
    (folder / "wood").mkdir(parents=True)
    (folder / "boats.md").write_text(BOATS)
    (folder / "wood" / "ash.txt").write_text("Ash grows in Europe.")
    return folder


@pytest.fixture
def empty(tmp_path):
    """A folder of its own: the data folder lies beside it, not in it."""
    folder = tmp_path / "pages"
    folder.mkdir()
    return folder


def told(added=0, replaced=0, unchanged=0, removed=0, unread=0, passages=0):
    noun = "passage" if passages == 1 else "passages"
    return (
        f"{added} added, {replaced} replaced, {unchanged} unchanged, {removed} removed, {unread} unread; "
        f"{passages} new {noun}\n"
    )


def files(hachi, *args):
    return [document["path"] for document in hachi("knowledge", "list", "--json", *args).json]


def test_documents_are_added_listed_found_and_removed(hachi, folder):
    ran = hachi("knowledge", "add", str(folder))
    assert (ran.code, ran.out, ran.err) == (0, told(added=2, passages=3), "")

    table = hachi("knowledge", "list").out
    for shown in ("Boats", str(folder / "boats.md"), "ash.txt", "everybody"):
        assert shown in table

    found = hachi("knowledge", "search", "what are oars made of?").out.splitlines()
    score, _, where = found[0].partition("  ")
    assert 0 < float(score) <= 1
    assert (where, found[1].strip()) == ("Boats > Oars", str(folder / "boats.md"))
    assert found[2] == "      Oars are made of ash."

    gone = hachi("knowledge", "remove", str(folder / "wood")).out
    assert gone.startswith("removed ")
    assert gone.endswith(f": {folder / 'wood' / 'ash.txt'}\n")
    assert (folder / "wood" / "ash.txt").exists()
    assert files(hachi) == [str(folder / "boats.md")]


def test_only_what_has_changed_is_read_again(hachi, folder):
    hachi("knowledge", "add", str(folder))
    assert hachi("knowledge", "add", str(folder)).out == told(unchanged=2)

    (folder / "boats.md").write_text("# Boats\n\nSpruce makes lighter oars.")
    (folder / "wood" / "ash.txt").unlink()
    (folder / "new.md").write_text("Masts are made of spruce.")

    assert hachi("knowledge", "add", str(folder)).out == told(added=1, replaced=1, removed=1, passages=2)
    assert "Spruce makes" in hachi("knowledge", "search", "oars").out


def test_a_folder_is_meant_as_it_stands_here(hachi, folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    hachi("knowledge", "add", "handbook", "handbook/boats.md")
    assert files(hachi) == [str(folder / "boats.md"), str(folder / "wood" / "ash.txt")]
    monkeypatch.chdir(folder)
    assert hachi("knowledge", "remove", "boats.md").code == 0
    assert files(hachi) == [str(folder / "wood" / "ash.txt")]


def test_what_cannot_be_read_is_told_and_the_rest_goes_on(hachi, folder):
    (folder / "empty.md").write_text("")
    (folder / "photo.png").write_bytes(b"\x89PNG")
    ran = hachi("knowledge", "add", str(folder))
    assert (ran.code, ran.out) == (0, told(added=2, unread=2, passages=3))
    png, empty = sorted(ran.err.splitlines(), key=lambda line: "png" not in line)
    assert png.startswith(f"hachi: {folder / 'photo.png'}: .png files in a folder are not read")
    assert empty == f"hachi: {folder / 'empty.md'}: it is empty"


def test_where_nothing_at_all_can_be_read_it_fails(hachi, empty):
    (empty / "empty.md").write_text("")
    ran = hachi("knowledge", "add", str(empty / "empty.md"))
    assert (ran.code, ran.out) == (1, told(unread=1))
    assert ran.complaint == f"hachi: {empty / 'empty.md'}: it is empty"

    (empty / "folder").mkdir()
    ran = hachi("knowledge", "add", str(empty / "folder"))
    assert (ran.code, ran.out) == (1, told())
    assert "nothing could be read" in ran.complaint


def test_a_folder_whose_files_are_all_gone_is_no_failure(hachi, folder):
    hachi("knowledge", "add", str(folder))
    (folder / "boats.md").unlink()
    (folder / "wood" / "ash.txt").unlink()
    ran = hachi("knowledge", "add", str(folder))
    assert (ran.code, ran.out, ran.err) == (0, told(removed=2), "")


def test_a_path_that_is_not_there_stops_it_before_anything_is_read(hachi, folder):
    ran = hachi("knowledge", "add", str(folder), str(folder / "nowhere"))
    assert (ran.code, ran.out) == (1, "")
    assert f"there is no file or folder {folder / 'nowhere'}" in ran.complaint
    assert files(hachi) == []


def test_an_empty_path_is_not_the_folder_one_stands_in(hachi, folder, monkeypatch):
    monkeypatch.chdir(folder)
    ran = hachi("knowledge", "add", "")
    assert ran.code == 1
    assert "name the files and folders" in ran.complaint
    assert files(hachi) == []


def test_for_programs_there_is_all_of_it_in_json(hachi, folder):
    (folder / "empty.md").write_text("")
    ran = hachi("knowledge", "add", str(folder), "--json")
    boats, ash = str(folder / "boats.md"), str(folder / "wood" / "ash.txt")
    assert ran.err == ""
    assert ran.json == {
        "added": sorted([boats, ash]),
        "replaced": [],
        "unchanged": [],
        "removed": [],
        "unread": [{"path": str(folder / "empty.md"), "reason": "it is empty"}],
        "chunks": 3,
    }

    [first, _] = hachi("knowledge", "list", "--json").json
    assert first == first | {"owner": "global", "path": boats, "title": "Boats", "chunks": 2}
    assert set(first) == {"id", "owner", "path", "title", "added_at", "chunks"}

    passage, *_ = hachi("knowledge", "search", "oars of ash", "--limit", "1", "--json").json
    assert set(passage) == {"id", "text", "source", "chunk_index", "title", "heading", "score"}
    assert (passage["source"], passage["heading"], passage["chunk_index"]) == (boats, "Boats > Oars", 1)

    assert hachi("knowledge", "remove", first["id"][:8], "--json").json == [first]

    nothing = hachi("knowledge", "add", str(folder / "empty.md"), "--json")
    assert (nothing.code, nothing.json["added"]) == (1, [])
    assert "nothing could be read" in nothing.complaint


@pytest.fixture
def shared(hachi, empty):
    """A document for everybody, one of Mickael's own, and one of a place."""
    for name, *whose in (("all",), ("own", "--user", "mickael"), ("there", "--place", "acme")):
        (empty / f"{name}.md").write_text(f"Oars for {name}.")
        assert hachi("knowledge", "add", str(empty / f"{name}.md"), *whose).code == 0


@pytest.mark.parametrize(
    ("args", "seen"),
    [
        ([], {"all"}),
        (["--user", "mickael"], {"all", "own"}),
        (["--user", "mickael", "--place", "dm"], {"all", "own"}),
        (["--user", "lea"], {"all"}),
        (["--place", "acme"], {"all", "there"}),
        (["--place", "acme/general"], {"all", "there"}),
        (["--place", "other"], {"all"}),
    ],
)
def test_one_sees_what_everybody_may_and_what_the_person_or_the_place_may(hachi, shared, args, seen):
    assert {document["title"] for document in hachi("knowledge", "list", "--json", *args).json} == seen
    assert {chunk["title"] for chunk in hachi("knowledge", "search", "oars", "--json", *args).json} == seen


def test_a_list_tells_whose_it_is(hachi, shared):
    assert "user:mickael" in hachi("knowledge", "list", "--user", "mickael").out
    assert "place:acme" in hachi("knowledge", "list", "--place", "acme").out


def test_only_what_is_ones_own_is_removed(hachi, shared, empty):
    for args in ([], ["--user", "lea"], ["--place", "acme/general"]):
        ran = hachi("knowledge", "remove", str(empty / "own.md"), *args)
        assert ran.code == 1
        assert "no such document" in ran.complaint
    assert hachi("knowledge", "remove", str(empty), "--user", "mickael").out.count("removed") == 1
    assert hachi("knowledge", "remove", str(empty), "--place", "acme").out.count("removed") == 1
    assert len(files(hachi)) == 1


@pytest.mark.parametrize("command", [["add", "."], ["remove", "x"]])
@pytest.mark.parametrize("whose", [["--user", "lea", "--place", "acme"], ["--place", "dm"]])
def test_whose_it_is_must_be_clear(hachi, command, whose):
    ran = hachi("knowledge", *command, *whose)
    assert ran.code == 1
    assert "user" in ran.complaint


@pytest.mark.parametrize("command", [["list"], ["search", "oars"]])
@pytest.mark.parametrize("whose", [["--user", "lea", "--place", "acme"], ["--place", "dm"]])
def test_whose_view_it_is_must_be_clear(hachi, command, whose):
    ran = hachi("knowledge", *command, *whose)
    assert ran.code == 2
    assert "--user" in ran.complaint


def test_where_there_is_nothing_it_says_how_to_begin(hachi, folder):
    for args in (["list"], ["search", "oars"]):
        ran = hachi("knowledge", *args)
        assert (ran.code, ran.out) == (0, "")
        assert "`hachi knowledge add PATH`" in ran.complaint
    hachi("knowledge", "add", str(folder))
    assert hachi("knowledge", "search", "").complaint == "hachi: nothing was found"
    assert hachi("knowledge", "search", "", "--json").json == []


def test_a_long_passage_is_shown_in_part_and_apart_from_the_next(hachi, empty):
    (empty / "long.txt").write_text("An oar of ash.\n" + "Another oar. " * 60)
    (empty / "short.txt").write_text("An oar of spruce.")
    hachi("knowledge", "add", str(empty))
    lines = [line.rstrip() for line in hachi("knowledge", "search", "oar").out.splitlines()]
    assert "" in lines
    assert any(line.endswith(" …") for line in lines)
    assert sum(line.count("Another oar.") for line in lines) < 30


def test_a_document_without_headings_is_shown_by_its_title(hachi, empty):
    (empty / "oars.txt").write_text("An oar of spruce.")
    (empty / "page.html").write_text(
        "<html><head><title>Masts</title></head><body><h1>Wood</h1><p>Spruce too.</p></body></html>"
    )
    hachi("knowledge", "add", str(empty))
    shown = hachi("knowledge", "search", "spruce").out
    assert "  oars\n" in shown
    assert "  Masts > Wood\n" in shown


def test_a_document_cannot_drive_the_terminal(hachi, empty):
    file = empty / "red\x1b[31m[bold].md"
    file.write_text("# Oars\x1b[31m [red]\n\nAn oar\x1b[2J of ash.")
    (empty / "bad\x1b[31m.md").write_text("")
    ran = hachi("knowledge", "add", str(empty))
    assert "bad[31m.md: it is empty" in ran.complaint
    for command in (["list"], ["search", "oar"], ["remove", str(file)]):
        shown = hachi("knowledge", *command).out
        assert "\x1b" not in shown
        assert "[bold].md" in shown


def test_a_name_that_is_no_text_can_be_added_and_removed(hachi, empty):
    name = os.fsdecode(b"caf\xe9.md")
    (empty / name).write_text("# Oars\n\nAn oar of ash.")
    assert hachi("knowledge", "add", str(empty / name)).out == told(added=1, passages=1)
    assert files(hachi) == [str(empty / r"caf\xe9.md")]
    assert hachi("knowledge", "remove", str(empty / name)).code == 0


def test_without_the_index_what_was_read_is_kept_and_that_is_told(hachi, folder, monkeypatch):
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")
    ran = hachi("knowledge", "add", str(folder))
    assert (ran.code, ran.out) == (0, told(added=2, passages=3))
    assert "what was read is kept" in ran.complaint
    assert "127.0.0.1:9" in ran.complaint
    search = hachi("knowledge", "search", "oars")
    assert (search.code, search.out) == (1, "")
    assert "127.0.0.1:9" in search.complaint

    monkeypatch.delenv("QDRANT_URL")
    assert "made of ash" in hachi("knowledge", "search", "oars").out


def test_at_a_terminal_a_bar_shows_the_file_that_is_read(hachi, home, empty):
    for number in range(200):
        (empty / f"page-{number}-[red]{'x' * 60}.md").write_text(f"# Page {number}\n\n" + "An oar. " * 300)
    call = "import sys; from agent.surfaces.cli import main; sys.exit(main())"
    child = pexpect.spawn(
        sys.executable, ["-c", call, "knowledge", "add", str(empty)], encoding="utf-8", timeout=60
    )
    child.expect(r"page-\d+-\[red\]x+…")
    child.expect("200 added, 0 replaced")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert len(files(hachi)) == 200


@pytest.mark.parametrize(
    "args", [[], ["add"], ["search"], ["remove"], ["search", "x", "--limit", "0"], ["eat"]]
)
def test_a_command_that_is_mistyped_is_wrong_usage(hachi, args):
    assert hachi("knowledge", *args).code == 2
