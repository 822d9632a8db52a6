"""Folders are looked through whatever is odd in them, and files read as they were at one moment."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory.documents import files
from memory.documents.files import MAX_BYTES, FoundFiles, display_path, find, is_below, read
from memory.documents.formats.blocks import UnreadableDocument
from memory.errors import NotFound

NOBODY = 65534


@contextmanager
def without_roots_rights() -> Iterator[None]:
    """Root may open whatever it likes: as somebody else for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that anybody may reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def names(found: FoundFiles) -> list[str]:
    return [file.name for file in found.files]


def reasons(found: FoundFiles) -> dict[str, str]:
    return {Path(unread.path).name: unread.reason for unread in found.unread}


def test_documents_are_found_in_folders_of_folders_in_order(tmp_path: Path) -> None:
    for name in ("b.md", "a.TXT", "deep/er/c.html", "deep/d.pdf", "README"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert names(find([tmp_path])) == ["README", "a.TXT", "b.md", "d.pdf", "c.html"]


def test_what_is_hidden_or_of_others_is_skipped_inside_a_folder(tmp_path: Path) -> None:
    for name in (
        ".git/a.md",
        "node_modules/b.md",
        ".venv/c.md",
        "site-packages/d.md",
        ".hidden.md",
        "kept.md",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = find([tmp_path])
    assert (names(found), found.unread) == (["kept.md"], [])
    assert names(find([tmp_path / ".git"])) == ["a.md"], "unless it is named"


def test_other_kinds_of_files_are_told_in_a_folder_and_read_when_named(tmp_path: Path) -> None:
    (tmp_path / "photo.JPG").touch()
    assert reasons(find([tmp_path])) == {"photo.JPG": ".jpg files in a folder are not read"}
    assert names(find([tmp_path / "photo.JPG"])) == ["photo.JPG"]


def test_a_file_named_twice_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").touch()
    monkeypatch.chdir(tmp_path)
    assert find([tmp_path, Path("a.md"), Path("x/../a.md")]).files == [tmp_path / "a.md"]


def test_a_path_that_is_not_there_is_an_error_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no file or folder .*gone\.md"):
        find([tmp_path, tmp_path / "gone.md"])


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a.md").symlink_to(tmp_path / "b.md")
    (tmp_path / "b.md").symlink_to(tmp_path / "a.md")
    (tmp_path / "c.md").symlink_to(tmp_path / "nowhere")
    (tmp_path / "home").symlink_to(tmp_path)
    found = find([tmp_path])
    assert found.files == []
    assert reasons(found) == {
        "a.md": "it is a loop of symbolic links",
        "b.md": "it is a loop of symbolic links",
        "c.md": "it is gone, or a link to nothing",
    }
    with pytest.raises(UnreadableDocument, match="loop"):
        read(tmp_path / "a.md")
    assert names(find([tmp_path / "a.md"])) == ["a.md"], "named, it is there, and cannot be read"


def test_a_link_to_a_file_is_read_and_one_to_a_folder_elsewhere_told(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.md").write_text("Boil.")
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "link.md").symlink_to(tmp_path / "other" / "a.md")
    (folder / "elsewhere").symlink_to(tmp_path / "other")
    found = find([folder])
    assert names(found) == ["link.md"]
    assert reasons(found) == {"elsewhere": "it is a link to a folder elsewhere; add that folder itself"}
    assert read(folder / "link.md") == b"Boil."


def test_what_is_no_file_is_told_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert reasons(find([tmp_path])) == {"pipe.md": "it is not a file"}
    with pytest.raises(UnreadableDocument, match="not a file"):
        read(tmp_path / "pipe.md")


def test_a_folder_without_rights_is_told_and_the_rest_goes_on(open_folder: Path) -> None:
    (open_folder / "closed").mkdir()
    (open_folder / "closed" / "a.md").touch()
    (open_folder / "b.md").touch()
    (open_folder / "closed").chmod(0)
    with without_roots_rights():
        found = find([open_folder])
    (open_folder / "closed").chmod(0o700)
    assert names(found) == ["b.md"]
    assert reasons(found) == {"closed": "permission denied; give this user the right to read it"}
    assert found.closed == [display_path(open_folder / "closed")]


def test_a_file_without_rights_is_told(open_folder: Path) -> None:
    file = open_folder / "a.md"
    file.write_text("secret")
    file.chmod(0)
    with without_roots_rights(), pytest.raises(UnreadableDocument, match="give this user the right"):
        read(file)


def test_a_folder_is_no_file_to_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnreadableDocument, match=r"not a file|directory"):
        read(tmp_path)


def test_a_huge_file_is_refused_without_being_read(tmp_path: Path) -> None:
    file = tmp_path / "huge.md"
    with file.open("wb") as opened:
        opened.truncate(200 * 2**20)
    with pytest.raises(UnreadableDocument, match=r"it has 200 MB, and at most 32 MB are read.*split it"):
        read(file)
    assert MAX_BYTES == 32 * 2**20


def test_a_file_that_never_stops_changing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.md"
    file.write_text("one")
    real, looks = os.fstat, []

    def growing(descriptor: int) -> os.stat_result:
        looks.append(descriptor)
        with file.open("a") as opened:
            opened.write("more")
        return real(descriptor)

    monkeypatch.setattr(files, "PAUSE", 0.0)
    monkeypatch.setattr(files.os, "fstat", growing)
    with pytest.raises(UnreadableDocument, match="changes while it is read; add it again"):
        read(file)
    assert len(looks) >= 2 * files.ATTEMPTS


def test_a_file_that_changes_once_is_read_as_it_is_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.md"
    file.write_text("one")
    real, looks = os.fstat, []

    def replaced(descriptor: int) -> os.stat_result:
        before = real(descriptor)
        if stat.S_ISREG(before.st_mode) and not looks:
            file.write_text("one and two")
        looks.append(descriptor)
        return before

    monkeypatch.setattr(files, "PAUSE", 0.0)
    monkeypatch.setattr(files.os, "fstat", replaced)
    assert read(file) == b"one and two"


def test_a_file_on_a_broken_disk_says_what_the_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files.os, "open", broken)
    with pytest.raises(UnreadableDocument, match=r"cannot be read \(Input/output error\)"):
        read(tmp_path / "a.md")


def test_names_that_are_no_text_are_spelled_out(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")
    Path(odd).write_text("Boil.")
    found = find([tmp_path])
    assert [display_path(file) for file in found.files] == [f"{tmp_path}/caf\\xe9.md"]
    assert read(found.files[0]) == b"Boil."
    assert display_path(tmp_path / "שלום.md") == f"{tmp_path}/שלום.md"


def test_a_folder_holds_itself_and_what_lies_in_it_and_nothing_with_a_longer_name() -> None:
    assert is_below("/a/b", "/a/b")
    assert is_below("/a/b/c", "/a/b")
    assert is_below("/a", "/")
    assert not is_below("/a/bc", "/a/b")
