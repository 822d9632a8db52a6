"""An index that is opened when it is first needed."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from memory.errors import IndexUnavailable
from memory.index import Index, Point, Question
from memory.index import lazy as late
from memory.index.embedded import EmbeddedIndex
from memory.index.lazy import LazyIndex

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ANNA = frozenset({"user:anna"})

HOLDER = """
import asyncio, sys
from pathlib import Path
from memory.index.embedded import EmbeddedIndex

async def main():
    index = await EmbeddedIndex.open(Path(sys.argv[1]), 4, "one")
    print("open", flush=True)
    sys.stdin.read()
    await index.close()

asyncio.run(main())
"""


def a_point() -> Point:
    return Point(str(uuid4()), "memory", ANNA, "dogs bark", [1, 0, 0, 0], NOW)


class Openings:
    """Counts how often the folder's index was opened, and whether to rebuild."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[bool] = []

    async def __call__(self, rebuild: bool) -> Index:
        self.asked.append(rebuild)
        return await EmbeddedIndex.open(self.folder, 4, "one", rebuild=rebuild)


@pytest.fixture
def openings(tmp_path: Path) -> Openings:
    return Openings(tmp_path / "index")


async def test_nothing_is_opened_before_it_is_needed(openings: Openings) -> None:
    await LazyIndex(openings).close()
    assert openings.asked == []
    assert not openings.folder.exists()


async def test_everything_asked_of_it_reaches_the_one_index(openings: Openings) -> None:
    index: Index = LazyIndex(openings)
    point = a_point()
    await index.put([point])
    found = await index.search(Question(ANNA, NOW, text="dog"))
    assert [ranked.id for ranked in found.words] == [point.id]
    assert await index.present([point.id, str(uuid4())]) == {point.id}
    assert await index.count() == 1
    generation = await index.refresh()
    await index.optimise()
    await index.remove([point.id])
    assert await index.count() == 0
    await index.wipe()
    assert await index.refresh() != generation
    assert openings.asked == [False]
    await index.close()


async def test_many_that_need_it_at_once_open_it_once(openings: Openings) -> None:
    index = LazyIndex(openings)
    await asyncio.gather(*(index.count() for _ in range(10)))
    assert openings.asked == [False]
    await index.close()


async def test_a_closed_one_closes_again_and_opens_again(openings: Openings) -> None:
    index = LazyIndex(openings)
    await index.put([a_point()])
    await index.close()
    await index.close()
    assert await index.count() == 1
    assert openings.asked == [False, False]
    await index.close()


CALLS: dict[str, Callable[[Index], Awaitable[object]]] = {
    "put": lambda index: index.put([a_point()]),
    "remove": lambda index: index.remove([str(uuid4())]),
    "search": lambda index: index.search(Question(ANNA, NOW, text="dog")),
    "count": lambda index: index.count(),
    "present": lambda index: index.present([str(uuid4())]),
    "refresh": lambda index: index.refresh(),
    "optimise": lambda index: index.optimise(),
    "wipe": lambda index: index.wipe(),
}


@pytest.mark.parametrize("call", CALLS)
async def test_where_it_cannot_be_opened_everything_says_so(call: str, openings: Openings) -> None:
    openings.folder.write_text("no folder")
    with pytest.raises(IndexUnavailable, match="the memory index cannot be kept in"):
        await CALLS[call](LazyIndex(openings))


async def test_what_could_not_be_opened_is_left_alone_for_a_moment_and_then_tried_again(
    openings: Openings, monkeypatch: pytest.MonkeyPatch
) -> None:
    openings.folder.write_text("no folder")
    index = LazyIndex(openings)
    for _ in range(3):
        with pytest.raises(IndexUnavailable):
            await index.count()
    assert openings.asked == [False]
    openings.folder.unlink()
    with pytest.raises(IndexUnavailable):
        await index.count()
    monkeypatch.setattr(late, "RETRY_AFTER", 0.0)
    assert await index.count() == 0
    assert openings.asked == [False, False]
    await index.close()


async def test_what_is_damaged_can_be_rebuilt(openings: Openings) -> None:
    index = LazyIndex(openings)
    await index.put([a_point()])
    await index.close()
    (openings.folder / "edge_config.json").write_text("damaged")
    with pytest.raises(IndexUnavailable, match="`hachi reindex` rebuilds it"):
        await index.count()
    await index.wipe()
    assert await index.count() == 0
    assert openings.asked == [False, False, True]
    await index.close()


async def test_what_breaks_while_it_is_open_can_be_rebuilt(openings: Openings) -> None:
    index = LazyIndex(openings)
    await index.put([a_point()])
    opened = await index.opened()

    async def broken() -> None:
        raise IndexUnavailable("it broke")

    opened.wipe = broken  # type: ignore[method-assign]
    await index.wipe()
    assert await index.count() == 0
    assert openings.asked == [False, True]
    await index.close()


def holding(folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HOLDER, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def test_what_another_process_holds_is_not_thrown_away(openings: Openings) -> None:
    with holding(openings.folder) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "open\n"
        index = LazyIndex(openings)
        for call in (index.count, index.wipe):
            with pytest.raises(IndexUnavailable, match="in use by another hachi process; stop it, or set"):
                await call()
        holder.communicate("done")
    assert holder.returncode == 0
