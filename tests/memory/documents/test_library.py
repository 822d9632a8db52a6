"""What is kept is listed, found, taken away and caught up with, by its owner and on both databases."""

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from memory.audience import GLOBAL, Audience
from memory.documents import ingest
from memory.errors import EmbedderUnavailable, IndexUnavailable, NotFound

ANNA = Audience.of("anna")
TEA = "# Tea\n\nSencha is steeped for two minutes."
COFFEE = "# Coffee\n\nEspresso is pressed through the powder."


async def chunk_ids(library: Any) -> list[str]:
    from sqlalchemy import select

    from memory.sql.tables import knowledge_chunks

    async with library.house.database.read() as connection:
        return list((await connection.execute(select(knowledge_chunks.c.id))).scalars())


async def rows(library: Any) -> int:
    """All rows that documents take."""
    from sqlalchemy import func, select

    from memory.sql.tables import knowledge_chunks, knowledge_documents

    async with library.house.database.read() as connection:
        return sum(
            [
                (await connection.execute(select(func.count()).select_from(table))).scalar_one()
                for table in (knowledge_chunks, knowledge_documents)
            ]
        )


async def test_a_library_is_empty_until_something_is_added(library: Any) -> None:
    assert await library.knowledge.empty()
    assert await library.knowledge.documents(ANNA) == []
    assert await library.knowledge.search("tea", ANNA) == []
    library.write("tea.md", TEA)
    await library.add()
    assert not await library.knowledge.empty()


async def test_nobody_reads_what_belongs_to_another(library: Any) -> None:
    for name, owner in {"a": "user:anna", "b": "user:ben", "c": "place:acme/general", "d": GLOBAL}.items():
        path = library.write(f"{name}.md", f"# Tea of {name}\n\nSencha is steeped for {name} minutes.")
        await library.add(path, owner=owner)
    assert await library.names("anna") == ["a.md", "d.md"]
    assert await library.names("ben") == ["b.md", "d.md"]
    assert await library.names("anna", "acme/general") == ["c.md", "d.md"]
    assert await library.names("ben", "acme/general/thread") == ["c.md", "d.md"]
    assert await library.names("anna", "acme") == ["d.md"]
    for user, place, read in (
        ("anna", None, "ad"), ("ben", None, "bd"), ("anna", "acme/general", "cd"), ("carl", "elsewhere", "d"),
    ):  # fmt: skip
        texts = {f"Sencha is steeped for {name} minutes." for name in read}
        assert set(await library.found("how long is sencha steeped", user, place)) == texts


async def test_an_anonymous_reader_gets_nothing(library: Any) -> None:
    library.write("tea.md", TEA)
    await library.add()
    nobody = Audience.of(None)
    assert await library.knowledge.documents(nobody) == []
    assert await library.knowledge.search("sencha", nobody) == []


async def test_the_record_decides_who_reads_whatever_the_index_says(library: Any) -> None:
    from sqlalchemy import update

    from memory.sql.tables import knowledge_documents

    library.write("tea.md", TEA)
    await library.add(owner="user:anna")
    async with library.house.database.write() as connection:
        await connection.execute(update(knowledge_documents).values(owner="user:ben"))
    assert await library.found("sencha steeped", "anna") == []


