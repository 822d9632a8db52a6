"""Adding: what is new, changed, the same, gone, and what cannot be read, on both databases."""

import os
from pathlib import Path
from typing import Any

import pytest

from memory.audience import Audience
from memory.documents import IngestProgress, files, ingest
from memory.documents.files import FoundFiles, UnreadFile
from memory.documents.ingest import deleted_paths
from memory.errors import NotFound, StoreUnavailable

TEA = "# Tea\n\nSencha is steeped for two minutes.\n\n## Water\n\nIt has eighty degrees."
COFFEE = "# Coffee\n\nEspresso is pressed through the powder."


async def test_files_and_folders_are_read_into_chunks(library: Any) -> None:
    tea, coffee = library.write("tea.md", TEA), library.write("more/coffee.txt", COFFEE)
    done = await library.add()
    assert done.added == (str(tea), str(coffee))
    assert (done.replaced, done.unchanged, done.removed, done.unread) == ((), (), (), ())
    assert done.chunks == 3, "in a text file a line of # is no heading"
    [first, _] = await library.knowledge.documents(Audience.of("anna"))
    assert (first.path, first.title, first.chunks, first.owner) == (str(coffee), "coffee", 1, "global")
    assert first.added_at == library.house.clock.now


async def test_what_is_unchanged_is_skipped(library: Any) -> None:
    path = str(library.write("tea.md", TEA))
    await library.add()
    before = await library.knowledge.documents(Audience.of("anna"))
    library.house.clock.move(days=1)
    done = await library.add()
    assert (done.unchanged, done.added, done.chunks) == ((path,), (), 0)
    assert await library.knowledge.documents(Audience.of("anna")) == before


async def test_a_changed_file_is_read_again(library: Any) -> None:
    path = str(library.write("tea.md", TEA))
    await library.add()
    [before] = await library.knowledge.documents(Audience.of("anna"))
    library.house.clock.move(days=1)
    library.write("tea.md", "# Green tea\n\nSencha is steeped for three minutes.")
    done = await library.add()
    assert (done.replaced, done.added, done.chunks) == ((path,), (), 1)
    assert await library.found("how long is sencha steeped") == ["Sencha is steeped for three minutes."]
    [after] = await library.knowledge.documents(Audience.of("anna"))
    assert (after.id, after.title, after.chunks) == (before.id, "Green tea", 1)
    assert after.added_at > before.added_at


async def test_a_file_that_is_deleted_paths_an_added_folder_goes(library: Any) -> None:
    library.write("tea.md", TEA)
    coffee = library.write("coffee.md", COFFEE)
    await library.add()
    coffee.unlink()
    assert (await library.add()).removed == (str(coffee),)
    assert await library.names() == ["tea.md"]
    assert await library.found("espresso powder") == []


async def test_what_lies_outside_the_added_folder_or_is_anothers_stays(library: Any) -> None:
    library.write("one/tea.md", TEA)
    library.write("two/coffee.md", COFFEE)
    await library.add()
    await library.add(owner="user:anna")
    for name in ("one/tea.md", "two/coffee.md"):
        (library.folder / name).unlink()
    await library.add(library.folder / "one")
    assert await library.names() == ["tea.md", "coffee.md", "coffee.md"]
    assert await library.names("ben") == ["coffee.md"]


async def test_a_file_that_is_added_by_itself_takes_nothing_else_away(library: Any) -> None:
    library.write("tea.md", TEA)
    coffee = library.write("coffee.md", COFFEE)
    await library.add()
    (library.folder / "tea.md").unlink()
    assert (await library.add(coffee)).removed == ()
    assert await library.names() == ["coffee.md", "tea.md"]


async def test_what_cannot_be_read_is_told_and_the_rest_goes_on(library: Any, make_pdf: Any) -> None:
    library.write("a_binary.txt", bytes(range(256)) * 9)
    library.write("b_broken.pdf", b"%PDF-1.7 and no more")
    library.write("c_locked.pdf", make_pdf("secret", password="x"))
    library.write("d_pictures.pdf", make_pdf(""))
    library.write("e_empty.md", b"")
    library.write("f_headings.md", b"# Only\n\n## Headings")
    with library.write("g_huge.md", b"").open("wb") as huge:
        huge.truncate(200 * 2**20)
    library.write("h_picture.png", b"\x89PNG")
    library.write("tea.md", TEA)
    done = await library.add()
    assert [Path(path).name for path in done.added] == ["tea.md"]
    told = {Path(unread.path).name: unread.reason for unread in done.unread}
    reasons = {
        "a_binary.txt": "binary",
        "b_broken.pdf": "broken",
        "c_locked.pdf": "encrypted",
        "d_pictures.pdf": "OCR",
        "e_empty.md": "empty",
        "f_headings.md": "headings",
        "g_huge.md": "200 MB",
        "h_picture.png": "not read",
    }
    for name, why in reasons.items():
        assert why in told.pop(name)
    assert told == {}


