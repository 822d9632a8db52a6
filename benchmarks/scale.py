"""Searching, remembering and purging, from a thousand memories to a hundred thousand and more.

    python benchmarks/scale.py [--sizes 1000,10000,100000] [--searches N] [--remembers N] [--json]

Each size is a made-up world of people with 200 facts each, in a process of its own, with the embedded
default: SQLite, Qdrant Edge and the bundled embedder. It is filled by `remember_many`, then asked questions
of random people, told new facts, and purged once a hundredth has expired. No model and no network take part.

Bar: at 100,000 memories a search takes at most twice what it takes at 10,000. Exit 1 where that is missed; it
is left out where one of the two was not run.
"""

import argparse
import asyncio
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from hachi import Companion, Settings

PER_PERSON, EXPIRING, WARM_UP = 200, 100, 50
SLOWER, SMALL, LARGE = 2.0, 10_000, 100_000
NAMES = (
    "Ana Ben Carla David Elif Farid Greta Hugo Ines Jonas Kira Liam Mina Noor Oscar Paula Rosa Samir".split()
)
WORDS = {
    "place": "Lyon Porto Haifa Ghent Turin Bergen Seville Krakow Leeds Tartu Basel Malmo Split Nantes Bilbao",
    "thing": "bicycle guitar telescope kayak typewriter piano camera tent violin kite canoe loom easel harp",
    "food": "olives mango walnuts figs pickles lentils noodles ginger fennel cherries pistachios aubergines",
    "job": "nurse carpenter geologist baker librarian pilot cellist optician tailor welder archivist",
    "hobby": "climbing rowing knitting fencing calligraphy pottery judo archery juggling diving stargazing",
    "month": "January March April May June July August September October November",
}
FORMS = (
    ("{a}'s friend {b} lives in {place} near the {thing} shop.", "Where does {a}'s friend {b} live?"),
    ("{a} bought a {thing} for {n} euros in {month}.", "What did {a} pay for the {thing}?"),
    ("{a} likes {food} since the holiday in {place}.", "Which food does {a} like?"),
    ("{a} worked as a {job} in {place} until {year}.", "What was {a}'s job in {place}?"),
    ("{a} goes {hobby} with {b} every {month}.", "Who goes {hobby} with {a}?"),
    ("{a} keeps {n} books about {hobby} on the shelf.", "How many books about {hobby} has {a} got?"),
    ("{b} lent {a} a {thing} and wants it back in {month}.", "What did {b} lend to {a}?"),
    ("{a} met {b} at a {hobby} course in {place} in {year}.", "How did {a} meet {b}?"),
    ("{a} sees the {job} on {day} {month} at {n}.", "When does {a} see the {job}?"),
    ("{a} won {n} points in the {hobby} contest of {year}.", "How did the {hobby} contest go for {a}?"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    user: str
    text: str
    question: str
    ttl: str | None


def told(person: int, count: int, seed: int = 1) -> Iterator[Fact]:
    """`count` different facts of a person; the same seed gives the same ones."""
    rng, known = random.Random(f"{seed}/{person}"), set[str]()
    while len(known) < count:
        a, b = rng.sample(NAMES, 2)
        slots = {name: rng.choice(words.split()) for name, words in WORDS.items()}
        numbers = {
            "n": rng.randrange(11, 1000),
            "year": rng.randrange(1985, 2026),
            "day": rng.randrange(1, 29),
        }
        form, question = rng.choice(FORMS)
        text = form.format(a=a, b=b, **slots, **numbers)
        if text not in known:
            known.add(text)
            ttl = "7d" if len(known) % EXPIRING == 0 else None
            yield Fact(f"user-{person}", text, question.format(a=a, b=b, **slots, **numbers), ttl)


def people(size: int) -> int:
    return max(1, size // PER_PERSON)


def questions(size: int, count: int) -> list[Fact]:
    """Facts of that world, spread over its people, each with its question."""
    rng = random.Random(3)
    chosen = [rng.randrange(people(size)) for _ in range(count)]
    return [rng.choice(list(told(person, min(PER_PERSON, size)))) for person in chosen]


def new_facts(size: int, count: int) -> list[Fact]:
    rng = random.Random(2)
    return [next(told(rng.randrange(people(size)), 1, seed=at + 10)) for at in range(count)]


async def measure(size: int, searches: int, remembers: int) -> dict[str, Any]:
    """Milliseconds where the name says p50 or p95, else seconds, megabytes or a share."""
    now = datetime(2026, 11, 21, 9, tzinfo=UTC)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.load(home=Path(folder), embedder="bundled")
        async with Companion.open(settings, clock=lambda: now, upkeep=False) as pet:
            started = time.perf_counter()
            console = Console(stderr=True)
            for person in track(range(people(size)), f"{size:,} memories", console=console, transient=True):
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

            result = {
                "memories_per_second": size / filled,
                **await percentiles("search", search, questions(size, WARM_UP + searches)),
                "found": statistics.fmean(found),
                **await percentiles("remember", remember, new_facts(size, WARM_UP + remembers)),
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
            }
            now += timedelta(days=8)
            started = time.perf_counter()
            purged = len(await pet.admin.purge())
            purge = {"purged": purged, "purge_seconds": time.perf_counter() - started}
        return {**result, **purge, "disk_mb": on_disk(Path(folder))}


def on_disk(folder: Path) -> float:
    """Megabytes that the files take up: the index asks for more room than it fills."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*")) / 1e6


async def percentiles(
    name: str, act: Callable[[Fact], Awaitable[None]], over: Sequence[Fact]
) -> dict[str, float]:
    """Milliseconds of each but the first ones, which warm up."""
    took = []
    for fact in over:
        started = time.perf_counter()
        await act(fact)
        took.append(1000 * (time.perf_counter() - started))
    ordered = sorted(took[WARM_UP:])
    return {f"{name}_p50": statistics.median(ordered), f"{name}_p95": ordered[int(0.95 * len(ordered))]}


def slower_with_size(rows: dict[int, dict[str, float]]) -> float | None:
    """How much longer a search takes in the large world than in the small one."""
    if not {SMALL, LARGE} <= rows.keys():
        return None
    return rows[LARGE]["search_p50"] / rows[SMALL]["search_p50"]


def show(rows: dict[int, dict[str, float]]) -> None:
    table = Table(
        "memories", "search p50, p95", "found", "remember p50, p95", "filled", "purge", "peak", "disk"
    )
    for size, row in rows.items():
        table.add_row(
            f"{size:,}",
            f"{row['search_p50']:.2f}, {row['search_p95']:.2f} ms",
            f"{row['found']:.0%}",
            f"{row['remember_p50']:.2f}, {row['remember_p95']:.2f} ms",
            f"{row['memories_per_second']:,.0f} a second",
            f"{row['purged']:.0f} in {row['purge_seconds']:.2f} s",
            f"{row['peak_mb']:,.0f} MB",
            f"{row['disk_mb']:,.0f} MB",
        )
    Console().print(table)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000,100000", help="how many memories, with commas between")
    parser.add_argument("--searches", type=int, default=300)
    parser.add_argument("--remembers", type=int, default=150)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asyncio.run(measure(options.one, options.searches, options.remembers))))
        return 0
    rows = {}
    for size in map(int, options.sizes.split(",")):
        counts = ["--one", size, "--searches", options.searches, "--remembers", options.remembers]
        command = [sys.executable, __file__, *map(str, counts)]
        rows[size] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    ratio = slower_with_size(rows)
    print(json.dumps({"sizes": rows, "ratio": ratio}, indent=2)) if options.json else show(rows)
    if ratio is not None:
        print(f"a search at {LARGE:,} / at {SMALL:,}: {ratio:.2f}, at most {SLOWER:g}", file=sys.stderr)
    return 1 if ratio is not None and ratio > SLOWER else 0


if __name__ == "__main__":
    sys.exit(main())
