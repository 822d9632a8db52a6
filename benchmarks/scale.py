"""Measure searching, remembering and purging, from a thousand memories to a hundred thousand and more.

    python benchmarks/scale.py [--sizes 1000,10000,100000] [--readers 400,20000] [--searches N] [--json]
    python benchmarks/scale.py --people 10000,1000000,100000000 [--json]

Each size is a made-up world of people with 200 facts each, in its own process, with SQLite and the bundled
embedder. `remember_many` fills it. Then random people search and remember new facts, and a purge runs after a
hundredth has expired. `--readers` adds people with that many messages each. For each of them it reports the
time of a first search, of a search right after a write, and of any other; and the time of a search if 40
people ask at once. No model and no network take part.

With `--people` it computes instead what an installation for that many people needs, from the measured costs
of a turn (`COSTS`), and simulates one of its shards in the busiest hour (docs/scaling.md).

Bar: at 100,000 memories a search takes at most twice what it takes at 10,000. Exit 1 if it is missed. The bar
is not checked unless both sizes were run.
"""

import argparse
import asyncio
import heapq
import json
import math
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness import arguments, finish, new_companion, percentile

from hachi import Companion

PER_PERSON, EXPIRING, WARM_UP, AT_ONCE = 200, 100, 50, 40
SLOWER, SMALL, LARGE = 2.0, 10_000, 100_000
_WORLD = json.loads((Path(__file__).parent / "data/scale_world.json").read_text(encoding="utf-8"))
"""Names, words, and templates of a fact with its question."""


@dataclass(frozen=True, slots=True)
class Fact:
    user: str
    text: str
    question: str
    ttl: str | None


def told(person: int, count: int, seed: int = 1) -> Iterator[Fact]:
    """Yield `count` different facts of a person; the same seed gives the same facts."""
    rng, known = random.Random(f"{seed}/{person}"), set[str]()
    while len(known) < count:
        a, b = rng.sample(_WORLD["names"], 2)
        slots: dict[str, Any] = {name: rng.choice(words) for name, words in _WORLD["words"].items()}
        slots |= {"n": rng.randrange(11, 1000), "year": rng.randrange(1985, 2026)}
        form, question = rng.choice(_WORLD["forms"])
        text = form.format(a=a, b=b, **slots)
        if text not in known:
            known.add(text)
            ttl = "7d" if len(known) % EXPIRING == 0 else None
            yield Fact(f"user-{person}", text, question.format(a=a, b=b, **slots), ttl)


