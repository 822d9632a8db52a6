"""What holds for the index in this process alone."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest
import qdrant_edge

from memory.errors import IndexUnavailable
from memory.index import Index, Point, Question
from memory.index.embedded import folder as files
from memory.index.embedded.index import EmbeddedIndex

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ANNA = frozenset({"user:anna"})

WRITER = """
import asyncio, sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID
from memory.index import Point
from memory.index.embedded.index import EmbeddedIndex

async def main():
    index = EmbeddedIndex(Path(sys.argv[1]), SimpleNamespace(name="one", dimension=4))
    print("open", await index.refresh(), flush=True)
    number = 1
    while True:
        now = datetime(2026, 11, 20, tzinfo=UTC)
        point = Point(str(UUID(int=number)), "memory", frozenset({"user:anna"}), "dogs", [1, 0, 0, 0], now)
        await index.put([point])
        print(number, flush=True)
        number += 1

asyncio.run(main())
"""


def index_in(folder: Path, name: str = "one", dimension: int = 4) -> EmbeddedIndex:
    return EmbeddedIndex(folder, SimpleNamespace(name=name, dimension=dimension))


def a_point(number: int) -> Point:
    return Point(str(UUID(int=number)), "memory", ANNA, "dogs", [1, 0, 0, 0], NOW)


def writing_to(folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITER, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def test_everything_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    with writing_to(tmp_path / "index") as writer:
        assert writer.stdout
        generation = writer.stdout.readline().split()[1]
        for line in writer.stdout:
            if line == "300\n":
                break
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split()
    acknowledged = max([300, *map(int, rest)])
    index = index_in(tmp_path / "index")
    wanted = [str(UUID(int=number)) for number in range(1, acknowledged + 1)]
    assert await index.refresh() == generation
    assert await index.present(wanted) == set(wanted)
    found = await index.search(Question(ANNA, NOW, text="dog", limit=acknowledged + 10))
    assert len(found.words) in {acknowledged, acknowledged + 1}
    await index.close()


async def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    with writing_to(folder) as writer:
        assert writer.stdout
        writer.stdout.readline()
        for call in (index_in(folder).count, index_in(folder, "two").count, index_in(folder).wipe):
            with pytest.raises(IndexUnavailable) as refused:
                await call()
            assert str(refused.value) == (
                f"the memory index in {folder} is in use by another hachi process; "
                "stop it, or set QDRANT_URL so that several can share one"
            )
        assert "1\n" in (writer.stdout.readline(), writer.stdout.readline())
        writer.kill()
        writer.stdout.read()


async def test_nothing_is_opened_before_it_is_needed(tmp_path: Path) -> None:
    await index_in(tmp_path / "index").close()
    assert not (tmp_path / "index").exists()


async def test_a_deleted_folder_is_made_again_as_another_generation(tmp_path: Path) -> None:
    index = index_in(tmp_path / "deep" / "index")
    await index.put([a_point(1)])
    before = await index.refresh()
    await index.close()
    shutil.rmtree(tmp_path / "deep")
    assert await index.refresh() != before
    assert await index.count() == 0
    await index.close()


@pytest.mark.parametrize("part", ["segments", "wal", "edge_config.json"])
async def test_a_lost_part_never_passes_for_the_same_index_without_its_points(
    tmp_path: Path, part: str
) -> None:
    index = index_in(tmp_path)
    await index.put([a_point(1)])
    before = await index.refresh()
    await index.close()
    place = tmp_path / part
    place.unlink() if place.is_file() else shutil.rmtree(place)
    assert await index.refresh() != before or await index.count() == 1
    await index.close()


async def test_another_dimension_rebuilds_beside_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("not ours")
    first = index_in(tmp_path)
    await first.refresh()
    await first.close()
    index = index_in(tmp_path, "two", 2)
    await index.put([Point(str(UUID(int=1)), "memory", ANNA, "dogs", [1, 0], NOW)])
    assert await index.count() == 1
    await index.close()
    assert (tmp_path / "diary.txt").read_text() == "not ours"


def overwrite(folder: Path, pattern: str) -> None:
    for file in folder.rglob(pattern):
        file.write_bytes(b"\x7f" * file.stat().st_size)


async def test_an_index_whose_points_would_take_no_change_is_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index = index_in(tmp_path)
    await index.put([a_point(1), a_point(2)])
    await index.close()
    overwrite(tmp_path, "mutable_id_tracker.versions")

    index = index_in(tmp_path)
    assert await index.count() == 0, "every row is due again"
    assert "points take no change" in caplog.text
    await index.close()


@pytest.mark.parametrize("damage", ["edge_config.json", "wal", "segments"])
async def test_a_damaged_folder_is_told_and_made_anew(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    index = index_in(tmp_path)
    await index.put([a_point(1)])
    before = await index.refresh()
    await index.close()
    place = tmp_path / damage
    for file in [place] if place.is_file() else [f for f in place.rglob("*") if f.is_file()]:
        file.write_bytes(b"\xff" * 64)
    assert await index.count() == 0
    assert await index.refresh() != before
    [told] = caplog.messages
    assert "is damaged" in told
    assert "rebuilt from the database" in told
    assert "\n" not in told
    await index.put([a_point(1)])
    assert await index.count() == 1
    await index.close()


@pytest.mark.parametrize("garbage", ["a file for the folder", "folders for files", "random bytes"])
async def test_an_index_is_made_whatever_the_folder_holds(tmp_path: Path, garbage: str) -> None:
    folder = tmp_path / "index"
    if garbage == "a file for the folder":
        folder.write_text("not an index")
    elif garbage == "folders for files":
        for name in ("edge_config.json", "seal.json", "wal", "copied"):
            (folder / name / "deep").mkdir(parents=True)
    else:
        (folder / "segments").mkdir(parents=True)
        for name in ("edge_config.json", "seal.json", "segments/one", "wal", "copied"):
            (folder / name).write_bytes(os.urandom(500))
    for rebuild in (True, False):
        index = index_in(folder)
        if rebuild:
            await index.wipe()
        await index.put([a_point(1)])
        assert await index.count() == 1
        await index.close()


def zero_all(folder: Path, pattern: str) -> None:
    for file in folder.rglob(pattern):
        size = file.stat().st_size
        os.truncate(file, 0)
        os.truncate(file, size)


async def test_lost_points_and_filters_are_found_by_the_check_before_it_opens(tmp_path: Path) -> None:
    """Edge opens these files without an error, and finds nothing."""
    index = index_in(tmp_path)
    await index.put([a_point(number) for number in range(1, 40)])
    await index.optimise()
    await index.close()
    zero_all(tmp_path, "*-owners-map/tracker.dat")
    found = await index.search(Question(ANNA, NOW, text="dogs", limit=100))
    assert len(found.words) == await index.count(), "made anew, or repaired from the log"
    await index.close()


async def test_a_closed_index_opens_without_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_in(tmp_path)
    await index.put([a_point(1)])
    await index.close()

    async def unexpected(_: Path) -> str:
        raise AssertionError("its files are as they were sealed")

    monkeypatch.setattr(files, "damage", unexpected)
    assert await index.count() == 1
    await index.close()


async def test_a_nearly_full_disk_stops_writing_and_not_searching(tmp_path: Path) -> None:
    free = [files.RESERVE]
    space = SimpleNamespace(name="one", dimension=4)
    index = EmbeddedIndex(tmp_path / "index", space, free=lambda _: free[0])
    await index.put([a_point(1)])
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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    command = ["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(tmp_path)]
    mounted = subprocess.run(command, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.slow
async def test_a_disk_that_is_really_full_does_not_end_the_process(small_disk: Path) -> None:
    with writing_to(small_disk / "index") as writer:
        assert writer.stdout
        writer.stdout.read()
        assert writer.wait() == 1, "an error, and no signal"
    index = index_in(small_disk / "index")
    with pytest.raises(IndexUnavailable, match="is nearly full"):
        await index.count()


async def test_a_creation_cut_short_is_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_short(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(qdrant_edge.UpdateOperation, "upsert_points", cut_short, raising=False)
        with pytest.raises(KeyboardInterrupt):
            await index_in(tmp_path).refresh()
    index = index_in(tmp_path)
    await index.put([a_point(1)])
    assert await index.count() == 1
    await index.close()


async def test_a_folder_that_cannot_be_made_is_told_and_tried_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    index: Index = index_in(tmp_path / "file" / "index")
    with pytest.raises(IndexUnavailable, match="cannot be kept in"):
        await index.count()
    (tmp_path / "file").unlink()
    assert await index.count() == 0
    await index.close()


async def test_a_vector_of_another_length_is_refused_in_one_line(tmp_path: Path) -> None:
    index = index_in(tmp_path)
    with pytest.raises(IndexUnavailable, match="expected dim: 4, got 2"):
        await index.put([Point(str(UUID(int=1)), "memory", ANNA, "dogs", [1, 0], NOW)])
    await index.close()


async def test_a_programming_error_is_not_taken_for_a_broken_index(tmp_path: Path) -> None:
    index = index_in(tmp_path)
    with pytest.raises(ValueError, match="as UUID"):
        await index.remove(["no uuid"])
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


ZOE = frozenset({"user:zoe"})


async def with_one_removed(folder: Path) -> tuple[EmbeddedIndex, str]:
    index = index_in(folder)
    await index.put([a_point(number) for number in range(1, 200)])
    gone = str(UUID(int=999))
    await index.put([Point(gone, "memory", ZOE, "cats", [0, 1, 0, 0], NOW)])
    assert await index.owned_by("user:zoe") == [gone]
    await index.remove([gone])
    assert await index.owned_by("user:zoe") == []
    await index.optimise()
    return index, gone


async def test_compacting_leaves_nothing_of_removed_points_in_the_files(tmp_path: Path) -> None:
    index, gone = await with_one_removed(tmp_path)
    assert holding(tmp_path, b"user:zoe"), "the engine keeps what was removed"
    generation = await index.refresh()

    assert await index.compact()

    assert holding(tmp_path, b"user:zoe") == holding(tmp_path, UUID(gone).bytes) == []
    assert (await index.count(), await index.refresh()) == (199, generation)
    question = Question(ANNA, NOW, dense=[1, 0, 0, 0], text="dogs", limit=200)
    found = await index.search(question)
    assert (len(found.dense), len(found.words)) == (199, 199)
    await index.close()
    assert await index_in(tmp_path).count() == 199


async def test_what_changes_while_it_is_compacted_is_kept(tmp_path: Path) -> None:
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


async def test_a_compaction_that_was_killed_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, _ = await with_one_removed(tmp_path)
    generation = await index.refresh()
    rename = Path.rename
    for renames in range(4):  # after so many files have changed places
        left = iter(range(renames))

        def killed(self: Path, target: Path, left: Iterator[int] = left) -> Path:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return rename(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", killed)
            with pytest.raises(KeyboardInterrupt):
                await index.compact()
        index = index_in(tmp_path)
        assert (await index.count(), await index.refresh()) == (199, generation)
    await index.compact()
    assert not {"copying", "copied"} & set(os.listdir(tmp_path))


async def test_an_index_that_is_closed_while_it_is_compacted_says_so(tmp_path: Path) -> None:
    index, _ = await with_one_removed(tmp_path)
    compacted = asyncio.create_task(index.compact())
    await asyncio.sleep(0)
    await index.close()
    with pytest.raises(IndexUnavailable, match="closed while it was compacted"):
        await compacted
    assert await index.count() == 199
