"""How long does it take to look at traces, where there are many?

    python benchmarks/traces.py [--traces N] [--home FOLDER] [--times N] [--json]

Makes a store of made-up traces and asks it what `hachi traces` asks: the newest, those that fulfil a
condition, one whole, how many there are. Each is asked several times; the middle counts.
Bar: whatever is asked of the store takes at most 0.3 s, the statistics of all one second; a text that stands
in none is looked for in each. Exit 1 where one is missed.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness import arguments, finish, over

from agent.tracing.redact import Redaction
from agent.tracing.render.trace import overview_lines
from agent.tracing.serialization import Serializer, Stored
from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.stats import stats_of
from agent.tracing.store.traces import Traces
from agent.tracing.trace import TURN, Summary
from memory.process.spans import Recording, Span
from memory.sql.engine import Database

BAR = 0.3
STATISTICS, STATISTICS_BAR = "the statistics of all", 1.0
NOWHERE, NOWHERE_BAR = "the newest 20 with a word that never was", 30.0
LOT = 1_000
PEOPLE, PLACES = 200, 40
WORDS = "tea boat shoulder Lyon cat doctor train sister nuts ski lamp river friday garden piano".split()
SERIALIZER = Serializer("redacted", Redaction(), {"versions": {}, "tools": {}}, "cli", "elsewhere:1")


def questions(traces: Traces) -> dict[str, Callable[[], Awaitable[Any]]]:
    now = datetime.now(UTC)

    def listed(**wanted: Any) -> Callable[[], Awaitable[Any]]:
        return lambda: traces.list(TraceFilter(**wanted), now, 20)

    async def show(id: str) -> None:
        trace = await traces.get(id, now)
        overview_lines(trace, await traces.after(trace.id, now))

    return {
        "the newest 20": listed(),
        "the newest 20 of one person": listed(user="person 7"),
        "the newest 20 in one place": listed(place="place:acme/room%207"),
        "the newest 20 that failed": listed(failed=True),
        "the newest 20 with a tool": listed(tool="remember"),
        "the newest 20 with a word": listed(text="piano"),
        NOWHERE: listed(text="zebra"),
        "the newest 20 that were slow": listed(slower=30.0),
        "the newest 20 of a day": listed(since=now - timedelta(days=1)),
        "show last": lambda: show("last"),
        "show by the beginning of an id": lambda: show(id_of(7)[6:14]),
        "how many": lambda: traces.count(TraceFilter()),
        STATISTICS: lambda: stats_of(traces, TraceFilter(kinds=frozenset())),
    }


async def measure(home: Path, how_many: int, times: int) -> dict[str, float]:
    """Seconds by what was asked, the median of some times."""
    database = await Database.open(None, home)
    found = {}
    try:
        traces = Traces(database)
        await fill(traces, await traces.count(TraceFilter(kinds=frozenset())), how_many)
        for name, ask in questions(traces).items():
            taken = []
            for _ in range(times):
                begun = time.perf_counter()
                await ask()
                taken.append(time.perf_counter() - begun)
            found[name] = statistics.median(taken)
    finally:
        await database.close()
    return found


async def fill(traces: Traces, there: int, how_many: int) -> None:
    now = datetime.now(UTC)
    for first in range(there, how_many, LOT):
        numbers = range(first, min(first + LOT, how_many))
        lot = [made_up(number, now - timedelta(seconds=20 * (how_many - number))) for number in numbers]
        await traces.write(lot, now)


def id_of(number: int) -> str:
    return f"trace_{random.Random(number).getrandbits(128):032x}"


def made_up(number: int, at: datetime) -> Stored:
    """A turn with a search and two calls; one in fifty fails, one in twenty has a tool that does."""
    chance = random.Random(number)

    def words(count: int) -> str:
        return " ".join(chance.choices(WORDS, k=count))

    candidates = [
        {"id": f"m{n}", "kind": "memory", "content": words(12), "score": 1 / n} for n in range(1, 21)
    ]
    usage = {"input": 1200 + number % 100, "output": 40, "cached": 1000}
    call = {"request": {"system": words(600), "input": words(40)}, "usage": usage}
    tool = Span("tool", "search_memories", 0.8, 0.02, data={"ok": number % 20 != 0, "result": words(60)})
    tool.spans = [Span("search", "", 0.8, 0.01, data={"query": words(3), "candidates": candidates})]
    root = Span(TURN, data={"incoming": {"text": words(8)}, "reply": {"message": words(12)}})
    root.spans = [Span("call", "m", 0.05, 0.7, data=call), tool, Span("call", "m", 0.9, 0.8, data=call)]
    root.error = "" if number % 50 else "ModelUnavailable: it did not answer"
    root.took = 1.7 + chance.random()
    recorded = Recording(id_of(number), root)
    recorded.open = False
    place = "" if number % 3 else f"place:acme/room%20{number % PLACES}"
    user, conversation = f"person {number % PEOPLE}", f"c{number % PEOPLE}"
    told: dict[str, Any] = {"conversation": conversation, "model": "m", "said": words(8), "reply": words(12)}
    about = Summary(id=recorded.id, kind=TURN, started_at=at, user=user, place=place, **told)
    return SERIALIZER.serialize(recorded, about)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--home", type=Path, help="where the store stays, to be used again")
    parser.add_argument("--times", type=int, default=5, help="how often each is asked")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(options.home or Path(folder), options.traces, options.times))
    bars = dict.fromkeys(found, BAR) | {STATISTICS: STATISTICS_BAR, NOWHERE: NOWHERE_BAR}
    return finish(options, found, over(bars, found))


if __name__ == "__main__":
    sys.exit(main())
