"""Adding, listing, finding and removing documents, and an index that follows SQL, on both databases."""

import os
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select

from memory.audience import GLOBAL, Audience
from memory.documents.files import FileListing, UnreadFile
from memory.documents.library import IngestProgress, deleted_paths, document_name
from memory.errors import NotFound
from memory.sql.tables import knowledge_chunks, knowledge_documents

ANNA = Audience.of("anna")
TEA = "# Tea\n\nSencha is steeped for two minutes.\n\n## Water\n\nIt has eighty degrees."
COFFEE = "# Coffee\n\nEspresso is pressed through the powder."


async def chunk_ids(library: Any) -> list[str]:
    return [row.id for row in await library.stack.database.rows(select(knowledge_chunks.c.id))]


async def row_count(library: Any) -> int:
    """All rows of documents and chunks."""
    tables = (knowledge_chunks, knowledge_documents)
    return sum([len(await library.stack.database.rows(select(table.c.id))) for table in tables])


async def test_only_the_readers_of_its_owner_find_a_document(library: Any) -> None:
    for name, owner in {"a": "user:anna", "b": "user:ben", "c": "place:acme/general", "d": GLOBAL}.items():
        path = library.write(f"{name}.md", f"# Tea of {name}\n\nSencha is steeped for {name} minutes.")
        await library.add(path, owner=owner)
    for user, place, readable in (
        ("anna", None, "ad"),
        ("ben", None, "bd"),
        ("anna", "acme/general", "cd"),
        ("ben", "acme/general/thread", "cd"),
        ("anna", "acme", "d"),
        (None, None, ""),
    ):
        assert await library.names(user, place) == [f"{name}.md" for name in readable]
        texts = {f"Sencha is steeped for {name} minutes." for name in readable}
        assert set(await library.found("how long is sencha steeped", user, place)) == texts


