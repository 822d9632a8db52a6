"""Finding files in folders, whatever is odd in them, and reading them as they were at one moment."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory.documents import files
from memory.documents.files import FileListing, display_path, list_files, read
from memory.documents.formats.blocks import UnreadableDocument
from memory.errors import NotFound

NOBODY = 65534


@contextmanager
def as_another_user() -> Iterator[None]:
    """Root may open anything, so it becomes another user for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def names(found: FileListing) -> list[str]:
    return [file.name for file in found.files]


def reasons(found: FileListing) -> dict[str, str]:
    return {Path(unread.path).name: unread.reason for unread in found.unread}


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_documents_are_found_in_order_without_hidden_and_installed_ones(tmp_path: Path) -> None:
    touch(tmp_path, "b.md", "a.TXT", "deep/er/c.html", "deep/d.pdf", "README", "photo.JPG", ".hidden.md")
    touch(tmp_path, ".git/a.md", "node_modules/b.md", ".venv/c.md", "site-packages/d.md")
    found = list_files([tmp_path])
    assert names(found) == ["README", "a.TXT", "b.md", "d.pdf", "c.html"]
    assert reasons(found) == {"photo.JPG": ".jpg files in a folder are not read"}
    assert names(list_files([tmp_path / ".git", tmp_path / "photo.JPG"])) == ["a.md", "photo.JPG"], (
        "unless named"
    )


def test_a_file_is_found_once_and_a_missing_one_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a.md")
    monkeypatch.chdir(tmp_path)
    assert list_files([tmp_path, Path("a.md"), Path("x/../a.md")]).files == [tmp_path / "a.md"]
    with pytest.raises(NotFound, match=r"no file or folder .*gone\.md"):
        list_files([tmp_path, tmp_path / "gone.md"])


def test_no_link_leads_out_of_an_added_folder(tmp_path: Path) -> None:
    touch(tmp_path, "other/a.md", "papers/real.md")
    folder = tmp_path / "papers"
    links = {"a.md": folder / "b.md", "b.md": folder / "a.md", "c.md": folder / "nowhere", "home": folder}
    links |= {
        "out.md": tmp_path / "other" / "a.md",
        "elsewhere": tmp_path / "other",
        "in.md": folder / "real.md",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    found = list_files([folder])
    assert names(found) == ["in.md", "real.md"]
    assert reasons(found) == {
        "a.md": "it cannot be read: Too many levels of symbolic links",
        "b.md": "it cannot be read: Too many levels of symbolic links",
        "c.md": "it cannot be read: No such file or directory",
        "elsewhere": "it is a link to a folder elsewhere; add that folder itself",
        "out.md": "it is a link to a file elsewhere; add that file itself",
    }
    assert names(list_files([folder / "out.md"])) == ["out.md"]
    with pytest.raises(UnreadableDocument, match="symbolic links"):
        read(folder / "a.md")


def test_a_pipe_a_folder_and_a_huge_file_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert reasons(list_files([tmp_path])) == {"pipe.md": "it is not a file"}
    with pytest.raises(UnreadableDocument, match="not a file"):
        read(tmp_path / "pipe.md")
    with pytest.raises(UnreadableDocument, match=r"not a file|directory"):
        read(tmp_path)
    with (tmp_path / "huge.md").open("wb") as opened:
        opened.truncate(200 * 2**20)
    with pytest.raises(UnreadableDocument, match=r"it has 200 MB, and at most 32 MB are read; split it"):
        read(tmp_path / "huge.md")


def test_what_may_not_be_read_is_reported_and_the_rest_is_found() -> None:
    open_folder = Path(tempfile.mkdtemp())
    open_folder.chmod(0o755)  # any user may reach it, unlike pytest's own
    touch(open_folder, "closed/a.md", "b.md", "secret.md")
    (open_folder / "closed").chmod(0)
    (open_folder / "secret.md").chmod(0)
    with as_another_user():
        found = list_files([open_folder])
        with pytest.raises(UnreadableDocument, match="Permission denied"):
            read(open_folder / "secret.md")
    (open_folder / "closed").chmod(0o700)
    shutil.rmtree(open_folder)
    assert names(found) == ["b.md", "secret.md"]
    assert reasons(found) == {"closed": "it cannot be read: Permission denied"}
    assert found.closed == [display_path(open_folder / "closed")]


def test_a_file_that_changes_meanwhile_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.md"
    file.write_text("one")
    real = os.fstat

    def growing(descriptor: int) -> os.stat_result:
        before = real(descriptor)
        file.write_text(file.read_text() + " more")
        return before

    monkeypatch.setattr(files.os, "fstat", growing)
    with pytest.raises(UnreadableDocument, match="changes while it is read; add it again"):
        read(file)


def test_names_that_are_not_text_are_escaped(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_text("Boil.")
    found = list_files([tmp_path])
    assert [display_path(file) for file in found.files] == [f"{tmp_path}/caf\\xe9.md"]
    assert read(found.files[0]) == b"Boil."
    assert display_path(tmp_path / "שלום.md") == f"{tmp_path}/שלום.md"
