"""How long does it take to look at traces, where there are many?

    python benchmarks/traces.py [--traces N] [--home FOLDER] [--times N] [--json]

Makes a store of made-up traces and asks it what `hachi traces` asks: the newest, those
that fulfil a condition, one by the beginning of its id, the newest whole, how many there are. Each is asked
several times, in this process; then the commands are run as a person runs them, each a process of its own,
where most of the time goes to loading Python's modules, whatever the store holds.
Bar: whatever is asked of the store takes at most 0.3 s, the statistics of all one second. Exit 1 where one is
missed.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent.tracing.filters import TraceFilter
from agent.tracing.redact import Redaction
from agent.tracing.render.trace import overview_lines
from agent.tracing.serialization import Serializer
from agent.tracing.stats import stats_of
from agent.tracing.store.traces import Traces
from agent.tracing.trace import TURN, Summary
from memory.process.spans import Recording, Span
from memory.sql.engine import Database

BAR = 0.3
STATISTICS, STATISTICS_BAR = "the statistics of all", 1.0
LOT = 1_000
PEOPLE, PLACES = 200, 40
WORDS = "tea boat shoulder Lyon cat doctor train sister nuts ski lamp river friday garden piano".split()


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(options.home or folder)
        figures = asyncio.run(measured(home, options.traces, options.times))
        figures |= commands(home, options.times)
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, seconds in figures.items():
            print(f"{name:<44}{seconds * 1000:>9.1f} ms")
    bars = {name: BAR for name in figures if not name.startswith("hachi ")} | {STATISTICS: STATISTICS_BAR}
    slow = [name for name, bar in bars.items() if figures[name] > bar]
    for name in slow:
        print(f"missed: {name} takes more than {bars[name]} s", file=sys.stderr)
    return 1 if slow else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--home", help="where to keep the store; used again where it holds enough")
    parser.add_argument("--times", type=int, default=5, help="how often each is asked")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


async def measured(home: Path, how_many: int, times: int) -> dict[str, float]:
    """Seconds by what was asked, the median of some times."""
    database = await Database.open(None, home)
    try:
        traces = Traces(database)
        there = await traces.count(TraceFilter(kinds=frozenset()))
        if there < how_many:
            await fill(traces, there, how_many)
        return {name: await _median(ask, times) for name, ask in questions(traces).items()}
    finally:
        await database.close()


def questions(traces: Traces) -> dict[str, Callable[[], Awaitable[Any]]]:
    now = datetime.now(UTC)

    def listed(limit: int = 20, **wanted: Any) -> Callable[[], Awaitable[Any]]:
        return lambda: traces.list(TraceFilter(**wanted), now, limit)

    async def show(id: str) -> None:
        trace = await traces.get(id, now)
        overview_lines(trace, await traces.after(trace.id, now))

    return {
        "the newest 20": listed(),
        "the newest 20 of one person": listed(user="person 7"),
        "the newest 20 in one place": listed(place="place:acme/room%207"),
        "the newest 20 that failed": listed(failed=True),
        "the newest 20 with a tool": listed(tool="remember"),
        "the newest 20 with a tool that never was": listed(tool="nothing"),
        "the newest 20 with a word": listed(text="piano"),
        "the newest 20 with a word that never was": listed(text="zebra"),
        "the newest 20 that were slow": listed(slower=30.0),
        "the newest 20 of a day": listed(since=now - timedelta(days=1)),
        "show last": lambda: show("last"),
        "show by the beginning of an id": lambda: show(id_of(7)[6:14]),
        "show by a whole id": lambda: show(id_of(7)),
        "how many": lambda: traces.count(TraceFilter()),
        STATISTICS: lambda: stats_of(traces, TraceFilter(kinds=frozenset())),
    }


async def _median(ask: Callable[[], Awaitable[Any]], times: int) -> float:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        await ask()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def commands(home: Path, times: int) -> dict[str, float]:
    environment = {**os.environ, "HACHI_HOME": str(home)}
    found = {}
    for command in (["--help"], ["traces", "ls"], ["traces", "show", id_of(7)[6:14]]):
        taken = []
        for _ in range(times):
            begun = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "hachi", *command],
                env=environment,
                stdout=subprocess.DEVNULL,
                check=True,
            )
            taken.append(time.perf_counter() - begun)
        found[f"hachi {' '.join(command)}, a process"] = statistics.median(taken)
    return found


def id_of(number: int) -> str:
    return f"trace_{random.Random(number).getrandbits(128):032x}"


async def fill(traces: Traces, begin: int, how_many: int) -> None:
    serializer = Serializer("redacted", Redaction(), {"versions": {}, "tools": _TOOLS}, "cli", "elsewhere:1")
    now = datetime.now(UTC)
    for first in range(begin, how_many, LOT):
        numbers = range(first, min(first + LOT, how_many))
        moments = [now - timedelta(seconds=20 * (how_many - number)) for number in numbers]
        lot = [made_up(serializer, number, at) for number, at in zip(numbers, moments, strict=True)]
        await traces.write(lot, now)
        if sys.stderr.isatty():
            print(f"\r{first + LOT:,} traces are made", end="", file=sys.stderr)


def made_up(serializer: Serializer, number: int, at: datetime) -> tuple[Summary, bytes]:
    """A turn with a search and two calls; one in fifty fails, one in twenty has a tool that does."""
    chance = random.Random(number)

    def words(count: int) -> str:
        return " ".join(chance.choices(WORDS, k=count))

    candidates = [
        {"id": f"m{n}", "kind": "memory", "content": words(12), "score": 1 / n, "lanes": {"dense": 0.5}}
        for n in range(1, 21)
    ]
    found = {"query": words(3), "candidates": candidates, "found": [["m1", 1.0], ["m2", 0.5]]}
    usage = {"input": 1200 + number % 100, "output": 40, "cached": 1000}
    tool = Span("tool", "search_memories", 0.8, 0.02, data={"ok": number % 20 != 0, "result": words(60)})
    tool.spans = [Span("search", "", 0.8, 0.01, data=found)]
    call = {"request": {"system": words(600), "input": words(40)}, "usage": usage}
    root = Span(TURN, data={"incoming": {"text": words(8)}, "reply": {"message": words(12)}})
    root.spans = [
        Span("call", "some-model", 0.05, 0.7, data=call),
        tool,
        Span("call", "some-model", 0.9, 0.8, data=call),
    ]
    if number % 50 == 0:
        root.error = "ModelUnavailable: it did not answer"
    recorded = Recording(id_of(number), root)
    recorded.open = False
    root.took = 1.7 + chance.random()
    place = "" if number % 3 else f"place:acme/room%20{number % PLACES}"
    about = Summary(
        id=recorded.id,
        kind=TURN,
        started_at=at,
        user=f"person {number % PEOPLE}",
        place=place,
        conversation=f"c{number % PEOPLE}",
        model="some-model",
        said=words(8),
        reply=words(12),
    )
    return serializer.serialize(recorded, about)


_TOOLS = {
    name: {"description": " ".join(WORDS * 6), "parameters": {}} for name in ("search_memories", "remember")
}

if __name__ == "__main__":
    sys.exit(main())