async def test_what_was_read_once_stays_when_it_cannot_be_read_any_more(library: Any) -> None:
    path = library.write("tea.md", TEA)
    await library.add()
    path.write_bytes(bytes(99))
    done = await library.add()
    assert (done.removed, [unread.path for unread in done.unread]) == ((), [str(path)])
    assert await library.found("sencha steeped")


def test_what_lies_in_a_folder_that_is_closed_now_is_not_gone() -> None:
    found = FoundFiles(
        files=[Path("/a/here.md")],
        folders=["/a"],
        closed=["/a/closed"],
        unread=[UnreadFile("/a/link", "it is a link to a folder elsewhere")],
    )
    known = ["/a/here.md", "/a/gone.md", "/a/closed/x.md", "/a/link/y.md", "/b/z.md"]
    assert deleted_paths(found, known) == ["/a/gone.md"]


async def test_a_parser_that_stumbles_stops_nobody(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(name: str, data: bytes) -> Any:
        raise ZeroDivisionError

    library.write("tea.md", TEA)
    monkeypatch.setattr(ingest, "parse", stumble)
    [unread] = (await library.add()).unread
    assert unread.reason == "it cannot be parsed (ZeroDivisionError)"


async def test_a_path_that_is_not_there_adds_nothing(library: Any) -> None:
    library.write("tea.md", TEA)
    with pytest.raises(NotFound, match="no file or folder"):
        await library.add(library.folder, library.folder / "gone")
    assert await library.knowledge.empty()


async def test_documents_without_an_owner_are_refused(library: Any) -> None:
    with pytest.raises(ValueError, match="owner"):
        await library.add(owner="")


async def test_progress_is_told_file_by_file(library: Any) -> None:
    paths = [str(library.write(name, TEA + name)) for name in ("a.md", "b.md")]
    steps: list[IngestProgress] = []
    await library.knowledge.add([library.folder], progress=steps.append)
    assert steps == [IngestProgress(paths[0], 0, 2), IngestProgress(paths[1], 1, 2), IngestProgress("", 2, 2)]


async def test_a_crash_in_the_middle_loses_nothing_that_was_read(library: Any) -> None:
    for name in ("a.md", "b.md"):
        library.write(name, TEA + name)

    def crash(step: IngestProgress) -> None:
        if step.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await library.knowledge.add([library.folder], progress=crash)
    library.knowledge = library.opened()
    assert await library.names() == ["a.md"]
    assert await library.found("sencha steeped"), "read before the crash, indexed after it"
    done = await library.add()
    assert ([Path(p).name for p in done.added], [Path(p).name for p in done.unchanged]) == (
        ["b.md"],
        ["a.md"],
    )


async def test_a_replacement_that_fails_leaves_what_was_there(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.write("tea.md", TEA)
    await library.add()
    library.write("tea.md", "# Tea\n\nNo sencha.")
    monkeypatch.setattr(ingest.DocumentStore, "_empty_chunks", broken)
    with pytest.raises(StoreUnavailable):
        await library.add()
    monkeypatch.undo()
    assert "Sencha is steeped for two minutes." in await library.found("how long is sencha steeped")


async def broken(*_: object) -> None:
    raise StoreUnavailable("the disk is full")


async def test_many_chunks_are_indexed_while_the_rest_is_read(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.documents.ingest.BATCH", 2)
    monkeypatch.setattr("memory.documents.index_sync.BATCH", 2)
    for name in ("a.md", "b.md", "c.md"):
        library.write(name, TEA + name)
    counts: list[int] = []
    real = library.house.index.put

    async def put(points: Any) -> None:
        await real(points)
        counts.append(await library.house.index.count())

    library.house.index.put = put
    done = await library.add()
    assert (done.chunks, counts) == (6, [2, 4, 6])


async def test_names_that_are_no_text_are_kept(library: Any) -> None:
    odd = library.write(os.fsdecode(b"caf\xe9.md"), TEA)
    [path] = (await library.add()).added
    assert path == library.here("caf\\xe9.md")
    assert (await library.add()).unchanged == (path,)
    odd.unlink()
    assert (await library.add()).removed == (path,)


async def test_text_in_every_script_and_with_odd_letters_is_kept(library: Any) -> None:
    library.write("a.md", "# תה\n\nמשרים את התה שתי דקות.\n\n# 茶\n\n煎茶は二分です。")
    library.write("b.txt", b"a paragraph about kettles with a null\x00byte")
    done = await library.add()
    assert done.chunks == 2
    assert "binary" in done.unread[0].reason
    assert (await library.found("כמה זמן משרים תה"))[0] == "משרים את התה שתי דקות."
    assert (await library.found("煎茶は何分ですか"))[0] == "煎茶は二分です。"


async def test_a_file_that_changes_while_it_is_read_is_left_for_later(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.write("tea.md", TEA)
    monkeypatch.setattr(files, "ATTEMPTS", 0)
    [unread] = (await library.add()).unread
    assert "add it again" in unread.reason
    monkeypatch.undo()
    assert (await library.add()).added
