"""How many SQL statements does a turn run?

    python benchmarks/statements.py [--turns N] [--json]

A scripted model searches, remembers and answers. Every statement and every transaction that writes is counted
by SQLAlchemy's events, before the reply and in the background work after it, and shown with the function that
ran it. Traces are off: they are written in batches, apart from the turn.
Bars: 15 statements before the reply, 25 after it. Exit 1 where missed.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from greenlet import getcurrent
from rich.console import Console
from rich.table import Table
from sqlalchemy import event

sys.path.insert(0, str(Path(__file__).parent))

from turn import Script

from agent import Companion, Settings

BARS = {"reply": 15, "after": 25}
ROOT = Path(__file__).parent.parent
PASSED_OVER = ("benchmarks", "memory/sql/engine/", "memory/process/spans.py", "tools/registry.py")
"""Frames that say nothing about where a statement comes from."""
CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "PRAGMA", "SAVEPOINT")
WARM_UP = 3


@dataclass
class Phase:
    """What one part of one turn asked of the database."""

    statements: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By who asked, and the beginning of what."""
    writes: int = 0
    """Transactions that were committed."""


def origin() -> str:
    """The two innermost functions of Hachi that are waiting for this statement, the caller first."""
    frame = getattr(getcurrent().parent, "gr_frame", None) or sys._getframe()
    found: list[str] = []
    while frame and len(found) < 2:
        code = frame.f_code
        path = Path(code.co_filename)
        if path.is_relative_to(ROOT) and ".venv" not in path.parts:
            module = str(path.relative_to(ROOT))
            if not module.startswith(PASSED_OVER):
                found.append(f"{module}:{code.co_name}")
        frame = frame.f_back
    return " > ".join(reversed(found))


def summary(statement: str) -> str:
    """``SELECT memories`` and the like: the verb and the first table."""
    words = statement.replace("(", " ").split()
    upper = [word.upper() for word in words]
    at = 0 if upper[0] == "UPDATE" else next((upper.index(w) for w in ("INTO", "FROM") if w in upper), 0)
    return f"{upper[0]} {words[at + 1]}" if at + 1 < len(words) else upper[0]


async def measure(turns: int) -> dict[str, list[Phase]]:
    phases: dict[str, list[Phase]] = {"reply": [], "after": []}
    current = Phase()

    def executed(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith(CONTROL):
            current.statements[(origin(), summary(statement))] += 1

    with tempfile.TemporaryDirectory() as home:
        settings = Settings.load(home=Path(home), embedder="bundled", traces=False)
        async with Companion.open(settings, model=Script(), upkeep=False) as companion:
            database = companion.components.database
            await companion.remember("Ana keeps bees.", user="ana")
            event.listen(database.engine.sync_engine, "before_cursor_execute", executed)
            for n in range(WARM_UP + turns):
                for part in ("reply", "after"):
                    current, before = Phase(), database.writes
                    if part == "reply":
                        await companion.respond(f"turn {n}", user="ana")
                    else:
                        await companion.settle()
                    current.writes = database.writes - before
                    if n >= WARM_UP:
                        phases[part].append(current)
    return phases


def result_of(phases: dict[str, list[Phase]]) -> dict[str, Any]:
    """Of each part the medians, and the statements of its last turn by origin."""
    return {
        part: {
            "statements": statistics.median(phase.statements.total() for phase in measured),
            "transactions": statistics.median(phase.writes for phase in measured),
            "by_origin": [
                {"origin": origin, "statement": statement, "times": times}
                for (origin, statement), times in sorted(measured[-1].statements.items())
            ],
        }
        for part, measured in phases.items()
    }


def show(result: dict[str, Any]) -> None:
    console = Console()
    for part, found in result.items():
        table = Table("asked by", "statement", "times", title=f"{part}: {found['statements']:g} statements")
        for row in found["by_origin"]:
            table.add_row(row["origin"], row["statement"], str(row["times"]))
        console.print(table)
        console.print(f"{found['transactions']:g} writing transactions; bar: {BARS[part]} statements")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = result_of(asyncio.run(measure(options.turns)))
    print(json.dumps(result, indent=2)) if options.json else show(result)
    return 0 if all(result[part]["statements"] <= bar for part, bar in BARS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