def people(size: int) -> int:
    return max(1, size // PER_PERSON)


def questions(size: int, count: int) -> list[Fact]:
    """Return facts of that world, spread over its people, each with its question."""
    rng = random.Random(3)
    chosen = [rng.randrange(people(size)) for _ in range(count)]
    return [rng.choice(list(told(person, min(PER_PERSON, size)))) for person in chosen]


def new_facts(size: int, count: int) -> list[Fact]:
    rng = random.Random(2)
    return [next(told(rng.randrange(people(size)), 1, seed=at + 10)) for at in range(count)]


async def measure(size: int, searches: int, remembers: int, readers: Sequence[int] = ()) -> dict[str, Any]:
    """Return the figures: p50 and p95 are milliseconds; others are seconds, megabytes or a share."""
    now = datetime(2026, 11, 21, 9, tzinfo=UTC)
    async with new_companion({}, clock=lambda: now) as pet:
        started = time.perf_counter()
        for person in range(people(size)):
            facts = [{"content": f.text, "ttl": f.ttl} for f in told(person, min(PER_PERSON, size))]
            await pet.memories.remember_many(facts, user=f"user-{person}")
        await pet.admin.catch_up()
        filled = time.perf_counter() - started
        found: list[bool] = []

        async def search(fact: Fact) -> None:
            hits = await pet.search_memories(fact.question, user=fact.user)
            found.append(any(hit.content == fact.text for hit in hits))

        async def remember(fact: Fact) -> None:
            await pet.remember(fact.text, user=fact.user)

        asked = questions(size, WARM_UP + searches)
        result = {
            "memories_per_second": size / filled,
            **await percentiles("search", search, asked),
            "found": statistics.fmean(found),
            **await percentiles("remember", remember, new_facts(size, WARM_UP + remembers)),
            **{f"reader of {lines}": await of_reader(pet, lines) for lines in readers},
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        }
        started = time.perf_counter()
        await asyncio.gather(*map(search, asked[:AT_ONCE]))
        result |= {"all_at_once_ms": 1000 * (time.perf_counter() - started)}
        now += timedelta(days=8)
        started = time.perf_counter()
        result |= {"purged": len(await pet.admin.purge()), "purge_seconds": time.perf_counter() - started}
        disk = sum(file.stat().st_size for file in pet.settings.home.rglob("*"))
        return result | {"disk_mb": disk / 1e6}


async def of_reader(pet: Companion, lines: int) -> dict[str, float]:
    """Return the milliseconds of a person's searches: the first, one after a write, any other."""
    facts, names = list(told(lines, lines, seed=7)), ("first_p50", "after_write_p50", "search_p50")
    sent = [{"author": "Ana", "text": fact.text, "sent_at": "2026-11-01T09:00Z"} for fact in facts]
    took: dict[str, list[float]] = {name: [] for name in names}
    await pet.conversations.import_messages(sent[30:], user=f"reader-{lines}")
    for at, name in ((at, name) for at in range(max(3, min(30, 40_000 // lines))) for name in names):
        if name == "first_p50":
            pet.components.sync.engine.clear()
        elif name == "after_write_p50":
            await pet.conversations.import_messages(sent[at : at + 1], user=f"reader-{lines}")
        started = time.perf_counter()
        await pet.search_memories(facts[at].question, user=f"reader-{lines}")
        took[name].append(1000 * (time.perf_counter() - started))
    return {name: percentile(of, 50) for name, of in took.items()}


async def percentiles(
    name: str, act: Callable[[Fact], Awaitable[None]], over: Sequence[Fact]
) -> dict[str, float]:
    """Return the p50 and p95 of the calls in milliseconds, without the first ones, which warm up."""
    took = []
    for fact in over:
        started = time.perf_counter()
        await act(fact)
        took.append(1000 * (time.perf_counter() - started))
    return {f"{name}_p{share}": percentile(took[WARM_UP:], share) for share in (50, 95)}


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured costs, with where they were measured, and assumptions about what people do."""

    process_ms: float = 34.0  # CPU time a turn: serve.py --users 30 --turns 900 --facts 300, on PostgreSQL
    database_ms: float = 9.5  # CPU time of PostgreSQL 15 a turn, in the same run
    index_ms: float = 13.4  # a search on Qdrant 1.19 with 300,000 points of 3,000 owners
    searches: float = 1.5  # a turn, including those that compare a new fact with others
    row_bytes: float = 5_500  # what a turn adds to PostgreSQL without its trace; with it 25,000
    vector_bytes: float = 2 * 1_024  # a vector in PostgreSQL, of 1,024 dimensions
    point_bytes: float = 6_700  # a point in the memory of that Qdrant server: 2.0 GB for 300,000
    points: float = 2.3  # added by a turn: two messages, and a fact in every third turn
    turns_a_day: float = 3.0  # a person, averaged over all days
    busiest: float = 3.0  # turns of the busiest hour, relative to the mean
    days: int = 365  # days of transcript that are stored


COSTS = Costs()
BUSY = 0.6
"""The greatest share of a part's capacity that is used in the busiest hour."""
CORES, TERABYTES, GIGABYTES = 16, 8, 256
"""Cores and disk of one PostgreSQL server; memory of one Qdrant node."""


def needs(people: int) -> dict[str, float]:
    """Return what `people` need in the busiest hour: turns a second, processes of one core each, shards (each
    its own PostgreSQL), Qdrant nodes; and how many people one of each can serve."""
    costs, turns = COSTS, COSTS.turns_a_day * COSTS.busiest / 86_400
    kept = costs.turns_a_day * costs.days
    bears = {
        "a_process": BUSY / (turns * costs.process_ms / 1e3),
        "a_postgresql": min(
            BUSY * CORES / (turns * costs.database_ms / 1e3),
            TERABYTES * 1e12 / (kept * (costs.row_bytes + costs.points * costs.vector_bytes)),
        ),
        "a_qdrant_node": min(
            BUSY * CORES / (turns * costs.searches * costs.index_ms / 1e3),
            GIGABYTES * 1e9 / (kept * costs.points * costs.point_bytes),
        ),
    }
    return {
        "turns_a_second": people * turns,
        **{name.removeprefix("a_"): math.ceil(people / borne) for name, borne in bears.items()},
        **{f"{name}_bears": borne for name, borne in bears.items()},
    }


def added(turns_a_second: float, processes: int, seconds: float = 300) -> dict[str, float]:
    """Return the milliseconds that turns wait and work, without the model, in a simulated busiest hour. In
    the order of arrival each uses a process, then a core of PostgreSQL, then a core of Qdrant."""
    rng, now, took = random.Random(1), 0.0, []
    stations = (
        ([0.0] * processes, COSTS.process_ms),
        ([0.0] * CORES, COSTS.database_ms),
        ([0.0] * CORES, COSTS.searches * COSTS.index_ms),
    )
    while now < seconds:
        now += rng.expovariate(turns_a_second)
        done = now
        for free, ms in stations:
            done = max(done, heapq.heappop(free)) + rng.expovariate(1e3 / ms)
            heapq.heappush(free, done)
        took.append(1e3 * (done - now))
    return {f"added_p{share}": percentile(took, share) for share in (50, 95)}


def installation(people: int) -> dict[str, float]:
    """Return what `people` need, and how one shard of it performs in the busiest hour."""
    found = needs(people)
    shards = found["postgresql"]
    turns = found["turns_a_second"] / shards
    return found | added(turns, math.ceil(found["process"] / shards), min(300.0, 30_000 / turns))


def slower_with_size(rows: dict[int, dict[str, float]]) -> float | None:
    """Return how many times as long a search takes in the large world as in the small one."""
    if not {SMALL, LARGE} <= rows.keys():
        return None
    return rows[LARGE]["search_p50"] / rows[SMALL]["search_p50"]


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000", help="how many memories, with commas between")
    parser.add_argument("--searches", type=int, default=300)
    parser.add_argument("--remembers", type=int, default=150)
    parser.add_argument("--readers", default="400", help="lines of one person, with commas between")
    parser.add_argument("--people", help="how many an installation is for, with commas between")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.people:
        return finish(options, {f"{n} people": installation(n) for n in map(int, options.people.split(","))})
    if options.one:
        readers = [int(lines) for lines in options.readers.split(",") if lines]
        print(json.dumps(asyncio.run(measure(options.one, options.searches, options.remembers, readers))))
        return 0
    rows = {}
    for size in map(int, options.sizes.split(",")):
        counts = ["--one", size, "--searches", options.searches, "--remembers", options.remembers]
        command = [sys.executable, __file__, *map(str, counts), "--readers", options.readers]
        rows[size] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    ratio = slower_with_size(rows)
    slower = ratio is not None and ratio > SLOWER
    missed = [f"a search at {LARGE:,} takes {ratio:.2f} times as long as at {SMALL:,}"] if slower else []
    return finish(options, {"sizes": rows, "ratio": ratio}, missed)


if __name__ == "__main__":
    sys.exit(main())
