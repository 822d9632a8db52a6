"""Listing, finding and removing documents, and an index that follows SQL, on both databases."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select

from memory.audience import GLOBAL, Audience
from memory.documents.library import document_name
from memory.errors import NotFound
from memory.sql.tables import knowledge_chunks, knowledge_documents

ANNA = Audience.of("anna")
TEA = "# Tea\n\nSencha is steeped for two minutes."
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
