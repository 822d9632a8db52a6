"""What remembering does with pairs of an existing and a new fact: ok, missed or harmful.

Without a model, each pair is told by a person of its own. With rulings, one person tells all existing facts,
and then each new one in a turn; the scripted model of the consolidation rules as the pair's relation says,
if the prompt offers it the existing fact. So a miss is a fact that was not offered, or a ruling that was not
applied. The model stores every second fact in its answer, and the consolidation finds the others.

    python benchmarks/fact_pairs.py PAIRS.jsonl [--failures] [--json]

A line of the file is an object with `id`, `lang`, `relation`, `existing` and `new` (each with `content`,
`subjects` and `created_at`), `ok` (the outcomes that may happen) and `harmful` (those that lose or corrupt
something). Exit 1 where anything harmful happens, or more than 5 % is missed with rulings. Without a model
all but the same words stays beside each other; with rulings a contradiction must replace.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents import ModelResponse, Usage
from agents.models.interface import Model
from agents.testing import assistant_message
from rich.console import Console
from rich.table import Table

from hachi import Companion, Settings
from memory.records import Decision

ALLOWED_MISSES = 0.05
"""With rulings. Without a model what is missed is only reported."""
RULINGS = {
    "contradiction": "replaces",
    "stale_contradiction": "replaces",  # wrongly: what was said before must not replace
    "refinement": "replaces",
    "paraphrase": "same",
    "exact": "same",
    "coarser": "ignore",
}
"""What the scripted model rules, by relation; nothing on the others."""
TELLER = "ana"

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


class Ruling(Model):
    """Answers each turn, and rules in each consolidation as the pair says."""

    def __init__(self) -> None:
        self.pair: dict[str, Any] = {}
        self.in_answer = False
        """Whether the answer stores the new fact, and not the consolidation."""
        self.offered = False

    async def get_response(
        self, system_instructions: str | None, input: Any, *_: Any, **__: Any
    ) -> ModelResponse:
        question = input if isinstance(input, str) else str(input[-1]["content"])
        if system_instructions:
            found: dict[str, Any] = {
                "message": "I see.",
                "memories": [self._draft()] if self.in_answer else [],
            }
        elif "new_facts" in question:
            found = self._extraction(question)
        else:
            found = {"rulings": []}
        return ModelResponse(
            output=[assistant_message(json.dumps(found, ensure_ascii=False))], usage=Usage(), response_id=None
        )

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def _draft(self) -> dict[str, Any]:
        return {name: self.pair["new"][name] for name in ("content", "subjects")}

    def _extraction(self, question: str) -> dict[str, Any]:
        new, ruling = self.pair["new"], RULINGS.get(self.pair["relation"])
        fact = {"text": new["content"], "importance": "medium", "tags": new["subjects"], "ttl": None}
        old, stored = (_id_of(self.pair[which]["content"], question) for which in ("existing", "new"))
        self.offered = old is not None
        rulings = [{"new": stored or "#1", "old": old, "ruling": ruling}] if old and ruling else []
        return {"summary": "", "new_facts": [] if self.in_answer else [fact], "rulings": rulings}


def _id_of(content: str, prompt: str) -> str | None:
    shown = re.escape(" ".join(content.split()))
    found = re.search(rf"\] {shown} \([^)]*\) \[([^\]]+)\]", prompt)
    return found[1] if found else None


async def decide_with_rulings(pairs: Sequence[dict[str, Any]]) -> list[Result]:
    """One person tells every existing fact, and then each new one in a turn with a consolidation."""
    now, model = datetime(2000, 1, 1, tzinfo=UTC), Ruling()
    with tempfile.TemporaryDirectory() as home:
        settings = Settings.load(home=Path(home), embedder="bundled", traces=False)
        async with Companion.open(
            settings, clock=lambda: now, model=model, upkeep_model=model, upkeep=False
        ) as pet:
            stored = {}
            for pair in pairs:
                if not _stale(pair):
                    now = datetime.fromisoformat(pair["existing"]["created_at"])
                    stored[pair["id"]] = (await _tell(pet, TELLER, pair["existing"])).id
            results = []
            for number, pair in enumerate(pairs):
                now, began = datetime.fromisoformat(pair["new"]["created_at"]), time.perf_counter()
                model.pair, model.in_answer = pair, number % 2 == 0
                await pet.respond(pair["new"]["content"], user=TELLER, conversation=pair["id"])
                if _stale(pair):
                    now = datetime.fromisoformat(pair["existing"]["created_at"])
                    stored[pair["id"]] = (await _tell(pet, TELLER, pair["existing"])).id
                await pet.settle()
                old = stored[pair["id"]]
                outcome, seconds = await _outcome(pet, pair, str(old)), time.perf_counter() - began
                reason = "" if model.offered else "the existing fact was not offered"
                ok = {"replaced"} if pair["relation"] == "contradiction" else set(pair["ok"])
                results.append(_result(pair, outcome, reason, seconds, ok))
    return results


def _stale(pair: dict[str, Any]) -> bool:
    """Whether the new fact was said before the existing one: its message waits for the consolidation when
    that one is told."""
    said, known = (datetime.fromisoformat(pair[which]["created_at"]) for which in ("new", "existing"))
    return said < known


async def _outcome(pet: Companion, pair: dict[str, Any], old: str) -> str:
    known = {memory.id: memory.content for memory in await pet.memories.list(user=TELLER)}
    kept = old in known
    added = pair["new"]["content"] in [content for id, content in known.items() if id != old]
    return (
        "lost" if not (kept or added) else "added" if kept and added else "replaced" if added else "ignored"
    )


async def _decided(pet: Companion, pair: dict[str, Any]) -> Result:
    await _tell(pet, pair["id"], pair["existing"])
    began = time.perf_counter()
    decision = await _tell(pet, pair["id"], pair["new"])
    seconds = time.perf_counter() - began
    return _result(pair, OUTCOME[decision.action], decision.reason, seconds, set(pair["ok"]))


def _result(pair: dict[str, Any], outcome: str, reason: str, seconds: float, ok: set[str]) -> Result:
    harmful = outcome in {*pair["harmful"], "lost"}
    grade = "ok" if outcome in ok else "harmful" if harmful else "missed"
    return Result(
        id=pair["id"],
        lang=pair["lang"],
        relation=pair["relation"],
        reason=reason,
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


def _show(title: str, results: Sequence[Result], failures: bool) -> None:
    console = Console()
    languages = sorted({result.lang for result in results})
    table = Table(
        "relation",
        *languages,
        "ok",
        "missed",
        "harmful",
        title=f"{title}: ok / all, by relation and language",
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


def main() -> int:
    """0 where the bar is met, else 1."""
    parser = argparse.ArgumentParser(description="What remembering does with pairs of facts.")
    parser.add_argument("pairs", type=Path, help="a file of pairs, one JSON object a line")
    parser.add_argument("--failures", action="store_true", help="list what was missed or harmful, and why")
    parser.add_argument("--json", action="store_true", help="print the totals and every result as one object")
    arguments = parser.parse_args()
    try:
        lines = arguments.pairs.read_text(encoding="utf-8").splitlines()
        pairs = [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        parser.error(f"{arguments.pairs} cannot be read: {error}")
    alone, ruled = asyncio.run(decide(pairs)), asyncio.run(decide_with_rulings(pairs))
    totals = _totals(alone, 1.0) | {"ruled": _totals(ruled, ALLOWED_MISSES)}
    if arguments.json:
        print(json.dumps(totals, ensure_ascii=False))
    else:
        _show("without a model", alone, arguments.failures)
        _show("with rulings", ruled, arguments.failures)
    return 0 if totals["passed"] and totals["ruled"]["passed"] else 1


def _totals(results: Sequence[Result], allowed: float) -> dict[str, Any]:
    grades = Counter(result.grade for result in results)
    passed = not grades["harmful"] and grades["missed"] <= allowed * max(len(results), 1)
    counted = {grade: grades[grade] for grade in ("ok", "missed", "harmful")}
    return counted | {"passed": passed, "pairs": [asdict(result) for result in results]}


if __name__ == "__main__":
    sys.exit(main())