async def test_documents_go_by_path_folder_or_id(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("1.md", "2.md", "3.md", "4.md", "one/a.md", "one/two/b.md", "oneself.md"):
        library.write(name, TEA + name)
    await library.add()
    monkeypatch.chdir(library.folder)
    third, fourth = (await library.knowledge.documents(ANNA))[2:4]
    with pytest.raises(NotFound, match="no such document here"):
        await library.knowledge.remove(third.id[:7], GLOBAL)
    for target, names in {
        library.here("1.md"): ["1.md"],
        "2.md": ["2.md"],
        third.id[:8].upper(): ["3.md"],
        fourth.id: ["4.md"],
        library.here("one"): ["a.md", "b.md"],
    }.items():
        removed = await library.knowledge.remove(target, GLOBAL)
        assert [Path(document.path).name for document in removed] == names
    for target in ("", "  ", "nothing.md", "%", "00000000-0000"):
        with pytest.raises(NotFound):
            await library.knowledge.remove(target, GLOBAL)
    assert await library.names() == ["oneself.md"]


async def test_only_the_owners_own_are_removed_and_a_prefix_of_two_ids_is_ambiguous(library: Any) -> None:
    tea = library.write("tea.md", TEA)
    await library.add(owner="user:anna")
    for owner in ("user:ben", GLOBAL, ""):
        with pytest.raises(NotFound):
            await library.knowledge.remove(str(tea), owner)
    await library.add()
    assert len(await library.knowledge.remove_all("user:anna")) == 1
    assert await library.knowledge.remove_all("user:anna") == []
    assert await library.names() == ["tea.md"], "everybody's is still there"
    same = {"owner": GLOBAL, "title": "Tea", "digest": "", "added_at": library.stack.clock.now}
    twins = [{"id": f"0123456789{n}", "path": f"/{n}.md", **same} for n in "ab"]
    async with library.stack.database.write() as connection:
        await connection.execute(insert(knowledge_documents), twins)
    with pytest.raises(NotFound, match="begins the ids of 2 documents; give more of it"):
        await library.knowledge.remove("01234567", GLOBAL)
    assert [gone.path for gone in await library.knowledge.remove("0123456789a", GLOBAL)] == ["/a.md"]


async def test_what_is_searched_is_what_was_added_last(library: Any) -> None:
    tea = library.write("tea.md", TEA)
    await library.add()
    assert await library.found("how long is tea steeped")
    library.write("tea.md", COFFEE)
    await library.add()
    espresso = ["Espresso is pressed through the powder."]
    assert await library.found("espresso powder") == espresso
    assert await library.found("how long is tea steeped") == []
    library.stack.embedder.away = True
    assert await library.found("espresso powder") == espresso, "by words alone"
    assert await row_count(library) == 2
    await library.knowledge.remove(str(tea), GLOBAL)
    assert await library.found("espresso powder") == []
    assert await library.knowledge.empty()


def test_a_file_name_is_a_document_name_and_a_path_or_several_lines_are_not() -> None:
    for name in (
        "notes.md",
        "  notes.md ",
        "Über uns (2).pdf",
        "noch.ein.name",
        "README",
        ".env",
        "نیم\u200cفاصله.md",
    ):
        assert document_name(name) == name.strip()
    wrong = [
        "",
        "  ",
        ".",
        "..",
        "a/b.md",
        "/etc/passwd",
        "a\\b.md",
        "a\nb.md",
        "a\x00.md",
        "\ud800",
        "x" * 201,
    ]
    for name in wrong:
        with pytest.raises(ValueError, match=r"such as notes\.md"):
            document_name(name)


async def test_new_unchanged_changed_and_deleted_files(library: Any) -> None:
    tea, coffee = str(library.write("tea.md", TEA)), library.write("more/coffee.txt", COFFEE)
    done = await library.add()
    assert done.added == (tea, str(coffee))
    assert (done.replaced, done.unchanged, done.removed, done.unread) == ((), (), (), ())
    assert done.chunks == 3, "in a text file a line with # is not a heading"
    before = await library.knowledge.documents(ANNA)
    assert [(d.path, d.title, d.chunks, d.owner) for d in before] == [
        (str(coffee), "coffee", 1, "global"),
        (tea, "Tea", 2, "global"),
    ]
    assert before[0].added_at == library.stack.clock.now

    library.stack.clock.advance(days=1)
    done = await library.add()
    assert (done.unchanged, done.added, done.chunks) == ((tea, str(coffee)), (), 0)
    assert await library.knowledge.documents(ANNA) == before

    library.write("tea.md", "# Green tea\n\nSencha is steeped for three minutes.")
    coffee.unlink()
    done = await library.add()
    assert (done.replaced, done.removed, done.added, done.chunks) == ((tea,), (str(coffee),), (), 1)
    assert await library.found("how long is sencha steeped") == ["Sencha is steeped for three minutes."]
    assert await library.found("espresso powder") == []
    [after] = await library.knowledge.documents(ANNA)
    assert (after.id, after.title, after.chunks) == (before[1].id, "Green tea", 1)
    assert after.added_at > before[1].added_at


async def test_adding_removes_only_the_owners_deleted_files_in_that_folder(library: Any) -> None:
    library.write("one/tea.md", TEA)
    coffee = library.write("two/coffee.md", COFFEE)
    await library.add()
    await library.add(owner="user:anna")
    (library.folder / "one/tea.md").unlink()
    assert (await library.add(coffee)).removed == (), "a file that is added alone removes nothing else"
    coffee.unlink()
    await library.add(library.folder / "one")
    assert await library.names() == ["tea.md", "coffee.md", "coffee.md"]
    assert await library.names("ben") == ["coffee.md"]


def test_a_path_in_a_folder_that_cannot_be_listed_is_not_deleted() -> None:
    found = FileListing(
        files=[Path("/a/here.md")],
        folders=["/a"],
        closed=["/a/closed"],
        unread=[UnreadFile("/a/link", "it is a link to a folder elsewhere")],
    )
    known = ["/a/here.md", "/a/gone.md", "/a/closed/x.md", "/a/link/y.md", "/b/z.md"]
    assert deleted_paths(found, known) == ["/a/gone.md"]


async def test_unreadable_files_are_told_and_keep_their_earlier_version(library: Any, make_pdf: Any) -> None:
    tea = library.write("tea.md", TEA)
    await library.add()
    tea.write_bytes(bytes(99))
    unreadable = {
        "broken.pdf": (b"%PDF-1.7 and no more", "broken"),
        "locked.pdf": (make_pdf("secret", password="x"), "encrypted"),
        "pictures.pdf": (make_pdf(""), "OCR"),
        "empty.md": (b"", "empty"),
        "headings.md": (b"# Only\n\n## Headings", "headings"),
        "picture.png": (b"\x89PNG", "not read"),
    }
    for name, (data, _) in unreadable.items():
        library.write(name, data)
    library.write("coffee.md", COFFEE)
    done = await library.add()
    assert ([Path(path).name for path in done.added], done.removed) == (["coffee.md"], ())
    reasons = {Path(unread.path).name: unread.reason for unread in done.unread}
    assert "binary" in reasons.pop("tea.md")
    assert reasons.keys() == unreadable.keys()
    assert all(why in reasons[name] for name, (_, why) in unreadable.items())
    assert await library.found("sencha steeped")


async def test_progress_is_reported_and_a_crash_loses_nothing_that_was_read(library: Any) -> None:
    with pytest.raises(NotFound, match="no file or folder"):
        await library.add(library.folder, library.folder / "gone")
    with pytest.raises(ValueError, match="owner"):
        await library.add(owner="")
    assert await library.knowledge.empty()
    paths = [str(library.write(name, TEA + name)) for name in ("a.md", "b.md")]
    steps: list[IngestProgress] = []

    def crash(step: IngestProgress) -> None:
        steps.append(step)
        if step.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await library.knowledge.add([library.folder], progress=crash)
    assert steps == [IngestProgress(paths[0], 0, 2), IngestProgress(paths[1], 1, 2)]
    library.knowledge = library.opened()
    assert await library.names() == ["a.md"]
    assert await library.found("sencha steeped"), "read before the crash, indexed after it"
    done = await library.knowledge.add([library.folder], progress=steps.append)
    assert (done.added, done.unchanged) == ((paths[1],), (paths[0],))
    assert steps[-1] == IngestProgress("", 2, 2)


async def test_names_and_texts_in_every_script_are_kept(library: Any) -> None:
    odd = library.write(
        os.fsdecode(b"caf\xe9.md"), "# תה\n\nמשרים את התה שתי דקות.\n\n# 茶\n\n煎茶は二分です。"
    )
    [path] = (await library.add()).added
    assert path == library.here("caf\\xe9.md")
    assert (await library.add()).unchanged == (path,)
    assert (await library.found("כמה זמן משרים תה"))[0] == "משרים את התה שתי דקות."
    assert (await library.found("煎茶は何分ですか"))[0] == "煎茶は二分です。"
    odd.unlink()
    assert (await library.add()).removed == (path,)
