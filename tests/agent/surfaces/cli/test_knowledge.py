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


MINE = "found by mickael alone; --everybody or --place lets others find them\n"


def told(added=0, replaced=0, unchanged=0, removed=0, unread=0, passages=0):
    noun = "passage" if passages == 1 else "passages"
    return (
        f"{added} added, {replaced} replaced, {unchanged} unchanged, {removed} removed, {unread} unread; "
        f"{passages} new {noun}\n"
    )


def files(hachi, *args):
    return [document["path"] for document in hachi("knowledge", "list", "--json", *args).json]


def test_documents_are_added_listed_found_and_removed(hachi, folder):
    for args in (["list"], ["search", "oars"]):
        ran = hachi("knowledge", *args)
        assert (ran.code, ran.out) == (0, "")
        assert "`hachi knowledge add PATH`" in ran.complaint
    (folder / "empty.md").write_text("")
    (folder / "photo.png").write_bytes(b"\x89PNG")
    ran = hachi("knowledge", "add", str(folder))
    assert (ran.code, ran.out) == (0, told(added=2, unread=2, passages=3) + MINE)
    png, empty = sorted(ran.err.splitlines(), key=lambda line: "png" not in line)
    assert png.startswith(f"hachi: {folder / 'photo.png'}: .png files in a folder are not read")
    assert empty == f"hachi: {folder / 'empty.md'}: it is empty"
    assert hachi("knowledge", "search", "").complaint == "hachi: nothing was found"

    table = hachi("knowledge", "list").out
    for shown in ("Boats", str(folder / "boats.md"), "ash.txt", "user:mickael"):
        assert shown in table

    found = hachi("knowledge", "search", "what are oars made of?").out
    assert "Boats > Oars" in found
    assert "Oars are made of ash." in found
    assert str(folder / "boats.md") in "".join(found.split())

    gone = hachi("knowledge", "remove", str(folder / "wood")).out
    assert gone.startswith("removed ")
    assert gone.endswith(f": {folder / 'wood' / 'ash.txt'}\n")
    assert files(hachi) == [str(folder / "boats.md")]


@pytest.mark.parametrize(
    ("name", "out", "complaint"),
    [
        ("nothing", told(), "nothing could be read"),
        ("nowhere", "", "there is no file or folder"),
        (None, "", "name the files and folders"),
    ],
)
def test_where_nothing_can_be_read_it_fails(hachi, folder, name, out, complaint):
    (folder / "nothing").mkdir()
    ran = hachi("knowledge", "add", str(folder / name) if name else "")
    assert (ran.code, ran.out) == (1, out)
    assert complaint in ran.complaint


def test_the_json(hachi, folder):
    (folder / "empty.md").write_text("")
    ran = hachi("knowledge", "add", str(folder), "--json")
    boats, ash = str(folder / "boats.md"), str(folder / "wood" / "ash.txt")
    assert ran.err == ""
    assert ran.json == {
        "added": sorted([boats, ash]),
        "replaced": [],
        "unchanged": [],
        "removed": [],
        "chunks": 3,
        "unread": [{"path": str(folder / "empty.md"), "reason": "it is empty"}],
    }
    [first, _] = hachi("knowledge", "list", "--json").json
    assert first == first | {"owner": "user:mickael", "path": boats, "title": "Boats", "chunks": 2}
    assert set(first) == {"id", "owner", "path", "title", "added_at", "chunks"}
    passage, *_ = hachi("knowledge", "search", "oars of ash", "--limit", "1", "--json").json
    assert set(passage) == {"id", "text", "source", "chunk_index", "title", "heading", "score"}
    assert (passage["source"], passage["heading"], passage["chunk_index"]) == (boats, "Boats > Oars", 1)
    assert hachi("knowledge", "remove", first["id"][:8], "--json").json == [first]
    nothing = hachi("knowledge", "add", str(folder / "empty.md"), "--json")
    assert (nothing.code, nothing.json["added"]) == (1, [])


def test_a_user_or_a_place_has_its_own_documents_too(hachi, tmp_path):
    for name, who, *whose in (
        ("all", "everybody", "--everybody"),
        ("own", "mickael alone"),
        ("there", "whoever talks in acme", "--place", "acme"),
    ):
        (tmp_path / f"{name}.md").write_text(f"Oars for {name}.")
        added = hachi("knowledge", "add", str(tmp_path / f"{name}.md"), *whose)
        assert (added.code, f"found by {who}" in added.out) == (0, True)
    for args, seen in (
        (["--everybody"], {"all"}),
        (["--user", "lea"], {"all"}),
        ([], {"all", "own"}),
        (["--place", "acme/general"], {"all", "there"}),
    ):
        found = hachi("knowledge", "search", "oars", "--json", *args).json
        assert {document["title"] for document in found} == seen
    table = hachi("knowledge", "list").out
    assert "user:mickael" in table
    assert "everybody" in table
    ran = hachi("knowledge", "remove", str(tmp_path / "own.md"), "--user", "lea")
    assert (ran.code, "no such document here" in ran.complaint) == (1, True)
