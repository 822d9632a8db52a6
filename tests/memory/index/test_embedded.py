"""What holds for the index in this process alone."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from memory.errors import IndexUnavailable
from memory.index import Point, Question
from memory.index.embedded import folder as files
from memory.index.embedded.index import EmbeddedIndex
from memory.sql.changes import Position

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ANNA = frozenset({"user:anna"})
HERE = Position(0, 7)

WRITER = """
import asyncio, itertools, sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID
from memory.index import Point
from memory.index.embedded.index import EmbeddedIndex
from memory.sql.changes import Position

async def this_database():
    return "this"

async def main():
    index = EmbeddedIndex(Path(sys.argv[1]), SimpleNamespace(name="one", dimension=4), this_database)
    await index.ensure()
    await index.advance(None, Position(0, 7))
    print("open", flush=True)
    for number in itertools.count(1):
        now = datetime(2026, 11, 20, tzinfo=UTC)
        point = Point(str(UUID(int=number)), "memory", frozenset({"user:anna"}), "dogs", [1, 0, 0, 0], now)
        await index.put([point])
        print(number, flush=True)

asyncio.run(main())
"""


async def this_database() -> str:
    return "this"


async def another_database() -> str:
    return "another"


def index_in(
    folder: Path, name: str = "one", dimension: int = 4, database: Any = this_database
) -> EmbeddedIndex:
    return EmbeddedIndex(folder, SimpleNamespace(name=name, dimension=dimension), database)


def a_point(number: int) -> Point:
    return Point(str(UUID(int=number)), "memory", ANNA, "dogs", [1, 0, 0, 0], NOW)


def writing_to(folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITER, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def with_points(folder: Path, count: int = 1) -> EmbeddedIndex:
    index = index_in(folder)
    await index.put([a_point(number) for number in range(1, count + 1)])
    await index.advance(None, HERE)
    return index


async def test_one_that_was_killed_is_made_anew(tmp_path: Path) -> None:
    with writing_to(tmp_path / "index") as writer:
        assert writer.stdout
        for line in writer.stdout:
            if line == "100\n":
                break
        writer.send_signal(signal.SIGKILL)
        writer.stdout.read()
    index = index_in(tmp_path / "index")
    assert (await index.position(), await index.count()) == (None, 0)
    await index.close()


@pytest.mark.parametrize("changed", [{"name": "two"}, {"dimension": 2}, {"database": another_database}])
async def test_one_of_another_embedder_or_database_is_made_anew(tmp_path: Path, changed: Any) -> None:
    await (await with_points(tmp_path)).close()
    index = index_in(tmp_path, **changed)
    assert (await index.position(), await index.count()) == (None, 0)
    await index.close()


@pytest.mark.parametrize("damage", ["edge_config.json", "segments", "clean.json"])
async def test_one_that_cannot_be_opened_is_made_anew(tmp_path: Path, damage: str) -> None:
    index = await with_points(tmp_path)
    await index.close()
    place = tmp_path / "1" / damage
    place.unlink() if place.is_file() else shutil.rmtree(place)
    for _ in range(2):
        position = await index.position()
        assert await index.count() == (1 if position else 0)
        await index.close()


async def test_an_index_is_made_whatever_the_folder_holds_or_tried_again(tmp_path: Path) -> None:
    parent, folder = tmp_path / "index", tmp_path / "index" / "1"
    (tmp_path / "file").write_text("")
    waiting = index_in(tmp_path / "file" / "index")
    with pytest.raises(IndexUnavailable, match="cannot be kept in"):
        await waiting.count()
    (tmp_path / "file").unlink()
    assert await waiting.count() == 0
    await waiting.close()
    (folder / "segments").mkdir(parents=True)
    for name in ("edge_config.json", files.CLEAN, "copied", "segments/one"):
        (folder / name).write_bytes(os.urandom(500))
    for rebuild in (True, False):
        index = index_in(parent)
        if rebuild:
            await index.wipe()
        await index.put([a_point(1)])
        assert await index.count() == 1
        await index.close()


@pytest.mark.parametrize("compacting", [False, True])
async def test_one_whose_folder_was_deleted_is_made_anew_and_held(tmp_path: Path, compacting: bool) -> None:
    parent = tmp_path / "index"
    index, _ = await with_one_removed(parent)
    compacted = asyncio.create_task(index.compact()) if compacting else None
    await asyncio.sleep(0)
    shutil.rmtree(parent)
    with pytest.raises(IndexUnavailable, match="cannot be kept in"):
        await (compacted or index.put([a_point(1)]))
    await index.put([a_point(1)])
    assert (await index.position(), await index.count()) == (None, 1)
    other = await with_points(parent)
    assert folders(parent) == ["1", "2"]
    await other.close()
    await index.close()


def folders(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.iterdir() if path.is_dir())


async def test_each_process_has_the_first_folder_that_no_other_holds(tmp_path: Path) -> None:
    with writing_to(tmp_path) as writer:
        assert writer.stdout
        writer.stdout.readline()
        second, third = await with_points(tmp_path), await with_points(tmp_path, 3)
        assert [index.folder.name for index in (second, third)] == ["2", "3"]
        writer.kill()
        writer.stdout.read()
    await third.optimise()
    assert folders(tmp_path) == ["2", "3"], "1 is nobody's"
    assert (await second.count(), await third.count()) == (1, 3)
    for index in (second, third):
        await index.close()
    first = index_in(tmp_path)
    await first.compact()
    assert folders(tmp_path) == ["1"]
    await first.close()


async def test_a_nearly_full_disk_stops_writing_and_not_searching(tmp_path: Path) -> None:
    free = [files.RESERVE]
    space = SimpleNamespace(name="one", dimension=4)
    index = EmbeddedIndex(tmp_path / "index", space, this_database, free=lambda _: free[0])
    await index.put([a_point(1)])
    await index.remove([a_point(2).id])
    free[0] -= 1
    for write in (index.put([a_point(2)]), index.remove([a_point(1).id]), index.optimise(), index.compact()):
        with pytest.raises(IndexUnavailable, match="is nearly full") as told:
            await write
        assert "\n" not in str(told.value)
    assert len((await index.search(Question(ANNA, NOW, text="dogs"))).words) == 1
    free[0] += 1
    await index.put([a_point(2)])
    assert await index.count() == 2
    await index.close()


async def test_a_panic_of_the_engine_does_not_end_the_process(tmp_path: Path) -> None:
    class PanicException(BaseException):
        pass

    class Panicking:
        def count(self, _: object) -> int:
            raise PanicException

        def close(self) -> None:
            raise PanicException

    index = index_in(tmp_path)
    index._shard = Panicking()  # type: ignore[assignment]
    with pytest.raises(IndexUnavailable, match="PanicException"):
        await index.count()
    await index.wipe()
    assert await index.count() == 0
    await index.close()


def holding(folder: Path, what: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and what in path.read_bytes()]


async def with_one_removed(folder: Path) -> tuple[EmbeddedIndex, str]:
    index = await with_points(folder, 199)
    gone = str(UUID(int=999))
    await index.put([Point(gone, "memory", frozenset({"user:zoe"}), "cats", [0, 1, 0, 0], NOW)])
    await index.remove([gone])
    await index.optimise()
    return index, gone


async def test_compacting_leaves_nothing_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, gone = await with_one_removed(tmp_path)
    assert holding(tmp_path, b"user:zoe"), "the engine keeps what was removed"
    await index.close()  # that it holds some is known to the next process

    assert await index.compact()

    assert holding(tmp_path, b"user:zoe") == holding(tmp_path, UUID(gone).bytes) == []
    assert (await index.count(), await index.position()) == (199, HERE)
    question = Question(ANNA, NOW, dense=[1, 0, 0, 0], text="dogs", limit=200)
    found = await index.search(question)
    assert (len(found.dense), len(found.words)) == (199, 199)
    await index.close()
    assert await index.count() == 199
    monkeypatch.setattr(files, "clear", None)
    await index.put([a_point(2)])
    assert await index.compact(), "nothing was removed since: a talk copies no files each hour"
    await index.close()


async def test_what_changes_while_it_is_compacted_is_kept_and_a_close_told(tmp_path: Path) -> None:
    index, _ = await with_one_removed(tmp_path)
    compacted = asyncio.create_task(index.compact())
    await asyncio.sleep(0)
    assert await index.compact(), "a second one leaves it to the first"
    await index.put([a_point(500)])
    await index.remove([str(UUID(int=1)), str(UUID(int=199))])
    await compacted
    ids = [str(UUID(int=number)) for number in (1, 2, 199, 500)]
    assert await index.present(ids) == {ids[1], ids[3]}
    assert await index.count() == 198

    await index.remove([str(UUID(int=2))])
    compacted = asyncio.create_task(index.compact())
    await asyncio.sleep(0)
    await index.close()
    with pytest.raises(IndexUnavailable, match="closed while it was compacted"):
        await compacted
    assert await index.count() == 197
    await index.close()
