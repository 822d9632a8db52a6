"""Hachi in a made-up world, for `scale.py`: one size in a process of its own, so that its memory can be told.

    python benchmarks/scale_hachi.py SIZE SEARCHES REMEMBERS [BESIDE]

One JSON object on stdout. What is known beforehand goes in by a side door, rows straight into the tables and
then `catch_up`, since a million facts told one at a time would take hours. All that is timed afterwards goes
through the public API. With BESIDE, a world of that size is opened too and as many questions are asked in
both, turn by turn, so that whatever else the machine does slows them alike.
"""

import asyncio
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from scale_world import NOW, Fact, facts, new_facts, questions
from sqlalchemy import insert

from agent import Companion, Settings
from memory.audience import user_key
from memory.facts.compare import content_key
from memory.sql.tables import memories, memory_aliases, memory_owners

WARM_UP = 50
AT_A_TIME = 20_000
MANY = 2_000
"""Facts of one person that are remembered at once."""
PAGE = resource.getpagesize()


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


async def measure(size: int, searches: int, remembers: int, beside: int = 0) -> dict[str, Any]:
    """Times in milliseconds where the name says p50 or p95, else in seconds; sizes in megabytes."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.load(home=Path(folder), embedder="bundled")
        async with Companion.open(settings, clock=clock, upkeep=False) as pet:
            found: dict[str, Any] = {"memories": size, **await fill(pet, size)}
        started = time.perf_counter()
        async with Companion.open(settings, clock=clock, upkeep=False) as pet:
            [first] = questions(size, 1)
            await pet.search_memories(first.question, user=first.user)
            found["reopen_seconds"] = time.perf_counter() - started
            found |= await search(pet, questions(size, WARM_UP + searches))
            found |= await remember(pet, new_facts(size, WARM_UP + remembers))
            found["resident_mb"] = _resident()
            if beside:
                found |= await search_both(pet, size, beside, searches)
            clock.now += timedelta(days=8)
            found |= await purge(pet)
            found |= await remember_many(pet, new_facts(size, MANY))
        return found | {"disk_mb": _on_disk(Path(folder))}


async def fill(pet: Companion, size: int) -> dict[str, float]:
    with _progress() as progress:
        started = time.perf_counter()
        task = progress.add_task(f"{size:,} rows", total=size)
        for batch in _batches(facts(size)):
            await _write(pet, batch)
            progress.advance(task, len(batch))
        between = time.perf_counter()
        task = progress.add_task(f"{size:,} vectors", total=size)
        await pet.catch_up(lambda done: progress.advance(task, done))
        return {"rows_seconds": between - started, "index_seconds": time.perf_counter() - between}


def _batches(world: Iterator[Fact]) -> Iterator[list[Fact]]:
    while batch := list(islice(world, AT_A_TIME)):
        yield batch


async def _write(pet: Companion, batch: Sequence[Fact]) -> None:
    """As `remember` would leave them, all at once and without comparing."""
    known = [(str(uuid4()), fact) for fact in batch]
    rows = [
        {
            "id": id,
            "content": fact.text,
            "subjects": list(fact.subjects),
            "created_at": fact.said_at,
            "expires_at": fact.expires_at,
            "source": "note",
            "type": "fact",
            "importance": 0.5,
            "user_id": fact.user,
            "place": "dm",
        }
        for id, fact in known
    ]
    owners = [
        {"memory_id": id, "owner": user_key(fact.user), "content_key": content_key(fact.text)}
        for id, fact in known
    ]
    names = [
        {
            "memory_id": id,
            "owner": user_key(fact.user),
            "name": fact.names[0],
            "other": fact.names[1],
        }
        for id, fact in known
        if fact.names
    ]
    async with pet.components.database.write() as connection:
        for table, values in ((memories, rows), (memory_owners, owners), (memory_aliases, names)):
            if values:
                await connection.execute(insert(table), values)


async def search(pet: Companion, asked: Sequence[Fact]) -> dict[str, float]:
    found = []

    async def one(fact: Fact) -> None:
        hits = await pet.search_memories(fact.question, user=fact.user)
        found.append(any(hit.content == fact.text for hit in hits))

    took = await timed(one, asked)
    return {**percentiles("search", took), "found": statistics.fmean(found)}


async def search_both(pet: Companion, size: int, small: int, searches: int) -> dict[str, float]:
    """The medians here and in a world of the size `small`."""
    here: list[float] = []
    there: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.load(home=Path(folder), embedder="bundled")
        async with Companion.open(settings, clock=pet.clock, upkeep=False) as other:
            await fill(other, small)
            asked = [questions(world, WARM_UP + searches, seed=4) for world in (size, small)]
            for pair in zip(*asked, strict=True):
                for fact, who, took in zip(pair, (pet, other), (here, there), strict=True):
                    started = time.perf_counter()
                    await who.search_memories(fact.question, user=fact.user)
                    took.append(1000 * (time.perf_counter() - started))
    medians = (statistics.median(took[WARM_UP:]) for took in (here, there))
    return dict(zip(("turns_p50", "turns_beside_p50"), medians, strict=True))


async def remember(pet: Companion, told: Sequence[Fact]) -> dict[str, float]:
    async def one(fact: Fact) -> None:
        await pet.remember(fact.text, user=fact.user, subjects=fact.subjects)

    return percentiles("remember", await timed(one, told))


async def remember_many(pet: Companion, told: Sequence[Fact]) -> dict[str, float]:
    """How many facts of one person are remembered in a second where they are given at once, until all are in
    the index."""
    started = time.perf_counter()
    given = [{"content": fact.text, "subjects": fact.subjects} for fact in told]
    await pet.remember_many(given, user="somebody")
    return {"many_per_second": len(told) / (time.perf_counter() - started)}


async def purge(pet: Companion) -> dict[str, float]:
    started = time.perf_counter()
    gone = await pet.purge()
    return {"purged": len(gone), "purge_seconds": time.perf_counter() - started}


async def timed(todo: Callable[[Fact], Awaitable[None]], over: Sequence[Fact]) -> list[float]:
    """Milliseconds of each but the first ones, which warm up."""
    took = []
    for fact in over:
        started = time.perf_counter()
        await todo(fact)
        took.append(1000 * (time.perf_counter() - started))
    return took[WARM_UP:]


def percentiles(name: str, took: Sequence[float]) -> dict[str, float]:
    ordered = sorted(took)
    return {f"{name}_p50": statistics.median(ordered), f"{name}_p95": ordered[int(0.95 * len(ordered))]}


def _resident() -> float:
    """Of this process now; its peak where the system does not say."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * PAGE / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def _on_disk(folder: Path) -> float:
    """What it takes up there: the index asks for more room than it fills."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*")) / 1e6


def _progress() -> Progress:
    columns = (TextColumn("{task.description:>18}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(*map(int, sys.argv[1:])))))