async def test_a_file_is_removed_by_its_path(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tea = library.write("tea.md", TEA)
    library.write("coffee.md", COFFEE)
    await library.add()
    [gone] = await library.knowledge.remove(str(tea), GLOBAL)
    assert gone.path == str(tea)
    monkeypatch.chdir(library.folder)
    [gone] = await library.knowledge.remove("coffee.md", GLOBAL)
    assert gone.path == library.here("coffee.md")
    assert await library.knowledge.empty()


async def test_a_folder_is_removed_with_all_below_it(library: Any) -> None:
    for name in ("one/a.md", "one/two/b.md", "oneself.md"):
        library.write(name, TEA + name)
    await library.add()
    gone = await library.knowledge.remove(library.here("one"), GLOBAL)
    assert [Path(document.path).name for document in gone] == ["a.md", "b.md"]
    assert await library.names() == ["oneself.md"]


async def test_a_document_is_removed_by_its_id_or_the_beginning_of_it(library: Any) -> None:
    library.write("tea.md", TEA)
    library.write("coffee.md", COFFEE)
    await library.add()
    coffee, tea = await library.knowledge.documents(ANNA)
    with pytest.raises(NotFound, match="no such document here"):
        await library.knowledge.remove(tea.id[:7], GLOBAL)
    assert await library.knowledge.remove(tea.id[:8].upper(), GLOBAL) == [tea]
    assert await library.knowledge.remove(coffee.id, GLOBAL) == [coffee]


async def test_an_id_that_two_documents_begin_with_is_not_enough(library: Any) -> None:
    from sqlalchemy import insert

    from memory.sql.tables import knowledge_documents

    same = {"owner": GLOBAL, "title": "Tea", "digest": "", "added_at": library.house.clock.now}
    twins = [{"id": f"0123456789{n}", "path": f"/{n}.md", **same} for n in "ab"]
    async with library.house.database.write() as connection:
        await connection.execute(insert(knowledge_documents), twins)
    with pytest.raises(NotFound, match="begins the ids of 2 documents; give more of it"):
        await library.knowledge.remove("01234567", GLOBAL)
    assert [gone.path for gone in await library.knowledge.remove("0123456789a", GLOBAL)] == ["/a.md"]


@pytest.mark.parametrize("what", ["", "  ", "nothing.md", "%", "00000000-0000"])
async def test_what_is_not_there_cannot_be_removed(library: Any, what: str) -> None:
    library.write("tea.md", TEA)
    await library.add()
    with pytest.raises(NotFound):
        await library.knowledge.remove(what, GLOBAL)
    assert await library.names() == ["tea.md"]


async def test_nobody_removes_what_belongs_to_another(library: Any) -> None:
    tea = library.write("tea.md", TEA)
    await library.add(owner="user:anna")
    for owner in ("user:ben", GLOBAL, ""):
        with pytest.raises(NotFound):
            await library.knowledge.remove(str(tea), owner)
    assert await library.names() == ["tea.md"]


async def test_all_of_an_owner_goes_at_once(library: Any) -> None:
    library.write("tea.md", TEA)
    await library.add(owner="user:anna")
    await library.add()
    assert len(await library.knowledge.remove_all("user:anna")) == 1
    assert await library.knowledge.remove_all("user:anna") == []
    assert await library.names() == ["tea.md"], "everybody's is still there"


async def test_what_is_removed_leaves_neither_row_nor_point(library: Any) -> None:
    tea = library.write("tea.md", TEA)
    await library.add()
    ids = await chunk_ids(library)
    assert await library.house.index.present(ids) == set(ids)
    await library.knowledge.remove(str(tea), GLOBAL)
    assert await library.house.index.present(ids) == set()
    assert await rows(library) == 0


async def test_what_is_replaced_leaves_neither_row_nor_point(library: Any) -> None:
    library.write("tea.md", TEA)
    await library.add()
    old = await chunk_ids(library)
    library.write("tea.md", "# Tea\n\nSencha is steeped for three minutes.")
    await library.add()
    assert await library.house.index.present(old) == set()
    assert await rows(library) == 2


async def test_without_the_index_things_are_added_and_removed_all_the_same(
    library: Any, caplog: pytest.LogCaptureFixture
) -> None:
    tea = library.write("tea.md", TEA)
    await library.add()
    ids = await chunk_ids(library)
    library.house.index.away = True
    await library.knowledge.remove(str(tea), GLOBAL)
    library.write("tea.md", COFFEE)
    await library.add()
    assert "the index of documents is not up to date" in caplog.text
    with pytest.raises(IndexUnavailable):
        await library.knowledge.search("espresso", ANNA)
    library.house.index.away = False
    assert await library.house.index.present(ids), "still in the index …"
    assert await library.found("espresso powder") == ["Espresso is pressed through the powder."]
    assert await library.house.index.present(ids) == set(), "… until it is caught up"
    assert await rows(library) == 2


async def test_text_that_was_removed_is_gone_at_once_though_the_index_is_away(library: Any) -> None:
    from sqlalchemy import select

    from memory.sql.tables import knowledge_chunks

    tea = library.write("tea.md", TEA)
    await library.add(owner="user:anna")
    library.house.index.away = True
    await library.knowledge.remove(str(tea), "user:anna")
    async with library.house.database.read() as connection:
        [row] = await connection.execute(select(knowledge_chunks))
    assert (row.text, row.heading) == ("", "")
    assert await library.knowledge.empty()
    assert await library.knowledge.remove_all("") == [], "what waits to leave the index is nobody's"


async def test_a_removal_needs_no_embedder(library: Any) -> None:
    tea = library.write("tea.md", TEA)
    library.write("coffee.md", COFFEE)
    await library.add()
    ids = await chunk_ids(library)
    library.house.embedder.away = True
    library.write("coffee.md", COFFEE + " Slowly.")
    await library.add()
    await library.knowledge.remove(str(tea), GLOBAL)
    assert await library.house.index.present(ids) == set()


async def test_without_the_embedder_search_goes_by_words(
    library: Any, caplog: pytest.LogCaptureFixture
) -> None:
    library.write("tea.md", TEA)
    await library.add()
    library.write("coffee.md", COFFEE)
    library.house.embedder.away = True
    await library.add()
    assert await library.found("sencha") == ["Sencha is steeped for two minutes."]
    assert "by words alone" in caplog.text
    assert "indexed so far" in caplog.text
    with pytest.raises(EmbedderUnavailable):
        await library.knowledge.catch_up()
    library.house.embedder.away = False
    assert await library.knowledge.catch_up() == 1
    assert await library.found("espresso powder")


async def test_an_index_that_is_lost_is_made_anew_from_the_record(library: Any) -> None:
    library.write("tea.md", TEA)
    library.write("coffee.md", COFFEE)
    await library.add()
    await library.house.index.wipe()
    told: list[int] = []
    library.knowledge = library.opened()
    assert await library.knowledge.catch_up(told.append) == 2
    assert told == [2]
    assert await library.knowledge.catch_up() == 0
    assert await library.found("sencha steeped")


async def test_what_another_process_adds_is_found_by_one_that_runs_already(library: Any) -> None:
    library.write("tea.md", TEA)
    await library.add()
    running = library.opened()
    assert await running.search("sencha steeped", ANNA)
    library.house.index.away = True  # the running one holds it
    library.write("coffee.md", COFFEE)
    await library.add()
    library.house.index.away = False
    [chunk, *_] = await running.search("espresso powder", ANNA)
    assert chunk.text == "Espresso is pressed through the powder."


async def test_what_is_removed_while_it_is_indexed_does_not_stay_in_the_index(library: Any) -> None:
    library.write("tea.md", TEA)
    other = library.opened()
    real = library.house.index.put

    async def put(points: Any) -> None:
        library.house.index.put = real
        await other.remove(library.here("tea.md"), GLOBAL)
        await real(points)

    library.house.index.put = put
    await library.add()
    assert await library.house.index.count() == 0
    assert await rows(library) == 0


async def test_the_log_says_nothing_when_all_is_well(library: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    library.write("tea.md", TEA)
    await library.add()
    await library.found("sencha")
    assert caplog.text == ""


async def test_of_what_is_handed_over_one_is_read_at_a_time(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, reading, most = ingest._parse, [], []

    def slowly(name: str, data: bytes, known: str | None) -> Any:
        reading.append(name)
        time.sleep(0.02)
        most.append(len(reading))
        reading.remove(name)
        return cut(name, data, known)

    monkeypatch.setattr(ingest, "_parse", slowly)
    await asyncio.gather(
        *(library.knowledge.add_document(f"{at}.md", TEA.encode(), GLOBAL) for at in range(4))
    )
    assert most == [1, 1, 1, 1]
    assert len(await library.knowledge.documents(ANNA)) == 4
