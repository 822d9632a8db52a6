"""What remembering does with pairs of an existing and a new fact: ok, missed or harmful.

    python benchmarks/fact_pairs.py PAIRS.jsonl [--failures] [--json]

A line of the file is an object with `id`, `lang`, `relation`, `existing` and `new` (each with `content`,
`subjects` and `created_at`), `ok` (the outcomes that may happen) and `harmful` (those that lose or corrupt
something). Every pair is decided with the bundled embedder and no judge. Exit 1 where anything harmful
happens or more than 30 % are missed: without a model contradictions and paraphrases stay beside each other.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agent import Companion, Settings
from memory.records import Decision

ALLOWED_MISSES = 0.3

OUTCOME = {"add": "added", "merge": "merged", "replace": "replaced", "ignore": "ignored"}


@dataclass(frozen=True, slots=True)
class Result:
    id: str
    lang: str
    relation: str
    reason: str
    outcome: str
    grade: str
    existing: str
    new: str
    seconds: float


async def decide(pairs: Sequence[dict[str, Any]]) -> list[Result]:
    """Each pair is told to a companion by somebody of their own, one fact after the other."""
    with tempfile.TemporaryDirectory() as home:
        settings = Settings.load(home=Path(home), embedder="bundled", judge=False)
        async with Companion.open(settings, upkeep=False) as pet:
            return [await _decided(pet, pair) for pair in pairs]


async def _decided(pet: Companion, pair: dict[str, Any]) -> Result:
    await _tell(pet, pair["id"], pair["existing"])
    began = time.perf_counter()
    decision = await _tell(pet, pair["id"], pair["new"])
    seconds = time.perf_counter() - began
    outcome = OUTCOME[decision.action]
    grade = "ok" if outcome in pair["ok"] else "harmful" if outcome in pair["harmful"] else "missed"
    return Result(
        id=pair["id"],
        lang=pair["lang"],
        relation=pair["relation"],
        reason=decision.reason,
        outcome=outcome,
        grade=grade,
        existing=pair["existing"]["content"],
        new=pair["new"]["content"],
        seconds=seconds,
    )


async def _tell(pet: Companion, user: str, fact: dict[str, Any]) -> Decision:
    return await pet.remember(
        fact["content"],
        user=user,
        subjects=fact["subjects"],
        said_at=datetime.fromisoformat(fact["created_at"]),
    )


def _show(results: Sequence[Result], failures: bool) -> None:
    console = Console()
    languages = sorted({result.lang for result in results})
    table = Table(
        "relation", *languages, "ok", "missed", "harmful", title="ok / all, by relation and language"
    )
    for relation in [*sorted({result.relation for result in results}), "total"]:
        rows = [result for result in results if relation in (result.relation, "total")]
        grades = Counter(result.grade for result in rows)
        cells = [[r.grade == "ok" for r in rows if r.lang == lang] for lang in languages]
        shares = [f"{sum(cell)} / {len(cell)}" if cell else "" for cell in cells]
        table.add_row(relation, *shares, *(str(grades[grade]) for grade in ("ok", "missed", "harmful")))
    console.print(table)
    typical = sorted(result.seconds for result in results)[len(results) // 2] if results else 0.0
    console.print(f"{len(results)} pairs, {typical * 1e3:.1f} ms typical to remember the second of a pair")
    for result in results if failures else ():
        if result.grade != "ok":
            console.print(f"\n{result.grade} {result.relation} {result.id} ({result.lang})")
            console.print(f"  {result.existing}\n  {result.new}", markup=False)
            console.print(f"  → {result.outcome}: {result.reason}", markup=False)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What remembering does with pairs of facts.")
    parser.add_argument("pairs", type=Path, help="a file of pairs, one JSON object a line")
    parser.add_argument("--failures", action="store_true", help="list what was missed or harmful, and why")
    parser.add_argument("--json", action="store_true", help="print the totals and every result as one object")
    return parser.parse_args()


def main() -> int:
    """0 where the bar is met, else 1."""
    arguments = _arguments()
    lines = arguments.pairs.read_text(encoding="utf-8").splitlines()
    results = asyncio.run(decide([json.loads(line) for line in lines if line.strip()]))
    grades = Counter(result.grade for result in results)
    passed = not grades["harmful"] and grades["missed"] <= ALLOWED_MISSES * max(len(results), 1)
    if arguments.json:
        totals = {grade: grades[grade] for grade in ("ok", "missed", "harmful")} | {"passed": passed}
        print(json.dumps(totals | {"pairs": [asdict(result) for result in results]}, ensure_ascii=False))
    else:
        _show(results, arguments.failures)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
